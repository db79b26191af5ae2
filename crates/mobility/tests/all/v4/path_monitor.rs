//! A mobile node with two paths, its home agent, and traffic between both: what is found out about paths that lose, delay, or
//! die in silence, and what follows from it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, Probability, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{Message, PathProbeKind};

use super::world::{GSM, HA, HOME, IF_GSM, IF_WLAN, WLAN, home_config, mobile_config};

/// Bytes of a packet of traffic.
const PACKET: u64 = 1000;
/// Headers of IP and UDP.
const HEADERS: u64 = 28;

/// A path, the same both ways.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// One way.
    delay: Duration,
    /// Up to this much more, one way.
    jitter: Duration,
    loss: f64,
    /// Bit/s; packets that find more than `queue` of time before them are dropped.
    rate: Option<u64>,
    queue: Duration,
    dead: bool,
    /// When the serialisers are free: up, down.
    free: [Instant; 2],
}

impl Path {
    fn new(round_trip_ms: u64) -> Self {
        Self {
            delay: Duration::from_micros(round_trip_ms * 500),
            jitter: Duration::ZERO,
            loss: 0.0,
            rate: None,
            queue: Duration::from_secs(3600),
            dead: false,
            free: [Instant::ZERO; 2],
        }
    }

    /// Loses 5 % each way; each round trip is up to half as long again.
    fn rough(round_trip_ms: u64) -> Self {
        Self { jitter: Duration::from_micros(round_trip_ms * 250), loss: 0.05, ..Self::new(round_trip_ms) }
    }
}

/// What travels.
#[derive(Clone, Debug)]
enum Load {
    Signal(Box<Transmit>),
    /// A packet of traffic.
    Packet(u64),
}

#[derive(Clone, Debug)]
enum What {
    /// At the mobile node, through this path.
    Down(usize, Load),
    /// At the home agent.
    Up(Load),
}

/// Traffic of the mobile node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    Idle,
    /// So many packets are on their way up, each answered by one.
    Bulk(u64),
    /// Packets come down at this interval in ms; every second one is acknowledged.
    Download(u64),
    /// A request, its answer after so many ms, and so long a pause.
    Requests(u64),
    /// Packets go up at this interval in ms, and nobody answers.
    OneWay(u64),
}

struct Bench {
    now: Instant,
    mobile: MobileNode,
    home: HomeAgent,
    paths: [Path; 2],
    traffic: Traffic,
    queue: BTreeMap<(Instant, u64), What>,
    sequence: u64,
    random: RandomStream,
    /// When packets that are not answered yet were sent last.
    waiting: BTreeMap<u64, (Instant, u32)>,
    next_packet: u64,
    /// The longest of the latest round trips of packets.
    longest: Duration,
    tick: Option<Instant>,
    /// Packets of traffic that have arrived: here, there.
    arrived: [u64; 2],
    /// What probes and their answers took on each path, headers included.
    probe_bytes: [u64; 2],
    /// What traffic took.
    traffic_bytes: u64,
    requests: Vec<(Instant, usize, Option<bool>)>,
    events: Vec<(Instant, HandoverEvent)>,
    wakes: u64,
    received: Vec<Instant>,
}

fn node(selection: Selection) -> MobileNodeConfig {
    let mut config = mobile_config();
    config.interfaces.truncate(2);
    MobileNodeConfig { selection, reverse_tunnel: true, report_paths: true, path_monitor: true, ..config }
}

