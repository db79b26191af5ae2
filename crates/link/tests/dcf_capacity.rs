//! What saturated stations get out of a radio channel, beside the model of Bianchi.
//!
//! Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE Journal on Selected Areas in Communications
//! 18(3), 2000. Equations are numbered as there.

use careof_base::{DataRate, Duration, Instant, RandomStream};
use careof_link::{
    ACK_BYTES, CTS_BYTES, Coding, DcfConfig, DropCause, Medium, MediumOutput, Phy, Protection, RTS_BYTES,
    StationId, WIRELESS_OVERHEAD_BYTES,
};

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

const fn mbit(rate: u64) -> DataRate {
    DataRate::from_megabits_per_second(rate)
}

/// As many tries as it takes, as in the model.
fn never_given_up(config: DcfConfig) -> DcfConfig {
    DcfConfig { short_retry_limit: u32::MAX, long_retry_limit: u32::MAX, ..config }
}

fn with_requests(config: DcfConfig) -> DcfConfig {
    DcfConfig { rts_threshold: 0, ..config }
}

/// Frequency hopping at 1 Mbit/s, as in table II, with a first window of `w` slots that doubles `m` times.
fn table_two(w: u32, m: u32) -> DcfConfig {
    let phy = Phy {
        slot: us(50),
        sifs: us(28),
        cca: us(27),
        rx_start_delay: us(128),
        cw_min: w - 1,
        cw_max: (w << m) - 1,
        coding: Coding::Serial { preamble: us(128) },
        lowest_ack: us(128 + 112),
        rates: const { &[DataRate::from_megabits_per_second(1)] },
    };
    never_given_up(DcfConfig { phy, rate: mbit(1), control_rate: mbit(1), ..DcfConfig::default() })
}

/// IP bytes whose frame is as long as one of table II: 34 bytes of header and 1023 of payload.
const TABLE_TWO_PACKET: u16 = 34 + 1023 - WIRELESS_OVERHEAD_BYTES;

struct Saturated {
    delivered: Vec<u64>,
    given_up: u64,
    collisions: u64,
    transmissions: u64,
    span: f64,
}

impl Saturated {
    fn frames_per_second(&self) -> f64 {
        self.delivered.iter().sum::<u64>() as f64 / self.span
    }

    /// Share of transmissions that collide: the model's p.
    fn p(&self) -> f64 {
        self.collisions as f64 / self.transmissions as f64
    }
}

/// What `stations` that always have packets of `size` bytes deliver in `span`.
fn saturate(config: &DcfConfig, stations: u16, size: u16, span: Duration, seed: u64) -> Saturated {
    assert_eq!(config.check(), Ok(()));
    let stream = |user: &str| RandomStream::new(seed, 0, user);
    // One more, who only receives.
    let queues = (0..=stations).map(|_| stream("queue"));
    let mut medium = Medium::new(config.clone(), stream("backoff"), stream("loss"), queues);
    let sink = StationId(stations);
    for from in (0..stations).map(StationId) {
        for _ in 0..2 {
            medium.enqueue(Instant::ZERO, from, sink, (), size.into()).unwrap();
        }
    }
    let end = Instant::ZERO + span;
    let mut delivered = vec![0; usize::from(stations)];
    let mut given_up = 0;
    while let Some(now) = medium.next_timeout().filter(|now| *now <= end) {
        while let Some(output) = medium.poll(now) {
            let from = match output {
                MediumOutput::Delivered { from, .. } => {
                    delivered[usize::from(from.0)] += 1;
                    from
                }
                MediumOutput::Dropped { from, cause: DropCause::RetryLimit, .. } => {
                    given_up += 1;
                    from
                }
                MediumOutput::Dropped { .. } => panic!("{output:?}"),
            };
            medium.enqueue(now, from, sink, (), size.into()).unwrap();
        }
    }
    let contention = || (0..stations).map(|n| medium.contention(StationId(n)));
    Saturated {
        delivered,
        given_up,
        collisions: contention().map(|of| of.collisions).sum(),
        transmissions: contention().map(|of| of.transmissions).sum(),
        span: span.as_secs_f64(),
    }
}

/// How long things take, in microseconds, from the standard's formulas and not from the code that is tested.
struct Spans {
    slot: f64,
    success: f64,
    collision: f64,
}

