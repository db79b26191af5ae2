//! A buffer while there is no path.

use super::script::Script;
use crate::{BufferForward, Config, ConfigError, Kind, PathQueue, Place, QueueAtHandover};

fn buffering(packets: usize, from_notice: bool) -> Config {
    Config { buffer_forward: Some(BufferForward { packets, from_notice }), ..Config::none(Place::HomeAgent) }
}

#[test]
fn from_the_announcement_on_packets_wait_and_leave_at_once_by_the_new_path() {
    Script::new(buffering(3, true)).run(
        "    0  syn
             1  path 1 rate 1000
            10  for mobile 0+1000              -> pass
            20  announced 100
            30  for mobile 1000+1000           -> hold
            31  other mobile 500               -> hold
            32  from mobile ack 1000           -> pass
           130  for mobile 2000+1000           -> hold
           131  for mobile 3000+1000           -> drop queue-full
           200  path 2 rate 1000
           200  > release 1000+1000
           200  > release other
           200  > release 2000+1000
                = kept 0
           201  for mobile 3000+1000 again     -> pass",
    );
}

#[test]
fn a_false_announcement_and_one_that_is_not_asked_for() {
    Script::new(buffering(3, true)).run(
        "    0  syn
             1  path 1
            20  announced 100
            30  for mobile 0+1000              -> hold
           320  > release 0+1000               # 200 ms after the path was to end
           321  for mobile 1000+1000           -> pass",
    );
    Script::new(buffering(3, false)).run(
        "    0  syn
             1  path 1
            20  announced 100
            30  for mobile 0+1000              -> pass
           120  down 1
           130  for mobile 1000+1000           -> hold
           140  up 1
           140  > release 1000+1000",
    );
}

#[test]
fn nothing_waits_for_a_path_for_ever() {
    Script::new(buffering(3, false)).run(
        "    0  syn
             1  path 1
           100  down 1
           130  for mobile 0+1000              -> hold
         30100  > release 0+1000
         30101  for mobile 1000+1000           -> pass",
    );
}

#[test]
fn it_stands_alone_and_in_the_network() {
    let queue = careof_link::QueueConfig::default();
    let path_queue = PathQueue { queue, margin: 0.1, at_handover: QueueAtHandover::Drop };
    let both = Config { path_queue: Some(path_queue), ..buffering(3, true) };
    let (first, second) = (Kind::PathQueue, Kind::BufferForward);
    assert_eq!(both.check(), Err(ConfigError::BothKeep { first, second }));
    let moved = Config { place: Place::MobileNode, ..buffering(3, true) };
    assert_eq!(moved.check(), Err(ConfigError::NotOnTheMobileNode { assist: Kind::BufferForward }));
}
