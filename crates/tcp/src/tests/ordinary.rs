//! The ordinary way beside the general one: a connection that may take it and one that never does hear and say the same,
//! and are the same after every call.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber};
use proptest::prelude::*;

use super::advice::any_advice;
use super::robustness::any_config;
use crate::{Config, CongestionControl, Connection, DelayedAck, Role, Variant};

/// One end, twice.
struct Twins {
    free: Connection,
    general: Connection,
    /// Segments that were taken in the ordinary way, and all others.
    taken: [usize; 2],
}

/// All there is in a connection but for the way it takes.
fn inside(connection: &Connection) -> String {
    let mut connection = connection.clone();
    (connection.ordinary, connection.always_general) = (false, false);
    format!("{connection:?}")
}

impl Twins {
    fn new(config: Config, role: Role, iss: u32) -> Self {
        let free = Connection::new(config, role, 1, 2, SeqNumber(iss)).expect("checked");
        let general = Connection { always_general: true, ..free.clone() };
        Self { free, general, taken: [0; 2] }
    }

    /// Does the same to both, and returns what they then send.
    fn both(&mut self, now: Instant, call: impl Fn(&mut Connection)) -> Vec<Segment> {
        call(&mut self.free);
        call(&mut self.general);
        assert!(!self.general.ordinary);
        self.compare();
        let mut sent = Vec::new();
        loop {
            let event = self.free.poll_event();
            assert_eq!(event, self.general.poll_event());
            if event.is_none() {
                break;
            }
        }
        loop {
            let next = self.free.poll_transmit(now);
            assert_eq!(next, self.general.poll_transmit(now));
            self.compare();
            let Some(next) = next else { break };
            sent.push(next.segment);
        }
        assert_eq!(self.free.next_timeout(), self.general.next_timeout());
        sent
    }

    fn compare(&self) {
        let (free, general) = (inside(&self.free), inside(&self.general));
        let same = free.bytes().zip(general.bytes()).take_while(|(a, b)| a == b).count();
        let about = same.saturating_sub(100)..same + 50;
        assert!(
            free == general,
            "{:?} instead of {:?}",
            free.get(about.clone()).unwrap_or_default(),
            general.get(about).unwrap_or_default()
        );
    }

    fn hear(&mut self, now: Instant, segment: &Segment, marked: bool) -> Vec<Segment> {
        let ordinary = self.free.ordinary && self.free.foresees(segment);
        self.taken[usize::from(!ordinary)] += 1;
        self.both(now, |end| end.handle_packet(now, segment, marked))
    }
}

/// Something that the peer did not send quite like this.
fn spoil(chance: &mut RandomStream, segment: &Segment) -> Segment {
    let mut segment = *segment;
    let step = chance.below(5_000) as u32;
    match chance.below(9) {
        0 => segment.seq = segment.seq.plus(step),
        1 => segment.seq = segment.seq.minus(step),
        2 => segment.ack = segment.ack.plus(step),
        3 => segment.ack = segment.ack.minus(step),
        4 => segment.window = chance.below(3) as u16 * step as u16,
        5 => segment.flags = Flags(chance.below(256) as u8),
        6 => segment.payload_len = step as u16,
        7 => {
            segment.sack = SackBlocks::EMPTY;
            segment
                .sack
                .push(segment.ack.plus(step), segment.ack.plus(step + 1 + chance.below(3_000) as u32));
        }
        _ => segment.flags = segment.flags.with(Flags::PSH),
    }
    segment
}

struct Pair {
    ends: [Twins; 2],
    /// What is on its way to each end.
    ways: [VecDeque<Segment>; 2],
    now: Instant,
    chance: RandomStream,
}

impl Pair {
    fn new(configs: [Config; 2], seed: u64) -> Self {
        let mut chance = RandomStream::new(seed, 0, "ordinary");
        let [client, server] = configs;
        // Within what is sent the numbers begin again at zero.
        let mut iss = || (chance.below(400_000) as u32).wrapping_sub(300_000);
        let ends = [Twins::new(client, Role::Active, iss()), Twins::new(server, Role::Passive, iss())];
        let mut this = Self { ends, ways: [VecDeque::new(), VecDeque::new()], now: Instant::ZERO, chance };
        for index in [1, 0] {
            this.at(index, |now| move |end: &mut Connection| end.open(now));
        }
        this
    }

    fn at<C: Fn(&mut Connection)>(&mut self, index: usize, call: impl FnOnce(Instant) -> C) {
        let sent = self.ends[index].both(self.now, call(self.now));
        self.ways[1 - index].extend(sent);
    }

    fn deliver(&mut self, index: usize, segment: &Segment, marked: bool) {
        let sent = self.ends[index].hear(self.now, segment, marked);
        self.ways[1 - index].extend(sent);
    }

    /// The next timer that runs out, if any does.
    fn wait(&mut self) {
        let timeouts = self.ends.each_ref().map(|end| end.free.next_timeout());
        if let Some((at, _)) = timeouts.into_iter().flatten().min_by_key(|(at, _)| *at) {
            self.now = self.now.max(at);
            for index in [0, 1] {
                self.at(index, |now| move |end: &mut Connection| end.handle_timeout(now));
            }
        }
    }

