//! A mobile node with two paths, its home agent, and traffic between both.

use std::collections::BTreeMap;
use std::time::Duration;

use careof_base::{Instant, Probability, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{Message, PathCounts, PathProbeKind};

use super::world::{GSM, HOME, WLAN, home_config, mobile_config};

/// Bytes of a packet of traffic.
pub(super) const PACKET: u64 = 1000;
/// Headers of IP and UDP.
pub(super) const HEADERS: u64 = 28;

/// A path, the same both ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// One way.
    pub(super) delay: Duration,
    /// Up to this much more, one way.
    pub(super) jitter: Duration,
    pub(super) loss: f64,
    /// Bit/s; packets that find more than `queue` of time before them are dropped.
    pub(super) rate: Option<u64>,
    pub(super) queue: Duration,
    pub(super) dead: bool,
    /// When the serialisers are free: up, down.
    pub(super) free: [Instant; 2],
}

impl Path {
    pub(super) fn new(round_trip_ms: u64) -> Self {
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
    pub(super) fn rough(round_trip_ms: u64) -> Self {
        Self { jitter: Duration::from_micros(round_trip_ms * 250), loss: 0.05, ..Self::new(round_trip_ms) }
    }
}

/// What travels.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Signal(Box<Transmit>),
    /// A packet of traffic.
    Packet(u64),
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// At the mobile node, through this path.
    Down(usize, Load),
    /// At the home agent, through this path.
    Up(usize, Load),
}

/// Traffic of the mobile node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Traffic {
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

pub(super) struct Bench {
    pub(super) now: Instant,
    pub(super) mobile: MobileNode,
    pub(super) home: HomeAgent,
    pub(super) paths: [Path; 2],
    pub(super) traffic: Traffic,
    pub(super) queue: BTreeMap<(Instant, u64), What>,
    pub(super) sequence: u64,
    pub(super) random: RandomStream,
    /// When packets that are not answered yet were sent last.
    pub(super) waiting: BTreeMap<u64, (Instant, u32)>,
    pub(super) next_packet: u64,
    /// The longest of the latest round trips of packets.
    pub(super) longest: Duration,
    pub(super) tick: Option<Instant>,
    /// Packets of traffic that have arrived: here, there.
    pub(super) arrived: [u64; 2],
    /// What probes and their answers took on each path, headers included.
    pub(super) probe_bytes: [u64; 2],
    /// What traffic took.
    pub(super) traffic_bytes: u64,
    pub(super) requests: Vec<(Instant, usize, Option<bool>)>,
    pub(super) events: Vec<(Instant, HandoverEvent)>,
    pub(super) wakes: u64,
    /// What the home agent's owner has counted on each path.
    pub(super) home_counts: [PathCounts; 2],
    pub(super) received: Vec<Instant>,
}

pub(super) fn node(selection: Selection) -> MobileNodeConfig {
    let mut config = mobile_config();
    config.interfaces.truncate(2);
    MobileNodeConfig { selection, reverse_tunnel: true, report_paths: true, path_monitor: true, ..config }
}

pub(super) fn preferred() -> Selection {
    Selection::Preferred { hold: Duration::from_secs(5) }
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Bench {
    pub(super) fn new(seed: u64, config: MobileNodeConfig, paths: [Path; 2]) -> Self {
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
            home_counts: Default::default(),
            received: Vec::new(),
        };
        bench.drain();
        bench
    }

    pub(super) fn start(&mut self, traffic: Traffic) {
        self.traffic = traffic;
        self.tick = Some(self.now);
    }

    pub(super) fn active(&self) -> Option<usize> {
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

    pub(super) fn drain(&mut self) {
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
            self.push(at, What::Up(path, Load::Signal(Box::new(transmit))));
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

    pub(super) fn send_up(&mut self, packet: u64, bytes: u64) {
        let Some(path) = self.active() else { return };
        self.traffic_bytes += bytes;
        self.mobile.note_sent(self.now, InterfaceId(path as u16), 1, bytes);
        let at = self.through(path, 0, bytes + 20);
        self.push(at, What::Up(path, Load::Packet(packet)));
    }

    fn send_down(&mut self, packet: u64, after: Duration) {
        let Some(tunnel) = self.home.tunnels(HOME).first().copied() else { return };
        let path = usize::from(tunnel.exit == GSM);
        self.traffic_bytes += PACKET;
        self.home_counts[path].packets_sent += 1;
        self.home_counts[path].bytes_sent += PACKET;
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
            What::Up(path, Load::Signal(transmit)) => {
                // Its owner counts.
                let care_of = if path == 1 { GSM } else { WLAN };
                self.home.note_traffic(HOME, care_of, self.home_counts[path]);
                self.home.handle_input(now, input(&transmit, InterfaceId(0)));
            }
            What::Down(path, Load::Signal(transmit)) => {
                self.mobile.handle_input(now, input(&transmit, InterfaceId(path as u16)));
            }
            What::Up(path, Load::Packet(packet)) => {
                self.arrived[1] += 1;
                self.home_counts[path].packets_received += 1;
                let is_acknowledgement = matches!(self.traffic, Traffic::Download(_));
                self.home_counts[path].bytes_received += if is_acknowledgement { 52 } else { PACKET };
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

    pub(super) fn run_for(&mut self, span: Duration) {
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

    pub(super) fn count(&self, name: &str) -> usize {
        self.events.iter().filter(|(_, event)| event.name() == name).count()
    }

    pub(super) fn state(&self, path: usize) -> PathState {
        self.mobile.path_quality(InterfaceId(path as u16)).state
    }
}

pub(super) fn input(transmit: &Transmit, interface: InterfaceId) -> Input<'_> {
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
