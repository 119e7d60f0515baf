//! Generates the parse tables from `src/grammar.lalrpop`.

#![forbid(unsafe_code)]

fn main() {
    let done =
        lalrpop::Configuration::new().use_cargo_dir_conventions().emit_rerun_directives(true).process();
    if let Err(e) = done {
        eprintln!("src/grammar.lalrpop: {e}");
        std::process::exit(1);
    }
}
