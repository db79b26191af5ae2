//! `[mobility]` and `[[handover]]`, their names looked up.

use careof_base::Duration;

use std::collections::BTreeMap;

use super::Network;
use crate::error::Problems;
use crate::link::LinkDraft;
use crate::micro_mobility::MicroDraft;
use crate::mobility::{HandoverDraft, MobilityDraft, Reference};
use crate::model::{
    Handover, HandoverStyle, Link, LinkId, MobileNode, Mobility, MovementDetection, NodeId, PoissonHandovers,
    PolicyRule, Protocol, Role,
};
use crate::multipath::MultipathDraft;
use crate::node::NodeDraft;
use crate::repeated::Draws;
use crate::tree::quote;
use crate::units;

impl Network {
    pub(super) fn mobility(
        &self,
        draft: MobilityDraft<'_>,
        nodes: &[NodeDraft<'_>],
        (micro, multipath): (Option<&MicroDraft<'_>>, Option<MultipathDraft<'_>>),
        handovers: &[HandoverDraft<'_>],
        problems: &mut Problems,
    ) -> Option<Mobility> {
        if self.home_agents.len() > 1 {
            refuse_what_is_for_one(&draft, problems);
        }
        let home = draft.home.as_ref().map(|home| self.look_up_access(home, problems));
        let of_home_agent = |node: &NodeDraft<'_>| node.role == Role::HomeAgent;
        let home_prefix =
            nodes.iter().filter(|node| of_home_agent(node)).find_map(|node| node.prefix.as_ref());
        if let (Some(home), Some(prefix)) = (&draft.home, home_prefix) {
            let expected = format!("the home network is the link \"{}\"", home.name);
            let hint = format!("write it in links.{}", home.name);
            let found = format!("\"{}\"", prefix.prefix);
            problems.add((prefix.origin, &prefix.path), found, expected, Some(hint));
        }
        let order = self.access_links(&draft.order, problems);
        let metered = self.access_links(&draft.metered, problems);
        for (reference, link) in draft.metered.iter().zip(&metered) {
            if !order.contains(link) {
                let expected = "`metered` names links of `order`";
                problems.add(reference.place(), quote(reference.name), expected, None);
            }
        }
        if let (Some(first), false) = (handovers.first(), order.is_empty()) {
            let hint = "leave `order` or [[handover]] out".to_owned();
            let expected = "with `order` the mobile node chooses by itself";
            problems.add(first.at.place(), "a handover", expected, Some(hint));
        }
        let mobile_nodes = self.mobile_nodes(&draft, nodes, handovers, &order, problems);
        let hierarchy = self.hierarchy(&draft, nodes, problems);
        let micro_mobility = micro.and_then(|micro| self.micro_mobility(micro, problems));
        let only = mobile_nodes.as_ref().and_then(|nodes| nodes.first());
        let multipath =
            multipath.zip(only).and_then(|(draft, only)| self.multipath(draft, nodes, only.node, problems));
        let mut policy = Vec::new();
        for rule in draft.policy {
            let to = self.destination(&rule.to, problems);
            policy.extend(to.map(|to| PolicyRule { to, port: rule.port, method: rule.method }));
        }
        Some(Mobility {
            protocol: draft.protocol,
            care_of: draft.care_of,
            dhcp: draft.dhcp,
            routing: draft.routing,
            encapsulation: draft.encapsulation,
            leave_room: draft.leave_room,
            path_monitor: draft.path_monitor,
            order,
            metered,
            leave_bad_paths: draft.leave_bad_paths,
            nodes: mobile_nodes?,
            home: home.flatten(),
            lifetime: draft.lifetime,
            discovery: draft.discovery,
            movement_detection: draft.movement_detection,
            algorithm: draft.algorithm,
            replay: draft.replay,
            early_requests: draft.early_requests,
            simultaneous_bindings: draft.simultaneous_bindings,
            keep_old: draft.keep_old,
            route_optimization: draft.route_optimization,
            smooth_handoff: draft.smooth_handoff,
            duplicate_address_detection: draft.duplicate_address_detection,
            policy,
            fast_handover: draft.fast_handover,
            fleet: self.fleet.clone(),
            hierarchy,
            micro_mobility,
            multipath,
        })
    }

    /// Refuses links of IPv4 where nobody could use them.
    pub(super) fn check_ipv4_only(
        &self,
        drafts: &[LinkDraft<'_>],
        mobility: Option<&MobilityDraft<'_>>,
        problems: &mut Problems,
    ) {
        for draft in drafts {
            let Some((origin, path)) = &draft.ipv4_only else { continue };
            let is_access = self.links.iter().any(|link| link.access && link.name == draft.name);
            let expected = match mobility {
                Some(mobility) if mobility.protocol == Protocol::MobileIpv6 => {
                    if !is_access || self.fleet.is_some() {
                        "it is for the access links of mobile nodes that move by themselves"
                    } else if mobility.home.as_ref().is_some_and(|home| home.name == draft.name) {
                        "a mobile node over IPv6 is at home in a network of IPv6"
                    } else if mobility.movement_detection != MovementDetection::LinkTrigger {
                        "no router of IPv6 is heard there: it needs movement_detection = \"link-trigger\""
                    } else if draft.prefix.is_some() {
                        "the networks of IPv4 are planned: leave `prefix` out"
                    } else {
                        continue;
                    }
                }
                _ => "only over Mobile IPv6 networks differ: protocol = \"mobile-ipv6\" in [mobility]",
            };
            problems.add((*origin, path), "4", expected, None);
        }
    }

    /// The mobile nodes that move by themselves, each with the link it begins at; `None` if one has none, which is reported.
    fn mobile_nodes(
        &self,
        draft: &MobilityDraft<'_>,
        nodes: &[NodeDraft<'_>],
        handovers: &[HandoverDraft<'_>],
        order: &[LinkId],
        problems: &mut Problems,
    ) -> Option<Vec<MobileNode>> {
        let mut all = Vec::new();
        let mut complete = true;
        for &(node, home_agent) in &self.home_agents {
            let given = nodes.iter().find(|given| self.name(node) == Some(given.name));
            let is_own = |link: &Link| link.access && link.ends[1] == node;
            let own = || self.links.iter().position(is_own).map(LinkId);
            let Some(first) = own() else {
                if let Some(given) = given {
                    let expected = "a mobile node needs an access link, of which it is the second end";
                    let hint = format!("add a link with between = [\"ROUTER\", \"{}\"]", given.name);
                    problems.add(given.place(), quote(given.name), expected, Some(hint));
                }
                complete = false;
                continue;
            };
            let asked = given.and_then(|given| given.start.as_ref()).or(draft.start.as_ref());
            let first_handover = handovers.iter().find(|handover| match self.home_agents.as_slice() {
                [_] => true,
                _ => self.links.iter().any(|link| is_own(link) && link.name == handover.from.name),
            });
            let start = match (asked, first_handover) {
                (Some(start), _) => self.look_up_own_access(start, node, problems),
                (None, _) if !order.is_empty() => order.first().copied(),
                // Its error is reported with the handover.
                (None, Some(first)) => self
                    .links
                    .iter()
                    .position(|link| is_own(link) && link.name == first.from.name)
                    .map(LinkId),
                (None, None) => Some(first),
            };
            complete &= start.is_some();
            all.extend(start.map(|start| MobileNode { node, home_agent, start }));
        }
        complete.then_some(all)
    }

    /// The access link of the mobile node `node` that a key names.
    fn look_up_own_access(
        &self,
        reference: &Reference<'_>,
        node: NodeId,
        problems: &mut Problems,
    ) -> Option<LinkId> {
        let link = self.look_up_access(reference, problems)?;
        let owner = self.links.get(link.0).map(|link| link.ends[1]);
        if owner != Some(node) {
            let of = |node| self.name(node).unwrap_or_default();
            let found =
                format!("{}, a link of \"{}\"", quote(reference.name), owner.map(of).unwrap_or_default());
            let expected = format!("it must be an access link of \"{}\"", of(node));
            problems.add(reference.place(), found, expected, None);
            return None;
        }
        Some(link)
    }

    fn access_links(&self, names: &[Reference<'_>], problems: &mut Problems) -> Vec<LinkId> {
        let mut links = Vec::new();
        for reference in names {
            let Some(link) = self.look_up_access(reference, problems) else { continue };
            if links.contains(&link) {
                problems.add(reference.place(), quote(reference.name), "each link is named once", None);
            }
            links.push(link);
        }
        links
    }

    /// Looks up the links of the handovers and, from the links at which `nodes` begin, follows them through time. Without nodes it
    /// is not known which links those are.
    pub(super) fn handovers(
        &self,
        drafts: Vec<HandoverDraft<'_>>,
        nodes: Option<&[MobileNode]>,
        duration: Option<Duration>,
        problems: &mut Problems,
    ) -> (Vec<Handover>, Vec<PoissonHandovers>) {
        let mut handovers = Vec::new();
        let mut poisson: Vec<PoissonHandovers> = Vec::new();
        // Of a table that stands for several, what is wrong is said once.
        let mut wrong_table = None;
        let mut tables: BTreeMap<Option<NodeId>, (usize, bool)> = BTreeMap::new();
        let mut active: BTreeMap<NodeId, LinkId> =
            nodes.unwrap_or_default().iter().map(|mobile| (mobile.node, mobile.start)).collect();
        let mut over: BTreeMap<Option<NodeId>, Duration> = BTreeMap::new();
        let only = match self.home_agents.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        };
        for draft in drafts {
            if wrong_table == Some(draft.table) {
                continue;
            }
            let before = problems.count();
            let at = &draft.at;
            let named = self.links.iter().find(|link| link.access && link.name == draft.from.name);
            let mobile = only.or(named.map(|link| link.ends[1]));
            let longest = draft.link_layer.map_or(draft.interruption, |link_layer| link_layer.longest());
            let ends = at.time.saturating_add(longest).saturating_add(draft.overlap.unwrap_or_default());
            let is_drawn = draft.drawn.is_some();
            let (first_table, has_drawn) = *tables.entry(mobile).or_insert((draft.table, is_drawn));
            if first_table != draft.table && (is_drawn || has_drawn) {
                let expected = "a mobile node whose handovers are drawn has one [[handover]]";
                problems.add(at.place(), "another table", expected, None);
            }
            if let Some(duration) = duration.filter(|duration| !is_drawn && ends >= *duration) {
                let found = if at.time >= duration {
                    at.written.clone()
                } else {
                    format!("a handover that is over at {}", units::duration(ends))
                };
                let expected = format!("the run ends at {}", units::duration(duration));
                problems.add(at.place(), found, expected, Some("raise `duration` or lower `at`".to_owned()));
            }
            if let Some(free) = over.get(&mobile).filter(|free| !is_drawn && at.time <= **free) {
                let over = units::duration(*free);
                let expected =
                    format!("handovers stand in the order of time, and the one before is over at {over}");
                problems.add(at.place(), at.written.as_str(), expected, None);
            }
            over.insert(mobile, ends);
            let from = self.look_up_access(&draft.from, problems);
            let to = match mobile {
                Some(mobile) => self.look_up_own_access(&draft.to, mobile, problems),
                None => self.look_up_access(&draft.to, problems),
            };
            let (Some(from), Some(to), Some(mobile)) = (from, to, mobile) else {
                active.clear();
                wrong_table = Some(draft.table);
                continue;
            };
            if from == to {
                let expected = "a handover leads to another link than it leaves";
                problems.add(draft.to.place(), quote(draft.to.name), expected, None);
            } else if let Some(active) = active.get(&mobile).filter(|active| **active != from) {
                let name = self.links.get(active.0).map_or("", |link| link.name.as_str());
                let expected = format!("the link in use at that time is \"{name}\"");
                problems.add(
                    draft.from.place(),
                    quote(draft.from.name),
                    expected,
                    Some(format!("write from = \"{name}\"")),
                );
            }
            let announced = draft.announced.as_ref();
            let announced =
                announced.and_then(|link| self.look_up_announced(link, mobile, [from, to], problems));
            if let (false, Some(active)) = (draft.cancelled, active.get_mut(&mobile)) {
                *active = to;
            }
            debug_assert!(draft.style == HandoverStyle::BreakBeforeMake || draft.interruption.is_zero());
            if problems.count() > before {
                wrong_table = Some(draft.table);
            }
            let handover = Handover {
                at: at.time,
                from,
                to,
                style: draft.style,
                overlap: draft.overlap,
                interruption: draft.interruption,
                link_layer: draft.link_layer,
                queued: draft.queued,
                notice: draft.notice,
                // Each link has its own care-of address, and at home there is none.
                address_changes: self.anchor_differs(from, to),
                cancelled: draft.cancelled,
                announced,
                table: draft.table,
                every: draft.every,
            };
            match (draft.drawn, poisson.last_mut()) {
                (None, _) => handovers.push(handover),
                (Some(_), Some(last)) if last.round.iter().any(|one| one.table == draft.table) => {
                    last.round.push(handover);
                }
                (Some(Draws { mean, least }), _) => {
                    poisson.push(PoissonHandovers { round: vec![handover], mean, least });
                }
            }
        }
        (handovers, poisson)
    }

    /// The access link that is announced in place of that to which a handover leads.
    fn look_up_announced(
        &self,
        reference: &Reference<'_>,
        mobile: NodeId,
        from_and_to: [LinkId; 2],
        problems: &mut Problems,
    ) -> Option<LinkId> {
        let link = self.look_up_own_access(reference, mobile, problems)?;
        if from_and_to.contains(&link) {
            let expected =
                "what is announced in error is neither the link that is left nor the one that is entered";
            let hint = "leave `announced` out, or write cancelled = true".to_owned();
            problems.add(reference.place(), quote(reference.name), expected, Some(hint));
            return None;
        }
        Some(link)
    }

    /// Refuses fast handovers where an access link leads to no router of its own, or has only IPv4.
    pub(super) fn check_fast_handovers(
        &self,
        drafts: &[LinkDraft<'_>],
        mobility: &MobilityDraft<'_>,
        problems: &mut Problems,
    ) {
        if mobility.fast_handover.is_none() {
            return;
        }
        let place = (mobility.origin, "mobility.fast_handover");
        for link in self.links.iter().filter(|link| link.access && self.fleet.is_none()) {
            let [end, mobile] = link.ends;
            let found = format!(
                "{}, an access link of {}",
                quote(&link.name),
                quote(self.name(end).unwrap_or_default())
            );
            let hint = format!(
                "write between = [\"router-{}\", {}] in links.{}, and link that router with the others",
                link.name,
                quote(self.name(mobile).unwrap_or_default()),
                link.name
            );
            if self.role(end) != Role::Host {
                problems.add(place, found, "access links hang on routers that are nothing else", Some(hint));
            } else if let Some(draft) = drafts.iter().find(|draft| draft.name == link.name)
                && let Some((origin, path)) = &draft.ipv4_only
            {
                let hint = "leave `ip_version` or `fast_handover` out".to_owned();
                problems.add((*origin, path), "4", "fast handovers are of IPv6", Some(hint));
            }
        }
    }

    /// Whether the care-of address changes between two access links: always, but between links of one foreign agent.
    fn anchor_differs(&self, from: LinkId, to: LinkId) -> bool {
        let anchor = |id: LinkId| self.links.get(id.0).map(|link| link.ends[0]);
        anchor(from) != anchor(to) || anchor(from).is_some_and(|id| self.role(id) != Role::ForeignAgent)
    }
}

/// Refuses what the table says of the only mobile node where there are several.
fn refuse_what_is_for_one(draft: &MobilityDraft<'_>, problems: &mut Problems) {
    if let Some(start) = &draft.start {
        let hint = format!("write start = {} in the tables of [nodes]", quote(start.name));
        let expected = "each of several mobile nodes begins at a link of its own";
        problems.add(start.place(), quote(start.name), expected, Some(hint));
    }
    for only in draft.home.iter().chain(draft.order.first()) {
        let hint = "leave it out, or leave one mobile node".to_owned();
        problems.add(only.place(), quote(only.name), "it is for one mobile node", Some(hint));
    }
    if draft.smooth_handoff {
        let hint = "leave it out, or leave one mobile node".to_owned();
        let place = (draft.origin, "mobility.smooth_handoff");
        problems.add(place, "true", "it is for one mobile node", Some(hint));
    }
}
