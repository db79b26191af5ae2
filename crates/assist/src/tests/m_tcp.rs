//! The last byte as a lever.

use super::script::Script;
use crate::{AckHold, Config, ConfigError, Kind, Place};

fn levering() -> Config {
    Config { m_tcp: true, ..Config::none(Place::ForeignAgent) }
}

#[test]
fn silence_closes_the_window_with_the_last_byte_and_the_mobile_node_s_return_opens_it() {
    Script::new(levering()).run(
        "    0  path 1 rtt 200
             0  syn
             5  from mobile ack 0 win 900      -> pass
            10  for mobile 0+1000              -> pass
            11  for mobile 1000+1000           -> pass
           210  from mobile ack 1000 win 900   -> pass ack 999
           610  > ack 1000 win 0 for peer
          1000  for mobile 1000+1000 again     -> pass
          2000  from mobile ack 2000 win 800   -> pass ack 1999
          2400  > ack 2000 win 800 for peer",
    );
}

#[test]
fn a_path_that_is_lost_closes_at_once_and_one_that_is_usable_opens() {
    Script::new(levering()).run(
        "    0  path 1 rtt 200
             0  syn
             5  from mobile ack 0 win 900      -> pass
            10  for mobile 0+1000              -> pass
            11  for mobile 1000+1000           -> pass
           210  from mobile ack 1000 win 900   -> pass ack 999
           300  down 1
           300  > ack 1000 win 0 for peer
          2000  path 2 rtt 100
          2000  > ack 1000 win 900 for peer",
    );
}

#[test]
fn without_a_round_trip_or_a_scale_nothing_is_kept_back() {
    Script::new(levering()).run(
        "    0  path 1
             0  syn
             5  from mobile ack 0              -> pass
            10  from mobile ack 0              -> pass",
    );
    Script::new(levering()).run(
        "    0  path 1 rtt 200
             5  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass
            20  from mobile ack 1000           -> pass
          9000  down 1",
    );
}

#[test]
fn two_that_rewrite_acknowledgements_are_refused() {
    let both = Config { ack_hold: Some(AckHold::DEFAULT), ..levering() };
    assert_eq!(both.check(), Err(ConfigError::BothRewrite { first: Kind::AckHold, second: Kind::MTcp }));
    let place = Config { place: Place::MobileNode, ..levering() };
    assert_eq!(place.check(), Err(ConfigError::NotOnTheMobileNode { assist: Kind::MTcp }));
}
