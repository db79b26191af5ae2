//! How a mobile node is attached to an interface's link, and what it holds there.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::ipv6::is_unicast_routable;

use super::config::InterfaceConfig;
use super::registration::Pending;
use crate::PathProperties;
use crate::path_watch::WatchedPath;
use crate::v6::dual_stack::is_ipv4_care_of;
use crate::v6::{InterfaceAddress, Prefix};

/// Routers, prefixes of each, and addresses remembered on one link. There are hardly ever more than two; the bound is for liars.
const MAX_ROUTERS: usize = 8;
const MAX_PREFIXES: usize = 8;
const MAX_ADDRESSES: usize = 8;
/// A care-of address with less time left is not registered any more: its lifetime would be none.
const LEAST_VALIDITY: Duration = Duration::from_secs(4);

/// A point of attachment: by what a registration would be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// On the home link.
    Home,
    /// On another one, with this care-of address.
    Away {
        /// The address.
        care_of: Ipv6Addr,
    },
}

impl Attachment {
    /// The care-of address; none at home.
    pub(super) const fn care_of(self) -> Option<Ipv6Addr> {
        match self {
            Self::Home => None,
            Self::Away { care_of } => Some(care_of),
        }
    }
}

/// What the home agent has granted for an interface, as far as the node knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) attachment: Attachment,
    /// Whose binding it is.
    pub(super) home_agent: Ipv6Addr,
    /// The update that was accepted, [`super::registration::Sent::ordinal`].
    pub(super) ordinal: u64,
    pub(super) renew_at: Instant,
    pub(super) expires: Instant,
}

#[derive(Debug)]
struct Router {
    address: Ipv6Addr,
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Copy, Debug)]
struct Address {
    address: Ipv6Addr,
    prefix: Prefix,
    expires: Instant,
}

/// An interface and everything known about it.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(super) config: InterfaceConfig,
    pub(super) up: bool,
    pub(super) path: PathProperties,
    /// The least round trip to the home agent that was given or measured here.
    pub(super) least_round_trip: Option<Duration>,
    routers: Vec<Router>,
    /// A router was heard since the link came up: what no router advertises is of another link.
    is_routed: bool,
    /// The newest last.
    addresses: Vec<Address>,
    /// An IPv6 address by which nobody answers, while there is one of IPv4.
    silent: Option<Ipv6Addr>,
    pub(super) held: Option<Held>,
    pub(super) pending: Option<Pending>,
    /// The last update that was sent to register it, [`super::registration::Sent::ordinal`].
    pub(super) last_sent: u64,
    /// Register again although nothing has changed here: the home agent may have forgotten.
    pub(super) refresh: bool,
    /// When the link was last lost, unless an update sent since then was accepted here.
    pub(super) interrupted: Option<Instant>,
    /// A registration here was refused; not again at this point of attachment before then.
    pub(super) blocked: Option<(Attachment, Instant)>,
    /// Refusals in a row, each of which doubles the next wait.
    pub(super) refusals: u32,
    /// Since when it could have been used.
    pub(super) viable_since: Option<Instant>,
    /// Watches the path through it.
    pub(super) watch: WatchedPath<Ipv6Addr>,
}

impl Interface {
    pub(super) fn new(config: InterfaceConfig, believes_link: bool) -> Self {
        Self {
            // Without the link layer's word every link counts as up.
            up: config.up || !believes_link,
            path: config.path,
            least_round_trip: config.path.round_trip,
            config,
            routers: Vec::new(),
            is_routed: false,
            addresses: Vec::new(),
            silent: None,
            held: None,
            pending: None,
            last_sent: 0,
            refresh: false,
            interrupted: None,
            blocked: None,
            refusals: 0,
            viable_since: None,
            watch: WatchedPath::default(),
        }
    }