fn preferred() -> Selection {
    Selection::Preferred { hold: Duration::from_secs(5) }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Bench {
    fn new(seed: u64, config: MobileNodeConfig, paths: [Path; 2]) -> Self {
        let stream = |name| RandomStream::new(seed, 0, name);
        let mut bench = Self {
            now: Instant::ZERO,
            mobile: MobileNode::new(Instant::ZERO, config, stream("mobile")).unwrap(),
            home: HomeAgent::new(Instant::ZERO, home_config(), stream("home")).unwrap(),
            paths,
            traffic: Traffic::Idle,
            queue: BTreeMap::new(),
            sequence: 0,
            random: stream("paths"),
            waiting: BTreeMap::new(),
            next_packet: 0,
            longest: ms(20_000),
            tick: None,
            arrived: [0; 2],
            probe_bytes: [0; 2],
            traffic_bytes: 0,
            requests: Vec::new(),
            events: Vec::new(),
            wakes: 0,
            received: Vec::new(),
        };
        bench.drain();
        bench
    }

    fn start(&mut self, traffic: Traffic) {
        self.traffic = traffic;
        self.tick = Some(self.now);
    }

    fn active(&self) -> Option<usize> {
        self.mobile.active().map(|id| usize::from(id.0))
    }

    /// When what enters a path now comes out of it, if it does.
    fn through(&mut self, path: usize, way: usize, bytes: u64) -> Option<Instant> {
        let (loss, jitter) = (self.paths[path].loss, self.paths[path].jitter);
        let lost = self.random.chance(Probability::new(loss).unwrap());
        let late = self.random.duration_up_to(jitter);
        let path = &mut self.paths[path];
        let begins = self.now.max(path.free[way]);
        if path.dead || lost || begins.saturating_duration_since(self.now) > path.queue {
            return None;
        }
        let takes = path
            .rate
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64));
        path.free[way] = begins + takes;
        Some(begins + takes + path.delay + late)
    }

    fn push(&mut self, at: Option<Instant>, what: What) {
        if let Some(at) = at {
            self.sequence += 1;
            self.queue.insert((at, self.sequence), what);
        }
    }

    fn drain(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.mobile.poll_transmit(now) {
            let TransmitPayload::Udp { bytes, .. } = &transmit.payload else { continue };
            let path = usize::from(transmit.interface.unwrap().0);
            let taken = bytes.len() as u64 + HEADERS;
            match Message::parse(bytes).unwrap() {
                Message::PathProbe(_) => self.probe_bytes[path] += taken,
                Message::Request(request) => {
                    let lost = request.path_report().and_then(|report| report.old_path_lost);
                    self.requests.push((now, path, lost));
                }
                _ => {}
            }
            let at = self.through(path, 0, taken);
            self.push(at, What::Up(Load::Signal(Box::new(transmit))));
        }
        while let Some(event) = self.mobile.poll_event() {
            if let Event::Handover(event) = event {
                self.events.push((now, event));
            }
        }
        while let Some(transmit) = self.home.poll_transmit(now) {
            let TransmitPayload::Udp { bytes, .. } = &transmit.payload else { continue };
            let path = usize::from(transmit.destination == GSM);
            let taken = bytes.len() as u64 + HEADERS;
            if matches!(Message::parse(bytes), Ok(Message::PathProbe(answer)) if answer.kind == PathProbeKind::Answer)
            {
                self.probe_bytes[path] += taken;
            }
            let at = self.through(path, 1, taken);
            self.push(at, What::Down(path, Load::Signal(Box::new(transmit))));
        }
        while self.home.poll_event().is_some() {}
    }

    fn send_up(&mut self, packet: u64, bytes: u64) {
        let Some(path) = self.active() else { return };
        self.traffic_bytes += bytes;
        self.mobile.note_sent(self.now, InterfaceId(path as u16), 1, bytes);
        let at = self.through(path, 0, bytes + 20);
        self.push(at, What::Up(Load::Packet(packet)));
    }

    fn send_down(&mut self, packet: u64, after: Duration) {
        let Some(tunnel) = self.home.tunnels(HOME).first().copied() else { return };
        let path = usize::from(tunnel.exit == GSM);
        self.traffic_bytes += PACKET;
        let at = self.through(path, 1, PACKET + 20).map(|at| at + after);
        self.push(at, What::Down(path, Load::Packet(packet)));
    }

    /// When a packet that was not answered is sent again: as TCP would.
    fn patience(&self, attempts: u32) -> Duration {
        (ms(200) + self.longest + self.longest / 2) * (1 << attempts.min(8))
    }

    /// The traffic does what it has to do by now; says when it wants to be asked again.
    fn ask_traffic(&mut self) {
        let now = self.now;
        let again: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, (at, attempts))| *at + self.patience(*attempts) <= now)
            .map(|(packet, _)| *packet)
            .collect();
        for packet in again {
            let (_, attempts) = self.waiting[&packet];
            self.waiting.insert(packet, (now, attempts + 1));
            self.send_up(packet, PACKET);
        }
        let begin = |bench: &mut Self| {
            bench.next_packet += 1;
            bench.waiting.insert(bench.next_packet, (now, 0));
            bench.send_up(bench.next_packet, PACKET);
        };
        match self.traffic {
            Traffic::Idle => return self.tick = None,
            Traffic::Bulk(window) => {
                while (self.waiting.len() as u64) < window {
                    begin(self);
                }
            }
            Traffic::Requests(_) if self.waiting.is_empty() => begin(self),
            Traffic::Requests(_) => {}
            Traffic::OneWay(_) => self.send_up(0, PACKET),
            Traffic::Download(_) => {
                self.next_packet += 1;
                self.send_down(self.next_packet, Duration::ZERO);
            }
        }
        let again = self.waiting.values().map(|(at, attempts)| *at + self.patience(*attempts)).min();
        self.tick = match self.traffic {
            Traffic::OneWay(interval) | Traffic::Download(interval) => Some(now + ms(interval)),
            _ => again,
        };
    }

    fn arrive(&mut self, what: What) {
        let now = self.now;
        match what {
            What::Up(Load::Signal(transmit)) => self.home.handle_input(now, input(&transmit, InterfaceId(0))),
            What::Down(path, Load::Signal(transmit)) => {
                self.mobile.handle_input(now, input(&transmit, InterfaceId(path as u16)));
            }
            What::Up(Load::Packet(packet)) => {
                self.arrived[1] += 1;
                match self.traffic {
                    Traffic::Bulk(_) | Traffic::Requests(_) if packet > 0 => {
                        self.send_down(packet, Duration::ZERO)
                    }
                    _ => {}
                }
            }
            What::Down(path, Load::Packet(packet)) => {
                self.mobile.note_received(now, InterfaceId(path as u16), 1, PACKET);
                self.arrived[0] += 1;
                self.received.push(now);
                if let Traffic::Download(_) = self.traffic {
                    if packet.is_multiple_of(2) {
                        self.send_up(0, 52);
                    }
                    return;
                }
                if let Some((at, 0)) = self.waiting.remove(&packet) {
                    let round_trip = now - at;
                    self.longest = round_trip.max(self.longest - self.longest.saturating_sub(round_trip) / 8);
                }
                self.tick = Some(match self.traffic {
                    Traffic::Requests(pause) => now + ms(pause),
                    _ => now,
                });
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut idle_turns = 0;
        loop {
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let timers = [self.mobile.next_timeout(), self.home.next_timeout()];
            let timers = timers.into_iter().flatten().map(|(at, _)| at);
            let Some(next) = queued.into_iter().chain(timers).chain(self.tick).min().filter(|&at| at <= end)
            else {
                break;
            };
            idle_turns = if next > self.now { 0 } else { idle_turns + 1 };
            assert!(idle_turns < 1000, "no progress at {}: {:?}", self.now, self.mobile.next_timeout());
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= now) {
                let what = entry.remove();
                self.arrive(what);
                self.drain();
            }
            if self.tick.is_some_and(|at| at <= now) {
                self.ask_traffic();
            }
            if self.mobile.next_timeout().is_some_and(|(at, _)| at <= now) {
                self.wakes += 1;
                self.mobile.handle_timeout(now);
            }
            if self.home.next_timeout().is_some_and(|(at, _)| at <= now) {
                self.home.handle_timeout(now);
            }
            self.drain();
        }
        self.now = end;
    }

    fn count(&self, name: &str) -> usize {
        self.events.iter().filter(|(_, event)| event.name() == name).count()
    }

    fn state(&self, path: usize) -> PathState {
        self.mobile.path_quality(InterfaceId(path as u16)).state
    }
}

