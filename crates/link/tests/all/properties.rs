//! What holds for every link, whatever is done to it.

use crate::reference::Reference;
use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{
    Config, Discipline, DropCause, Fate, Framing, Jitter, Link, Loss, Output, QueueConfig, QueueLimit,
    RedConfig, Trace, TraceRow, UNLIMITED_RATE,
};
use proptest::prelude::*;

/// Something done to a link.
#[derive(Clone, Debug)]
enum Action {
    Enqueue { size: u32, ecn_capable: bool },
    Reconfigure(Config),
    Down { queued: Fate, in_flight: Fate },
    Up,
    Drain,
}

fn link(config: Config) -> Link<u32> {
    let stream = |user| RandomStream::new(17, 0, user);
    Link::new(config, stream("loss"), stream("jitter"), stream("queue"))
}

fn offer(
    link: &mut Link<u32>,
    now: Instant,
    packet: u32,
    size: u32,
    ecn_capable: bool,
) -> Result<(), DropCause> {
    if ecn_capable { link.enqueue_ecn_capable(now, packet, size) } else { link.enqueue(now, packet, size) }
}

/// Does `action`; `next` numbers the packets offered. Returns the packets drained.
fn act(link: &mut Link<u32>, now: Instant, action: &Action, next: &mut u32) -> Vec<u32> {
    match action {
        Action::Enqueue { size, ecn_capable } => {
            // A refused packet is counted by the link.
            let _ = offer(link, now, *next, *size, *ecn_capable);
            *next += 1;
        }
        Action::Reconfigure(config) => link.reconfigure(now, config.clone()),
        Action::Down { queued, in_flight } => link.set_down(now, *queued, *in_flight),
        Action::Up => link.set_up(now),
        Action::Drain => return link.drain_queue(now),
    }
    Vec::new()
}

fn rates() -> impl Strategy<Value = DataRate> {
    prop_oneof![
        1 => Just(DataRate::ZERO),
        1 => Just(UNLIMITED_RATE),
        6 => (1_000_u64..100_000_000).prop_map(DataRate::from_bits_per_second),
    ]
}

fn jitters() -> impl Strategy<Value = Jitter> {
    let span = || (0_u64..30_000).prop_map(Duration::from_micros);
    prop_oneof![
        3 => Just(Jitter::None),
        1 => (span(), any::<bool>()).prop_map(|(spread, reorder)| Jitter::Uniform { spread, reorder }),
        1 => (span(), any::<bool>()).prop_map(|(deviation, reorder)| Jitter::Normal { deviation, reorder }),
        1 => (span(), 1.1..5.0, any::<bool>())
            .prop_map(|(scale, shape, reorder)| Jitter::Pareto { scale, shape, reorder }),
    ]
}

fn losses() -> impl Strategy<Value = Loss> {
    let p = || (0.0..=1.0).prop_map(|p| Probability::new(p).unwrap());
    prop_oneof![
        2 => Just(Loss::None),
        1 => p().prop_map(|p| Loss::Bernoulli { p }),
        1 => (p(), p(), p(), p()).prop_map(|(good_to_bad, bad_to_good, loss_in_good, loss_in_bad)| {
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad }
        }),
    ]
}

fn queues() -> impl Strategy<Value = QueueConfig> {
    let limit =
        prop_oneof![(0_u32..30).prop_map(QueueLimit::Packets), (0_u64..30_000).prop_map(QueueLimit::Bytes),];
    let millis = Duration::from_millis;
    let red = (0_u32..4, 1_u32..8, 0.01..1.0, any::<bool>()).prop_map(|(min, more, weight, gentle)| {
        let max_probability = Probability::new(0.3).unwrap();
        let max_threshold = min + more;
        Discipline::Red(RedConfig {
            min_threshold: min,
            max_threshold,
            max_probability,
            weight,
            gentle,
            mean_packet_bytes: 500,
        })
    });
    let codel = (1_u64..5, 5_u64..50).prop_map(move |(target, interval)| Discipline::CoDel {
        target: millis(target),
        interval: millis(interval),
    });
    let discipline = prop_oneof![Just(Discipline::DropTail), red, codel];
    (limit, discipline, any::<bool>()).prop_map(|(limit, discipline, ecn)| QueueConfig {
        limit,
        discipline,
        ecn,
    })
}

