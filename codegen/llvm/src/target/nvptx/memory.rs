//! Emits accesses to memory of NVIDIA GPUs: up to 16 bytes of a thread at a time, with a predicate instead of a branch.
//!
//! Requires accesses that are aligned to their size. Guarantees that nothing is accessed where the predicate is false.

use inkwell::values::{BasicValueEnum, IntValue};

use super::{Kind, Nvptx, cluster};
use crate::emit::value::{vector_of, word};
use crate::emit::{Emit, Res, bug};
use crate::target::{Access, Space};
use tk_gpu::ir::caching::{Caching, Evict, Level};

/// The most parts of a wide access.
const PARTS: usize = 4;

/// The parts of a wide access: registers of the assembly.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// Their number.
    pub count: usize,
    /// Bits of each.
    pub bits: u32,
}

impl Parts {
    fn of(access: &Access<'_>) -> Parts {
        let bytes = access.bytes * access.count;
        match bytes {
            // A byte is moved in a register of 16 bits.
            1 | 2 => Parts { count: 1, bits: 16 },
            4 => Parts { count: 1, bits: 32 },
            _ if access.bytes == 8 => Parts { count: access.count as usize, bits: 64 },
            _ => Parts { count: (bytes as usize / 4).min(PARTS), bits: 32 },
        }
    }

    fn letter(self) -> &'static str {
        match self.bits {
            16 => "h",
            32 => "r",
            _ => "l",
        }
    }

    /// `.v4.b32`
    fn suffix(self, access: &Access<'_>) -> String {
        let vector = if self.count > 1 { format!(".v{}", self.count) } else { String::new() };
        let bits = if access.bytes * access.count == 1 { 8 } else { self.bits };
        format!("{vector}.b{bits}")
    }

    /// `{$0, $1}` or `$0`.
    pub fn operands(self, first: usize) -> String {
        let list: Vec<String> = (first..first + self.count).map(|i| format!("${i}")).collect();
        if self.count > 1 { format!("{{{}}}", list.join(", ")) } else { list.join("") }
    }
}

fn space_name(space: Space) -> (&'static str, &'static str) {
    match space {
        Space::Global => ("global", "l"),
        Space::Shared => ("shared", "r"),
    }
}

/// The cache modifiers of an instruction.
pub(super) struct Words {
    /// The modifier after its name.
    pub order: &'static str,
    /// The modifier after the space.
    pub mode: &'static str,
    /// The modifier after that, if it has a policy.
    pub hint: &'static str,
    /// The last operand.
    pub policy: &'static str,
}

impl Words {
    /// PTX has no policies for volatile accesses.
    pub fn of(caching: Caching) -> Words {
        let (order, mode) = match caching.level {
            Level::All => ("", ""),
            Level::Shared => ("", ".cg"),
            Level::Streaming => ("", ".cs"),
            Level::Through => ("", ".wt"),
            Level::Volatile => (".volatile", ""),
        };
        let (hint, policy) =
            if eviction(caching).is_some() { (".L2::cache_hint", ", policy") } else { ("", "") };
        Words { order, mode, hint, policy }
    }
}

/// The eviction priority of a policy.
fn eviction(caching: Caching) -> Option<&'static str> {
    match caching.evict {
        _ if caching.level == Level::Volatile => None,
        Evict::Normal => None,
        Evict::First => Some("evict_first"),
        Evict::Last => Some("evict_last"),
    }
}

/// An instruction with the policy that it names. The assembler merges equal policies into one constant.
pub(super) fn with_policy(caching: Caching, text: String) -> String {
    match eviction(caching) {
        Some(evict) => {
            format!("{{ .reg .b64 policy; createpolicy.fractional.L2::{evict}.b64 policy, 1.0; {text} }}")
        }
        None => text,
    }
}

/// The address in an operand, and an offset in bytes.
pub(super) fn offset_text(operand: usize, offset: i64) -> String {
    match offset {
        0 => format!("[${operand}]"),
        n if n > 0 => format!("[${operand}+{n}]"),
        n => format!("[${operand}+-{}]", -n),
    }
}

impl<'c> Nvptx<'c> {
    /// Loads elements; `other` where the predicate is false.
    pub(super) fn read(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let parts = Parts::of(access);
        let (name, letter) = space_name(space);
        let n = parts.count;
        let outputs = vec![word(e.context, parts.bits).into(); n];
        let place = offset_text(n, access.offset);
        let Words { order, mode, hint, policy } = Words::of(access.caching);
        let (suffix, words) = (parts.suffix(access), parts.operands(0));
        let mut text = format!("ld{order}.{name}{mode}{hint}{suffix} {words}, {place}{policy};");
        let mut letters = vec![format!("={}", parts.letter()); n];
        letters.push(letter.to_string());
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![self.address(e, space, access)?.into()];
        if let Some(predicate) = access.predicate {
            text = format!("@${} {text}", n + 1);
            letters.push("b".to_string());
            inputs.push(predicate.into());
            // Elements that are not loaded keep the initial value of the output.
            letters.extend((0..n).map(|i| i.to_string()));
            inputs.extend(self.pack(e, parts, other)?);
        }
        let text = with_policy(access.caching, text);
        let words = self.asm(e, &text, &letters.join(","), &outputs, &inputs, Kind::Memory)?;
        self.unpack(e, access, &words)
    }

    /// Stores elements.
    pub(super) fn put(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        let (name, letter) = space_name(space);
        let address = self.address(e, space, access)?;
        self.write(e, access, &[(letter, address)], values, |predicate, suffix, words| {
            if space == Space::Shared && e.kernel.options.blocks > 1 {
                return cluster::store(e.kernel.options.blocks, predicate, suffix, access.offset, words);
            }
            let Words { mode, hint, policy, .. } = Words::of(access.caching);
            let place = offset_text(0, access.offset);
            let text = format!("{predicate}st.{name}{mode}{hint}{suffix} {place}, {words}{policy};");
            with_policy(access.caching, text)
        })
    }

