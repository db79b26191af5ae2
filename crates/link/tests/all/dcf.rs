//! IEEE 802.11's distributed coordination function, to the nanosecond.

use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{
    ConfigError, Contention, DcfConfig, DropCause, Fate, Loss, Medium, MediumOutput, Phy, StationId,
};

const A: StationId = StationId(0);
const B: StationId = StationId(1);
const C: StationId = StationId(2);

const US: u64 = 1_000;
const DELAY: u64 = US;
const SLOT: u64 = 20 * US;
const SIFS: u64 = 10 * US;
const DIFS: u64 = 50 * US;
/// An acknowledgement at 1 Mbit/s is let pass.
const EIFS: u64 = SIFS + 304 * US + DIFS;
/// 14 bytes at 2 Mbit/s behind a long preamble.
const ACK: u64 = (192 + 56) * US;
/// 1500 bytes of IP and 36 around it at 11 Mbit/s, in whole microseconds, behind a long preamble.
const DATA: u64 = (192 + 1118) * US;
/// From the first bit until the acknowledgement has been heard.
const EXCHANGE: u64 = DATA + DELAY + SIFS + ACK + DELAY;
/// From the end of a frame until its sender gives up hope.
const ACK_TIMEOUT: u64 = SIFS + SLOT + 192 * US;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn medium_with(config: DcfConfig, seed: u64) -> Medium<u32> {
    assert_eq!(config.check(), Ok(()));
    let stream = |user: &str| RandomStream::new(seed, 0, user);
    Medium::new(config, stream("backoff"), stream("loss"), (0..3).map(|_| stream("queue")))
}

fn medium(seed: u64) -> Medium<u32> {
    medium_with(DcfConfig::default(), seed)
}

/// What stations draw one after the other, where all windows are the first.
fn draws<const N: usize>(seed: u64) -> [u64; N] {
    let mut random = RandomStream::new(seed, 0, "backoff");
    std::array::from_fn(|_| random.below(32))
}

/// A seed by which the first draws are such.
fn seed_by<const N: usize>(is_such: impl Fn([u64; N]) -> bool) -> u64 {
    (0..).find(|seed| is_such(draws(*seed))).unwrap()
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

#[test]
fn a_packet_on_an_idle_medium_goes_at_once_and_the_next_after_difs_and_a_back_off() {
    let [slots] = draws(1);
    let mut medium = medium(1);
    medium.enqueue(at(7), A, B, 1, 1500).unwrap();
    medium.enqueue(at(7), A, B, 2, 1500).unwrap();
    let second = 7 + EXCHANGE + DIFS + slots * SLOT;
    let expected = [delivered(1, A, B, 7 + DATA + DELAY), delivered(2, A, B, second + DATA + DELAY)];
    assert_eq!(run(&mut medium), expected);
    assert_eq!(medium.contention(A), Contention { transmissions: 2, collisions: 0 });
}

#[test]
fn who_has_sent_backs_off_although_nothing_waits() {
    let seed = seed_by(|[slots]| slots > 5);
    let [slots] = draws(seed);
    let mut medium = medium(seed);
    medium.enqueue(at(0), A, B, 1, 1500).unwrap();
    // Three slots later the next packet comes, and has to wait for the rest.
    let begin = EXCHANGE + DIFS;
    let later = begin + 3 * SLOT + 5;
    assert_eq!(medium.poll(at(later)), Some(delivered(1, A, B, DATA + DELAY)));
    medium.enqueue(at(later), A, B, 2, 1500).unwrap();
    assert_eq!(run(&mut medium), [delivered(2, A, B, begin + slots * SLOT + DATA + DELAY)]);
    // Long after it has gone nobody waits for anything.
    medium.enqueue(at(1_000_000_000), A, B, 3, 1500).unwrap();
    assert_eq!(run(&mut medium), [delivered(3, A, B, 1_000_000_000 + DATA + DELAY)]);
}

#[test]
fn slots_in_which_the_medium_is_idle_count_and_others_do_not() {
    // B finds the medium busy and draws; A sends its second frame before that is over, after its own draw.
    let seed = seed_by(|[b, a]| a + 3 < b);
    let [b, a] = draws(seed);
    let mut medium = medium(seed);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(0), A, C, 2, 1500).unwrap();
    medium.enqueue(at(100 * US), B, C, 3, 1500).unwrap();
    let second = EXCHANGE + DIFS + a * SLOT;
    let third = second + EXCHANGE + DIFS + (b - a) * SLOT;
    let expected = [
        delivered(1, A, C, DATA + DELAY),
        delivered(2, A, C, second + DATA + DELAY),
        delivered(3, B, C, third + DATA + DELAY),
    ];
    assert_eq!(run(&mut medium), expected);
}

