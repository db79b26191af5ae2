//! The building blocks of a handover, each alone and together (Bhaskara and Helmy, sections II and III).

use careof_base::Instant;
use careof_mobility::micro::{Blocks, Buffer, Event, MessageDrop, PacketDrop, Scheme, Trigger, WhenFull};

use super::tree::{Tree, at, even, host_address, ms, room_for, uneven};

/// Packets 10 ms apart from 100.5 ms on; at 1 s the host goes from station 3 to station 5. The crossover router is the gateway, 4 ms above each.
fn handover(blocks: Blocks, gap_ms: u64) -> Tree {
    let scheme = Scheme::Blocks(blocks);
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(100));
    tree.stream(0, 100, ms(10), 200);
    tree.hard(&scheme, at(1000) + ms(1), 0, 3, 5, ms(gap_ms));
    tree.run_until(at(4000));
    tree
}

fn proactive(buffer: Buffer) -> Blocks {
    Blocks { trigger: Trigger::Source, lead: ms(50), buffer, ..Blocks::default() }
}

#[test]
fn without_any_block_what_comes_before_the_route_is_repaired_is_lost() {
    let tree = handover(Blocks::default(), 0);
    // What passed the gateway less than 4 ms before the host left, and before the news came there 4 ms after: packet 90, at 1,000 ms.
    assert_eq!((tree.missing(0, 200), tree.duplicates(0)), (vec![90], 0));
    assert_eq!(tree.router(3).counters().packets_dropped(PacketDrop::NotAttached), 1);
    let tree = handover(Blocks::default(), 100);
    assert_eq!(tree.missing(0, 200), (90..=100).collect::<Vec<_>>());
}

#[test]
fn a_candidate_without_a_buffer_loses_what_comes_in_the_gap() {
    let tree = handover(proactive(Buffer::NONE), 100);
    // Those that come to station 5 from 1,001 ms on to 1,101 ms.
    assert_eq!((tree.missing(0, 200), tree.duplicates(0)), ((90..100).collect::<Vec<_>>(), 0));
    // The four before that, from when the announcement is at the gateway (955 ms), were had from the old station.
    assert_eq!(tree.router(5).counters().packets_dropped(PacketDrop::Early), 14);
}

#[test]
fn a_candidate_with_a_buffer_loses_nothing_and_hands_out_what_the_old_station_had_sent_as_well() {
    for gap in [0, 100, 500] {
        let tree = handover(proactive(Buffer::packets(100)), gap);
        assert_eq!(tree.missing(0, 200), [0_u32; 0], "gap of {gap} ms");
        assert_eq!(
            tree.duplicates(0),
            4,
            "those from when the announcement is at the gateway to the handover"
        );
        assert_eq!(tree.router(5).buffer_counters().released, 4 + gap / 10);
    }
}

#[test]
fn a_buffer_that_is_full_drops_its_oldest_or_its_tail() {
    let with = |when_full| handover(proactive(Buffer { when_full, ..Buffer::packets(10) }), 300);
    // 34 packets come to station 5 until the host is there: 86 to 119.
    let tree = with(WhenFull::DropOldest);
    assert_eq!(tree.missing(0, 200), (90..110).collect::<Vec<_>>());
    assert_eq!(tree.router(5).buffer_counters().full, 24);
    let tree = with(WhenFull::DropTail);
    assert_eq!(tree.missing(0, 200), (96..120).collect::<Vec<_>>());
    assert_eq!(tree.router(5).counters().packets_dropped(PacketDrop::BufferFull), 24);
}

#[test]
fn bytes_bound_a_buffer_and_so_does_age() {
    let bytes = Buffer { bytes: 10_500, ..Buffer::packets(1000) };
    assert_eq!(handover(proactive(bytes), 300).missing(0, 200), (90..110).collect::<Vec<_>>());
    let age = Buffer { age: Some(ms(95)), ..Buffer::packets(1000) };
    let tree = handover(proactive(age), 300);
    // Those that came to station 5 less than 95 ms before 1,301 ms, at 1,204 ms or before, are too old.
    assert_eq!(tree.missing(0, 200), (90..=110).collect::<Vec<_>>());
    assert_eq!(tree.router(5).buffer_counters().copies + tree.router(5).buffer_counters().expired, 25);
}

