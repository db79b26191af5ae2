//! What an acknowledgement says of when released packets arrived.
//!
//! It answers one packet, and tells of all that have arrived since the last one. Which one it answers has to be known, for the course of a
//! replay goes by the time that packets take ([`crate::courses`]): a receiver acknowledges every second segment in order at least, and at once
//! what fills a hole or lies behind one (RFC 5681 section 4.2). What it had behind the hole had arrived before, by the path that was left perhaps, and
//! its acknowledgements were lost with that. Taken for an answer to what was released a moment ago, it would make the path look short, and all
//! that packets take later look like a queue.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::Segment;

use crate::courses::Arrived;
use crate::keeping::{Kept, Sent};

use super::state::State;

/// So many later ones have to have arrived before one is taken for lost (RFC 5681 section 3.2).
pub(super) const DUPLICATES: u8 = 3;

/// When the three were sent that were sent last of those that have arrived. It outlives the packets, which are forgotten when they are
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest([Option<Instant>; DUPLICATES as usize]);

impl Latest {
    pub(super) fn add(&mut self, sent: Instant) {
        let mut at = Some(sent);
        for known in &mut self.0 {
            if at > *known {
                core::mem::swap(known, &mut at);
            }
        }
    }

    /// What was sent before this and has not arrived is lost (by time, for what goes again is not in the order of its numbers: RFC 8985).
    pub(super) const fn third(&self) -> Option<Instant> {
        self.0[DUPLICATES as usize - 1]
    }
}

/// What one acknowledgement, or a block of it, is the first to tell of.
#[derive(Debug)]
pub(super) struct News {
    now: Instant,
    /// The timestamp that it echoes.
    echo: Option<u32>,
    /// Any of the first so many in order may be the one that it answers.
    may_be_answered: u8,
    /// No released packet is acknowledged sooner.
    least: Option<Duration>,
    /// When the one that it answers was released.
    released: Option<Instant>,
}

impl News {
    /// Of an acknowledgement that came `at_once`, not only with every second segment. A released packet takes at `least` so long.
    pub(super) fn of(now: Instant, at_once: bool, segment: &Segment, least: Option<Duration>) -> Self {
        let echo = segment.timestamps.map(|stamps| stamps.echo);
        Self { now, echo, may_be_answered: if at_once { 1 } else { 2 }, least, released: None }
    }

    /// The next in order is acknowledged.
    pub(super) fn acknowledged(&mut self, state: &mut State, kept: &Kept) {
        let released = self.learn(state, kept);
        if self.may_be_answered == 0 {
            return;
        }
        self.may_be_answered -= 1;
        // One with a younger timestamp than the echo had arrived before what this answers (RFC 7323 section 4.3).
        let is_younger = |(stamp, echo): (u32, u32)| stamp.wrapping_sub(echo) as i32 > 0;
        if !kept.stamp.zip(self.echo).is_some_and(is_younger) {
            self.released = self.released.max(released);
        }
    }

    /// It is in the block that is read. Of several there any may be the one that came last.
    pub(super) fn sacked(&mut self, state: &mut State, kept: &Kept) {
        let released = self.learn(state, kept);
        self.released = self.released.into_iter().chain(released).min();
    }

    /// Notes that a packet has arrived. Returns when it was released, if it was the copy that was released then.
    fn learn(&self, state: &mut State, kept: &Kept) -> Option<Instant> {
        Arrived::add(&mut state.arrived, kept);
        let by_present = kept.sent().filter(|sent| sent.by_us && !sent.left);
        let clear = kept.clearly_released(state.left_is_lost).filter(|sent| !sent.left);
        // If sooner than it can have been, another copy has arrived (RFC 8985 section 6.2).
        let takes_long_enough = |sent: &Sent| self.least.is_some_and(|least| self.now >= sent.at + least);
        if let Some(sent) = clear.or(by_present.filter(takes_long_enough)) {
            state.latest.add(sent.at);
        }
        clear.filter(|_| !kept.is_behind).map(|sent| sent.at)
    }

    /// Tells the course of the replay.
    pub(super) fn tell(self, state: &mut State) {
        if let Some(arrived) = &mut state.arrived {
            arrived.tell(self.released);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;
    use crate::keeping::Whereabouts;
    use careof_wire::SeqNumber;

    /// One that was released at this time.
    fn released(ms: u64, again: bool) -> Kept {
        let sent = Sent { at: Instant::from_millis(ms), by_us: true, again, left: false };
        let range = (SeqNumber(0), SeqNumber(1_000));
        Kept::new(Token(0), range, None, 1_040, Instant::ZERO, Whereabouts::Sent(sent))
    }

    /// When those were released of which an acknowledgement tells that they have arrived just now.
    fn told(at_once: bool, released_at: &[u64]) -> Option<Instant> {
        let mut state = State::default();
        let mut news = News::of(Instant::from_millis(100), at_once, &Segment::default(), None);
        for ms in released_at {
            news.acknowledged(&mut state, &released(*ms, false));
        }
        news.tell(&mut state);
        state.arrived.and_then(|arrived| arrived.released)
    }

    #[test]
    fn what_fills_a_hole_tells_nothing_of_what_the_receiver_had_behind_it() {
        assert_eq!(told(true, &[10, 90]), Some(Instant::from_millis(10)));
    }

    #[test]
    fn in_order_the_second_segment_at_most_makes_a_receiver_acknowledge() {
        assert_eq!(told(false, &[10, 20]), Some(Instant::from_millis(20)));
        assert_eq!(told(false, &[10, 20, 90]), Some(Instant::from_millis(20)));
    }

    #[test]
    fn of_several_in_a_block_the_earliest_counts() {
        let mut state = State::default();
        let mut news = News::of(Instant::from_millis(100), true, &Segment::default(), None);
        for ms in [40, 20, 90] {
            news.sacked(&mut state, &released(ms, false));
        }
        news.tell(&mut state);
        assert_eq!(state.arrived.and_then(|arrived| arrived.released), Some(Instant::from_millis(20)));
    }

    #[test]
    fn a_second_copy_speaks_for_what_was_lost_before_it_only_when_it_can_have_arrived() {
        let third = |now| {
            let mut state = State::default();
            let least = Some(Duration::from_millis(50));
            let mut news = News::of(Instant::from_millis(now), true, &Segment::default(), least);
            for ms in [10, 20, 30] {
                news.sacked(&mut state, &released(ms, true));
            }
            state.latest.third()
        };
        assert_eq!(third(79), None, "the last of the three arrived before that copy could");
        assert_eq!(third(80), Some(Instant::from_millis(10)));
    }
}
