//! Two ends of a tunnel and the paths between them.

use alloc::collections::BTreeMap;
use core::time::Duration;

use careof_base::RandomStream;
use careof_wire::mip4::Spi;

use super::*;
use crate::multipath::{PathSet, Rule, Scheduler, Treatment};

/// Between the clocks of the ends.
const APART: Duration = Duration::from_secs(3600);
const LEN: u32 = 1000;

fn id(number: u8) -> PathId {
    PathId::new(number).unwrap()
}

fn config(scheduler: Scheduler) -> BondConfig {
    let key = ClusterKey { spi: Spi(256), key: b"sixteen bytes ok".to_vec() };
    let dispersion = DispersionConfig { scheduler, flows: 64 };
    BondConfig { dispersion, ..BondConfig::new(key) }
}

fn fields(port: u16) -> FlowFields {
    FlowFields {
        remote: [198, 51, 100, 9].into(),
        remote_port: Some(port),
        local: [10, 0, 0, 7].into(),
        local_port: Some(50_000),
        protocol: 6,
        dscp: 0,
    }
}

enum Event {
    Packet(MultipathHeader, u32),
    Message { towards_home: bool, path: PathId, bytes: Vec<u8> },
}

/// Home agent and mobile node, and two paths without limit that delay and may be dead.
struct Pair {
    home: Bond<u32>,
    mobile: Bond<u32>,
    now: Instant,
    /// When the clock of the home agent began.
    home_since: Instant,
    delays: Vec<u64>,
    dead: Vec<bool>,
    on_the_way: BTreeMap<(Instant, u64), Event>,
    count: u64,
    delivered: Vec<u32>,
    messages: Vec<Vec<u8>>,
}

fn end(scheduler: Scheduler, name: &'static str, run: u64, now: Instant, paths: usize) -> Bond<u32> {
    let mut bond = Bond::new(config(scheduler), RandomStream::new(7, run, name));
    (0..paths).for_each(|number| bond.set_path(now, id(number as u8), PathConfig::default()));
    bond
}