fn input(transmit: &Transmit, interface: InterfaceId) -> Input<'_> {
    let Transmit { source, destination, ttl, payload, .. } = transmit;
    let TransmitPayload::Udp { source_port, destination_port, bytes } = payload else {
        panic!("agents here send no ICMP");
    };
    Input::Udp {
        interface,
        source: *source,
        source_port: *source_port,
        destination: *destination,
        destination_port: *destination_port,
        ttl: *ttl,
        link_address: None,
        payload: bytes,
    }
}

const TALKS: [Traffic; 4] =
    [Traffic::Bulk(20), Traffic::Download(10), Traffic::Requests(20), Traffic::Requests(300)];

#[test]
fn a_path_that_dies_in_silence_is_left_within_a_round_trip_and_a_second() {
    for round_trip in [20, 50, 100, 200, 300] {
        for traffic in TALKS {
            for seed in 0..8 {
                let paths = [Path::new(round_trip), Path::new(round_trip)];
                let mut bench = Bench::new(seed, node(preferred()), paths);
                bench.run_for(Duration::from_secs(3));
                bench.start(traffic);
                bench.run_for(ms(8000 + seed * 137));
                assert_eq!(bench.active(), Some(0));
                let (died, before) = (bench.now, bench.requests.len());
                bench.paths[0].dead = true;
                bench.run_for(Duration::from_secs(4));
                let asked = bench.requests[before..].iter().find(|(_, path, _)| *path == 1);
                let (at, _, lost) = asked.expect("a request by the other path");
                assert_eq!(*lost, Some(true), "what was on its way is lost");
                let took = *at - died;
                // The pause of who asks now and then is the traffic's own.
                let pause = if let Traffic::Requests(pause) = traffic { ms(pause) } else { Duration::ZERO };
                // And what was on its way to the node still arrives.
                let limit = Duration::from_secs(1) + ms(round_trip * 3 / 2) + pause;
                assert!(took <= limit, "{took:?} at {round_trip} ms with {traffic:?}");
                assert_eq!((bench.active(), bench.count("path-silent")), (Some(1), 1));
                let initiated = bench.events.iter().rev().find_map(|(_, event)| match event {
                    HandoverEvent::Initiated { style, .. } => Some(*style),
                    _ => None,
                });
                assert_eq!(initiated, Some(HandoverStyle::BreakBeforeMake));
                assert!(bench.home.tunnels(HOME).iter().all(|tunnel| tunnel.exit == GSM));
            }
        }
    }
}

