//! The daemon's configuration: a TOML file for one agent.

mod agents;
mod assist;
mod cluster;
mod documentation;
mod fields;
mod hierarchical;
mod ipv6;
mod key;
mod mobile;
mod multipath;
pub(crate) mod reference;
mod service;

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use careof_base::{Instant, RandomStream};
use careof_document::decode::{Field, Reader};
use careof_document::error::{DocumentErrors, Origin, Problems};
use careof_document::section::Section;
use careof_document::tree::{self, Node, Table, Value};
use careof_lab::IpVersion;
use careof_mobility::{v4, v6};

use crate::{AnySetup, Ipv6Setup, Role, Setup};

use reference::{ANCHOR_POINT, CORRESPONDENT, DIALECT, FOREIGN, HOME, HOME6, MOBILE, MOBILE6, RELAY};

pub use documentation::documentation_markdown;
pub(crate) use service::RUN_DIRECTORY;
pub use service::{Format, Level, Service};

/// What a configuration file says.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Which agent of which version of IP, with everything it needs.
    pub setup: AnySetup,
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

    /// The name of the file where a home agent or mobility anchor point keeps its bindings; `None` for other agents.
    #[must_use]
    pub fn store(&self) -> Option<PathBuf> {
        matches!(self.setup.role(), Role::Home | Role::AnchorPoint).then(|| self.service.store.clone())
    }
}

fn configuration(root: &Table, source: Source<'_>, problems: &mut Problems) -> Option<Configuration> {
    let role = role(root, problems)?;
    let version = version(root, role, problems)?;
    let section: &'static Section = match (role, version) {
        (Role::Home, IpVersion::V4) => &HOME,
        (Role::Home, IpVersion::V6) => &HOME6,
        (Role::Foreign, _) => &FOREIGN,
        (Role::Mobile, IpVersion::V4) => &MOBILE,
        (Role::Mobile, IpVersion::V6) => &MOBILE6,
        (Role::Correspondent, _) => &CORRESPONDENT,
        (Role::AnchorPoint, _) => &ANCHOR_POINT,
        (Role::Relay, _) => &RELAY,
        // No file can name it.
        (Role::AccessRouter, _) => return None,
    };
    let reader = Reader::new(root, section, (Origin::File(0), ""), problems);
    let service = service::service(&reader, source, problems);
    let setup = match (role, version) {
        (Role::Home, IpVersion::V4) => agents::home(&reader, source, problems).map(Setup::Home)?.into(),
        (Role::Foreign, _) => agents::foreign(&reader, source, problems).map(Setup::Foreign)?.into(),
        (Role::Mobile, IpVersion::V4) => mobile::mobile(&reader, source, problems).map(Setup::Mobile)?.into(),
        (Role::Home, IpVersion::V6) => ipv6::home(&reader, source, problems).map(Ipv6Setup::Home)?.into(),
        (Role::Mobile, IpVersion::V6) => ipv6::mobile(&reader, source, problems)?.into(),
        (Role::AnchorPoint, _) => {
            hierarchical::anchor_point(&reader, source, problems).map(Ipv6Setup::AnchorPoint)?.into()
        }
        (Role::Relay, _) => cluster::relay(&reader, source, problems)?.into(),
        (Role::AccessRouter, _) => return None,
        (Role::Correspondent, _) => {
            ipv6::correspondent(&reader, problems).map(Ipv6Setup::Correspondent)?.into()
        }
    };
    let service = service?;
    try_out(&setup, problems);
    Some(Configuration { setup, service })
}

