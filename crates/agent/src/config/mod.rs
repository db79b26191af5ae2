//! The daemon's configuration: a TOML file for one agent.

mod agents;
mod assist;
mod documentation;
mod fields;
mod key;
mod mobile;
pub(crate) mod reference;
mod service;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use careof_base::{Instant, RandomStream};
use careof_document::decode::{Field, Reader};
use careof_document::error::{DocumentErrors, Origin, Problems};
use careof_document::section::Section;
use careof_document::tree::{self, Node, Table, Value};
use careof_mobility::v4::{ForeignAgent, HomeAgent, MobileNode};

use crate::{Role, Setup};

use reference::{DIALECT, FOREIGN, HOME, MOBILE};

pub use documentation::documentation_markdown;
pub(crate) use service::RUN_DIRECTORY;
pub use service::{Format, Level, Service};

/// What a configuration file says.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Which agent, with everything it needs.
    pub setup: Setup,
    /// How the daemon around it serves.
    pub service: Service,
}

/// Where a configuration comes from, for those who look for what it names.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    /// The file as the caller named it.
    file: &'a str,
    /// The directory that relative paths start from.
    directory: &'a Path,
    /// The mode of the file, if it lets everybody read it.
    readable_by_everybody: Option<u32>,
}

impl Source<'_> {
    /// The name of the agent: that of the file without its ending.
    fn name(&self) -> String {
        let stem = Path::new(self.file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| "agent".to_owned())
    }
}

impl Configuration {
    /// Reads the configuration in the file `path`, and the keys that it names.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn load(path: &Path) -> Result<Self, DocumentErrors> {
        let text = careof_document::file::read(path, &DIALECT)?;
        let mode = fs::metadata(path).map_or(0, |about| about.mode() & 0o7777);
        let mode = (mode & 0o004 != 0).then_some(mode);
        Self::read(&path.display().to_string(), mode, &text)
    }

    /// Reads the configuration in `text`, and the keys that it names. Messages call the text `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, DocumentErrors> {
        Self::read(file, None, text)
    }

    fn read(file: &str, readable_by_everybody: Option<u32>, text: &str) -> Result<Self, DocumentErrors> {
        let directory = Path::new(file).parent().unwrap_or_else(|| Path::new(""));
        let source = Source { file, directory, readable_by_everybody };
        let mut problems = Problems::new(&DIALECT);
        let read =
            tree::parse(text, &mut problems).and_then(|root| configuration(&root, source, &mut problems));
        if read.is_none() && problems.count() == 0 {
            // For the problem that was forgotten.
            let expected = "this is an error in careof; please report it with the file";
            problems.add((Origin::File(0), ""), "a configuration that could not be read", expected, None);
        }
        problems.finish(file, text, &[])?;
        read.ok_or_else(|| DocumentErrors(Vec::new()))
    }

    /// The name of the file where a home agent keeps its bindings; `None` for other agents.
    #[must_use]
    pub fn store(&self) -> Option<PathBuf> {
        matches!(self.setup, Setup::Home(_)).then(|| self.service.store.clone())
    }
}

fn configuration(root: &Table, source: Source<'_>, problems: &mut Problems) -> Option<Configuration> {
    let role = role(root, problems)?;
    let section: &'static Section = match role {
        Role::Home => &HOME,
        Role::Foreign => &FOREIGN,
        Role::Mobile => &MOBILE,
        // Of Mobile IPv6, which has no configuration file yet.
        Role::Correspondent => return None,
    };
    let reader = Reader::new(root, section, (Origin::File(0), ""), problems);
    let service = service::service(&reader, source, problems);
    let setup = match role {
        Role::Home => agents::home(&reader, source, problems).map(Setup::Home),
        Role::Foreign => agents::foreign(&reader, source, problems).map(Setup::Foreign),
        Role::Mobile => mobile::mobile(&reader, source, problems).map(Setup::Mobile),
        Role::Correspondent => None,
    };
    let (setup, service) = (setup?, service?);
    try_out(&setup, problems);
    Some(Configuration { setup, service })
}

fn role(root: &Table, problems: &mut Problems) -> Option<Role> {
    const ROLES: [(&str, Role); 3] =
        [("home", Role::Home), ("foreign", Role::Foreign), ("mobile", Role::Mobile)];
    let Some(node) = root.get("role") else {
        let expected =
            "a configuration says which agent it is for: role = \"home\", \"foreign\" or \"mobile\"";
        // Who wrote [role] or forgot the key gets no list of keys that would be right in some role.
        problems.add((Origin::File(0), "role"), "nothing", expected, None);
        return None;
    };
    let field = Field { node, path: "role".to_owned() };
    // As people call them.
    if let Node { value: Value::Text(text), .. } = node {
        let meant = match text.as_str() {
            "home-agent" | "home agent" | "ha" => Some("home"),
            "foreign-agent" | "foreign agent" | "fa" => Some("foreign"),
            "mobile-node" | "mobile node" | "mn" => Some("mobile"),
            _ => None,
        };
        if let Some(meant) = meant {
            let expected = "known are \"home\", \"foreign\" and \"mobile\"";
            field.wrong(expected, Some(format!("write \"{meant}\"")), problems);
            return None;
        }
    }
    field.choice(&ROLES, &[], problems)
}

/// What the agents themselves say about their configuration, for what was not found above.
fn try_out(setup: &Setup, problems: &mut Problems) {
    let random = RandomStream::new(0, 0, "check");
    let fits = crate::carrier::check(setup);
    let fits = fits.and_then(|()| match setup {
        Setup::Home(setup) => Ok(HomeAgent::new(Instant::ZERO, setup.config.clone(), random).map(drop)?),
        Setup::Foreign(setup) => {
            Ok(ForeignAgent::new(Instant::ZERO, setup.config.clone(), random).map(drop)?)
        }
        Setup::Mobile(setup) => Ok(MobileNode::new(Instant::ZERO, setup.config.clone(), random).map(drop)?),
    });
    if let Err(error) = fits {
        let hint = error.remedy().map(str::to_owned);
        problems.add((Origin::File(0), ""), "a configuration that no agent takes", error.to_string(), hint);
    }
}

#[cfg(test)]
mod tests;