impl Pair {
    fn new(scheduler: Scheduler, delays: &[u64]) -> Self {
        let paths = delays.len();
        Self {
            home: end(scheduler, "home", 0, Instant::ZERO, paths),
            mobile: end(scheduler, "mobile", 0, Instant::ZERO + APART, paths),
            now: Instant::ZERO,
            home_since: Instant::ZERO,
            delays: delays.to_vec(),
            dead: alloc::vec![false; paths],
            on_the_way: BTreeMap::new(),
            count: 0,
            delivered: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn put(&mut self, path: PathId, event: Event) {
        let index = usize::from(path.number());
        if self.dead[index] {
            return;
        }
        self.count += 1;
        self.on_the_way.insert((self.now + Duration::from_millis(self.delays[index]), self.count), event);
    }

    fn home_now(&self) -> Instant {
        Instant::ZERO + (self.now - self.home_since)
    }

    fn settle(&mut self) {
        let far = self.now + APART;
        let home_now = self.home_now();
        self.home.handle_timeout(home_now);
        self.mobile.handle_timeout(far);
        while let Some(sent) = self.home.poll_transmit() {
            self.put(sent.path, Event::Packet(sent.header, sent.packet));
        }
        while let Some((path, bytes)) = self.home.poll_message(home_now) {
            self.messages.push(bytes.clone());
            self.put(path, Event::Message { towards_home: false, path, bytes });
        }
        while let Some((path, bytes)) = self.mobile.poll_message(far) {
            self.messages.push(bytes.clone());
            self.put(path, Event::Message { towards_home: true, path, bytes });
        }
        self.delivered.extend(core::iter::from_fn(|| self.mobile.poll_delivery()));
    }

    /// Goes on for so many milliseconds; `each` is called in every one, before anything else.
    fn run(&mut self, millis: u64, mut each: impl FnMut(&mut Self, u64)) {
        for step in 0..millis {
            self.now += Duration::from_millis(1);
            let far = self.now + APART;
            each(self, step);
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                match entry.remove() {
                    Event::Packet(header, packet) => {
                        self.mobile.receive(far, &header, LEN, packet);
                    }
                    Event::Message { towards_home: true, path, bytes } => {
                        let _ = self.home.handle_message(self.home_now(), Some(path), &bytes);
                    }
                    Event::Message { towards_home: false, path, bytes } => {
                        let _ = self.mobile.handle_message(far, Some(path), &bytes);
                    }
                }
                self.settle();
            }
            self.settle();
        }
    }

    fn offer(&mut self, packet: u32) {
        self.home.send(self.home_now(), &fields(443), LEN, MultipathPayload::Ipv4, packet).unwrap();
    }

    fn is_measured(&self) -> bool {
        let measured =
            |bond: &Bond<u32>| bond.dispersion().paths().all(|path| path.estimate().round_trip.is_some());
        measured(&self.home) && measured(&self.mobile)
    }
}

#[test]
fn ends_get_acquainted_within_two_round_trips_and_measure_every_path() {
    let mut pair = Pair::new(Scheduler::Auto, &[20, 60]);
    pair.run(2 * 2 * 60 + 200, |_, _| {});
    assert!(pair.is_measured());
    let round_trip = |number| pair.home.dispersion().path(id(number)).unwrap().estimate().round_trip.unwrap();
    assert!((Duration::from_millis(40)..Duration::from_millis(45)).contains(&round_trip(0)));
    assert!((Duration::from_millis(120)..Duration::from_millis(125)).contains(&round_trip(1)));
}

#[test]
fn what_a_dying_path_owed_comes_by_the_others_and_nothing_comes_twice() {
    for scheduler in [Scheduler::EarliestArrival, Scheduler::Weighted, Scheduler::PerFlow, Scheduler::Auto] {
        let mut pair = Pair::new(scheduler, &[20, 30]);
        pair.run(1000, |_, _| {});
        let mut next = 0;
        let mut deaths = 0;
        pair.run(20_000, |pair, step| {
            pair.offer(next);
            next += 1;
            // Each path in turn is dead for two seconds, with both alive for two in between.
            let phase = step / 2000 % 4;
            let dead = [phase == 1, phase == 3];
            deaths += u32::from(dead[0] && !pair.dead[0]) + u32::from(dead[1] && !pair.dead[1]);
            pair.dead = dead.to_vec();
        });
        pair.dead = alloc::vec![false; 2];
        pair.run(3000, |_, _| {});
        let mut sorted = pair.delivered.clone();
        sorted.sort_unstable();
        assert!(deaths > 4 && sorted.iter().copied().eq(0..next), "{scheduler:?}: {}", sorted.len());
        let counters = *pair.home.counters();
        assert_eq!((counters.no_path, counters.stranded, counters.not_kept), (0, 0, 0), "{scheduler:?}");
        assert_eq!(counters.transmitted, counters.offered + counters.copies + counters.replayed);
        assert_eq!(pair.home.owes(), (0, 0), "all is confirmed in the end");
        let arrived = *pair.mobile.resequencer().counters();
        assert_eq!(arrived.arrived, arrived.released + arrived.duplicates, "{scheduler:?}");
    }
}

#[test]
fn one_flow_keeps_its_order_over_paths_that_are_forty_milliseconds_apart() {
    let mut pair = Pair::new(Scheduler::Duplicate, &[20, 60]);
    pair.run(500, |_, _| {});
    let mut next = 0;
    pair.run(2000, |pair, _| {
        pair.offer(next);
        next += 1;
    });
    pair.run(1000, |_, _| {});
    assert!(pair.delivered.iter().copied().eq(0..next));
    let counters = *pair.home.counters();
    // A path that is only tried takes no more than its allowance.
    assert!(counters.copies > u64::from(next) / 2);
    assert_eq!(pair.mobile.resequencer().counters().duplicates, counters.copies);
}

#[test]
fn an_end_that_begins_anew_is_taken_up_at_once() {
    let mut pair = Pair::new(Scheduler::EarliestArrival, &[20, 30]);
    pair.run(5000, |pair, step| pair.offer(step as u32));
    // The home agent is killed; its clock begins with zero again.
    pair.home = end(Scheduler::EarliestArrival, "home", 1, Instant::ZERO, 2);
    pair.on_the_way.clear();
    pair.home_since = pair.now;
    pair.delivered.clear();
    pair.run(1000, |_, _| {});
    assert!(pair.is_measured());
    assert_eq!(pair.mobile.counters().restarts, 1);
    assert_eq!(pair.mobile.poll_event(), Some(BondEvent::PeerRestarted));
    pair.run(3000, |pair, step| pair.offer(step as u32));
    pair.run(1000, |_, _| {});
    let mut sorted = pair.delivered.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..3000), "{}", sorted.len());
}

