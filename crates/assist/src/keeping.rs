//! What is stored for later: tokens, and the packets of one direction of a flow in order of arrival.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::{Limits, Token};

/// A stored packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) token: Token,
    /// Sequence number of its first byte.
    pub(crate) seq: SeqNumber,
    /// The one behind its last byte.
    pub(crate) end: SeqNumber,
    /// Its timestamp (TSval), if it has one.
    pub(crate) stamp: Option<u32>,
    /// Since when it is here for this purpose: when it arrived, or when it became owed again.
    pub(crate) at: Instant,
    /// Bytes of the whole datagram.
    pub(crate) size: u16,
    /// Where it is.
    pub(crate) whereabouts: Whereabouts,
    /// The receiver has it, though not all in front of it.
    pub(crate) is_sacked: bool,
    /// It was sent on, and later ones that were sent behind it arrived without it.
    pub(crate) is_missing: bool,
    /// It went on more than once by the present path, here or by its sender: what acknowledges it says of none of them when it arrived (Karn and Partridge
    /// 1987).
    pub(crate) is_repeated: bool,
    /// Since when as much that was sent behind it has arrived as a loss would show.
    pub(crate) passed_at: Option<Instant>,
    /// A repetition of it by its sender was kept from going on since it was sent.
    pub(crate) swallowed: bool,
    /// How often it was sent from here, up to 255.
    pub(crate) releases: u8,
    /// It ends no later than one that arrived before it: a repetition, or out of order.
    pub(crate) is_behind: bool,
}

impl Kept {
    /// A packet that arrives now.
    pub(crate) const fn new(
        token: Token,
        (seq, end): (SeqNumber, SeqNumber),
        stamp: Option<u32>,
        size: u16,
        at: Instant,
        whereabouts: Whereabouts,
    ) -> Self {
        Self {
            token,
            seq,
            end,
            stamp,
            at,
            size,
            whereabouts,
            is_sacked: false,
            is_missing: false,
            is_repeated: false,
            passed_at: None,
            swallowed: false,
            releases: 0,
            is_behind: false,
        }
    }

    /// Whether it has the byte.
    pub(crate) fn covers(&self, seq: SeqNumber) -> bool {
        self.seq.is_at_or_before(seq) && self.end.is_after(seq)
    }

    /// Whether it is to be sent on, again or for the first time.
    pub(crate) const fn waits(&self) -> bool {
        !matches!(self.whereabouts, Whereabouts::Sent(_))
    }

    /// Whether it was released from here and may be on its way.
    fn is_out(&self) -> bool {
        !self.is_sacked && self.sent().is_some_and(|sent| sent.by_us && !sent.left)
    }

    /// When it was released from here, if what acknowledges it says when that arrived: it is no second copy, and the path that was left
    /// delivers no first one.
    pub(crate) fn clearly_released(&self, left_is_lost: bool) -> Option<Sent> {
        self.sent().filter(|sent| sent.by_us && !self.is_repeated && (left_is_lost || !sent.again))
    }

    /// By how much it is late, which has arrived `now`, if it was passed and what has arrived is not the copy that was sent because of that: one that
    /// is acknowledged sooner than the `fastest` round trip was not (RFC 8985 section 6.2, step 2).
    pub(crate) fn late(&self, now: Instant, fastest: Duration) -> Option<Duration> {
        let since = self.passed_at?;
        let is_first = match self.whereabouts {
            Whereabouts::Here => false,
            Whereabouts::Owed => true,
            Whereabouts::Sent(sent) => !self.is_repeated || now < sent.at + fastest,
        };
        is_first.then(|| now.saturating_duration_since(since))
    }

    /// When it was last sent on, if it does not wait.
    pub(crate) const fn sent(&self) -> Option<Sent> {
        match self.whereabouts {
            Whereabouts::Sent(sent) => Some(sent),
            Whereabouts::Here | Whereabouts::Owed => None,
        }
    }
}

/// Where a stored packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Only here: it waits for its turn and has never gone on.
    Here,
    /// It went on and is taken for lost: it waits for its turn to go again.
    Owed,
    /// It went on, and a copy is here.
    Sent(Sent),
}

/// How a packet went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    /// It was released from here, not let through when it came.
    pub(crate) by_us: bool,
    /// It had gone on before, by a path that was left: what acknowledges it may acknowledge that copy.
    pub(crate) again: bool,
    /// The path it went by is not the present one any longer.
    pub(crate) left: bool,
}

