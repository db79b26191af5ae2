//! Real packets on media that links share. What is said of times holds however late the emulator's thread gets to run.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::{LEFT, PATIENCE, RIGHT, SILENCE, Udp, next, realm_or_skip, socket};
use careof_base::{DataRate, Duration, Instant, RandomStream};
use careof_lab::{
    Change, Clock, Direction, Emulator, Error, Host, InterfaceConfig, LinkId, LinkReport, LinkSpec, MediumId,
    MediumSpec, Netlink, Options, Passage, Realm, Route, SharedLinkSpec, Shortcut, Sightings, TapConfig, Tun,
    set_sysctl,
};
use careof_link::{DropCause, EthernetConfig, Fate, Medium, MediumConfig, MediumOutput, StationId};

const BOTH: [StationId; 2] = [StationId(0), StationId(1)];

/// 1 Mbit/s, and a delay with which stations that begin at once collide.
fn slow() -> EthernetConfig {
    EthernetConfig {
        rate: DataRate::from_megabits_per_second(1),
        delay: Duration::from_micros(1),
        ..EthernetConfig::default()
    }
}

fn medium(emulator: &Emulator, config: impl Into<MediumConfig>, stations: &[&str]) -> MediumId {
    let stations = stations.iter().map(|name| (*name).to_owned()).collect();
    emulator.add_medium(MediumSpec { name: "cable".to_owned(), config: config.into(), stations }).unwrap()
}

fn link_on(medium: MediumId, stations: [StationId; 2], [a, b]: [Tun; 2]) -> SharedLinkSpec {
    SharedLinkSpec { name: "test".to_owned(), medium, stations, a, b, is_read: true }
}

/// Two hosts, `LEFT` and `RIGHT`, on one cable.
struct Cable {
    emulator: Emulator,
    link: LinkId,
    left: Udp,
    right: Udp,
    _hosts: [Host; 2],
}

impl Cable {
    fn new(realm: Realm, config: impl Into<MediumConfig>) -> Self {
        let hosts = ["left", "right"].map(|name| realm.host(name).unwrap());
        let device = |host: &Host, address: Ipv4Addr| {
            host.attach(&InterfaceConfig::new("link0", address.into(), 24)).unwrap()
        };
        let devices = [device(&hosts[0], LEFT), device(&hosts[1], RIGHT)];
        let emulator = Emulator::start(Clock::start(), Options::default()).unwrap();
        let medium = medium(&emulator, config, &["left", "right"]);
        let link = emulator.add_shared_link(link_on(medium, BOTH, devices)).unwrap();
        let (left, right) = (socket(&hosts[0], LEFT, RIGHT), socket(&hosts[1], RIGHT, LEFT));
        Self { emulator, link, left, right, _hosts: hosts }
    }

    fn report(&self) -> LinkReport {
        self.emulator.report().unwrap().swap_remove(0)
    }

    /// The report as soon as it fulfils `condition`, or the last one before patience ended.
    fn report_when(&self, condition: impl Fn(&LinkReport) -> bool) -> LinkReport {
        let clock = self.emulator.clock();
        let end = clock.now() + PATIENCE;
        loop {
            let report = self.report();
            if condition(&report) || clock.now() > end {
                return report;
            }
            std::thread::yield_now();
        }
    }

    fn down(&self, direction: Direction, queued: Fate) -> Change {
        Change::SetDown { link: self.link, direction, queued, in_flight: Fate::Drop }
    }

    fn up(&self, direction: Direction) -> Change {
        Change::SetUp { link: self.link, direction }
    }
}

/// Has both stations wait with so many datagrams of 1000 bytes, lets them begin at one instant and returns what arrived: when,
/// and which way. It is held against a medium of its own that was told the same.
fn compete(realm: Realm, left: u64, right: u64) -> Option<Vec<(Instant, Direction)>> {
    let cable = Cable::new(realm, slow());
    let tap = cable.emulator.tap(TapConfig::default()).unwrap();
    let wait = Direction::ALL.map(|direction| cable.down(direction, Fate::Keep));
    cable.emulator.apply(wait.to_vec()).unwrap();
    (0..left).for_each(|_| assert!(cable.left.send(&[1; 972]).is_ok()));
    (0..right).for_each(|_| assert!(cable.right.send(&[2; 972]).is_ok()));
    let waiting = cable.report_when(|r| r.forward.queued == left && r.backward.queued == right);
    assert_eq!((waiting.forward.queued, waiting.backward.queued), (left, right));
    let begin = cable.emulator.apply(Direction::ALL.map(|d| cable.up(d)).to_vec()).unwrap();
    let done = cable.report_when(|report| report.forward.written == left && report.backward.written == right);
    assert_eq!((done.forward.written, done.backward.written), (left, right));
    assert!(done.forward.is_conserved() && done.backward.is_conserved());

    let mut taken = Sightings::default();
    tap.take(&mut taken);
    let arrived: Vec<_> = taken
        .iter()
        .filter(|seen| seen.passage == Passage::Left)
        .map(|seen| (seen.at, seen.direction))
        .collect();
    let stream = |user: &str| RandomStream::new(1, 0, &format!("medium.cable.{user}"));
    let queues = [stream("left.queue"), stream("right.queue")];
    let mut model = Medium::new(slow(), stream("backoff"), stream("loss"), queues);
    for (station, count) in BOTH.into_iter().zip([left, right]) {
        model.set_down(begin, station, Fate::Keep, Fate::Drop);
        for number in 0..count {
            model.enqueue(begin, station, StationId(1 - station.0), number, 1000).unwrap();
        }
    }
    for station in BOTH {
        model.set_up(begin, station);
    }
    let mut expected = Vec::new();
    while let Some(at) = model.next_timeout() {
        while let Some(MediumOutput::Delivered { from, at, .. }) = model.poll(at) {
            let direction = if from == BOTH[0] { Direction::Forward } else { Direction::Backward };
            expected.push((at, direction));
        }
    }
    let directions = |list: &[(Instant, Direction)]| list.iter().map(|one| one.1).collect::<Vec<_>>();
    assert_eq!(directions(&arrived), directions(&expected), "the order");
    let worst = done.forward.lateness.worst.max(done.backward.lateness.worst);
    for ((seen, _), (at, _)) in arrived.iter().zip(&expected) {
        assert!(*seen >= *at && *seen - *at <= worst, "{seen} for {at}");
    }
    Some(expected)
}

