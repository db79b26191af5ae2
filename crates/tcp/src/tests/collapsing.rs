//! Small segments are joined when they are sent again, as Linux does (`tcp_retrans_try_collapse`).

use alloc::string::String;
use core::time::Duration;

use careof_base::{Instant, Probability, RandomStream};
use proptest::prelude::*;

use super::linux::{linux, peer, without_sack};
use super::script::{Script, play};
use super::world::{SERVER, World};
use crate::{Config, CongestionControl};

/// Messages of 300 bytes, a segment each, 1 ms apart.
fn messages(count: u32) -> String {
    let line = |n| alloc::format!("{n} write 300\n{n} > {}+300\n", n * 300);
    (0..count).map(line).collect()
}

fn after_messages(config: Config, count: u32, text: &str) -> Script {
    play(config, &peer(), &[&messages(count), text].concat())
}

#[test]
fn a_timeout_repeats_as_many_small_segments_as_make_a_full_one() {
    for config in [linux(), without_sack()] {
        let script = after_messages(
            config,
            7,
            "
    # Three fit into a segment of 1000.
    300  > 0+900 again
         = phase loss cwnd 1
    400  < ack 900
    400  > 900+900 again
    400  > 1800+300 again
    500  < ack 2100
         = flight 0",
        );
        assert_eq!(script.connection.counters().segments_retransmitted, 3);
    }
}

#[test]
fn a_segment_that_arrived_is_not_sent_again_with_those_before() {
    after_messages(
        linux(),
        7,
        "
    # The third and what follows the fourth arrived: the first two are lost, and so is the fourth.
    100  < ack 0 sack 600-900
    102  < ack 0 sack 1200-1500,600-900
    104  < ack 0 sack 1200-1800,600-900
    104  > 0+600 again
         = phase fast-recovery cwnd 2
    # One segment of 600 is out, and one of 300 at the end.
    204  < ack 900 sack 1200-1800
    204  > 900+300 again
    206  < ack 2100
         = flight 0",
    );
}

#[test]
fn a_segment_is_taken_along_though_it_is_not_lost() {
    let script = after_messages(
        linux(),
        2,
        "
    # Half of the first packet was cut off on its way; nothing says that the second is lost.
    300  > 0+600 again
         = phase loss
    400  < ack 600
         = flight 0",
    );
    assert_eq!(script.connection.counters().timeouts, 1);
}

#[test]
fn what_is_left_of_a_large_packet_is_joined_and_a_part_of_one_is_not() {
    // The second packet is cut into segments of 1000 and 300.
    let start = "
      0  write 300
      0  > 0+300
      1  write 1300
      1  > 300+1000
      1  > 1300+300
      2  write 200
      2  > 1600+200
    300  > 0+300 again";
    let whole = "
    400  < ack 300
    400  > 300+1000 again
    400  > 1300+300 again
    500  < ack 1600
    500  > 1600+200 again
    600  < ack 1800
         = flight 0";
    play(without_sack(), &peer(), &[start, whole].concat());
    let tail = "
    400  < ack 1300
    400  > 1300+500 again
    500  < ack 1800
         = flight 0";
    play(without_sack(), &peer(), &[start, tail].concat());
}

#[test]
fn the_fin_is_taken_along_and_what_the_window_does_not_take_is_not() {
    let start = messages(3);
    let closed = "
      3  close
      3  > 900+0 fin
    300  > 0+900 fin again";
    play(linux(), &peer(), &[&start, closed].concat());
    // The receiver has taken back what it offered.
    let shrunk = "
    100  < ack 300 win 500
    400  > 300+300 again";
    play(linux(), &peer(), &[&start, shrunk].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn messages_arrive_whole_whatever_is_lost(
        sizes in prop::collection::vec((1_u64..1_200, 0_u64..40), 1..120),
        loss in 0.0..0.3_f64,
        duplication in 0.0..0.2_f64,
        jitter in 0_u64..60,
        [sack, dsack, rack, bbr] in any::<[bool; 4]>(),
        seed in any::<u64>(),
    ) {
        let congestion = if bbr { CongestionControl::Bbr } else { CongestionControl::Cubic };
        let config = Config { sack, dsack: sack && dsack, rack: sack && rack, tail_loss_probe: sack, congestion, ..linux() };
        let mut world = World::alike(&config, 30);
        world.traced = false;
        world.chance = RandomStream::new(seed, 0, "messages");
        world.loss = Probability::new(loss).unwrap();
        world.duplication = Probability::new(duplication).unwrap();
        for way in &mut world.ways {
            way.jitter = Duration::from_millis(jitter);
        }
        for &(size, pause) in &sizes {
            world.ends[0].write(size);
            world.run_until(world.now + Duration::from_millis(pause));
        }
        world.transfer(1, Instant::from_secs(200_000));
        let gave_up = world.events.iter().flatten().any(|event| *event == crate::Event::GivenUp);
        prop_assert!(!gave_up || loss > 0.1);
        let bytes: u64 = sizes.iter().map(|message| message.0).sum();
        if !gave_up {
            prop_assert_eq!(world.ends[SERVER].received(), bytes + 1);
        }
    }
}
