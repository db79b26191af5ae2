//! The packets that links hold tokens for.

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