/// A frame of 1000 bytes of IP, and the gap behind it, at 1 Mbit/s.
const FRAME: Duration = Duration::from_micros((1000 + 18) * 8 + 64 + 96);

#[test]
fn one_who_sends_alone_fills_the_cable() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(arrived) = compete(realm, 60, 0) else { return };
    let all = arrived[59].0 - arrived[0].0;
    assert_eq!(all, FRAME * 59, "to the nanosecond, whenever this machine looked");
}

#[test]
fn two_who_send_share_the_cable_and_pay_for_collisions() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(arrived) = compete(realm, 30, 30) else { return };
    let between: Vec<Duration> = arrived.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(between.iter().all(|between| *between >= FRAME), "one at a time: {between:?}");
    assert!(between.iter().any(|between| *between > FRAME), "none of them collided");
}

#[test]
fn a_station_that_has_left_sends_and_receives_nothing_and_all_is_counted() {
    let Some(realm) = realm_or_skip() else { return };
    let fast = EthernetConfig { rate: DataRate::from_megabits_per_second(100), ..slow() };
    let cable = Cable::new(realm, EthernetConfig { delay: Duration::ZERO, ..fast });
    cable.left.send(b"before").unwrap();
    assert_eq!(next(&cable.right).as_deref(), Some(&b"before"[..]));
    cable.emulator.apply(vec![cable.down(Direction::Backward, Fate::Drop)]).unwrap();
    cable.left.send(b"to nobody").unwrap();
    cable.right.send(b"from nobody").unwrap();
    let lost = cable.report_when(|report| {
        let dropped = |direction| report.direction(direction).link.dropped_by(DropCause::LinkDown);
        Direction::ALL.into_iter().all(|direction| dropped(direction) == 1)
    });
    assert!((lost.forward.is_up, lost.backward.is_up) == (true, false), "{lost:?}");
    assert!(lost.forward.is_conserved() && lost.backward.is_conserved());
    cable.right.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(next(&cable.right), None);
    cable.right.set_read_timeout(Some(PATIENCE)).unwrap();
    cable.emulator.apply(vec![cable.up(Direction::Backward)]).unwrap();
    cable.left.send(b"after").unwrap();
    assert_eq!(next(&cable.right).as_deref(), Some(&b"after"[..]));
}

#[test]
fn what_waits_at_a_station_can_be_dropped() {
    let Some(realm) = realm_or_skip() else { return };
    let cable = Cable::new(realm, slow());
    cable.emulator.apply(vec![cable.down(Direction::Forward, Fate::Keep)]).unwrap();
    (0..5).for_each(|_| assert!(cable.left.send(&[0; 100]).is_ok()));
    assert_eq!(cable.report_when(|report| report.forward.queued == 5).forward.queued, 5);
    let drop = Change::DropQueue { link: cable.link, direction: Direction::Forward };
    cable.emulator.apply(vec![drop]).unwrap();
    let forward = cable.report().forward;
    assert_eq!((forward.queued, forward.dropped_from_queue, forward.link.drained), (0, 5, 5));
    assert!(forward.is_conserved());
}

/// The near end's address of the second link, and the far end's.
const MIDDLE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

