//! The form of the manifest: what there is, what it needs, how it is launched.
//!
//! The same form is written as JSON to a file of its own and as the first section of a bundle. Names keep their
//! meaning within a format; a new one is added only where readers may leave it out.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::expr::Expr;

/// All kernels that one source file ships.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The number of the format, [`crate::FORMAT`].
    pub format: u32,
    /// The versions of the compiler that made it.
    pub versions: Versions,
    /// The kernels in the order of the source.
    pub kernels: Vec<Kernel>,
}

/// The versions of the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Of `tk`.
    pub tk: String,
    /// Of LLVM.
    pub llvm: String,
    /// Of the assembler, `ptxas`, and where binaries are linked of the linker: `lld 19.1.7`; both, separated by a comma; empty
    /// if no binary was made.
    pub ptxas: String,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its doc comment.
    pub doc: String,
    /// Its arguments, in the order of a launch.
    pub params: Vec<Param>,
    /// Compile-time parameters that a launch gives by name, because nothing else determines them.
    pub choices: Vec<Choice>,
    /// The compiled variants. A launch takes the first whose guard holds on a device that runs its target.
    pub variants: Vec<Variant>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Param {
    /// Its name: `x`, `state.m`.
    pub name: String,
    /// Its kind.
    pub kind: ParamKind,
    /// Whether it may be absent.
    pub optional: bool,
    /// The default of a number, in the syntax of the language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The tensors that its elements lead to, if they are addresses in device memory: their element type is then
    /// `u64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
}

/// An argument whose elements are addresses in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// The number of addresses to follow to an element: 1 for `view[*T, 1]`, 2 for `view[**T, 1]`.
    pub depth: u32,
    /// Whether the kernel may write to the elements.
    pub mutable: bool,
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParamKind {
    /// A tensor with extents and strides.
    View {
        /// Its rank.
        rank: u32,
        /// Whether the kernel may write to it.
        mutable: bool,
        /// Whether extents may reach 2^31.
        wide: bool,
    },
    /// The address of elements.
    Pointer {
        /// Whether the kernel may write to them.
        mutable: bool,
    },
    /// A number or bool.
    Number,
}

/// A compile-time parameter that is given by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// The shipped values, in the syntax of the language.
    pub values: Vec<String>,
}

/// One compiled form of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Its target: `sm_90a`.
    pub target: String,
    /// The values of the compile-time parameters, and of launch options that a member of a `tune` list chooses.
    pub values: Vec<Value>,
    /// The element type of each argument, such as `f16`; none for an optional one that is absent.
    pub dtypes: Vec<Option<String>>,
    /// The element type that the addresses in each argument lead to, such as `f16`; none for other arguments. Empty without
    /// tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Option<String>>,
    /// The values given by name, in the order of [`Kernel::choices`].
    pub given: Vec<Given>,
    /// The conditions for this variant; all must hold.
    pub guard: Vec<Guard>,
    /// The requirements of a launch, as source text.
    pub require: Vec<Requirement>,
    /// The programs on each axis.
    pub grid: [Expr; 3],
    /// The function in the binary.
    pub symbol: String,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a program, next to each other on axis 0.
    pub blocks_per_program: u32,
    /// Dynamic shared memory of a block, in bytes, requested by the launch.
    pub shared_bytes: u32,
    /// Whether all programs must run at the same time.
    pub cooperative: bool,
    /// The arguments of the function, in order. Three numbers of 32 bits follow, the programs on each axis, and then,
    /// with [`Variant::control`], an address.
    pub passed: Vec<Machine>,
    /// The tensor maps, which are the very last parameters, 128 bytes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<TensorMap>,
    /// Workspaces, which [`Machine::Scratch`] names.
    pub scratch: Vec<Scratch>,
    /// The bytes of zeroed memory that the kernel needs for messages and grid barriers; 0 if it has neither.
    pub control: u32,
    /// Its messages at run time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of the binary, in bytes.
    pub static_shared_bytes: u32,
    /// Local memory of a thread, in bytes.
    pub stack_bytes: u32,
    /// Blocks that one multiprocessor of the target runs at once.
    pub blocks_per_sm: u32,
    /// Bytes of spill stores.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
    /// Where the fastest instructions do not apply, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The machine code.
    pub binary: Blob,
    /// The portable tile IR from which it was compiled.
    pub tile: Blob,
    /// Its intermediate forms, a [`crate::Listing`] as JSON, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<Blob>,
}

/// The value of a compile-time parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// Its value, in the syntax of the language.
    pub value: String,
}