#[test]
fn bicast_goes_on_over_the_old_station_while_the_host_is_at_both() {
    let scheme = |bicast| Scheme::Blocks(Blocks { bicast: ms(bicast), ..Blocks::default() });
    let run = |bicast| {
        let scheme = scheme(bicast);
        let mut tree = Tree::new(&even(), 1, scheme);
        tree.attach_at(Instant::ZERO, 0, 3);
        tree.run_until(at(100));
        tree.stream(0, 100, ms(10), 200);
        tree.soft(&scheme, at(1001), 0, 3, 5, ms(200));
        tree.run_until(at(4000));
        tree
    };
    let tree = run(0);
    assert_eq!((tree.missing(0, 200).len(), tree.duplicates(0)), (0, 0));
    // From 1,005 to 1,105 ms at the gateway; and not beyond the overlap, whose end the old station knows.
    assert_eq!((run(100).missing(0, 200).len(), run(100).duplicates(0)), (0, 10));
    let tree = run(500);
    assert_eq!((tree.missing(0, 200).len(), tree.duplicates(0)), (0, 19));
    assert_eq!(tree.router(0).counters().copies, 50);
    assert_eq!(tree.router(3).counters().packets_dropped(PacketDrop::NotAttached), 31);
}

#[test]
fn the_old_station_keeps_and_sends_on_what_comes_while_nobody_knows_where_the_host_is() {
    let blocks = Blocks { forward: ms(1000), buffer: Buffer::packets(100), ..Blocks::default() };
    for gap in [0, 100, 500] {
        let tree = handover(blocks, gap);
        assert_eq!((tree.missing(0, 200), tree.duplicates(0)), (vec![], 0), "gap of {gap} ms");
    }
    // They go up to the crossover router and down again, and come behind those that go straight.
    let delivered = handover(blocks, 100).delivered(0);
    assert!(!delivered.is_sorted());
    // Without a buffer it sends on what comes after the news, and that is nothing: the news comes behind it.
    let none = Blocks { buffer: Buffer::NONE, ..blocks };
    assert_eq!(handover(none, 100).missing(0, 200), (90..=100).collect::<Vec<_>>());
}

#[test]
fn a_host_that_comes_back_to_where_it_was_gets_what_was_kept() {
    let scheme =
        Scheme::Blocks(Blocks { forward: ms(1000), buffer: Buffer::packets(100), ..Blocks::default() });
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 100, ms(10), 100);
    tree.hard(&scheme, at(501), 0, 3, 3, ms(200));
    tree.run_until(at(3000));
    assert_eq!(tree.delivered(0), (0..100).collect::<Vec<_>>());
}

#[test]
fn each_trigger_reaches_its_set_of_candidates() {
    let expecting = |trigger, next: &[usize]| {
        let scheme = Scheme::Blocks(Blocks { trigger, lead: ms(50), ..Blocks::default() });
        let mut tree = Tree::new(&even(), 1, scheme);
        tree.attach_at(Instant::ZERO, 0, 3);
        tree.announce_at(at(100), 0, next);
        tree.run_until(at(200));
        let expected = tree.events.iter().filter(|(_, event)| matches!(event, Event::Expected { .. }));
        let mut stations: Vec<usize> = expected.map(|(station, _)| *station).collect();
        stations.sort_unstable();
        stations
    };
    assert_eq!(expecting(Trigger::None, &[5]), [0_usize; 0]);
    assert_eq!(expecting(Trigger::Source, &[5, 6]), [5]);
    assert_eq!(expecting(Trigger::Path { candidates: 2 }, &[6, 4]), [4, 6]);
    assert_eq!(expecting(Trigger::Path { candidates: 2 }, &[6]), [4, 6]);
    assert_eq!(expecting(Trigger::NoPath, &[5]), [4, 5, 6]);
}

#[test]
fn candidates_that_the_host_does_not_come_to_throw_their_copies_away_when_they_know() {
    let blocks = Blocks { trigger: Trigger::NoPath, ..proactive(Buffer::packets(100)) };
    let tree = handover(blocks, 100);
    assert_eq!(tree.missing(0, 200), [0_u32; 0]);
    for other in [4, 6] {
        let counters = tree.router(other).buffer_counters();
        assert!(counters.kept >= 15 && counters.copies == counters.kept, "{counters:?}");
        assert_eq!(tree.router(other).route(tree.now, host_address(0)), None);
    }
    // A candidate that nobody comes to waits for as long as is configured.
    let scheme = Scheme::Blocks(Blocks { candidate_lifetime: ms(300), ..blocks });
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 100, ms(10), 100);
    tree.announce_at(at(200), 0, &[5]);
    tree.run_until(at(3000));
    assert_eq!((tree.missing(0, 100).len(), tree.duplicates(0)), (0, 0));
    let kept = tree.router(5).buffer_counters();
    assert!((29..=31).contains(&kept.kept) && kept.copies == kept.kept, "{kept:?}");
}

