//! How the registrations of a hierarchical mobile node follow what it finds: with whom each is made, and what each is told.

use core::net::Ipv6Addr;

use careof_base::Instant;

use super::regional::Regional;
use super::selection::Choice;
use super::{HierarchicalMobileNode, REGIONAL};
use crate::Notice;
use crate::v6::{Input, InterfaceAddress};

/// Rounds in which everything comes to rest: each ends, or begins, the use of a mobility anchor point, and there are few.
const MAX_ROUNDS: usize = 16;

impl HierarchicalMobileNode {
    /// Brings all registrations in line with what is known. Called after everything that could have changed it.
    pub(super) fn settle(&mut self, now: Instant) {
        for _ in 0..MAX_ROUNDS {
            self.arrange(now);
            if !self.absorb(now) {
                break;
            }
        }
        self.finish_course(now);
    }

    fn arrange(&mut self, now: Instant) {
        if self.left {
            self.take_leave(now);
        } else {
            self.choose_interface(now);
            match self.choose_map(now) {
                Choice::Map(index, until) => self.use_map(now, index, until),
                Choice::None => self.use_link(now),
                Choice::Unknown => {}
            }
        }
        self.tell_regional(now);
    }

    /// The service has ended: the mobility anchor point is asked to forget its binding when the home agent has, whose answer comes
    /// through it.
    fn take_leave(&mut self, now: Instant) {
        if self.home.is_registered() {
            return;
        }
        self.forget_previous();
        let Some(current) = &mut self.current else { return };
        // A second time it does nothing.
        current.node.deregister(now);
        if !current.node.is_registered() {
            self.forget_current();
        }
    }

    /// Uses a mobility anchor point, on the leading interface.
    fn use_map(&mut self, now: Instant, index: usize, until: Instant) {
        let Some(lead) = self.lead_id() else { return };
        let notice = self.why.map_or(Notice::None, |(notice, _)| notice);
        if self.current.as_ref().is_none_or(|current| current.index != index) {
            let returns = self.previous.take_if(|previous| previous.index == index);
            self.retire_current(now);
            self.current = match returns {
                Some(mut regional) => {
                    regional.resume(self.template.lifetime);
                    Some(regional)
                }
                None => {
                    let Some(candidate) = self.candidates.get(index) else { return };
                    let random = self.random.branch();
                    Regional::new(now, (index, candidate), &self.template, &self.places, random)
                }
            };
        }
        if let Some(current) = &mut self.current {
            current.node.set_home_prefix_end(until);
        }
        for regional in self.current.iter_mut().chain(&mut self.previous) {
            regional.follow(now, lead, notice);
        }
        self.lead_home_to(now, REGIONAL, notice);
    }

    /// Uses no mobility anchor point: the home agent is told of the address of the leading interface.
    fn use_link(&mut self, now: Instant) {
        let Some(lead) = self.lead_id() else { return };
        let notice = self.why.map_or(Notice::None, |(notice, _)| notice);
        self.retire_current(now);
        if let Some(previous) = &mut self.previous {
            previous.follow(now, lead, notice);
        }
        self.lead_home_to(now, lead, notice);
    }

    fn lead_home_to(&mut self, now: Instant, interface: crate::InterfaceId, notice: Notice) {
        if core::mem::take(&mut self.is_home_stale) || self.home_on != Some(interface) {
            self.home_on = Some(interface);
            // It has all interfaces, and one more.
            let _ = self.home.switch_to(now, interface, notice);
        }
    }

    /// The mobility anchor point in use is one no longer; where it has a binding, it sends packets on for a while (section 6.1).
    fn retire_current(&mut self, now: Instant) {
        let Some(mut current) = self.current.take() else { return };
        self.leave(&current);
        let Some(span) = self.forwarding.filter(|_| current.binding_end(now).is_some()) else { return };
        self.forget_previous();
        current.retire(now, now + span);
        self.previous = Some(current);
    }

    pub(super) fn forget_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.leave(&current);
        }
    }

    pub(super) fn forget_previous(&mut self) {
        if let Some(previous) = self.previous.take() {
            self.leave(&previous);
        }
    }

    fn leave(&mut self, regional: &Regional) {
        if let Some(candidate) = self.candidates.get_mut(regional.index) {
            regional.leave(candidate);
        }
    }

    /// The mobility anchor point in use does not do what it should: it is left, for a while.
    pub(super) fn fail_map(&mut self, now: Instant) {
        let index = self.current.as_ref().map(|current| current.index);
        if let Some(candidate) = index.and_then(|index| self.candidates.get_mut(index)) {
            candidate.fail(now);
        }
        self.forget_current();
    }

    /// Tells the registration with the home agent which regional care-of address there is, for how long, and whether packets get there.
    /// It does not outlive the binding at the mobility anchor point, and so nothing does that is bound to it (section 6.1).
    fn tell_regional(&mut self, now: Instant) {
        let bound = |regional: &Regional| Some((regional.regional, regional.binding_end(now)?));
        let of_current = self.current.as_ref().and_then(bound);
        // That of before serves until there is the new one.
        let before = self.told.map(|(regional, _)| regional);
        let kept = self.previous.as_ref().and_then(bound).filter(|(regional, _)| Some(*regional) == before);
        let wanted = of_current.or(kept);
        if wanted != self.told {
            let told = core::mem::replace(&mut self.told, wanted);
            if let Some((address, end)) = wanted {
                self.add_regional(now, address, end);
            }
            let gone =
                told.map(|(address, _)| address).filter(|old| wanted.is_none_or(|(new, _)| new != *old));
            if let Some(address) = gone {
                self.home.handle_input(now, Input::AddressRemoved { interface: REGIONAL, address });
            }
        }
        let carried = self.carrier().is_some_and(|carrier| carrier.way().is_some());
        if carried != core::mem::replace(&mut self.carried, carried) {
            let interface = REGIONAL;
            let input = if carried { Input::LinkUp { interface } } else { Input::LinkDown { interface } };
            self.home.handle_input(now, input);
        }
    }

    fn add_regional(&mut self, now: Instant, address: Ipv6Addr, end: Instant) {
        let prefix = self.carrier().and_then(|carrier| self.candidates.get(carrier.index));
        let Some(prefix) = prefix.map(|candidate| candidate.association.prefix()) else { return };
        let valid_for = (end < Instant::MAX).then(|| end.saturating_duration_since(now));
        let address = InterfaceAddress { address, prefix, valid_for };
        self.home.handle_input(now, Input::AddressAdded { interface: REGIONAL, address });
    }
}