#[test]
fn messages_that_are_garbage_reflected_or_replayed_change_nothing() {
    let mut pair = Pair::new(Scheduler::Auto, &[20, 30]);
    pair.run(20_000, |pair, step| {
        if step % 3 == 0 {
            pair.offer(step as u32);
        }
    });
    // But for those that may be on their way still.
    let recorded = pair.messages[..pair.messages.len() - 100].to_vec();
    let now = pair.now;
    let before = pair.home.dispersion().path(id(0)).unwrap().estimate();
    let mut drops = BTreeMap::new();
    let mut random = RandomStream::new(3, 0, "intruder");
    for bytes in &recorded {
        let mut take = |bytes: &[u8]| {
            if let Err(reason) = pair.home.handle_message(now, None, bytes) {
                *drops.entry(reason).or_insert(0) += 1;
            }
        };
        let mut broken = bytes.clone();
        let at = random.below(bytes.len() as u64) as usize;
        broken[at] ^= 1 << random.below(8);
        take(&broken);
        take(&bytes[..at]);
        // Those of the last ten seconds are as good as late ones.
        take(bytes);
    }
    let after = pair.home.dispersion().path(id(0)).unwrap().estimate();
    assert_eq!((before.round_trip, before.rate), (after.round_trip, after.rate));
    for reason in [BondDrop::Malformed, BondDrop::NotGenuine, BondDrop::Reflected, BondDrop::Replayed] {
        assert!(drops.contains_key(&reason), "{reason:?} in {drops:?}");
    }
    // Of an incarnation that is over nothing counts, not even once.
    pair.mobile = end(Scheduler::Auto, "mobile", 1, now + APART, 2);
    pair.run(1000, |_, _| {});
    assert_eq!(pair.home.counters().restarts, 1);
    for bytes in &recorded {
        let refused = pair.home.handle_message(pair.now, None, bytes).unwrap_err();
        assert!(matches!(refused, BondDrop::Reflected | BondDrop::Replayed), "{refused:?}");
    }
    assert_eq!(pair.home.counters().restarts, 1);
}

#[test]
fn a_message_that_came_by_another_path_than_it_names_has_no_effect() {
    let mut pair = Pair::new(Scheduler::Auto, &[20, 30]);
    pair.run(1000, |_, _| {});
    let bytes = pair.messages.last().unwrap().clone();
    let read = ShakeMessage::parse(&bytes).unwrap();
    let ShakeMessage::Feedback(feedback) = read.message else { panic!("no feedback") };
    let other = id(1 - feedback.path);
    let refusals = [&mut pair.home, &mut pair.mobile]
        .map(|end| end.handle_message(pair.now + APART, Some(other), &bytes));
    assert!(refusals.contains(&Err(BondDrop::WrongPath)), "{refusals:?}");
}

