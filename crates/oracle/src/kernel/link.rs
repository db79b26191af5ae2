//! The link of a trace: per direction a drop-tail queue, a serialiser and a fixed delay, and the script that disturbs
//! it. A packet arrives at max(now, end of the packet before) + 8 len / R + D.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use careof_base::{DataRate, Instant};

use super::script::{Cause, Script};

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the sender of the data.
    Forth,
    /// From its receiver.
    Back,
}

/// A packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The first segment of the handshake.
    Syn,
    /// The answer to it.
    SynAck,
    /// What else has no data and no number: the end of the handshake, probes of a closed window.
    Handshake,
    /// A data segment, counted from 1 by sequence number.
    Data(u32),
    /// Data that begin with this sequence number, within the segment of this number.
    Part(u32, u32),
    /// An acknowledgement, counted from 1.
    Ack(u32),
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives then.
    Arrives(Instant),
    /// It reaches the far end then, and is held there until this many later segments have arrived.
    Held(Instant, u32),
    /// The script lost it.
    Dropped,
    /// A blackout lost it.
    Black,
    /// The queue was full.
    QueueFull,
}

#[derive(Clone, Debug)]
struct Direction {
    busy_until: Instant,
    /// When those that are queued or being serialised will have left.
    departures: VecDeque<Instant>,
    last_arrival: Instant,
}

impl Direction {
    /// A packet that leaves at `now` is still there. A model's host answers at once, so that what an acknowledgement sets off
    /// meets departures at the very same instant, round after round; a kernel takes time, and longer for what begins a
    /// round after a pause, so that the queue is emptied a few microseconds after what follows comes (1 to 26 in the traces
    /// with a queue of 20). Their losses are those of this rule. ns-2's are, too, where an
    /// acknowledgement is longer on its way than a packet in the serialiser: of two events at one instant the one scheduled first is first.
    fn leave(&mut self, now: Instant) {
        while self.departures.front().is_some_and(|&left| left < now) {
            self.departures.pop_front();
        }
    }
}

/// The link.
#[derive(Clone, Debug)]
pub struct Link {
    script: Script,
    rate: DataRate,
    delay: Duration,
    ways: [Direction; 2],
    /// How often each data segment has entered, counted from its first byte.
    entered: Vec<u32>,
    /// How often data have entered that begin elsewhere, by their sequence number.
    parts: BTreeMap<u32, u32>,
    /// Segments that have entered, in whole or in part: what the script ties to them has begun.
    begun: BTreeSet<u32>,
    /// SYNs and SYN-ACKs that have entered.
    handshake: [u32; 2],
    black_until: Instant,
    /// A spike: what enters arrives no sooner.
    nothing_before: Instant,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(script: &Script) -> Self {
        let way =
            Direction { busy_until: Instant::ZERO, departures: VecDeque::new(), last_arrival: Instant::ZERO };
        Self {
            rate: DataRate::from_bits_per_second(script.rate),
            delay: Duration::from_micros(script.owd_us),
            ways: [way.clone(), way],
            entered: Vec::new(),
            parts: BTreeMap::new(),
            begun: BTreeSet::new(),
            handshake: [0; 2],
            black_until: Instant::ZERO,
            nothing_before: Instant::ZERO,
            script: script.clone(),
        }
    }

    /// A packet of `bytes` bytes enters. `now` must not go back.
    pub fn enter(&mut self, now: Instant, way: Way, packet: Packet, bytes: u64) -> Fate {
        let mut held = None;
        match packet {
            Packet::Data(segment) | Packet::Part(segment, _) => {
                let transmission = self.count(packet);
                if self.is_first(segment, transmission) {
                    self.begin(now, segment);
                    held = self.script.reorders.iter().find(|reorder| reorder.0 == segment).map(|r| r.1);
                }
                if self.script.loses(segment, transmission) {
                    return Fate::Dropped;
                }
            }
            Packet::Ack(ordinal) if self.script.loses_ack(ordinal) => return Fate::Dropped,
            Packet::Syn | Packet::SynAck => {
                let which = usize::from(packet == Packet::SynAck);
                self.handshake[which] += 1;
                let lost = [self.script.syn_drops, self.script.syn_ack_drops][which];
                if self.handshake[which] <= lost {
                    return Fate::Dropped;
                }
            }
            Packet::Ack(_) | Packet::Handshake => {}
        }
        if now < self.black_until {
            return Fate::Black;
        }
        let Some(arrival) = self.carry(now, way, bytes) else { return Fate::QueueFull };
        held.map_or(Fate::Arrives(arrival), |later| Fate::Held(arrival, later))
    }

