//! Chooses the names in the header: valid in C and C++, each unique in a file.
//!
//! All other names of the source file begin with `tki_`, and no name here does.

use std::collections::BTreeSet;

use tk_bundle::{Choice, Kernel};

/// Keywords of C and C++, and macros in lower case; those that are keywords of the language too are left out.
const TAKEN: &str = "\
    alignas alignof and and_eq asm assert atomic_cancel auto bitand bitor bool break case catch char class compl complex \
    concept const consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double \
    dynamic_cast else enum errno explicit export extern false final float for friend goto i386 if imaginary import inline \
    int linux long main module mutable namespace near far new noexcept noreturn not not_eq nullptr operator or or_eq override \
    private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert \
    static_cast stderr stdin stdout stream struct switch synchronized template this thread_local throw true try typedef \
    typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile while xor xor_eq";

/// The names that the header itself declares.
const OWN: &str = "tk_status tk_dtype tk_pointer tk_view1 tk_view2 tk_view3 tk_view4 tk_view5";

/// The names of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The function.
    pub function: String,
    /// The arguments.
    pub params: Vec<String>,
    /// The compile-time parameters that are given.
    pub choices: Vec<ChoiceNames>,
}

/// The names of a compile-time parameter that is given.
#[derive(Clone, Debug, Default)]
pub struct ChoiceNames {
    /// The argument.
    pub param: String,
    /// The enum.
    pub ty: String,
    /// The enumerator of the kernel's default, if one was built.
    pub default: Option<String>,
    /// The enumerators of the values.
    pub values: Vec<String>,
}

/// A valid C name, of ASCII letters, digits and `_`.
pub fn plain(name: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let out: String = name.chars().map(one).collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) || out.is_empty() { format!("n{out}") } else { out }
}

/// The form of a file name inside of names: two files never share it.
pub fn stem(name: &str) -> String {
    let own = plain(name);
    if own == name {
        return own;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{own}_{}", hash.get(..8).unwrap_or_default())
}

/// The name of an argument. Macros are in capitals, types end in `_t`, and names with a leading `_` are the library's.
fn argument(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut own = plain(name.trim_start_matches('_'));
    let capitals = own.len() > 2 && !own.contains(|c: char| c.is_ascii_lowercase());
    if capitals
        || own.ends_with("_t")
        || own.to_lowercase().starts_with("tk")
        || TAKEN.split(' ').any(|w| w == own)
    {
        own.push('_');
    }
    unique(own, taken)
}

/// A unique name, with a number appended if necessary.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let mut own = name.clone();
    let mut number = 2;
    while !taken.insert(own.clone()) {
        own = format!("{name}_{number}");
        number += 1;
    }
    own
}

/// The names of all kernels of a file, and that of the function for messages. Functions begin with `prefix`.
pub fn names(kernels: &[Kernel], stem: &str, prefix: &str) -> (Vec<Names>, String) {
    let mut taken: BTreeSet<String> = OWN.split(' ').map(str::to_string).collect();
    let error = unique(format!("{prefix}_{stem}_error"), &mut taken);
    let functions: Vec<String> =
        kernels.iter().map(|k| unique(format!("{prefix}_{}", plain(&k.name)), &mut taken)).collect();
    let of = |(k, function): (&Kernel, String)| {
        let mut own = BTreeSet::new();
        let params = k.params.iter().map(|p| argument(&p.name, &mut own)).collect();
        let choices = k.choices.iter().enumerate();
        let choices = choices.map(|(i, c)| choice(k, i, c, &function, &mut own, &mut taken)).collect();
        Names { function, params, choices }
    };
    (kernels.iter().zip(functions).map(of).collect(), error)
}

fn choice(
    k: &Kernel,
    i: usize,
    c: &Choice,
    function: &str,
    own: &mut BTreeSet<String>,
    taken: &mut BTreeSet<String>,
) -> ChoiceNames {
    let ty = unique(format!("{function}_{}", plain(&c.name)), taken);
    let upper = ty.to_uppercase();
    let value = |v: &str| {
        let minus = v.replace('-', "MINUS_");
        let one = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        format!("{upper}_{}", minus.chars().map(one).collect::<String>())
    };
    let has_default = k.variants.iter().any(|v| v.given.get(i).is_some_and(|g| g.default));
    let default = has_default.then(|| unique(format!("{upper}_DEFAULT"), taken));
    let values = c.values.iter().map(|v| unique(value(v), taken)).collect();
    ChoiceNames { param: argument(&c.name.to_lowercase(), own), ty, default, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_c_takes_and_each_once() {
        let mut taken = BTreeSet::new();
        let mut of = |name: &str| argument(name, &mut taken);
        let names = [
            "x", "int", "int_", "TK_OK", "EOF", "N", "uint64_t", "__LINE__", "_Bool", "ü", "ö", "state.m",
            "7up", "or",
        ];
        let found: Vec<String> = names.iter().map(|n| of(n)).collect();
        let expected = [
            "x",
            "int_",
            "int__2",
            "TK_OK_",
            "EOF_",
            "N",
            "uint64_t_",
            "LINE___",
            "Bool",
            "_",
            "__2",
            "state_m",
            "n7up",
            "or_",
        ];
        assert_eq!(found, expected);
        assert_eq!((stem("a_b"), stem("a-b") == stem("a b")), ("a_b".to_string(), false));
    }
}