    /// An update was acknowledged after this time.
    pub(super) fn measured(&mut self, round_trip: Duration) {
        self.path.round_trip = Some(round_trip);
        self.least_round_trip = Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// What is known of the path, for others: with the least round trip of late, if probes have measured it, for that of an update
    /// may have stood behind a queue.
    pub(super) fn known_path(&self) -> PathProperties {
        PathProperties {
            round_trip: self.watch.record.least_round_trip().or(self.path.round_trip),
            ..self.path
        }
    }

    /// Takes in what a router advertises; false when there is no room for it.
    pub(super) fn router_found(&mut self, address: Ipv6Addr, prefixes: &[Prefix]) -> bool {
        let prefixes = prefixes.iter().copied().take(MAX_PREFIXES).collect();
        if let Some(known) = self.routers.iter_mut().find(|router| router.address == address) {
            known.prefixes = prefixes;
        } else if self.routers.len() < MAX_ROUTERS {
            self.routers.push(Router { address, prefixes });
        } else {
            return false;
        }
        self.is_routed = true;
        true
    }

    pub(super) fn router_lost(&mut self, address: Ipv6Addr) {
        self.routers.retain(|router| router.address != address);
    }

    /// Where the link comes up again need not be where it was.
    pub(super) fn link_lost(&mut self) {
        self.routers.clear();
        self.is_routed = false;
        self.silent = None;
    }

    /// Takes in an address; false when there is no room for it, or it can be no care-of address.
    pub(super) fn address_added(&mut self, now: Instant, added: InterfaceAddress) -> bool {
        let InterfaceAddress { address, prefix, valid_for } = added;
        if !is_unicast_routable(address) && !is_ipv4_care_of(address) {
            return false;
        }
        let expires = valid_for.map_or(Instant::MAX, |span| now + span);
        if let Some(known) = self.addresses.iter_mut().find(|known| known.address == address) {
            *known = Address { address, prefix, expires };
            return true;
        }
        if self.addresses.len() >= MAX_ADDRESSES {
            return false;
        }
        self.addresses.push(Address { address, prefix, expires });
        true
    }

    pub(super) fn address_removed(&mut self, address: Ipv6Addr) {
        self.addresses.retain(|known| known.address != address);
        self.silent = self.silent.filter(|silent| *silent != address);
    }

    /// Whether it has this address, with a router or without.
    pub(super) fn has(&self, address: Ipv6Addr) -> bool {
        self.addresses.iter().any(|known| known.address == address)
    }

    /// Nobody answers by `care_of`, or it is refused: one of IPv6 gives way to IPv4 from now on, where there is that (RFC 5555 section
    /// 4.4.1), and one of IPv4 to IPv6, which may be heard again. Returns what [`attachment`](Self::attachment) passed over before.
    pub(super) fn pass_over(&mut self, care_of: Ipv6Addr) -> Option<Ipv6Addr> {
        let is_ipv6 = care_of.to_ipv4_mapped().is_none();
        core::mem::replace(&mut self.silent, is_ipv6.then_some(care_of))
    }

    /// Takes [`pass_over`](Self::pass_over) back.
    pub(super) const fn undo_pass_over(&mut self, before: Option<Ipv6Addr>) {
        self.silent = before;
    }

    /// Where a registration would be made now; `None` when there is nothing to register with.
    pub(super) fn attachment(
        &self,
        now: Instant,
        home_address: Ipv6Addr,
        home_prefix: Prefix,
        eager: bool,
    ) -> Option<Attachment> {
        if !self.up {
            return None;
        }
        // Section 11.5.2.
        if self.routers.iter().any(|router| router.prefixes.contains(&home_prefix)) {
            return Some(Attachment::Home);
        }
        let usable = |known: &&Address| {
            let is_there = is_ipv4(known) || !self.is_routed || self.advertises(known.prefix);
            is_there && lasts(now, known) && known.address != home_address
        };
        let has_ipv4 = self.addresses.iter().any(|known| is_ipv4(known) && usable(&known));
        let is_silent = |known: &Address| has_ipv4 && self.silent == Some(known.address);
        let usable = |known: &&Address| usable(known) && !is_silent(known);
        // IPv6 is preferred (RFC 5555 section 4.4.1).
        let has_ipv6 = self.addresses.iter().any(|known| !is_ipv4(known) && usable(&known));
        let usable = |known: &&Address| usable(known) && !(has_ipv6 && is_ipv4(known));
        let current = self.pending.as_ref().map(|pending| pending.attachment);
        let current = current.or(self.held.map(|held| held.attachment)).and_then(Attachment::care_of);
        let kept = self.addresses.iter().find(|known| !eager && Some(known.address) == current);
        let newest = || self.addresses.iter().rev().find(usable);
        let care_of = kept.filter(usable).or_else(newest)?.address;
        Some(Attachment::Away { care_of })
    }

    /// Whether a router was heard since the link came up.
    pub(super) const fn is_routed(&self) -> bool {
        self.is_routed
    }

    fn advertises(&self, prefix: Prefix) -> bool {
        self.routers.iter().any(|router| router.prefixes.contains(&prefix))
    }

    /// When `address` is no longer valid.
    pub(super) fn end_of(&self, address: Ipv6Addr) -> Instant {
        let known = self.addresses.iter().find(|known| known.address == address);
        known.map_or(Instant::MAX, |known| known.expires)
    }

    /// When the next address can no longer be registered, after `now`.
    pub(super) fn address_deadline(&self, now: Instant) -> Option<Instant> {
        let ends = self.addresses.iter().filter(|known| known.expires < Instant::MAX);
        ends.map(|known| known.expires.saturating_sub(LEAST_VALIDITY)).filter(|&at| at > now).min()
    }

    /// The first hop from `address`: a router that advertises its prefix, or any.
    pub(super) fn router(&self, address: Ipv6Addr) -> Option<Ipv6Addr> {
        let prefix = self.addresses.iter().find(|known| known.address == address).map(|known| known.prefix);
        let advertises = |router: &&Router| prefix.is_some_and(|prefix| router.prefixes.contains(&prefix));
        let router = self.routers.iter().find(advertises).or(self.routers.first());
        router.map(|router| router.address)
    }
}

fn is_ipv4(known: &Address) -> bool {
    known.address.to_ipv4_mapped().is_some()
}

fn lasts(now: Instant, known: &Address) -> bool {
    known.expires == Instant::MAX || known.expires > now + LEAST_VALIDITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterfaceId;

    const HOME_PREFIX: Prefix = Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0), 64);
    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

    fn address(network: u16) -> InterfaceAddress {
        let address = Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 7);
        InterfaceAddress { address, prefix: Prefix::new(address, 64), valid_for: None }
    }

    fn router(host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host)
    }

    fn interface() -> Interface {
        Interface::new(InterfaceConfig { up: true, ..InterfaceConfig::new(InterfaceId(0)) }, true)
    }

    fn care_of(interface: &Interface, now: Instant, eager: bool) -> Option<u16> {
        let attachment = interface.attachment(now, HOME, HOME_PREFIX, eager)?;
        attachment.care_of().map(|address| address.segments()[2])
    }

    fn hold(interface: &mut Interface, network: u16) {
        let attachment = Attachment::Away { care_of: address(network).address };
        let (renew_at, expires) = (Instant::MAX, Instant::MAX);
        interface.held = Some(Held { attachment, home_agent: HOME, ordinal: 1, renew_at, expires });
    }

    /// RFC 6275 section 11.5.1: as long as its router is reachable the old address is kept.
    #[test]
    fn who_is_not_eager_keeps_the_address_whose_router_is_there() {
        let mut interface = interface();
        interface.router_found(router(2), &[address(2).prefix]);
        interface.address_added(Instant::ZERO, address(2));
        hold(&mut interface, 2);
        interface.router_found(router(3), &[address(3).prefix]);
        interface.address_added(Instant::ZERO, address(3));
        assert_eq!(care_of(&interface, Instant::ZERO, false), Some(2));
        assert_eq!(care_of(&interface, Instant::ZERO, true), Some(3));
        interface.router_lost(router(2));
        assert_eq!(care_of(&interface, Instant::ZERO, false), Some(3));
    }

    /// RFC 6275 section 11.5.4: an address of whose prefix no router is reachable is not registered.
    #[test]
    fn an_address_without_its_router_is_none() {
        let mut interface = interface();
        interface.address_added(Instant::ZERO, address(2));
        assert_eq!(care_of(&interface, Instant::ZERO, false), Some(2), "nobody has heard a router");
        interface.router_found(router(2), &[address(2).prefix]);
        interface.router_lost(router(2));
        assert_eq!(care_of(&interface, Instant::ZERO, false), None);
    }

    /// RFC 6275 section 11.5.2: the home prefix on the link says that it is the home link.
    #[test]
    fn the_home_prefix_on_the_link_is_home() {
        let mut interface = interface();
        interface.address_added(Instant::ZERO, address(2));
        interface.router_found(router(1), &[address(2).prefix, HOME_PREFIX]);
        let attachment = interface.attachment(Instant::ZERO, HOME, HOME_PREFIX, false);
        assert_eq!(attachment, Some(Attachment::Home));
    }

    #[test]
    fn an_address_is_not_registered_for_the_last_seconds_of_its_life() {
        let mut interface = interface();
        let valid_for = Some(Duration::from_secs(60));
        interface.address_added(Instant::ZERO, InterfaceAddress { valid_for, ..address(2) });
        let end = Instant::from_secs(56);
        assert_eq!(interface.address_deadline(Instant::ZERO), Some(end));
        assert_eq!(care_of(&interface, Instant::from_millis(55_999), false), Some(2));
        assert_eq!(care_of(&interface, end, false), None);
        assert_eq!(interface.address_deadline(end), None);
    }

    #[test]
    fn a_thousand_invented_routers_and_addresses_take_the_room_of_a_few() {
        let mut interface = interface();
        for n in 0..1000 {
            let many: Vec<_> = (0..1000).map(|n| address(n).prefix).collect();
            interface.router_found(router(n), &many);
            interface.address_added(Instant::ZERO, address(n));
        }
        assert_eq!((interface.routers.len(), interface.addresses.len()), (MAX_ROUTERS, MAX_ADDRESSES));
        assert!(interface.routers.iter().all(|router| router.prefixes.len() <= MAX_PREFIXES));
    }
}
