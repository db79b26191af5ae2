//! Local retransmission.

use core::time::Duration;

use super::script::Script;
use crate::{Config, ConfigError, Kind, Place, Replay, Snoop};

fn snooping() -> Config {
    let snoop = Snoop { packets: 100, least_timeout: Duration::from_millis(100) };
    Config { snoop: Some(snoop), ..Config::none(Place::ForeignAgent) }
}

#[test]
fn the_first_duplicate_is_answered_here_and_no_duplicate_goes_on() {
    let mut script = Script::new(snooping());
    script.run(
        "    0  path 1
             0  syn
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
            13  for mobile 3000+1000           -> pass keep
            20  from mobile ack 1000           -> pass
                = kept 3
            22  from mobile ack 1000           -> drop local-repair
            22  > release 1000+1000
            23  from mobile ack 1000           -> drop local-repair
            30  from mobile ack 4000           -> pass
                = kept 0",
    );
    let counters = script.assistant.counters();
    assert_eq!((counters.local_repairs, counters.acks_suppressed), (1, 2));
}

#[test]
fn what_is_not_acknowledged_in_time_is_sent_again_but_not_for_ever() {
    let mut script = Script::new(snooping());
    script.run(
        "    0  path 1
             0  syn
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
           110  > release 0+1000
           210  > release 0+1000
           220  from mobile ack 1000           -> pass
           500  for mobile 1000+1000           -> pass keep
           500  down 1
          3000  up 1
          3000  > release 1000+1000
          3420  > release 1000+1000          # two round trips of 210 ms",
    );
    let mut script = Script::new(snooping());
    script.run(
        "    0  syn
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
           110  > release 0+1000
           210  > release 0+1000
           310  > release 0+1000
           410  > release 0+1000
           510  > release 0+1000
           610  > release 0+1000
           710  > release 0+1000
           810  > release 0+1000
          5000  from mobile ack 0              -> pass",
    );
}

#[test]
fn duplicates_go_through_for_what_the_sender_repeats_itself_or_is_not_here() {
    Script::new(snooping()).run(
        "    0  syn
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 0+1000 again        -> pass
            20  from mobile ack 0              -> pass
            30  from mobile ack 1000           -> pass
            40  from mobile ack 1000           -> drop local-repair
            40  > release 1000+1000
            50  from mobile ack 2000           -> pass
            60  from mobile ack 2000           -> pass",
    );
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    let mut script = Script::new(snooping());
    script.opaque = true;
    script.run(
        "    0  syn
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass
            20  from mobile ack 0              -> pass",
    );
}

#[test]
fn it_keeps_packets_itself_and_not_on_the_mobile_node() {
    let both = Config { replay: Some(Replay::DEFAULT), ..snooping() };
    assert_eq!(both.check(), Err(ConfigError::BothKeep { first: Kind::Replay, second: Kind::Snoop }));
    let place = Config { place: Place::MobileNode, ..snooping() };
    assert_eq!(place.check(), Err(ConfigError::NotOnTheMobileNode { assist: Kind::Snoop }));
}
