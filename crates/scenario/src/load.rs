//! From a file or a text to a [`Scenario`].

use std::io::Read as _;
use std::path::Path;

use crate::error::Problems;
use crate::model::Scenario;
use crate::reference::DIALECT;
use crate::trace::{NamedIn, ReadFile};
use crate::{ScenarioError, ScenarioErrors, resolve, tree};

impl Scenario {
    /// Reads the scenario in the file `path`, with `overrides` (`key=value`) laid over it in their order.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let file = path.display().to_string();
        let text = careof_document::file::read(path, &DIALECT)?;
        Self::parse_beside(&file, &text, overrides)
    }

    /// Reads the scenario in `text`, with `overrides` (`key=value`) laid over it in their order. Messages call the
    /// text `file`. It can name no other files.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(file: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let none = |_: &str, _| Err("no file can be read here".to_owned());
        Self::parse_with(file, text, overrides, &none)
    }

    /// As [`Scenario::parse`], where `file` is the path of the text: files that it names are read from that folder, and
    /// files that overrides name from the working directory.
    ///
    /// # Errors
    /// Everything that is wrong with it or with them, in the order of the text.
    pub fn parse_beside(file: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let beside = |name: &str, named| match named {
            NamedIn::Text => trace_text(&folder.join(name)),
            NamedIn::Override => trace_text(Path::new(name)),
        };
        Self::parse_with(file, text, overrides, &beside)
    }

    /// As [`Scenario::parse`], with what hands out the files that the text and the overrides name.
    ///
    /// # Errors
    /// Everything that is wrong with it or with them, in the order of the text.
    pub fn parse_with(
        file: &str,
        text: &str,
        overrides: &[String],
        files: &ReadFile<'_>,
    ) -> Result<Self, ScenarioErrors> {
        let mut problems = Problems::new(&DIALECT);
        let mut scenario = None;
        if let Some(mut root) = tree::parse(text, &mut problems) {
            for (index, text) in overrides.iter().enumerate() {
                tree::lay_over(&mut root, index, text, &mut problems);
            }
            let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
            scenario = resolve::scenario(&root, &stem, files, &mut problems);
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
                also: Vec::new(),
            }])
        })
    }
}

/// Larger files are no traces; reading one by mistake should not fill the memory.
const LARGEST_TRACE: u64 = 64 << 20;

fn trace_text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("it cannot be read: {error}"),
    };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err("a trace is a file".to_owned());
    }
    if about.len() > LARGEST_TRACE {
        return Err(format!("a trace has at most 64 MiB, and this file {} bytes", about.len()));
    }
    // Files of the kernel have no length, and reading some of them takes for ever.
    if about.len() == 0 {
        return Ok(String::new());
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // It may be growing.
    file.take(LARGEST_TRACE).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
