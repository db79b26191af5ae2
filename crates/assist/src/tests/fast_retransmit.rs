//! Duplicate acknowledgements on reconnection.

use super::script::Script;
use crate::{Config, FastRetransmit, Place, Sack};

fn duplicating(config: FastRetransmit) -> Config {
    Config { fast_retransmit: Some(config), ..Config::none(Place::MobileNode) }
}

#[test]
fn three_equal_acknowledgements_after_a_short_outage() {
    let mut script = Script::new(duplicating(FastRetransmit::DEFAULT));
    script.run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            20  down 1
           150  path 2
           150  > ack 1000 win 900 for peer
           150  > ack 1000 win 900 for peer
           150  > ack 1000 win 900 for peer
           160  path 2                          # registered again
           170  from mobile ack 1000 win 900   -> pass",
    );
    assert_eq!(script.assistant.counters().acks_injected, 3);
}

#[test]
fn a_long_outage_sends_none_unless_any_is_asked_for() {
    let outage = "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            20  down 1
           221  path 2";
    Script::new(duplicating(FastRetransmit::DEFAULT)).run(outage);
    let any = FastRetransmit { longest_outage: None, acks: 1, ..FastRetransmit::DEFAULT };
    let mut script = Script::new(duplicating(any));
    script.run(&alloc::format!("{outage}\n 221  > ack 1000 win 900 for peer"));
}

#[test]
fn without_an_outage_none() {
    Script::new(duplicating(FastRetransmit { longest_outage: None, ..FastRetransmit::DEFAULT })).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            20  path 2 alive",
    );
}

#[test]
fn stale_sack_blocks_are_sent_when_they_are_asked_for() {
    let outage = "    0  path 1
             0  syn
            10  for mobile 0+1000                        -> pass
            11  for mobile 2000+1000                     -> pass
            12  from mobile ack 1000 win 900 sack 2000-3000 -> pass
            20  down 1
           100  up 1";
    let one = FastRetransmit { acks: 1, ..FastRetransmit::DEFAULT };
    Script::new(duplicating(one))
        .run(&alloc::format!("{outage}\n 100 > ack 1000 win 900 for peer sack 2000-3000"));
    let none = FastRetransmit { sack: Sack::None, ..one };
    Script::new(duplicating(none)).run(&alloc::format!("{outage}\n 100 > ack 1000 win 900 for peer"));
}

#[test]
fn the_mobile_node_s_own_sender_gets_them_if_it_waits() {
    let one = FastRetransmit { acks: 1, ..FastRetransmit::DEFAULT };
    Script::new(duplicating(one)).run(
        "    0  path 1
             0  syn
             5  from mobile ack 0              -> pass
            10  for peer 0+1000                -> pass
            20  from peer ack 1000 win 700     -> pass
            30  down 1
            90  up 1                            # nothing is owed
           100  for peer 1000+1000             -> pass
           110  down 1
           190  up 1
           190  > ack 1000 win 700 for mobile",
    );
}

#[test]
fn a_flow_met_in_the_middle_repeats_the_window_as_it_was() {
    let one = FastRetransmit { acks: 1, ..FastRetransmit::DEFAULT };
    Script::new(duplicating(one)).run(
        "    0  path 1
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            20  down 1
            90  up 1
            90  > ack 1000 win 900 for peer",
    );
}

#[test]
fn a_peer_that_sends_straight_is_told_when_it_knows_where_to() {
    let begin = "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            20  down 1
           100  outdated
           100  path 2";
    let acks = |at: u64| alloc::format!("{at}  > ack 1000 win 900 for peer\n").repeat(3);
    Script::new(duplicating(FastRetransmit::DEFAULT))
        .run(&alloc::format!("{begin}\n180 updated\n{}", acks(180)));
    // Its outage has been too long by then.
    Script::new(duplicating(FastRetransmit::DEFAULT)).run(&alloc::format!("{begin}\n221 updated"));
    // Once, and not after the next loss.
    let mut script = Script::new(duplicating(FastRetransmit::DEFAULT));
    script.run(&alloc::format!("{begin}\n180 updated\n{}\n181 updated\n190 down 2\n200 updated", acks(180)));
    let mut script = Script::new(duplicating(FastRetransmit::DEFAULT));
    script.run(&alloc::format!("{begin}\n150 down 2\n180 updated"));
}
