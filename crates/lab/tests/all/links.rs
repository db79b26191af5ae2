//! Real packets over emulated links: what arrives, what does not, and that every one is accounted for. How
//! punctual they are is `scenarios/lab/link-accuracy.toml`'s to measure: a busy machine decides that.

use crate::support::{Pair, RIGHT, SILENCE, next, realm_or_skip};
use careof_base::{DataRate, Duration, Probability};
use careof_lab::{Change, Direction, LinkId};
use careof_link::{Config, DropCause, Fate, Loss, QueueConfig, QueueLimit};

/// A link that takes 2 ms and has no rate to speak of.
fn quick() -> Config {
    Config {
        rate: DataRate::from_megabits_per_second(1000),
        delay: Duration::from_millis(2),
        ..Config::default()
    }
}

#[test]
fn packets_cross_in_both_directions_and_are_accounted_for() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let (left, right) = pair.sockets();
    for number in 0..50_u8 {
        left.send(&[number; 100]).unwrap();
    }
    for number in 0..50_u8 {
        assert_eq!(next(&right), Some(vec![number; 100]));
    }
    right.send(b"and back").unwrap();
    assert_eq!(next(&left).as_deref(), Some(&b"and back"[..]));

    let report = pair.report();
    assert_eq!((report.forward.received, report.forward.written), (50, 50));
    assert_eq!((report.backward.received, report.backward.written), (1, 1));
    assert_eq!(report.forward.link.delivered_bytes, 50 * 128);
    assert_eq!(report.forward.lateness.deliveries, 50);
    assert!(report.forward.is_conserved() && report.backward.is_conserved());
}

#[test]
fn a_packet_takes_at_least_the_delay() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { delay: Duration::from_millis(30), ..quick() });
    let (left, right) = pair.sockets();
    let clock = pair.emulator.clock();
    let sent = clock.now();
    left.send(b"slow").unwrap();
    assert!(next(&right).is_some());
    assert!(clock.now() - sent >= Duration::from_millis(30));
}

#[test]
fn a_packet_larger_than_the_links_mtu_is_dropped_and_counted() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { mtu: 576, ..quick() });
    let (left, right) = pair.sockets();
    left.send(&[1; 1000]).unwrap();
    left.send(&[2; 500]).unwrap();
    assert_eq!(next(&right), Some(vec![2; 500]));
    let forward = pair.report().forward;
    assert_eq!(forward.link.dropped_by(DropCause::MtuExceeded), 1);
    assert!(forward.is_conserved());
}

#[test]
fn the_interface_refuses_what_exceeds_its_own_mtu() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let mtu = pair.left.run(|| {
        let mut netlink = careof_lab::Netlink::open()?;
        let index = netlink.index_of("link0")?;
        netlink.set_mtu(index, 600)
    });
    mtu.unwrap().unwrap();
    let (left, right) = pair.sockets();
    // Fragmented by the kernel, put together by the kernel: two packets, one datagram.
    left.send(&[3; 1000]).unwrap();
    assert_eq!(next(&right), Some(vec![3; 1000]));
    assert_eq!(pair.report().forward.received, 2);
}

#[test]
fn a_full_queue_drops_and_counts_the_rest() {
    let Some(realm) = realm_or_skip() else { return };
    let queue = QueueConfig { limit: QueueLimit::Packets(5), ..QueueConfig::default() };
    let pair = Pair::new(realm, &Config { rate: DataRate::ZERO, queue, ..quick() });
    let (left, _right) = pair.sockets();
    for _ in 0..20 {
        left.send(&[0; 100]).unwrap();
    }
    let forward = pair.report_after(20).forward;
    assert_eq!((forward.queued, forward.link.dropped_by(DropCause::QueueFull)), (5, 15));
    assert!(forward.is_conserved());
}

#[test]
fn lost_packets_are_lost_and_counted() {
    let Some(realm) = realm_or_skip() else { return };
    let loss = Loss::Bernoulli { p: Probability::new(1.0).unwrap() };
    let pair = Pair::new(realm, &Config { loss, delay: Duration::ZERO, ..quick() });
    let (left, right) = pair.sockets();
    for _ in 0..10 {
        left.send(&[0; 100]).unwrap();
    }
    right.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(next(&right), None);
    let forward = pair.report_when(|report| report.forward.link.dropped_by(DropCause::Loss) == 10).forward;
    assert_eq!((forward.link.dropped_by(DropCause::Loss), forward.written), (10, 0));
    assert!(forward.is_conserved());
}

#[test]
fn a_link_that_is_down_drops_and_one_that_is_up_again_carries() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let (left, right) = pair.sockets();
    let (link, direction) = (pair.link, Direction::Forward);
    let down = Change::SetDown { link, direction, queued: Fate::Drop, in_flight: Fate::Drop };
    pair.emulator.apply(vec![down]).unwrap();
    left.send(b"into the void").unwrap();
    let forward = pair.report_after(1).forward;
    assert!(!forward.is_up);
    assert_eq!(forward.link.dropped_by(DropCause::LinkDown), 1);

    pair.emulator.apply(vec![Change::SetUp { link, direction }]).unwrap();
    left.send(b"through").unwrap();
    assert_eq!(next(&right).as_deref(), Some(&b"through"[..]));
    assert!(pair.report().forward.is_conserved());
}

#[test]
fn a_link_that_keeps_its_packets_delivers_them_when_it_is_up_again() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let (left, right) = pair.sockets();
    let (link, direction) = (pair.link, Direction::Forward);
    let down = Change::SetDown { link, direction, queued: Fate::Keep, in_flight: Fate::Keep };
    pair.emulator.apply(vec![down]).unwrap();
    left.send(b"late").unwrap();
    right.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(next(&right), None);
    pair.emulator.apply(vec![Change::SetUp { link, direction }]).unwrap();
    right.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    assert_eq!(next(&right).as_deref(), Some(&b"late"[..]));
}

