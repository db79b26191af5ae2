//! Two ends and a path between them: what a flow over QUIC does, seen from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use careof_base::{Duration, Instant, RandomStream};
use careof_quic::{Config, Congestion, Connection, Event, Role};

/// A path of 10 ms each way that loses every `loses`-th datagram, and the ends at it.
struct Path {
    now: Instant,
    ends: [Connection; 2],
    addresses: [SocketAddr; 2],
    /// Where nothing arrives any more.
    gone: Vec<SocketAddr>,
    loses: Option<u64>,
    carried: u64,
    flying: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    /// Everything that was sent, in order.
    log: Vec<(Instant, Vec<u8>)>,
    events: [Vec<Event>; 2],
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

fn at(address: [u8; 4], port: u16) -> SocketAddr {
    (address, port).into()
}

impl Path {
    fn new(config: &Config, seed: u64, loses: Option<u64>) -> Self {
        let addresses = [at([10, 0, 0, 1], 49_152), at([10, 0, 1, 1], 5001)];
        let end =
            |role: Role, peer| Connection::new(config, role, peer, RandomStream::new(seed, 0, role.name()));
        Self {
            now: Instant::ZERO,
            ends: [end(Role::Client, addresses[SERVER]), end(Role::Server, addresses[CLIENT])],
            addresses,
            gone: Vec::new(),
            loses,
            carried: 0,
            flying: BTreeMap::new(),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
        }
    }

