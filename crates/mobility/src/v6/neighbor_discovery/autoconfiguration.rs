//! Stateless address autoconfiguration: the addresses of an interface and their lifetimes (RFC 4862).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{PrefixInformation, PrefixLifetime};

use super::duplicate_address_detection::Detection;
use super::optimistic::{AddressState, AddressUse, permits};
use crate::v6::Prefix;

/// A valid lifetime that is cut by who may be anybody is not cut below this (RFC 4862 section 5.5.3 (e)).
const TWO_HOURS: Duration = Duration::from_secs(2 * 3600);

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressOrigin {
    /// Link-local, formed when the interface came up (RFC 4862 section 5.3).
    LinkLocal,
    /// Formed of a prefix that a router advertises (RFC 4862 section 5.5).
    Autoconfigured,
    /// Given by the owner.
    Configured,
    /// Not the node's own: only its uniqueness is asked for.
    Probed,
}

/// An address of an interface.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) address: Ipv6Addr,
    pub(super) prefix: Prefix,
    pub(super) origin: AddressOrigin,
    /// The detection under way.
    pub(super) detection: Option<Detection>,
    /// Whether it is used during detection.
    pub(super) optimistic: bool,
    /// When it becomes invalid; `None`: never.
    pub(super) valid_until: Option<Instant>,
    /// When it becomes deprecated; `None`: never.
    pub(super) preferred_until: Option<Instant>,
    /// The end of validity that the owner knows of.
    pub(super) told_valid_until: Option<Option<Instant>>,
    /// Whether the owner knows that it is deprecated.
    pub(super) told_deprecated: bool,
    /// Addresses with this prefix that others had.
    pub(super) dad_counter: u8,
}

impl Entry {
    pub(super) fn state(&self, now: Instant) -> AddressState {
        match (&self.detection, self.optimistic) {
            (Some(_), true) => AddressState::Optimistic,
            (Some(_), false) => AddressState::Tentative,
            (None, _) if self.preferred_until.is_some_and(|until| until <= now) => AddressState::Deprecated,
            (None, _) => AddressState::Preferred,
        }
    }

    pub(super) fn permits(&self, now: Instant, what: AddressUse) -> bool {
        self.origin != AddressOrigin::Probed && permits(self.state(now), what)
    }

    /// Takes the lifetimes of a prefix information option (RFC 4862 section 5.5.3 (e)).
    pub(super) fn set_lifetimes(&mut self, now: Instant, prefix: &PrefixInformation) {
        let remaining = self.valid_until.map(|until| until - now);
        if let Some(valid) = valid_lifetime(remaining, prefix.valid_lifetime) {
            self.valid_until = valid.map(|lifetime| now + lifetime);
        }
        self.preferred_until = prefix.preferred_lifetime.duration().map(|lifetime| now + lifetime);
        self.told_deprecated &= self.preferred_until.is_some_and(|until| until <= now);
    }

    /// Whether the owner should know of a new end of validity: it is earlier than the one that it knows of, or so much later that
    /// less than half of what it knows of is left. Advertisements come often, and move the end a little each time.
    pub(super) fn lifetime_is_news(&self, now: Instant) -> bool {
        match (self.told_valid_until, self.valid_until) {
            (None, _) => true,
            (Some(None), None) => false,
            (Some(Some(_)), None) | (Some(None), Some(_)) => true,
            (Some(Some(told)), Some(until)) => until < told || (told - now) * 2 < until - now,
        }
    }

    fn next_timeout(&self) -> Option<(Instant, bool)> {
        // Of one that the owner does not know yet, deprecation is told when it does.
        let is_used = self.detection.is_none() || self.optimistic;
        let deprecated = (is_used && !self.told_deprecated).then_some(self.preferred_until).flatten();
        let lifetime = self.valid_until.into_iter().chain(deprecated).min().map(|at| (at, false));
        let detection = self.detection.as_ref().map(|detection| (detection.deadline(), true));
        lifetime.into_iter().chain(detection).min()
    }
}

/// The valid lifetime of an address of which `remaining` is left, `None`: all, after an advertisement that is not authenticated said
/// `received` (RFC 4862 section 5.5.3 (e)): the new one, in which `None` is infinite; or `None` where it stays as it is.
fn valid_lifetime(remaining: Option<Duration>, received: PrefixLifetime) -> Option<Option<Duration>> {
    let Some(lifetime) = received.duration() else { return Some(None) };
    let grows = remaining.is_some_and(|remaining| lifetime > remaining);
    if lifetime > TWO_HOURS || grows {
        Some(Some(lifetime))
    } else if remaining.is_some_and(|remaining| remaining <= TWO_HOURS) {
        None
    } else {
        Some(Some(TWO_HOURS))
    }
}