fn frame(coding: Coding, rate: DataRate, bytes: u16) -> f64 {
    let (bits, rate) = (8.0 * f64::from(bytes), rate.bits_per_second() as f64 / 1e6);
    let micros = |span: Duration| span.as_secs_f64() * 1e6;
    match coding {
        Coding::Serial { preamble } => micros(preamble) + (bits / rate).ceil(),
        Coding::Ofdm { preamble, symbol, extension } => {
            let symbol = micros(symbol);
            micros(preamble) + symbol * ((bits + 22.0) / (rate * symbol)).ceil() + micros(extension)
        }
    }
}

/// What follows a collision before slots are counted again.
#[derive(Clone, Copy)]
enum AfterCollision {
    /// As in equations (14) and (17).
    Difs,
    /// As in the standard, for all who only heard it.
    Eifs,
}

fn spans(config: &DcfConfig, size: u16, after_collision: AfterCollision) -> Spans {
    let micros = |span: Duration| span.as_secs_f64() * 1e6;
    let phy = &config.phy;
    let (slot, sifs, delta) = (micros(phy.slot), micros(phy.sifs), micros(config.delay));
    let difs = sifs + 2.0 * slot;
    let data = frame(phy.coding, config.rate, size + WIRELESS_OVERHEAD_BYTES);
    let ack = frame(phy.coding, config.control_rate, ACK_BYTES);
    let (coding, rate) = match config.protection {
        None => (phy.coding, config.control_rate),
        Some(Protection { rate, preamble }) => (Coding::Serial { preamble }, rate),
    };
    let [rts, cts] = [RTS_BYTES, CTS_BYTES].map(|bytes| frame(coding, rate, bytes));
    let answered = data + delta + sifs + ack + delta + difs;
    let space = match after_collision {
        AfterCollision::Difs => difs,
        AfterCollision::Eifs => sifs + micros(phy.lowest_ack) + difs,
    };
    let (success, unanswered) = if config.rts_threshold < size {
        (rts + delta + sifs + cts + delta + sifs + answered, rts)
    } else if config.protection.is_some() {
        (cts + sifs + answered, cts + sifs + data)
    } else {
        (answered, data)
    };
    Spans { slot, success, collision: unanswered + delta + space }
}

/// The chance that a station sends in a slot, equation (7), of one whose transmissions collide with chance `p` and whose window begins with
/// `w` slots and doubles `m` times.
fn tau_unlimited(p: f64, w: f64, m: i32) -> f64 {
    // The sum is (1 - (2p)^m) / (1 - 2p) without its gap at p = 1/2.
    let sum: f64 = (0..m).map(|k| (2.0 * p).powi(k)).sum();
    2.0 / (1.0 + w + p * w * sum)
}

/// The same where a frame is given up after `limit` transmissions: Wu, Peng, Long, Cheng and Ma, "Performance of Reliable Transport Protocol
/// over IEEE 802.11 Wireless LAN: Analysis and Enhancement", INFOCOM 2002. It is renewal theory: a frame is sent 1 + p + ... times, and
/// waits for (W_k - 1)/2 slots and its own before each.
fn tau_limited(p: f64, w: f64, m: i32, limit: i32) -> f64 {
    let sent: f64 = (0..limit).map(|k| p.powi(k)).sum();
    let slots: f64 = (0..limit).map(|k| p.powi(k) * (w * 2.0_f64.powi(k.min(m)) + 1.0) / 2.0).sum();
    sent / slots
}

/// Both unknowns of `n` stations: equation (9) crossed with `tau`, which falls with p.
fn fixed_point(n: u16, tau: impl Fn(f64) -> f64) -> (f64, f64) {
    let others = f64::from(n) - 1.0;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = f64::midpoint(low, high);
        if 1.0 - (1.0 - tau(p)).powf(others) > p { low = p } else { high = p }
    }
    (tau(low), low)
}

/// Frames that `n` stations deliver in a second, equation (13) with the payload taken out of it.
fn frames_per_second(n: u16, tau: f64, spans: &Spans) -> f64 {
    let n = f64::from(n);
    let busy = 1.0 - (1.0 - tau).powf(n);
    let alone = n * tau * (1.0 - tau).powf(n - 1.0);
    let slot = (1.0 - busy) * spans.slot + alone * spans.success + (busy - alone) * spans.collision;
    alone / slot * 1e6
}

