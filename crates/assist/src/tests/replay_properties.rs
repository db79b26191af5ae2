//! What holds of replay whatever happens.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::PathProperties;
use careof_wire::{Flags, ReceivedData, Segment, SeqNumber, Timestamps};
use proptest::option;
use proptest::prelude::*;

use super::script::{Over, header_of, path};
use crate::{
    Action, Assistant, Config, Fate, HoldLast, Input, Limits, PacketView, Place, Replay, Rest, Token,
    Towards, Which,
};

/// Near the wrap.
const FIRST: SeqNumber = SeqNumber(u32::MAX - 2_500);
const FLOWS: usize = 3;

#[derive(Clone, Debug)]
enum Event {
    /// New data, or a repetition that begins so far back.
    Data {
        flow: usize,
        back: u32,
        len: u16,
    },
    /// Data got lost in front of us: the next new data leave a hole.
    Skip {
        flow: usize,
        len: u16,
    },
    /// So much of what was sent is acknowledged, in 1/256; SACK of the last so many bytes.
    Ack {
        flow: usize,
        part: u8,
        sack: u16,
    },
    /// A segment without data, so far back.
    Bare {
        flow: usize,
        back: u32,
    },
    Reset {
        flow: usize,
    },
    Path {
        id: u16,
        kilobits: Option<u64>,
        round_trip_ms: Option<u64>,
        lost: Option<bool>,
    },
    Down {
        id: u16,
    },
    Up {
        id: u16,
    },
    Wait {
        ms: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let flow = 0..FLOWS;
    prop_oneof![
        12 => (flow.clone(), 1..1_461u16).prop_map(|(flow, len)| Event::Data { flow, back: 0, len }),
        4 => (flow.clone(), 0..6_000u32, 1..1_461u16)
            .prop_map(|(flow, back, len)| Event::Data { flow, back, len }),
        1 => (flow.clone(), 1..1_461u16).prop_map(|(flow, len)| Event::Skip { flow, len }),
        6 => (flow.clone(), any::<u8>(), 0..3_000u16)
            .prop_map(|(flow, part, sack)| Event::Ack { flow, part, sack }),
        1 => (flow.clone(), 0..3_000u32).prop_map(|(flow, back)| Event::Bare { flow, back }),
        1 => flow.prop_map(|flow| Event::Reset { flow }),
        4 => (1..4u16, option::of(1..20_000u64), option::of(1..800u64), any::<Option<bool>>()).prop_map(
            |(id, kilobits, round_trip_ms, lost)| Event::Path { id, kilobits, round_trip_ms, lost }
        ),
        1 => (1..4u16).prop_map(|id| Event::Down { id }),
        1 => (1..4u16).prop_map(|id| Event::Up { id }),
        6 => (0..400u64).prop_map(|ms| Event::Wait { ms }),
        1 => (0..40_000u64).prop_map(|ms| Event::Wait { ms }),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let rest = prop_oneof![Just(Rest::Wait), Just(Rest::Drop), Just(Rest::Burst)];
    let keep = prop_oneof![Just(Which::Oldest), Just(Which::Newest)];
    let replay = (1..40_000u64, 1..24usize, 1..40u64, keep, rest, 0..5_000u64, any::<bool>(), 0..3u32)
        .prop_map(|(bytes, packets, age, keep, rest, wait, swallow, patience)| Replay {
            bytes,
            packets,
            age: Duration::from_secs(age),
            keep,
            rest,
            wait: Duration::from_millis(wait),
            swallow,
            patience,
        });
    let limits = (1..4usize, 1..40usize, 1..50_000u64).prop_map(|(flows, packets, bytes)| Limits {
        flows,
        packets,
        bytes,
        ..Limits::DEFAULT
    });
    (option::weighted(0.9, replay), limits).prop_map(|(replay, limits)| Config {
        replay,
        hold_last: replay.is_none().then_some(HoldLast::DEFAULT),
        limits,
        ..Config::none(Place::HomeAgent)
    })
}

fn over() -> impl Strategy<Value = Over> {
    prop_oneof![Just(Over::Ipv4), Just(Over::Ipv6)]
}

/// A packet as the world stores it.
#[derive(Clone, Copy)]
struct Stored {
    flow: usize,
    /// Its place in the order of arrival of its flow.
    index: u64,
    size: u16,
    has_gone_on: bool,
}

struct World {
    assistant: Assistant,
    over: Over,
    now: Instant,
    stored: BTreeMap<Token, Stored>,
    next: [SeqNumber; FLOWS],
    una: [SeqNumber; FLOWS],
    /// Bytes lost in front of us, ahead of the next new data.
    gap: [u32; FLOWS],
    arrived: [u64; FLOWS],
    turns: u32,
    /// The latest that went on for the first time.
    gone_on: [Option<u64>; FLOWS],
}

impl World {
    fn new(over: Over, config: Config) -> Self {
        Self {
            assistant: Assistant::new(config).expect("it holds together"),
            over,
            now: Instant::ZERO,
            stored: BTreeMap::new(),
            next: [FIRST; FLOWS],
            una: [FIRST; FLOWS],
            gap: [0; FLOWS],
            arrived: [0; FLOWS],
            turns: 0,
            gone_on: [None; FLOWS],
        }
    }

    /// A packet goes on for the first time.
    fn go_on(&mut self, flow: usize, index: u64) {
        assert!(self.gone_on[flow].is_none_or(|last| last < index), "out of order: {index} of flow {flow}");
        self.gone_on[flow] = Some(index);
    }

    fn drain(&mut self) {
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        self.turns += 1;
        assert!(self.turns < 100_000, "it comes to rest");
        while let Some(action) = self.assistant.poll_action() {
            match action {
                Action::Release { token, via, keep } => {
                    assert_eq!(via, None);
                    let stored = *self.stored.get(&token).expect("it is stored");
                    let before = last.insert(stored.flow, stored.index);
                    assert!(
                        before.is_none_or(|before| before < stored.index),
                        "a replay in order of arrival"
                    );
                    if !stored.has_gone_on {
                        self.go_on(stored.flow, stored.index);
                    }
                    if keep {
                        self.stored.insert(token, Stored { has_gone_on: true, ..stored });
                    } else {
                        self.stored.remove(&token);
                    }
                }
                Action::Discard { token, dropped } => {
                    let stored = self.stored.remove(&token).expect("it is stored");
                    assert_eq!(
                        dropped.is_some(),
                        !stored.has_gone_on,
                        "a loss has a reason, a copy has none"
                    );
                }
                // The last acknowledgement once more: what it may say, the test of arbitrary headers holds up.
                Action::Inject { segment, .. } => assert_eq!(segment.seq_len(), 0, "it has no data"),
                Action::Unreachable { .. } | Action::TooBig { .. } => {
                    panic!("not of replay")
                }
            }
        }
        while self.assistant.poll_report().is_some() {}
        self.check();
    }

    fn check(&self) {
        let bytes: u64 = self.stored.values().map(|stored| u64::from(stored.size)).sum();
        assert_eq!(self.assistant.load(), (self.stored.len(), bytes));
        let config = self.assistant.config();
        assert!(self.stored.len() <= config.limits.packets && bytes <= config.limits.bytes);
        assert!(self.assistant.flows().count() <= config.limits.flows);
        for flow in self.assistant.flows() {
            let (packets, bytes) = match (config.replay, config.hold_last) {
                (Some(replay), _) => (replay.packets, replay.bytes),
                (None, Some(hold)) => (hold.packets, u64::MAX),
                (None, None) => unreachable!("one of them is used"),
            };
            assert!(flow.packets <= packets && flow.bytes <= bytes, "{flow:?}");
        }
        let (next, _) = self.assistant.next_timeout().unwrap_or((Instant::MAX, crate::Wake::Age));
        assert!(next > self.now, "nothing that is due is left");
    }

    fn wait_until(&mut self, until: Instant) {
        while let Some((at, _)) = self.assistant.next_timeout().filter(|(at, _)| *at <= until) {
            self.now = at;
            self.assistant.handle_timeout(at);
            self.drain();
        }
        self.now = until;
    }

    fn segment(&mut self, towards: Towards, flow: usize, mut segment: Segment) {
        let port = 40_000 + flow as u16;
        (segment.source_port, segment.destination_port) = match towards {
            Towards::Mobile => (80, port),
            Towards::Peer => (port, 80),
        };
        // The echo is of no older segment than what is acknowledged may have been: an original passes PAWS.
        let value = self.now.since_start().as_millis() as u32;
        segment.timestamps = Some(Timestamps { value, echo: 0 });
        let header = header_of(self.over.addresses(towards), &segment);
        let overhead = self.over.overhead();
        let view = PacketView { header, segment: Some(&segment), is_opaque: false, overhead };
        let verdict = self.assistant.handle_packet(self.now, towards, None, &view);
        let index = self.arrived[flow];
        let mut stored = Stored { flow, index, size: header.total_len(), has_gone_on: true };
        let is_ordered = towards == Towards::Mobile && segment.seq_len() > 0;
        self.arrived[flow] += u64::from(is_ordered);
        match verdict.fate {
            Fate::Pass if is_ordered => self.go_on(flow, index),
            Fate::Pass | Fate::Drop(_) => {}
            Fate::Hold(token) => {
                stored.has_gone_on = false;
                assert!(verdict.keep.is_none() && self.stored.insert(token, stored).is_none());
            }
        }
        if let Some(token) = verdict.keep {
            assert!(
                is_ordered && self.stored.insert(token, stored).is_none(),
                "a token stands for one packet"
            );
        }
        self.drain();
    }

    fn acknowledge(&mut self, flow: usize, ack: SeqNumber, sack: u16) {
        self.una[flow] = self.una[flow].later(ack);
        let mut segment = Segment { flags: Flags::ACK, ack, window: 1_000, ..Segment::default() };
        if sack > 0 && self.next[flow].minus(sack.into()).is_after(ack) {
            segment.sack.push(self.next[flow].minus(sack.into()), self.next[flow]);
        }
        self.segment(Towards::Peer, flow, segment);
    }

    fn event(&mut self, input: &Input<'_>) {
        self.assistant.handle_event(self.now, input);
        self.drain();
    }

    fn step(&mut self, event: &Event) {
        match *event {
            Event::Data { flow, back, len } => {
                let back = back.min(self.next[flow].bytes_since(self.una[flow]));
                let gap = if back == 0 { core::mem::take(&mut self.gap[flow]) } else { 0 };
                let seq = self.next[flow].plus(gap).minus(back);
                let segment =
                    Segment { flags: Flags::ACK, seq, payload_len: len, window: 1_000, ..Segment::default() };
                self.next[flow] = self.next[flow].later(segment.end_seq());
                self.segment(Towards::Mobile, flow, segment);
            }
            Event::Skip { flow, len } => self.gap[flow] += u32::from(len),
            Event::Ack { flow, part, sack } => {
                let outstanding = self.next[flow].bytes_since(self.una[flow]);
                let ack = self.una[flow].plus(outstanding / 256 * u32::from(part));
                self.acknowledge(flow, ack, sack);
            }
            Event::Bare { flow, back } => {
                let seq = self.next[flow].minus(back);
                let segment = Segment { flags: Flags::ACK, seq, window: 1_000, ..Segment::default() };
                self.segment(Towards::Mobile, flow, segment);
            }
            Event::Reset { flow } => {
                let segment = Segment { flags: Flags::RST, seq: self.next[flow], ..Segment::default() };
                self.segment(Towards::Mobile, flow, segment);
            }
            Event::Path { id, kilobits, round_trip_ms, lost } => {
                let properties = PathProperties {
                    downlink: kilobits.map(DataRate::from_kilobits_per_second),
                    uplink: None,
                    round_trip: round_trip_ms.map(Duration::from_millis),
                };
                let paths = [(path(id), properties)];
                self.event(&Input::Paths {
                    mobile: self.over.mobile(),
                    paths: &paths,
                    old_lost: lost,
                    received: ReceivedData::EMPTY,
                });
            }
            Event::Down { id } => self.event(&Input::LinkDown { path: path(id) }),
            Event::Up { id } => self.event(&Input::LinkUp { path: path(id) }),
            Event::Wait { ms } => self.wait_until(self.now + Duration::from_millis(ms)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every packet goes on in its place or not at all, every token stands for one packet until it is given back, no bound is
    /// exceeded, and in the end nothing is left.
    #[test]
    fn order_tokens_and_bounds_hold(
        (over, config) in (over(), config()),
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new(over, config);
        for event in &events {
            world.step(event);
        }
        world.step(&Event::Path { id: 1, kilobits: None, round_trip_ms: None, lost: Some(true) });
        for flow in 0..FLOWS {
            // An acknowledgement of what a flow that was met in the middle did not show is not believed.
            world.step(&Event::Data { flow, back: 0, len: 1 });
            world.acknowledge(flow, world.next[flow], 0);
        }
        let left: Vec<_> = world.assistant.flows().filter(|flow| flow.packets > 0).collect();
        prop_assert!(left.is_empty(), "all is acknowledged: {left:?}");
        prop_assert_eq!(world.assistant.load(), (0, 0));
        world.wait_until(world.now + Duration::from_secs(300));
        prop_assert_eq!(world.assistant.flows().count(), 0);
        prop_assert_eq!(world.assistant.next_timeout(), None);
    }

    /// Without an acknowledgement in sight, and without a word of the path, what is stored ends by its age.
    #[test]
    fn what_nobody_acknowledges_ends(
        (over, config) in (over(), config()),
        events in proptest::collection::vec(event(), 1..100),
    ) {
        let mut world = World::new(over, config);
        for event in events.iter().filter(|event| !matches!(event, Event::Ack { .. })) {
            world.step(event);
        }
        world.wait_until(world.now + Duration::from_secs(300));
        prop_assert_eq!(world.assistant.load(), (0, 0));
        prop_assert_eq!(world.assistant.next_timeout(), None);
    }
}
