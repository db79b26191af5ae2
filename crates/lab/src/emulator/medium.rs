//! Media that links share, and the part of such a link.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_link::{Counters, DropCause, Fate, Medium, MediumOutput, StationId};

/// A packet on a medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    /// What it has in the slab.
    pub(super) token: u32,
    /// The number of the path that it is on.
    path: u32,
}

/// What has become of a packet on a medium.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crossed {
    /// It has arrived at that instant, marked or not.
    Arrived(Instant, bool),
    /// It was dropped at that instant.
    Lost(Instant, DropCause),
}

/// A medium, and when it wants to be polled next.
#[derive(Debug)]
pub(super) struct SharedMedium {
    medium: Medium<Crossing>,
    pub(super) deadline: Option<Instant>,
    /// On one cable there is one path from a station to another, however many links join them: the first.
    paths: BTreeMap<(StationId, StationId), usize>,
}

impl SharedMedium {
    pub(super) const fn new(medium: Medium<Crossing>) -> Self {
        Self { medium, deadline: None, paths: BTreeMap::new() }
    }

    /// Whether there is such a station.
    fn has(&self, station: StationId) -> bool {
        usize::from(station.0) < self.medium.stations()
    }

    /// Puts a path on the medium.
    pub(super) fn add(&mut self, on: &OnMedium, path: usize) {
        self.paths.entry((on.from, on.to)).or_insert(path);
    }

    /// What has happened next: on which path to which packet.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(usize, u32, Crossed)> {
        let output = self.medium.poll(now);
        self.deadline = self.medium.next_timeout();
        let (packet, crossed) = match output? {
            MediumOutput::Delivered { packet, at, marked, .. } => (packet, Crossed::Arrived(at, marked)),
            MediumOutput::Dropped { packet, at, cause, .. } => (packet, Crossed::Lost(at, cause)),
        };
        Some((packet.path as usize, packet.token, crossed))
    }
}

/// One direction of a link that is on a medium: from a station to another.
#[derive(Debug)]
pub(super) struct OnMedium {
    pub(super) medium: usize,
    from: StationId,
    to: StationId,
    /// The medium counts by station, a link by direction.
    pub(super) counters: Counters,
    /// The paths that packets to some networks take, of IPv4 and of IPv6.
    shortcuts: [Shortcuts; 2],
}

impl OnMedium {
    pub(super) fn new(medium: usize, from: StationId, to: StationId) -> Self {
        Self { medium, from, to, counters: Counters::default(), shortcuts: Default::default() }
    }

    /// Whether both stations are on the medium, and two.
    pub(super) fn fits(&self, shared: &SharedMedium) -> bool {
        shared.has(self.from) && shared.has(self.to) && self.from != self.to
    }

    /// Whether packets that one of two paths was meant for can take the other.
    pub(super) fn begins_like(&self, other: &Self) -> bool {
        (self.medium, self.from) == (other.medium, other.from)
    }

    /// Has packets to these networks take these paths, in place of what was said before.
    pub(super) fn set_shortcuts(&mut self, shortcuts: impl Iterator<Item = (IpAddr, u8, usize)>) {
        self.shortcuts = Default::default();
        for (network, length, path) in shortcuts {
            let [ipv4, ipv6] = &mut self.shortcuts;
            match network {
                IpAddr::V4(network) => ipv4.add(left_aligned(network), length, path),
                IpAddr::V6(network) => ipv6.add(network.to_bits(), length, path),
            }
        }
    }

    /// The path that a packet of this one's sender takes.
    pub(super) fn path_of(&self, medium: &SharedMedium, packet: &[u8]) -> Option<usize> {
        let [ipv4, ipv6] = &self.shortcuts;
        let shortcut = destination(packet).and_then(|destination| match destination {
            IpAddr::V4(address) => ipv4.find(left_aligned(address)),
            IpAddr::V6(address) => ipv6.find(address.to_bits()),
        });
        shortcut.or_else(|| medium.paths.get(&(self.from, self.to))).copied()
    }

    /// Offers a packet on path number `path`.
    pub(super) fn offer(
        &mut self,
        now: Instant,
        shared: &mut SharedMedium,
        (token, path): (u32, usize),
        size: u32,
        is_ecn_capable: bool,
    ) -> Result<(), DropCause> {
        let crossing = Crossing { token, path: u32::try_from(path).unwrap_or(u32::MAX) };
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size);
        let (medium, from, to) = (&mut shared.medium, self.from, self.to);
        let outcome = if is_ecn_capable && medium.marks() {
            medium.enqueue_ecn_capable(now, from, to, crossing, size)
        } else {
            medium.enqueue(now, from, to, crossing, size)
        };
        shared.deadline = shared.medium.next_timeout();
        outcome.inspect_err(|cause| self.note_drop(*cause))
    }

    /// A packet has arrived.
    pub(super) const fn note_arrival(&mut self, size: usize, marked: bool) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += size as u64;
        self.counters.marked += marked as u64;
    }

    /// A packet was dropped.
    pub(super) fn note_drop(&mut self, cause: DropCause) {
        if let Some(dropped) = self.counters.dropped.get_mut(cause.index()) {
            *dropped += 1;
        }
    }

    /// Takes the sending station off the cable.
    pub(super) fn set_down(&self, now: Instant, shared: &mut SharedMedium, queued: Fate, in_flight: Fate) {
        shared.medium.set_down(now, self.from, queued, in_flight);
    }

    /// Puts it on the cable again.
    pub(super) fn set_up(&self, now: Instant, shared: &mut SharedMedium) {
        shared.medium.set_up(now, self.from);
    }

    /// Takes what waits for this path out of the queue, oldest first.
    pub(super) fn drain_queue(&mut self, now: Instant, shared: &mut SharedMedium) -> Vec<u32> {
        let drained = shared.medium.drain_queue(now, self.from, self.to);
        self.counters.drained += drained.len() as u64;
        drained.into_iter().map(|crossing| crossing.token).collect()
    }

    /// Packets and bytes in the queue of the station, whomever they are for.
    pub(super) fn queue_len(&self, shared: &SharedMedium) -> (usize, u64) {
        shared.medium.queue_len(self.from)
    }

    /// Packets on this path: in the queue, and being sent or on the cable.
    pub(super) fn on_the_way(&self, shared: &SharedMedium, path: usize) -> (u64, u64) {
        if shared.paths.get(&(self.from, self.to)) != Some(&path) {
            return (0, 0);
        }
        let (from, to) = (self.from, self.to);
        (shared.medium.queued_for(from, to) as u64, shared.medium.in_flight_to(from, to) as u64)
    }

    /// Whether the sending station is on the cable.
    pub(super) fn is_up(&self, shared: &SharedMedium) -> bool {
        shared.medium.is_up(self.from)
    }
}

