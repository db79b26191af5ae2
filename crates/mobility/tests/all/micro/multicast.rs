//! M&M: joins, prunes, bicast and candidates (Helmy, Jaseemuddin and Bhaskara).

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::micro::{Buffer, GroupMapping, MulticastMobility, PacketDrop, Ports, Scheme, Trigger};
use careof_mobility::v4::Prefix;

use super::tree::{CELL, DOMAIN, Tree, at, even, host_address, ms, uneven};

pub(super) fn multicast() -> MulticastMobility {
    let groups = Prefix::new([239, 1, 0, 0].into(), 16);
    MulticastMobility::new(GroupMapping { groups })
}

fn to(interface: u16) -> Option<Ports> {
    Some(Ports::one(InterfaceId(interface)))
}

fn started(multicast: MulticastMobility) -> (Scheme, Tree) {
    let scheme = Scheme::Multicast(multicast);
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(100));
    tree.stream(0, 100, ms(10), 200);
    (scheme, tree)
}

#[test]
fn a_report_has_routers_join_up_to_the_root() {
    let (_, mut tree) = started(multicast());
    assert_eq!(tree.routes(0), [to(1), to(1), None, to(CELL.0), None, None, None]);
    tree.run_until(at(4000));
    assert_eq!(tree.delivered(0), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_join_ends_at_the_first_router_that_is_in_the_tree() {
    let (scheme, mut tree) = started(multicast());
    let received = tree.router(0).counters().received;
    tree.soft(&scheme, at(1001), 0, 3, 4, ms(100));
    tree.run_until(at(1050));
    let both = Ports::one(InterfaceId(1)).with(Ports::one(InterfaceId(2)));
    assert_eq!((tree.routes(0)[1], tree.router(0).counters().received), (Some(both), received));
    // And so does a prune: the router above has another member.
    tree.run_until(at(1200));
    assert_eq!(tree.routes(0)[..5], [to(1), to(2), None, None, to(CELL.0)]);
    assert_eq!(tree.router(0).counters().received, received);
}

#[test]
fn packets_come_over_both_stations_while_both_are_joined() {
    let (scheme, mut tree) = started(multicast());
    tree.soft(&scheme, at(1001), 0, 3, 5, ms(200));
    tree.run_until(at(4000));
    // Station 5 is in the tree from 1,005 ms on at the root; the old one leaves when the host does, at 1,201 ms.
    assert_eq!((tree.missing(0, 200).len(), tree.duplicates(0)), (0, 19));
    assert_eq!(tree.routes(0), [to(2), None, to(1), None, None, to(CELL.0), None]);
}

#[test]
fn without_a_candidate_a_handover_loses_what_comes_before_the_join() {
    let (scheme, mut tree) = started(multicast());
    tree.hard(&scheme, at(1001), 0, 3, 5, ms(100));
    tree.run_until(at(4000));
    assert_eq!((tree.missing(0, 200), tree.duplicates(0)), ((90..=100).collect::<Vec<_>>(), 0));
}

#[test]
fn a_candidate_joins_before_and_keeps_packets_if_it_may() {
    let run = |buffer, gap| {
        let (scheme, mut tree) =
            started(MulticastMobility { trigger: Trigger::Source, lead: ms(50), buffer, ..multicast() });
        tree.hard(&scheme, at(1001), 0, 3, 5, ms(gap));
        tree.run_until(at(4000));
        tree
    };
    let tree = run(Buffer::packets(100), 100);
    assert_eq!(tree.missing(0, 200), [0_u32; 0]);
    // The announcement is at station 5 at 959 ms, and its join at the root at 963 ms: what passes there from 970 ms on comes to it.
    assert_eq!(tree.duplicates(0), 3);
    let tree = run(Buffer::NONE, 100);
    assert_eq!(tree.missing(0, 200), (90..100).collect::<Vec<_>>());
    assert_eq!(tree.router(5).counters().packets_dropped(PacketDrop::Early), 13);
}

#[test]
fn candidates_that_the_host_does_not_come_to_leave_in_time() {
    let (scheme, mut tree) = started(MulticastMobility {
        trigger: Trigger::NoPath,
        lead: ms(50),
        buffer: Buffer::packets(100),
        candidate_lifetime: ms(400),
        ..multicast()
    });
    tree.hard(&scheme, at(1001), 0, 3, 5, ms(100));
    tree.run_until(at(1200));
    assert_eq!([4, 5, 6].map(|station| tree.routes(0)[station]), [to(CELL.0); 3]);
    tree.run_until(at(4000));
    assert_eq!(tree.routes(0), [to(2), None, to(1), None, None, to(CELL.0), None]);
    assert_eq!(tree.missing(0, 200), [0_u32; 0]);
    for other in [4, 6] {
        let counters = tree.router(other).buffer_counters();
        assert!(counters.kept > 30 && counters.copies == counters.kept, "{counters:?}");
    }
}

#[test]
fn a_hundred_handovers_to_stations_that_have_joined_lose_nothing_and_give_nothing_twice() {
    // All ways are equally long, so that what comes to one station after the host has left comes to the other after it is there.
    let scheme =
        Scheme::Multicast(MulticastMobility { trigger: Trigger::Source, lead: ms(50), ..multicast() });
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 100, ms(7), 15_000);
    let stations = [3, 5, 4, 6];
    for n in 0..100 {
        let (old, new) = (stations[n % 4], stations[(n + 1) % 4]);
        tree.hard(&scheme, at(1000 + n as u64 * 1000) + ms(1) / 2, 0, old, new, ms(0));
    }
    tree.run_until(at(200_000));
    assert_eq!((tree.missing(0, 15_000), tree.duplicates(0)), (vec![], 0));
}

#[test]
fn bicast_over_ways_of_unequal_length_loses_nothing_while_the_host_is_at_both() {
    let scheme = Scheme::Multicast(multicast());
    let mut tree = Tree::new(&uneven([0, 2, 5, 1, 7, 7, 1]), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 100, ms(7), 15_000);
    let stations = [3, 5, 4, 6];
    for n in 0..100 {
        let (old, new) = (stations[n % 4], stations[(n + 1) % 4]);
        tree.soft(&scheme, at(1000 + n as u64 * 1000) + ms(1) / 2, 0, old, new, ms(50));
    }
    tree.run_until(at(200_000));
    assert_eq!(tree.missing(0, 15_000), [0_u32; 0]);
    assert!((1..=100 * 50_usize.div_ceil(7)).contains(&tree.duplicates(0)), "{}", tree.duplicates(0));
}

#[test]
fn joins_are_repeated_and_run_out_when_nobody_repeats_them() {
    let (_, mut tree) = started(multicast());
    tree.run_until(at(1_000_000));
    assert_eq!(tree.routes(0).iter().flatten().count(), 3);
    tree.detach_at(at(1_000_000), 0, 3);
    tree.run_until(at(1_300_000));
    assert_eq!((0..7).map(|router| tree.router(router).route_count()).sum::<usize>(), 0);
    assert!((0..7).all(|router| tree.router(router).next_timeout().is_none()));
}

#[test]
fn the_groups_address_reaches_the_mobile_node_too() {
    let (_, mut tree) = started(multicast());
    let group = multicast().mapping.group(DOMAIN, host_address(0));
    tree.send_outside_to(group);
    tree.run_until(at(4000));
    // The driver hands it to whoever has the address: nobody, but it was in the air of the right cell.
    assert_eq!(tree.lost_in_air.len(), 1);
}
