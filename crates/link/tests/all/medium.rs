//! IEEE 802.3 on a shared medium, to the nanosecond; and what holds on any medium.

use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{
    ATTEMPT_LIMIT, ConfigError, Contention, DcfConfig, Discipline, DropCause, EthernetConfig, Fate, Loss,
    MEDIUM_MTU, Medium, MediumConfig, MediumOutput, Phy, QueueConfig, QueueLimit, StationId,
};
use proptest::prelude::*;

const A: StationId = StationId(0);
const B: StationId = StationId(1);
const C: StationId = StationId(2);

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn medium_with(config: impl Into<MediumConfig>, seed: u64, stations: usize) -> Medium<u32> {
    let stream = |user: &str| RandomStream::new(seed, 0, user);
    Medium::new(config, stream("backoff"), stream("loss"), (0..stations).map(|_| stream("queue")))
}

/// Three stations at 10 Mbit/s, `delay_nanos` from each other.
fn medium(delay_nanos: u64) -> Medium<u32> {
    let config = EthernetConfig { delay: Duration::from_nanos(delay_nanos), ..EthernetConfig::default() };
    assert_eq!(config.check(), Ok(()));
    medium_with(config, 1, 3)
}

fn run(medium: &mut Medium<u32>) -> Vec<MediumOutput<u32>> {
    let mut outputs = Vec::new();
    while let Some(now) = medium.next_timeout() {
        outputs.extend(std::iter::from_fn(|| medium.poll(now)));
    }
    outputs
}

fn delivered(packet: u32, from: StationId, to: StationId, nanos: u64) -> MediumOutput<u32> {
    MediumOutput::Delivered { packet, from, to, at: at(nanos), marked: false }
}

fn dropped(packet: u32, from: StationId, to: StationId, nanos: u64, cause: DropCause) -> MediumOutput<u32> {
    MediumOutput::Dropped { packet, from, to, at: at(nanos), cause }
}

/// Preamble, and 1518 bytes, at 10 Mbit/s.
const LONGEST: u64 = 6_400 + 1_214_400;
const GAP: u64 = 9_600;
const SLOT: u64 = 51_200;

#[test]
fn a_station_alone_sends_a_frame_a_preamble_and_a_gap_after_each_other() {
    let mut medium = medium(900);
    for packet in 0..3 {
        medium.enqueue(at(0), A, B, packet, 1500).unwrap();
    }
    let times = [0, 1, 2].map(|n| n * (LONGEST + GAP) + LONGEST + 900);
    let expected: Vec<_> = (0..3).map(|n| delivered(n, A, B, times[n as usize])).collect();
    assert_eq!(run(&mut medium), expected);
    assert_eq!(medium.contention(A), Contention { transmissions: 3, collisions: 0 });
}

#[test]
fn a_short_packet_is_padded_to_64_bytes() {
    for size in [20, 40, 46] {
        let mut medium = medium(0);
        medium.enqueue(at(0), A, B, 1, size).unwrap();
        assert_eq!(run(&mut medium), [delivered(1, A, B, 6_400 + 51_200)], "{size} B");
    }
    let mut medium = medium(0);
    medium.enqueue(at(0), A, B, 1, 47).unwrap();
    assert_eq!(run(&mut medium), [delivered(1, A, B, 6_400 + 52_000)]);
}

#[test]
fn a_rate_is_any_rate() {
    let rate = DataRate::from_megabits_per_second(100);
    let mut medium = medium_with(EthernetConfig { rate, ..EthernetConfig::default() }, 1, 2);
    medium.enqueue(at(0), A, B, 1, 1500).unwrap();
    medium.enqueue(at(0), A, B, 2, 1500).unwrap();
    let expected = [delivered(1, A, B, LONGEST / 10), delivered(2, A, B, (2 * LONGEST + GAP) / 10)];
    assert_eq!(run(&mut medium), expected);
}

#[test]
fn who_hears_a_carrier_waits_for_its_end_and_the_gap() {
    let mut medium = medium(5_000);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(5_000), B, C, 2, 1500).unwrap();
    let first = LONGEST + 5_000;
    let expected = [delivered(1, A, C, first), delivered(2, B, C, first + GAP + LONGEST + 5_000)];
    assert_eq!(run(&mut medium), expected);
    assert_eq!(medium.contention(B), Contention { transmissions: 1, collisions: 0 });
}

