//! Prints the fields of operations as attributes and parses them: [`Field`], implemented for each type of a field.
//!
//! Guarantees that parsing gives back what was printed, and that a missing, unknown or ill-typed field is an error.

use tk_ops::DType;
use tk_tile::{Attr, Attrs};

use super::caching::Caching;
use super::op::{
    BufferRef, Exchange, FragmentLoad, MmaOperand, Multicast, Pipeline, Placement, Product, StoreAccess,
    Strides, TmaBox,
};
use crate::target::mma::InstructionName;
use crate::target::precision::Precision;

type Read<T> = Result<T, String>;

/// The attributes of an operation that is being parsed.
pub struct Fields(Vec<(&'static str, Attr)>);

impl Fields {
    /// The fields of these attributes.
    pub fn new(attrs: &Attrs) -> Fields {
        Fields(attrs.iter().map(|(n, a)| (n, a.clone())).collect())
    }

    fn take(&mut self, name: &str) -> Option<Attr> {
        let at = self.0.iter().position(|(n, _)| *n == name)?;
        Some(self.0.remove(at).1)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| *n == name)
    }

    /// Ends parsing.
    ///
    /// # Errors
    /// The first field that was not read.
    pub fn end(&self) -> Read<()> {
        self.0.first().map_or(Ok(()), |(n, _)| Err(format!("it has no field `{n}`")))
    }
}

/// A type of fields.
pub trait Field: Sized {
    /// The attributes of a field with this name.
    fn names(name: &'static str) -> Vec<&'static str> {
        vec![name]
    }
    /// Writes the attributes of a field.
    fn write(&self, name: &'static str, out: &mut Attrs);
    /// Reads a field and removes its attributes.
    ///
    /// # Errors
    /// The attribute that is missing or of another type.
    fn read(name: &'static str, from: &mut Fields) -> Read<Self>;
}

fn missing<T>(name: &str) -> Read<T> {
    Err(format!("it needs the field `{name}`"))
}

fn ill_typed<T>(name: &str, wanted: &str) -> Read<T> {
    Err(format!("`{name}` must be {wanted}"))
}

/// Implements [`Field`] for numbers.
macro_rules! numbers {
    ($($ty:ident: $what:literal)*) => {$(
        impl Field for $ty {
            fn write(&self, name: &'static str, out: &mut Attrs) {
                out.set(name, Attr::Int(i64::try_from(*self).unwrap_or(i64::MAX)));
            }

            fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
                match from.take(name) {
                    Some(Attr::Int(i)) => $ty::try_from(i).or_else(|_| ill_typed(name, $what)),
                    Some(_) => ill_typed(name, $what),
                    None => missing(name),
                }
            }
        }

        impl Field for Vec<$ty> {
            fn write(&self, name: &'static str, out: &mut Attrs) {
                out.set(name, Attr::Ints(self.iter().map(|i| i64::try_from(*i).unwrap_or(i64::MAX)).collect()));
            }

            fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
                let all = match from.take(name) {
                    Some(Attr::Ints(all)) => all.into_iter().map($ty::try_from).collect::<Result<_, _>>().ok(),
                    Some(_) => None,
                    None => return missing(name),
                };
                all.map_or_else(|| ill_typed(name, concat!("a list, each ", $what)), Ok)
            }
        }
    )*};
}

numbers! {
    i64: "an integer"
    u32: "an integer from 0 to 4294967295"
    usize: "an integer that is not negative"
}

impl Field for bool {
    fn write(&self, name: &'static str, out: &mut Attrs) {
        if *self {
            out.set(name, Attr::Bool(true));
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        match from.take(name) {
            Some(Attr::Bool(b)) => Ok(b),
            Some(_) => ill_typed(name, "`true` or `false`"),
            None => Ok(false),
        }
    }
}

impl Field for Option<usize> {
    fn write(&self, name: &'static str, out: &mut Attrs) {
        if let Some(n) = self {
            n.write(name, out);
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        if from.has(name) { usize::read(name, from).map(Some) } else { Ok(None) }
    }
}

impl Field for Option<StoreAccess> {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["stmatrix", "stmatrix_trans", "vector"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        match self {
            Some(StoreAccess::Vector(n)) => n.write("vector", out),
            Some(StoreAccess::Matrices) => true.write("stmatrix", out),
            Some(StoreAccess::TransposedMatrices) => true.write("stmatrix_trans", out),
            None => {}
        }
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        let vector = Option::<u32>::read("vector", from)?.map(StoreAccess::Vector);
        let plain = bool::read("stmatrix", from)?.then_some(StoreAccess::Matrices);
        let transposed = bool::read("stmatrix_trans", from)?.then_some(StoreAccess::TransposedMatrices);
        let mut all = [vector, plain, transposed].into_iter().flatten();
        match (all.next(), all.next()) {
            (access, None) => Ok(access),
            _ => Err("it has two of `vector`, `stmatrix` and `stmatrix_trans`".into()),
        }
    }
}

/// The words of [`FragmentLoad`], except `v` and a number.
const FRAGMENT_LOADS: [(&str, FragmentLoad); 4] = [
    ("ldmatrix", FragmentLoad::Matrices),
    ("ldmatrix.trans", FragmentLoad::TransposedMatrices),
    ("ds_read_tr", FragmentLoad::Transposed),
    ("wgmma", FragmentLoad::Instruction),
];

impl Field for Option<FragmentLoad> {
    fn write(&self, name: &'static str, out: &mut Attrs) {
        let Some(load) = self else { return };
        let word = FRAGMENT_LOADS.iter().find(|(_, l)| l == load).map(|(w, _)| String::from(*w));
        let vector = if let FragmentLoad::Vector(n) = load { *n } else { 1 };
        out.set(name, Attr::Str(word.unwrap_or_else(|| format!("v{vector}"))));
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        if !from.has(name) {
            return Ok(None);
        }
        let parse = |s: &str| {
            let known = FRAGMENT_LOADS.iter().find(|(w, _)| *w == s).map(|(_, l)| *l);
            known.or_else(|| Some(FragmentLoad::Vector(s.strip_prefix('v')?.parse().ok()?)))
        };
        word(
            name,
            from.take(name),
            parse,
            "`ldmatrix`, `ldmatrix.trans`, `ds_read_tr`, `wgmma` or `v1`, `v2` ..",
        )
        .map(Some)
    }
}

impl Field for Option<u32> {
    fn write(&self, name: &'static str, out: &mut Attrs) {
        if let Some(n) = self {
            n.write(name, out);
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        if from.has(name) { u32::read(name, from).map(Some) } else { Ok(None) }
    }
}

/// The attribute of an exchange that alternates.
const ALTERNATES: &str = "alternates";

impl Field for Option<Exchange> {
    fn names(name: &'static str) -> Vec<&'static str> {
        vec![name, ALTERNATES]
    }

    fn write(&self, name: &'static str, out: &mut Attrs) {
        if let Some(Exchange { barrier, alternates }) = self {
            barrier.write(name, out);
            alternates.write(ALTERNATES, out);
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        let Some(barrier) = Option::<u32>::read(name, from)? else { return Ok(None) };
        Ok(Some(Exchange { barrier, alternates: bool::read(ALTERNATES, from)? }))
    }
}

/// Parses a string attribute with `parse`.
fn word<T>(name: &str, attr: Option<Attr>, parse: impl Fn(&str) -> Option<T>, wanted: &str) -> Read<T> {
    match attr {
        Some(Attr::Str(s)) => parse(&s).map_or_else(|| ill_typed(name, wanted), Ok),
        Some(_) => ill_typed(name, wanted),
        None => missing(name),
    }
}

impl Field for InstructionName {
    fn write(&self, name: &'static str, out: &mut Attrs) {
        out.set(name, Attr::Str(self.0.into()));
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        word(name, from.take(name), InstructionName::parse, "the name of a matrix instruction")
    }
}

/// The attribute with the stages of buffers, if one of them has stages.
const STAGES: &str = "buffer_stages";

fn write_stages(buffers: &[BufferRef], out: &mut Attrs) {
    if buffers.iter().any(|b| b.stages.is_some()) {
        buffers.iter().map(|b| b.count()).collect::<Vec<u32>>().write(STAGES, out);
    }
}

/// These buffers with their stages.
fn read_stages(buffers: Vec<usize>, from: &mut Fields) -> Read<Vec<BufferRef>> {
    if !from.has(STAGES) {
        return Ok(buffers.into_iter().map(BufferRef::whole).collect());
    }
    let stages = Vec::<u32>::read(STAGES, from)?;
    if stages.len() != buffers.len() || stages.contains(&0) {
        return ill_typed(STAGES, "a positive integer for each buffer");
    }
    Ok(buffers.into_iter().zip(stages).map(|(buffer, n)| BufferRef { buffer, stages: Some(n) }).collect())
}

impl Field for BufferRef {
    fn names(name: &'static str) -> Vec<&'static str> {
        vec![name, STAGES]
    }

    fn write(&self, name: &'static str, out: &mut Attrs) {
        self.buffer.write(name, out);
        write_stages(&[*self], out);
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        let buffer = usize::read(name, from)?;
        read_stages(vec![buffer], from)?.pop().map_or_else(|| missing(name), Ok)
    }
}

impl Field for [BufferRef; 2] {
    fn names(name: &'static str) -> Vec<&'static str> {
        vec![name, STAGES]
    }

    fn write(&self, name: &'static str, out: &mut Attrs) {
        self.map(|b| b.buffer).to_vec().write(name, out);
        write_stages(self, out);
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        let buffers = Vec::<usize>::read(name, from)?;
        read_stages(buffers, from)?.try_into().or_else(|_| ill_typed(name, "two buffers"))
    }
}

impl Field for Strides {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["start", "strides"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        self.start.write("start", out);
        self.strides.write("strides", out);
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        Ok(Strides { start: i64::read("start", from)?, strides: Vec::read("strides", from)? })
    }
}

impl Field for Placement {
    fn names(name: &'static str) -> Vec<&'static str> {
        [Strides::names(name), vec!["bases"]].concat()
    }

    fn write(&self, name: &'static str, out: &mut Attrs) {
        match self {
            Placement::Strided(strides) => strides.write(name, out),
            Placement::Swizzled { bases } => bases.write("bases", out),
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        if from.has("bases") {
            return Ok(Placement::Swizzled { bases: Vec::read("bases", from)? });
        }
        if !from.has("start") && !from.has("strides") {
            return Err("it needs `bases`, or `start` and `strides`".into());
        }
        Strides::read(name, from).map(Placement::Strided)
    }
}

impl Field for MmaOperand {
    fn names(name: &'static str) -> Vec<&'static str> {
        if name == "a" {
            vec!["a", "a_bases", "a_load", "a_stages"]
        } else {
            vec!["b", "b_bases", "b_load", "b_stages"]
        }
    }

    fn write(&self, name: &'static str, out: &mut Attrs) {
        if let (MmaOperand::Shared { buffer, bases, load }, [name, all, how, stages]) =
            (self, Self::names(name).as_slice())
        {
            buffer.buffer.write(name, out);
            bases.write(all, out);
            load.write(how, out);
            buffer.stages.write(stages, out);
        }
    }

    fn read(name: &'static str, from: &mut Fields) -> Read<Self> {
        let [name, bases, load, stages] = Self::names(name)[..] else { return missing(name) };
        if !from.has(name) {
            return Ok(MmaOperand::Registers);
        }
        let buffer = BufferRef { buffer: usize::read(name, from)?, stages: Option::read(stages, from)? };
        if buffer.stages == Some(0) {
            return ill_typed(stages, "positive");
        }
        Ok(MmaOperand::Shared { buffer, bases: Vec::read(bases, from)?, load: Option::read(load, from)? })
    }
}

impl Field for Product {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["elem", "fast", "k", "paired", "precision"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        out.set("elem", Attr::Str(self.elems.map(DType::name).join(" ")));
        self.fast.write("fast", out);
        self.k.write("k", out);
        self.paired.write("paired", out);
        if self.precision != Precision::Ieee {
            out.set("precision", Attr::Str(self.precision.name().into()));
        }
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        let pair = |s: &str| -> Option<[DType; 2]> {
            s.split(' ').map(DType::parse).collect::<Option<Vec<_>>>()?.try_into().ok()
        };
        let elems = word("elem", from.take("elem"), pair, "two element types")?;
        let precision = match from.take("precision") {
            None => Precision::Ieee,
            some => word("precision", some, Precision::parse, "a precision")?,
        };
        let (fast, paired) = (bool::read("fast", from)?, bool::read("paired", from)?);
        Ok(Product { elems, k: u32::read("k", from)?, precision, fast, paired })
    }
}

impl Field for Caching {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["cache", "evict"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        let (cache, evict) = self.words();
        for (name, word) in [("cache", cache), ("evict", evict)] {
            if let Some(word) = word {
                out.set(name, Attr::Str(word.into()));
            }
        }
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        Ok(Caching::of_words(from.take("cache").as_ref(), from.take("evict").as_ref()))
    }
}

impl Field for Pipeline {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["barriers", "pipeline_stages", "pipeline_peers"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        self.barriers.write("barriers", out);
        self.stages.write("pipeline_stages", out);
        Some(self.peers).filter(|n| *n != 1).write("pipeline_peers", out);
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        Ok(Pipeline {
            barriers: usize::read("barriers", from)?,
            stages: u32::read("pipeline_stages", from)?,
            peers: Option::<u32>::read("pipeline_peers", from)?.unwrap_or(1),
        })
    }
}

impl Field for Vec<Pipeline> {
    fn names(name: &'static str) -> Vec<&'static str> {
        Pipeline::names(name)
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        self.iter().map(|p| p.barriers).collect::<Vec<usize>>().write("barriers", out);
        self.iter().map(|p| p.stages).collect::<Vec<u32>>().write("pipeline_stages", out);
        if self.iter().any(|p| p.peers != 1) {
            self.iter().map(|p| p.peers).collect::<Vec<u32>>().write("pipeline_peers", out);
        }
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        let barriers = Vec::<usize>::read("barriers", from)?;
        let stages = Vec::<u32>::read("pipeline_stages", from)?;
        let peers = if from.has("pipeline_peers") {
            Vec::<u32>::read("pipeline_peers", from)?
        } else {
            vec![1; barriers.len()]
        };
        for (name, list) in [("pipeline_stages", &stages), ("pipeline_peers", &peers)] {
            if list.len() != barriers.len() {
                return ill_typed(name, "a number for each pipeline");
            }
        }
        let all = barriers.into_iter().zip(stages).zip(peers);
        Ok(all.map(|((barriers, stages), peers)| Pipeline { barriers, stages, peers }).collect())
    }
}

impl Field for Option<Multicast> {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["multicast", "multicast_stride"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        if let Some(Multicast { blocks, stride }) = self {
            blocks.write("multicast", out);
            Some(*stride).filter(|n| *n != 1).write("multicast_stride", out);
        }
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        let Some(blocks) = Option::<u32>::read("multicast", from)? else { return Ok(None) };
        let stride = Option::<u32>::read("multicast_stride", from)?.unwrap_or(1);
        Ok(Some(Multicast { blocks, stride }))
    }
}

impl Field for TmaBox {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["shape", "span"]
    }

    fn write(&self, _: &'static str, out: &mut Attrs) {
        self.shape.to_vec().write("shape", out);
        self.span.write("span", out);
    }

    fn read(_: &'static str, from: &mut Fields) -> Read<Self> {
        let shape = Vec::<u32>::read("shape", from)?.try_into();
        Ok(TmaBox {
            shape: shape.or_else(|_| ill_typed("shape", "two extents"))?,
            span: u32::read("span", from)?,
        })
    }
}