#[test]
fn what_is_kept_is_bounded_whatever_is_not_confirmed() {
    let mut bond = Bond::new(
        BondConfig { replay: ReplayConfig { packets: 100, bytes: 50_000 }, ..config(Scheduler::Weighted) },
        RandomStream::new(1, 0, "end"),
    );
    bond.set_path(Instant::ZERO, id(0), PathConfig { weight: 1, ..PathConfig::default() });
    bond.set_path(Instant::ZERO, id(1), PathConfig { weight: 3, ..PathConfig::default() });
    for n in 0..1000 {
        bond.send(Instant::from_micros(n), &fields(1), LEN, MultipathPayload::Ipv4, n).unwrap();
        let (packets, bytes) = bond.owes();
        assert!(packets <= 100 && bytes <= 50_000);
    }
    assert_eq!(bond.counters().not_kept, 950);
    bond.remove_path(Instant::from_millis(1), id(1));
    bond.remove_path(Instant::from_millis(1), id(0));
    assert_eq!(bond.owes(), (0, 0));
    let counters = *bond.counters();
    assert_eq!(counters.transmitted, 1000 + counters.replayed);
    assert_eq!(bond.send(Instant::from_millis(2), &fields(1), LEN, MultipathPayload::Ipv4, 7), Err(7));
    assert_eq!(bond.counters().no_path, 1);
}

#[test]
fn rules_say_which_flow_may_take_which_path_and_a_replay_keeps_to_them() {
    let rules = alloc::vec![
        Rule { ports: Some((1, 1)), paths: PathSet::of(id(1)), ..Rule::ANY },
        Rule { ports: Some((2, 2)), treatment: Treatment::Duplicated, ..Rule::ANY },
    ];
    let rules = Rules::new(rules);
    let mut bond =
        Bond::new(BondConfig { rules, ..config(Scheduler::PerFlow) }, RandomStream::new(1, 0, "end"));
    (0..3).for_each(|number| bond.set_path(Instant::ZERO, id(number), PathConfig::default()));
    let send = |bond: &mut Bond<u16>, port| {
        bond.send(Instant::ZERO, &fields(port), LEN, MultipathPayload::Ipv4, port).unwrap();
        core::iter::from_fn(|| bond.poll_transmit().map(|sent| (sent.path.number(), sent.sending)))
            .collect::<Vec<_>>()
    };
    assert_eq!(send(&mut bond, 1), [(1, Sending::First)]);
    assert_eq!(send(&mut bond, 2), [(0, Sending::First), (1, Sending::Copy), (2, Sending::Copy)]);
    bond.path_is_out(Instant::ZERO, id(1));
    assert_eq!(bond.poll_event(), Some(BondEvent::Path { path: id(1), change: PathChange::Out }));
    assert!(bond.poll_transmit().is_none(), "no other path may carry it");
    assert_eq!(bond.counters().stranded, 1);
}

#[test]
fn the_key_changes_while_packets_go_on_and_the_old_one_counts_no_more() {
    let key = |spi: u32| ClusterKey { spi: Spi(spi), key: spi.to_be_bytes().repeat(4) };
    let mut pair = Pair::new(Scheduler::EarliestArrival, &[20, 40]);
    pair.home.set_keys(vec![key(300)]);
    pair.mobile.set_keys(vec![key(300)]);
    pair.run(2_000, |_, _| {});
    // The home agent takes both for a while, the mobile node changes, and then the old one goes.
    pair.home.set_keys(vec![key(300), key(301)]);
    pair.run(2_000, |_, _| {});
    pair.mobile.set_keys(vec![key(301)]);
    pair.run(2_000, |_, _| {});
    let old = pair.messages.clone();
    pair.home.set_keys(vec![key(301)]);
    pair.run(2_000, |_, _| {});
    for end in [&pair.home, &pair.mobile] {
        assert_eq!(end.counters().restarts, 0);
        assert!(PathId::all().take(2).all(|path| end.account(path).outages == 0));
    }
    // A message or two of the old key may have been on the way.
    assert!(pair.mobile.counters().dropped(BondDrop::NotGenuine) <= 8);
    assert_eq!(pair.home.counters().dropped(BondDrop::NotGenuine), 0);
    let heard: Vec<_> =
        old.iter().filter(|bytes| ShakeMessage::parse(bytes).unwrap().spi == Some(Spi(300))).collect();
    assert!(!heard.is_empty());
    let now = pair.home_now();
    for bytes in heard {
        assert_eq!(pair.home.handle_message(now, None, bytes), Err(BondDrop::NotGenuine));
    }
}

