//! Which interface is used, and which mobility anchor point there (RFC 5380 sections 7.1 and 9).

use core::cmp::Reverse;
use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::icmpv6::MapOption;

use super::place::Heard;
use super::{HierarchicalMobileNode, MapSelection};
use crate::v6::DropReason;
use crate::{HandoverReason, InterfaceId, Notice, Selection};

/// Which mobility anchor point is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The candidate with this index, whose addresses are valid until then.
    Map(usize, Instant),
    /// None: there is none, or the node is at home.
    None,
    /// The same as before: where the node is by now it has still to find out.
    Unknown,
}

impl HierarchicalMobileNode {
    /// A router has told of a mobility anchor point.
    pub(super) fn map_heard(
        &mut self,
        now: Instant,
        (interface, router): (InterfaceId, Ipv6Addr),
        option: MapOption,
    ) {
        // Of others there is nothing to remember: they cannot be used.
        let is_known = self.candidates.iter().any(|known| known.association.address == option.address);
        let has_failed = option.valid_lifetime.as_secs() == 0;
        if !is_known || option.distance == 0 && !has_failed {
            return;
        }
        let is_lead = self.lead_id() == Some(interface);
        let Some(place) = self.places.iter_mut().find(|place| place.config.id == interface) else { return };
        if !place.map_heard(now, router, option) {
            return self.outbox.drop(DropReason::UnexpectedSource, router);
        }
        let used = self.current.as_ref().filter(|used| used.map == option.address).map(|used| used.index);
        if let Some(index) = used.filter(|_| has_failed && is_lead) {
            // Its bindings are lost (section 7.1).
            if let Some(candidate) = self.candidates.get_mut(index) {
                candidate.failed(now);
            }
            self.forget_current();
        }
    }

    /// The interface that is, or is to be, used.
    pub(super) fn lead_id(&self) -> Option<InterfaceId> {
        self.places.get(self.lead?).map(|place| place.config.id)
    }

    pub(super) fn lead_to(&mut self, index: usize, notice: Notice, reason: HandoverReason) {
        if self.lead != Some(index) {
            self.lead = Some(index);
            self.why = Some((notice, reason));
        }
    }

    /// Under [`Selection::Preferred`]: chooses the interface.
    pub(super) fn choose_interface(&mut self, now: Instant) {
        let Selection::Preferred { hold } = self.template.selection else { return };
        for place in &mut self.places {
            let avoided = place.avoided_until.is_some_and(|until| until > now);
            let viable = self.home.can_attach(place.config.id) && !avoided;
            place.viable_since = viable.then(|| place.viable_since.unwrap_or(now));
        }
        let viable = self.places.iter().enumerate().filter_map(|(index, place)| {
            // Of equals the first.
            Some((index, (place.config.preference, Reverse(index)), place.viable_since?))
        });
        let current = self.lead.and_then(|lead| self.places.get(lead));
        let current = current.filter(|place| place.viable_since.is_some());
        let choice = match current {
            // What the owner chose stays as long as it works.
            Some(_) if self.pinned => None,
            Some(current) => viable
                .filter(|(_, rank, since)| rank.0 > current.config.preference && *since + hold <= now)
                .max_by_key(|(_, rank, _)| *rank),
            None => viable.max_by_key(|(_, rank, _)| *rank),
        };
        let reason = match (current, self.used) {
            (Some(_), _) => HandoverReason::Preferred,
            (None, Some(_)) => HandoverReason::NotWorking,
            (None, None) => HandoverReason::Attached,
        };
        if let Some((index, ..)) = choice {
            self.pinned = false;
            self.lead_to(index, Notice::None, reason);
        }
    }

    /// When a better interface will have worked for long enough.
    pub(super) fn hold_deadline(&self) -> Option<Instant> {
        let Selection::Preferred { hold } = self.template.selection else { return None };
        let avoided = self.places.iter().filter_map(|place| place.avoided_until).min();
        let current = self.places.get(self.lead?)?;
        let better = self.places.iter().filter(|place| place.config.preference > current.config.preference);
        let held = better.filter_map(|place| Some(place.viable_since? + hold));
        let held = held.filter(|_| !self.pinned && !self.left).filter(|&at| at > self.outbox.now()).min();
        held.into_iter().chain(avoided).min()
    }

    /// Which mobility anchor point is to be used on the leading interface.
    pub(super) fn choose_map(&self, now: Instant) -> Choice {
        let Some(place) = self.lead.and_then(|lead| self.places.get(lead)) else { return Choice::Unknown };
        let is_home = place.advertises(self.home_prefix());
        let usable = |heard: &&Heard| self.is_usable(now, heard) && !is_home;
        let heard = place.maps(now).filter(usable);
        // Lazy in releasing what is there (section 9).
        let current = self.current.as_ref().map(|current| current.map);
        let kept = heard.clone().find(|heard| Some(heard.option.address) == current);
        let chosen = kept.or_else(|| heard.max_by_key(|heard| self.rank(heard)));
        let index = chosen.and_then(|heard| {
            let is_it = |known: &super::Candidate| known.association.address == heard.option.address;
            Some((self.candidates.iter().position(is_it)?, heard.until))
        });
        match index {
            Some((index, until)) => Choice::Map(index, until),
            None if self.home.can_attach(place.config.id) => Choice::None,
            None => Choice::Unknown,
        }
    }

    fn is_usable(&self, now: Instant, heard: &Heard) -> bool {
        let option = &heard.option;
        let is_it = |known: &&super::Candidate| known.association.address == option.address;
        let Some(candidate) = self.candidates.iter().find(is_it) else { return false };
        let in_use = self.current.as_ref().is_some_and(|current| current.map == option.address);
        let has_address = !option.allocates_address || candidate.association.regional_address.is_some();
        let prefix = candidate.association.prefix();
        // On its own link the regional care-of address would be the one of the link.
        let is_elsewhere = !self.places.iter().any(|place| place.advertises(prefix));
        // Section 7.1: with preference 0 existing bindings are kept, and no new ones made.
        let is_offered = option.preference > 0 || in_use;
        let is_barred = candidate.barred_until.is_some_and(|until| until > now);
        has_address && is_elsewhere && is_offered && !is_barred
    }

    fn rank(&self, heard: &Heard) -> (u8, u8, Reverse<Ipv6Addr>) {
        let MapOption { distance, preference, address, .. } = heard.option;
        let (first, second) = match self.selection {
            MapSelection::Furthest => (distance, preference),
            MapSelection::HighestPreference => (preference, distance),
            MapSelection::Nearest => (MapOption::MAX.saturating_sub(distance), preference),
        };
        (first, second, Reverse(address))
    }
}