#[test]
fn a_shortcut_passes_by_the_router_that_the_routes_lead_to() {
    let Some(realm) = realm_or_skip() else { return };
    let [near, router, far] = ["near", "router", "far"].map(|name| realm.host(name).unwrap());
    let attach = |host: &Host, name: &str, address: Ipv4Addr| {
        let tun = host.attach(&InterfaceConfig::new(name, address.into(), 24)).unwrap();
        let all = host.run(|| set_sysctl("net.ipv4.conf.all.rp_filter", "0"));
        let filter = format!("net.ipv4.conf.{name}.rp_filter");
        let own = host.run(move || set_sysctl(&filter, "0"));
        all.unwrap().and(own.unwrap()).unwrap();
        tun
    };
    let first = [attach(&near, "one", LEFT), attach(&router, "one", RIGHT)];
    let second = [attach(&router, "two", MIDDLE), attach(&far, "two", FAR)];
    let clones = [first[0].try_clone().unwrap(), second[1].try_clone().unwrap()];
    for (host, to, via) in [(&near, FAR, RIGHT), (&far, LEFT, MIDDLE)] {
        let added = host.run(move || {
            let route = Route::to(IpAddr::V4(to), 32, 0);
            Netlink::open()?.set_route(&Route { via: Some(via.into()), ..route })
        });
        added.unwrap().unwrap();
    }
    let emulator = Emulator::start(Clock::start(), Options::default()).unwrap();
    let medium = medium(&emulator, EthernetConfig::default(), &["near", "router", "far"]);
    let add = |stations: [u16; 2], is_read, devices| {
        let spec = SharedLinkSpec { is_read, ..link_on(medium, stations.map(StationId), devices) };
        emulator.add_shared_link(spec).unwrap()
    };
    let (first, second) = (add([0, 1], true, first), add([1, 2], true, second));
    let straight = add([0, 2], false, clones);
    let shortcut = |network: Ipv4Addr, direction| Shortcut {
        network: network.into(),
        prefix_length: 24,
        by: (straight, direction),
    };
    let set = |link, direction, shortcuts| Change::SetShortcuts { link, direction, shortcuts };
    let there = set(first, Direction::Forward, vec![shortcut(FAR, Direction::Forward)]);
    let back = set(second, Direction::Backward, vec![shortcut(LEFT, Direction::Backward)]);
    emulator.apply(vec![there, back]).unwrap();

    let (here, there) = (socket(&near, LEFT, FAR), socket(&far, FAR, LEFT));
    here.send(b"straight").unwrap();
    assert_eq!(next(&there).as_deref(), Some(&b"straight"[..]), "the router forwards nothing");
    there.send(b"and back").unwrap();
    assert_eq!(next(&here).as_deref(), Some(&b"and back"[..]));
    let reports = emulator.report().unwrap();
    let written = |n: usize| [reports[n].forward.written, reports[n].backward.written];
    assert_eq!([written(0), written(1), written(2)], [[0, 0], [0, 0], [1, 1]]);
    for report in &reports {
        assert!(report.forward.is_conserved() && report.backward.is_conserved(), "{report:?}");
    }

    // Only from the same station, and only on the medium.
    let elsewhere = set(first, Direction::Forward, vec![shortcut(FAR, Direction::Backward)]);
    assert_eq!(emulator.apply(vec![elsewhere]), Err(Error::NoShortcut));
    // Without one the router gets it, which drops it.
    emulator.apply(vec![set(first, Direction::Forward, Vec::new())]).unwrap();
    here.send(b"not forwarded").unwrap();
    there.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(next(&there), None);
    assert_eq!(emulator.report().unwrap()[0].forward.written, 1);
}

#[test]
fn what_a_medium_cannot_be_or_do_is_refused() {
    let Some(realm) = realm_or_skip() else { return };
    let cable = Cable::new(realm, slow());
    let (link, direction) = (cable.link, Direction::Forward);
    let laws = Change::Reconfigure { link, direction, config: careof_link::Config::default() };
    assert_eq!(cable.emulator.apply(vec![laws]), Err(Error::LawsOfMedium));
    let wide = EthernetConfig { delay: Duration::from_secs(1), ..slow() };
    let spec = MediumSpec { name: "wide".to_owned(), config: wide.into(), stations: Vec::new() };
    assert!(matches!(cable.emulator.add_medium(spec), Err(Error::MediumConfig { .. })));

    let host = realm.host("third").unwrap();
    let devices = |number: u8| {
        ["a", "b"].map(|end| {
            let name = format!("{end}{number}");
            host.attach(&InterfaceConfig::new(&name, Ipv4Addr::new(10, 9, number, 1).into(), 32)).unwrap()
        })
    };
    let medium = medium(&cable.emulator, slow(), &["one", "two"]);
    for (number, stations) in (0..).zip([[0, 2], [1, 1]]) {
        let spec = link_on(medium, stations.map(StationId), devices(number));
        let refused = cable.emulator.add_shared_link(spec);
        assert_eq!(refused, Err(Error::NoSuchStation { link: "test".to_owned() }), "{stations:?}");
    }
    let [a, b] = devices(7);
    let config = careof_link::Config::default;
    let spec = LinkSpec { name: "own".to_owned(), a, b, forward: config(), backward: config() };
    let own = cable.emulator.add_link(spec).unwrap();
    let shortcut = Shortcut { network: LEFT.into(), prefix_length: 8, by: (own, direction) };
    let onto = Change::SetShortcuts { link, direction, shortcuts: vec![shortcut] };
    assert_eq!(cable.emulator.apply(vec![onto]), Err(Error::NoShortcut));
}
