//! Everything about a host's network that an agent could change.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use careof_lab::{Host, Netlink, Route};

use super::find;

const PARAMETERS: &str = "/proc/sys/net/ipv4";

/// Named texts: the outputs of `ip` where there is one, what netlink says, and kernel parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    pub(crate) fn of(host: &Host) -> Self {
        let mut texts = BTreeMap::new();
        if find("ip").is_some() {
            for question in
                ["route show table all", "rule", "addr", "neigh show proxy", "neigh show nud permanent"]
            {
                texts.insert(format!("ip {question}"), ip(host, question));
            }
        }
        texts.insert("netlink".to_owned(), host.run(netlink).unwrap());
        texts.extend(host.run(parameters).unwrap());
        Self(texts)
    }

    /// Fails when something is not as it was before.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self, host: &Host) {
        let now = Self::of(host);
        for (name, before) in &self.0 {
            assert_eq!(now.0.get(name), Some(before), "{name} of {}", host.name());
        }
        assert_eq!(self.0.len(), now.0.len());
    }
}

fn ip(host: &Host, question: &str) -> String {
    let mut command = Command::new("ip");
    command.args(question.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = host.spawn(command).unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "ip {question}: {}", output.status);
    // An interface without ever a change of its carrier is in an unknown state, and works.
    let text = String::from_utf8(output.stdout).unwrap().replace("state UNKNOWN", "state UP");
    let mut lines: Vec<&str> = text.lines().collect();
    // The order of what is equal to the kernel is not its state.
    if question.starts_with("route") {
        lines.sort_unstable();
    }
    lines.join("\n")
}

fn netlink() -> String {
    let mut netlink = Netlink::open().unwrap();
    let rules = netlink.rules().unwrap();
    let mut routes = netlink.routes(Route::MAIN_TABLE).unwrap();
    routes.sort_by_key(|route| format!("{route:?}"));
    let mut interfaces = netlink.interfaces().unwrap();
    // What a carrier has been through is nothing that an agent could put back.
    interfaces.iter_mut().for_each(|interface| interface.carrier = None);
    let addresses: Vec<_> =
        interfaces.iter().map(|interface| netlink.addresses(interface.index).unwrap()).collect();
    format!("{rules:#?}\n{routes:#?}\n{interfaces:#?}\n{addresses:#?}")
}

/// Those of IPv4, of its interfaces and of their neighbours.
fn parameters() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let directories = ["conf", "neigh"].map(|kind| fs::read_dir(format!("{PARAMETERS}/{kind}")).unwrap());
    let interfaces = directories.into_iter().flatten().map(|entry| entry.unwrap().path());
    for directory in interfaces.chain([PARAMETERS.into()]) {
        for file in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            // Some cannot be read, and some are directories.
            if let Ok(text) = fs::read_to_string(&file) {
                found.insert(file.display().to_string(), text);
            }
        }
    }
    found
}
