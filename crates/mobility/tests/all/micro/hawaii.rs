//! HAWAII's path setup schemes, in the order in which they update forwarding entries (Ramjee et al., ICNP 1999, section 3).

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::micro::{Buffer, Event, Hawaii, PathScheme, Ports, Scheme};
use careof_wire::micro::{Body, MicroMessage};

use super::tree::{CELL, Tree, UP, at, clock, even, host_address, ms, network_key, router_address};

fn scheme(scheme: PathScheme) -> Scheme {
    Scheme::Hawaii(Hawaii { scheme, buffer: Buffer::packets(100), ..Hawaii::default() })
}

fn to(interface: u16) -> Option<Ports> {
    Some(Ports::one(InterfaceId(interface)))
}

/// From station 3 to station 5, by way of routers 1, 0, 2, at 1,001 ms; packets come each 10 ms.
fn handover(path: PathScheme, gap: u64, overlap: u64) -> Tree {
    let scheme = scheme(path);
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(100));
    tree.stream(0, 100, ms(10), 200);
    if overlap > 0 {
        tree.soft(&scheme, at(1001), 0, 3, 5, ms(overlap));
    } else {
        tree.hard(&scheme, at(1001), 0, 3, 5, ms(gap));
    }
    tree
}

/// When each router's entry changed from 1,001 ms on, in order.
fn order(path: PathScheme) -> Vec<usize> {
    let mut tree = handover(path, 0, 0);
    tree.run_until(at(1001));
    tree.events.clear();
    tree.run_until(at(1100));
    let changes = tree.events.iter().filter(|(_, event)| matches!(event, Event::RouteChanged { .. }));
    changes.map(|(router, _)| *router).collect()
}

#[test]
fn power_up_makes_entries_up_to_the_domain_root_router() {
    let mut tree = Tree::new(&even(), 1, scheme(PathScheme::UnicastNonForwarding));
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(50));
    assert_eq!(tree.routes(0), [to(1), to(1), None, to(CELL.0), None, None, None]);
}

#[test]
fn unf_updates_from_the_new_base_station_to_the_old_one() {
    // 5 has changed at once; then 2, the crossover router 0, 1 and 3.
    assert_eq!(order(PathScheme::UnicastNonForwarding), [2, 0, 1, 3]);
    let mut tree = handover(PathScheme::UnicastNonForwarding, 0, 0);
    tree.run_until(at(1100));
    assert_eq!(tree.routes(0), [to(2), to(UP.0), to(1), to(UP.0), None, to(CELL.0), None]);
}

#[test]
fn mnf_sends_to_both_until_the_old_base_station_has_answered() {
    assert_eq!(order(PathScheme::MulticastNonForwarding), [2, 0, 3, 1, 0]);
    let mut tree = handover(PathScheme::MulticastNonForwarding, 0, 0);
    // The message is at the crossover router at 1,005 ms, at the old base station at 1,009 ms, and back at 1,013 ms.
    for (time, ports) in [(1004, 0b10), (1006, 0b110), (1012, 0b110), (1014, 0b100)] {
        tree.run_until(at(time));
        let expected = (1..=2).filter(|port| ports >> port & 1 == 1).map(InterfaceId).collect::<Ports>();
        assert_eq!(tree.routes(0)[0], Some(expected), "at {time} ms");
    }
    tree.run_until(at(4000));
    assert_eq!(tree.routes(0), [to(2), to(UP.0), to(1), to(UP.0), None, to(CELL.0), None]);
    // Nobody refreshes the old branch.
    tree.run_until(at(40_000));
    assert_eq!(tree.routes(0), [to(2), None, to(1), None, None, to(CELL.0), None]);
}

#[test]
fn msf_updates_from_the_old_base_station_to_the_new_one() {
    assert_eq!(order(PathScheme::MultipleStreamForwarding), [3, 1, 0, 2]);
    let mut tree = handover(PathScheme::MultipleStreamForwarding, 0, 0);
    // The message is at the old base station at 1,009 ms: from then on it sends to the new one.
    tree.run_until(at(1010));
    assert_eq!(tree.routes(0), [to(1), to(1), None, to(UP.0), None, to(CELL.0), None]);
    tree.run_until(at(1100));
    assert_eq!(tree.routes(0), [to(2), to(UP.0), to(1), to(UP.0), None, to(CELL.0), None]);
}

#[test]
fn ssf_has_one_stream_go_by_entries_for_packets_from_the_old_base_station_first() {
    // Entries that are for packets from one side only are not among the routes: 0 and 1 have them, and change later or not at all.
    assert_eq!(order(PathScheme::SingleStreamForwarding), [2, 3, 0]);
    let mut tree = handover(PathScheme::SingleStreamForwarding, 0, 0);
    tree.run_until(at(1010));
    assert_eq!(tree.routes(0), [to(1), to(1), to(1), to(UP.0), None, to(CELL.0), None]);
    tree.run_until(at(1100));
    assert_eq!(tree.routes(0), [to(2), to(1), to(1), to(UP.0), None, to(CELL.0), None]);
}

#[test]
fn forwarding_schemes_lose_nothing_across_a_gap_and_give_nothing_twice() {
    for path in [PathScheme::MultipleStreamForwarding, PathScheme::SingleStreamForwarding] {
        for gap in [0, 100, 500] {
            let mut tree = handover(path, gap, 0);
            tree.run_until(at(5000));
            assert_eq!((tree.missing(0, 200), tree.duplicates(0)), (vec![], 0), "{path:?}, {gap} ms");
        }
    }
}

