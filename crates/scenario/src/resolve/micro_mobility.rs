//! The domain of micro-mobility: which nodes are in it, and that they are a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::Network;
use crate::error::Problems;
use crate::micro_mobility::{MOST_INTERFACES, MicroDraft};
use crate::model::{MicroMobility, NodeId, Role};
use crate::tree::quote;

impl Network {
    /// Lets the gateway be the foreign agent of the mobile nodes, if there is one of that name.
    pub(super) fn place_gateway(&mut self, draft: &MicroDraft<'_>) {
        let gateway = self.by_name.get(draft.gateway.name).copied();
        if let Some(node) =
            gateway.and_then(|node| self.nodes.get_mut(node.0)).filter(|node| node.role == Role::Host)
        {
            node.role = Role::ForeignAgent;
        }
    }

    /// The domain; `None` where it is none, which is reported.
    pub(super) fn micro_mobility(
        &self,
        draft: &MicroDraft<'_>,
        problems: &mut Problems,
    ) -> Option<MicroMobility> {
        let gateway = self.look_up_node(&draft.gateway, problems)?;
        let fleet = self.fleet.as_ref()?;
        let (origin, path) = draft.gateway.place();
        let mut wrong = |expected: String, hint: Option<String>| {
            problems.add((origin, path), quote(draft.gateway.name), expected, hint);
        };
        if !matches!(self.role(gateway), Role::Host | Role::ForeignAgent) || fleet.stations.contains(&gateway)
        {
            let expected = "the gateway is a router of its own between the home agent and the base stations";
            wrong(expected.to_owned(), None);
            return None;
        }
        let goes_round = |station: &&NodeId| {
            self.with_role(Role::HomeAgent).any(|agent| self.joined_without(agent, **station, gateway))
        };
        if let Some(station) = fleet.stations.iter().find(goes_round) {
            let station = self.name(*station).unwrap_or_default();
            wrong(
                format!(
                    "every way from a base station to the home agent leads through it, and from \"{station}\" one does not"
                ),
                Some("name the node at which the ways of all base stations meet".to_owned()),
            );
            return None;
        }
        let routers = self.tree_below(gateway, draft, problems)?;
        if let Some(lost) = fleet.stations.iter().find(|station| !routers.contains(station)) {
            let expected =
                format!("the base station \"{}\" hangs on it", self.name(*lost).unwrap_or_default());
            problems.add((origin, path), quote(draft.gateway.name), expected, None);
            return None;
        }
        if let Some((origin, path, count)) = &draft.car_set
            && usize::try_from(*count).unwrap_or(usize::MAX) > fleet.stations.len()
        {
            let expected = format!("there are {} base stations", fleet.stations.len());
            let hint = "write \"all\" for all of them".to_owned();
            problems.add((*origin, path), count.to_string(), expected, Some(hint));
        }
        let advertisement_interval = draft.advertisement_interval;
        Some(MicroMobility { gateway, routers, protocol: draft.protocol?, advertisement_interval })
    }

    /// The nodes below the gateway, each behind the one that it hangs on.
    fn tree_below(
        &self,
        gateway: NodeId,
        draft: &MicroDraft<'_>,
        problems: &mut Problems,
    ) -> Option<Vec<NodeId>> {
        let mut neighbors: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for link in self.links.iter().filter(|link| !link.access) {
            let [a, b] = link.ends;
            neighbors.entry(a).or_default().push(b);
            neighbors.entry(b).or_default().push(a);
        }
        let of = |node: NodeId| neighbors.get(&node).map(Vec::as_slice).unwrap_or_default();
        let is_outside = |node: NodeId| {
            self.role(node) == Role::HomeAgent
                || self.with_role(Role::HomeAgent).any(|agent| self.joined_without(agent, node, gateway))
        };
        let (mut reached, mut tree) = (BTreeSet::from([gateway]), vec![(gateway, None)]);
        let mut next = 0;
        while let Some(&(here, above)) = tree.get(next) {
            next += 1;
            let below = of(here)
                .iter()
                .filter(|node| Some(**node) != above)
                .filter(|node| here != gateway || !is_outside(**node));
            for node in below {
                if !reached.insert(*node) {
                    let name = self.name(*node).unwrap_or_default();
                    let expected =
                        format!("a domain is a tree, and two ways lead from its gateway to \"{name}\"");
                    problems.add(draft.gateway.place(), quote(draft.gateway.name), expected, None);
                    return None;
                }
                tree.push((*node, Some(here)));
            }
            if of(here).len() >= MOST_INTERFACES {
                let name = self.name(here).unwrap_or_default();
                let expected = format!(
                    "a router of a domain has fewer than {MOST_INTERFACES} links, and \"{name}\" has {}",
                    of(here).len()
                );
                problems.add(draft.gateway.place(), quote(draft.gateway.name), expected, None);
                return None;
            }
        }
        Some(tree.into_iter().skip(1).map(|(node, _)| node).collect())
    }
}