#[test]
fn a_link_is_changed_in_place_with_packets_in_its_queue() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { rate: DataRate::ZERO, ..quick() });
    let (left, right) = pair.sockets();
    for number in 0..10_u8 {
        left.send(&[number; 200]).unwrap();
    }
    assert_eq!(pair.report_after(10).forward.queued, 10);
    pair.reconfigure(&quick());
    for number in 0..10_u8 {
        assert_eq!(next(&right), Some(vec![number; 200]));
    }
    let forward = pair.report().forward;
    assert_eq!(forward.link.dropped.iter().sum::<u64>(), 0);
    assert!(forward.is_conserved());
}

#[test]
fn queued_packets_can_go_another_way() {
    let Some(realm) = realm_or_skip() else { return };
    let stuck = Config { rate: DataRate::ZERO, ..quick() };
    let pair = Pair::new(realm, &stuck);
    let (left, right) = pair.sockets();
    let second = |host: &careof_lab::Host, last: u8| {
        let address = std::net::Ipv4Addr::new(10, 78, 0, last).into();
        host.attach(&careof_lab::InterfaceConfig::new("link1", address, 24)).unwrap()
    };
    let spec = careof_lab::LinkSpec {
        name: "other".to_owned(),
        a: second(&pair.left, 1),
        b: second(&pair.right, 2),
        forward: quick(),
        backward: quick(),
    };
    let other = pair.emulator.add_link(spec).unwrap();
    left.send(b"re-routed").unwrap();
    assert_eq!(pair.report_after(1).forward.queued, 1);
    // The packet comes in by the other interface; strict reverse-path filtering would refuse it.
    let filter = |name: &'static str| {
        pair.right.run(move || careof_lab::set_sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0"))
    };
    filter("all").unwrap().unwrap();
    filter("link1").unwrap().unwrap();
    let (from, to) = ((pair.link, Direction::Forward), (other, Direction::Forward));
    pair.emulator.apply(vec![Change::MoveQueue { from, to }]).unwrap();
    assert_eq!(next(&right).as_deref(), Some(&b"re-routed"[..]));
    let reports = pair.emulator.report().unwrap();
    assert_eq!((reports[0].forward.link.drained, reports[1].forward.moved_in), (1, 1));
    assert!(reports.iter().all(|report| report.forward.is_conserved()));
}

#[test]
fn a_packet_for_an_interface_that_is_down_is_counted_as_refused() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { delay: Duration::from_millis(20), ..quick() });
    let (left, _right) = pair.sockets();
    let down = pair.right.run(|| {
        let mut netlink = careof_lab::Netlink::open()?;
        let index = netlink.index_of("link0")?;
        netlink.set_down(index)
    });
    down.unwrap().unwrap();
    left.send(b"nobody there").unwrap();
    let forward = pair.report_when(|report| report.forward.refused > 0).forward;
    assert_eq!((forward.refused, forward.written), (1, 0));
    assert!(forward.is_conserved());
}

#[test]
fn changes_to_a_link_that_is_not_there_change_nothing() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let other = Pair::new(realm, &quick());
    let _: LinkId = other.link;
    // A second link of the other emulator, which the first emulator does not have.
    let tun = |host: &careof_lab::Host| {
        host.attach(&careof_lab::InterfaceConfig::new("link1", RIGHT.into(), 32)).unwrap()
    };
    let spec = careof_lab::LinkSpec {
        name: "second".to_owned(),
        a: tun(&other.left),
        b: tun(&other.right),
        forward: quick(),
        backward: quick(),
    };
    let foreign = other.emulator.add_link(spec).unwrap();
    let direction = Direction::Forward;
    let changes = vec![
        Change::SetDown { link: pair.link, direction, queued: Fate::Drop, in_flight: Fate::Drop },
        Change::SetUp { link: foreign, direction },
    ];
    assert_eq!(pair.emulator.apply(changes), Err(careof_lab::Error::NoSuchLink));
    assert!(pair.report().forward.is_up);
}

#[test]
fn a_scheduled_change_is_made_when_its_time_comes() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { rate: DataRate::ZERO, ..quick() });
    let (left, right) = pair.sockets();
    left.send(b"waiting").unwrap();
    assert_eq!(pair.report_after(1).forward.queued, 1);
    let clock = pair.emulator.clock();
    let at = clock.now() + Duration::from_millis(50);
    let (link, direction) = (pair.link, Direction::Forward);
    pair.emulator.schedule(at, vec![Change::Reconfigure { link, direction, config: quick() }]).unwrap();
    assert_eq!(next(&right).as_deref(), Some(&b"waiting"[..]));
    assert!(clock.now() >= at + quick().delay);
}

#[test]
fn a_configuration_that_states_no_law_is_refused() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let (link, direction) = (pair.link, Direction::Forward);
    let changes = vec![Change::Reconfigure { link, direction, config: Config { mtu: 1, ..quick() } }];
    assert!(matches!(pair.emulator.apply(changes), Err(careof_lab::Error::LinkConfig { .. })));
}

#[test]
fn an_interface_can_go_while_its_link_is_emulated() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &quick());
    let (left, _right) = pair.sockets();
    left.send(b"on its way").unwrap();
    crate::support::remove_interface(&pair.right);
    let forward = pair.report_when(|report| report.forward.link.delivered == 1).forward;
    assert!(forward.is_conserved());
    // The other end still stands, and what it sends is accounted for.
    left.send(b"to nobody").unwrap();
    let forward = pair.report_when(|report| report.forward.link.delivered == 2).forward;
    assert!(forward.refused >= 1 && forward.is_conserved());
}