/// Mostly none.
fn traces() -> impl Strategy<Value = Option<Trace>> {
    let row = (1_u64..20_000, rates(), 0_u64..50_000, 0.0..=1.0).prop_map(|(micros, rate, delay, loss)| {
        let rate = Some(rate).filter(|rate| *rate != UNLIMITED_RATE);
        (micros, rate, Duration::from_micros(delay), Probability::new(loss).unwrap())
    });
    let columns = (any::<bool>(), any::<bool>(), any::<bool>());
    let series = (prop::collection::vec(row, 1..8), columns).prop_map(|(rows, (rates, delays, losses))| {
        let mut at = 0;
        let row = |(index, (micros, rate, delay, loss)): (usize, (u64, Option<DataRate>, _, _))| {
            at += if index == 0 { 0 } else { micros };
            TraceRow {
                at: Duration::from_micros(at),
                rate: rates.then(|| rate.unwrap_or(DataRate::ZERO)),
                delay: delays.then_some(delay),
                loss: losses.then_some(loss),
            }
        };
        Trace::of_rows(&rows.into_iter().enumerate().map(row).collect::<Vec<_>>()).unwrap()
    });
    let opportunities = prop::collection::vec(0_u32..60, 1..40).prop_map(|mut millis| {
        millis.sort_unstable();
        millis.push(60);
        Trace::of_opportunities(millis).unwrap()
    });
    let start = (0_u64..50_000).prop_map(Duration::from_micros);
    let trace =
        (prop_oneof![series, opportunities], start).prop_map(|(trace, start)| trace.starting_at(start));
    prop_oneof![3 => Just(None), 2 => trace.prop_map(Some)]
}

fn configs() -> impl Strategy<Value = Config> {
    (plain_configs(), traces()).prop_map(|(config, trace)| match trace {
        Some(trace) => config.following(trace),
        None => config,
    })
}

fn plain_configs() -> impl Strategy<Value = Config> {
    let delay = (0_u64..50_000).prop_map(Duration::from_micros);
    let mtu = prop_oneof![Just(1500_u16), Just(576)];
    let framing = prop_oneof![Just(Framing::NONE), Just(Framing::ASYNC_PPP)];
    (rates(), delay, jitters(), losses(), queues(), mtu, framing).prop_map(
        |(rate, delay, jitter, loss, queue, mtu, framing)| Config {
            rate,
            delay,
            jitter,
            loss,
            queue,
            mtu,
            framing,
            filters_icmp: false,
            trace: None,
        },
    )
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Keep), Just(Fate::Drop)]
}

/// Actions, each after a wait in nanoseconds: mostly bursts of packets.
fn scripts() -> impl Strategy<Value = Vec<(u64, Action)>> {
    let wait = prop_oneof![3 => Just(0_u64), 3 => 0_u64..2_000_000, 1 => 0_u64..200_000_000];
    let action = prop_oneof![
        20 => (prop_oneof![Just(1500_u32), 0_u32..1600], any::<bool>())
            .prop_map(|(size, ecn_capable)| Action::Enqueue { size, ecn_capable }),
        2 => configs().prop_map(Action::Reconfigure),
        1 => (fates(), fates()).prop_map(|(queued, in_flight)| Action::Down { queued, in_flight }),
        2 => Just(Action::Up),
        1 => Just(Action::Drain),
    ];
    prop::collection::vec((wait, action), 1..120)
}

/// When a link is polled between actions.
#[derive(Clone, Copy, Debug)]
enum Polling {
    /// At each timeout, as the contract asks.
    Punctual,
    /// At each timeout and at 16 instants between any two actions.
    Busy,
    /// Only after each action.
    Late,
}

