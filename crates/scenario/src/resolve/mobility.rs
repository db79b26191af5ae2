//! `[mobility]` and `[[handover]]`, their names looked up.

use careof_base::Duration;

use super::Network;
use crate::error::Problems;
use crate::mobility::{HandoverDraft, MobilityDraft, Reference};
use crate::model::{Handover, HandoverStyle, LinkId, Mobility, PolicyRule, Role};
use crate::tree::quote;
use crate::units;

impl Network {
    pub(super) fn mobility(
        &self,
        draft: MobilityDraft<'_>,
        handovers: &[HandoverDraft<'_>],
        problems: &mut Problems,
    ) -> Option<Mobility> {
        let home = draft.home.as_ref().map(|home| self.look_up_access(home, problems));
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
        let start = match (&draft.start, handovers.first()) {
            (Some(start), _) => self.look_up_access(start, problems),
            (None, _) if !order.is_empty() => order.first().copied(),
            // Its error is reported with the handover.
            (None, Some(first)) => {
                self.links.iter().position(|l| l.access && l.name == first.from.name).map(LinkId)
            }
            (None, None) => self.links.iter().position(|link| link.access).map(LinkId),
        };
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
            start: start?,
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
            fleet: self.fleet.clone(),
        })
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

    /// Looks up the links of the handovers and, from the link `active` at first, follows them through time.
    pub(super) fn handovers(
        &self,
        drafts: Vec<HandoverDraft<'_>>,
        mut active: Option<LinkId>,
        duration: Option<Duration>,
        problems: &mut Problems,
    ) -> Vec<Handover> {
        let mut handovers = Vec::new();
        let mut free = None;
        for draft in drafts {
            let at = &draft.at;
            let ends = at.time + draft.interruption + draft.overlap.unwrap_or_default();
            if let Some(duration) = duration.filter(|duration| ends >= *duration) {
                let found = if at.time >= duration {
                    at.written.clone()
                } else {
                    format!("a handover that is over at {}", units::duration(ends))
                };
                let expected = format!("the run ends at {}", units::duration(duration));
                problems.add(at.place(), found, expected, Some("raise `duration` or lower `at`".to_owned()));
            }
            if let Some(free) = free.filter(|free| at.time <= *free) {
                let over = units::duration(free);
                let expected =
                    format!("handovers stand in the order of time, and the one before is over at {over}");
                problems.add(at.place(), at.written.as_str(), expected, None);
            }
            free = Some(ends);
            let from = self.look_up_access(&draft.from, problems);
            let to = self.look_up_access(&draft.to, problems);
            let (Some(from), Some(to)) = (from, to) else {
                active = None;
                continue;
            };
            if from == to {
                let expected = "a handover leads to another link than it leaves";
                problems.add(draft.to.place(), quote(draft.to.name), expected, None);
            } else if let Some(active) = active.filter(|active| *active != from) {
                let name = self.links.get(active.0).map_or("", |link| link.name.as_str());
                let expected = format!("the link in use at that time is \"{name}\"");
                problems.add(
                    draft.from.place(),
                    quote(draft.from.name),
                    expected,
                    Some(format!("write from = \"{name}\"")),
                );
            }
            if !draft.cancelled {
                active = active.map(|_| to);
            }
            debug_assert!(draft.style == HandoverStyle::BreakBeforeMake || draft.interruption.is_zero());
            handovers.push(Handover {
                at: at.time,
                from,
                to,
                style: draft.style,
                overlap: draft.overlap,
                interruption: draft.interruption,
                queued: draft.queued,
                notice: draft.notice,
                // Each link has its own care-of address, and at home there is none.
                address_changes: self.anchor_differs(from, to),
                cancelled: draft.cancelled,
            });
        }
        handovers
    }

    /// Whether the care-of address changes between two access links: always, but between links of one foreign agent.
    fn anchor_differs(&self, from: LinkId, to: LinkId) -> bool {
        let anchor = |id: LinkId| self.links.get(id.0).map(|link| link.ends[0]);
        anchor(from) != anchor(to) || anchor(from).is_some_and(|id| self.role(id) != Role::ForeignAgent)
    }
}
