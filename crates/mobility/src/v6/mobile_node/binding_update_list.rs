//! What a mobile node knows of its correspondent nodes: the part of the Binding Update List about them (RFC 6275 section 11.1).

use alloc::collections::BTreeMap;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::mip6::{
    BindingManagementKey, InitCookie, KeygenToken, Lifetime, NonceIndex, NonceIndices, SequenceNumber,
    UpdateFlags,
};

use super::registration::RecentUpdates;
use crate::back_off::BackOff;
use crate::v6::update_rate::{Retransmission, UpdateRate};

/// MAX_TOKEN_LIFETIME (RFC 6275 section 12).
const TOKEN_LIFETIME: Duration = Duration::from_secs(210);
/// How long a correspondent node is remembered without packets.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(420);

/// A keygen token received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) token: KeygenToken,
    pub(super) nonce: NonceIndex,
    pub(super) received: Instant,
}

/// One of the two tests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Test {
    /// Under way: the cookie sent last, and when another one is sent.
    pub(super) pending: Option<(InitCookie, Retransmission)>,
    pub(super) token: Option<Token>,
    pub(super) rate: UpdateRate,
}

impl Test {
    /// The token, as long as it may be used.
    pub(super) fn fresh(&self, now: Instant) -> Option<Token> {
        self.token.filter(|token| now < token.received + TOKEN_LIFETIME)
    }

    pub(super) fn begin(&mut self, now: Instant, (first, longest): (Duration, Duration)) {
        if self.pending.is_none() {
            let retransmission = Retransmission::begin(now, first, longest);
            self.pending = Some((InitCookie([0; 8]), retransmission));
        }
    }

    /// Takes in an answer; false when nobody waits for it.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        cookie: InitCookie,
        token: KeygenToken,
        nonce: NonceIndex,
    ) -> bool {
        let expected = self.pending.filter(|(_, retransmission)| retransmission.attempts > 0);
        if expected.is_none_or(|(own, _)| own != cookie) {
            return false;
        }
        self.pending = None;
        self.token = Some(Token { token, nonce, received: now });
        true
    }

    /// The cookie to send now, when one is due; each is another one (section 11.8).
    pub(super) fn due_cookie(&mut self, now: Instant, random: &mut Randomness) -> Option<InitCookie> {
        let (cookie, retransmission) = self.pending.as_mut().filter(|(_, r)| r.next <= now)?;
        let allowed = self.rate.earliest(now);
        if allowed > now {
            retransmission.next = allowed;
            return None;
        }
        *cookie = InitCookie(random.next_u64().to_be_bytes());
        retransmission.sent(now);
        self.rate.spend(now);
        Some(*cookie)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.map(|(_, retransmission)| retransmission.next)
    }
}

/// What the correspondent node is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// This care-of address.
    Bind(Ipv6Addr),
    /// None: the node is at home.
    Delete,
    /// Whatever it knows: the node is nowhere.
    Wait,
}

/// A Binding Update under way.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub(super) goal: Goal,
    pub(super) key: BindingManagementKey,
    pub(super) nonces: NonceIndices,
    pub(super) lifetime: Lifetime,
    pub(super) flags: UpdateFlags,
    pub(super) recent: RecentUpdates,
    pub(super) retransmission: Retransmission,
}

/// A binding that the correspondent node has acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) care_of: Ipv6Addr,
    pub(super) renew_at: Instant,
    pub(super) expires: Instant,
}

#[derive(Debug)]
pub(super) struct Correspondent {
    pub(super) sequence: SequenceNumber,
    pub(super) home: Test,
    pub(super) care_of: Test,
    /// The care-of address that is, or was, tested.
    pub(super) tested: Option<Ipv6Addr>,
    pub(super) bound: Option<Bound>,
    /// It may have a binding that it has not acknowledged.
    pub(super) may_be_bound: bool,
    pub(super) update: Option<Update>,
    pub(super) updates: UpdateRate,
    pub(super) barred: Option<Instant>,
    pub(super) repairs: u32,
    /// How often it may say that it has no binding.
    pub(super) errors: Option<BackOff>,
    /// When packets were last exchanged with it.
    pub(super) used: Instant,
    /// That is so long ago that its binding is not renewed.
    pub(super) idle: bool,
}

impl Correspondent {
    pub(super) fn new(now: Instant, random: &mut Randomness) -> Self {
        Self {
            sequence: SequenceNumber((random.next_u64() >> 48) as u16),
            home: Test::default(),
            care_of: Test::default(),
            tested: None,
            bound: None,
            may_be_bound: false,
            update: None,
            updates: UpdateRate::default(),
            barred: None,
            repairs: 0,
            errors: None,
            used: now,
            idle: false,
        }
    }

    pub(super) fn stop(&mut self) {
        self.home.pending = None;
        self.care_of.pending = None;
        self.update = None;
    }

    /// Whether a test or an update is under way.
    pub(super) const fn is_busy(&self) -> bool {
        self.update.is_some() || self.home.pending.is_some() || self.care_of.pending.is_some()
    }

    /// When something is due; [`Instant::MAX`] for never.
    pub(super) fn deadline(&self) -> Instant {
        let expires = self.bound.map(|bound| bound.expires);
        let renewal = self.bound.map(|bound| bound.renew_at).filter(|_| !self.idle && !self.is_busy());
        let update = self.update.as_ref().map(|update| update.retransmission.next);
        let forgotten = (!self.idle).then_some(self.used + FORGOTTEN_AFTER);
        let tests = [self.home.deadline(), self.care_of.deadline()];
        let all = [expires, renewal, update, self.barred, forgotten].into_iter().chain(tests);
        all.flatten().min().unwrap_or(Instant::MAX)
    }
}

/// The correspondent nodes of a mobile node, at most as many as configured.
#[derive(Debug, Default)]
pub(super) struct Correspondents {
    pub(super) of: BTreeMap<Ipv6Addr, Correspondent>,
}

impl Correspondents {
    /// Whether `correspondent` has acknowledged that the node is at `care_of`.
    pub(super) fn knows(&self, correspondent: Ipv6Addr, care_of: Ipv6Addr, now: Instant) -> bool {
        let bound = self.of.get(&correspondent).and_then(|known| known.bound);
        bound.is_some_and(|bound| bound.care_of == care_of && now < bound.expires)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.of.values().map(Correspondent::deadline).min()
    }
}
