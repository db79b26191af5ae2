//! Cellular IP as draft-ietf-mobileip-cellularip-00 says it.

use careof_base::Instant;
use careof_mobility::micro::{CellularHandover, CellularIp, Event, MessageDrop, PacketDrop, Ports, Scheme};
use careof_mobility::{Change, InterfaceId};

use super::tree::{CELL, FROM_HOSTS, Tree, at, even, host_address, ms, uneven};

fn semi_soft(delay: u64) -> Scheme {
    let handover = CellularHandover::SemiSoft { delay: ms(delay), packets: 100, lead: ms(50) };
    Scheme::CellularIp(CellularIp { handover, ..CellularIp::default() })
}

fn hard() -> Scheme {
    Scheme::CellularIp(CellularIp::default())
}

/// A host at station 3 which is active: it sends a packet each second.
fn active(tree: &mut Tree, until_s: u64) {
    tree.attach_at(Instant::ZERO, 0, 3);
    for second in 0..until_s {
        tree.send_at(second * 1000 + 1, 0);
    }
}

fn to(interface: u16) -> Option<Ports> {
    Some(Ports::one(InterfaceId(interface)))
}

#[test]
fn a_route_update_makes_mappings_from_the_station_to_the_gateway() {
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 1);
    tree.run_until(at(100));
    assert_eq!(tree.routes(0), [to(1), to(1), None, to(CELL.0), None, None, None]);
    assert_eq!(tree.outside, [FROM_HOSTS]);
}

#[test]
fn data_packets_renew_mappings_and_make_none() {
    // An active host that sends packets sends no route-update packets.
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 30);
    tree.run_until(at(29_900));
    assert_eq!(tree.routes(0).iter().flatten().count(), 3);
    // Paging-update, then one route-update packet when the first data packet made it active.
    assert_eq!(tree.host(0).counters().sent, 2);
    // Where there is no mapping, a data packet makes none.
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 1);
    tree.run_until(at(20_000));
    assert_eq!(tree.routes(0).iter().flatten().count(), 0);
    tree.send_at(30_000, 0);
    tree.run_until(at(29_999));
    let before = tree.router(1).counters().received;
    let packet = |tree: &mut Tree| tree.run_until(at(30_001));
    packet(&mut tree);
    assert!(
        tree.router(1).counters().received == before,
        "the update is on its way, and came behind nothing"
    );
}

#[test]
fn an_active_host_that_sends_nothing_sends_route_updates() {
    let mut tree = Tree::new(&even(), 1, hard());
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 1000, ms(500), 60);
    tree.run_until(at(30_000));
    assert_eq!(tree.missing(0, 58), [0_u32; 0]);
    assert_eq!(tree.routes(0).iter().flatten().count(), 3);
    // One paging update; a route update when the first packet comes, and each 3 s from then on.
    assert_eq!(tree.host(0).counters().sent, 1 + 10);
}

#[test]
fn mappings_of_a_host_that_has_become_idle_time_out_and_its_paging_mappings_stay() {
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 1);
    tree.run_until(at(5_000));
    assert!(tree.host(0).is_active(tree.now));
    tree.run_until(at(30_000));
    assert!(!tree.host(0).is_active(tree.now));
    assert_eq!(tree.routes(0).iter().flatten().count(), 0);
    assert_eq!([0, 1, 3].map(|router| tree.router(router).paging_count()), [1, 1, 1]);
    let expired = |event: &Event| matches!(event, Event::RouteChanged { change: Change::Expired, .. });
    assert_eq!(tree.events.iter().filter(|(_, event)| expired(event)).count(), 3);
}

#[test]
fn an_idle_host_is_paged_and_becomes_active_by_the_first_packet() {
    let mut tree = Tree::new(&even(), 1, hard());
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(60_000));
    assert!(!tree.host(0).is_active(tree.now));
    tree.stream(0, 60_000, ms(100), 10);
    tree.run_until(at(62_000));
    assert_eq!(tree.delivered(0), (0..10).collect::<Vec<_>>());
    assert!(tree.host(0).is_active(tree.now));
    let paged = tree.events.iter().filter(|(_, event)| matches!(event, Event::Paged { .. }));
    assert_eq!(paged.map(|(router, _)| *router).collect::<Vec<_>>(), [0, 1, 3], "the first one alone");
}

