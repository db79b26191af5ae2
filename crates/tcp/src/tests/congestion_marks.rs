//! Explicit congestion notification (RFC 3168), from the handshake to the answer of a mark.

use core::time::Duration;

use careof_base::Instant;

use super::script::{Peer, plain, play};
use super::world::{CLIENT, SERVER, World};
use crate::{Config, InitialWindow, Variant};

fn config(variant: Variant) -> Config {
    Config {
        variant,
        ecn: true,
        sack: variant == Variant::Sack,
        initial_window: InitialWindow::Segments(4),
        ..plain()
    }
}

fn peer() -> Peer {
    Peer { ecn: true, sack: true, ..Peer::default() }
}

#[test]
fn data_is_capable_when_both_ends_take_part() {
    play(
        config(Variant::NewReno),
        &peer(),
        "
      0  write 2000
      0  > 0+1000 ect
      0  > 1000+1000 ect
    # What is repeated is not.
    300  > 0+1000 again",
    );
    // The peer does not take part.
    let script = play(
        config(Variant::NewReno),
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000",
    );
    assert!(!script.connection.ecn.on);
}

#[test]
fn a_mark_halves_the_window_once_in_a_window_of_data() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let script = play(
            config(variant),
            &peer(),
            "
      0  write 30000
      0  > 0+1000 ect
      0  > 1000+1000 ect
      0  > 2000+1000 ect
      0  > 3000+1000 ect
    # The first segment met congestion: half of what is in flight, nothing is repeated.
    100  < ack 1000 ece
         = cwnd 2 ssthresh 2 phase open
    # Until the peer has seen CWR it goes on echoing; that is the same congestion.
    101  < ack 2000 ece
         = cwnd 2
    102  < ack 3000 ece
         = cwnd 2
    102  > 4000+1000 ect cwr
    103  < ack 4000 ece
         = cwnd 2
    103  > 5000+1000 ect
    # The peer has seen it.
    202  < ack 5000
         = cwnd 2.5
    202  > 6000+1000 ect
    # New congestion.
    203  < ack 6000 ece
         = cwnd 2 ssthresh 2
    203  > 7000+1000 ect cwr",
        );
        assert_eq!(script.connection.counters().ecn_reductions, 2, "{variant}");
        assert_eq!(script.connection.counters().segments_retransmitted, 0, "{variant}");
    }
}

#[test]
fn a_loss_repaired_in_the_window_answers_its_marks_too() {
    play(
        config(Variant::NewReno),
        &peer(),
        "
      0  write 30000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    100  < ack 0
    101  < ack 0
    102  < ack 0 ece
    102  > 0+1000 again
         = ssthresh 2
    102  > 4000+1000 cwr
    202  < ack 4000 ece
         = ssthresh 2 cwnd 2
    202  > 5000+1000",
    );
}

#[test]
fn marks_are_echoed_until_the_sender_says_that_it_slowed_down() {
    let script = play(
        config(Variant::NewReno),
        &peer(),
        "
      0  < 0+1000
      0  > ack 1000
     10  < 1000+1000 ce
     10  > ece ack 2000
     20  < 2000+1000
     20  > ece ack 3000
    # CWR and a new mark at once: that is new congestion.
     30  < 3000+1000 cwr ce
     30  > ece ack 4000
     40  < 4000+1000 cwr
     40  > ack 5000
     50  < 5000+1000
     50  > ack 6000",
    );
    assert_eq!(script.connection.counters().marks_received, 2);
}

#[test]
fn marks_alone_keep_a_transfer_going_without_a_retransmission() {
    let end = |variant| Config { initial_window: InitialWindow::Rfc6928, ..config(variant) };
    for variant in [Variant::NewReno, Variant::Sack] {
        let mut world = World::new(end(variant), end(variant), Duration::from_millis(30));
        world.mark_every = Some(40);
        world.transfer(600_000, Instant::from_secs(1_000));
        let [client, server] = &world.ends;
        assert_eq!(server.received(), 600_000);
        assert!(server.counters().marks_received > 10, "{:?}", server.counters());
        let reductions = client.counters().ecn_reductions;
        assert!((5..=server.counters().marks_received).contains(&reductions), "{reductions}");
        assert_eq!(client.counters().segments_retransmitted, 0);
        assert_eq!(world.ends[CLIENT].counters().timeouts + world.ends[SERVER].counters().timeouts, 0);
    }
}