/// Whether a host may form an address of the prefix (RFC 4862 section 5.5.3 (a) to (d)). The length is checked when it does.
pub(super) fn is_for_autoconfiguration(prefix: &PrefixInformation) -> bool {
    prefix.autonomous
        && !prefix.prefix.is_unicast_link_local()
        && !prefix.prefix.is_multicast()
        && prefix.preferred_lifetime <= prefix.valid_lifetime
}

/// The addresses of an interface.
#[derive(Debug, Default)]
pub(super) struct AddressList {
    entries: Vec<Entry>,
}

impl AddressList {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn get_mut(&mut self, address: Ipv6Addr) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.address == address)
    }

    pub(super) fn get(&self, address: Ipv6Addr) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.address == address)
    }

    /// The addresses formed of `prefix`.
    pub(super) fn of_prefix(&mut self, prefix: Prefix) -> impl Iterator<Item = &mut Entry> {
        let autoconfigured =
            move |entry: &&mut Entry| entry.origin == AddressOrigin::Autoconfigured && entry.prefix == prefix;
        self.entries.iter_mut().filter(autoconfigured)
    }

    /// How many addresses routers have made this node form.
    pub(super) fn autoconfigured(&self) -> usize {
        self.entries.iter().filter(|entry| entry.origin == AddressOrigin::Autoconfigured).count()
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn remove(&mut self, address: Ipv6Addr) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.address == address)?;
        Some(self.entries.remove(at))
    }

    /// Takes out all addresses that `gone` says are no more.
    pub(super) fn take(&mut self, gone: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries.extract_if(.., |entry| gone(entry)).collect()
    }

    /// The addresses that the owner believes to be assigned; it is to be told that they are not.
    pub(super) fn forget_told(&mut self) -> Vec<Ipv6Addr> {
        let told = self.entries.iter_mut().filter(|entry| entry.told_valid_until.is_some());
        told.map(|entry| {
            entry.told_valid_until = None;
            entry.address
        })
        .collect()
    }

    /// The address that link-local communication comes from.
    pub(super) fn link_local(&self, now: Instant, what: AddressUse) -> Option<Ipv6Addr> {
        let usable = |entry: &&Entry| entry.address.is_unicast_link_local() && entry.permits(now, what);
        self.entries.iter().find(usable).map(|entry| entry.address)
    }

    /// When something becomes due, and whether that is a detection.
    pub(super) fn next_timeout(&self) -> Option<(Instant, bool)> {
        self.entries.iter().filter_map(Entry::next_timeout).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u32) -> PrefixLifetime {
        PrefixLifetime::from_secs(seconds)
    }

    #[test]
    fn nobody_cuts_a_valid_lifetime_below_two_hours() {
        let left = |seconds: u64| Some(Duration::from_secs(seconds));
        let becomes = |seconds: u64| Some(left(seconds));
        for (remaining, received, expected) in [
            // 1: above two hours, or above what is left.
            (left(100_000), secs(7201), becomes(7201)),
            (left(60), secs(61), becomes(61)),
            (None, secs(7201), becomes(7201)),
            (left(60), PrefixLifetime::INFINITE, Some(None)),
            (None, PrefixLifetime::INFINITE, Some(None)),
            // 2: two hours or less are left.
            (left(7200), secs(7200), None),
            (left(7200), secs(0), None),
            (left(60), secs(60), None),
            // 3: otherwise two hours.
            (left(7201), secs(0), becomes(7200)),
            (left(100_000), secs(7200), becomes(7200)),
            (None, secs(0), becomes(7200)),
        ] {
            assert_eq!(valid_lifetime(remaining, received), expected, "{remaining:?} {received}");
        }
    }

    #[test]
    fn only_some_prefixes_make_addresses() {
        let good = PrefixInformation {
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            router_address: false,
            valid_lifetime: secs(100),
            preferred_lifetime: secs(100),
            prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        };
        assert!(is_for_autoconfiguration(&good));
        assert!(!is_for_autoconfiguration(&PrefixInformation { autonomous: false, ..good }));
        assert!(!is_for_autoconfiguration(&PrefixInformation { preferred_lifetime: secs(101), ..good }));
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        assert!(!is_for_autoconfiguration(&PrefixInformation { prefix: link_local, ..good }));
    }
}
