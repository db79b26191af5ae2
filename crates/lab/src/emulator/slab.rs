//! The packets that links hold tokens for.

use careof_wire::ipv4::ecn;

/// Packets by number. A freed place keeps its memory for the next packet, so that once the busiest moment has
/// been no packet costs an allocation.
#[derive(Debug, Default)]
pub(super) struct Slab {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Packets numbered so far.
    numbered: u64,
}

#[derive(Debug, Default)]
struct Place {
    number: u64,
    bytes: Vec<u8>,
}

/// Packets held at most, about 400 MB of full-sized ones: far beyond any link's queue, and the end of what a
/// link without rate, with a long delay, can pile up.
const CAPACITY: usize = 1 << 18;

impl Slab {
    /// Keeps a packet; `None` when there is no room.
    #[inline]
    pub(super) fn keep(&mut self, packet: &[u8]) -> Option<u32> {
        let token = match self.free.pop() {
            Some(token) => token,
            None if self.places.len() < CAPACITY => {
                self.places.push(Place::default());
                u32::try_from(self.places.len() - 1).ok()?
            }
            None => return None,
        };
        self.numbered += 1;
        let place = self.places.get_mut(token as usize)?;
        place.number = self.numbered;
        place.bytes.clear();
        place.bytes.extend_from_slice(packet);
        Some(token)
    }

    /// Gives a packet a new number: it begins again on another link.
    pub(super) fn renumber(&mut self, token: u32) {
        self.numbered += 1;
        if let Some(place) = self.places.get_mut(token as usize) {
            place.number = self.numbered;
        }
    }

    /// The packet that `token` stands for.
    #[inline]
    pub(super) fn packet(&self, token: u32) -> &[u8] {
        self.numbered(token).1
    }

    /// The number of a packet, from 1 and never given twice, and the packet.
    #[inline]
    pub(super) fn numbered(&self, token: u32) -> (u64, &[u8]) {
        self.places.get(token as usize).map_or((0, &[]), |place| (place.number, &place.bytes))
    }

    /// Whether the packet is one of IP that may be marked instead of being dropped (RFC 3168 section 5).
    #[inline]
    pub(super) fn is_ecn_capable(&self, token: u32) -> bool {
        match self.packet(token) {
            [version, tos, ..] if version >> 4 == 4 => tos & ecn::MASK != 0,
            [version, class_and_label, ..] if version >> 4 == 6 => class_and_label >> 4 & ecn::MASK != 0,
            _ => false,
        }
    }

    /// Marks a packet of IP: it met congestion. The checksum of an IPv4 header is adjusted (RFC 1624).
    pub(super) fn mark_congestion(&mut self, token: u32) {
        let Some(place) = self.places.get_mut(token as usize) else { return };
        if let [version, class_and_label, ..] = place.bytes.as_mut_slice()
            && *version >> 4 == 6
        {
            // The low half of the Traffic Class stands in the high half of the second byte (RFC 8200 section 3).
            *class_and_label |= ecn::CONGESTION_EXPERIENCED << 4;
            return;
        }
        let [version, tos, _, _, _, _, _, _, _, _, high, low, ..] = place.bytes.as_mut_slice() else {
            return;
        };
        let before = u16::from_be_bytes([*version, *tos]);
        *tos |= ecn::CONGESTION_EXPERIENCED;
        let after = u16::from_be_bytes([*version, *tos]);
        let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!before) + u32::from(after);
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        [*high, *low] = (!(folded as u16)).to_be_bytes();
    }

    /// Forgets a packet. Each token is freed once, by the owner of the link that gave it back.
    #[inline]
    pub(super) fn free(&mut self, token: u32) {
        self.free.push(token);
    }

    /// Packets held.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_place_serves_the_next_packet() {
        let mut slab = Slab::default();
        let first = slab.keep(b"one").unwrap();
        let second = slab.keep(b"two").unwrap();
        assert_eq!((slab.packet(first), slab.packet(second), slab.len()), (&b"one"[..], &b"two"[..], 2));
        slab.free(first);
        assert_eq!(slab.keep(b"a longer one"), Some(first));
        assert_eq!((slab.packet(first), slab.places.len()), (&b"a longer one"[..], 2));
    }

    #[test]
    fn a_mark_leaves_a_header_that_sums_up() {
        use careof_wire::ipv4::Ipv4Header;
        for (tos, identification) in [(0b10, 0), (0b01, 0xffff), (0x28 | 0b10, 0x1234), (0b11, 7)] {
            let header = Ipv4Header { tos, identification, payload_len: 4, ..Ipv4Header::default() };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            bytes.extend([1, 2, 3, 4]);
            let mut slab = Slab::default();
            let token = slab.keep(&bytes).unwrap();
            assert!(slab.is_ecn_capable(token));
            slab.mark_congestion(token);
            let (marked, payload) = Ipv4Header::parse(slab.packet(token)).unwrap();
            assert_eq!((marked, payload), (Ipv4Header { tos: tos | 0b11, ..header }, &[1, 2, 3, 4][..]));
        }
        use careof_wire::ipv6::Ipv6Header;
        for traffic_class in [0b10, 0b01, 0xb8 | 0b10, 0b11] {
            let header = Ipv6Header { traffic_class, flow_label: 0xf_ffff, ..Ipv6Header::default() };
            let mut slab = Slab::default();
            let token = slab.keep(&header.to_bytes()).unwrap();
            assert!(slab.is_ecn_capable(token));
            slab.mark_congestion(token);
            let (marked, _) = Ipv6Header::parse(slab.packet(token)).unwrap();
            assert_eq!(marked, Ipv6Header { traffic_class: traffic_class | 0b11, ..header });
        }
        let mut slab = Slab::default();
        let incapable = Ipv6Header { traffic_class: 0xb8, flow_label: 0xf_ffff, ..Ipv6Header::default() };
        let token = slab.keep(&incapable.to_bytes()).unwrap();
        assert!(!slab.is_ecn_capable(token));
        let token = slab.keep(&[0x45, 0]).unwrap();
        slab.mark_congestion(token);
        assert!(!slab.is_ecn_capable(token) && slab.packet(token) == [0x45, 0]);
    }

    #[test]
    fn a_full_slab_refuses() {
        let mut slab = Slab::default();
        for _ in 0..CAPACITY {
            slab.keep(&[]).unwrap();
        }
        assert_eq!(slab.keep(&[]), None);
        slab.free(7);
        assert_eq!(slab.keep(&[]), Some(7));
    }
}
