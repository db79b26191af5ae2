//! The programs on the machine of RFC 9669, with a socket that is laid out as it pleases the test.

use super::*;
use crate::bpf::assembler::Instruction;
use crate::bpf::assembler::machine::{Callee, Memory, run};

/// Where things are.
const SOCKET: u64 = 0x1000;
const CONTEXT: u64 = 0x2000;
const SAMPLE: u64 = 0x3000;
const CONNECTION: u64 = 0x4000;
const NEWS: u64 = 0x5000;
const FAULT: u64 = 0x6000;
const NAMESPACE: u64 = 0x8000;

const FIELDS: Fields = Fields {
    local: 0,
    remote: 16,
    ports: 32,
    state: 36,
    state_mask: 0x1f,
    window: 40,
    threshold: 44,
    counted: 48,
    una: 52,
    nxt: 56,
    outstanding: 84,
    mss: 60,
    stamp: 64,
    delivered: 72,
    interval: 76,
    app_limited: 80,
    app_limited_mask: 0x10,
    sample_acked: 0,
    sample_round_trip: 4,
    namespace: 88,
    least_segments: 24,
};
const MAPS: Maps = Maps { connections: 11, news: 12, deeds: 13, faults: 14 };
/// The functions of the congestion control behind.
const SSTHRESH: u32 = 101;
const CONG_AVOID: u32 = 102;
const UNDO_CWND: u32 = 103;
const INIT: u32 = 104;
const SET_STATE: u32 = 105;
const PKTS_ACKED: u32 = 106;
const CWND_EVENT: u32 = 107;
const MSS: u64 = 1_000;
const STATE_LOSS: u64 = 4;

/// A kernel with one connection.
struct Kernel {
    programs: Programs,
    memory: Memory,
    is_known: bool,
    news: Option<u64>,
    deeds: Vec<(i32, [u64; 4])>,
    called: Vec<u32>,
}

impl Kernel {
    fn new(estimator: Estimator) -> Self {
        Self::that_resends(estimator, true)
    }

    fn that_resends(estimator: Estimator, resend: bool) -> Self {
        let functions = Functions {
            ssthresh: SSTHRESH,
            cong_avoid: CONG_AVOID,
            undo_cwnd: UNDO_CWND,
            init: Some(INIT),
            set_state: Some(SET_STATE),
            cwnd_event: Some(CWND_EVENT),
            pkts_acked: Some(PKTS_ACKED),
        };
        let programs = Programs { fields: FIELDS, functions, maps: MAPS, estimator, resend };
        let mut memory = Memory::default();
        memory.lay(SOCKET, 96);
        memory.lay(CONTEXT, 24);
        memory.lay(SAMPLE, 12);
        memory.lay(CONNECTION, record::LEN);
        memory.lay(NEWS, news::LEN);
        memory.lay(FAULT, 8);
        memory.lay(NAMESPACE, 32);
        memory.write(CONTEXT, 8, SOCKET);
        memory.write(SOCKET + FIELDS.namespace as u64, 8, NAMESPACE);
        memory.write(NAMESPACE + FIELDS.least_segments as u64, 1, 2);
        let mut kernel =
            Self { programs, memory, is_known: false, news: None, deeds: Vec::new(), called: Vec::new() };
        kernel.set(FIELDS.mss, MSS);
        kernel.set(FIELDS.window, 20);
        kernel.set(FIELDS.threshold, 15);
        kernel.run(Programs::init, [0; 2]);
        assert!(kernel.is_known);
        kernel
    }

    fn set(&mut self, field: i16, value: u64) {
        self.memory.write(SOCKET + field as u64, 4, value);
    }

    fn get(&mut self, field: i16) -> u64 {
        self.memory.read(SOCKET + field as u64, 4)
    }

    /// Window and threshold.
    fn control(&mut self) -> (u64, u64) {
        (self.get(FIELDS.window), self.get(FIELDS.threshold))
    }

    fn set_time(&mut self, us: u64) {
        self.memory.write(SOCKET + FIELDS.stamp as u64, 8, us);
    }

