//! What the layout looks like: texts as somebody may write them, and what becomes of them.

use tk_fmt::format;

/// Formats, and checks that the result stays.
fn formatted(text: &str) -> String {
    let once = format(text).expect("the text parses");
    assert_eq!(format(&once).as_deref(), Ok(once.as_str()), "not stable:\n{text}");
    once
}

#[test]
fn blanks_and_line_breaks() {
    let text = "fn f( x:i32 )->i32{let y=x*2 ;\n\n\n\ny+1}\n";
    assert_eq!(formatted(text), "fn f(x: i32) -> i32 {\n    let y = x * 2;\n\n    y + 1\n}\n");
}