#[test]
fn a_packet_that_comes_before_difs_is_over_backs_off() {
    let seed = seed_by(|[_, b]| b > 0);
    let [_, b] = draws(seed);
    let mut medium = medium(seed);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    let now = EXCHANGE + DIFS - 1;
    assert!(medium.poll(at(now)).is_some());
    medium.enqueue(at(now), B, C, 2, 1500).unwrap();
    assert_eq!(run(&mut medium), [delivered(2, B, C, EXCHANGE + DIFS + b * SLOT + DATA + DELAY)]);
}

#[test]
fn those_who_begin_before_they_can_hear_each_other_collide_and_double_their_windows() {
    let sense = 15 * US + DELAY;
    for (later, collides) in [(0, true), (sense - 1, true), (sense, false)] {
        let mut medium = medium(3);
        medium.enqueue(at(0), A, C, 1, 1500).unwrap();
        assert_eq!(medium.poll(at(later)), None);
        medium.enqueue(at(later), B, C, 2, 1500).unwrap();
        let outputs = run(&mut medium);
        assert_eq!(outputs.len(), 2);
        let collisions = u64::from(collides);
        assert_eq!(medium.contention(A).collisions, collisions, "{later} ns later");
        assert_eq!(medium.contention(B).collisions, collisions, "{later} ns later");
    }
    // Both draw from 64 slots, in the order of the stations, and count from the end of their timeouts on.
    let seed = (0..)
        .find(|seed| {
            let mut random = RandomStream::new(*seed, 0, "backoff");
            let [a, b] = [random.below(64), random.below(64)];
            a > 31 && a < b
        })
        .unwrap();
    let mut random = RandomStream::new(seed, 0, "backoff");
    let [a, b] = [random.below(64), random.below(64)];
    let mut medium = medium(seed);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(0), B, C, 2, 1500).unwrap();
    let first = DATA + ACK_TIMEOUT + a * SLOT;
    let second = first + EXCHANGE + DIFS + (b - a) * SLOT;
    assert_eq!(
        run(&mut medium),
        [delivered(1, A, C, first + DATA + DELAY), delivered(2, B, C, second + DATA + DELAY)]
    );
}

#[test]
fn who_only_heard_a_collision_waits_for_eifs() {
    // A and B collide and draw from 64 slots, more than what C has drawn from 32 while it heard them.
    let draws = |seed| {
        let mut random = RandomStream::new(seed, 0, "backoff");
        [random.below(32), random.below(64), random.below(64)]
    };
    let seed = (0..).map(|seed| (seed, draws(seed))).find(|(_, [c, a, b])| c + 20 < *a.min(b)).unwrap().0;
    let [c, ..] = draws(seed);
    let mut medium = medium(seed);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(0), B, C, 2, 1500).unwrap();
    medium.enqueue(at(500 * US), C, A, 3, 1500).unwrap();
    let start = DATA + DELAY + EIFS + c * SLOT;
    assert_eq!(run(&mut medium)[0], delivered(3, C, A, start + DATA + DELAY));
}

#[test]
fn a_request_and_a_clearance_precede_a_frame_above_the_threshold_and_no_other() {
    let config = DcfConfig { rts_threshold: 1000, ..DcfConfig::default() };
    let (rts, cts) = ((192 + 80) * US, (192 + 56) * US);
    for (size, before) in [(964, 0), (965, rts + DELAY + SIFS + cts + DELAY + SIFS)] {
        let mut medium = medium_with(config.clone(), 1);
        medium.enqueue(at(0), A, B, 1, size).unwrap();
        let data = (192 * US) + (u64::from(size + 36) * 8).div_ceil(11) * US;
        assert_eq!(run(&mut medium), [delivered(1, A, B, before + data + DELAY)], "{size} B");
    }
}