/// Everything that happens to a link, in order, and the packets drained.
fn history(config: &Config, script: &[(u64, Action)], polling: Polling) -> (Vec<Output<u32>>, Vec<u32>) {
    let mut link = link(config.clone());
    let (mut now, mut next_packet) = (Instant::ZERO, 0);
    let (mut outputs, mut drained) = (Vec::new(), Vec::new());
    let end = (2_000_000_000, Action::Up);
    for (wait, action) in script.iter().chain([&end, &end]) {
        let until = now + Duration::from_nanos(*wait);
        loop {
            let timeout = link.next_timeout().unwrap_or(Instant::MAX);
            let wake = match polling {
                Polling::Punctual => timeout,
                Polling::Busy => timeout.min(now + Duration::from_nanos(wait / 16 + 1)),
                Polling::Late => Instant::MAX,
            };
            if wake > until {
                break;
            }
            now = now.max(wake);
            outputs.extend(std::iter::from_fn(|| link.poll(now)));
        }
        now = until;
        drained.extend(act(&mut link, now, action, &mut next_packet));
        outputs.extend(std::iter::from_fn(|| link.poll(now)));
        let counters = link.counters();
        let accounted = counters.delivered
            + counters.dropped_total()
            + counters.drained
            + link.queue_len().0 as u64
            + link.in_flight() as u64;
        assert_eq!(counters.offered, accounted, "after {action:?}");
    }
    (outputs, drained)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        // A failure prints the whole script: it becomes a test by its own name, not a seed in a file.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn polling_late_or_often_changes_nothing(config in configs(), script in scripts()) {
        let (punctual, drained) = history(&config, &script, Polling::Punctual);
        prop_assert!(punctual.iter().map(Output::at).is_sorted());
        for polling in [Polling::Busy, Polling::Late] {
            let (outputs, also_drained) = history(&config, &script, polling);
            prop_assert_eq!(&punctual, &outputs, "{:?}", polling);
            prop_assert_eq!(&drained, &also_drained);
        }
    }

    #[test]
    fn a_punctual_owner_sees_everything_when_it_happens(config in configs(), script in scripts()) {
        let mut link = link(config);
        let (mut now, mut next_packet) = (Instant::ZERO, 0);
        for (wait, action) in &script {
            let until = now + Duration::from_nanos(*wait);
            while let Some(wake) = link.next_timeout().filter(|wake| *wake <= until) {
                prop_assert!(wake >= now);
                now = wake;
                for output in std::iter::from_fn(|| link.poll(now)) {
                    prop_assert_eq!(output.at(), now);
                }
                prop_assert!(link.next_timeout().is_none_or(|next| next > now), "a timeout that does not pass");
            }
            now = until;
            act(&mut link, now, action, &mut next_packet);
            for output in std::iter::from_fn(|| link.poll(now)) {
                prop_assert_eq!(output.at(), now);
            }
        }
    }

    #[test]
    fn every_packet_has_one_fate(config in configs(), script in scripts()) {
        let mut link = link(config);
        let (mut now, mut next_packet) = (Instant::ZERO, 0);
        let mut fates = Vec::new();
        for (wait, action) in &script {
            now += Duration::from_nanos(*wait);
            let packet = next_packet;
            if let Action::Enqueue { size, ecn_capable } = action {
                next_packet += 1;
                if offer(&mut link, now, packet, *size, *ecn_capable).is_err() {
                    fates.push(packet);
                }
            } else {
                fates.extend(act(&mut link, now, action, &mut next_packet));
            }
            for output in std::iter::from_fn(|| link.poll(now)) {
                let (Output::Delivered { packet, .. } | Output::Dropped { packet, .. }) = output;
                fates.push(packet);
            }
        }
        link.set_down(now, Fate::Drop, Fate::Drop);
        for output in std::iter::from_fn(|| link.poll(now)) {
            let (Output::Delivered { packet, .. } | Output::Dropped { packet, .. }) = output;
            fates.push(packet);
        }
        prop_assert_eq!((link.queue_len(), link.in_flight()), ((0, 0), 0));
        fates.sort_unstable();
        prop_assert_eq!(fates, (0..next_packet).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_overtakes_without_leave(config in configs(), script in scripts()) {
        let in_order = |mut config: Config| {
            match &mut config.jitter {
                Jitter::None => {}
                Jitter::Uniform { reorder, .. }
                | Jitter::Normal { reorder, .. }
                | Jitter::Pareto { reorder, .. } => *reorder = false,
            }
            config
        };
        let script: Vec<_> = script
            .into_iter()
            .map(|(wait, action)| match action {
                Action::Reconfigure(config) => (wait, Action::Reconfigure(in_order(config))),
                other => (wait, other),
            })
            .collect();
        let (outputs, _) = history(&in_order(config), &script, Polling::Punctual);
        let delivered = outputs.iter().filter_map(|output| match output {
            Output::Delivered { packet, .. } => Some(*packet),
            Output::Dropped { .. } => None,
        });
        prop_assert!(delivered.is_sorted());
    }

    /// One that draws what becomes of each packet, and always the same, puts none on the wire before its time.
    #[test]
    fn a_link_without_chance_equals_one_whose_chance_decides_nothing(
        config in configs(),
        script in scripts(),
        spared in prop_oneof![Just(Chance::Loss), Just(Chance::Jitter)],
        punctual in any::<bool>(),
    ) {
        let without = |config: &Config| spared.taken_from(config.clone());
        let idle = |config: &Config| spared.made_idle_in(config.clone());
        let (mut plain, mut drawing) = (link(without(&config)), link(idle(&config)));
        let (mut now, mut next) = (Instant::ZERO, [0; 2]);
        let end = (2_000_000_000, Action::Up);
        for (wait, action) in script.iter().chain([&end, &end]) {
            let until = now + Duration::from_nanos(*wait);
            while let Some(wake) = plain.next_timeout().filter(|wake| punctual && *wake <= until) {
                now = wake;
                prop_assert_eq!(next_output(&mut plain, now), drawing.poll(now));
                prop_assert_eq!(standing(&plain), standing(&drawing));
            }
            now = until;
            let (one, other) = match action {
                Action::Reconfigure(config) => {
                    (Action::Reconfigure(without(config)), Action::Reconfigure(idle(config)))
                }
                other => (other.clone(), other.clone()),
            };
            let timeout = plain.next_timeout();
            prop_assert_eq!(act(&mut plain, now, &one, &mut next[0]), act(&mut drawing, now, &other, &mut next[1]));
            if matches!(action, Action::Enqueue { .. }) && plain.is_behind_others() {
                prop_assert_eq!(plain.next_timeout(), timeout);
            }
            prop_assert!(!drawing.is_behind_others());
            prop_assert_eq!(standing(&plain), standing(&drawing), "after {:?}", action);
            loop {
                let output = next_output(&mut plain, now);
                prop_assert_eq!(output, drawing.poll(now), "after {:?}", action);
                prop_assert_eq!(standing(&plain), standing(&drawing), "after {:?}", action);
                if output.is_none() {
                    break;
                }
            }
        }
    }

    /// Nanosecond by nanosecond, with packets that take tens of them.
    #[test]
    fn a_drop_tail_link_equals_one_that_is_stepped_through_each_nanosecond(
        (config, script) in (small_configs(), small_scripts())
    ) {
        let mut link = link(config.clone());
        let mut reference = Reference::new(config);
        let mut next_packet = 0;
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        let end = (5_000, Action::Up);
        for (wait, action) in script.iter().chain([&end, &end]) {
            let until = reference.now() + wait;
            while let Some(wake) = link.next_timeout().filter(|wake| wake.as_nanos() <= until) {
                found.extend(std::iter::from_fn(|| link.poll(wake)));
            }
            reference.step_to(until, &mut expected);
            let now = Instant::from_nanos(until);
            let packet = next_packet;
            let drained = match action {
                Action::Enqueue { size, .. } => {
                    next_packet += 1;
                    let refused = link.enqueue(now, packet, *size);
                    prop_assert_eq!(refused, reference.enqueue(packet, *size));
                    Vec::new()
                }
                other => act(&mut link, now, other, &mut next_packet),
            };
            match action {
                Action::Enqueue { .. } => {}
                Action::Reconfigure(config) => reference.reconfigure(config.clone(), &mut expected),
                Action::Down { queued, in_flight } => reference.set_down(*queued, *in_flight, &mut expected),
                Action::Up => reference.set_up(),
                Action::Drain => prop_assert_eq!(drained, reference.drain()),
            }
            found.extend(std::iter::from_fn(|| link.poll(now)));
            reference.step_to(until, &mut expected);
            // Where the link settles several things at one instant, arrivals come first.
            let key = |output: &Output<u32>| (output.at(), matches!(output, Output::Dropped { .. }));
            found.sort_by_key(key);
            expected.sort_by_key(key);
            prop_assert_eq!(&found, &expected, "after {:?} at {}", action, now);
        }
    }
}

/// What a link may leave to chance.
#[derive(Clone, Copy, Debug)]
enum Chance {
    Loss,
    Jitter,
}

impl Chance {
    fn taken_from(self, mut config: Config) -> Config {
        config.trace = None;
        match self {
            Self::Loss => config.loss = Loss::None,
            Self::Jitter => config.jitter = Jitter::None,
        }
        config
    }

    fn made_idle_in(self, mut config: Config) -> Config {
        config.trace = None;
        match self {
            Self::Loss => config.loss = Loss::Bernoulli { p: Probability::ZERO },
            Self::Jitter => config.jitter = Jitter::Uniform { spread: Duration::ZERO, reorder: false },
        }
        config
    }
}

/// All that a link tells of itself.
fn standing(link: &Link<u32>) -> impl PartialEq + std::fmt::Debug {
    (link.next_timeout(), link.queue_len(), link.sending_until(), link.in_flight(), *link.counters())
}

/// [`Link::poll`], by way of [`Link::take_arrival`] where that answers.
fn next_output(link: &mut Link<u32>, now: Instant) -> Option<Output<u32>> {
    let at = link.next_timeout();
    match link.take_arrival(now) {
        Some((packet, next)) => {
            assert_eq!(Some(next).filter(|next| *next != Instant::MAX), link.next_timeout());
            Some(Output::Delivered { packet, at: at.expect("something arrived"), marked: false })
        }
        None => link.poll(now),
    }
}

/// Drop-tail without jitter and loss, of which a packet of a hundred bytes takes about a hundred nanoseconds.
fn small_configs() -> impl Strategy<Value = Config> {
    let rate = prop_oneof![
        1 => Just(DataRate::ZERO),
        1 => Just(UNLIMITED_RATE),
        6 => (1_000_000_000_u64..50_000_000_000).prop_map(DataRate::from_bits_per_second),
    ];
    let delay = (0_u64..300).prop_map(Duration::from_nanos);
    let limit =
        prop_oneof![(0_u32..8).prop_map(QueueLimit::Packets), (0_u64..800).prop_map(QueueLimit::Bytes),];
    let framing = prop_oneof![Just(Framing::NONE), Just(Framing::ASYNC_PPP)];
    (rate, delay, limit, framing).prop_map(|(rate, delay, limit, framing)| Config {
        rate,
        delay,
        queue: QueueConfig { limit, discipline: Discipline::DropTail, ecn: false },
        framing,
        mtu: 150,
        ..Config::default()
    })
}

fn small_scripts() -> impl Strategy<Value = Vec<(u64, Action)>> {
    let wait = prop_oneof![3 => Just(0_u64), 3 => 0_u64..100, 1 => 0_u64..600];
    let action = prop_oneof![
        16 => (0_u32..160).prop_map(|size| Action::Enqueue { size, ecn_capable: false }),
        3 => small_configs().prop_map(Action::Reconfigure),
        1 => (fates(), fates()).prop_map(|(queued, in_flight)| Action::Down { queued, in_flight }),
        2 => Just(Action::Up),
        1 => Just(Action::Drain),
    ];
    prop::collection::vec((wait, action), 1..60)
}
