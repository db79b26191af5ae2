//! What somebody off the path makes up, and what mobile nodes lie: whose connections it harms.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::PathProperties;
use careof_wire::{Flags, ReceivedData, Segment, SeqNumber, Timestamps};

use super::script::{Script, header_of, path};
use crate::{
    Action, Assistant, BufferForward, Config, Fate, FlowKey, Input, Limits, MssClamp, PacketView, PathQueue,
    Place, QueueAtHandover, Replay, Towards, Verdict,
};

const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const ROOM: usize = Limits::DEFAULT.flows;

fn address(bits: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(bits))
}

fn key(mobile: IpAddr, mobile_port: u16) -> FlowKey {
    FlowKey { mobile, peer: PEER, mobile_port, peer_port: 80 }
}

/// Somebody's connection, and whoever speaks in the name of its ends.
struct Wire {
    assistant: Assistant,
    now: Instant,
    /// What was done since it was last looked at.
    done: Vec<Action>,
}

impl Wire {
    fn new(config: Config) -> Self {
        Self { assistant: Assistant::new(config).unwrap(), now: Instant::from_secs(1), done: Vec::new() }
    }

    fn replaying(place: Place) -> Self {
        Self::new(Config { replay: Some(Replay::DEFAULT), ..Config::none(place) })
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
        let mut wakes = 0;
        while let Some((at, wake)) = self.assistant.next_timeout().filter(|(at, _)| *at <= self.now) {
            self.assistant.handle_timeout(at.max(self.now));
            self.drain();
            wakes += 1;
            assert!(wakes < 100_000, "it never comes to rest: {wake:?}");
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.assistant.poll_action() {
            self.done.push(action);
        }
        while self.assistant.poll_report().is_some() {}
    }

    fn event(&mut self, input: &Input<'_>) {
        self.assistant.handle_event(self.now, input);
        self.drain();
    }

    fn path(&mut self, mobile: IpAddr, number: u16, properties: PathProperties, old_lost: Option<bool>) {
        self.event(&Input::Paths {
            mobile,
            paths: &[(path(number), properties)],
            old_lost,
            received: ReceivedData::EMPTY,
        });
    }

    fn send(&mut self, key: &FlowKey, towards: Towards, segment: Segment) -> Verdict {
        let ((source, source_port), (destination, destination_port)) = match towards {
            Towards::Mobile => ((key.peer, key.peer_port), (key.mobile, key.mobile_port)),
            Towards::Peer => ((key.mobile, key.mobile_port), (key.peer, key.peer_port)),
        };
        let segment = Segment { source_port, destination_port, ..segment };
        let header = header_of((source, destination), &segment);
        let view = PacketView { header, segment: Some(&segment), is_opaque: false, overhead: 20 };
        let verdict = self.assistant.handle_packet(self.now, towards, None, &view);
        self.drain();
        verdict
    }

    fn open(&mut self, key: &FlowKey) {
        self.send(key, Towards::Peer, syn(Flags::SYN, 999, 0));
        self.send(key, Towards::Mobile, syn(Flags::SYN.with(Flags::ACK), 4_999, 1_000));
        self.send(key, Towards::Peer, ack(1_000, 5_000));
    }

    /// The peer sends so much, of which nothing is acknowledged.
    fn data(&mut self, key: &FlowKey, segments: u32) {
        for n in 0..segments {
            assert_eq!(self.send(key, Towards::Mobile, data(5_000 + 1_000 * n, 1_000)).fate, Fate::Pass);
        }
    }

    fn kept(&self, key: &FlowKey) -> Option<usize> {
        self.assistant.flows().find(|flow| flow.key == *key).map(|flow| flow.packets)
    }

    fn flows(&self) -> usize {
        self.assistant.flows().count()
    }

    /// Segments in one direction, all of other connections.
    fn made_up(&mut self, count: u32, mobile: impl Fn(u32) -> IpAddr, segment: impl Fn(u32) -> Segment) {
        let span = Duration::from_secs(1) / count;
        for n in 0..count {
            let peer = address(0x0b00_0000 + n);
            let key = FlowKey { mobile: mobile(n), peer, mobile_port: n as u16, peer_port: 443 };
            self.send(&key, Towards::Mobile, segment(n));
            self.wait(span);
        }
    }
}

fn syn(flags: Flags, seq: u32, ack: u32) -> Segment {
    Segment {
        flags,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        mss: Some(1_000),
        window_scale: Some(7),
        window: 65_535,
        ..Segment::default()
    }
}

fn ack(seq: u32, ack: u32) -> Segment {
    let timestamps = Some(Timestamps { value: 7, echo: 7 });
    let (seq, ack) = (SeqNumber(seq), SeqNumber(ack));
    Segment { flags: Flags::ACK, seq, ack, window: 1_000, timestamps, ..Segment::default() }
}

fn data(seq: u32, payload_len: u16) -> Segment {
    Segment { payload_len, ..ack(seq, 1_000) }
}

fn without_stamps(segment: Segment) -> Segment {
    Segment { timestamps: None, ..segment }
}

#[test]
fn a_live_connection_outlives_a_flood_of_segments_that_somebody_made_up() {
    type Victim = fn(u32) -> IpAddr;
    let targets: [Victim; 3] = [|_| MOBILE, |_| OTHER, |n| address(0x0a00_0001 + n % 5_000)];
    let kinds: [fn(u32) -> Segment; 3] = [
        |n| syn(Flags::SYN, n.wrapping_mul(0x9e37_79b9), 0),
        |n| data(n.wrapping_mul(0x9e37_79b9), 1),
        |n| ack(n, n.wrapping_mul(0x9e37_79b9)),
    ];
    for (target, kind) in targets.into_iter().flat_map(|target| kinds.map(|kind| (target, kind))) {
        let mut wire = Wire::replaying(Place::HomeAgent);
        let live = key(MOBILE, 40_000);
        wire.path(MOBILE, 1, PathProperties::default(), None);
        wire.open(&live);
        wire.data(&live, 3);
        wire.made_up(40_000, target, kind);
        assert_eq!(wire.kept(&live), Some(3));
        assert_eq!(wire.flows(), ROOM, "bounded");
        // Those who come meanwhile are followed as well.
        let late = key(MOBILE, 40_001);
        wire.open(&late);
        wire.data(&late, 2);
        wire.made_up(10_000, target, kind);
        assert_eq!((wire.kept(&live), wire.kept(&late)), (Some(3), Some(2)));
        wire.done.clear();
        wire.path(MOBILE, 2, PathProperties::default(), Some(true));
        wire.wait(Duration::from_secs(1));
        let released = wire.done.iter().filter(|action| matches!(action, Action::Release { .. })).count();
        assert!(released >= 5, "what both are owed is sent again");
    }
}

#[test]
fn a_live_connection_of_which_one_direction_passes_outlives_such_a_flood_too() {
    let mut wire = Wire::replaying(Place::HomeAgent);
    let live = key(MOBILE, 40_000);
    wire.data(&live, 20);
    wire.made_up(40_000, |_| MOBILE, |n| data(n, 1));
    assert_eq!(wire.kept(&live), Some(20));
    assert_eq!(wire.flows(), ROOM);
}

#[test]
fn a_flood_of_syns_to_an_open_port_that_answers_ends_no_connection() {
    for place in [Place::HomeAgent, Place::ForeignAgent, Place::MobileNode] {
        let mut wire = Wire::replaying(place);
        let live = key(MOBILE, 40_000);
        wire.open(&live);
        for n in 0..20_000u32 {
            let key =
                FlowKey { mobile: MOBILE, peer: address(0x0b00_0000 + n), mobile_port: 22, peer_port: 1 };
            wire.send(&key, Towards::Mobile, syn(Flags::SYN, n, 0));
            wire.send(&key, Towards::Peer, syn(Flags::SYN.with(Flags::ACK), 77_777, n + 1));
            // Who has not seen the answer guesses what he should acknowledge.
            wire.send(&key, Towards::Mobile, ack(n + 1, n.wrapping_mul(0x9e37_79b9)));
            wire.wait(Duration::from_micros(50));
        }
        assert_eq!(wire.kept(&live), Some(0), "{place:?}");
        assert_eq!(wire.flows(), ROOM);
    }
}

#[test]
fn a_mobile_node_with_thousands_of_connections_leaves_room_for_those_of_others() {
    let mut wire = Wire::replaying(Place::HomeAgent);
    for port in 0..2 * ROOM as u16 {
        wire.open(&key(MOBILE, port));
    }
    for port in 0..100 {
        wire.open(&key(OTHER, port));
    }
    assert!((0..100).all(|port| wire.kept(&key(OTHER, port)).is_some()));
    let refused = wire.assistant.counters().flows_refused;
    assert!(refused > 0 && wire.flows() == ROOM, "{refused}");
}

#[test]
fn what_is_stored_for_a_live_connection_is_not_given_up_for_what_was_made_up() {
    for mobile in [MOBILE, OTHER] {
        let limits = Limits { packets: 1_000, ..Limits::DEFAULT };
        let config = Config { limits, replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
        let mut wire = Wire::new(config);
        let live = key(MOBILE, 40_000);
        wire.open(&live);
        wire.data(&live, 50);
        wire.made_up(5_000, |_| mobile, |n| data(n, 1_000));
        assert_eq!(wire.kept(&live), Some(50));
        assert!(wire.assistant.load().0 <= 1_000);
    }
}

#[test]
fn a_live_connection_that_fills_the_store_gives_nothing_up_for_what_was_made_up() {
    for mobile in [MOBILE, OTHER] {
        let limits = Limits { packets: 1_000, ..Limits::DEFAULT };
        let config = Config { limits, replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
        let mut wire = Wire::new(config);
        let live = key(MOBILE, 40_000);
        wire.open(&live);
        wire.data(&live, 990);
        wire.made_up(5_000, |_| mobile, |n| data(n, 1_000));
        wire.made_up(5_000, |_| mobile, |n| ack(n, !n));
        assert_eq!(wire.kept(&live), Some(990));
        assert!(wire.assistant.load().0 <= 1_000);
    }
}

#[test]
fn who_has_much_stored_gives_it_up_before_others_do() {
    let limits = Limits { packets: 1_000, ..Limits::DEFAULT };
    let config = Config { limits, replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
    let mut wire = Wire::new(config);
    let quiet = key(OTHER, 1);
    wire.open(&quiet);
    wire.data(&quiet, 20);
    for port in 0..60 {
        wire.wait(Duration::from_millis(10));
        let greedy = key(MOBILE, port);
        wire.open(&greedy);
        wire.data(&greedy, 50);
    }
    assert_eq!(wire.kept(&quiet), Some(20));
    assert!(wire.assistant.counters().evicted >= 2_000);
}

#[test]
fn neither_a_forged_reset_nor_a_forged_beginning_ends_a_connection() {
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let forged = [
        (Towards::Mobile, Segment { flags: Flags::RST, seq: SeqNumber(3_000_000_000), ..ack(0, 0) }),
        (Towards::Peer, Segment { flags: Flags::RST, seq: SeqNumber(2_000_000_000), ..ack(0, 0) }),
        (Towards::Mobile, syn(Flags::SYN, 77, 0)),
        (Towards::Peer, syn(Flags::SYN, 77, 0)),
        (Towards::Mobile, syn(syn_ack, 77, 1_000)),
        (Towards::Peer, syn(syn_ack, 77, 5_000)),
    ];
    for place in [Place::HomeAgent, Place::ForeignAgent, Place::MobileNode] {
        let mut wire = Wire::replaying(place);
        let live = key(MOBILE, 40_000);
        wire.open(&live);
        let (ahead, first) = match place.keeps() {
            Towards::Mobile => (Towards::Mobile, 5_000),
            Towards::Peer => (Towards::Peer, 1_000),
        };
        let segment =
            |seq| Segment { ack: SeqNumber(if first == 5_000 { 1_000 } else { 5_000 }), ..data(seq, 1_000) };
        wire.send(&live, ahead, segment(first));
        for (towards, segment) in forged {
            assert_eq!(wire.send(&live, towards, segment), Verdict::PASS);
            assert_eq!(wire.kept(&live), Some(1), "{place:?} {towards:?} {segment:?}");
        }
        // It goes on as before.
        wire.send(&live, ahead, segment(first + 1_000));
        assert_eq!(wire.kept(&live), Some(2));
        let answer = if first == 5_000 { ack(1_000, 7_000) } else { ack(5_000, 3_000) };
        wire.send(&live, ahead.back(), answer);
        assert_eq!(wire.kept(&live), Some(0));
        // And ends with a reset that its end would accept.
        let reset = Segment { flags: Flags::RST, ..ack(1_000, 0) };
        wire.send(&live, Towards::Peer, reset);
        assert_eq!(wire.flows(), 0);
    }
}

#[test]
fn another_connection_between_the_same_ports_begins_when_the_other_end_agrees() {
    let mut wire = Wire::replaying(Place::HomeAgent);
    let live = key(MOBILE, 40_000);
    wire.open(&live);
    wire.data(&live, 1);
    wire.send(&live, Towards::Peer, syn(Flags::SYN, 1_000_000_000, 0));
    assert_eq!(wire.kept(&live), Some(1));
    wire.send(&live, Towards::Mobile, syn(Flags::SYN.with(Flags::ACK), 2_000_000_000, 1_000_000_001));
    assert_eq!(wire.kept(&live), Some(0));
    wire.send(&live, Towards::Peer, ack(1_000_000_001, 2_000_000_001));
    let segment = Segment { ack: SeqNumber(1_000_000_001), ..data(2_000_000_001, 1_000) };
    assert!(wire.send(&live, Towards::Mobile, segment).keep.is_some());
    wire.send(&live, Towards::Peer, ack(1_000_000_001, 2_000_001_001));
    assert_eq!(wire.kept(&live), Some(0));
    assert_eq!(wire.assistant.counters().flows, 2);
}

#[test]
fn numbers_that_neither_end_would_accept_teach_nothing() {
    let mut wire = Wire::replaying(Place::HomeAgent);
    let live = key(MOBILE, 40_000);
    wire.path(MOBILE, 1, PathProperties::default(), None);
    wire.open(&live);
    wire.data(&live, 2);
    wire.send(&live, Towards::Peer, ack(1_000, 6_000));
    for n in 1..1_000u32 {
        // Steps that meet no window of this connection.
        let far = n * 4_000_000;
        for segment in [
            data(5_000 + far, 1_000),
            data(5_000 + far, 0),
            Segment { window: 0, ..data(5_000 + far, 0) },
            Segment { flags: Flags::ACK.with(Flags::FIN), ..data(5_000 + far, 10) },
        ] {
            assert_eq!(wire.send(&live, Towards::Mobile, segment).fate, Fate::Pass);
        }
        wire.send(&live, Towards::Peer, ack(1_000 + far, 7_000));
        wire.send(&live, Towards::Peer, Segment { window: 0, ..ack(1_000 + far, 7_000) });
    }
    assert_eq!(wire.kept(&live), Some(1), "neither acknowledged nor more of it");
    assert!(wire.assistant.counters().implausible > 5_000);
    wire.done.clear();
    wire.path(MOBILE, 2, PathProperties::default(), Some(true));
    wire.wait(Duration::from_secs(1));
    let acks: Vec<u32> = wire
        .done
        .iter()
        .filter_map(|action| match action {
            Action::Inject { segment, .. } => Some(segment.ack.0),
            _ => None,
        })
        .collect();
    assert!(acks.iter().all(|ack| *ack <= 6_000), "{acks:?}");
    assert_eq!(wire.done.iter().filter(|action| matches!(action, Action::Release { .. })).count(), 1);
}

#[test]
fn an_acknowledgement_that_somebody_made_up_is_not_multiplied() {
    for place in [Place::HomeAgent, Place::ForeignAgent] {
        let mut config = Config::default_set(place);
        config.fast_retransmit =
            Some(crate::FastRetransmit { longest_outage: None, ..crate::FastRetransmit::DEFAULT });
        let mut wire = Wire::new(config);
        wire.path(MOBILE, 1, PathProperties::default(), None);
        wire.made_up(4_000, |_| MOBILE, |n| data(n + 1, 1));
        wire.done.clear();
        // A served mobile node asks for it, again and again.
        for second in 0..10 {
            wire.path(MOBILE, 2 + second % 2, PathProperties::default(), Some(true));
            wire.wait(Duration::from_secs(1));
        }
        let injected =
            |action: &&Action| matches!(action, Action::Inject { .. } | Action::Unreachable { .. });
        let injected = wire.done.iter().filter(injected).count();
        assert!(injected <= 10 * 200 + 200, "{injected} messages for 4000");
        let released = wire.done.iter().filter(|action| matches!(action, Action::Release { .. })).count();
        assert!(released <= 4_000 * 10, "{released}: each goes to the node that asks for it");
    }
}

/// What a mobile node may say of its path, true or not.
fn reports() -> Vec<PathProperties> {
    let rates = [None, Some(0), Some(100), Some(9_600), Some(u64::from(u32::MAX) * 100), Some(u64::MAX)];
    let times = [None, Some(0), Some(1), Some(u64::from(u32::MAX))];
    let mut reports = Vec::new();
    for (down, up) in rates.into_iter().flat_map(|down| rates.map(|up| (down, up))) {
        for micros in times {
            reports.push(PathProperties {
                downlink: down.map(DataRate::from_bits_per_second),
                uplink: up.map(DataRate::from_bits_per_second),
                round_trip: micros.map(Duration::from_micros),
            });
        }
    }
    reports
}

#[test]
fn whatever_a_mobile_node_says_of_its_path_memory_is_bounded_and_it_comes_to_rest() {
    let none = Config::none;
    let queue = PathQueue {
        queue: careof_link::QueueConfig::default(),
        margin: 0.05,
        at_handover: QueueAtHandover::ReRoute,
    };
    for place in [Place::HomeAgent, Place::ForeignAgent] {
        let mut whole = Config::default_set(place);
        whole.mss_clamp = Some(MssClamp::DEFAULT);
        whole.black_hole = Some(crate::BlackHole::DEFAULT);
        let mut queued = Config { path_queue: Some(queue), ..none(place) };
        queued.window_clamp = whole.window_clamp;
        let mut late = queued.clone();
        late.path_queue = Some(PathQueue { at_handover: QueueAtHandover::DrainLate, ..queue });
        let buffered =
            Config { buffer_forward: Some(BufferForward { packets: 100, from_notice: true }), ..none(place) };
        let snoop = Config {
            snoop: Some(crate::Snoop { packets: 100, least_timeout: Duration::from_millis(100) }),
            m_tcp: true,
            ..none(place)
        };
        for mut config in [whole, queued, late, buffered, snoop] {
            config.limits.packets = 500;
            let mut wire = Wire::new(config);
            let live = key(MOBILE, 1);
            wire.open(&live);
            let mut seq = 5_000u32;
            for (n, report) in reports().into_iter().enumerate() {
                for (turn, old_lost) in [None, Some(true), Some(false), Some(true)].into_iter().enumerate() {
                    let path = if turn == 3 { 9 } else { n as u16 % 3 };
                    wire.path(MOBILE, path, report, old_lost);
                    for _ in 0..5 {
                        wire.send(&live, Towards::Mobile, data(seq, 1_000));
                        seq = seq.wrapping_add(1_000);
                    }
                    wire.send(&live, Towards::Peer, ack(1_000, seq.wrapping_sub(3_000)));
                    wire.wait(Duration::from_millis(50));
                    assert!(wire.assistant.load().0 <= 500);
                    assert!(wire.done.len() < 5_000, "{report:?}: {}", wire.done.len());
                    wire.done.clear();
                }
            }
            wire.event(&Input::Paths {
                mobile: MOBILE,
                paths: &[],
                old_lost: None,
                received: ReceivedData::EMPTY,
            });
            wire.wait(Duration::from_secs(600));
            wire.done.clear();
            assert_eq!(wire.flows(), 0);
            assert_eq!(wire.assistant.next_timeout(), None);
        }
    }
}

#[test]
fn who_lies_about_its_path_delays_nobody_elses_packets() {
    for place in [Place::HomeAgent, Place::ForeignAgent] {
        for report in reports() {
            let mut wire = Wire::new(Config::default_set(place));
            let honest = PathProperties {
                downlink: Some(DataRate::from_megabits_per_second(10)),
                uplink: Some(DataRate::from_megabits_per_second(10)),
                round_trip: Some(Duration::from_millis(100)),
            };
            wire.path(MOBILE, 1, report, None);
            wire.path(OTHER, 2, honest, None);
            let (liar, other) = (key(MOBILE, 1), key(OTHER, 1));
            for flow in [&liar, &other] {
                wire.open(flow);
                wire.data(flow, 30);
            }
            wire.path(MOBILE, 3, report, Some(true));
            wire.path(OTHER, 4, honest, Some(true));
            // 30 packets of 1,040 bytes take 26 ms, and come out of the path's window as they are acknowledged.
            for n in 1..=30 {
                wire.wait(Duration::from_millis(5));
                wire.send(&other, Towards::Peer, ack(1_000, 5_000 + 1_000 * n));
            }
            wire.wait(Duration::from_millis(100));
            assert_eq!(wire.kept(&other), Some(0), "{report:?}");
            wire.done.clear();
            let next = wire.send(&other, Towards::Mobile, data(35_000, 1_000));
            // The replay's pace lets it go at once.
            let goes = matches!(wire.done[..], [Action::Release { .. }]);
            assert!(matches!(next.fate, Fate::Hold(_)) && goes, "{report:?}: {:?}", wire.done);
        }
    }
}

#[test]
fn of_mobile_nodes_that_come_and_go_under_ever_new_addresses_nothing_is_left() {
    let queue = PathQueue {
        queue: careof_link::QueueConfig::default(),
        margin: 0.05,
        at_handover: QueueAtHandover::Drop,
    };
    let config = Config { path_queue: Some(queue), ..Config::none(Place::ForeignAgent) };
    for config in [Config::default_set(Place::ForeignAgent), config] {
        let mut wire = Wire::new(config);
        let rate = Some(DataRate::from_megabits_per_second(1));
        for n in 0..1_000u32 {
            let mobile = address(0x0a00_0000 + n);
            wire.path(
                mobile,
                1,
                PathProperties { downlink: rate, uplink: rate, round_trip: None },
                Some(true),
            );
            if n % 2 == 0 {
                wire.send(&key(mobile, 1), Towards::Mobile, without_stamps(data(1, 10)));
            }
            wire.event(&Input::Paths { mobile, paths: &[], old_lost: None, received: ReceivedData::EMPTY });
            wire.wait(Duration::from_millis(10));
        }
        wire.wait(Duration::from_secs(600));
        assert_eq!(wire.assistant.remembered_mobiles(), 0);
    }
}

#[test]
fn a_zero_window_that_somebody_made_up_is_not_passed_on_in_a_receivers_name() {
    let config = Config {
        freeze: Some(crate::Freeze { warning: Duration::ZERO, acks: 3, patience: Duration::from_secs(1) }),
        ..Config::none(Place::MobileNode)
    };
    Script::new(config).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000             -> pass
            11  from mobile ack 1000          -> pass",
    );
    let mut wire = Wire::replaying(Place::ForeignAgent);
    let live = key(MOBILE, 1);
    wire.open(&live);
    wire.data(&live, 1);
    wire.send(&live, Towards::Peer, Segment { window: 0, ..ack(2_500_000_000, 6_000) });
    wire.path(MOBILE, 2, PathProperties::default(), Some(true));
    wire.wait(Duration::from_secs(1));
    let zero = |action: &Action| matches!(action, Action::Inject { segment, .. } if segment.window == 0);
    assert!(!wire.done.iter().any(zero), "{:?}", wire.done);
}

#[test]
fn repetitions_that_somebody_made_up_leave_senders_of_live_connections_their_word() {
    let mut wire =
        Wire::new(Config { lcd_kick: Some(crate::LcdKick::DEFAULT), ..Config::none(Place::HomeAgent) });
    let live = key(MOBILE, 40_000);
    wire.path(MOBILE, 1, PathProperties::default(), None);
    wire.open(&live);
    wire.data(&live, 1);
    wire.event(&Input::LinkDown { path: path(1) });
    let told = |wire: &Wire| {
        let to_live = |action: &&Action| matches!(action, Action::Unreachable { ports: (80, 40_000), .. });
        wire.done.iter().filter(to_live).count()
    };
    for second in 1..=5 {
        wire.wait(Duration::from_secs(1));
        for n in 0..1_000u32 {
            let key = FlowKey { mobile: MOBILE, peer: PEER, mobile_port: n as u16, peer_port: 443 };
            let beginning = syn(Flags::SYN, 99, 0);
            for segment in [beginning, data(100, 10), data(110, 10), data(100, 10), data(100, 10)] {
                wire.send(&key, Towards::Mobile, segment);
            }
        }
        wire.send(&live, Towards::Mobile, data(5_000, 1_000));
        assert_eq!(told(&wire), second);
    }
    assert!(wire.done.len() <= 600, "{}", wire.done.len());
}
