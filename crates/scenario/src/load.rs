//! From a file or a text to a [`Scenario`].

use std::path::Path;

use crate::error::Problems;
use crate::model::Scenario;
use crate::reference::DIALECT;
use crate::{ScenarioError, ScenarioErrors, resolve, tree};

impl Scenario {
    /// Reads the scenario in the file `path`, with `overrides` (`key=value`) laid over it in their order.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let file = path.display().to_string();
        let text = careof_document::file::read(path, &DIALECT)?;
        Self::parse(&file, &text, overrides)
    }

    /// Reads the scenario in `text`, with `overrides` (`key=value`) laid over it in their order. Messages call the
    /// text `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(file: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioErrors> {
        let mut problems = Problems::new(&DIALECT);
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