/// A packet that waits in a queue of its mobile node, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) token: Token,
    /// Bytes of the whole datagram.
    pub(crate) size: u16,
}

/// The tokens, and how much is stored under them.
#[derive(Debug)]
pub(crate) struct Store {
    free: Vec<Token>,
    /// Tokens given out at least once are below this.
    fresh: u32,
    packets: usize,
    bytes: u64,
    limits: Limits,
}

impl Store {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { free: Vec::new(), fresh: 0, packets: 0, bytes: 0, limits }
    }

    /// A token for a packet of `size` bytes; `None` when the store is full.
    pub(crate) fn take(&mut self, size: u16) -> Option<Token> {
        let bytes = self.bytes + u64::from(size);
        if self.packets >= self.limits.packets || bytes > self.limits.bytes {
            return None;
        }
        let token = self.free.pop().or_else(|| {
            // Tokens that were polled away are in `free`; those on their way out count as stored until then.
            let token = Token(self.fresh);
            self.fresh = self.fresh.checked_add(1)?;
            Some(token)
        })?;
        self.packets += 1;
        self.bytes = bytes;
        Some(token)
    }

    /// The world was told that it may forget the packet: only now may its token stand for another one.
    pub(crate) fn give_back(&mut self, token: Token, size: u16) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
        self.free.push(token);
    }

    /// Packets and bytes stored.
    pub(crate) const fn load(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    /// Packets and bytes above a level at which there is room again; `None` while less than a sixteenth is missing to the
    /// bounds. Between both lies what is made room for in one go.
    pub(crate) fn excess(&self) -> Option<(usize, u64)> {
        let high = |limit: u64| limit - limit / 16;
        let low = |limit: u64| limit - limit / 8;
        let packets = self.limits.packets as u64;
        let is_short = self.packets as u64 >= high(packets) || self.bytes >= high(self.limits.bytes);
        is_short.then(|| {
            let above = (self.packets as u64 + 1).saturating_sub(low(packets));
            (above as usize, (self.bytes + 1).saturating_sub(low(self.limits.bytes)))
        })
    }
}

/// How much of a flow's packets is in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Packets that wait for their turn.
    pub(crate) waiting: usize,
    /// Their bytes.
    pub(crate) waiting_bytes: u64,
    /// How many of them, the first, were there when the replay began: the others came behind it.
    pub(crate) owed: usize,
    /// Bytes released that have not arrived, as far as the receiver has said.
    pub(crate) out: u64,
}