#[test]
fn loss_and_jitter_are_no_reason_to_leave_a_path() {
    for round_trip in [20, 100, 300] {
        for traffic in [
            Traffic::Bulk(10),
            Traffic::Download(20),
            Traffic::Requests(20),
            Traffic::Requests(1000),
            Traffic::OneWay(20),
            Traffic::Idle,
        ] {
            for seed in 0..4 {
                let paths = [Path::rough(round_trip), Path::rough(round_trip)];
                let mut bench = Bench::new(seed, node(preferred()), paths);
                bench.run_for(Duration::from_secs(5));
                bench.start(traffic);
                bench.run_for(Duration::from_secs(1800));
                let told: Vec<_> =
                    bench.events.iter().filter(|(_, event)| event.name() == "initiated").collect();
                assert_eq!(told.len(), 1, "{round_trip} ms, {traffic:?}, seed {seed}: {told:?}");
                let first = bench.events.iter().filter(
                    |(_, event)| matches!(event, HandoverEvent::PathSilent { interface, .. } if *interface == IF_WLAN),
                );
                assert_eq!(first.count(), 0, "{round_trip} ms, {traffic:?}, seed {seed}");
                // Of 1805 seconds; what is in doubt costs more.
                let spent = bench.probe_bytes.map(|bytes| bytes as f64 / 1805.0);
                let share = bench.traffic_bytes as f64 / 1805.0 * 0.01;
                assert!(
                    spent[0] <= share + 50.0 && spent[1] <= 50.0,
                    "{spent:?} beside {share}, {traffic:?}"
                );
            }
        }
    }
}

#[test]
fn a_slow_link_with_full_queues_is_not_dead() {
    let slow = Path { rate: Some(9_600), queue: Duration::from_secs(25), ..Path::new(500) };
    for traffic in [Traffic::Bulk(20), Traffic::Bulk(2), Traffic::Download(900), Traffic::Requests(100)] {
        for seed in 0..3 {
            let mut config = node(preferred());
            // A reply that takes longer than the request is waited for answers none.
            config.retransmission.attempts = None;
            let mut bench = Bench::new(seed, config, [slow, Path::new(50)]);
            bench.run_for(Duration::from_secs(10));
            bench.start(traffic);
            bench.run_for(Duration::from_secs(600));
            assert_eq!(bench.count("initiated"), 1, "{traffic:?}, seed {seed}: {:?}", bench.events);
            assert_eq!(bench.count("path-silent"), 0, "{traffic:?}, seed {seed}: {:?}", bench.events);
        }
    }
}