#[test]
fn a_message_of_the_old_key_that_another_path_brings_late_does_not_bring_the_old_key_back() {
    let key = |spi: u32| ClusterKey { spi: Spi(spi), key: spi.to_be_bytes().repeat(4) };
    let read = |bytes: &[u8]| {
        let read = ShakeMessage::parse(bytes).unwrap();
        let ShakeMessage::Feedback(feedback) = read.message else { panic!("no feedback") };
        (feedback, read.spi)
    };
    let mut pair = Pair::new(Scheduler::Auto, &[20, 30]);
    pair.home.set_keys(vec![key(300), key(301)]);
    pair.mobile.set_keys(vec![key(300)]);
    pair.run(5_000, |_, _| {});
    let by_the_second = |bytes: &&Vec<u8>| {
        let (feedback, _) = read(bytes);
        feedback.sender == pair.mobile.incarnation && feedback.path == 1
    };
    let late = pair.messages.iter().rfind(by_the_second).unwrap().clone();
    // The mobile node changes its key. Only the first path brings word of it, and then nothing comes any more.
    pair.dead = vec![false, true];
    pair.mobile.set_keys(vec![key(301)]);
    pair.run(2_000, |_, _| {});
    pair.dead = vec![true, true];
    pair.run(100, |_, _| {});
    pair.messages.clear();
    let now = pair.home_now();
    assert_eq!(read(&late).1, Some(Spi(300)));
    assert_eq!(pair.home.handle_message(now, Some(id(1)), &late), Ok(()));
    pair.run(3_000, |_, _| {});
    let of_home = pair.messages.iter().map(|bytes| read(bytes));
    let of_home = of_home.filter(|(feedback, _)| feedback.sender == pair.home.incarnation);
    let keys: Vec<_> = of_home.map(|(_, spi)| spi).collect();
    assert!(!keys.is_empty() && keys.iter().all(|spi| *spi == Some(Spi(301))), "{keys:?}");
}

#[test]
fn a_path_whose_address_is_somebody_elses_word_carries_nothing_before_it_was_answered() {
    for scheduler in [Scheduler::Duplicate, Scheduler::Weighted, Scheduler::EarliestArrival, Scheduler::Auto]
    {
        let mut pair = Pair::new(scheduler, &[20, 30]);
        let taken_up = |pair: &mut Pair| {
            let (home_now, far) = (pair.home_now(), pair.now + APART);
            pair.home.remove_path(home_now, id(1));
            pair.mobile.remove_path(far, id(1));
            pair.home.set_path_to_prove(home_now, id(1), PathConfig::default());
            pair.mobile.set_path_to_prove(far, id(1), PathConfig::default());
        };
        taken_up(&mut pair);
        // The address is one of somebody who does not answer.
        pair.dead[1] = true;
        let mut next = 0;
        let mut offer = |pair: &mut Pair, _: u64| {
            pair.offer(next);
            next += 1;
        };
        pair.run(5_000, &mut offer);
        assert_eq!(pair.home.account(id(1)).packets, 0, "{scheduler:?}");
        assert!(pair.home.dispersion().path(id(1)).unwrap().quality().probes_sent > 5, "it is asked");
        // Nor is it where everything goes when the other path is out.
        pair.dead[0] = true;
        pair.run(5_000, |pair, _| {
            let _ = pair.home.send(pair.home_now(), &fields(443), LEN, MultipathPayload::Ipv4, 0);
        });
        assert_eq!(pair.home.account(id(1)).packets, 0, "{scheduler:?}");
        pair.dead = alloc::vec![false; 2];
        pair.run(15_000, |_, _| {});
        let proven = core::iter::from_fn(|| pair.home.poll_event());
        assert!(proven.filter(|event| *event == BondEvent::Proven { path: id(1) }).count() == 1);
        // From now on it is a path like another one, whatever is told of it.
        let home_now = pair.home_now();
        pair.home.set_path_to_prove(home_now, id(1), PathConfig { weight: 1, ..PathConfig::default() });
        pair.home.path_is_out(home_now, id(0));
        pair.offer(1_000_000);
        assert!(pair.home.account(id(1)).packets > 0, "{scheduler:?}");
    }
}
