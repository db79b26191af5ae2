//! Neighbor discovery of a mobile node: messages beside the kernel's, and the kernel's verdict on neighbours that do not answer.

use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_lab::{Error, Icmpv6Socket, OutgoingIcmpv6};
use careof_wire::icmpv6::{HOP_LIMIT, Icmpv6Message, RouterSolicitation};
use careof_wire::ipv6::ALL_ROUTERS;

use super::Ipv6Carrier;

/// Router Advertisement (RFC 4861 section 4.2).
pub(super) const ADVERTISEMENT: u8 = 134;
/// Destination Unreachable, Packet Too Big, Time Exceeded and Parameter Problem (RFC 4443).
pub(super) const ERRORS: [u8; 4] = [1, 2, 3, 4];

/// Asks for the routers on a link, from an address of the interface, or from the unspecified address as long as it has none that may be
/// used. Without a Source Link-Layer Address option both are right (RFC 4429 section 3.2).
pub(super) fn solicit_routers(icmp: &Icmpv6Socket, interface: u32) -> Result<(), Error> {
    let mut message = Vec::new();
    let source = Ipv6Addr::UNSPECIFIED;
    Icmpv6Message::RouterSolicitation(RouterSolicitation::default()).emit(source, ALL_ROUTERS, &mut message);
    let outgoing = OutgoingIcmpv6 {
        interface: Some(interface),
        source,
        destination: ALL_ROUTERS,
        hop_limit: HOP_LIMIT,
        message: &message,
    };
    icmp.send(&outgoing).or_else(|_| icmp.send_unaddressed(interface, ALL_ROUTERS, HOP_LIMIT, &message))
}

impl Ipv6Carrier {
    /// Whether the node leaves a router that neighbor unreachability detection finds gone.
    pub(super) fn watches_neighbours(&self) -> bool {
        self.setup.mobile().is_some_and(|setup| setup.config.movement.unreachable_router)
    }

    /// Has the kernel tell of neighbours that do not answer, if the node acts on it.
    pub(super) fn watch_neighbours(&mut self) -> Result<(), Error> {
        if self.watches_neighbours() { self.monitor.listen_to_neighbours() } else { Ok(()) }
    }

    /// The kernel has found that neighbours do not answer, each known by the index of its interface: routers among them are none any
    /// more until they are heard again, and others are asked for (RFC 4861 section 7.3.3, RFC 6275 section 11.5.1).
    pub(super) fn neighbours_failed(&mut self, now: Instant, failed: &[(u32, IpAddr)]) {
        if !self.watches_neighbours() {
            // The kernel goes on telling of them after a file that asked for it was replaced.
            return;
        }
        let mut lost = Vec::new();
        for &(index, address) in failed {
            let mut named = self.interfaces.named().iter();
            let interface = named.find(|interface| interface.index() == Some(index));
            let (Some(interface), IpAddr::V6(router)) = (interface.map(|one| one.device.id), address) else {
                continue;
            };
            if let Some(change) = self.routers.unreachable(interface, router) {
                lost.push(change);
                self.unreachable_routers += 1;
                self.solicitations.begin(now, interface);
            }
        }
        self.tell_routers(now, lost);
        self.solicit(now);
    }

    /// News were lost, perhaps of a router that does not answer.
    pub(super) fn look_for_failed_routers(&mut self, now: Instant) {
        if !self.watches_neighbours() {
            return;
        }
        let mut failed = Vec::new();
        let indices: Vec<u32> = self.interfaces.named().iter().filter_map(|one| one.index()).collect();
        for index in indices {
            let outcome = self.reading.check().and_then(|()| self.host.netlink().neighbours(index));
            let found = self.reading.note(now, outcome).unwrap_or_default();
            failed.extend(found.iter().filter(|one| one.has_failed).map(|one| (index, one.address)));
        }
        self.neighbours_failed(now, &failed);
    }
}
