//! Mobility anchor points, their domains looked up, and what goes with them.

use super::{Network, listed};
use crate::error::Problems;
use crate::hierarchy::refuse_without_anchor_point;
use crate::mobility::{MobilityDraft, Reference};
use crate::model::{AnchorPoint, Hierarchy, NodeId, Protocol, Role};
use crate::node::NodeDraft;
use crate::tree::quote;
use crate::words::nearest;

/// Mobile nodes with mobility anchor points: their regional addresses are one network of 256 at each.
const MOST_MOBILE_NODES: usize = 200;

impl Network {
    /// The mobility anchor points; `None` where there is none.
    pub(super) fn hierarchy(
        &self,
        draft: &MobilityDraft<'_>,
        nodes: &[NodeDraft<'_>],
        problems: &mut Problems,
    ) -> Option<Hierarchy> {
        let maps: Vec<&NodeDraft<'_>> = nodes.iter().filter(|node| node.role == Role::AnchorPoint).collect();
        let Some(first) = maps.first() else {
            refuse_without_anchor_point(&draft.hierarchy, draft.protocol, problems);
            return None;
        };
        self.refuse_beside_anchor_points(first, draft, problems);
        let anchor_points = maps.iter().filter_map(|map| {
            let node = self.by_name.get(map.name).copied()?;
            let domain = match &map.anchor_point.domain {
                Some(routers) => self.named_domain(routers, problems),
                None => self.domain_behind(node, map, problems),
            };
            Some(AnchorPoint { node, domain, preference: map.anchor_point.preference })
        });
        Some(Hierarchy {
            anchor_points: anchor_points.collect(),
            selection: draft.hierarchy.selection,
            forwarding: draft.hierarchy.forwarding,
        })
    }

    /// What a hierarchical mobile node does not do.
    fn refuse_beside_anchor_points(
        &self,
        first: &NodeDraft<'_>,
        draft: &MobilityDraft<'_>,
        problems: &mut Problems,
    ) {
        let mut refuse = |expected: String, hint: &str| {
            problems.add(first.place(), "\"map\"", expected, Some(hint.to_owned()));
        };
        if draft.protocol != Protocol::MobileIpv6 {
            let expected = "mobility anchor points are of Mobile IPv6".to_owned();
            refuse(expected, "write protocol = \"mobile-ipv6\" in [mobility]");
        }
        if draft.fast_handover.is_some() {
            let expected = "mobile nodes with mobility anchor points do no fast handovers".to_owned();
            refuse(expected, "leave `fast_handover` out of [mobility]");
        }
        if draft.path_monitor {
            let expected = "with mobility anchor points mobile nodes do not watch their paths".to_owned();
            refuse(expected, "leave `path_monitor` and `order` out of [mobility]");
        }
        if let Some(link) = self.links.iter().find(|link| link.ipv4_only) {
            let expected = format!(
                "with mobility anchor points every network has IPv6, and that of \"{}\" has not",
                link.name
            );
            refuse(expected, "leave `ip_version` out of the links, or leave the mobility anchor point out");
        }
        if self.home_agents.len() > MOST_MOBILE_NODES {
            let expected = format!(
                "a mobility anchor point has at most {MOST_MOBILE_NODES} mobile nodes, and there are {}",
                self.home_agents.len()
            );
            refuse(expected, "name fewer mobile nodes in [nodes]");
        }
    }

    /// The routers at the other ends of access links, each once; not a home agent for the link that is the home network.
    fn access_routers(&self) -> Vec<NodeId> {
        let mut routers: Vec<NodeId> = Vec::new();
        for link in self.links.iter().filter(|link| link.access) {
            if !routers.contains(&link.ends[0]) {
                routers.push(link.ends[0]);
            }
        }
        routers
    }

    fn named_domain(&self, names: &[Reference<'_>], problems: &mut Problems) -> Vec<NodeId> {
        let routers = self.access_routers();
        let mut domain = Vec::new();
        for reference in names {
            let found = self.by_name.get(reference.name).copied().filter(|node| routers.contains(node));
            let Some(node) = found else {
                let names: Vec<&str> = routers.iter().filter_map(|router| self.name(*router)).collect();
                let expected = format!("the access routers are {}", listed(&names));
                let near = nearest(reference.name, names.iter().copied());
                let hint = near.map(|near| format!("did you mean \"{near}\"?"));
                problems.add(reference.place(), quote(reference.name), expected, hint);
                continue;
            };
            if domain.contains(&node) {
                problems.add(reference.place(), quote(reference.name), "each router is named once", None);
            }
            domain.push(node);
        }
        domain
    }

    /// The access routers that have no other way to a home agent than through this node: what mobile nodes there send passes it anyhow.
    fn domain_behind(&self, map: NodeId, draft: &NodeDraft<'_>, problems: &mut Problems) -> Vec<NodeId> {
        let goes_round = |router: NodeId| {
            self.with_role(Role::HomeAgent).any(|agent| self.joined_without(agent, router, map))
        };
        let domain: Vec<NodeId> =
            self.access_routers().into_iter().filter(|router| !goes_round(*router)).collect();
        if domain.is_empty() {
            let expected = "every access router has a way to a home agent that does not lead through it";
            let routers: Vec<&str> =
                self.access_routers().iter().filter_map(|router| self.name(*router)).collect();
            let hint = format!(
                "name the routers that advertise it: {} = {{ role = \"map\", domain = [\"{}\"] }}",
                draft.name,
                routers.first().copied().unwrap_or("ROUTER")
            );
            problems.add(draft.place(), quote(draft.name), expected, Some(hint));
        }
        domain
    }
}