    fn estimate(&mut self) -> u64 {
        let at = match self.programs.estimator {
            Estimator::Westwood => record::TWICE,
            Estimator::DeliveryRate => record::PEAKS[0].0,
        };
        self.memory.read(CONNECTION + at as u64, 8)
    }

    fn tell(&mut self, what: News, since: u64) {
        let generation = self.news.unwrap_or(0) + 1;
        self.news = Some(generation);
        for (at, value) in
            [(news::GENERATION, generation), (news::KIND, what.number() as u64), (news::SINCE, since)]
        {
            self.memory.write(NEWS + at as u64, 8, value);
        }
    }

    /// Runs one of the programs with these arguments behind the socket; what it gives.
    fn run(&mut self, program: fn(&Programs) -> Assembler, arguments: [u64; 2]) -> u64 {
        let code: Vec<Instruction> = program(&self.programs).finish().unwrap();
        for (argument, at) in arguments.into_iter().zip([8, 16]) {
            self.memory.write(CONTEXT + at, 8, argument);
        }
        let Self { memory, is_known, news, deeds, called, .. } = self;
        run(&code, memory, CONTEXT, |memory, callee, [first, second, third, ..]| match callee {
            Callee::Helper(MAP_LOOKUP) => match first as i32 {
                11 if *is_known => CONNECTION,
                12 if news.is_some() => NEWS,
                14 => FAULT,
                _ => 0,
            },
            Callee::Helper(MAP_UPDATE) => {
                assert_eq!(first as i32, MAPS.connections);
                let value = memory.at(third, record::LEN).to_vec();
                memory.at(CONNECTION, record::LEN).copy_from_slice(&value);
                *is_known = true;
                0
            }
            Callee::Helper(MAP_PUSH) => {
                assert_eq!(first as i32, MAPS.deeds);
                let mut number = |at: usize| memory.read(second + at as u64, 8);
                let numbers =
                    [deed::BANDWIDTH, deed::ROUND_TRIP, deed::WINDOW, deed::THRESHOLD].map(&mut number);
                deeds.push((number(deed::KIND) as i32, numbers));
                0
            }
            Callee::Helper(other) => panic!("no helper {other}"),
            Callee::Kernel(function) => {
                assert_eq!(first, SOCKET);
                called.push(function);
                // As if a loss halved it.
                if function == SSTHRESH { 7 } else { 0 }
            }
        })
    }

    /// An acknowledgement up to `una` that passes the header prediction, of something sent `round_trip` us before.
    fn acknowledged(&mut self, una: u64, round_trip: u64) {
        let acked = una.wrapping_sub(self.get(FIELDS.una)) & 0xffff_ffff;
        self.set(FIELDS.una, una);
        self.memory.write(SAMPLE, 4, acked.div_ceil(MSS));
        self.memory.write(SAMPLE + 4, 4, round_trip);
        self.run(Programs::pkts_acked, [SAMPLE, 0]);
        self.run(Programs::in_ack_event, [0, 0]);
    }

    /// One a millisecond for so long, of a segment each, 40 ms after it was sent.
    fn steadily(&mut self, from_ms: u64, for_ms: u64) {
        for ms in from_ms..from_ms + for_ms {
            self.set_time(ms * 1_000);
            self.set(FIELDS.nxt, (ms + 41) * MSS);
            self.acknowledged((ms + 1) * MSS, 40_000);
        }
    }
}

#[test]
fn westwood_finds_the_rate_of_a_steady_path() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    assert_eq!(kernel.estimate(), 0);
    kernel.steadily(0, 3_000);
    let rate = kernel.estimate();
    assert!((990_000..=1_000_000).contains(&rate), "{rate}: a segment of 1000 bytes each millisecond");
}

#[test]
fn westwood_counts_what_duplicates_stand_for_once() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    let (mut una, slow) = (0, 1);
    for ms in 0..3_000 {
        kernel.set_time(ms * 1_000);
        // Three duplicates, then one that covers what they stood for and itself.
        if ms % 4 == 3 {
            una += 4 * MSS;
        }
        kernel.set(FIELDS.una, una);
        kernel.memory.write(SAMPLE + 4, 4, 40_000);
        kernel.run(Programs::pkts_acked, [SAMPLE, 0]);
        kernel.run(Programs::in_ack_event, [slow, 0]);
    }
    let rate = kernel.estimate();
    assert!((960_000..=1_040_000).contains(&rate), "{rate}");
}