    fn run(&mut self, until: Instant) {
        loop {
            for index in [CLIENT, SERVER] {
                while let Some(datagram) = self.ends[index].poll_transmit(self.now) {
                    self.carried += 1;
                    self.log.push((self.now, datagram.bytes.clone()));
                    let due = (self.now + Duration::from_millis(10), self.carried);
                    let source = self.addresses[index];
                    if !self.loses.is_some_and(|every| self.carried.is_multiple_of(every)) {
                        self.flying.insert(due, (source, datagram.destination, datagram.bytes));
                    }
                }
                while let Some(event) = self.ends[index].poll_event() {
                    self.events[index].push(event);
                }
            }
            let timers = self.ends.iter_mut().filter_map(Connection::next_timeout);
            let next = timers.chain(self.flying.keys().next().map(|(due, _)| *due)).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (source, destination, bytes) = entry.remove();
                if self.gone.contains(&destination) {
                    continue;
                }
                if let Some(to) = self.addresses.iter().position(|address| *address == destination) {
                    self.ends[to].handle_datagram(self.now, source, 0, &bytes);
                }
            }
            for end in &mut self.ends {
                end.handle_timeout(self.now);
            }
        }
        self.now = until;
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

#[test]
fn all_that_is_written_arrives_once_and_both_ends_know_that_it_is_over() {
    for (congestion, loses) in
        [(Congestion::Cubic, None), (Congestion::NewReno, Some(50)), (Congestion::Cubic, Some(9))]
    {
        let config = Config { congestion, ..Config::default() };
        let mut path = Path::new(&config, 1, loses);
        path.ends[CLIENT].open(Instant::ZERO).unwrap();
        path.ends[CLIENT].write(3_000_000);
        path.ends[CLIENT].close();
        path.ends[SERVER].close();
        path.run(seconds(60));
        assert_eq!(path.ends[SERVER].received(), 3_000_000);
        for (index, name) in [(CLIENT, "client"), (SERVER, "server")] {
            assert_eq!(path.events[index].first(), Some(&Event::Connected), "{name}");
            assert!(path.events[index].contains(&Event::PeerFinished), "{name}");
            assert!(
                matches!(path.events[index].last(), Some(Event::Closed(_))),
                "{name}: {:?}",
                path.events[index]
            );
        }
        let lost = path.ends[CLIENT].counters().lost;
        assert_eq!(lost > 0, loses.is_some(), "{lost} lost");
    }
}

#[test]
fn the_end_that_accepted_the_connection_can_be_the_one_that_sends() {
    let mut path = Path::new(&Config::default(), 1, Some(100));
    path.ends[CLIENT].open(Instant::ZERO).unwrap();
    path.ends[SERVER].write(500_000);
    path.ends[SERVER].close();
    path.run(seconds(20));
    assert_eq!(path.ends[CLIENT].received(), 500_000);
    assert!(path.ends[SERVER].rtt().0 > 0);
    assert!(path.ends[SERVER].rtt().1.unwrap() >= Duration::from_millis(20));
}

#[test]
fn the_same_seed_makes_the_same_datagrams_and_another_one_others() {
    let log = |seed| {
        let mut path = Path::new(&Config::default(), seed, Some(37));
        path.ends[CLIENT].open(Instant::ZERO).unwrap();
        path.ends[CLIENT].write(1_000_000);
        path.run(seconds(5));
        path.log
    };
    let first = log(7);
    assert!(first.len() > 500);
    assert_eq!(first, log(7));
    assert_ne!(first, log(8));
}

fn moves(config: &Config, sender: usize) -> (Path, u64) {
    let mut path = Path::new(config, 3, None);
    path.ends[CLIENT].open(Instant::ZERO).unwrap();
    path.run(seconds(1));
    path.ends[sender].write(u64::MAX);
    path.run(seconds(2));
    let before = path.ends[1 - sender].received();
    assert!(before > 0);
    path.gone.push(path.addresses[CLIENT]);
    path.addresses[CLIENT] = at([10, 9, 9, 9], 49_152);
    let now = path.now;
    path.ends[CLIENT].address_changed(now);
    path.run(seconds(4));
    (path, before)
}

#[test]
fn a_client_that_moves_goes_on_from_its_new_address_whichever_end_sends() {
    for sender in [CLIENT, SERVER] {
        let (path, before) = moves(&Config::default(), sender);
        let after = path.ends[1 - sender].received();
        assert!(after > before + 100_000, "{before} before and {after} after");
        assert!(path.events[SERVER].contains(&Event::PeerMoved(path.addresses[CLIENT])));
        let server = path.ends[SERVER].counters();
        assert!(server.path_challenges >= 1 && server.path_responses >= 1, "{server:?}");
        assert_eq!((server.moves, path.ends[CLIENT].counters().moves), (1, 1));
    }
}

#[test]
fn a_server_that_allows_no_migration_hears_nothing_from_a_new_address() {
    let (path, before) = moves(&Config { migration: false, ..Config::default() }, SERVER);
    assert_eq!(path.ends[SERVER].counters().moves, 0);
    let window = Config::default().window;
    assert!(path.ends[CLIENT].received() <= before + window, "no more than was on its way");
}

#[test]
fn a_server_sends_no_more_than_three_times_what_it_has_got_before_the_client_answers() {
    // RFC 9000 section 8.1; the certificates of the handshake do not fit into one datagram.
    let mut path = Path::new(&Config::default(), 5, None);
    path.ends[CLIENT].open(Instant::ZERO).unwrap();
    path.run(Instant::from_millis(15));
    let sent = |path: &Path| -> Vec<usize> { path.log.iter().map(|(_, bytes)| bytes.len()).collect() };
    let sizes = sent(&path);
    assert!(sizes[0] >= 1200, "the client's first datagram is full: {sizes:?}");
    let answer: usize = sizes[1..].iter().sum();
    assert!(answer > careof_quic::handshake::CERTIFICATE && answer <= 3 * sizes[0], "{sizes:?}");
}

#[test]
fn what_is_no_datagram_of_the_connection_is_counted_and_changes_nothing() {
    let mut random = RandomStream::new(11, 0, "noise");
    let mut path = Path::new(&Config::default(), 1, None);
    path.ends[CLIENT].open(Instant::ZERO).unwrap();
    path.ends[CLIENT].write(200_000);
    path.run(Instant::from_millis(200));
    let strange = at([10, 66, 0, 1], 9);
    for number in 0..20_000_u64 {
        let mut bytes = match path.log.get(random.below(2 * path.log.len() as u64) as usize) {
            Some((_, bytes)) => bytes.clone(),
            None => (0..random.below(1500)).map(|_| random.next_u64() as u8).collect(),
        };
        if !bytes.is_empty() {
            for _ in 0..=random.below(4) {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] ^= 1 << random.below(8);
            }
            bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
        }
        let now = path.now;
        let source = if number % 2 == 0 { strange } else { path.addresses[CLIENT] };
        path.ends[SERVER].handle_datagram(now, source, (number % 4) as u8, &bytes);
    }
    assert!(path.ends[SERVER].counters().received >= 20_000);
    path.ends[CLIENT].write(100_000);
    path.run(seconds(10));
    assert_eq!(path.ends[SERVER].received(), 300_000);
}
