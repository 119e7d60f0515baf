//! Try.
use std::io::Read;
fn main() {
    let mut s = String::new();
    std::io::stdin().read_to_string(&mut s).unwrap();
    for part in s.split("====\n") {
        let mut map = tk_syntax::SourceMap::default();
        let id = map.add("a.tk", part);
        let (f, d) = tk_syntax::parse(id, part);
        println!("---------- {} diags", d.len());
        for d in &d { print!("{}", tk_syntax::render(&map, d, false)); }
        if std::env::args().nth(1).is_some() { print!("{}", tk_syntax::dump(&f)); }
    }
}
