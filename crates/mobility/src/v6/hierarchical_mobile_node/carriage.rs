//! Packets in the tunnel between a hierarchical mobile node and its mobility anchor point.

use core::net::Ipv6Addr;

use careof_base::Instant;

use super::{HierarchicalMobileNode, REGIONAL};
use crate::InterfaceId;
use crate::v6::{Addresses, Delivery, DropReason, Input, Transmit};

/// Whose a packet is.
enum Receiver {
    Home(InterfaceId, Addresses),
    /// That of the registration with this mobility anchor point.
    Regional(Ipv6Addr),
}

/// The address that a packet of the mobile node's begins at, by its outermost header but that of the tunnel in question.
fn outer_source(addresses: &Addresses) -> Ipv6Addr {
    addresses.tunnel.map_or(addresses.source, |tunnel| tunnel.entry)
}

fn outer_destination(addresses: &Addresses) -> Ipv6Addr {
    addresses.tunnel.map_or(addresses.destination, |tunnel| tunnel.exit)
}

impl HierarchicalMobileNode {
    /// How to send a packet from the home address to `destination` now; `None`: there is no way. Cheap enough for every packet.
    #[must_use]
    pub fn delivery(&self, destination: Ipv6Addr) -> Option<Delivery> {
        let delivery = self.home.delivery(destination)?;
        if delivery.interface != REGIONAL {
            return Some(delivery);
        }
        let (interface, addresses, via) = self.through_map(delivery.addresses)?;
        Some(Delivery { interface, addresses, via })
    }

    /// How to send a packet from the regional care-of address itself to `destination`, which is kept only within the domain (RFC 5380
    /// section 6.5).
    #[must_use]
    pub fn regional_delivery(&self, destination: Ipv6Addr) -> Option<Delivery> {
        let (regional, _) = self.told?;
        let (interface, addresses, via) = self.through_map(Addresses::new(regional, destination))?;
        Some(Delivery { interface, addresses, via })
    }

    /// The regional care-of address that is bound.
    #[must_use]
    pub fn regional_address(&self) -> Option<Ipv6Addr> {
        self.told.map(|(regional, _)| regional)
    }

    /// The regional care-of address whose packets come in tunnels that begin at `entry`, where that is a mobility anchor point that the
    /// node is registered with, or was until lately.
    #[must_use]
    pub fn regional_behind(&self, entry: Ipv6Addr) -> Option<Ipv6Addr> {
        self.regionals().find(|known| known.map == entry).map(|known| known.regional)
    }

    /// A packet from a regional care-of address, in the tunnel to its mobility anchor point.
    fn through_map(&self, addresses: Addresses) -> Option<(InterfaceId, Addresses, Option<Ipv6Addr>)> {
        let source = outer_source(&addresses);
        let way = self.regionals().find(|known| known.regional == source)?.way()?;
        let addresses = match way.tunnel {
            Some(tunnel) => addresses.through_map(tunnel),
            None => addresses,
        };
        Some((way.interface, addresses, way.via))
    }

    pub(super) fn send_for_home(&mut self, transmit: Transmit) {
        let addresses = transmit.addresses;
        let source = outer_source(&addresses);
        let is_regional = transmit.interface == Some(REGIONAL)
            || transmit.interface.is_none() && self.regionals().any(|known| known.regional == source);
        if !is_regional {
            return self.outbox.transmit(transmit);
        }
        match self.through_map(addresses) {
            Some((interface, addresses, _)) => {
                self.outbox.transmit(Transmit { interface: Some(interface), addresses, ..transmit });
            }
            // It is sent again when there is a way.
            None => self.outbox.drop(DropReason::NoBinding, source),
        }
    }

    /// Whether packets that come through `interface` are taken.
    #[must_use]
    pub fn listens_on(&self, interface: InterfaceId) -> bool {
        interface != REGIONAL
            && (self.home.listens_on(interface)
                || self.regionals().any(|known| known.node.listens_on(interface)))
    }

    /// Whether a packet that came in tunnels is taken out of all of them. Mobility anchor points tunnel to regional care-of addresses only,
    /// and what is in another tunnel there comes from the home agent, so that neither can speak in the name of others (RFC 6275 section
    /// 11.3.3). The innermost destination is the home address or, without a tunnel of the home agent, a regional care-of address, to which
    /// a type 2 routing header for the home address can belong.
    #[must_use]
    pub fn accepts_tunnels(&self, addresses: &Addresses) -> bool {
        match self.split(addresses) {
            (Some(entry), inner) => self.takes_from_map(entry, &inner),
            (None, inner) => inner.tunnel.is_none_or(|tunnel| self.home.accepts_tunnel_from(tunnel.entry)),
        }
    }

    /// The entry of the tunnel from a mobility anchor point that the packet came in, and what was in it.
    fn split(&self, addresses: &Addresses) -> (Option<Ipv6Addr>, Addresses) {
        let (outer, inner) = match (addresses.map_tunnel, addresses.tunnel) {
            (Some(outer), _) => (outer, Addresses { map_tunnel: None, ..*addresses }),
            // One alone says nothing of what it is.
            (None, Some(tunnel)) if self.regionals().any(|known| known.map == tunnel.entry) => {
                (tunnel, Addresses { tunnel: None, ..*addresses })
            }
            (None, _) => return (None, *addresses),
        };
        (Some(outer.entry), inner)
    }

    fn takes_from_map(&self, entry: Ipv6Addr, inner: &Addresses) -> bool {
        let destination = outer_destination(inner);
        let is_regional = self.regionals().any(|known| {
            known.map == entry && known.regional == destination && known.node.accepts_tunnel_from(entry)
        });
        is_regional && inner.tunnel.is_none_or(|tunnel| self.home.accepts_tunnel_from(tunnel.entry))
    }

    fn receiver(&self, interface: InterfaceId, addresses: &Addresses) -> Option<Receiver> {
        if !self.places.iter().any(|place| place.config.id == interface) {
            return None;
        }
        let (entry, inner) = self.split(addresses);
        if let Some(entry) = entry {
            return self.takes_from_map(entry, &inner).then_some(Receiver::Home(REGIONAL, inner));
        }
        let is_for = |known: &&super::Regional| {
            known.regional == inner.real_destination() || known.map == inner.source
        };
        match self.regionals().find(is_for) {
            Some(known) => Some(Receiver::Regional(known.map)),
            None => Some(Receiver::Home(interface, inner)),
        }
    }

    /// Hands a message to the registration that it is about.
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        input: Input<'_>,
    ) {
        match self.receiver(interface, &addresses) {
            None => self.outbox.drop(DropReason::NotForUs, addresses.source),
            Some(Receiver::Home(interface, addresses)) => {
                let input = match input {
                    Input::Mobility { message, .. } => Input::Mobility { interface, addresses, message },
                    Input::Icmp { hop_limit, message, .. } => {
                        Input::Icmp { interface, addresses, hop_limit, message }
                    }
                    input => input,
                };
                self.home.handle_input(now, input);
            }
            Some(Receiver::Regional(map)) => {
                if let Some(known) = self.regionals_mut().find(|known| known.map == map) {
                    known.node.handle_input(now, input);
                }
            }
        }
    }
}