/// How often the first window doubles.
fn doublings(phy: &Phy) -> (f64, i32) {
    let w = phy.cw_min + 1;
    (f64::from(w), ((phy.cw_max + 1) / w).ilog2() as i32)
}

fn bianchi(config: &DcfConfig, n: u16, size: u16, after_collision: AfterCollision) -> (f64, f64) {
    let (w, m) = doublings(&config.phy);
    let (tau, p) = fixed_point(n, |p| tau_unlimited(p, w, m));
    (frames_per_second(n, tau, &spans(config, size, after_collision)), p)
}

/// Seconds in which about so many frames arrive.
fn span_of(frames: f64, frames_per_second: f64) -> Duration {
    Duration::from_secs_f64(frames / frames_per_second)
}

/// Frames of a run. Their number then spreads by less than 1 %.
const FRAMES: f64 = 8_000.0;

fn assert_near(what: &str, found: f64, model: f64, tolerance: f64) {
    assert!((found / model - 1.0).abs() < tolerance, "{what}: {found:.2}, model {model:.2}");
}

#[test]
fn with_the_parameters_of_table_two_throughput_is_within_5_percent_of_bianchi() {
    // The windows of his figures 6 to 8.
    for (w, m) in [(32, 3), (32, 5), (128, 3)] {
        for config in [table_two(w, m), with_requests(table_two(w, m))] {
            for n in 1..=20 {
                let (model, _) = bianchi(&config, n, TABLE_TWO_PACKET, AfterCollision::Difs);
                let found = saturate(&config, n, TABLE_TWO_PACKET, span_of(FRAMES, model), 1);
                let what = format!("W {w}, m {m}, threshold {}, {n} stations", config.rts_threshold);
                assert_near(&what, found.frames_per_second(), model, 0.05);
            }
        }
    }
}

#[test]
fn with_802_11b_and_g_throughput_is_within_5_percent_of_bianchi() {
    let sets = [
        (DcfConfig::b(mbit(1)), 1500),
        (DcfConfig::b(mbit(11)), 1500),
        (DcfConfig::b(mbit(11)), 100),
        (DcfConfig::b_short(mbit(11)), 1500),
        (DcfConfig::g(mbit(6)), 1500),
        (DcfConfig::g(mbit(54)), 1500),
        (DcfConfig::g(mbit(54)), 100),
    ];
    for (config, size) in sets {
        for config in [config.clone(), with_requests(config)].map(never_given_up) {
            for n in 1..=20 {
                let (model, _) = bianchi(&config, n, size, AfterCollision::Eifs);
                let found = saturate(&config, n, size, span_of(FRAMES, model), 1);
                let what =
                    format!("{}, threshold {}, {size} B, {n} stations", config.rate, config.rts_threshold);
                assert_near(&what, found.frames_per_second(), model, 0.05);
            }
        }
    }
}

#[test]
fn the_share_of_transmissions_that_collide_is_the_one_of_bianchi() {
    for config in [DcfConfig::b(mbit(11)), DcfConfig::g(mbit(54))].map(never_given_up) {
        for n in [2, 5, 10, 20] {
            let (model, p) = bianchi(&config, n, 1500, AfterCollision::Eifs);
            let found = saturate(&config, n, 1500, span_of(4.0 * FRAMES, model), 2).p();
            // In the model a station counts a slot in which others send as well. Here, as in the standard, it does not, so that who has
            // just sent is alone with the first slot. The difference falls with the window.
            let tolerance = 0.5 / f64::from(config.phy.cw_min + 1);
            assert!((found - p).abs() < tolerance, "{}, {n} stations: {found:.4}, model {p:.4}", config.rate);
        }
    }
}

