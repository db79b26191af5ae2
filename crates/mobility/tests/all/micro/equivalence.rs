//! Each protocol's handover is a setting of the building blocks: both bring a mobile host the same packets.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::micro::{
    Blocks, Buffer, CellularHandover, CellularIp, Hawaii, MulticastMobility, PathScheme, Scheme, Trigger,
};

use super::multicast::multicast;
use super::tree::{Place, Tree, at, even, ms, uneven};

/// A handover with a gap, or with an overlap.
#[derive(Clone, Copy, Debug)]
enum Change {
    Hard(u64),
    Soft(u64),
}

/// Walks through four cells with packets 3 ms apart, and says what came, each packet as often as it came.
fn walk(places: &[Place], scheme: Scheme, change: Change) -> Vec<u32> {
    let mut tree = Tree::new(places, 1, scheme);
    tree.attach_at(Instant::ZERO, 0, 3);
    // A host of Cellular IP is idle until it has sent or received something.
    tree.send_at(1, 0);
    tree.stream(0, 100, ms(3), 2000);
    for (n, (old, new)) in [(3, 5), (5, 6), (6, 4)].into_iter().enumerate() {
        let time = at(1000 + 1500 * n as u64) + Duration::from_micros(300);
        match change {
            Change::Hard(gap) => tree.hard(&scheme, time, 0, old, new, ms(gap)),
            Change::Soft(overlap) => tree.soft(&scheme, time, 0, old, new, ms(overlap)),
        }
    }
    tree.run_until(at(20_000));
    let mut delivered = tree.delivered(0);
    delivered.sort_unstable();
    delivered
}

const CHANGES: [Change; 6] = [
    Change::Hard(0),
    Change::Hard(60),
    Change::Hard(400),
    Change::Soft(10),
    Change::Soft(100),
    Change::Soft(400),
];

/// Both bring the same packets, as often as each other, or each once where the two are not in the same places at the same times.
fn are_alike(named: Scheme, blocks: Blocks, changes: &[Change], counts: bool) {
    for change in changes {
        for places in [even(), uneven([0, 2, 5, 1, 7, 7, 1])] {
            let (mut one, mut other) =
                (walk(&places, named, *change), walk(&places, Scheme::Blocks(blocks), *change));
            if !counts {
                one.dedup();
                other.dedup();
            }
            let differ = |a: &[u32], b: &[u32]| -> Vec<u32> {
                a.iter().filter(|id| !b.contains(id)).copied().collect()
            };
            let only = (differ(&one, &other), differ(&other, &one));
            assert!(one == other, "{change:?} with {named:?}: only one of them brings {only:?}");
        }
    }
}

#[test]
fn a_hard_handover_of_cellular_ip_is_no_block_at_all() {
    are_alike(Scheme::CellularIp(CellularIp::default()), Blocks::default(), &CHANGES, true);
}

#[test]
fn a_semi_soft_handover_is_a_source_trigger_without_a_buffer() {
    let handover = CellularHandover::SemiSoft { delay: Duration::ZERO, packets: 0, lead: ms(60) };
    let named = Scheme::CellularIp(CellularIp { handover, ..CellularIp::default() });
    let blocks = Blocks { trigger: Trigger::Source, lead: ms(60), ..Blocks::default() };
    are_alike(named, blocks, &CHANGES, true);
}

#[test]
fn unf_is_no_block_at_all() {
    let named = Scheme::Hawaii(Hawaii::default());
    are_alike(named, Blocks::default(), &CHANGES, true);
}

#[test]
fn mnf_is_bicast_for_as_long_as_the_old_station_takes_to_answer() {
    let named = Scheme::Hawaii(Hawaii { scheme: PathScheme::MulticastNonForwarding, ..Hawaii::default() });
    // At most 12 ms from a crossover router to a station, and back.
    let blocks = Blocks { bicast: ms(24), ..Blocks::default() };
    are_alike(named, blocks, &CHANGES, false);
}

#[test]
fn msf_and_ssf_are_a_buffer_at_the_old_station_that_forwards() {
    let blocks = Blocks { forward: ms(1000), buffer: Buffer::packets(1000), ..Blocks::default() };
    for scheme in [PathScheme::MultipleStreamForwarding, PathScheme::SingleStreamForwarding] {
        let buffer = Buffer::packets(1000);
        let named = Scheme::Hawaii(Hawaii { scheme, buffer, ..Hawaii::default() });
        are_alike(named, blocks, &CHANGES, true);
    }
}

#[test]
fn joining_and_leaving_is_bicast_for_as_long_as_both_are_joined() {
    // A station that leaves at once has the whole path pruned: the next one then joins at the root instead of at the crossover router.
    let leave_delay = ms(1000);
    let named = Scheme::Multicast(MulticastMobility { leave_delay, ..multicast() });
    are_alike(named, Blocks::default(), &[Change::Hard(0), Change::Hard(60), Change::Hard(400)], true);
    let named = Scheme::Multicast(multicast());
    for overlap in [10, 100, 400] {
        // The old station leaves when the host does.
        let blocks = Blocks { bicast: ms(overlap), ..Blocks::default() };
        are_alike(named, blocks, &[Change::Soft(overlap)], false);
    }
}

#[test]
fn candidates_that_join_are_a_trigger_with_a_buffer_or_without() {
    for trigger in [Trigger::Source, Trigger::Path { candidates: 2 }, Trigger::NoPath] {
        for buffer in [Buffer::NONE, Buffer::packets(1000)] {
            let lead = ms(80);
            let named = Scheme::Multicast(MulticastMobility { trigger, lead, buffer, ..multicast() });
            let blocks = Blocks { trigger, lead, buffer, ..Blocks::default() };
            // In an overlap, M&M's old station sends until the host leaves.
            are_alike(named, blocks, &CHANGES, false);
        }
    }
}
