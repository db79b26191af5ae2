//! What a home agent must remember across a restart, and how it goes on from there.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_wire::mip6::{BindingId, Lifetime, SequenceNumber};

use super::{HomeAgent, HomeRegistration};
use crate::v6::BindingChanged;
use crate::{Change, NtpTime};

/// One binding, in terms that outlive the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeRegistrationRecord {
    /// The IPv4 home address, if that is bound, too.
    pub ipv4_home_address: Option<Ipv4Addr>,
    /// Where the packets go; IPv4-mapped where that is an IPv4 address.
    pub care_of: Ipv6Addr,
    /// Its name among several (RFC 5648).
    pub id: Option<BindingId>,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends, by the home agent's clock.
    pub expires: NtpTime,
    /// The sequence number of the update that made it.
    pub sequence: SequenceNumber,
    /// L.
    pub link_local: bool,
}

/// Everything a home agent must remember of a mobile node so that, started again, it carries on: bindings, or its connections break,
/// and what tells fresh updates from old ones, or what it once accepted can be replayed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNodeRecord {
    /// Which mobile node.
    pub home_address: Ipv6Addr,
    /// Its bindings.
    pub bindings: Vec<HomeRegistrationRecord>,
    /// The sequence number of the last update accepted, as long as it counts.
    pub sequence: Option<SequenceNumber>,
    /// The latest timestamp accepted.
    pub latest: Option<NtpTime>,
}

impl HomeAgent {
    /// What must be remembered of `home_address` across a restart; `None` when it is not served here. An owner that must survive a
    /// crash writes it down when a binding has changed or an update was received, before it sends what `poll_transmit` returned.
    #[must_use]
    pub fn record(&self, now: Instant, home_address: Ipv6Addr) -> Option<MobileNodeRecord> {
        let node = self.nodes.get(&home_address)?;
        let clock = self.config.clock.at(now);
        let bindings = self.bindings.of(home_address).iter().map(|binding| HomeRegistrationRecord {
            ipv4_home_address: binding.ipv4_home_address,
            care_of: binding.care_of,
            id: binding.id,
            lifetime: binding.lifetime,
            expires: clock.later(binding.expires.saturating_duration_since(now)),
            sequence: binding.sequence,
            link_local: binding.link_local,
        });
        Some(MobileNodeRecord {
            home_address,
            bindings: bindings.collect(),
            sequence: self.bindings.last_sequence(home_address),
            latest: node.latest,
        })
    }

    /// Takes back what [`HomeAgent::record`] gave before a restart. Bindings whose lifetime has ended meanwhile are left out, and so is what
    /// the configuration no longer allows. Returns whether the mobile node is served here.
    pub fn restore(&mut self, now: Instant, record: &MobileNodeRecord) -> bool {
        self.outbox.called_at(now);
        let home_address = record.home_address;
        let Some(node) = self.nodes.get_mut(&home_address) else { return false };
        let ipv4_home = node.ipv4_home_address;
        if let Some(saved) = record.latest {
            node.latest = Some(node.latest.map_or(saved, |latest| latest.later_of(saved)));
        }
        let clock = self.config.clock.at(now);
        // Who may no longer register has nothing to keep either.
        let kept = if node.permitted { self.config.max_bindings_per_node } else { 0 };
        let was_away = !self.bindings.of(home_address).is_empty();
        let end = self.prefixes.left_of(now, home_address).map_or(now, |(valid, _)| now + valid);
        for saved in record.bindings.iter().take(kept) {
            // At most what was granted, wherever the clock has gone meanwhile.
            let Some(left) = saved.expires.after(clock) else { continue };
            let expires = (now + left.min(saved.lifetime.duration())).min(end);
            let is_full = self.bindings.len() >= self.config.max_bindings;
            if expires <= now || is_full || !self.can_be_care_of(saved.care_of) {
                continue;
            }
            let registration = HomeRegistration {
                home_address,
                ipv4_home_address: saved.ipv4_home_address.filter(|saved| ipv4_home == Some(*saved)),
                care_of: saved.care_of,
                id: saved.id,
                lifetime: saved.lifetime,
                expires,
                sequence: saved.sequence,
                link_local: saved.link_local,
                path: None,
            };
            for change in self.bindings.insert(registration, saved.id.is_some()) {
                self.tell(BindingChanged { change: Change::Created, ..change });
            }
            if saved.link_local {
                self.link_local.insert(home_address);
            }
        }
        let is_away = !self.bindings.of(home_address).is_empty();
        if is_away && !was_away {
            // The home address was unique when it was registered, and has been defended since.
            let link_local = self.link_local.contains(&home_address);
            self.defended(home_address, link_local).for_each(|address| self.proxy(address, true));
        }
        if let Some(sequence) = record.sequence {
            if is_away {
                self.bindings.accept_sequence(home_address, sequence);
            } else {
                let until = now + super::registration::DELETED_FOR;
                self.bindings.mark_deleted(home_address, sequence, until);
            }
        }
        true
    }
}
