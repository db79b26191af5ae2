//! Keys, and what tells replays from fresh messages.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{Allowance, Instant, Used};
use careof_wire::micro::MicroMessage;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::aged::Aged;
use super::io::MessageDrop;
use crate::{ConfigError, NtpTime, WallClock};

/// What the routers of a domain share. Who has it can make any message.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkKey(Vec<u8>);

impl NetworkKey {
    /// A key of the domain.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] for one without bytes.
    pub fn new(key: impl Into<Vec<u8>>) -> Result<Self, ConfigError> {
        let key = key.into();
        if key.is_empty() { Err(ConfigError::Missing("network key")) } else { Ok(Self(key)) }
    }

    /// The key that the mobile node with this address gets when it comes to the domain: each router computes it by itself, so that no base
    /// station has to be told of a handover and none keeps keys (draft-ietf-mobileip-cellularip section 3.5, with HMAC-SHA-256 where the
    /// draft has MD5).
    #[must_use]
    pub fn mobile_key(&self, mobile: Ipv4Addr) -> MobileKey {
        // HMAC takes keys of any length.
        let Ok(mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0) else {
            unreachable!("HMAC refused a key")
        };
        let bytes = mac.chain_update(b"mobile node").chain_update(mobile.octets()).finalize();
        MobileKey(core::array::from_fn(|i| bytes.as_bytes().get(i).copied().unwrap_or(0)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for NetworkKey {
    /// Without the key: debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetworkKey({} bytes)", self.0.len())
    }
}

/// What a mobile node shares with every router of a domain ([`NetworkKey::mobile_key`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MobileKey([u8; 32]);

impl MobileKey {
    /// The bytes of a message, signed with this key.
    #[must_use]
    pub fn sign(&self, message: &MicroMessage) -> Vec<u8> {
        message.emit(&self.0)
    }

    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for MobileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MobileKey(32 bytes)")
    }
}

/// Gives each message a later timestamp than the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    clock: WallClock,
    last: Option<NtpTime>,
}

impl Stamps {
    pub(super) const fn new(clock: WallClock) -> Self {
        Self { clock, last: None }
    }

    pub(super) fn next(&mut self, now: Instant) -> u64 {
        let mut stamp = self.clock.at(now);
        if let Some(last) = self.last
            && stamp.difference(last) <= 0
        {
            stamp = NtpTime::from_bits(last.to_bits().wrapping_add(1));
        }
        self.last = Some(stamp);
        stamp.to_bits()
    }
}

/// Who made a message, and about which mobile node: timestamps are compared among those of the same.
pub(super) type Author = (Ipv4Addr, Ipv4Addr);

/// What is remembered of an author.
#[derive(Clone, Copy, Debug)]
struct Known {
    last: NtpTime,
    used: Used,
}

/// The latest timestamps of all authors, for as long as one could be replayed: longer than the window, either way, and no more.
#[derive(Clone, Debug)]
pub(super) struct Freshness {
    clock: WallClock,
    window: Duration,
    ration: Allowance,
    known: Aged<Author, Known>,
}

impl Freshness {
    pub(super) fn new(clock: WallClock, window: Duration, ration: Allowance, room: usize) -> Self {
        Self { clock, window, ration, known: Aged::new(room) }
    }

