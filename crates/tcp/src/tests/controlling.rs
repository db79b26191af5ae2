//! Congestion controls other than Reno's, as packet scripts: what a loss leaves of the window.

use alloc::string::String;
use core::time::Duration;

use super::script::{Peer, Script, plain};
use crate::{Config, CongestionControl, InitialWindow, Variant};

/// Ten segments in flight.
fn ten(variant: Variant, congestion: CongestionControl) -> Script {
    let sack = variant == Variant::Sack;
    let config = Config { variant, congestion, sack, initial_window: InitialWindow::Segments(10), ..plain() };
    let mut script = Script::connected(config, &Peer { sack, ..Peer::default() });
    let mut text = String::from("0 write 100000\n");
    for segment in 0..10 {
        text += &alloc::format!("0 > {}+1000\n", segment * 1_000);
    }
    script.play(&text);
    script
}

#[test]
fn cubic_keeps_seven_tenths_of_the_flight() {
    ten(Variant::NewReno, CongestionControl::Cubic).play(
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
         = ssthresh 7 cwnd 10 phase fast-recovery
    # Everything was there but the first.
    200  < ack 10000
    200  > 10000+1000
    200  > 11000+1000
         = cwnd 2 phase open",
    );
    ten(Variant::Sack, CongestionControl::Cubic).play(
        "
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-3000
    102  < ack 0 sack 1000-4000
    102  > 0+1000 again
         = ssthresh 7 cwnd 7",
    );
}

#[test]
fn after_a_timeout_cubic_slow_starts_to_seven_tenths() {
    ten(Variant::NewReno, CongestionControl::Cubic).play(
        "
    300  > 0+1000 again
         = ssthresh 7 cwnd 1 phase loss",
    );
}

#[test]
fn westwood_keeps_what_the_path_delivered() {
    // Nothing was measured yet: two segments.
    ten(Variant::NewReno, CongestionControl::Westwood).play(
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
         = ssthresh 2 cwnd 5",
    );
}

#[test]
fn vegas_opens_the_window_while_nothing_waits_and_closes_it_when_much_does() {
    let config = Config {
        congestion: CongestionControl::Vegas,
        initial_window: InitialWindow::Segments(4),
        initial_ssthresh: 2_000,
        rto_min: Some(Duration::from_secs(2)),
        ..plain()
    };
    let mut script = Script::connected(config, &Peer::default());
    script.play(
        "
      0  write 100000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    100  < ack 1000
    100  > 4000+1000
    101  < ack 2000
    101  > 5000+1000
    102  < ack 3000
    102  > 6000+1000
    103  < ack 4000
    103  > 7000+1000
         = cwnd 4.25
    # The first acknowledgement was too little to compare with. A round of 100 ms is over, and that is the shortest: one more.
    200  < ack 5000
    200  > 8000+1000
    200  > 9000+1000
         = cwnd 5
    # 200 ms: of five segments two and a half wait. That is between one and three.
    302  < ack 6000
    302  > 10000+1000
    302  < ack 7000
    302  > 11000+1000
    303  < ack 8000
    303  > 12000+1000
    400  < ack 9000
    400  > 13000+1000
         = cwnd 5
    # 300 ms: three and a third.
    600  < ack 10000
    600  > 14000+1000
    602  < ack 11000
    602  > 15000+1000
    602  < ack 12000
    602  > 16000+1000
    603  < ack 13000
    603  > 17000+1000
         = cwnd 5
    700  < ack 14000
         = cwnd 4",
    );
}
