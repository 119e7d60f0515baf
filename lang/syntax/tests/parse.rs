//! The parser through its public door.
use tk_syntax::{FileId, parse};
#[test]
fn samples() {
    for name in ["samples", "attention", "all"] {
        let text = std::fs::read_to_string(format!("tests/data/{name}.tk")).unwrap();
        let (file, diags) = parse(FileId(0), &text);
        for d in &diags {
            let s = d.primary.span;
            println!("{name}: {} {} at {:?}", d.code, d.message, &text[s.start as usize - 20..(s.end as usize + 10)]); let _ = (&text[s.start as usize..(s.end as usize)]);
        }
        assert!(diags.is_empty());
        println!("{}", file.items.len());
    }
}
