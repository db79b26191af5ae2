//! `[nodes]` as the file gives it: which node does what.

use crate::address::{AddressDraft, addresses};
use crate::decode::{Field, Reader, check_name};
use crate::error::{Origin, Problems};
use crate::hierarchy::{AnchorPointDraft, anchor_point};
use crate::mobility::Reference;
use crate::model::Role;
use crate::prefix::{PrefixDraft, prefix};
use crate::reference::node::NODE;
use crate::relay::{RELAY_KEYS, RelayDraft, relay};
use crate::tree::{Entry, Value, join};
use crate::words::{NodeRole, ReadWord as _};

/// Mobile nodes of one home agent: their home addresses are one network of 256.
pub(crate) const MOST_MOBILE_NODES: usize = 200;

/// Roles that are planned, but not there.
const LATER_ROLES: [&str; 1] = ["base-station"];

/// A node whose role the file says.
#[derive(Debug)]
pub(crate) struct NodeDraft<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: Role,
    pub(crate) home_agent: Option<Reference<'a>>,
    pub(crate) start: Option<Reference<'a>>,
    pub(crate) prefix: Option<PrefixDraft>,
    pub(crate) addresses: Vec<AddressDraft>,
    /// Of a mobility anchor point.
    pub(crate) anchor_point: AnchorPointDraft<'a>,
    /// Of a relay.
    pub(crate) relay: RelayDraft,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

impl NodeDraft<'_> {
    pub(crate) fn place(&self) -> (Origin, &str) {
        (self.origin, &self.path)
    }
}

impl NodeRole {
    fn role(self) -> Role {
        match self {
            Self::Correspondent => Role::Correspondent,
            Self::HomeAgent => Role::HomeAgent,
            Self::ForeignAgent => Role::ForeignAgent,
            Self::Mobile => Role::Mobile,
            Self::Map => Role::AnchorPoint,
            Self::Relay => Role::Relay,
            Self::Router | Self::AccessRouter | Self::Host => Role::Host,
        }
    }
}

/// Reads `[nodes]`; `mobility` is whether somebody moves, `many` whether that is `nodes` of `[mobility]`.
pub(crate) fn nodes<'a>(
    top: &Reader<'a>,
    mobility: bool,
    many: bool,
    problems: &mut Problems,
) -> Vec<NodeDraft<'a>> {
    let Some(field) = top.get("nodes") else { return Vec::new() };
    let Value::Table(table) = &field.node.value else {
        field.wrong("nodes is a table of nodes: [nodes] with core = \"router\"", None, problems);
        return Vec::new();
    };
    let nodes: Vec<NodeDraft<'_>> = table.entries.iter().filter_map(|entry| node(entry, problems)).collect();
    for node in &nodes {
        let moves = !matches!(node.role, Role::Host | Role::Correspondent);
        let (expected, hint) = match (moves, mobility, many) {
            (true, false, _) => ("only where somebody moves there are such nodes", "add [mobility]"),
            (true, true, true) => (
                "with `nodes` of [mobility] its nodes are `home-agent`, the stations and `mobile-*`",
                "leave one of the two out",
            ),
            _ => continue,
        };
        problems.add(node.place(), format!("\"{}\"", node.role.name()), expected, Some(hint.to_owned()));
    }
    nodes
}

fn node<'a>(entry: &'a Entry, problems: &mut Problems) -> Option<NodeDraft<'a>> {
    let path = join("nodes", &entry.key);
    let field = Field { node: &entry.node, path: path.clone() };
    if let Err(expected) = check_name(&entry.key) {
        problems.add((entry.origin, &path), "a node of that name", expected, None);
    }
    let (name, origin) = (entry.key.as_str(), entry.node.origin);
    if matches!(entry.node.value, Value::Text(_)) {
        let role: NodeRole = field.word_or_later(&LATER_ROLES, problems)?;
        let role = role.role();
        return Some(NodeDraft {
            name,
            role,
            home_agent: None,
            start: None,
            prefix: None,
            addresses: Vec::new(),
            anchor_point: AnchorPointDraft::USUAL,
            relay: RelayDraft::USUAL,
            origin,
            path,
        });
    }
    let reader = field.reader(&NODE, problems)?;
    let expected = "a node needs its role: role = \"router\"";
    let role: NodeRole = reader.require("role", expected, problems)?.word_or_later(&LATER_ROLES, problems)?;
    let role = role.role();
    if role != Role::Mobile {
        reader.refuse(&["home_agent", "start"], "only a mobile node has that: role = \"mobile\"", problems);
    }
    if !matches!(role, Role::HomeAgent | Role::AnchorPoint) {
        let reason =
            "only a home agent has that, for its home network, and a map; a link has its own in [links]";
        reader.refuse(&["prefix"], reason, problems);
    }
    if role != Role::AnchorPoint {
        let reason = "only a mobility anchor point has that: role = \"map\"";
        reader.refuse(&["domain", "preference"], reason, problems);
    }
    if role != Role::Relay {
        reader.refuse(&RELAY_KEYS, "only a node that lends its link has that: role = \"relay\"", problems);
    }
    let anchor_point = anchor_point(&reader, problems);
    let relay = relay(&reader, problems);
    let prefix = reader.get("prefix").and_then(|field| prefix(&field, problems));
    let addresses = reader.get("address").map(|field| addresses(&field, problems)).unwrap_or_default();
    let mut reference = |key| reader.get(key).and_then(|field| Reference::read(&field, problems));
    let (home_agent, start) = (reference("home_agent"), reference("start"));
    Some(NodeDraft { name, role, home_agent, start, prefix, addresses, anchor_point, relay, origin, path })
}
