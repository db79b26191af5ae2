//! Which sightings are of one datagram.
//!
//! Nothing but its bytes follows a datagram through a kernel. On the way its outside changes - tunnels come and go,
//! the time to live counts down - but what is inside does not, and that names it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use careof_base::{Duration, Instant};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::decapsulate;

/// Tunnels within tunnels that are looked into.
const DEEPEST: usize = 3;
/// A datagram that was not seen for so long was dropped by some kernel.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// How often the forgotten are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// Bytes behind the header that tell datagrams apart, with their length: a TCP header with all options.
const TELLING: usize = 60;

/// `bytes` without the tunnels around them, as far as they are whole.
pub(super) fn innermost(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut current = Cow::Borrowed(bytes);
    for _ in 0..DEEPEST {
        let inside = match &current {
            Cow::Borrowed(bytes) => decapsulate(bytes).map(|inside| inside.datagram),
            Cow::Owned(bytes) => decapsulate(bytes).map(|inside| Cow::Owned(inside.datagram.into_owned())),
        };
        match inside {
            Ok(inside) => current = inside,
            Err(_) => break,
        }
    }
    current
}

/// What a datagram is known by on all its way.
pub(super) fn content(header: &Ipv4Header, payload: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    mix(&header.source.octets());
    mix(&header.destination.octets());
    mix(&[header.protocol, u8::from(header.more_fragments)]);
    mix(&header.identification.to_be_bytes());
    mix(&header.fragment_offset.to_be_bytes());
    mix(&header.payload_len.to_be_bytes());
    mix(payload.get(..TELLING).unwrap_or(payload));
    hash
}

#[derive(Clone, Copy, Debug)]
struct Known {
    id: u64,
    /// The one-way links it entered, one bit each.
    ways: u128,
    /// Whether it was taken out of a link's queue and has not entered another one since.
    is_moving: bool,
    seen: Instant,
}

impl Known {
    const fn new(id: u64, ways: u128, seen: Instant) -> Self {
        Self { id, ways, is_moving: false, seen }
    }
}

/// A datagram that enters a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// Whether it was moved here from another link's queue: nobody sends it anew.
    pub(super) is_moved: bool,
}

/// The datagrams under way.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    by_content: BTreeMap<u64, Known>,
    /// By the emulator's number: those on a link.
    on_links: BTreeMap<u64, u64>,
    made: u64,
    swept: Instant,
}

impl Datagrams {
    /// A datagram enters the one-way link `way`, where it has `number`: who it is. A datagram crosses a link once; what
    /// looks the same and enters it again is another one, unless it was taken back before.
    pub(super) fn enter(&mut self, now: Instant, content: u64, way: u32, number: u64) -> Entry {
        self.sweep(now);
        let bit = 1_u128.checked_shl(way).unwrap_or(0);
        let known =
            self.by_content.get_mut(&content).filter(|known| known.is_moving || known.ways & bit == 0);
        let entry = match known {
            Some(known) => {
                known.ways |= bit;
                known.seen = now;
                Entry { id: known.id, is_moved: std::mem::take(&mut known.is_moving) }
            }
            None => {
                self.made += 1;
                self.by_content.insert(content, Known::new(self.made, bit, now));
                Entry { id: self.made, is_moved: false }
            }
        };
        if number != 0 {
            self.on_links.insert(number, entry.id);
        }
        entry
    }

    /// A datagram was taken out of a link's queue, and enters another link next.
    pub(super) fn take_back(&mut self, content: u64) {
        if let Some(known) = self.by_content.get_mut(&content) {
            known.is_moving = true;
        }
    }

    /// Who a datagram is that was put together from fragments: the one that was cut, if that was seen.
    pub(super) fn whole(&mut self, now: Instant, content: u64) -> u64 {
        if let Some(known) = self.by_content.get_mut(&content) {
            known.seen = now;
            return known.id;
        }
        self.made += 1;
        self.by_content.insert(content, Known::new(self.made, 0, now));
        self.made
    }

    /// The datagram that had `number` on a link has left it, one way or another.
    pub(super) fn leave(&mut self, number: u64) -> Option<u64> {
        self.on_links.remove(&number)
    }

    /// Datagrams on links.
    pub(super) fn on_links(&self) -> usize {
        self.on_links.len()
    }

    /// Nothing more will be seen of a datagram.
    pub(super) fn forget(&mut self, content: u64, id: u64) {
        if self.by_content.get(&content).is_some_and(|known| known.id == id) {
            self.by_content.remove(&content);
        }
    }

    fn sweep(&mut self, now: Instant) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        self.by_content.retain(|_, known| now < known.seen + FORGOTTEN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::tunnel::{Encapsulation, Origin, Tunnel};
    use std::net::Ipv4Addr;

    const INNER: Ipv4Header = Ipv4Header {
        source: Ipv4Addr::new(10, 0, 1, 1),
        destination: Ipv4Addr::new(10, 0, 9, 2),
        protocol: 6,
        ttl: 64,
        tos: 0,
        identification: 77,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        payload_len: 24,
    };

    fn datagram(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend([7; 24]);
        bytes
    }

    fn named(bytes: &[u8]) -> u64 {
        let inner = innermost(bytes);
        let (header, payload) = Ipv4Header::parse(&inner).unwrap();
        content(&header, payload)
    }

    #[test]
    fn a_datagram_keeps_its_name_through_a_tunnel_and_over_routers() {
        let plain = datagram(INNER);
        let router = datagram(Ipv4Header { ttl: 62, ..INNER });
        let entry = Ipv4Addr::new(10, 0, 9, 1);
        let exit = Ipv4Addr::new(10, 0, 3, 2);
        for encapsulation in
            [Encapsulation::IpInIp, Encapsulation::Minimal, Encapsulation::Gre { key: None, sequence: None }]
        {
            let tunnel = Tunnel { encapsulation, entry, exit, ttl: 64 };
            let tunnelled = tunnel.encapsulate(&router, Origin::Forwarded, 5).unwrap();
            assert_eq!(named(&tunnelled), named(&plain), "{encapsulation:?}");
        }
        assert_ne!(named(&datagram(Ipv4Header { identification: 78, ..INNER })), named(&plain));
    }

    #[test]
    fn what_enters_a_link_again_is_another_datagram() {
        let mut datagrams = Datagrams::default();
        let now = Instant::ZERO;
        let first = datagrams.enter(now, 1, 0, 100);
        assert_eq!(datagrams.leave(100), Some(first.id));
        assert_eq!(datagrams.enter(now, 1, 2, 101), first, "the next link of its way");
        let again = datagrams.enter(now, 1, 0, 102);
        assert_ne!(again.id, first.id);
        assert_eq!(datagrams.on_links(), 2);
        datagrams.forget(1, first.id);
        assert_eq!(datagrams.enter(now, 1, 2, 103), again, "only the first was forgotten");
    }

    #[test]
    fn what_is_moved_from_queue_to_queue_and_back_stays_itself() {
        let mut datagrams = Datagrams::default();
        let Entry { id, is_moved } = datagrams.enter(Instant::ZERO, 1, 0, 100);
        assert!(!is_moved);
        for (way, number) in [(2, 101), (0, 102)] {
            datagrams.take_back(1);
            assert_eq!(datagrams.enter(Instant::ZERO, 1, way, number), Entry { id, is_moved: true });
        }
        assert!(!datagrams.enter(Instant::ZERO, 1, 4, 103).is_moved, "it goes on from there by itself");
    }
}
