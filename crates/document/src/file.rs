//! The file of a document.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{DocumentError, DocumentErrors};
use crate::section::Dialect;

/// The text of the file `path`, which should be a document of `dialect`.
///
/// # Errors
/// Why it cannot be read, as an error of that document.
pub fn read(path: &Path, dialect: &Dialect) -> Result<String, DocumentErrors> {
    contents(path, dialect).map_err(|(found, expected, hint)| {
        DocumentErrors(vec![DocumentError {
            file: path.display().to_string(),
            line: None,
            column: None,
            override_text: None,
            key: String::new(),
            found,
            expected,
            hint: hint.map(str::to_owned),
            also: Vec::new(),
        }])
    })
}

/// The content of the file, or what is found instead, what would be right, and a hint.
fn contents(path: &Path, dialect: &Dialect) -> Result<String, (String, String, Option<&'static str>)> {
    let noun = dialect.noun;
    let expected = || format!("it must be {noun} file");
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            ("nothing".to_owned(), "there is no such file".to_owned(), Some(dialect.examples))
        }
        ErrorKind::PermissionDenied => ("no permission to read it".to_owned(), expected(), None),
        _ => (error.to_string(), expected(), None),
    };
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.is_dir() {
        return Err(("a directory".to_owned(), expected(), Some("name one of the .toml files in it")));
    }
    let largest = dialect.largest_mib;
    if about.len() > largest << 20 {
        let expected = format!("{noun} has at most {largest} MiB");
        return Err((format!("a file of {} bytes", about.len()), expected, None));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        (format!("bytes that are not UTF-8, in line {line}"), format!("{noun} is UTF-8 text"), None)
    })
}