    /// Whether an authentic message is fresh; it is remembered then. `is_rationed`: whether its author has a ration of messages.
    pub(super) fn check(
        &mut self,
        now: Instant,
        author: Author,
        timestamp: u64,
        is_rationed: bool,
    ) -> Result<(), MessageDrop> {
        let stamp = NtpTime::from_bits(timestamp);
        if !stamp.is_within(self.window, self.clock.at(now)) {
            return Err(MessageDrop::Replayed);
        }
        // Until then the clock has passed every timestamp that is within the window now.
        let until = now + self.window + self.window + Duration::from_secs(1);
        if let Some(known) = self.known.get_mut(now, author) {
            if stamp.difference(known.last) <= 0 {
                return Err(MessageDrop::Replayed);
            }
            // A message too many is used up nevertheless: nobody else shall send it again later.
            known.last = stamp;
            let is_allowed = !is_rationed || known.used.take(now, self.ration);
            self.known.keep_until(author, until);
            return if is_allowed { Ok(()) } else { Err(MessageDrop::OverShare) };
        }
        let mut used = Used::NOTHING;
        if is_rationed && !used.take(now, self.ration) {
            return Err(MessageDrop::OverShare);
        }
        match self.known.insert(author, Known { last: stamp, used }, until) {
            Ok(()) => Ok(()),
            Err(_) => Err(MessageDrop::TableFull),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.known.deadline()
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while self.known.take_expired(now).is_some() {}
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const A: Author = (Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 1));
    const B: Author = (Ipv4Addr::new(10, 9, 0, 2), Ipv4Addr::new(10, 9, 0, 2));

    fn clock() -> WallClock {
        WallClock::new(NtpTime::from_unix(Duration::from_secs(1_700_000_000)))
    }

    fn freshness(room: usize) -> Freshness {
        let ration = Allowance::new(4, Duration::from_millis(100));
        Freshness::new(clock(), Duration::from_secs(7), ration, room)
    }

    fn stamp(seconds: u64) -> u64 {
        clock().at(Instant::from_secs(seconds)).to_bits()
    }

    #[test]
    fn each_mobile_node_has_a_key_of_its_own_which_others_cannot_tell() {
        let network = NetworkKey::new(*b"network").unwrap();
        assert_ne!(network.mobile_key(A.0), network.mobile_key(B.0));
        assert_ne!(network.mobile_key(A.0), NetworkKey::new(*b"another").unwrap().mobile_key(A.0));
        assert!(NetworkKey::new([]).is_err());
        let text = format!("{network:?} {:?}", network.mobile_key(A.0));
        assert_eq!(text, "NetworkKey(7 bytes) MobileKey(32 bytes)");
    }

    #[test]
    fn a_replay_is_refused_for_as_long_as_its_timestamp_is_within_the_window_and_afterwards() {
        let mut fresh = freshness(10);
        assert_eq!(fresh.check(Instant::from_secs(20), A, stamp(27), false), Ok(()));
        for seconds in 20..60 {
            let now = Instant::from_secs(seconds);
            fresh.expire(now);
            assert_eq!(fresh.check(now, A, stamp(27), false), Err(MessageDrop::Replayed), "{seconds}");
        }
        assert_eq!(fresh.len(), 0);
    }

    #[test]
    fn a_clock_that_is_wrong_by_more_than_the_window_is_not_believed() {
        let mut fresh = freshness(10);
        for wrong in [12, 28] {
            assert_eq!(
                fresh.check(Instant::from_secs(20), A, stamp(wrong), false),
                Err(MessageDrop::Replayed)
            );
        }
        assert_eq!(fresh.len(), 0);
    }

    #[test]
    fn there_is_room_for_so_many_and_who_is_in_stays_in() {
        let mut fresh = freshness(1);
        let now = Instant::from_secs(20);
        assert_eq!(fresh.check(now, A, stamp(20), false), Ok(()));
        assert_eq!(fresh.check(now, B, stamp(20), false), Err(MessageDrop::TableFull));
        assert_eq!(fresh.check(now, A, stamp(21), false), Ok(()));
        fresh.expire(Instant::from_secs(40));
        assert_eq!(fresh.check(Instant::from_secs(40), B, stamp(40), false), Ok(()));
    }

    #[test]
    fn who_sends_too_much_is_rationed_and_what_was_too_much_cannot_be_sent_again() {
        let mut fresh = freshness(10);
        let now = Instant::from_secs(20);
        let outcomes = (0..8).map(|n| fresh.check(now, A, stamp(20) + n, true));
        assert_eq!(outcomes.filter(Result::is_ok).count(), 4);
        let later = Instant::from_secs(21);
        assert_eq!(fresh.check(later, A, stamp(20) + 6, true), Err(MessageDrop::Replayed));
        assert_eq!(fresh.check(later, A, stamp(21), true), Ok(()));
    }

    #[test]
    fn stamps_increase_even_when_the_clock_stands_still() {
        let mut stamps = Stamps::new(clock());
        let (first, second) = (stamps.next(Instant::ZERO), stamps.next(Instant::ZERO));
        assert!(second > first && stamps.next(Instant::from_secs(1)) > second);
    }
}
