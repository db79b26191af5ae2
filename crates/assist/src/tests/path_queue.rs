//! The path's queue in the agent.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use careof_base::DataRate;
use careof_link::{Discipline, QueueConfig, QueueLimit};
use careof_mobility::PathProperties;
use careof_wire::ReceivedData;

use super::script::{MOBILE, Script, path};
use crate::{Config, ConfigError, Input, Kind, PathQueue, Place, QueueAtHandover, Replay};

/// A queue of `limit` packets; those of the scripts take 1 ms each at 8416 kbit/s, over IPv6 at 8576.
fn queueing(limit: u32, at_handover: QueueAtHandover) -> Config {
    let queue =
        QueueConfig { limit: QueueLimit::Packets(limit), discipline: Discipline::DropTail, ecn: false };
    let path_queue = PathQueue { queue, margin: 0.0, at_handover };
    Config { path_queue: Some(path_queue), ..Config::none(Place::ForeignAgent) }
}

#[test]
fn packets_leave_at_the_rate_of_the_path_and_those_without_room_are_dropped() {
    Script::new(queueing(3, QueueAtHandover::ReRoute)).run(
        "    0  syn
             1  path 1 rate 8416/8576
            10  for mobile 0+1000              -> hold
            10  for mobile 1000+1000           -> hold
            10  other mobile 526/536               -> hold
            10  for mobile 2000+1000           -> hold
            10  for mobile 3000+1000           -> drop queue-full
            10  other mobile 526/536               -> drop queue-full
                = kept 4
            11  > release 0+1000
            12  > release 1000+1000
            12  > release other
            13  from mobile ack 1000           -> pass    # the other direction has no queue here
            13  > release 2000+1000
                = kept 0",
    );
}

#[test]
fn the_rate_is_below_that_of_the_path_and_pays_for_the_tunnel() {
    let mut config = queueing(3, QueueAtHandover::ReRoute);
    config.place = Place::HomeAgent;
    if let Some(path) = &mut config.path_queue {
        path.margin = 0.5;
    }
    // 1072 bytes in the tunnel, at half of 4288 kbit/s; over IPv6 1112 bytes, at half of 4448 kbit/s.
    Script::new(config).run(
        "    0  syn
             1  path 1 rate 4288/4448
            10  for mobile 0+1000              -> hold
            14  > release 0+1000",
    );
}

#[test]
fn while_the_rate_is_unknown_there_is_no_queue() {
    Script::new(queueing(3, QueueAtHandover::ReRoute)).run(
        "    0  syn
             1  path 1
            10  for mobile 0+1000              -> pass
            20  path 2 rate 8416/8576
            30  for mobile 1000+1000           -> hold
            30  for mobile 2000+1000           -> hold
            30  path 3
            30  wait
            30  > release 1000+1000
            30  > release 2000+1000
            31  for mobile 3000+1000           -> pass",
    );
}

#[test]
fn what_waits_takes_the_new_path_in_order() {
    Script::new(queueing(9, QueueAtHandover::ReRoute)).run(
        "    0  syn
             1  path 1 rate 8416/8576
            10  for mobile 0+1000              -> hold
            10  for mobile 1000+1000           -> hold
            10  for mobile 2000+1000           -> hold
            11  > release 0+1000
            11  down 1
            50  for mobile 3000+1000           -> hold
            60  path 2 rate 4208/4288
            61  for mobile 4000+1000           -> hold
            62  > release 1000+1000
            64  > release 2000+1000
            66  > release 3000+1000
            68  > release 4000+1000",
    );
}

#[test]
fn a_rate_that_is_told_right_after_its_path_is_that_of_what_waits() {
    let mut script = Script::new(queueing(9, QueueAtHandover::ReRoute));
    script.run(
        "    0  syn
             1  path 1 rate 8416/8576
            10  for mobile 0+1000              -> hold
            10  for mobile 1000+1000           -> hold",
    );
    for downlink in [None, Some(DataRate::from_kilobits_per_second(4208))] {
        let paths = [(path(2), PathProperties { downlink, ..PathProperties::default() })];
        script.event(&Input::Paths {
            mobile: MOBILE,
            paths: &paths,
            old_lost: None,
            received: ReceivedData::EMPTY,
        });
    }
    script.run(
        "   12  > release 0+1000
            12  path 2 rate 8416/8576
            13  > release 1000+1000",
    );
}

