//! What a mobile node says that it has received, and what a home agent leaves out of its replay for it.

use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use careof_base::Instant;

use super::script::{FIRST, MOBILE, Script};
use crate::{Config, Place, Replay};

fn home_agent() -> Script {
    Script::new(Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) })
}

#[test]
fn what_the_mobile_node_says_that_it_has_is_not_sent_again() {
    // Its acknowledgement of the first two was lost with the path.
    let sent = "    0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep\n";
    let mut script = home_agent();
    script.run(sent);
    script.run(
        "  900  path 2 lost has 2000
           900  > release 2000+1000
           950  from mobile ack 3000           -> pass
                = kept 0",
    );
    // What it cannot have, or has said not to have, is nothing that it has said.
    for nonsense in ["9000", "4294966296"] {
        let mut script = home_agent();
        script.run(sent);
        script.run(&format!(
            "  900  path 2 lost has {nonsense}
               900  > release 0+1000
               900  > release 1000+1000
               900  > release 2000+1000"
        ));
    }
}

#[test]
fn a_replay_begins_where_the_mobile_node_says_if_acknowledgements_take_another_way() {
    home_agent().run(
        "    0  path 1 rtt 100
             0  syn
           100  for mobile 0+1000              -> pass keep
           800  for mobile 1000+1000           -> pass keep
           810  for mobile 2000+1000           -> pass keep
           900  path 2 lost has 2000
           900  > release 2000+1000",
    );
}

#[test]
fn originals_that_the_mobile_node_says_it_would_refuse_are_left_out() {
    home_agent().run(
        "    0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           330  for mobile 1000+1000 again     -> pass keep
           900  path 2 lost has 1000 echo 300
           900  > release 1000+1000 again",
    );
}

#[test]
fn a_mobile_node_tells_of_the_flows_that_it_has_just_received() {
    let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::MobileNode) };
    let mut script = Script::new(config);
    script.run(
        "    0  syn
             0  from peer ack 0                -> pass
            10  for mobile 0+1000              -> pass
            10  from mobile ack 1000 echo 10   -> pass
          1000  for mobile 0+500 flow 2        -> pass
          1000  from mobile ack 500 flow 2     -> pass",
    );
    let told = |script: &Script, ms| {
        let data = script.assistant.received_data(Instant::from_millis(ms), MOBILE);
        let flows = data.flows();
        flows.map(|flow| (flow.mobile_port, flow.ack.bytes_since(FIRST), flow.echo)).collect::<Vec<_>>()
    };
    assert_eq!(told(&script, 1_500), [(40_001, 500, None), (40_000, 1_000, Some(10))]);
    assert_eq!(told(&script, 2_500), [(40_001, 500, None)], "what is old has been acknowledged");
    assert_eq!(told(&script, 3_500), []);
    let nobody = script.assistant.received_data(Instant::from_millis(1_500), IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert!(nobody.is_empty());
}