#[test]
fn an_announcement_that_nobody_can_act_on_has_no_effect() {
    let scheme = Scheme::Blocks(proactive(Buffer::NONE));
    let mut tree = Tree::new(&even(), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.announce_at(at(100), 0, &[3]);
    tree.run_until(at(200));
    assert_eq!(tree.router(3).counters().messages_dropped(MessageDrop::WrongStation), 1);
}

#[test]
fn routes_last_while_the_host_renews_them_and_no_longer() {
    let mut tree = Tree::new(&even(), 1, Scheme::Blocks(Blocks::default()));
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(60_000));
    assert_eq!(tree.routes(0).iter().flatten().count(), 3);
    let counts = |tree: &Tree| (0..7).map(|router| tree.router(router).route_count()).sum::<usize>();
    tree.detach_at(at(60_000), 0, 3);
    tree.run_until(at(70_000));
    assert_eq!((tree.routes(0).iter().flatten().count(), counts(&tree)), (0, 0));
    // Nothing is left to wake up for but what was remembered against replays.
    tree.run_until(at(90_000));
    assert!((0..7).all(|router| tree.router(router).next_timeout().is_none()));
}

#[test]
fn a_hundred_handovers_without_a_gap_lose_nothing_and_give_twice_only_what_the_scheme_says() {
    let blocks =
        Blocks { trigger: Trigger::Source, lead: ms(50), buffer: Buffer::packets(50), ..Blocks::default() };
    let scheme = Scheme::Blocks(blocks);
    // On an uneven tree: 3 is 3 ms below the gateway, 4 is 9 ms, 5 is 12 ms and 6 is 6 ms.
    let mut tree = Tree::new(&uneven([0, 2, 5, 1, 7, 7, 1]), 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.stream(0, 100, ms(7), 15_000);
    let stations = [3, 5, 4, 6];
    for n in 0..100 {
        let (old, new) = (stations[n % 4], stations[(n + 1) % 4]);
        tree.hard(&scheme, at(1000 + n as u64 * 1000) + ms(1) / 2, 0, old, new, ms(0));
    }
    tree.run_until(at(200_000));
    assert_eq!(tree.missing(0, 15_000), [0_u32; 0]);
    // What came between announcement and handover, 50 ms, and the difference of the paths, 9 ms, at one packet in 7 ms.
    assert!(tree.duplicates(0) <= 100 * (50 + 9_usize).div_ceil(7), "{}", tree.duplicates(0));
}

#[test]
fn a_soft_handover_with_bicast_loses_nothing_a_hundred_times() {
    let scheme = Scheme::Blocks(Blocks { bicast: ms(40), ..Blocks::default() });
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
    let duplicates = tree.duplicates(0);
    assert!((1..=100 * 40_usize.div_ceil(7)).contains(&duplicates), "{duplicates}");
}

#[test]
fn a_table_that_is_full_refuses_others_and_serves_those_it_has() {
    let scheme = Scheme::Blocks(Blocks::default());
    let mut tree = Tree::with(&even(), 5, scheme, room_for(2));
    for host in 0..5 {
        tree.attach_at(at(host as u64), host, 3);
    }
    tree.run_until(at(20_000));
    assert_eq!(tree.router(0).route_count(), 2);
    assert!(tree.routes(0).iter().flatten().count() == 3 && tree.routes(4).iter().flatten().count() == 0);
    assert!(tree.router(3).counters().messages_dropped(MessageDrop::TableFull) > 0);
}

#[test]
fn the_same_moves_have_the_same_outcome() {
    let outcome = || {
        let tree = handover(Blocks { trigger: Trigger::NoPath, ..proactive(Buffer::packets(9)) }, 77);
        (tree.delivered(0), tree.events, tree.heard)
    };
    assert_eq!(outcome(), outcome());
}
