//! Encodes and decodes kernels in the cache.
//!
//! Guarantees that decoding gives back what was encoded, and that other input is rejected.

use serde::{Deserialize, Serialize};
use tk_bundle::{MessageKind, TensorMap};
use tk_gpu::ir::kernel::{Remark, Remedy, Shortage};
use tk_gpu::target::spec;
use tk_ops::DType;
use tk_tile::Loc;
use tk_tile::message::Message;

use crate::compile::kernel::{CompiledKernel, Cubin, KernelParam, KernelParamKind, Resources};
use crate::ship::artifact::message_kind;

/// The header before the text and the binary of a kernel in the cache.
#[derive(Serialize, Deserialize)]
struct Head {
    name: String,
    target: String,
    threads: u32,
    shared_bytes: u32,
    blocks_per_program: u32,
    params: Vec<(String, KernelParamKind, String)>,
    maps: Vec<TensorMap>,
    messages: Vec<EncodedMessage>,
    has_grid_barrier: bool,
    /// Position, and the numbers of the remedy.
    shortages: Vec<(Option<Place>, Numbers)>,
    /// Position and text.
    remarks: Vec<(Option<Place>, String)>,
    report: Resources,
    /// The bytes of the text.
    asm: usize,
}

/// A source position: file, start and end.
type Place = [u32; 3];

fn place(loc: Option<Loc>) -> Option<Place> {
    loc.map(|l| [l.file, l.start, l.end])
}

fn loc(place: Option<Place>) -> Option<Loc> {
    place.map(|[file, start, end]| Loc { file, start, end })
}

/// A [`Message`].
#[derive(Serialize, Deserialize)]
struct EncodedMessage {
    text: String,
    kind: MessageKind,
    place: Option<Place>,
}

fn encoded_message(m: &Message) -> EncodedMessage {
    EncodedMessage { text: m.text.clone(), kind: message_kind(&m.kind), place: place(m.loc) }
}

fn message(encoded: EncodedMessage) -> Option<Message> {
    let kind = tk_runtime::bundled::message_kind(&encoded.kind)?;
    Some(Message { text: encoded.text, kind, loc: loc(encoded.place) })
}

/// A [`Remedy`].
#[derive(Serialize, Deserialize)]
enum Numbers {
    Stages(u32, u32),
    Chunks(u32, u32),
    Registers,
}

fn numbers(remedy: Remedy) -> Numbers {
    match remedy {
        Remedy::Stages { asked, fits } => Numbers::Stages(asked, fits),
        Remedy::Chunks { k, chunk } => Numbers::Chunks(k, chunk),
        Remedy::Registers => Numbers::Registers,
    }
}

fn shortage((place, numbers): (Option<Place>, Numbers)) -> Shortage {
    let remedy = match numbers {
        Numbers::Stages(asked, fits) => Remedy::Stages { asked, fits },
        Numbers::Chunks(k, chunk) => Remedy::Chunks { k, chunk },
        Numbers::Registers => Remedy::Registers,
    };
    Shortage { loc: loc(place), remedy }
}

/// The length of the header, the header as JSON, the text, the binary.
pub(crate) fn encode(kernel: &CompiledKernel, cubin: &Cubin) -> Option<Vec<u8>> {
    let param = |p: &KernelParam| (p.name.clone(), p.kind, p.dtype.name().to_string());
    let head = Head {
        name: kernel.name.clone(),
        target: kernel.target.name.to_string(),
        threads: kernel.threads,
        shared_bytes: kernel.shared_bytes,
        blocks_per_program: kernel.blocks_per_program,
        params: kernel.params.iter().map(param).collect(),
        maps: kernel.maps.clone(),
        messages: kernel.messages.iter().map(encoded_message).collect(),
        has_grid_barrier: kernel.has_grid_barrier,
        shortages: kernel.shortages.iter().map(|s| (place(s.loc), numbers(s.remedy))).collect(),
        remarks: kernel.remarks.iter().map(|r| (place(r.loc), r.text.clone())).collect(),
        report: cubin.report.clone(),
        asm: kernel.asm.len(),
    };
    let head = serde_json::to_vec(&head).ok()?;
    let length = u32::try_from(head.len()).ok()?;
    Some([&length.to_le_bytes(), head.as_slice(), kernel.asm.as_bytes(), &cubin.bytes].concat())
}

