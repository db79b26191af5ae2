//! Handshakes and their options.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, Segment, SeqNumber};

use super::world::{CLIENT, SERVER, World};
use crate::{Config, Connection, Event, Profile, Role, State, Variant};

fn world(client: Config, server: Config) -> World {
    World::new(client, server, Duration::from_millis(10))
}

fn run(client: Config, server: Config) -> World {
    let mut world = world(client, server);
    world.run_for(5);
    world
}

#[test]
fn three_segments_make_a_connection() {
    let world = run(Config::default(), Config::default());
    let flags: alloc::vec::Vec<Flags> = world.trace.iter().map(|sent| sent.segment.flags).collect();
    assert_eq!(flags, [Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK]);
    for end in [CLIENT, SERVER] {
        assert_eq!(world.events[end], [Event::Connected]);
        assert!(world.ends[end].is_established());
        assert_eq!(world.ends[end].next_timeout(), None);
    }
    // Both took the handshake as a round-trip sample.
    assert_eq!(world.ends[SERVER].snapshot().srtt, Some(Duration::from_millis(20)));
}

#[test]
fn an_option_is_used_when_both_offer_it() {
    let all = Config {
        variant: Variant::Sack,
        sack: true,
        timestamps: true,
        window_scaling: true,
        receive_window: 1 << 20,
        ..Config::default()
    };
    let none = Config::default();
    let world = run(all.clone(), all.clone());
    for end in &world.ends {
        assert_eq!((end.variant(), end.snapshot().mss), (Variant::Sack, 1_448));
    }
    let syn_ack = world.trace[1].segment;
    assert_eq!((syn_ack.window_scale, syn_ack.sack_permitted), (Some(5), true));
    // The window of a SYN is not scaled; that of the next segment is.
    assert_eq!((syn_ack.window, world.trace[2].segment.window), (65_535, 32_768));

    for (client, server) in [(all.clone(), none.clone()), (none, all)] {
        let world = run(client, server);
        let syn_ack = world.trace[1].segment;
        assert_eq!((syn_ack.window_scale, syn_ack.sack_permitted, syn_ack.timestamps), (None, false, None));
        for end in &world.ends {
            assert_eq!((end.variant(), end.snapshot().mss), (Variant::NewReno, 1_460));
        }
    }
}

#[test]
fn the_smaller_segment_size_wins() {
    let world = run(Config { mss: 536, ..Config::default() }, Config::default());
    for end in &world.ends {
        assert_eq!(end.snapshot().mss, 536);
    }
}

#[test]
fn a_peer_that_names_no_segment_size_gets_536_bytes() {
    let mut server = Connection::new(Config::default(), Role::Passive, 1, 2, SeqNumber(5)).unwrap();
    server.open(Instant::ZERO);
    server.handle_segment(Instant::ZERO, &Segment { flags: Flags::SYN, ..Segment::default() });
    assert_eq!(server.snapshot().mss, 536);
}

#[test]
fn lost_segments_of_the_handshake_are_repeated() {
    // Everything of the first 3 seconds is lost: SYNs leave at 0, 1 and 3 s.
    let mut world = world(Config::default(), Config::default());
    world.outages = [(Instant::ZERO, Instant::from_millis(2_999))].into();
    world.run_for(10);
    assert!(world.ends[CLIENT].is_established());
    assert_eq!(world.ends[CLIENT].counters().timeouts, 2);

    // Only the SYN-ACK is lost; then only the last acknowledgement, which data repeats.
    for (from, to) in [(5, 15), (15, 25)] {
        let mut world = self::world(Config::default(), Config::default());
        world.outages = [(Instant::from_millis(from), Instant::from_millis(to))].into();
        world.ends[CLIENT].write(10_000);
        world.run_for(10);
        assert_eq!(world.ends[SERVER].received(), 10_000);
    }
}

#[test]
fn a_repeated_syn_is_answered_at_once() {
    for config in [Config::default(), Config::from(Profile::Linux)] {
        let mut server = Connection::new(config, Role::Passive, 1, 2, SeqNumber(5)).unwrap();
        server.open(Instant::ZERO);
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        let mut answers = 0;
        // Long before the server's own timer.
        for at in [Instant::ZERO, Instant::from_micros(200_000)] {
            server.handle_segment(at, &syn);
            while let Some(sent) = server.poll_transmit(at) {
                assert_eq!(sent.segment.flags, Flags::SYN.with(Flags::ACK));
                answers += 1;
            }
        }
        assert_eq!(answers, 2);
    }
}

#[test]
fn both_open_at_once() {
    let make = |port: (u16, u16), iss| {
        let mut end =
            Connection::new(Config::default(), Role::Active, port.0, port.1, SeqNumber(iss)).unwrap();
        end.open(Instant::ZERO);
        end
    };
    let mut ends = [make((1, 2), 100), make((2, 1), 900)];
    let mut flying: alloc::vec::Vec<(usize, Segment)> = alloc::vec::Vec::new();
    for round in 0..10_u64 {
        let now = Instant::from_millis(10 * round);
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(sent) = end.poll_transmit(now) {
                flying.push((1 - from, sent.segment));
            }
        }
        for (to, segment) in flying.drain(..) {
            ends[to].handle_segment(now + Duration::from_millis(10), &segment);
        }
    }
    for end in &ends {
        assert_eq!(end.state(), State::Established);
    }
    ends[0].write(100);
    let now = Instant::from_secs(1);
    let data = ends[0].poll_transmit(now).unwrap();
    ends[1].handle_segment(now, &data.segment);
    assert_eq!(ends[1].received(), 100);
}

#[test]
fn a_closed_or_listening_end_resets_what_does_not_belong() {
    for open in [false, true] {
        let mut end = Connection::new(Config::default(), Role::Passive, 1, 2, SeqNumber(5)).unwrap();
        if open {
            end.open(Instant::ZERO);
        }
        let stray = Segment { flags: Flags::ACK, ack: SeqNumber(4_711), ..Segment::default() };
        end.handle_segment(Instant::ZERO, &stray);
        let reset = end.poll_transmit(Instant::ZERO).unwrap().segment;
        assert_eq!((reset.flags, reset.seq), (Flags::RST, SeqNumber(4_711)));
        assert_eq!(end.counters().dropped_by_state, 1);
        assert_eq!(end.poll_transmit(Instant::ZERO), None);
    }
}

#[test]
fn a_refused_connection_says_so() {
    let mut client = Connection::new(Config::default(), Role::Active, 1, 2, SeqNumber(5)).unwrap();
    client.open(Instant::ZERO);
    client.poll_transmit(Instant::ZERO);
    let refusal = Segment { flags: Flags::RST.with(Flags::ACK), ack: SeqNumber(6), ..Segment::default() };
    client.handle_segment(Instant::ZERO, &refusal);
    assert_eq!(client.poll_event(), Some(Event::Reset));
    assert_eq!((client.state(), client.next_timeout()), (State::Closed, None));
}