#[test]
fn stations_that_do_not_hear_each_other_yet_collide_jam_and_back_off() {
    // The medium draws in the order in which the signals end.
    let seed = (0..).find(|seed| draws(*seed) == [0, 1]).unwrap();
    let config = EthernetConfig { delay: Duration::from_micros(5), ..EthernetConfig::default() };
    let mut medium = medium_with(config, seed, 3);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(4_000), B, C, 2, 1500).unwrap();
    // A hears B at 9 us, beyond its preamble; B hears A at 5 us, within its own, which ends at 10.4 us.
    let (a_ends, b_ends) = (9_000 + 3_200, 10_400 + 3_200);
    // A draws no slot, and waits for what is left of B's signal; B draws one, and hears A before that is over.
    let again = b_ends + 5_000 + GAP;
    assert!(a_ends < again && again + 5_000 < b_ends + SLOT);
    let first = again + LONGEST + 5_000;
    let expected = [delivered(1, A, C, first), delivered(2, B, C, first + GAP + LONGEST + 5_000)];
    assert_eq!(run(&mut medium), expected);
    for station in [A, B] {
        assert_eq!(medium.contention(station), Contention { transmissions: 2, collisions: 1 });
    }
}

/// What the first two stations draw from two slots.
fn draws(seed: u64) -> [u64; 2] {
    let mut random = RandomStream::new(seed, 0, "backoff");
    [random.below(2), random.below(2)]
}

#[test]
fn one_who_waits_collides_with_the_next_frame_of_the_one_who_sends() {
    // B's gap begins when it hears A's end, and is over when it hears A's next beginning.
    let mut medium = medium(1_000);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(0), A, C, 2, 1500).unwrap();
    medium.enqueue(at(100_000), B, C, 3, 1500).unwrap();
    medium.advance(at(LONGEST + GAP + 3_000));
    assert_eq!(medium.contention(A), Contention { transmissions: 2, collisions: 1 });
    assert_eq!(medium.contention(B), Contention { transmissions: 1, collisions: 1 });
    assert_eq!(run(&mut medium).len(), 3);
}