#[test]
fn a_node_without_a_paging_cache_sends_everywhere_below_and_one_with_it_where_the_host_is() {
    let run = |has_cache: fn(usize) -> bool| {
        let mut tree = Tree::with(&even(), 1, hard(), |config| {
            let Scheme::CellularIp(cellular) = &mut config.scheme else { return };
            cellular.paging_cache = has_cache(usize::from(config.address.octets()[3]) - 1);
        });
        tree.attach_at(Instant::ZERO, 0, 3);
        tree.stream(0, 60_000, ms(100), 1);
        tree.run_until(at(61_000));
        assert_eq!(tree.delivered(0), [0]);
        (0..7).map(|router| tree.router(router).counters().packets).collect::<Vec<_>>()
    };
    assert_eq!(run(|_| true), [1, 1, 0, 1, 0, 0, 0]);
    assert_eq!(run(|_| false), [1; 7]);
    assert_eq!(run(|router| router == 0), [1, 1, 0, 1, 1, 0, 0]);
}

#[test]
fn a_packet_for_a_host_that_no_paging_cache_knows_is_dropped() {
    let mut tree = Tree::new(&even(), 2, hard());
    tree.stream(1, 100, ms(1), 1);
    tree.run_until(at(1000));
    assert_eq!(tree.router(0).counters().packets_dropped(PacketDrop::NoRoute), 1);
}

#[test]
fn after_a_hard_handover_the_crossover_node_has_one_mapping_and_the_old_ones_below_time_out() {
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 30);
    tree.stream(0, 100, ms(10), 290);
    tree.hard(&hard(), at(1001), 0, 3, 5, ms(0));
    tree.run_until(at(1100));
    assert_eq!(tree.routes(0), [to(2), to(1), to(1), to(CELL.0), None, to(CELL.0), None]);
    tree.run_until(at(12_000));
    assert_eq!(tree.routes(0), [to(2), None, to(1), None, None, to(CELL.0), None]);
    // Lost is what had passed the gateway before the update came there; nothing came twice.
    assert_eq!((tree.missing(0, 290), tree.duplicates(0)), (vec![90], 0));
}

#[test]
fn a_semi_soft_update_adds_a_mapping_and_the_update_after_the_handover_leaves_one() {
    let scheme = semi_soft(0);
    let mut tree = Tree::new(&even(), 1, scheme);
    active(&mut tree, 5);
    tree.stream(0, 100, ms(10), 200);
    tree.hard(&scheme, at(1001), 0, 3, 5, ms(0));
    tree.run_until(at(990));
    let both = Ports::one(InterfaceId(1)).with(Ports::one(InterfaceId(2)));
    assert_eq!(tree.routes(0), [Some(both), to(1), to(1), to(CELL.0), None, to(CELL.0), None]);
    tree.run_until(at(1100));
    assert_eq!(tree.routes(0)[0], to(2));
    tree.run_until(at(5000));
    assert_eq!((tree.missing(0, 200), tree.duplicates(0)), (vec![], 0));
}

#[test]
fn a_semi_soft_update_without_a_handover_times_out() {
    let scheme = semi_soft(10);
    let mut tree = Tree::new(&even(), 1, scheme);
    active(&mut tree, 30);
    tree.announce_at(at(2000), 0, &[5]);
    tree.run_until(at(15_000));
    assert_eq!(tree.routes(0), [to(1), to(1), None, to(CELL.0), None, None, None]);
}

