//! What a replay releases may be lost, too.
//!
//! Packets and paths are those of the other scripts of replays: 1092 bytes on a path of 1092 kbit/s take 8 ms, and four of them fill one of 16 ms with
//! two more.

use alloc::format;
use alloc::string::String;

use super::script::{Over, Script};
use crate::{Config, Place, Replay};

#[test]
fn what_is_released_and_lost_goes_again_when_nothing_is_acknowledged_any_longer() {
    let mut script = String::from("0 syn\n0 from mobile ack 0 -> pass\n");
    for packet in 0..10 {
        script += &format!("1 for mobile {}+1000 -> pass keep\n", 1000 * packet);
    }
    // One arrives. A second later the others are taken for lost; and they go once, for if nothing comes then either, nothing may pass here at all.
    script += "
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 3000+1000
           925  from mobile ack 1000           -> pass
           932  > release 4000+1000
          1940  > release 1000+1000
          1943  > release 2000+1000
          1946  > release 3000+1000
          1949  > release 4000+1000
          1960  from mobile ack 5000           -> pass
          1960  > release 5000+1000
          1963  > release 6000+1000
          1966  > release 7000+1000
          1969  > release 8000+1000";
    let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
    Script::over(Over::Ipv4, config).run(&script);
}

#[test]
fn what_a_path_delivers_late_is_not_taken_for_lost_again() {
    let mut script = String::from("0 syn\n0 from mobile ack 0 -> pass\n");
    for packet in 0..30 {
        script += &format!("1 for mobile {}+1000 -> pass keep\n", 1000 * packet);
    }
    let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
    let mut script_of = Script::over(Over::Ipv4, config);
    let released = |told: &[String], what: &str| told.iter().filter(|line| line.contains(what)).count();
    script += "900 path 2 rate 1092 rtt 64 lost
           965  from mobile ack 1000           -> pass
           973  from mobile ack 2000           -> pass
           981  from mobile ack 2000 sack 3000-4000 -> pass
           989  from mobile ack 2000 sack 3000-5000 -> pass
           997  from mobile ack 2000 sack 3000-6000 -> pass";
    let told = script_of.run_and_tell(&script);
    assert_eq!(released(&told, "2000+1000"), 2, "for lost, when three behind it are there: {told:?}");
    // What comes so soon is no answer to the second one.
    let late = "1012 from mobile ack 7000           -> pass
          1016 from mobile ack 7000 sack 8000-9000 -> pass
          1020 from mobile ack 7000 sack 8000-10000 -> pass
          1024 from mobile ack 7000 sack 8000-11000 -> pass
          1032 from mobile ack 12000          -> pass";
    let told = script_of.run_and_tell(late);
    assert_eq!(released(&told, " 7000+1000"), 0, "it is given the time that the other needed: {told:?}");
}