/// With the numbers of `careof_tcp`'s own test of this estimator.
#[test]
fn the_largest_delivery_rate_of_ten_round_trips_is_the_estimate() {
    let mut kernel = Kernel::new(Estimator::DeliveryRate);
    let round = |kernel: &mut Kernel, number: u64, delivered: u64| {
        // Otherwise it is the sample of before.
        kernel.set(FIELDS.interval, 100_000 + number % 2);
        kernel.set(FIELDS.delivered, delivered);
        kernel.set(FIELDS.una, number * MSS);
        kernel.set(FIELDS.nxt, (number + 1) * MSS);
        kernel.run(Programs::in_ack_event, [0, 0]);
        kernel.estimate() * 8 / 1_000 * 1_000
    };
    assert_eq!(round(&mut kernel, 0, 100), 8_000_000);
    for number in 1..=10 {
        assert_eq!(round(&mut kernel, number, 50), 8_000_000, "{number}");
    }
    round(&mut kernel, 11, 50);
    assert!((3_990_000..=4_000_000).contains(&round(&mut kernel, 12, 50)));
}

#[test]
fn a_sample_that_the_application_limits_counts_where_it_is_larger() {
    let mut kernel = Kernel::new(Estimator::DeliveryRate);
    let mut sample = |interval: u64, limited: bool| {
        kernel.memory.write(SOCKET + FIELDS.app_limited as u64, 1, if limited { 0x10 } else { 0x0f });
        kernel.set(FIELDS.interval, interval);
        kernel.set(FIELDS.delivered, 100);
        kernel.run(Programs::in_ack_event, [0, 0]);
        kernel.estimate()
    };
    assert_eq!(sample(100_000, false), 1_000_000);
    assert_eq!(sample(200_000, true), 1_000_000);
    assert_eq!(sample(50_000, true), 2_000_000);
    assert_eq!(sample(0, false), 2_000_000, "no interval");
}

#[test]
fn a_replaced_path_is_measured_by_what_was_sent_since_and_by_the_estimate_of_before() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.steadily(0, 2_000);
    let rate = kernel.estimate();
    kernel.called.clear();
    kernel.set(FIELDS.nxt, 2_002 * MSS);
    kernel.tell(News::PathReplaced, 2_000_000);
    // A silence, then an acknowledgement of something that was sent before the news: nothing moves.
    kernel.set_time(4_000_000);
    kernel.acknowledged(2_001 * MSS, 2_000_001);
    kernel.run(Programs::cong_avoid, [0, 1]);
    assert_eq!(kernel.control(), (20, 15));
    assert!(!kernel.called.contains(&CONG_AVOID), "the window stands");
    assert_eq!(kernel.deeds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [News::PathReplaced.number()]);
    // One of something that was sent since: 60 ms.
    kernel.set_time(4_100_000);
    kernel.acknowledged(2_002 * MSS, 60_000);
    let window = rate * 60_000 / 1_000_000 / MSS;
    assert!(window > 50, "{window}");
    assert_eq!(kernel.control(), (window, window));
    assert_eq!(kernel.deeds[1], (deed::MEASURED, [rate, 60_000, window, window]));
    assert!(kernel.called.contains(&INIT), "congestion control begins anew");
    assert_eq!(kernel.estimate(), 0, "and the estimate");
    // From now on it is as ever.
    kernel.run(Programs::cong_avoid, [0, 1]);
    assert_eq!(kernel.called.last(), Some(&CONG_AVOID));
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 7);
    kernel.set_time(4_200_000);
    kernel.acknowledged(2_003 * MSS, 60_000);
    assert_eq!(kernel.deeds.len(), 2, "once for each news");
    // Without an estimate the window stays.
    let before = kernel.control();
    kernel.tell(News::PathReplaced, 4_200_000);
    kernel.set_time(4_300_000);
    kernel.acknowledged(2_004 * MSS, 60_000);
    assert_eq!(kernel.control(), before);
    assert_eq!(kernel.deeds[3], (deed::MEASURED, [0, 60_000, before.0, before.1]));
}