#[test]
fn a_frame_of_ofdm_is_announced_where_stations_of_dsss_are() {
    let rate = DataRate::from_megabits_per_second(54);
    // 22 bits and 1536 bytes are 58 symbols of 216 bits.
    let data = (20 + 57 * 4 + 6) * US;
    assert_eq!((22_u64 + 8 * 1536).div_ceil(216), 57);
    for (config, before) in [(DcfConfig::g(rate), 0), (DcfConfig::g_protected(rate), (192 + 56) * US + SIFS)]
    {
        let mut medium = medium_with(config, 1);
        medium.enqueue(at(0), A, B, 1, 1500).unwrap();
        assert_eq!(run(&mut medium), [delivered(1, A, B, before + data + DELAY)]);
    }
}

#[test]
fn a_frame_for_nobody_is_sent_seven_times_and_a_request_for_nobody_too() {
    for rts_threshold in [0, 2000] {
        let mut medium = medium_with(DcfConfig { rts_threshold, ..DcfConfig::default() }, 1);
        medium.set_down(at(0), B, Fate::Drop, Fate::Drop);
        medium.enqueue(at(0), A, B, 1, 1500).unwrap();
        medium.enqueue(at(0), A, C, 2, 1500).unwrap();
        let outputs = run(&mut medium);
        assert!(
            matches!(
                outputs[..],
                [
                    MediumOutput::Dropped { packet: 1, cause: DropCause::LinkDown, .. },
                    MediumOutput::Delivered { packet: 2, .. }
                ]
            ),
            "{outputs:?}"
        );
        assert_eq!(medium.contention(A), Contention { transmissions: 8, collisions: 0 });
    }
}

#[test]
fn a_damaged_frame_is_sent_again_until_it_is_given_up() {
    let loss = |p| Loss::Bernoulli { p: Probability::new(p).unwrap() };
    // What is sent with a request is long: four times, not seven.
    for (rts_threshold, times) in [(2000, 7), (0, 4)] {
        let mut medium = medium_with(DcfConfig { rts_threshold, loss: loss(1.0), ..DcfConfig::default() }, 1);
        medium.enqueue(at(0), A, B, 1, 1500).unwrap();
        let outputs = run(&mut medium);
        assert!(
            matches!(outputs[..], [MediumOutput::Dropped { packet: 1, cause: DropCause::RetryLimit, .. }]),
            "{outputs:?}"
        );
        assert_eq!(medium.contention(A), Contention { transmissions: times, collisions: 0 });
    }
    // One in ten: 0.9 + 0.09 + ..., so that each takes 1 / 0.9 transmissions in the mean.
    let mut medium = medium_with(DcfConfig { loss: loss(0.1), ..DcfConfig::default() }, 2);
    let frames = 20_000;
    for packet in 0..frames {
        medium.enqueue(medium_now(&medium), A, B, packet, 100).unwrap();
        let outputs = run(&mut medium);
        assert!(matches!(outputs[..], [MediumOutput::Delivered { .. }]), "{outputs:?}");
    }
    let each = medium.contention(A).transmissions as f64 / f64::from(frames);
    // The standard error is sqrt(0.1) / 0.9 / sqrt(20000) = 0.0025.
    assert!((each - 1.0 / 0.9).abs() < 0.01, "{each}");
}

/// An instant at which the medium may be asked again.
fn medium_now(medium: &Medium<u32>) -> Instant {
    at(1_000_000_000 * (medium.counters(A).offered + 1))
}

#[test]
fn after_a_damaged_frame_others_wait_for_eifs_and_its_sender_for_its_timeout() {
    let loss = Loss::GilbertElliott {
        // The first frame is damaged, no other is.
        good_to_bad: Probability::ZERO,
        bad_to_good: Probability::ZERO,
        loss_in_good: Probability::ZERO,
        loss_in_bad: Probability::ZERO,
    };
    let certain = Loss::Bernoulli { p: Probability::new(1.0).unwrap() };
    let draws = |seed| {
        let mut random = RandomStream::new(seed, 0, "backoff");
        [random.below(32), random.below(64)]
    };
    for b_first in [true, false] {
        let seed = (0..)
            .find(|seed| {
                let [b, a] = draws(*seed);
                if b_first { b + 10 < a } else { a < b }
            })
            .unwrap();
        let [b, a] = draws(seed);
        let mut medium = medium_with(DcfConfig { loss: certain, ..DcfConfig::default() }, seed);
        medium.enqueue(at(0), A, C, 1, 1500).unwrap();
        medium.enqueue(at(500 * US), B, C, 2, 1500).unwrap();
        medium.advance(at(600 * US));
        medium.reconfigure(at(600 * US), DcfConfig { loss, ..DcfConfig::default() }).unwrap();
        let expected = if b_first {
            delivered(2, B, C, DATA + DELAY + EIFS + b * SLOT + DATA + DELAY)
        } else {
            delivered(1, A, C, DATA + ACK_TIMEOUT + a * SLOT + DATA + DELAY)
        };
        assert_eq!(run(&mut medium)[0], expected);
    }
}