    /// Prefetches the line of an access, to the level that the source specifies.
    pub(super) fn ask_for(&self, e: &Emit<'_, 'c>, access: &Access<'c>) -> Res<()> {
        let level = if access.caching.level == Level::All { "L1" } else { "L2" };
        let (mut text, mut letters) =
            (format!("prefetch.global.{level} {};", offset_text(0, access.offset)), "l".to_string());
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![access.address.into()];
        if let Some(predicate) = access.predicate {
            text = format!("@$1 {text}");
            letters += ",b";
            inputs.push(predicate.into());
        }
        self.asm(e, &text, &letters, &[], &inputs, Kind::Memory).map(|_| ())
    }

    /// Starts a copy to shared memory, of zeros without the predicate of `from`; nothing is copied without that of
    /// `to`. Without a policy for the L2: `ptxas` 12.9 and 13.0 lose its register in code for GPUs with clusters, which
    /// end such a kernel with an illegal instruction (seen on an H200; fixed in 13.4).
    pub(super) fn copy_ahead(&self, e: &Emit<'_, 'c>, from: &Access<'c>, to: &Access<'c>) -> Res<()> {
        let bytes = from.bytes * from.count;
        // Only copies of 16 bytes bypass the L1, where they are not needed.
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let (to_text, from_text) = (offset_text(0, to.offset), offset_text(1, from.offset));
        let mut text = format!("cp.async.{cache}.shared.global {to_text}, {from_text}, {bytes}");
        let mut constraints = "r,l".to_string();
        let mut inputs: Vec<BasicValueEnum<'c>> =
            vec![self.address(e, Space::Shared, to)?.into(), from.address.into()];
        if let Some(p) = from.predicate {
            // Bytes that are not read become 0.
            let read = e.builder.build_select(p, e.int(bytes), e.int(0), "")?;
            text += ", $2";
            constraints += ",r";
            inputs.push(read);
        }
        if let Some(p) = to.predicate {
            text = format!("@${} {text}", inputs.len());
            constraints += ",b";
            inputs.push(p.into());
        }
        self.asm(e, &format!("{text};"), &constraints, &[], &inputs, Kind::Memory).map(|_| ())
    }

    /// The address of an access.
    fn address(&self, e: &Emit<'_, 'c>, space: Space, access: &Access<'c>) -> Res<IntValue<'c>> {
        match space {
            Space::Global => Ok(access.address),
            Space::Shared => self.shared_address(e, access.address),
        }
    }

    /// Values as the parts of a wide access.
    pub(super) fn pack(
        &self,
        e: &Emit<'_, 'c>,
        parts: Parts,
        values: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let word = word(e.context, parts.bits);
        let each = values.len() / parts.count;
        let mut out = vec![];
        for chunk in values.chunks(each.max(1)) {
            out.push(if let [one] = chunk {
                if one.is_int_value() {
                    e.builder.build_int_z_extend_or_bit_cast(one.into_int_value(), word, "")?.into()
                } else {
                    e.builder.build_bit_cast(*one, word, "")?
                }
            } else {
                let Some(first) = chunk.first() else { return bug("an access of nothing") };
                let mut vector = vector_of(first.get_type(), chunk.len() as u32)?.get_undef();
                for (i, x) in chunk.iter().enumerate() {
                    vector = e.builder.build_insert_element(vector, *x, e.int(i as u32), "")?;
                }
                e.builder.build_bit_cast(vector, word, "")?
            });
        }
        Ok(out)
    }

    /// Calls assembly that stores values: `text` builds it from the predicate prefix of an instruction, the form of an
    /// access, and its words. The addresses come first, each with the letter of its register.
    pub(super) fn write(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        addresses: &[(&str, IntValue<'c>)],
        values: &[BasicValueEnum<'c>],
        text: impl FnOnce(&str, &str, &str) -> String,
    ) -> Res<()> {
        let parts = Parts::of(access);
        let mut inputs: Vec<BasicValueEnum<'c>> = addresses.iter().map(|(_, a)| (*a).into()).collect();
        inputs.extend(self.pack(e, parts, values)?);
        let words = std::iter::repeat_n(parts.letter(), parts.count);
        let mut letters: Vec<&str> = addresses.iter().map(|(letter, _)| *letter).chain(words).collect();
        let predicate = access.predicate.map_or(String::new(), |_| format!("@${} ", inputs.len()));
        if let Some(p) = access.predicate {
            letters.push("b");
            inputs.push(p.into());
        }
        let text = text(&predicate, &parts.suffix(access), &parts.operands(addresses.len()));
        self.asm(e, &text, &letters.join(","), &[], &inputs, Kind::Memory).map(|_| ())
    }

    /// The inverse of [`Nvptx::pack`].
    pub(super) fn unpack(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        words: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let each = access.count as usize / words.len().max(1);
        let mut out = vec![];
        for word in words {
            if each <= 1 {
                let word = word.into_int_value();
                out.push(if access.ty.is_int_type() {
                    e.builder.build_int_truncate_or_bit_cast(word, access.ty.into_int_type(), "")?.into()
                } else {
                    e.builder.build_bit_cast(word, access.ty, "")?
                });
                continue;
            }
            let vector =
                e.builder.build_bit_cast(*word, vector_of(access.ty, each as u32)?, "")?.into_vector_value();
            for i in 0..each {
                out.push(e.builder.build_extract_element(vector, e.int(i as u32), "")?);
            }
        }
        Ok(out)
    }
}