#[test]
fn a_frame_that_collides_sixteen_times_is_given_up() {
    let helpers = ATTEMPT_LIMIT as usize;
    let config = EthernetConfig { delay: Duration::from_micros(5), ..EthernetConfig::default() };
    let mut medium = medium_with(config, 1, helpers + 2);
    let last = StationId(ATTEMPT_LIMIT as u16 + 1);
    medium.enqueue(at(0), A, last, 7, 1500).unwrap();
    medium.enqueue(at(0), A, last, 8, 1500).unwrap();
    let mut outputs = Vec::new();
    let mut seen = 0;
    // Whenever A begins, another station begins within the delay, and leaves when it has done its harm.
    for now in (0..).step_by(100).map(at) {
        outputs.extend(std::iter::from_fn(|| medium.poll(now)));
        if medium.contention(A).transmissions > seen {
            seen = medium.contention(A).transmissions;
            if seen > u64::from(ATTEMPT_LIMIT) {
                break;
            }
            let helper = StationId(seen as u16);
            medium.enqueue(now, helper, A, 100 + seen as u32, 1500).unwrap();
            let later = now + Duration::from_micros(30);
            outputs.extend(std::iter::from_fn(|| medium.poll(later)));
            medium.set_down(later, helper, Fate::Drop, Fate::Drop);
        }
    }
    outputs.retain(|output| matches!(output, MediumOutput::Dropped { from: A, .. }));
    let [MediumOutput::Dropped { packet: 7, cause: DropCause::ExcessiveCollisions, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(medium.counters(A).dropped_by(DropCause::ExcessiveCollisions), 1);
    // The next one begins afresh.
    let rest = run(&mut medium);
    assert!(matches!(rest[..], [MediumOutput::Delivered { packet: 8, .. }]), "{rest:?}");
}

#[test]
fn what_is_sent_to_a_station_that_is_down_is_dropped_when_it_would_have_arrived() {
    let mut medium = medium(1_000);
    medium.set_down(at(0), B, Fate::Drop, Fate::Drop);
    medium.enqueue(at(0), A, B, 1, 1500).unwrap();
    medium.enqueue(at(0), A, C, 2, 1500).unwrap();
    assert_eq!(medium.enqueue(at(0), B, A, 3, 1500), Err(DropCause::LinkDown));
    let first = LONGEST + 1_000;
    let expected = [dropped(1, A, B, first, DropCause::LinkDown), delivered(2, A, C, first + GAP + LONGEST)];
    assert_eq!(run(&mut medium), expected);
}

#[test]
fn a_station_that_leaves_cuts_its_signal_off_and_sends_what_it_kept_when_it_is_back() {
    let mut medium = medium(1_000);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(100_000), B, C, 2, 1500).unwrap();
    medium.set_down(at(200_000), A, Fate::Keep, Fate::Keep);
    medium.enqueue(at(210_000), A, C, 3, 40).unwrap();
    let second = 200_000 + 1_000 + GAP + LONGEST + 1_000;
    assert_eq!(medium.poll(at(second)), Some(delivered(2, B, C, second)));
    medium.set_up(at(5_000_000), A);
    let third = 5_000_000 + LONGEST + 1_000;
    let expected = [delivered(1, A, C, third), delivered(3, A, C, third + GAP + 57_600)];
    assert_eq!(run(&mut medium), expected);
}

#[test]
fn a_change_of_rate_waits_for_silence() {
    let mut medium = medium(1_000);
    medium.enqueue(at(0), A, B, 1, 1500).unwrap();
    medium.enqueue(at(0), A, B, 2, 1500).unwrap();
    let rate = DataRate::from_megabits_per_second(100);
    medium
        .reconfigure(
            at(600_000),
            EthernetConfig {
                rate,
                ..EthernetConfig { delay: Duration::from_micros(1), ..EthernetConfig::default() }
            },
        )
        .unwrap();
    let first = LONGEST + 1_000;
    // The gap had begun at the old rate.
    let expected = [delivered(1, A, B, first), delivered(2, A, B, LONGEST + GAP + LONGEST / 10 + 1_000)];
    assert_eq!(run(&mut medium), expected);
}

#[test]
fn packets_for_one_station_can_be_taken_back() {
    let mut medium = medium(0);
    for (packet, to) in [(1, B), (2, C), (3, B), (4, C), (5, B)] {
        medium.enqueue(at(0), A, to, packet, 1500).unwrap();
    }
    assert_eq!((medium.queued_for(A, B), medium.queued_for(A, C), medium.in_flight_to(A, B)), (2, 2, 1));
    assert_eq!(medium.drain_queue(at(0), A, B), [3, 5]);
    assert_eq!(medium.queue_len(A), (2, 3_000));
    let sent: Vec<_> = run(&mut medium)
        .into_iter()
        .map(|output| match output {
            MediumOutput::Delivered { packet, .. } | MediumOutput::Dropped { packet, .. } => packet,
        })
        .collect();
    assert_eq!(sent, [1, 2, 4]);
    assert_eq!(medium.counters(A).drained, 2);
}

#[test]
fn a_full_queue_and_a_giant_are_refused() {
    let queue = QueueConfig { limit: QueueLimit::Packets(1), ..QueueConfig::default() };
    let mut medium = medium_with(EthernetConfig { queue, ..EthernetConfig::default() }, 1, 2);
    let giant = u32::from(MEDIUM_MTU) + 1;
    assert_eq!(medium.enqueue(at(0), A, B, 0, giant), Err(DropCause::MtuExceeded));
    assert_eq!(medium.enqueue(at(0), A, B, 1, 1500), Ok(()));
    assert_eq!(medium.enqueue(at(0), A, B, 2, 1500), Ok(()));
    assert_eq!(medium.enqueue(at(0), A, B, 3, 1500), Err(DropCause::QueueFull));
    assert_eq!(medium.enqueue(at(0), StationId(9), B, 4, 1500), Err(DropCause::LinkDown));
    assert_eq!(run(&mut medium).len(), 2);
}

#[test]
fn a_medium_too_long_or_too_fast_is_refused_with_what_would_be_right() {
    let longest = EthernetConfig::longest_delay(DataRate::from_megabits_per_second(10));
    assert_eq!(longest, Duration::from_nanos(24_000));
    let config = EthernetConfig { delay: longest, ..EthernetConfig::default() };
    assert_eq!(config.check(), Ok(()));
    let too_long = EthernetConfig { delay: longest + Duration::from_nanos(1), ..config.clone() };
    let error = too_long.check().unwrap_err();
    assert!(
        matches!(error, ConfigError::MediumDelay { .. }) && error.to_string().contains("24µs"),
        "{error}"
    );
    for bits in [0, 1_000_000_001] {
        let config =
            EthernetConfig { rate: DataRate::from_bits_per_second(bits), ..EthernetConfig::default() };
        assert!(matches!(config.check(), Err(ConfigError::MediumRate { .. })), "{bits}");
    }
}

/// The default of a medium's kind.
fn fresh(medium: &Medium<u32>) -> MediumConfig {
    match medium.config() {
        MediumConfig::Ethernet(_) => EthernetConfig::default().into(),
        MediumConfig::Dcf(_) => DcfConfig::default().into(),
    }
}

#[derive(Clone, Debug)]
enum Action {
    Enqueue { from: u16, to: u16, size: u32, ecn_capable: bool },
    Reconfigure(MediumConfig),
    Down { station: u16, queued: Fate, in_flight: Fate },
    Up { station: u16 },
    Drain { station: u16, to: u16 },
}

const STATIONS: u16 = 4;

fn configs() -> impl Strategy<Value = MediumConfig> {
    prop_oneof![cables().prop_map(MediumConfig::from), channels().prop_map(MediumConfig::from)]
}

fn channels() -> impl Strategy<Value = DcfConfig> {
    let sets = prop_oneof![
        Just(DcfConfig::b(DataRate::from_megabits_per_second(2))),
        Just(DcfConfig::b_short(DataRate::from_megabits_per_second(11))),
        Just(DcfConfig::g(DataRate::from_megabits_per_second(54))),
        Just(DcfConfig::g_protected(DataRate::from_megabits_per_second(24))),
    ];
    let losses = prop_oneof![Just(0.0), Just(0.3), Just(1.0)];
    let cws = prop_oneof![Just((31, 1023)), Just((1, 3)), Just((15, 7))];
    (sets, queues(), 0_u64..60_000, 0_u16..1_600, losses, cws).prop_map(
        |(set, queue, delay, rts_threshold, p, (cw_min, cw_max))| DcfConfig {
            phy: Phy { cw_min, cw_max, ..set.phy },
            rts_threshold,
            loss: Loss::Bernoulli { p: Probability::new(p).unwrap() },
            delay: Duration::from_nanos(delay),
            queue,
            ..set
        },
    )
}

fn queues() -> impl Strategy<Value = QueueConfig> {
    let limits =
        prop_oneof![(0_u32..6).prop_map(QueueLimit::Packets), (0_u64..8_000).prop_map(QueueLimit::Bytes),];
    let disciplines = prop_oneof![Just(Discipline::DropTail), Just(Discipline::CODEL)];
    (limits, disciplines).prop_map(|(limit, discipline)| QueueConfig {
        limit,
        discipline,
        ecn: discipline != Discipline::DropTail,
    })
}

fn cables() -> impl Strategy<Value = EthernetConfig> {
    let rates = prop_oneof![Just(0), Just(10_000_000), 100_000_u64..200_000_000];
    // Delays beyond the longest too: the laws may break, the books may not.
    (rates, 0_u64..60_000, queues()).prop_map(|(rate, delay, queue)| EthernetConfig {
        rate: DataRate::from_bits_per_second(rate),
        delay: Duration::from_nanos(delay),
        queue,
    })
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Keep), Just(Fate::Drop)]
}

