//! Where the binaries of a C source are: in arrays of its text, or in a file that the assembler includes.

use std::fmt::Write;

/// Bytes of a line of an array.
const LINE: usize = 24;
/// The alignment of a binary.
const ALIGNED: usize = 16;

/// The declarations of binaries, each with its number.
pub(super) fn arrays<'a>(binaries: impl Iterator<Item = (usize, &'a [u8])>) -> String {
    let mut out = String::new();
    for (number, bytes) in binaries {
        let _ = write!(out, "\nTKI_ALIGNED({ALIGNED}) static const unsigned char tki_binary_{number}[] = {{");
        for (i, byte) in bytes.iter().enumerate() {
            out.push_str(if i % LINE == 0 { "\n    " } else { "" });
            let _ = write!(out, "{byte},");
        }
        out.push_str("\n};\n");
    }
    out
}

/// The same declarations, for binaries in a file, and its bytes. Its name is that of the source and `.bin`: a relative path in
/// `.incbin` is from the folder of the compiler, as `__FILE__` is. `symbol` is unique in a program.
pub(super) fn included<'a>(
    symbol: &str,
    binaries: impl Iterator<Item = (usize, &'a [u8])>,
) -> (String, Vec<u8>) {
    let mut file: Vec<u8> = vec![];
    let mut names = String::new();
    for (number, bytes) in binaries {
        file.resize(file.len().next_multiple_of(ALIGNED), 0);
        let _ = writeln!(names, "#define tki_binary_{number} ({symbol} + {})", file.len());
        file.extend_from_slice(bytes);
    }
    let text = format!(
        r#"
/* The binaries: a file beside this one, of the same build. TK_BINARIES is its path, for a compiler that changes __FILE__. */
#if !defined(__GNUC__) || !defined(__ELF__)
#error "this source needs GCC or Clang, and ELF; without `--incbin` tk writes one for all compilers"
#endif
#ifndef TK_BINARIES
#define TK_BINARIES __FILE__ ".bin"
#endif
__asm__(".pushsection .rodata\n"
        ".balign {ALIGNED}\n"
        ".globl {symbol}\n"
        ".hidden {symbol}\n"
        ".type {symbol}, %object\n"
        "{symbol}:\n"
        ".incbin \"" TK_BINARIES "\"\n"
        ".size {symbol}, . - {symbol}\n"
        ".popsection\n");
extern const unsigned char {symbol}[];
{names}"#
    );
    (text, file)
}