    /// One thing of all that can happen, mostly that a segment arrives.
    fn step(&mut self, trouble: u64) {
        self.now += Duration::from_micros(self.chance.below(5_000));
        let index = self.chance.below(2) as usize;
        if self.chance.below(100) >= trouble {
            // Whoever has more to hear hears something.
            let busy = usize::from(self.ways[0].len() < self.ways[1].len());
            match self.ways[busy].pop_front() {
                Some(segment) => self.deliver(busy, &segment, false),
                None => self.wait(),
            }
            return;
        }
        match self.chance.below(20) {
            0..=2 => drop(self.ways[index].pop_front()),
            3 | 4 => {
                if let Some(first) = self.ways[index].pop_front() {
                    self.ways[index].push_back(first);
                }
            }
            5 => {
                if let Some(&first) = self.ways[index].front() {
                    self.deliver(index, &first, true);
                }
            }
            6..=9 => {
                if let Some(&first) = self.ways[index].front() {
                    let spoilt = spoil(&mut self.chance, &first);
                    self.deliver(index, &spoilt, false);
                }
            }
            10 => self.wait(),
            11 | 12 => {
                let bytes = self.chance.below(30_000);
                self.at(index, |_| move |end: &mut Connection| end.write(bytes));
            }
            13 => {
                let on = self.chance.below(3) > 0;
                self.at(index, |_| move |end: &mut Connection| end.set_auto_read(on));
            }
            14 => self.at(index, |_| {
                |end: &mut Connection| {
                    end.read(2_000);
                }
            }),
            18 => {
                let advice = any_advice(&mut self.chance);
                self.at(index, |now| move |end: &mut Connection| end.advise(now, &advice));
            }
            15 => self.at(index, |_| |end: &mut Connection| end.discard_unsent()),
            16 | 17 => {
                // Nobody says anything for longer than a round trip, and the timers are looked at late.
                self.now += Duration::from_millis(self.chance.below(3_000));
                for index in [0, 1] {
                    self.at(index, |now| move |end: &mut Connection| end.handle_timeout(now));
                }
            }
            _ => {
                let mtu = 1_500 - self.chance.below(40) as u16;
                let quoted = self.ends[index].free.snapshot().snd_una;
                self.at(index, |now| {
                    move |end: &mut Connection| {
                        end.path_mtu_changed(now, mtu);
                        end.icmp_unreachable(now, quoted);
                    }
                });
            }
        }
    }
}

/// A configuration that can be ordinary, three times in four.
fn mostly_ordinary() -> impl Strategy<Value = Config> {
    let plain = any_config().prop_map(|config| Config {
        variant: match config.variant {
            Variant::Linux | Variant::Linux20 | Variant::Vegas => Variant::NewReno,
            other => other,
        },
        congestion: match config.congestion {
            CongestionControl::Bbr | CongestionControl::Bbr3 => CongestionControl::Reno,
            other => other,
        },
        delayed_ack: match config.delayed_ack {
            DelayedAck::Off => DelayedAck::Off,
            _ => DelayedAck::RFC1122,
        },
        prr: config.prr && matches!(config.variant, Variant::NewReno | Variant::Sack),
        dsack: false,
        frto: false,
        eifel: false,
        rack: false,
        tail_loss_probe: false,
        ecn: false,
        pacing: false,
        timestamps: false,
        ..config
    });
    prop_oneof![3 => plain, 1 => any_config()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_ordinary_way_leaves_what_the_general_one_leaves(
        client in mostly_ordinary(),
        server in mostly_ordinary(),
        seed in any::<u64>(),
        trouble in 0_u64..30,
        upload in 0_u64..300_000,
        download in prop_oneof![Just(0_u64), 0_u64..300_000, Just(u64::MAX)],
    ) {
        let mut pair = Pair::new([client, server], seed);
        for _ in 0..8 {
            pair.step(0);
        }
        for (index, bytes) in [(0, upload), (1, download)] {
            pair.at(index, |_| move |end: &mut Connection| end.write(bytes));
        }
        for _ in 0..250 {
            pair.step(trouble);
        }
        for index in [0, 1] {
            pair.at(index, |_| |end: &mut Connection| end.close());
        }
        for _ in 0..20 {
            pair.step(trouble);
        }
    }
}

#[test]
fn a_transfer_without_trouble_goes_the_ordinary_way() {
    let config = Config { delayed_ack: DelayedAck::RFC1122, ..Config::from(crate::Profile::NewReno) };
    let mut pair = Pair::new([config.clone(), config], 1);
    pair.at(0, |_| |end: &mut Connection| end.write(u64::MAX));
    for _ in 0..1_000 {
        pair.step(0);
    }
    for end in &pair.ends {
        let [ordinary, others] = end.taken;
        assert!(ordinary > 200 && others < 20, "{ordinary} ordinary, {others} others");
    }
}
