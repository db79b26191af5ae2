//! The MTU of the path through a tunnel, as soft state (RFC 2003 section 5.1, RFC 1191).

use core::time::Duration;

use careof_base::Instant;

/// How long an MTU is believed before the kernel is asked again. The kernel itself ages what it has learnt from
/// routers (`net.ipv4.route.mtu_expires`, ten minutes as RFC 1191 section 6.3 wants); this bounds how long a change
/// of a link of ours stays unnoticed.
pub(super) const LIFETIME: Duration = Duration::from_secs(30);

/// What is known of the MTU of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathMtu {
    known: Option<(u16, Instant)>,
}

impl PathMtu {
    /// The MTU in bytes, if it is known and fresh.
    pub(super) fn get(&self, now: Instant) -> Option<u16> {
        self.known.filter(|(_, until)| *until > now).map(|(mtu, _)| mtu)
    }

    /// The MTU in bytes as last known, however old.
    pub(super) fn latest(&self) -> Option<u16> {
        self.known.map(|(mtu, _)| mtu)
    }

    /// Somebody who knows said so.
    pub(super) fn learn(&mut self, now: Instant, mtu: u16) {
        self.known = Some((mtu, now + LIFETIME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_is_believed_for_a_while() {
        let mut mtu = PathMtu::default();
        let at = Instant::from_secs;
        assert_eq!((mtu.get(at(1)), mtu.latest()), (None, None));
        mtu.learn(at(1), 576);
        assert_eq!(mtu.get(at(30)), Some(576));
        assert_eq!((mtu.get(at(31)), mtu.latest()), (None, Some(576)));
    }
}