/// The value of a choice in a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    /// The index in [`Choice::values`].
    pub value: u32,
    /// Whether it is the default.
    pub default: bool,
}

/// A condition on the arguments under which a variant is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guard {
    /// The condition.
    pub condition: Expr,
    /// The compile-time parameter whose value it determines; none if it only enables optimizations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<String>,
}

/// A condition that a launch must meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// The condition.
    pub condition: Expr,
    /// Its source text.
    pub text: String,
}

/// A value that is passed to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// The address of a tensor: 64 bits.
    Address(u32),
    /// A number of its type.
    Number(u32),
    /// An extent in this many bits: argument, axis, bits.
    Extent(u32, u32, u32),
    /// A stride in elements, 64 bits: argument, axis.
    Stride(u32, u32),
    /// The address of a workspace: 64 bits.
    Scratch(u32),
}

/// A tensor map for TMA, as `cuTensorMapEncodeTiled` encodes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorMap {
    /// The number of its address in [`Variant::passed`].
    pub address: u32,
    /// Two to five dimensions, the fastest first. A box has a line along the first and [`TensorMap::lines`] of them along the
    /// second, and is 1 wide along the others.
    pub dimensions: Vec<Dimension>,
    /// Its element type, such as `f16`.
    pub dtype: String,
    /// Lines of a box.
    pub lines: u32,
    /// Bytes of a line, 32, 64 or 128, which is also the span of the swizzle.
    pub span: u32,
}

/// A dimension of a [`TensorMap`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// Its length.
    pub extent: Word,
    /// Its stride in elements; 1 in the first dimension.
    pub stride: Word,
    /// The map begins one extent of this dimension before the address.
    pub before: bool,
}

/// A number of a [`TensorMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// This one of [`Variant::passed`].
    Passed(u32),
    /// A constant.
    Value(i64),
}

/// Memory for the duration of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scratch {
    /// The number of elements.
    pub count: Expr,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Whether it is zero before each launch.
    pub zeroed: bool,
    /// Whether the kernel leaves it zero, so that later launches in the same stream can use it again as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}

/// A message of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The text, with `{}` for each value of a print.
    pub text: String,
    /// Its kind.
    pub kind: MessageKind,
    /// Its source position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// An optimization that does not apply to a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// What does not apply, and why.
    pub text: String,
    /// Its source position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A position in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Printed text with these values.
    Print(Vec<MessageForm>),
    /// An assert over a tile of this shape.
    Assert(Vec<u32>),
}

/// The form of a printed value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageForm {
    /// Numbers of a type in a shape.
    Numbers {
        /// Their type.
        dtype: String,
        /// Their shape.
        shape: Vec<u32>,
    },
    /// Addresses in a shape.
    Pointers {
        /// Bytes of an element.
        bytes: u32,
        /// Their shape.
        shape: Vec<u32>,
    },
    /// A view.
    View {
        /// Bytes of an element.
        bytes: u32,
        /// Its rank.
        rank: u32,
    },
}

/// Bytes stored elsewhere: in a section of the same bundle, or in a file next to the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blob {
    /// The number of the section in a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<u32>,
    /// The name of the file, if it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of bytes.
    pub bytes: u64,
    /// Their BLAKE3 hash, in hexadecimal.
    pub blake3: String,
}

impl Blob {
    /// Of bytes whose place is not known yet.
    pub fn of(bytes: &[u8]) -> Blob {
        let blake3 = blake3::hash(bytes).to_hex().to_string();
        Blob { section: None, file: None, bytes: bytes.len() as u64, blake3 }
    }
}

impl Manifest {
    /// As JSON, each number and name on its own line.
    pub fn to_json(&self) -> String {
        // Text, numbers and lists can always be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The kernel of a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

impl Variant {
    /// Whether a launcher may keep workspaces for later launches.
    pub fn keeps_workspaces(&self) -> bool {
        self.scratch.iter().any(|s| s.restored)
    }

    /// All shared memory of a block, in bytes.
    pub fn shared(&self) -> u64 {
        u64::from(self.shared_bytes) + u64::from(self.static_shared_bytes)
    }

    /// Bytes of registers that go to memory and back.
    pub fn spills(&self) -> u64 {
        u64::from(self.spill_store_bytes) + u64::from(self.spill_load_bytes)
    }

    /// `T=f16, BLOCK=1024`
    pub fn label(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|v| format!("{}={}", v.name, v.value)).collect();
        values.join(", ")
    }
}

/// The JSON Schema of the manifest.
pub fn schema() -> Schema {
    schemars::schema_for!(Manifest)
}
