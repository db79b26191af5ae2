//! A mobile node as the part of a hierarchical one that registers with a mobility anchor point (RFC 5380 section 6.1), and what the
//! whole has to know of its parts.

use careof_base::{Instant, Randomness};
use careof_wire::mip6::{Lifetime, SequenceNumber, UpdateFlags};

use super::{MobileNode, MobileNodeConfig};
use crate::{ConfigError, InterfaceId};

impl MobileNode {
    /// One whose home address is a regional care-of address and whose home agent is a mobility anchor point. `last` is the number of the
    /// last update that was sent there, if that is known.
    pub(in crate::v6) fn local(
        now: Instant,
        config: MobileNodeConfig,
        random: Randomness,
        last: Option<SequenceNumber>,
    ) -> Result<Self, ConfigError> {
        let mut node = Self::new(now, config, random)?;
        node.is_local = true;
        node.sequence = last.unwrap_or(node.sequence);
        Ok(node)
    }

    /// The flag that says with whom an update registers.
    pub(super) const fn registration_flag(&self) -> UpdateFlags {
        if self.is_local { UpdateFlags::MAP_REGISTRATION } else { UpdateFlags::HOME_REGISTRATION }
    }

    /// The number of the last update sent.
    pub(in crate::v6) const fn last_sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// No binding outlives the home address, whose prefix is valid until `end`.
    pub(in crate::v6) const fn set_home_prefix_end(&mut self, end: Instant) {
        self.home_prefix_end = end;
    }

    /// The lifetime asked for from now on; not zero.
    pub(in crate::v6) fn set_lifetime(&mut self, lifetime: Lifetime) {
        self.config.lifetime = lifetime.max(Lifetime::from_units(1));
    }

    /// A registration through `interface` was refused for good.
    pub(in crate::v6) fn is_refused(&self, interface: InterfaceId) -> bool {
        let index = self.index(interface);
        index.and_then(|index| self.interfaces.get(index)).is_some_and(|known| known.blocked.is_some())
    }

    /// When the binding of the interface in use ends, wherever that interface is by now; `None` without one.
    pub(in crate::v6) fn binding_end(&self) -> Option<Instant> {
        self.interfaces.get(self.active?)?.held.map(|held| held.expires)
    }

    /// Whether a handover is under way.
    pub(in crate::v6) const fn is_moving(&self) -> bool {
        self.handover.is_some()
    }

    /// Whether `interface` is in use, and registered where it is attached now.
    pub(in crate::v6) fn is_settled_on(&self, interface: InterfaceId) -> bool {
        let Some(active) = self.active.filter(|active| self.id(*active) == Some(interface)) else {
            return false;
        };
        let held = self.interfaces.get(active).and_then(|interface| interface.held);
        let attachment = self.attachment(self.outbox.now(), active);
        self.handover.is_none() && held.is_some_and(|held| Some(held.attachment) == attachment)
    }

    /// Whether `interface` is in use and has its registration, which needs no other one, even if nothing comes through it for now.
    pub(in crate::v6) fn keeps(&self, interface: InterfaceId) -> bool {
        let Some(active) = self.active.filter(|active| self.id(*active) == Some(interface)) else {
            return false;
        };
        let is_outdated = self.interfaces.get(active).is_some_and(|interface| interface.refresh);
        self.handover.is_none()
            && !is_outdated
            && !self.is_outdone(active)
            && self.is_held_in_place(self.outbox.now(), active)
    }

    /// Whether there is something to register with on `interface`.
    pub(in crate::v6) fn can_attach(&self, interface: InterfaceId) -> bool {
        self.index(interface).is_some_and(|index| self.attachment(self.outbox.now(), index).is_some())
    }
}