#[test]
fn frames_that_are_given_up_are_as_many_as_the_model_with_a_retry_limit_says() {
    for config in [DcfConfig::b(mbit(11)), DcfConfig::g(mbit(54))] {
        let (w, m) = doublings(&config.phy);
        let limit = config.short_retry_limit as i32;
        for n in [5, 10, 20] {
            let (tau, p) = fixed_point(n, |p| tau_limited(p, w, m, limit));
            let model = frames_per_second(n, tau, &spans(&config, 1500, AfterCollision::Eifs));
            let found = saturate(&config, n, 1500, span_of(10.0 * FRAMES, model), 3);
            let what = format!("{}, {n} stations", config.rate);
            assert_near(&what, found.frames_per_second(), model, 0.05);
            // Each of `limit` factors is off by a few percent at most.
            let delivered: u64 = found.delivered.iter().sum();
            let given_up = found.given_up as f64 / (found.given_up + delivered) as f64;
            let expected = p.powi(limit);
            assert!(
                given_up > 0.5 * expected - 2e-4 && given_up < 1.5 * expected + 2e-4,
                "{what}: {given_up}, {expected}"
            );
        }
    }
}

#[test]
fn a_station_alone_takes_the_mean_of_its_back_off_and_the_exchange_for_each_frame() {
    let sets = [
        (DcfConfig::b(mbit(11)), 1500),
        (DcfConfig::b_short(mbit(11)), 576),
        (DcfConfig::g(mbit(54)), 1500),
        (DcfConfig::g_protected(mbit(54)), 1500),
        (table_two(32, 5), TABLE_TWO_PACKET),
    ];
    for (config, size) in sets {
        for config in [config.clone(), with_requests(config)] {
            let spans = spans(&config, size, AfterCollision::Eifs);
            let cw = f64::from(config.phy.cw_min);
            let mean = spans.success + cw / 2.0 * spans.slot;
            let frames = 20_000.0;
            let found = saturate(&config, 1, size, Duration::from_secs_f64(frames * mean / 1e6), 4);
            // A back-off is uniform on 0..=CW: its variance is CW (CW + 2) / 12 slots squared. Four standard errors, and the frame at hand.
            let error = 4.0 * (cw * (cw + 2.0) / 12.0 / frames).sqrt() * spans.slot + mean / frames;
            let each = 1e6 * found.span / found.delivered[0] as f64;
            assert!((each - mean).abs() < error, "{}: {each:.3} us each, expected {mean:.3} us", config.rate);
            assert_eq!((found.collisions, found.given_up), (0, 0));
        }
    }
}

#[test]
fn with_protection_throughput_lies_between_what_either_space_after_a_collision_gives() {
    // Who collided knows after an acknowledgement timeout, which OFDM makes short; who heard it waits for one of DSSS. Bianchi has one
    // space for all: DIFS is less than what most wait for, EIFS more than what those do who have collided, and send next.
    for config in [DcfConfig::g_protected(mbit(54)), with_requests(DcfConfig::g_protected(mbit(54)))] {
        let config = never_given_up(config);
        for n in 1..=20 {
            let [most, least] =
                [AfterCollision::Difs, AfterCollision::Eifs].map(|space| bianchi(&config, n, 1500, space).0);
            let found = saturate(&config, n, 1500, span_of(FRAMES, most), 5).frames_per_second();
            assert!(
                found > 0.97 * least && found < 1.03 * most,
                "{n} stations: {found:.1} of {least:.1} to {most:.1}"
            );
        }
    }
}

#[test]
fn saturated_stations_share_the_channel_equally() {
    for config in [DcfConfig::b(mbit(11)), DcfConfig::g(mbit(54))] {
        let found = saturate(&config, 10, 1500, Duration::from_secs(200), 6);
        let (sum, squares) = found.delivered.iter().fold((0.0, 0.0), |(sum, squares), n| {
            let n = *n as f64;
            (sum + n, squares + n * n)
        });
        let jain = sum * sum / (found.delivered.len() as f64 * squares);
        assert!(jain > 0.998, "{}: {jain:.5} {:?}", config.rate, found.delivered);
    }
}

#[test]
fn requests_to_send_pay_where_many_long_frames_collide_and_cost_where_none_do() {
    let plain = never_given_up(table_two(32, 3));
    let by_requests = with_requests(plain.clone());
    let throughput = |config: &DcfConfig, n| {
        saturate(config, n, TABLE_TWO_PACKET, Duration::from_secs(100), 7).frames_per_second()
    };
    assert!(throughput(&by_requests, 1) < throughput(&plain, 1));
    assert!(throughput(&by_requests, 20) > 1.15 * throughput(&plain, 20));
}