#[test]
fn a_window_has_at_least_two_segments_and_at_most_what_the_kernel_counts() {
    for (rate, round_trip, window) in
        [(1, 1_000, 2), (1 << 40, 1 << 22, i32::MAX as u64), (1_000_000, 3_000, 3)]
    {
        let mut kernel = Kernel::new(Estimator::Westwood);
        kernel.memory.write(CONNECTION + record::TWICE as u64, 8, rate);
        kernel.tell(News::PathReplaced, 0);
        kernel.set_time(round_trip);
        kernel.acknowledged(MSS, round_trip);
        assert_eq!(kernel.control(), (window, window), "{rate} for {round_trip}");
    }
}

#[test]
fn what_is_set_in_a_recovery_survives_its_end() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.memory.write(CONNECTION + record::TWICE as u64, 8, 1_000_000);
    kernel.memory.write(SOCKET + FIELDS.state as u64, 1, 0xe0 | STATE_LOSS);
    kernel.tell(News::PathReplaced, 0);
    kernel.set_time(30_000);
    kernel.acknowledged(MSS, 30_000);
    assert_eq!(kernel.control(), (30, 30));
    kernel.called.clear();
    assert_eq!(kernel.run(Programs::undo_cwnd, [0, 0]), 30, "nothing of an earlier reduction is taken back");
    assert_eq!(kernel.called, []);
    // As the kernel undoes it.
    kernel.set(FIELDS.threshold, 99);
    kernel.run(Programs::set_state, [0, 0]);
    assert_eq!(kernel.control(), (30, 30));
    assert_eq!(kernel.called, [SET_STATE]);
    // Only that one.
    kernel.set(FIELDS.threshold, 99);
    kernel.run(Programs::set_state, [0, 0]);
    assert_eq!(kernel.control(), (30, 99));
    kernel.run(Programs::undo_cwnd, [0, 0]);
    assert_eq!(kernel.called.last(), Some(&UNDO_CWND));
}

#[test]
fn what_the_old_path_has_lost_is_sent_again_without_congestion_control() {
    for resend in [true, false] {
        let mut kernel = Kernel::that_resends(Estimator::Westwood, resend);
        kernel.memory.write(CONNECTION + record::TWICE as u64, 8, 1_000_000);
        kernel.set(FIELDS.nxt, 20 * MSS);
        kernel.tell(News::PathReplaced, 0);
        kernel.set(FIELDS.outstanding, 18);
        // A timeout before anything has come by the new path.
        assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), if resend { 15 } else { 7 });
        kernel.memory.write(SOCKET + FIELDS.state as u64, 1, STATE_LOSS);
        kernel.set(FIELDS.window, 1);
        kernel.called.clear();
        kernel.run(Programs::undo_cwnd, [0, 0]);
        assert_eq!(kernel.called, [UNDO_CWND], "a timeout that was none is taken back");
        kernel.run(Programs::min_tso_segs, [0, 0]);
        assert_eq!(kernel.get(FIELDS.window), if resend { 18 } else { 1 }, "all of it may leave");
        kernel.set(FIELDS.window, 1);
        kernel.set_time(30_000);
        kernel.acknowledged(MSS, 30_000);
        assert_eq!(kernel.control(), (30, 30));
        // The kernel finds what else is lost, and begins a recovery with a window of one segment.
        assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), if resend { 30 } else { 7 });
        kernel.set(FIELDS.window, 1);
        if !resend {
            continue;
        }
        assert_eq!(kernel.run(Programs::min_tso_segs, [0, 0]), 2, "as without");
        assert_eq!(kernel.control(), (30, 30));
        kernel.set(FIELDS.window, 31);
        kernel.run(Programs::min_tso_segs, [0, 0]);
        assert_eq!(kernel.control(), (31, 30), "no less is taken");
        kernel.set(FIELDS.window, 5);
        kernel.acknowledged(20 * MSS, 30_000);
        assert_eq!(kernel.control(), (30, 30), "all of it is acknowledged");
        kernel.set(FIELDS.window, 5);
        kernel.run(Programs::min_tso_segs, [0, 0]);
        assert_eq!(kernel.control(), (5, 30), "and the window the kernel's again");
        assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 7);
    }
}