#[test]
fn a_path_that_is_silent_for_seconds_and_back_is_registered_at_once() {
    for selection in [Selection::Manual, preferred()] {
        for round_trip in [20, 100, 300] {
            for silence in [3, 8] {
                // The other path is dead, too.
                let other = Path { dead: true, ..Path::new(50) };
                let mut bench = Bench::new(7, node(selection), [Path::new(round_trip), other]);
                if selection == Selection::Manual {
                    bench.mobile.switch_to(bench.now, IF_WLAN, Notice::None).unwrap();
                    bench.drain();
                }
                bench.run_for(Duration::from_secs(3));
                bench.start(Traffic::Bulk(20));
                bench.run_for(Duration::from_secs(5));
                bench.paths[0].dead = true;
                bench.run_for(Duration::from_secs(silence));
                assert_eq!((bench.active(), bench.state(0)), (Some(0), PathState::Silent));
                let (back, before) = (bench.now, bench.requests.len());
                bench.paths[0].dead = false;
                bench.run_for(Duration::from_secs(2));
                let asked = bench.requests[before..].first().expect("a registration");
                assert_eq!((asked.1, asked.2), (0, Some(true)));
                let took = asked.0 - back;
                assert!(took <= ms(200 + round_trip + 1), "{took:?} at {round_trip} ms");
                assert_eq!(bench.state(0), PathState::Alive);
                let about = bench.events.iter().filter_map(|(_, event)| match event {
                    HandoverEvent::PathSilent { interface, .. }
                    | HandoverEvent::PathAnswers { interface } => {
                        (*interface == IF_WLAN).then_some(event.name())
                    }
                    _ => None,
                });
                assert_eq!(about.collect::<Vec<_>>(), ["path-silent", "path-answers"]);
                // What follows says that nothing is lost.
                bench.run_for(Duration::from_secs(300));
                let last = bench.requests.last().expect("a renewal");
                assert_eq!(last.2, Some(false));
            }
        }
    }
}

#[test]
fn the_path_that_was_left_is_come_back_to_when_it_has_answered_for_long_enough() {
    let mut bench = Bench::new(3, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(5));
    bench.run_for(Duration::from_secs(5));
    let mut stays = Vec::new();
    for _ in 0..4 {
        bench.paths[0].dead = true;
        bench.run_for(Duration::from_secs(20));
        assert_eq!(bench.active(), Some(1));
        bench.paths[0].dead = false;
        let back = bench.now;
        while bench.active() == Some(1) {
            bench.run_for(ms(100));
            assert!(bench.now < back + Duration::from_secs(90));
        }
        stays.push((bench.now - back).as_secs());
        bench.run_for(Duration::from_secs(10));
    }
    assert!(stays[0] >= 5, "{stays:?}");
    assert!(
        stays.windows(2).all(|pair| pair[1] > pair[0]),
        "who comes and goes is relied on later: {stays:?}"
    );
}

#[test]
fn what_happens_nowhere_costs_little() {
    let mut bench = Bench::new(1, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(10));
    let (before, wakes) = (bench.probe_bytes, bench.wakes);
    bench.run_for(Duration::from_secs(3600));
    for path in [0, 1] {
        let rate = (bench.probe_bytes[path] - before[path]) as f64 / 3600.0;
        assert!((7.0..8.0).contains(&rate), "{rate} B/s");
        assert_eq!(bench.state(path), PathState::Alive);
    }
    let a_minute = (bench.wakes - wakes) as f64 / 60.0;
    assert!(a_minute <= 12.0, "{a_minute} wakes a minute");
}

#[test]
fn a_home_agent_that_knows_no_probes_is_left_alone() {
    let mut bench = Bench::new(1, node(preferred()), [Path::new(40), Path::new(60)]);
    // As one that silently discards them.
    let blind = |bench: &mut Bench| {
        bench.queue.retain(|_, what| match what {
            What::Up(Load::Signal(transmit)) => transmit.payload.bytes().first() != Some(&255),
            _ => true,
        });
    };
    for _ in 0..20_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    bench.start(Traffic::OneWay(20));
    for _ in 0..20_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    assert_eq!((bench.count("path-silent"), bench.count("initiated")), (0, 1));
    let before = bench.probe_bytes;
    for _ in 0..120_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    assert!(bench.probe_bytes[0] - before[0] <= 300, "it is asked again rarely");
}

