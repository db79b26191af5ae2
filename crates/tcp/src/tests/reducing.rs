//! Proportional rate reduction (RFC 9937) in whole recoveries. The printed examples are in `analytic.rs`.

use alloc::string::String;
use core::fmt::Write;

use super::script::{Peer, plain, play};
use crate::{Config, InitialWindow, Variant};

fn config(variant: Variant) -> Config {
    Config {
        variant,
        sack: variant == Variant::Sack,
        prr: true,
        initial_window: InitialWindow::Segments(12),
        ..plain()
    }
}

fn after_twelve_segments(variant: Variant, text: &str) {
    let mut script = String::from("0 write 90000\n");
    for segment in 0..12 {
        let _ = writeln!(script, "0 > {}+1000", segment * 1_000);
    }
    play(config(variant), &Peer { sack: true, ..Peer::default() }, &[&script, text].concat());
}

#[test]
fn a_reduction_ends_at_the_threshold() {
    after_twelve_segments(
        Variant::Sack,
        "
    # The first of 12 is lost; without limited transmit the first two duplicates let nothing go.
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-3000
    102  < ack 0 sack 1000-4000
    102  > 0+1000 again
         = ssthresh 6 cwnd 9 flight 9
    # RecoverFS is 12 - 2: six leave for each ten delivered, rounded up.
    103  < ack 0 sack 1000-5000
    103  > 12000+1000
         = cwnd 9 flight 9
    104  < ack 0 sack 1000-6000
         = cwnd 8 flight 8
    105  < ack 0 sack 1000-7000
    105  > 13000+1000
         = cwnd 8 flight 8
    106  < ack 0 sack 1000-8000
         = cwnd 7 flight 7
    107  < ack 0 sack 1000-9000
         = cwnd 6 flight 6
    # At the threshold: one for one.
    108  < ack 0 sack 1000-10000
    108  > 14000+1000
         = cwnd 6 flight 6
    109  < ack 0 sack 1000-11000
    109  > 15000+1000
    110  < ack 0 sack 1000-12000
    110  > 16000+1000
    202  < ack 12000
         = cwnd 6 ssthresh 6 phase open
    202  > 17000+1000",
    );
}

#[test]
fn without_sack_each_duplicate_stands_for_a_segment() {
    after_twelve_segments(
        Variant::NewReno,
        "
    # The first and the fifth are lost.
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
         = ssthresh 6 cwnd 9 phase fast-recovery
    103  < ack 0
    103  > 12000+1000
         = cwnd 9
    104  < ack 0
         = cwnd 8
    105  < ack 0
    105  > 13000+1000
    106  < ack 0
         = cwnd 7
    107  < ack 0
         = cwnd 6
    108  < ack 0
    108  > 14000+1000
    109  < ack 0
    109  > 15000+1000
         = cwnd 6
    # A partial acknowledgement repairs the next hole; what the duplicates told of is not delivered twice.
    202  < ack 4000
    202  > 4000+1000 again
         = cwnd 6
    302  < ack 12000
         = cwnd 6 ssthresh 6 phase open
    302  > 16000+1000
    302  > 17000+1000",
    );
}