fn actions() -> impl Strategy<Value = Action> {
    let station = || 0..STATIONS;
    prop_oneof![
        20 => (station(), 0..STATIONS + 1, 20_u32..1_600, any::<bool>())
            .prop_map(|(from, to, size, ecn_capable)| Action::Enqueue { from, to, size, ecn_capable }),
        1 => configs().prop_map(Action::Reconfigure),
        1 => (station(), fates(), fates())
            .prop_map(|(station, queued, in_flight)| Action::Down { station, queued, in_flight }),
        1 => station().prop_map(|station| Action::Up { station }),
        1 => (station(), station()).prop_map(|(station, to)| Action::Drain { station, to }),
    ]
}

/// Does `action`; `next` numbers the packets offered. Returns packets that came back.
fn act(medium: &mut Medium<u32>, now: Instant, action: &Action, next: &mut u32) -> Vec<u32> {
    match *action {
        Action::Enqueue { from, to, size, ecn_capable } => {
            let (from, to, packet) = (StationId(from), StationId(to), *next);
            *next += 1;
            let accepted = if ecn_capable {
                medium.enqueue_ecn_capable(now, from, to, packet, size)
            } else {
                medium.enqueue(now, from, to, packet, size)
            };
            return accepted.err().map(|_| packet).into_iter().collect();
        }
        Action::Reconfigure(ref config) => {
            let is_of_its_kind = medium.config().joins_every_two() == config.joins_every_two();
            let expected = if is_of_its_kind { Ok(()) } else { Err(ConfigError::OtherMedium) };
            assert_eq!(medium.reconfigure(now, config.clone()), expected);
        }
        Action::Down { station, queued, in_flight } => {
            medium.set_down(now, StationId(station), queued, in_flight);
        }
        Action::Up { station } => medium.set_up(now, StationId(station)),
        Action::Drain { station, to } => return medium.drain_queue(now, StationId(station), StationId(to)),
    }
    Vec::new()
}