    /// Packets that stand in the queue or are being serialised.
    pub fn waiting(&mut self, now: Instant, way: Way) -> usize {
        let direction = &mut self.ways[way as usize];
        direction.leave(now);
        direction.departures.len()
    }

    /// Both serialisers are of this rate from now on; what has entered leaves as it would have.
    pub fn set_rate(&mut self, rate: DataRate) {
        self.rate = rate;
    }

    /// Whether this is the first time that anything of the segment enters.
    fn is_first(&mut self, segment: u32, transmission: u32) -> bool {
        let scripted = !(self.script.blackouts.is_empty()
            && self.script.delay_steps.is_empty()
            && self.script.spikes.is_empty()
            && self.script.reorders.is_empty());
        scripted && transmission == 1 && self.begun.insert(segment)
    }

    /// One more transmission of these data; returns which it is.
    fn count(&mut self, packet: Packet) -> u32 {
        let index = match packet {
            Packet::Data(segment) => segment as usize,
            Packet::Part(_, seq) => {
                let times = self.parts.entry(seq).or_default();
                *times += 1;
                return *times;
            }
            _ => return 0,
        };
        if index >= self.entered.len() {
            self.entered.resize(index + 1, 0);
        }
        self.entered[index] += 1;
        self.entered[index]
    }

    /// What the first entry of a segment sets off.
    fn begin(&mut self, now: Instant, segment: u32) {
        let hits = |cause: &Cause| *cause == Cause::Segment(segment);
        for (_, span) in self.script.blackouts.iter().filter(|(cause, _)| hits(cause)) {
            self.black_until = self.black_until.max(now + Duration::from_micros(*span));
        }
        for (_, delay) in self.script.delay_steps.iter().filter(|(cause, _)| hits(cause)) {
            self.delay = Duration::from_micros(*delay);
        }
        for (_, span) in self.script.spikes.iter().filter(|(cause, _)| hits(cause)) {
            self.nothing_before = self.nothing_before.max(now + Duration::from_micros(*span));
        }
    }