#[test]
fn the_delay_device_makes_up_for_a_shorter_way() {
    // Station 3 is 20 ms below the gateway, station 5 is 2 ms.
    let places = uneven([0, 10, 1, 10, 10, 1, 1]);
    let run = |delay| {
        let scheme = semi_soft(delay);
        let mut tree = Tree::new(&places, 1, scheme);
        active(&mut tree, 5);
        tree.stream(0, 100, ms(4), 500);
        tree.hard(&scheme, at(1001), 0, 3, 5, ms(0));
        tree.run_until(at(6000));
        tree
    };
    let lost = run(0).missing(0, 500);
    assert!((4..=5).contains(&lost.len()), "18 ms of packets have passed station 5: {lost:?}");
    let tree = run(18);
    assert_eq!(tree.missing(0, 500), [0_u32; 0]);
    assert!(tree.duplicates(0) <= 1, "{}", tree.duplicates(0));
    // What waits when the host has moved goes in front of what follows.
    let tree = run(40);
    assert_eq!(tree.missing(0, 500), [0_u32; 0]);
    assert!((1..=6).contains(&tree.duplicates(0)), "22 ms of packets were had: {}", tree.duplicates(0));
    let mut highest = 0;
    let mut is_behind = |id: &u32| {
        let later = highest.max(*id);
        std::mem::replace(&mut highest, later) > *id
    };
    let behind =
        tree.delivered(0).into_iter().map(|id| is_behind(&id)).filter(|is_behind| *is_behind).count();
    assert!(behind <= tree.duplicates(0), "only duplicates are behind later ones");
}

#[test]
fn a_delay_device_that_is_full_makes_no_copies() {
    let handover = CellularHandover::SemiSoft { delay: ms(40), packets: 3, lead: ms(50) };
    let scheme = Scheme::CellularIp(CellularIp { handover, ..CellularIp::default() });
    let mut tree = Tree::new(&even(), 1, scheme);
    active(&mut tree, 5);
    tree.stream(0, 100, ms(4), 500);
    tree.hard(&scheme, at(1001), 0, 3, 5, ms(0));
    tree.run_until(at(6000));
    let counters = tree.router(0).buffer_counters();
    assert!(counters.dropped > 0 && counters.full == 0, "{counters:?}");
}

#[test]
fn a_hundred_semi_soft_handovers_lose_nothing() {
    let scheme = semi_soft(9);
    let mut tree = Tree::new(&uneven([0, 2, 5, 1, 7, 7, 1]), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.send_at(1, 0);
    tree.stream(0, 100, ms(7), 15_000);
    let stations = [3, 5, 4, 6];
    for n in 0..100 {
        let (old, new) = (stations[n % 4], stations[(n + 1) % 4]);
        tree.hard(&scheme, at(1000 + n as u64 * 1000) + ms(1) / 2, 0, old, new, ms(0));
    }
    tree.run_until(at(200_000));
    assert_eq!(tree.missing(0, 15_000), [0_u32; 0]);
    // The delay and the difference of the ways, at one packet in 7 ms.
    assert!(tree.duplicates(0) <= 100 * (9 + 9_usize).div_ceil(7), "{}", tree.duplicates(0));
}

#[test]
fn a_teardown_removes_what_the_network_knows() {
    let mut tree = Tree::new(&even(), 1, hard());
    active(&mut tree, 1);
    tree.run_until(at(100));
    tree.leave(0);
    tree.run_until(at(200));
    assert_eq!(tree.routes(0).iter().flatten().count(), 0);
    assert_eq!([0, 1, 3].map(|router| tree.router(router).paging_count()), [0, 0, 0]);
}

#[test]
fn a_packet_between_two_hosts_goes_by_the_gateway() {
    let mut tree = Tree::new(&even(), 2, hard());
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.attach_at(Instant::ZERO, 1, 3);
    tree.run_until(at(100));
    tree.send_to(0, host_address(1));
    tree.run_until(at(200));
    assert_eq!(tree.delivered(1), [FROM_HOSTS]);
    assert_eq!([0, 1, 3].map(|router| tree.router(router).counters().packets), [1, 2, 2]);
}

#[test]
fn messages_of_other_protocols_are_not_for_it() {
    let blocks = Scheme::Blocks(careof_mobility::micro::Blocks::default());
    let mut other = Tree::new(&even(), 1, blocks);
    other.attach_at(Instant::ZERO, 0, 3);
    other.run_until(at(10));
    let (_, attach) = other.heard[0].clone();
    let mut tree = Tree::new(&even(), 1, hard());
    tree.inject(3, CELL, host_address(0), &attach);
    assert_eq!(tree.router(3).counters().messages_dropped(MessageDrop::NotForUs), 1);
}