/// The stored packets of one direction of one flow, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    packets: VecDeque<Kept>,
    bytes: u64,
    /// This many at the front do not wait.
    settled: usize,
    tally: Tally,
    /// How many ended no later than one in front of them when they came. If none, the ends are in order.
    behind: usize,
    highest: Option<SeqNumber>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes of the whole datagrams.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether something waits for its turn.
    pub(crate) const fn has_waiting(&self) -> bool {
        self.tally.waiting > 0
    }

    /// The highest end of what is stored.
    pub(crate) const fn highest(&self) -> Option<SeqNumber> {
        self.highest
    }

    pub(crate) fn oldest(&self) -> Option<&Kept> {
        self.packets.front()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Kept> + ExactSizeIterator {
        self.packets.iter()
    }

    pub(crate) fn push(&mut self, mut kept: Kept) {
        kept.is_behind = self.highest.is_some_and(|highest| kept.end.is_at_or_before(highest));
        if kept.is_behind {
            self.behind += 1;
        } else {
            self.highest = Some(kept.end);
        }
        self.bytes += u64::from(kept.size);
        if kept.waits() {
            self.tally.waiting += 1;
            self.tally.waiting_bytes += u64::from(kept.size);
        }
        self.packets.push_back(kept);
    }

    /// Counts out a packet that was just taken out from place `index`; `waiting_before` of those in front of it wait.
    fn count_out(&mut self, kept: &Kept, index: usize, waiting_before: usize) {
        self.bytes -= u64::from(kept.size);
        self.behind -= usize::from(kept.is_behind);
        if kept.waits() {
            self.tally.waiting -= 1;
            self.tally.waiting_bytes -= u64::from(kept.size);
            if waiting_before < self.tally.owed {
                self.tally.owed -= 1;
            }
        } else if kept.is_out() {
            self.tally.out -= u64::from(kept.size);
        }
        if index < self.settled {
            self.settled -= 1;
        }
        if self.packets.is_empty() {
            self.highest = None;
        }
    }

    pub(crate) fn pop_oldest(&mut self) -> Option<Kept> {
        let kept = self.packets.pop_front()?;
        self.count_out(&kept, 0, 0);
        Some(kept)
    }

    /// Takes out the newest one that waits.
    pub(crate) fn pop_newest_waiting(&mut self) -> Option<Kept> {
        let index = self.packets.iter().rposition(Kept::waits)?;
        let kept = self.packets.remove(index)?;
        self.count_out(&kept, index, self.tally.waiting - 1);
        Some(kept)
    }

    /// Takes out what `is_wanted` does not want, in order.
    pub(crate) fn retain(&mut self, mut is_wanted: impl FnMut(&Kept) -> bool, mut out: impl FnMut(Kept)) {
        let mut index = 0;
        let mut waiting_before = 0;
        for _ in 0..self.packets.len() {
            let Some(kept) = self.packets.pop_front() else { break };
            if is_wanted(&kept) {
                index += 1;
                waiting_before += usize::from(kept.waits());
                self.packets.push_back(kept);
            } else {
                self.count_out(&kept, index, waiting_before);
                out(kept);
            }
        }
    }

    /// Takes out what ends at or before `una`.
    pub(crate) fn acknowledge(&mut self, una: SeqNumber, mut out: impl FnMut(Kept)) {
        if self.behind > 0 {
            return self.retain(|kept| kept.end.is_after(una), out);
        }
        while self.packets.front().is_some_and(|kept| kept.end.is_at_or_before(una)) {
            if let Some(kept) = self.pop_oldest() {
                out(kept);
            }
        }
    }

    /// The next one to be sent on.
    pub(crate) fn next_waiting(&mut self) -> Option<&Kept> {
        if self.tally.waiting == 0 {
            self.settled = self.packets.len();
            return None;
        }
        while self.packets.get(self.settled).is_some_and(|kept| !kept.waits()) {
            self.settled += 1;
        }
        self.packets.get(self.settled)
    }

    /// It was sent on. Returns it as it was before.
    pub(crate) fn send_next(&mut self, now: Instant) -> Option<Kept> {
        self.next_waiting()?;
        let kept = self.packets.get_mut(self.settled)?;
        let before = *kept;
        let again = kept.whereabouts == Whereabouts::Owed;
        kept.whereabouts = Whereabouts::Sent(Sent { at: now, by_us: true, again, left: false });
        kept.is_missing = false;
        kept.is_sacked = false;
        kept.swallowed = false;
        kept.releases = kept.releases.saturating_add(1);
        self.settled += 1;
        self.tally.waiting -= 1;
        self.tally.waiting_bytes -= u64::from(before.size);
        self.tally.owed = self.tally.owed.saturating_sub(1);
        self.tally.out += u64::from(before.size);
        Some(before)
    }

    /// Lets wait again what `is_owed` says of those that were sent on.
    pub(crate) fn owe(&mut self, now: Instant, mut is_owed: impl FnMut(&Kept, Sent) -> bool) {
        self.settled = 0;
        for kept in &mut self.packets {
            if let Some(sent) = kept.sent()
                && is_owed(kept, sent)
            {
                if kept.is_out() {
                    self.tally.out -= u64::from(kept.size);
                }
                kept.is_repeated |= sent.by_us && !sent.left;
                kept.whereabouts = Whereabouts::Owed;
                kept.at = now;
                kept.is_missing = false;
                self.tally.waiting += 1;
                self.tally.waiting_bytes += u64::from(kept.size);
                // Those that wait already and came behind the last replay stay behind, those in front of them not.
                self.tally.owed += 1;
            }
        }
    }

    /// All that waits counts as there when the replay began.
    pub(crate) const fn begin_replay(&mut self) {
        self.tally.owed = self.tally.waiting;
    }

    /// The receiver has what lies between `left` and `right`. Tells of each for which that is new.
    pub(crate) fn mark_sacked(&mut self, left: SeqNumber, right: SeqNumber, mut news: impl FnMut(&Kept)) {
        let range = match self.behind {
            0 => {
                let before = |seq: SeqNumber| move |kept: &Kept| kept.end.is_at_or_before(seq);
                self.packets.partition_point(before(left))..self.packets.partition_point(before(right))
            }
            _ => 0..self.packets.len(),
        };
        for kept in self.packets.range_mut(range) {
            let is_inside = kept.seq.is_at_or_after(left) && kept.end.is_at_or_before(right);
            if is_inside && !kept.is_sacked {
                if kept.is_out() {
                    self.tally.out -= u64::from(kept.size);
                }
                kept.is_sacked = true;
                news(kept);
            }
        }
    }

    /// Changes marks, but not whereabouts.
    pub(crate) fn mark(&mut self, mut mark: impl FnMut(&mut Kept)) {
        for kept in &mut self.packets {
            mark(kept);
        }
    }

    /// The path that all that was sent on went by is left.
    pub(crate) fn leave_path(&mut self) {
        self.tally.out = 0;
        for kept in &mut self.packets {
            kept.is_repeated = false;
            kept.passed_at = None;
            if let Whereabouts::Sent(sent) = &mut kept.whereabouts {
                sent.left = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(token: u32, seq: u32, waits: bool) -> Kept {
        let whereabouts = match waits {
            true => Whereabouts::Here,
            false => Whereabouts::Sent(Sent { at: Instant::ZERO, by_us: false, again: false, left: false }),
        };
        let range = (SeqNumber(seq), SeqNumber(seq).plus(100));
        Kept::new(Token(token), range, None, 140, Instant::ZERO, whereabouts)
    }

    #[test]
    fn the_bounds_hold_and_tokens_come_back() {
        let mut store = Store::new(Limits { packets: 2, bytes: 2_000, ..Limits::DEFAULT });
        let first = store.take(1_500).unwrap();
        assert_eq!(store.take(501), None);
        let second = store.take(500).unwrap();
        assert_ne!(first, second);
        assert_eq!(store.take(0), None);
        store.give_back(first, 1_500);
        assert_eq!(store.load(), (1, 500));
        assert_eq!(store.take(1), Some(first));
    }

    #[test]
    fn room_is_made_before_the_store_is_full() {
        let mut store = Store::new(Limits { packets: 32, bytes: 1 << 20, ..Limits::DEFAULT });
        for _ in 0..29 {
            store.take(1).unwrap();
        }
        assert_eq!(store.excess(), None);
        store.take(1).unwrap();
        assert_eq!(store.excess(), Some((3, 0)), "30 of 32: down to 27");
    }

    #[test]
    fn what_is_acknowledged_goes_across_the_wrap_and_in_spite_of_a_repetition() {
        let mut queue = Queue::default();
        let first = u32::MAX - 150;
        for (token, seq) in [(0, first), (1, first.wrapping_add(100)), (2, first.wrapping_add(200))] {
            queue.push(kept(token, seq, false));
        }
        queue.push(kept(3, first, false));
        let mut gone = Vec::new();
        queue.acknowledge(SeqNumber(first.wrapping_add(200)), |kept| gone.push(kept.token.0));
        assert_eq!(gone, [0, 1, 3]);
        assert_eq!((queue.len(), queue.bytes(), queue.behind), (1, 140, 0));
    }

    #[test]
    fn the_tally_follows_what_waits_and_what_is_out() {
        let mut queue = Queue::default();
        for token in 0..3 {
            queue.push(kept(token, token * 100, false));
        }
        queue.owe(Instant::ZERO, |_, _| true);
        queue.begin_replay();
        queue.push(kept(3, 300, true));
        assert_eq!(queue.tally(), Tally { waiting: 4, waiting_bytes: 560, owed: 3, out: 0 });
        assert_eq!(queue.send_next(Instant::ZERO).map(|kept| kept.token), Some(Token(0)));
        assert_eq!(queue.tally(), Tally { waiting: 3, waiting_bytes: 420, owed: 2, out: 140 });
        queue.acknowledge(SeqNumber(200), |_| {});
        assert_eq!(queue.tally(), Tally { waiting: 2, waiting_bytes: 280, owed: 1, out: 0 });
        assert_eq!(queue.pop_newest_waiting().map(|kept| kept.token), Some(Token(3)));
        assert_eq!(queue.tally().owed, 1);
        assert_eq!(queue.next_waiting().map(|kept| kept.token), Some(Token(2)));
        queue.send_next(Instant::ZERO);
        assert_eq!(queue.pop_newest_waiting(), None);
        queue.push(kept(4, 400, false));
        queue.owe(Instant::ZERO, |_, sent| sent.by_us);
        assert_eq!(queue.tally(), Tally { waiting: 1, waiting_bytes: 140, owed: 1, out: 0 });
        assert_eq!(queue.pop_newest_waiting().map(|kept| kept.token), Some(Token(2)));
    }
}