/// Of which version of IP the agent is: that of its addresses, the first of these keys that tells.
fn version(root: &Table, role: Role, problems: &mut Problems) -> Option<IpVersion> {
    let telling: &[&str] = match role {
        Role::Home => &["address", "home_network"],
        Role::Foreign => &["care_of", "address"],
        Role::Mobile => &["home_address", "home_network", "home_agent"],
        Role::Relay => return Some(IpVersion::V4),
        Role::Correspondent | Role::AnchorPoint | Role::AccessRouter => return Some(IpVersion::V6),
    };
    let told = telling.iter().find_map(|key| {
        let node = root.get(key)?;
        let Value::Text(text) = &node.value else { return None };
        let address = text.split_once('/').map_or(text.as_str(), |(address, _)| address);
        let version = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => IpVersion::V4,
            Ok(IpAddr::V6(_)) => IpVersion::V6,
            // One that is misspelt.
            Err(_) if address.contains("::") => IpVersion::V6,
            Err(_) => return None,
        };
        Some((key, node, version))
    });
    match told {
        Some((key, node, IpVersion::V6)) if role == Role::Foreign => {
            let field = Field { node, path: (*key).to_owned() };
            let hint = "with Mobile IPv6 mobile nodes have care-of addresses of their own: any router that advertises itself will do";
            field.wrong("foreign agents are of Mobile IPv4", Some(hint.to_owned()), problems);
            None
        }
        told => Some(told.map_or(IpVersion::V4, |(_, _, version)| version)),
    }
}

fn role(root: &Table, problems: &mut Problems) -> Option<Role> {
    const ROLES: [(&str, Role); 6] = [
        ("home", Role::Home),
        ("foreign", Role::Foreign),
        ("mobile", Role::Mobile),
        ("correspondent", Role::Correspondent),
        ("anchor-point", Role::AnchorPoint),
        ("relay", Role::Relay),
    ];
    let Some(node) = root.get("role") else {
        let expected = "a configuration says which agent it is for: role = \"home\", \"foreign\", \"mobile\", \"correspondent\", \"anchor-point\" or \"relay\"";
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
            "correspondent-node" | "correspondent node" | "cn" => Some("correspondent"),
            "mobility-anchor-point" | "mobility anchor point" | "map" => Some("anchor-point"),
            _ => None,
        };
        if let Some(meant) = meant {
            let expected = "known are \"home\", \"foreign\", \"mobile\", \"correspondent\", \"anchor-point\" and \"relay\"";
            field.wrong(expected, Some(format!("write \"{meant}\"")), problems);
            return None;
        }
    }
    field.choice(&ROLES, &[], problems)
}

/// What the agents themselves say about their configuration, for what was not found above.
fn try_out(setup: &AnySetup, problems: &mut Problems) {
    let random = RandomStream::new(0, 0, "check");
    let fits = crate::carrier::check(setup).and_then(|()| match setup {
        AnySetup::V4(setup) => try_out_ipv4(setup, random),
        AnySetup::V6(setup) => try_out_ipv6(setup, random),
        // It takes any that was read.
        AnySetup::Relay(_) => Ok(()),
    });
    if let Err(error) = fits {
        let hint = error.remedy().map(str::to_owned);
        problems.add((Origin::File(0), ""), "a configuration that no agent takes", error.to_string(), hint);
    }
}

fn try_out_ipv4(setup: &Setup, random: RandomStream) -> Result<(), crate::Error> {
    let start = Instant::ZERO;
    match setup {
        Setup::Home(setup) => v4::HomeAgent::new(start, setup.config.clone(), random).map(drop)?,
        Setup::Foreign(setup) => v4::ForeignAgent::new(start, setup.config.clone(), random).map(drop)?,
        Setup::Mobile(setup) => v4::MobileNode::new(start, setup.config.clone(), random).map(drop)?,
    }
    Ok(())
}

fn try_out_ipv6(setup: &Ipv6Setup, random: RandomStream) -> Result<(), crate::Error> {
    let start = Instant::ZERO;
    match setup {
        Ipv6Setup::Home(setup) => v6::HomeAgent::new(start, setup.config.clone(), random).map(drop)?,
        Ipv6Setup::Mobile(setup) => v6::MobileNode::new(start, setup.config.clone(), random).map(drop)?,
        Ipv6Setup::AnchorPoint(setup) => {
            v6::MobilityAnchorPoint::new(start, setup.config.clone(), random).map(drop)?;
        }
        Ipv6Setup::AccessRouter(setup) => {
            v6::access_router::AccessRouter::new(setup.config.clone(), random).map(drop)?;
        }
        Ipv6Setup::HierarchicalMobile(setup) => {
            let config = setup.config(setup.mobile.config.clone());
            v6::HierarchicalMobileNode::new(start, config, random).map(drop)?;
        }
        Ipv6Setup::Correspondent(setup) => {
            v6::CorrespondentNode::new(setup.config.clone(), random).map(drop)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