#[test]
fn what_waits_is_dropped_at_a_handover_if_that_is_wanted_but_not_at_a_new_registration() {
    let mut script = Script::new(queueing(9, QueueAtHandover::Drop));
    script.run(
        "    0  syn
             1  path 1 rate 8416/8576
            10  for mobile 0+1000              -> hold
            10  for mobile 1000+1000           -> hold
            10  path 1 rate 8416/8576
            11  > release 0+1000
            11  path 2 rate 8416/8576
            11  > drop 1000+1000 handover
            12  for mobile 2000+1000           -> hold
            13  > release 2000+1000",
    );
}

#[test]
fn what_waits_goes_on_by_the_old_path_unless_that_is_dead() {
    Script::new(queueing(9, QueueAtHandover::DrainLate)).run(
        "    0  syn
             1  path 1 rate 4208/4288
            10  for mobile 0+1000              -> hold
            10  for mobile 1000+1000           -> hold
            11  path 2 rate 8416/8576 alive
            11  for mobile 2000+1000           -> hold
            12  > release 0+1000 by 1
            12  > release 2000+1000
            14  > release 1000+1000 by 1
            20  for mobile 3000+1000           -> hold
            20  path 3 rate 8416/8576 lost
            20  > drop 3000+1000 handover",
    );
}

#[test]
fn news_of_a_loss_hold_packets_up_but_not_for_ever() {
    Script::new(queueing(9, QueueAtHandover::ReRoute)).run(
        "    0  syn
             1  path 1 rate 8416/8576
           100  down 1
           200  for mobile 0+1000              -> hold
          2000  up 1
          2001  > release 0+1000
          3000  down 1
          3100  for mobile 1000+1000           -> hold
         33001  > release 1000+1000
         33100  for mobile 2000+1000           -> hold
         33101  > release 2000+1000",
    );
}

#[test]
fn its_discipline_drops_here_what_stands_too_long() {
    let mut config = queueing(50, QueueAtHandover::ReRoute);
    if let Some(path) = &mut config.path_queue {
        path.queue.discipline = Discipline::CODEL;
    }
    let mut script = Script::new(config);
    // One a millisecond, as fast as they leave, behind 30 that came at once.
    let mut text = "0 syn\n1 path 1 rate 8416/8576".to_string();
    for n in 0..250_u32 {
        text += &format!("\n{} for mobile {}+1000 -> hold", 10 + n.saturating_sub(30), n * 1000);
    }
    let done = script.run_and_tell(&format!("{text}\n1000 wait"));
    let numbers = |what: &str| -> Vec<u32> {
        let of = |line: &String| line.strip_prefix(what)?.split('+').next()?.parse().ok();
        done.iter().filter_map(of).collect()
    };
    let (released, dropped) = (numbers("release "), numbers("drop "));
    assert!(released.is_sorted(), "{released:?}");
    assert_eq!(released.len() + dropped.len(), 250);
    // The interval has to pass first.
    assert!(!dropped.is_empty() && dropped[0] > 100_000, "{dropped:?}");
    let reasons = done.iter().filter(|line| line.starts_with("drop"));
    assert!(
        reasons.clone().all(|line| line.ends_with("queue-management")),
        "{:?}",
        reasons.collect::<Vec<_>>()
    );
}

#[test]
fn it_marks_nothing_and_stands_alone() {
    let mut config = queueing(3, QueueAtHandover::ReRoute);
    assert_eq!(config.check(), Ok(()));
    if let Some(path) = &mut config.path_queue {
        path.queue = QueueConfig { discipline: Discipline::CODEL, ecn: true, ..path.queue };
    }
    assert_eq!(config.check(), Err(ConfigError::NoMarks));
    let all = PathQueue { queue: QueueConfig::default(), margin: 1.0, at_handover: QueueAtHandover::Drop };
    config.path_queue = Some(all);
    assert_eq!(config.check(), Err(ConfigError::NothingLeft));
    config.replay = Some(Replay::DEFAULT);
    assert_eq!(config.check(), Err(ConfigError::BothKeep { first: Kind::Replay, second: Kind::PathQueue }));
}
