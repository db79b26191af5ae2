//! Unsolicited Neighbor Advertisements: all nodes of a link learn whose an address is (RFC 6275 sections 10.4.1 and 11.5.5).

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_lab::OutgoingIcmpv6;
use careof_wire::icmpv6::{HOP_LIMIT, Icmpv6Message, LinkLayerAddress, NdOption, NeighborAdvertisement};
use careof_wire::ipv6::ALL_NODES;

use super::Icmpv6Socket;
use super::timed_addresses::TimedAddresses;

/// MAX_NEIGHBOR_ADVERTISEMENT and RETRANS_TIMER (RFC 4861 section 10).
const TIMES: u8 = 3;
const RETRANS_TIMER: Duration = Duration::from_secs(1);
/// Addresses that wait to be advertised; what is more is not, and its neighbours find out by Neighbor Unreachability Detection.
const MOST_WAITING: usize = 4096;

/// What is to be advertised, and how many times.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    waiting: TimedAddresses<u8>,
}

impl Announcements {
    /// An address is to be advertised from now on, in place of what was to be said of it before.
    pub(super) fn begin(&mut self, now: Instant, address: Ipv6Addr) {
        self.waiting.remove(address);
        if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(now, address, TIMES);
        }
    }

    /// It is not ours to advertise any more.
    pub(super) fn cancel(&mut self, address: Ipv6Addr) {
        self.waiting.remove(address);
    }

    /// The next address that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Ipv6Addr> {
        let (address, left) = self.waiting.pop_due(now)?;
        if left > 1 {
            self.waiting.insert(now + RETRANS_TIMER, address, left - 1);
        }
        Some(address)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.next_timeout()
    }
}

/// Tells all nodes of a link that `target` is at `link_address`, which a link without link-layer addresses does not have; whether the kernel
/// took it.
pub(super) fn advertise(
    socket: &Icmpv6Socket,
    interface: u32,
    target: Ipv6Addr,
    link_address: Option<[u8; 6]>,
) -> bool {
    let option = link_address.map(|address| NdOption::TargetLinkLayerAddress(LinkLayerAddress(address)));
    let advertisement = NeighborAdvertisement {
        router: false,
        solicited: false,
        override_flag: true,
        target,
        options: option.into_iter().collect(),
    };
    let mut message = Vec::new();
    // The kernel selects the source, a link-local address, and makes the checksum.
    let source = Ipv6Addr::UNSPECIFIED;
    Icmpv6Message::NeighborAdvertisement(advertisement).emit(source, ALL_NODES, &mut message);
    let datagram = OutgoingIcmpv6 {
        interface: Some(interface),
        source,
        destination: ALL_NODES,
        hop_limit: HOP_LIMIT,
        message: &message,
    };
    socket.send(&datagram).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

    #[test]
    fn an_address_is_advertised_three_times_unless_it_is_cancelled() {
        let mut announcements = Announcements::default();
        announcements.begin(Instant::ZERO, HOME);
        for second in 0..3 {
            let now = Instant::from_secs(second);
            assert_eq!((announcements.due(now), announcements.due(now)), (Some(HOME), None));
        }
        assert_eq!(announcements.next_timeout(), None);
        announcements.begin(Instant::ZERO, HOME);
        announcements.cancel(HOME);
        assert_eq!(announcements.due(Instant::from_secs(9)), None);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut announcements = Announcements::default();
        for n in 0..2 * MOST_WAITING as u128 {
            announcements.begin(Instant::ZERO, Ipv6Addr::from_bits(n));
        }
        assert_eq!(announcements.waiting.len(), MOST_WAITING);
    }
}