fn assert_conserved(medium: &Medium<u32>) {
    for station in (0..STATIONS).map(StationId) {
        let counters = medium.counters(station);
        let ended = counters.delivered + counters.dropped_total() + counters.drained;
        let alive = (medium.queue_len(station).0 + medium.in_flight(station)) as u64;
        assert_eq!(counters.offered, ended + alive, "{station:?}: {counters:?}");
    }
}

proptest! {
    #[test]
    fn every_packet_has_one_fate_whatever_is_done(
        config in configs(),
        script in prop::collection::vec((0_u64..2_000_000, actions()), 1..120),
    ) {
        let mut medium = medium_with(config, 3, usize::from(STATIONS));
        let (mut now, mut next, mut ended) = (at(0), 0, Vec::new());
        let mut last = at(0);
        for (wait, action) in &script {
            let until = now + Duration::from_nanos(*wait);
            while let Some(due) = medium.next_timeout().filter(|due| *due <= until) {
                prop_assert!(due >= now);
                now = due;
                while let Some(output) = medium.poll(now) {
                    // Whoever is punctual sees everything at its instant, and in order.
                    prop_assert_eq!(output.at(), now);
                    last = output.at();
                    let (MediumOutput::Delivered { packet, .. } | MediumOutput::Dropped { packet, .. }) = output;
                    ended.push(packet);
                }
                assert_conserved(&medium);
            }
            now = until;
            ended.extend(act(&mut medium, now, action, &mut next));
            assert_conserved(&medium);
        }
        prop_assert!(last <= now);
        for station in 0..STATIONS {
            medium.set_up(now, StationId(station));
        }
        medium.reconfigure(now, fresh(&medium)).unwrap();
        for output in run(&mut medium) {
            let (MediumOutput::Delivered { packet, .. } | MediumOutput::Dropped { packet, .. }) = output;
            ended.push(packet);
        }
        assert_conserved(&medium);
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..next).collect::<Vec<_>>());
    }

    #[test]
    fn an_owner_that_is_late_sees_the_same(
        config in configs(),
        script in prop::collection::vec((0_u64..2_000_000, actions()), 1..60),
    ) {
        let mut outputs = [Vec::new(), Vec::new()];
        for (outputs, is_punctual) in outputs.iter_mut().zip([true, false]) {
            let mut medium = medium_with(config.clone(), 3, usize::from(STATIONS));
            let (mut now, mut next) = (at(0), 0);
            for (wait, action) in &script {
                now += Duration::from_nanos(*wait);
                while let Some(due) = medium.next_timeout().filter(|due| is_punctual && *due <= now) {
                    outputs.extend(std::iter::from_fn(|| medium.poll(due)));
                }
                act(&mut medium, now, action, &mut next);
            }
            medium.reconfigure(now, fresh(&medium)).unwrap();
            outputs.extend(run(&mut medium));
        }
        prop_assert_eq!(&outputs[0], &outputs[1]);
    }
}
