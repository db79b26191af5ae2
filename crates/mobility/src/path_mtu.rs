//! What the entry of a tunnel knows of its path's MTU: soft state (RFC 2003 section 5), which ages.

use core::time::Duration;

use careof_base::Instant;

/// How long what a router said is believed (RFC 1191 section 6.3), where nobody else ages it.
pub const LIFETIME: Duration = Duration::from_secs(600);

/// The MTU of a path, in bytes of the whole datagram that takes it: that of a tunnel's outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathMtu {
    known: Option<(u16, Instant)>,
}

impl PathMtu {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { known: None };

    /// The MTU in bytes, if it is known and fresh.
    #[must_use]
    pub fn get(&self, now: Instant) -> Option<u16> {
        self.known.filter(|(_, until)| *until > now).map(|(mtu, _)| mtu)
    }

    /// The MTU in bytes as last known, however old.
    #[must_use]
    pub fn latest(&self) -> Option<u16> {
        self.known.map(|(mtu, _)| mtu)
    }

    /// Somebody who knows said so; it is believed for `lifetime`.
    pub fn learn(&mut self, now: Instant, mtu: u16, lifetime: Duration) {
        self.known = Some((mtu, now + lifetime));
    }

    /// A router said so in an ICMP message that anybody can write: it counts where it is less than what is known. Nothing
    /// is less than what every node passes on whole (RFC 1191 section 3).
    pub fn lower(&mut self, now: Instant, mtu: u16, lifetime: Duration) {
        let mtu = mtu.max(LEAST);
        if self.get(now).is_none_or(|known| mtu <= known) {
            self.learn(now, mtu, lifetime);
        }
    }
}

/// What every node passes on whole, bytes (RFC 791 section 3.2).
pub const LEAST: u16 = 68;

/// MTUs that paths have had for ever, the largest first, but for the largest there can be (RFC 1191 section 7.1).
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, LEAST];

/// The largest usual MTU below that of a datagram that did not get through, where nobody says what the path's is
/// (RFC 1191 section 7.1).
#[must_use]
pub fn plateau_below(size: u16) -> u16 {
    PLATEAUS.into_iter().find(|plateau| *plateau < size).unwrap_or(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_A_MINUTE: Duration = Duration::from_secs(30);

    #[test]
    fn an_mtu_is_believed_for_a_while() {
        let mut mtu = PathMtu::default();
        let at = Instant::from_secs;
        assert_eq!((mtu.get(at(1)), mtu.latest()), (None, None));
        mtu.learn(at(1), 576, HALF_A_MINUTE);
        assert_eq!(mtu.get(at(30)), Some(576));
        assert_eq!((mtu.get(at(31)), mtu.latest()), (None, Some(576)));
    }

    #[test]
    fn a_router_only_ever_lowers_it_and_not_below_the_least() {
        let mut mtu = PathMtu::default();
        let at = Instant::from_secs;
        mtu.lower(at(1), 1_400, LIFETIME);
        mtu.lower(at(2), 1_480, LIFETIME);
        assert_eq!(mtu.get(at(3)), Some(1_400));
        mtu.lower(at(4), 20, LIFETIME);
        assert_eq!(mtu.get(at(5)), Some(LEAST));
        // When it is old, what is said next is news.
        mtu.lower(at(700), 1_480, LIFETIME);
        assert_eq!(mtu.get(at(701)), Some(1_480));
    }

    #[test]
    fn the_next_plateau_is_below_what_did_not_get_through() {
        let sizes = [u16::MAX, 1_500, 1_492, 1_491, 296, 68, 20];
        assert_eq!(sizes.map(plateau_below), [32_000, 1_492, 1_006, 1_006, 68, 68, 68]);
    }
}