/// The paths that packets to some networks of one IP version take: by the length of the prefix, the network.
#[derive(Debug, Default)]
struct Shortcuts(BTreeMap<u8, BTreeMap<u128, usize>>);

impl Shortcuts {
    /// The address stands at the left of its number.
    fn add(&mut self, network: u128, length: u8, path: usize) {
        self.0.entry(length).or_default().insert(prefix(network, length), path);
    }

    /// The path of the longest prefix that the address has.
    fn find(&self, address: u128) -> Option<&usize> {
        self.0.iter().rev().find_map(|(length, paths)| paths.get(&prefix(address, *length)))
    }
}

/// The bits of an IPv4 address, where those of an IPv6 address begin.
const fn left_aligned(address: Ipv4Addr) -> u128 {
    (address.to_bits() as u128) << 96
}

/// The first `length` bits of an address.
fn prefix(address: u128, length: u8) -> u128 {
    address.checked_shr(128_u32.saturating_sub(length.into())).unwrap_or(0)
}

/// Bits of an address.
pub(super) const fn address_bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Where a packet goes, of IPv6 the next node that it is addressed to.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into()),
        6 => packet.get(24..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use careof_base::RandomStream;
    use careof_link::EthernetConfig;

    use super::*;

    fn packet(destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn a_packet_takes_the_path_of_the_longest_prefix_and_else_the_first_between_its_stations() {
        let stream = || RandomStream::new(1, 0, "x");
        let mut shared = SharedMedium::new(Medium::new(
            EthernetConfig::default(),
            stream(),
            stream(),
            [stream(), stream()],
        ));
        let mut on = OnMedium::new(0, StationId(0), StationId(1));
        shared.add(&on, 4);
        shared.add(&on, 6);
        assert_eq!(on.path_of(&shared, &packet([10, 0, 2, 2])), Some(4));
        let network = |text: &str| text.parse::<IpAddr>().unwrap();
        let wide = [(network("10.0.0.0"), 8, 1), (network("10.0.2.77"), 24, 2), (network("10.0.2.2"), 32, 3)];
        on.set_shortcuts(wide.into_iter());
        for (destination, expected) in
            [([10, 0, 2, 2], 3), ([10, 0, 2, 3], 2), ([10, 9, 0, 0], 1), ([11, 0, 2, 2], 4)]
        {
            assert_eq!(on.path_of(&shared, &packet(destination)), Some(expected), "{destination:?}");
        }
        assert_eq!(on.path_of(&shared, &[0x60; 40]), Some(4), "another version");
        assert_eq!(on.path_of(&shared, &[0x10; 40]), Some(4), "another protocol's");
        assert_eq!(on.path_of(&shared, &packet([10, 0, 2, 2])[..19]), Some(4), "cut short");
        on.set_shortcuts(std::iter::once((network("0.0.0.0"), 0, 9)));
        assert_eq!(on.path_of(&shared, &packet([192, 0, 2, 1])), Some(9));
        assert_eq!(on.path_of(&shared, &[0x60; 40]), Some(4), "nothing is known of the other version");

        let ipv6 = |destination: &str| {
            let destination: Ipv6Addr = destination.parse().unwrap();
            [&[0x60; 24][..], &destination.octets()].concat()
        };
        let of_ipv6 = [
            (network("2001:db8::"), 32, 1),
            (network("2001:db8:0:2::77"), 64, 2),
            (network("2001:db8:0:2::2"), 128, 3),
        ];
        on.set_shortcuts(of_ipv6.into_iter());
        for (destination, expected) in [
            ("2001:db8:0:2::2", 3),
            ("2001:db8:0:2::3", 2),
            ("2001:db8:9::", 1),
            ("2001:db9::", 4),
            ("ff02::1", 4),
        ] {
            assert_eq!(on.path_of(&shared, &ipv6(destination)), Some(expected), "{destination}");
        }
        assert_eq!(on.path_of(&shared, &ipv6("2001:db8:0:2::2")[..39]), Some(4), "cut short");
        assert_eq!(on.path_of(&shared, &packet([10, 0, 2, 2])), Some(4));
    }
}
