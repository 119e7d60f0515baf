//! The disassembly of a binary, where NVIDIA's disassembler is there.

use tk_bundle::View;

/// The instructions of a cubin with the lines of the source; `files` are the names of the source files. `None` without the
/// disassembler, or where it fails.
#[cfg(feature = "llvm")]
pub fn sass(cubin: &[u8], files: &[String]) -> Option<View> {
    let text = tk_driver::disassemble(cubin, &tk_driver::Environment::of_process(None))?;
    Some(lines(&text, files))
}

/// Without the compiler the path of the disassembler is unknown.
#[cfg(not(feature = "llvm"))]
pub fn sass(_cubin: &[u8], _files: &[String]) -> Option<View> {
    None
}

/// The instructions of a disassembly; lines such as `//## File "a.tk", line 3` say where the next ones come from.
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "nobody disassembles"))]
fn lines(text: &str, files: &[String]) -> View {
    let (mut at, mut out) = (None, vec![]);
    for line in text.lines() {
        let start = line.trim_start();
        if let Some(place) = start.strip_prefix("//## File ") {
            let name = place.split('"').nth(1).unwrap_or_default();
            let name = name.strip_prefix('/').unwrap_or(name);
            let file = files.iter().position(|f| f == name).map(|i| i as u32);
            let number = place.split_once(", line ").and_then(|(_, n)| n.split(' ').next()?.parse().ok());
            at = file.zip(number);
        } else if start.starts_with("/*") || start.starts_with(".L_") {
            let text = start.split("/* 0x").next().unwrap_or(start).trim_end().to_string();
            out.push(tk_bundle::Line { text, at: at.filter(|_| start.starts_with("/*")) });
        }
    }
    View { name: "SASS".to_string(), lines: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_place_in_front_of_them() {
        let text = "\t//## File \"a.tk\", line 3\n        /*0000*/                   EXIT ;\n.L_x_1:\n";
        let view = lines(text, &["a.tk".into()]);
        assert_eq!(
            view.lines.first().map(|l| (l.text.trim(), l.at)),
            Some(("/*0000*/                   EXIT ;", Some((0, 3))))
        );
        assert_eq!(view.lines.len(), 2);
    }
}