#[test]
fn an_idle_node_finds_a_dead_path_by_its_probes_and_by_registrations() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(60));
    bench.paths[0].dead = true;
    bench.run_for(Duration::from_secs(32));
    assert_eq!(bench.active(), Some(1));
}

#[test]
fn loss_and_rate_are_told_by_the_counters_of_both_ends() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.paths[0].loss = 0.05;
    bench.start(Traffic::OneWay(10));
    // The home agent's owner counts.
    for _ in 0..12_000 {
        bench.run_for(ms(5));
        let counts = careof_wire::mip4::PathCounts {
            packets_received: bench.arrived[1] as u32,
            bytes_received: bench.arrived[1] * PACKET,
            ..Default::default()
        };
        bench.home.note_traffic(HOME, WLAN, counts);
    }
    let quality = bench.mobile.path_quality(IF_WLAN);
    let loss = quality.uplink.loss_permille.unwrap();
    assert!((20..90).contains(&loss), "{loss}");
    let rate = quality.uplink.delivered.unwrap().bits_per_second();
    assert!((680_000..800_000).contains(&rate), "{rate}");
    assert_eq!(quality.downlink.delivered, None);
    let round_trip = quality.round_trip.unwrap();
    assert!((ms(39)..ms(41)).contains(&round_trip), "{round_trip:?}");
}

#[test]
fn a_stranger_s_probe_is_not_answered_and_a_stranger_s_answer_says_nothing() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    let probe = |kind, sequence, nonce| {
        Message::PathProbe(careof_wire::mip4::PathProbe {
            kind,
            home_address: HOME,
            sequence,
            nonce,
            counts: None,
            extensions: Vec::new(),
        })
        .emit()
    };
    let udp = |bytes, source, destination| Transmit {
        interface: None,
        source,
        destination,
        ttl: 64,
        payload: TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes },
    };
    let sent = bench.home.counters().sent;
    let stranger = Ipv4Addr::new(203, 0, 113, 9);
    let forged = udp(probe(PathProbeKind::Probe, 1, 1), stranger, HA);
    bench.home.handle_input(bench.now, input(&forged, InterfaceId(0)));
    assert_eq!(bench.home.counters().sent, sent);
    assert_eq!(bench.home.counters().dropped(DropReason::MissingAuthenticator), 1);
    // The path is dead, and somebody who has seen no probe says that it is not.
    bench.paths[0].dead = true;
    bench.start(Traffic::Bulk(5));
    for sequence in 0..200 {
        bench.run_for(ms(10));
        let forged = udp(probe(PathProbeKind::Answer, sequence, u64::from(sequence)), HA, WLAN);
        bench.mobile.handle_input(bench.now, input(&forged, IF_WLAN));
        bench.drain();
    }
    assert_eq!(bench.active(), Some(1));
    assert!(bench.mobile.counters().dropped(DropReason::UnexpectedReply) >= 190);
    // Who repeats what a node has sent gets no more answers than that node could use.
    let mut recorded = None;
    while recorded.is_none() {
        bench.run_for(ms(1));
        recorded = bench.queue.values().find_map(|what| match what {
            What::Up(Load::Signal(transmit)) if transmit.payload.bytes().first() == Some(&255) => {
                Some(transmit.clone())
            }
            _ => None,
        });
    }
    let recorded = recorded.expect("a probe");
    let sent = bench.home.counters().sent;
    for _ in 0..1000 {
        bench.home.handle_input(bench.now, input(&recorded, InterfaceId(0)));
    }
    assert!(bench.home.counters().sent - sent <= 64);
    assert!(bench.home.bindings_of(HOME).iter().all(|binding| binding.care_of == GSM));
    assert_eq!(bench.state(usize::from(IF_GSM.0)), PathState::Alive);
}

#[test]
fn without_the_key_nothing_is_probed() {
    let config = MobileNodeConfig { path_monitor: false, ..node(preferred()) };
    let mut bench = Bench::new(5, config, [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(5));
    bench.run_for(Duration::from_secs(100));
    assert_eq!((bench.probe_bytes, bench.state(0)), ([0, 0], PathState::Unknown));
}
