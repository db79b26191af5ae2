//! `docs/trace.md` says what the code says.

use std::{env, fs, path::Path};

const MARK: &str =
    "<!-- The rest is generated: UPDATE_DOCS=1 cargo test -p careof-trace --test all docs -->\n";

#[test]
fn the_documented_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.md");
    let text = fs::read_to_string(&path).unwrap();
    let (prose, _) = text.split_once(MARK).expect("docs/trace.md has lost its mark");
    let current = format!("{prose}{MARK}\n{}", careof_trace::schema_markdown());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &current).unwrap();
    } else {
        assert!(text == current, "docs/trace.md is out of date; run it again with UPDATE_DOCS=1");
    }
}