    /// Queue, serialiser and delay; `None` when the queue is full.
    fn carry(&mut self, now: Instant, way: Way, bytes: u64) -> Option<Instant> {
        let direction = &mut self.ways[way as usize];
        direction.leave(now);
        if direction.departures.len() >= self.script.queue {
            return None;
        }
        direction.busy_until = direction.busy_until.max(now) + self.rate.time_for_bits(bytes * 8)?;
        direction.departures.push_back(direction.busy_until);
        let mut arrival = (direction.busy_until + self.delay).max(self.nothing_before);
        if self.script.fifo {
            arrival = arrival.max(direction.last_arrival);
        }
        direction.last_arrival = arrival;
        Some(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Trace;
    use crate::kernel::tests::small;

    /// The link of the small trace, with more flags.
    fn link(flags: &str) -> Link {
        let text = small().replace("--segs 4", &format!("--segs 4 {flags}"));
        Link::new(&Script::of(&Trace::parse("x", &text).unwrap()).unwrap())
    }

    fn us(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    fn ns(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    const SEGMENT: u64 = 1_500;

    #[test]
    fn a_packet_arrives_after_its_serialisation_and_the_delay() {
        let mut link = link("");
        assert_eq!(link.enter(us(100), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_300)));
        assert_eq!(link.enter(us(100), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(27_500)));
        // The other direction is idle: 52 bytes take 41.6 us.
        assert_eq!(link.enter(us(100), Way::Back, Packet::Ack(1), 52), Fate::Arrives(ns(25_141_600)));
    }

    #[test]
    fn a_scripted_loss_uses_no_link_time() {
        let mut link = link("--drop 2,3:2");
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_200)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Dropped);
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(27_400)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(3), SEGMENT), Fate::Dropped);
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(3), SEGMENT), Fate::Dropped);
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(3), SEGMENT), Fate::Arrives(us(28_600)));
    }

    #[test]
    fn a_blackout_loses_what_enters_either_way_while_it_lasts() {
        let mut link = link("--blackout seg:2,1000");
        assert_eq!(link.enter(us(0), Way::Back, Packet::Ack(1), 52), Fate::Arrives(ns(25_041_600)));
        assert_eq!(link.enter(us(10), Way::Forth, Packet::Data(2), SEGMENT), Fate::Black);
        assert_eq!(link.enter(us(500), Way::Back, Packet::Ack(2), 52), Fate::Black);
        assert_eq!(link.enter(us(1_009), Way::Forth, Packet::Data(3), SEGMENT), Fate::Black);
        assert_eq!(link.enter(us(1_010), Way::Forth, Packet::Data(4), SEGMENT), Fate::Arrives(us(27_210)));
    }

    #[test]
    fn a_step_of_the_delay_begins_with_its_segment_and_lets_nothing_overtake() {
        let mut up = link("--owdstep seg:2,350000");
        assert_eq!(up.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_200)));
        assert_eq!(up.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(352_400)));
        assert_eq!(up.enter(us(0), Way::Back, Packet::Ack(1), 52), Fate::Arrives(ns(350_041_600)));
        let mut down = link("--owdstep seg:2,1000");
        assert_eq!(down.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_200)));
        assert_eq!(down.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(26_200)));
        let mut overtaking = link("--owdstep seg:2,1000 --fifo 0");
        overtaking.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT);
        assert_eq!(overtaking.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(3_400)));
    }

    #[test]
    fn a_held_segment_uses_the_link_and_waits_at_its_end() {
        let mut link = link("--reorder 1:3");
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Held(us(26_200), 3));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(27_400)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(28_600)));
    }

    #[test]
    fn a_spike_holds_back_what_enters_after_it_either_way_and_nothing_that_is_in_flight() {
        let mut link = link("--spike seg:2,500000");
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_200)));
        assert_eq!(link.enter(us(70), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(500_070)));
        assert_eq!(link.enter(us(80), Way::Back, Packet::Ack(1), 52), Fate::Arrives(us(500_070)));
        assert_eq!(link.enter(us(90), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(500_070)));
        assert_eq!(link.enter(us(490_000), Way::Forth, Packet::Data(3), SEGMENT), Fate::Arrives(us(516_200)));
    }

    #[test]
    fn the_first_syns_and_syn_acks_are_lost_by_their_count() {
        let mut link = link("--syndrop 2 --synackdrop 1");
        let mut fates = |way, packet| -> Vec<bool> {
            (0..3).map(|_| link.enter(us(0), way, packet, 60) == Fate::Dropped).collect()
        };
        assert_eq!(fates(Way::Forth, Packet::Syn), [true, true, false]);
        assert_eq!(fates(Way::Back, Packet::SynAck), [true, false, false]);
        assert_eq!(fates(Way::Forth, Packet::Handshake), [false; 3]);
    }

    #[test]
    fn parts_of_a_segment_are_counted_by_their_own_sequence_numbers() {
        let mut link = link("--drop 2 --blackout seg:3,100");
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Dropped);
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Part(2, 1_549), 152), Fate::Dropped);
        assert!(matches!(link.enter(us(0), Way::Forth, Packet::Part(2, 1_549), 152), Fate::Arrives(_)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Part(3, 3_000), 152), Fate::Black);
        assert!(matches!(link.enter(us(100), Way::Forth, Packet::Data(3), SEGMENT), Fate::Arrives(_)));
    }

    #[test]
    fn acknowledgements_are_lost_by_their_ordinals() {
        let mut link = link("--ackdrop 5-6 --ackmod 2");
        let fates: Vec<bool> = (1..=8)
            .map(|ordinal| link.enter(us(0), Way::Back, Packet::Ack(ordinal), 52) == Fate::Dropped)
            .collect();
        assert_eq!(fates, [true, false, true, false, true, true, true, false]);
    }

    #[test]
    fn a_full_queue_loses_what_comes() {
        let text = small().replace("--queue 1000", "--queue 2");
        let mut link = Link::new(&Script::of(&Trace::parse("x", &text).unwrap()).unwrap());
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(1), SEGMENT), Fate::Arrives(us(26_200)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(2), SEGMENT), Fate::Arrives(us(27_400)));
        assert_eq!(link.enter(us(0), Way::Forth, Packet::Data(3), SEGMENT), Fate::QueueFull);
        // At the instant at which the first leaves it still has its place.
        assert_eq!(link.enter(us(1_200), Way::Forth, Packet::Data(3), SEGMENT), Fate::QueueFull);
        assert_eq!(
            link.enter(ns(1_200_001), Way::Forth, Packet::Data(4), SEGMENT),
            Fate::Arrives(us(28_600))
        );
    }

    #[test]
    fn a_script_that_makes_no_sense_is_refused() {
        for (flags, expected) in [
            ("--drop x", "--drop is \"x\""),
            ("--blackout 60,3000", "--blackout is \"60,3000\""),
            ("--reorder 40", "--reorder is \"40\""),
            ("--fifo 2", "--fifo is \"2\""),
            ("--ackdrop 5-", "--ackdrop is \"\""),
            ("--wobble", "unknown flag --wobble"),
        ] {
            let text = small().replace("--segs 4", &format!("--segs 4 {flags}"));
            let error = Script::of(&Trace::parse("x", &text).unwrap()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let text = small().replace("--rate 10000000", "");
        assert!(Script::of(&Trace::parse("x", &text).unwrap()).is_err());
    }
}
