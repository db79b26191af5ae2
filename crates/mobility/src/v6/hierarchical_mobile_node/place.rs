//! Where an interface of a hierarchical mobile node is: what routers there say, and the addresses it has.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::icmpv6::MapOption;

use crate::v6::{Input, InterfaceAddress, InterfaceConfig, MobileNode, Prefix};

/// Routers, prefixes of each, and addresses remembered on one link; the bound is for liars.
const MAX_ROUTERS: usize = 8;
const MAX_PREFIXES: usize = 8;
const MAX_ADDRESSES: usize = 8;

/// A mobility anchor point as a router told of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) option: MapOption,
    /// When its lifetime ends.
    pub(super) until: Instant,
}

#[derive(Debug)]
struct Router {
    address: Ipv6Addr,
    prefixes: Vec<Prefix>,
    maps: Vec<Heard>,
}

/// An interface of the node and what is known of its link.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) config: InterfaceConfig,
    believes_link: bool,
    pub(super) up: bool,
    routers: Vec<Router>,
    addresses: Vec<(InterfaceAddress, Instant)>,
    /// Since when it could have been used.
    pub(super) viable_since: Option<Instant>,
    /// A handover to it has failed: it is not chosen again before then.
    pub(super) avoided_until: Option<Instant>,
}

impl Place {
    pub(super) fn new(config: InterfaceConfig, believes_link: bool) -> Self {
        let (routers, addresses) = (Vec::new(), Vec::new());
        let up = config.up || !believes_link;
        Self { config, believes_link, up, routers, addresses, viable_since: None, avoided_until: None }
    }

    pub(super) fn link(&mut self, up: bool) {
        if !self.believes_link {
            return;
        }
        self.up = up;
        if up {
            self.avoided_until = None;
        } else {
            self.routers.clear();
        }
    }

    pub(super) fn router_found(&mut self, address: Ipv6Addr, prefixes: &[Prefix]) {
        let prefixes = prefixes.iter().copied().take(MAX_PREFIXES).collect();
        if let Some(known) = self.routers.iter_mut().find(|router| router.address == address) {
            known.prefixes = prefixes;
        } else if self.routers.len() < MAX_ROUTERS {
            // Of those that find no room the registrations, which see the same, tell.
            self.routers.push(Router { address, prefixes, maps: Vec::new() });
        }
    }

    pub(super) fn router_lost(&mut self, address: Ipv6Addr) {
        self.routers.retain(|router| router.address != address);
    }

    pub(super) fn address_added(&mut self, now: Instant, added: InterfaceAddress) {
        let end = added.valid_for.map_or(Instant::MAX, |span| now + span);
        if let Some(known) = self.addresses.iter_mut().find(|(known, _)| known.address == added.address) {
            *known = (added, end);
        } else if self.addresses.len() < MAX_ADDRESSES {
            self.addresses.push((added, end));
        }
    }

    pub(super) fn address_removed(&mut self, address: Ipv6Addr) {
        self.addresses.retain(|(known, _)| known.address != address);
    }

    /// Takes in what `router` says of one mobility anchor point that the node may use. One that has failed is forgotten, whoever told of
    /// it (RFC 5380 section 7.1). False: the router is not known.
    pub(super) fn map_heard(&mut self, now: Instant, router: Ipv6Addr, option: MapOption) -> bool {
        let Some(at) = self.routers.iter().position(|known| known.address == router) else { return false };
        if option.valid_lifetime.as_secs() == 0 {
            let others = |heard: &Heard| heard.option.address != option.address;
            self.routers.iter_mut().for_each(|router| router.maps.retain(others));
            return true;
        }
        let until = option.valid_lifetime.duration().map_or(Instant::MAX, |span| now + span);
        if let Some(router) = self.routers.get_mut(at) {
            // As many as there are in the configuration.
            router.maps.retain(|heard| heard.option.address != option.address);
            router.maps.push(Heard { option, until });
        }
        true
    }

    /// The mobility anchor points that routers here tell of.
    pub(super) fn maps(&self, now: Instant) -> impl Iterator<Item = &Heard> + Clone {
        self.routers.iter().flat_map(|router| &router.maps).filter(move |heard| heard.until > now)
    }

    /// When the next of them is no longer valid.
    pub(super) fn map_deadline(&self, now: Instant) -> Option<Instant> {
        self.maps(now).map(|heard| heard.until).filter(|&until| until < Instant::MAX).min()
    }

    /// Whether a router here advertises `prefix`.
    pub(super) fn advertises(&self, prefix: Prefix) -> bool {
        self.routers.iter().any(|router| router.prefixes.contains(&prefix))
    }

    /// Tells a node that comes to know the interface all of this.
    pub(super) fn introduce(&self, now: Instant, node: &mut MobileNode) {
        let interface = self.config.id;
        if self.up && self.believes_link {
            node.handle_input(now, Input::LinkUp { interface });
        }
        for Router { address: router, prefixes, .. } in &self.routers {
            node.handle_input(now, Input::RouterFound { interface, router: *router, prefixes });
        }
        for &(address, end) in self.addresses.iter().filter(|(_, end)| *end > now) {
            let valid_for = (end < Instant::MAX).then(|| end.saturating_duration_since(now));
            let address = InterfaceAddress { valid_for, ..address };
            node.handle_input(now, Input::AddressAdded { interface, address });
        }
    }
}