#[test]
fn non_forwarding_schemes_lose_the_gap_and_nothing_in_an_overlap() {
    for path in [PathScheme::UnicastNonForwarding, PathScheme::MulticastNonForwarding] {
        let mut tree = handover(path, 100, 0);
        tree.run_until(at(5000));
        assert_eq!(tree.missing(0, 200), (90..=100).collect::<Vec<_>>(), "{path:?}");
        let mut tree = handover(path, 0, 100);
        tree.run_until(at(5000));
        let twice = usize::from(path == PathScheme::MulticastNonForwarding);
        // MNF sends to both for 8 ms: one packet at most.
        assert!(tree.missing(0, 200).is_empty() && tree.duplicates(0) <= twice, "{path:?}");
    }
}

/// Into how many streams, each in order in itself, packets can be sorted at least: the longest run of ever earlier ones (Dilworth).
fn streams(delivered: &[u32]) -> usize {
    let mut last_of_each: Vec<u32> = Vec::new();
    for id in delivered {
        match last_of_each.iter_mut().find(|last| **last < *id) {
            Some(last) => *last = *id,
            None => last_of_each.push(*id),
        }
    }
    last_of_each.len()
}

#[test]
fn msf_has_several_streams_and_ssf_a_single_one_beside_what_comes_straight() {
    let run = |path| {
        let scheme =
            Scheme::Hawaii(Hawaii { scheme: path, buffer: Buffer::packets(1000), ..Hawaii::default() });
        let mut tree = Tree::new(&even(), 1, scheme);
        tree.attach_at(Instant::ZERO, 0, 3);
        tree.stream(0, 100, ms(1) / 2, 4000);
        tree.hard(&scheme, at(1001), 0, 3, 5, ms(50));
        tree.run_until(at(5000));
        assert_eq!((tree.missing(0, 4000), tree.duplicates(0)), (vec![], 0));
        streams(&tree.delivered(0))
    };
    // MSF: from the old base station, from the router above it, and straight.
    assert_eq!(run(PathScheme::MultipleStreamForwarding), 3);
    assert_eq!(run(PathScheme::SingleStreamForwarding), 2);
}

#[test]
fn a_handover_below_one_router_is_told_no_further_up() {
    for path in PathScheme::ALL {
        let scheme = scheme(path);
        let mut tree = Tree::new(&even(), 1, scheme);
        tree.attach_at(Instant::ZERO, 0, 3);
        tree.run_until(at(100));
        let received = tree.router(0).counters().received;
        tree.hard(&scheme, at(1001), 0, 3, 4, ms(0));
        tree.run_until(at(1100));
        assert_eq!((tree.router(0).counters().received, tree.routes(0)[1]), (received, to(2)), "{path:?}");
    }
}

#[test]
fn the_host_hears_of_it_when_the_old_base_station_has_answered() {
    let mut tree = handover(PathScheme::UnicastNonForwarding, 0, 0);
    tree.run_until(at(1016));
    let confirmed = |tree: &Tree| tree.host(0).counters().received;
    let before = confirmed(&tree);
    tree.run_until(at(1018));
    assert_eq!(confirmed(&tree), before + 1);
}

#[test]
fn entries_last_while_they_are_refreshed_hop_by_hop() {
    let mut tree = Tree::new(&even(), 3, scheme(PathScheme::UnicastNonForwarding));
    for host in 0..3 {
        tree.attach_at(at(host as u64), host, 3);
    }
    tree.run_until(at(300_000));
    let before = (tree.router(1).counters().sent, tree.router(1).counters().received);
    assert_eq!((0..3).map(|host| tree.routes(host).iter().flatten().count()).sum::<usize>(), 9);
    tree.run_until(at(400_000));
    let after = (tree.router(1).counters().sent, tree.router(1).counters().received);
    assert_eq!((after.0 - before.0, after.1 - before.1), (10, 10), "one message in 10 s, for all hosts");
    for host in 0..3 {
        tree.detach_at(at(400_000), host, 3);
    }
    tree.run_until(at(700_000));
    assert_eq!((0..7).map(|router| tree.router(router).route_count()).sum::<usize>(), 0);
    assert!((0..7).all(|router| tree.router(router).next_timeout().is_none()));
}

#[test]
fn the_path_to_a_base_station_that_nobody_knows_ends_at_the_root() {
    for path in PathScheme::ALL {
        let mut tree = Tree::new(&even(), 1, scheme(path));
        let message = MicroMessage {
            mobile: host_address(0),
            station: router_address(5),
            origin: host_address(0),
            timestamp: clock().at(Instant::ZERO).to_bits(),
            body: Body::PathSetupUpdate { scheme: path, old: [203, 0, 113, 1].into() },
        };
        let payload = network_key().mobile_key(host_address(0)).sign(&message);
        tree.inject(5, CELL, host_address(0), &payload);
        tree.run_until(at(50));
        assert_eq!(tree.routes(0), [to(2), None, to(1), None, None, to(CELL.0), None], "{path:?}");
        assert_eq!(tree.router(5).counters().messages_dropped_total(), 0, "the root has answered");
    }
}
