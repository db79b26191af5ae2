//! A neighbour that lies changes nobody's routes, and fills no table past its bound.

use careof_base::Instant;
use careof_mobility::micro::{Blocks, MessageDrop, Scheme};
use careof_wire::micro::{Body, MicroMessage};
use proptest::prelude::*;

use super::model;
use super::tree::{CELL, Tree, UP, at, clock, even, host_address, network_key, room_for, router_address};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn whatever_a_liar_says_the_others_get_the_same_packets_by_the_same_routes(
        which in 0..model::schemes().len() as u8, data in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let data = [&[which][..], &data].concat();
        let tally = model::run(&data);
        prop_assert_eq!(tally, model::run(&data), "the same bytes do the same");
    }
}

#[test]
fn the_model_does_what_it_is_made_for() {
    let schemes = model::schemes().len();
    let mut random = 1_u32;
    let mut byte = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    for which in 0..schemes {
        let mut data = vec![which as u8];
        data.extend((0..3000).map(|_| byte()));
        let tally = model::run(&data);
        assert!(tally.lies > 50 && tally.delivered > 50, "{which}: {tally:?}");
        assert!(tally.handovers > 0 && tally.routes > 1, "{which}: {tally:?}");
    }
}

fn message(mobile: usize, station: usize, origin: usize, body: Body) -> MicroMessage {
    MicroMessage {
        mobile: host_address(mobile),
        station: router_address(station),
        origin: host_address(origin),
        timestamp: clock().at(at(100)).to_bits(),
        body,
    }
}

/// A tree in which host 0 is at station 3, at 100 ms.
fn tree() -> Tree {
    let mut tree = Tree::with(&even(), 2, Scheme::Blocks(Blocks::default()), room_for(4));
    tree.attach_at(Instant::ZERO, 0, 3);
    tree.run_until(at(100));
    tree
}

#[test]
fn each_lie_is_counted_by_what_is_wrong_with_it() {
    let (own, victim) =
        (network_key().mobile_key(host_address(1)), network_key().mobile_key(host_address(0)));
    let attach = |mobile, station, origin| message(mobile, station, origin, Body::Attach);
    let mut tree = tree();
    let genuine = tree.heard.iter().find(|(station, _)| *station == 3).unwrap().1.clone();
    let expect = Body::Expect { candidates: vec![router_address(5)] };
    let outside = MicroMessage { mobile: [192, 0, 2, 1].into(), ..attach(1, 5, 1) };
    let old =
        MicroMessage { timestamp: clock().at(at(0)).to_bits().wrapping_sub(8 << 32), ..attach(1, 5, 1) };
    let cases = [
        // For somebody else, with a key of one's own.
        (5, CELL, host_address(0), own.sign(&attach(0, 5, 0)), MessageDrop::BadAuthenticator),
        (5, CELL, host_address(1), own.sign(&attach(0, 5, 1)), MessageDrop::WrongSource),
        (5, CELL, host_address(1), victim.sign(&attach(0, 5, 0)), MessageDrop::WrongSource),
        // What was heard, in the same cell and in another.
        (3, CELL, host_address(0), genuine.clone(), MessageDrop::Replayed),
        (5, CELL, host_address(0), genuine.clone(), MessageDrop::WrongStation),
        (1, UP, host_address(0), genuine, MessageDrop::WrongStation),
        (5, CELL, host_address(1), own.sign(&old), MessageDrop::Replayed),
        // What only routers say, and from where none of them is.
        (3, CELL, host_address(1), message(0, 3, 1, expect).emit(b"guess"), MessageDrop::WrongInterface),
        (0, UP, host_address(1), own.sign(&attach(1, 5, 1)), MessageDrop::WrongInterface),
        (1, UP, host_address(1), message(0, 3, 1, Body::Join).emit(b"guess"), MessageDrop::WrongInterface),
        (5, CELL, host_address(1), own.sign(&outside), MessageDrop::NotOfDomain),
        (5, CELL, host_address(1), vec![1; 40], MessageDrop::Malformed),
    ];
    let before = tree.routes(0);
    for (n, (router, from, source, payload, reason)) in cases.into_iter().enumerate() {
        let count = |tree: &Tree| tree.router(router).counters().messages_dropped(reason);
        let dropped = count(&tree);
        tree.inject(router, from, source, &payload);
        assert_eq!(count(&tree), dropped + 1, "lie {n}, for {reason:?}");
        assert_eq!(tree.routes(0), before);
    }
}

#[test]
fn a_flood_of_ones_own_messages_is_rationed_and_others_are_served_meanwhile() {
    let mut tree = tree();
    let key = network_key().mobile_key(host_address(1));
    for n in 0..1000 {
        let mut attach = message(1, 3, 1, Body::Attach);
        attach.timestamp += n;
        tree.inject(3, CELL, host_address(1), &key.sign(&attach));
    }
    assert_eq!(tree.router(3).counters().messages_dropped(MessageDrop::OverShare), 1000 - 32);
    tree.attach_at(at(101), 0, 3);
    tree.run_until(at(200));
    assert_eq!(tree.router(0).counters().messages_dropped_total(), 0);
    assert!(tree.router(0).counters().received <= 2 + 32 + 1);
}

#[test]
fn addresses_without_a_key_fill_no_table() {
    let mut tree = tree();
    let key = network_key().mobile_key(host_address(1));
    for n in 0..1000_u16 {
        let [high, low] = n.to_be_bytes();
        let mobile = [10, 9, high + 1, low].into();
        let attach = MicroMessage { mobile, origin: mobile, ..message(1, 5, 1, Body::Attach) };
        tree.inject(5, CELL, mobile, &key.sign(&attach));
    }
    assert_eq!((tree.router(5).route_count(), tree.router(5).author_count()), (0, 0));
}
