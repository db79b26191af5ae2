//! From a file or a text to a [`Scenario`].

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Problems, ScenarioError, ScenarioErrors};
use crate::model::Scenario;
use crate::{resolve, tree};

/// Larger files are no scenarios; reading one by mistake should not fill the memory.
const LARGEST_FILE: u64 = 4 << 20;

impl Scenario {
    /// Reads the scenario in the file `path`, with `overrides` (`key=value`) laid over it in their order.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let file = path.display().to_string();
        let text = read(path).map_err(|(found, expected, hint)| {
            ScenarioErrors(vec![ScenarioError {
                file: file.clone(),
                line: None,
                column: None,
                override_text: None,
                key: String::new(),
                found,
                expected: expected.to_owned(),
                hint: hint.map(str::to_owned),
            }])
        })?;
        Self::parse(&file, &text, overrides)
    }

    /// Reads the scenario in `text`, with `overrides` (`key=value`) laid over it in their order. Messages call the
    /// text `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(file: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let mut problems = Problems::default();
        let mut scenario = None;
        if let Some(mut root) = tree::parse(text, &mut problems) {
            for (index, text) in overrides.iter().enumerate() {
                tree::lay_over(&mut root, index, text, &mut problems);
            }
            let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
            scenario = resolve::scenario(&root, &stem, &mut problems);
        }
        problems.finish(file, text, overrides)?;
        // Without a scenario there was a problem; this is for the one that was forgotten.
        scenario.ok_or_else(|| {
            ScenarioErrors(vec![ScenarioError {
                file: file.to_owned(),
                line: None,
                column: None,
                override_text: None,
                key: String::new(),
                found: "a scenario that could not be read".to_owned(),
                expected: "this is an error in careof; please report it with the file".to_owned(),
                hint: None,
            }])
        })
    }
}

/// The content of the file, or what is found instead, what would be right, and a hint.
fn read(path: &Path) -> Result<String, (String, &'static str, Option<&'static str>)> {
    const EXPECTED: &str = "it must be a scenario file";
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            ("nothing".to_owned(), "there is no such file", Some("ready scenarios are in scenarios/"))
        }
        ErrorKind::PermissionDenied => ("no permission to read it".to_owned(), EXPECTED, None),
        _ => (error.to_string(), EXPECTED, None),
    };
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.is_dir() {
        return Err(("a directory".to_owned(), EXPECTED, Some("name one of the .toml files in it")));
    }
    if about.len() > LARGEST_FILE {
        return Err((format!("a file of {} bytes", about.len()), "a scenario has at most 4 MiB", None));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        (format!("bytes that are not UTF-8, in line {line}"), "a scenario is UTF-8 text", None)
    })
}