/// Decodes the output of [`encode`]. Other input is `None`.
pub(crate) fn decode(bytes: &[u8]) -> Option<(CompiledKernel, Cubin)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (head, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let head: Head = serde_json::from_slice(head).ok()?;
    let (asm, binary) = rest.split_at_checked(head.asm)?;
    let param = |(name, kind, dtype): (String, KernelParamKind, String)| {
        Some(KernelParam { name, kind, dtype: DType::parse(&dtype)? })
    };
    let kernel = CompiledKernel {
        name: head.name,
        target: spec::target(&head.target)?,
        threads: head.threads,
        shared_bytes: head.shared_bytes,
        blocks_per_program: head.blocks_per_program,
        params: head.params.into_iter().map(param).collect::<Option<_>>()?,
        maps: head.maps,
        messages: head.messages.into_iter().map(message).collect::<Option<_>>()?,
        has_grid_barrier: head.has_grid_barrier,
        shortages: head.shortages.into_iter().map(shortage).collect(),
        remarks: head.remarks.into_iter().map(|(at, text)| Remark { loc: loc(at), text }).collect(),
        asm: std::str::from_utf8(asm).ok()?.to_string(),
        object: None,
        stages: None,
    };
    Some((kernel, Cubin { bytes: binary.to_vec(), report: head.report }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tk_bundle::{Dimension, Word};
    use tk_gpu::target::spec::SM_90A;
    use tk_tile::message::{Form, Kind};

    use super::*;

    #[test]
    fn a_kernel_comes_out_of_the_cache_as_it_went_in() {
        let param = |name: &str, kind, dtype| KernelParam { name: name.into(), kind, dtype };
        let kernel = CompiledKernel {
            name: "k".into(),
            target: &SM_90A,
            threads: 128,
            shared_bytes: 4096,
            blocks_per_program: 4,
            params: vec![
                param("x", KernelParamKind::Pointer, DType::F8E4M3),
                param("x.shape[0]", KernelParamKind::Extent, DType::I64),
            ],
            maps: vec![TensorMap {
                address: 0,
                dimensions: vec![
                    Dimension { extent: Word::Value(64), stride: Word::Value(1), before: false },
                    Dimension { extent: Word::Passed(1), stride: Word::Passed(3), before: true },
                ],
                dtype: "bf16".into(),
                lines: 128,
                span: 64,
            }],
            messages: vec![
                Message {
                    text: "{} of \"{}\" in {}".into(),
                    kind: Kind::Print(vec![
                        Form::Numbers { dtype: DType::E8M0, shape: vec![4, 8] },
                        Form::Pointers { bytes: 2, shape: vec![] },
                        Form::View { bytes: 4, rank: 3 },
                    ]),
                    loc: Some(Loc { file: 1, start: 20, end: 30 }),
                },
                Message { text: String::new(), kind: Kind::Assert(vec![16]), loc: None },
            ],
            has_grid_barrier: true,
            shortages: vec![Shortage {
                loc: Some(Loc { file: 1, start: 2, end: 3 }),
                remedy: Remedy::Stages { asked: 4, fits: 2 },
            }],
            remarks: vec![
                Remark { loc: Some(Loc { file: 1, start: 4, end: 9 }), text: "slow: \"ü\"".into() },
                Remark { loc: None, text: String::new() },
            ],
            asm: "// ü\n.version 8.5\n".into(),
            object: None,
            stages: None,
        };
        let report =
            Resources { registers: 40, advice: vec!["C7511: \"slow\"".into()], ..Resources::default() };
        let cubin = Cubin { bytes: vec![0x7f, b'E', b'L', b'F', 0, 255], report };
        let bytes = encode(&kernel, &cubin).unwrap();
        assert_eq!(decode(&bytes), Some((kernel, cubin)));
        for length in 0..bytes.len() - 6 {
            assert!(decode(&bytes[..length]).is_none(), "{length}");
        }
    }
}