#[test]
fn what_timeouts_have_left_of_the_window_is_no_measure_for_what_is_sent_again() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.set(FIELDS.nxt, 20 * MSS);
    kernel.set(FIELDS.outstanding, 18);
    kernel.set(FIELDS.window, 1);
    kernel.tell(News::PathReplaced, 1_000_000);
    kernel.set_time(1_100_000);
    // An acknowledgement that a timeout's retransmission has brought about, of what had arrived before.
    kernel.acknowledged(5 * MSS, 1_050_000);
    assert_eq!(kernel.control(), (18, 15));
}

#[test]
fn another_timeout_is_one_of_the_new_path() {
    const TX_START: u64 = 0;
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.memory.write(CONNECTION + record::TWICE as u64, 8, 1_000_000);
    kernel.set(FIELDS.nxt, 20 * MSS);
    kernel.tell(News::PathReplaced, 0);
    kernel.set_time(30_000);
    kernel.acknowledged(MSS, 30_000);
    kernel.run(Programs::cwnd_event, [TX_START, 0]);
    assert_eq!(kernel.control(), (30, 30));
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 30);
    kernel.run(Programs::cwnd_event, [EVENT_LOSS as u64, 0]);
    kernel.set(FIELDS.window, 1);
    kernel.run(Programs::min_tso_segs, [0, 0]);
    assert_eq!(kernel.control(), (1, 7));
    assert_eq!(kernel.called.last(), Some(&CWND_EVENT));
}

#[test]
fn what_timeouts_take_while_there_is_no_path_is_given_back_by_the_first_that_is_acknowledged_then() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.tell(News::PathLost, 1_000);
    kernel.set_time(500_000);
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 15, "the threshold stands");
    // As the kernel takes a timeout.
    kernel.set(FIELDS.window, 1);
    kernel.memory.write(SOCKET + FIELDS.state as u64, 1, STATE_LOSS);
    kernel.tell(News::PathBack, 2_000_000);
    kernel.set_time(2_100_000);
    // An acknowledgement that acknowledges nothing new.
    kernel.acknowledged(0, 0);
    assert_eq!(kernel.control(), (1, 15));
    kernel.acknowledged(MSS, 50_000);
    assert_eq!(kernel.control(), (20, 15));
    let kinds: Vec<i32> = kernel.deeds.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [News::PathLost.number(), News::PathBack.number(), deed::RESTORED]);
    kernel.set(FIELDS.threshold, 99);
    kernel.run(Programs::set_state, [0, 0]);
    assert_eq!(kernel.control(), (20, 15), "held until the recovery is over");
    // A timeout of the new path is its own.
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 7);
}

#[test]
fn a_timeout_after_the_path_is_back_is_an_ordinary_one() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.tell(News::PathLost, 1_000);
    kernel.acknowledged(MSS, 50_000);
    kernel.tell(News::PathBack, 2_000);
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 7);
    kernel.set(FIELDS.window, 1);
    kernel.set(FIELDS.threshold, 7);
    kernel.acknowledged(2 * MSS, 50_000);
    assert_eq!(kernel.control(), (1, 7), "nothing is given back");
}

#[test]
fn a_connection_that_is_not_remembered_is_an_ordinary_one() {
    let mut kernel = Kernel::new(Estimator::Westwood);
    kernel.is_known = false;
    kernel.tell(News::PathLost, 0);
    kernel.called.clear();
    kernel.acknowledged(MSS, 10_000);
    kernel.run(Programs::cong_avoid, [0, 1]);
    assert_eq!(kernel.run(Programs::ssthresh, [0, 0]), 7);
    kernel.run(Programs::set_state, [4, 0]);
    kernel.run(Programs::undo_cwnd, [0, 0]);
    assert_eq!(kernel.called, [PKTS_ACKED, CONG_AVOID, SSTHRESH, SET_STATE, UNDO_CWND]);
    assert_eq!((kernel.control(), kernel.deeds.len()), ((20, 15), 0));
}