#[test]
fn a_station_that_leaves_cuts_its_signal_off_and_sends_what_it_kept_when_it_is_back() {
    let mut medium = medium(1);
    medium.enqueue(at(0), A, C, 1, 1500).unwrap();
    medium.enqueue(at(100 * US), B, C, 2, 1500).unwrap();
    let [b] = draws(1);
    medium.set_down(at(200 * US), A, Fate::Keep, Fate::Keep);
    medium.enqueue(at(210 * US), A, C, 3, 40).unwrap();
    // B has heard a part of a frame.
    let second = 200 * US + DELAY + EIFS + b * SLOT + DATA + DELAY;
    assert_eq!(medium.poll(at(second)), Some(delivered(2, B, C, second)));
    medium.set_up(at(50_000 * US), A);
    let outputs = run(&mut medium);
    let [MediumOutput::Delivered { packet: 1, at: first, .. }, MediumOutput::Delivered { packet: 3, .. }] =
        outputs[..]
    else {
        panic!("{outputs:?}")
    };
    // It listens for DIFS, and backs off as everybody does who could not send at once.
    assert!(
        first >= at(50_000 * US + DIFS + DATA + DELAY)
            && first <= at(50_000 * US + DIFS + 31 * SLOT + DATA + DELAY)
    );
}

#[test]
fn a_configuration_that_states_no_law_is_refused_with_what_would_be_right() {
    let good = DcfConfig::default();
    assert_eq!(good.check(), Ok(()));
    let with = |change: fn(&mut DcfConfig)| {
        let mut config = DcfConfig::default();
        change(&mut config);
        config.check().unwrap_err()
    };
    for (error, text) in [
        (with(|config| config.rate = DataRate::from_megabits_per_second(54)), "54 Mbit/s is none"),
        (with(|config| config.control_rate = DataRate::ZERO), "none of the rates"),
        (with(|config| config.phy = Phy { cw_min: 0, ..Phy::HR_DSSS }), "0 to 1023 slots"),
        (with(|config| config.phy = Phy { cw_min: 2047, ..Phy::HR_DSSS }), "1 <= CWmin <= CWmax"),
        (with(|config| config.long_retry_limit = 0), "at least 1"),
        (with(|config| config.delay = Duration::from_micros(5)), "below 5\u{b5}s"),
    ] {
        assert!(error.to_string().contains(text), "{error} lacks {text}");
    }
    assert!(matches!(with(|config| config.short_retry_limit = 0), ConfigError::NoTransmission));
}

#[test]
fn what_a_lone_station_gets_is_what_its_link_says() {
    for config in [
        DcfConfig::b(DataRate::from_megabits_per_second(11)),
        DcfConfig::g(DataRate::from_megabits_per_second(54)),
        DcfConfig::g_protected(DataRate::from_megabits_per_second(54)),
    ] {
        let link = config.as_link();
        let bits = link.framing.bits(1500);
        let each = link.rate.time_for_bits(bits).unwrap();
        let mut medium = medium_with(config, 8);
        for packet in 0..101 {
            medium.enqueue(at(0), A, B, packet, 1500).unwrap();
        }
        let last = run(&mut medium).last().unwrap().at();
        let found = last.as_secs_f64() / 101.0;
        // A back-off spreads by 0.6 of its mean, which is no more than half of an exchange here: a hundred give it to 4 %.
        assert!((found / each.as_secs_f64() - 1.0).abs() < 0.08, "{found} s, {each:?}");
    }
}
