//! Two connections and a path: which segments are sent again, and that everything arrives.

use core::time::Duration;

use alloc::vec::Vec;

use careof_base::{DataRate, Instant};

use super::world::{CLIENT, SERVER, World};
use crate::{Config, DelayedAck, Event, InitialWindow, Phase, Profile, RtoEstimator, Variant};

fn config(variant: Variant) -> Config {
    Config {
        variant,
        congestion: variant.own_congestion().unwrap_or_default(),
        sack: variant == Variant::Sack,
        mss: 1_000,
        delayed_ack: DelayedAck::Off,
        initial_window: InitialWindow::Segments(1),
        window_validation: false,
        initial_ssthresh: 16_000,
        ..Config::default()
    }
}

/// A transfer of 100 segments of which `drops` are lost once; which were sent again, and how many timeouts.
fn transfer(config: &Config, drops: &[u32]) -> (World, Vec<u32>, u64) {
    let mut world = World::alike(config, 50);
    world.drops = drops.iter().map(|&drop| (drop, 1)).collect();
    world.transfer(100_000, Instant::from_secs(300));
    assert_eq!(world.ends[SERVER].received(), 100_000);
    let repeated = world.repeated();
    let timeouts = world.ends[CLIENT].counters().timeouts;
    (world, repeated, timeouts)
}

#[test]
fn one_loss_is_repaired_by_all_without_a_timeout() {
    for &variant in &[Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let (world, repeated, timeouts) = transfer(&config(variant), &[20]);
        assert_eq!(timeouts, 0, "{variant}");
        assert_eq!(world.ends[CLIENT].counters().fast_retransmits, 1, "{variant}");
        assert_eq!(repeated[0], 20);
        if variant != Variant::Tahoe {
            assert_eq!(repeated, [20], "{variant}");
        }
    }
}

#[test]
fn two_losses_cost_reno_two_halvings_and_newreno_and_sack_one() {
    let halvings = |variant| {
        let (world, repeated, _) = transfer(&config(variant), &[40, 45]);
        (world.ends[CLIENT].counters().fast_retransmits, repeated)
    };
    assert_eq!(halvings(Variant::Reno).0, 2);
    assert_eq!(halvings(Variant::NewReno), (1, [40, 45].into()));
    assert_eq!(halvings(Variant::Sack), (1, [40, 45].into()));
}

#[test]
fn three_and_four_losses_cost_reno_a_timeout_and_sack_one_round_trip() {
    for drops in [&[26, 28, 30][..], &[26, 28, 30, 31][..]] {
        let (_, _, timeouts) = transfer(&config(Variant::Reno), drops);
        assert!(timeouts > 0, "{drops:?}");
        let (world, repeated, timeouts) = transfer(&config(Variant::Sack), drops);
        assert_eq!((timeouts, &repeated[..]), (0, drops));
        let again = world.trace.iter().filter(|sent| sent.retransmission).map(|sent| sent.at);
        let (first, last) = (again.clone().min().unwrap(), again.max().unwrap());
        assert!(last - first < Duration::from_millis(110), "{drops:?}: {:?}", last - first);
        let steady =
            Config { partial_ack_timer: crate::PartialAckTimer::SlowButSteady, ..config(Variant::NewReno) };
        let (world, repeated, timeouts) = transfer(&steady, drops);
        assert_eq!((timeouts, &repeated[..]), (0, drops));
        // One round trip for each.
        let again: Vec<Instant> =
            world.trace.iter().filter(|sent| sent.retransmission).map(|sent| sent.at).collect();
        for pair in again.windows(2) {
            assert_eq!(pair[1] - pair[0], Duration::from_millis(100));
        }
    }
}

#[test]
fn a_lost_retransmission_costs_a_timeout() {
    for &variant in &[Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let mut world = World::alike(&config(variant), 50);
        world.drops = [(30, 2)].into();
        world.transfer(100_000, Instant::from_secs(300));
        assert_eq!(world.ends[SERVER].received(), 100_000);
        assert_eq!(world.ends[CLIENT].counters().timeouts, 1, "{variant}");
    }
}

#[test]
fn a_lost_last_segment_costs_a_timeout() {
    let (_, repeated, timeouts) = transfer(&config(Variant::Sack), &[100]);
    assert_eq!((timeouts, repeated), (1, [100].into()));
}

#[test]
fn an_outage_is_survived_at_the_next_backed_off_timeout() {
    // R (2^n - 1) with R = 1 s: the timer is armed when the last segment before the outage was acknowledged.
    for &variant in Variant::ALL {
        let config = Config { mss: 1_000, sack: true, ..Config { variant, ..config(variant) } };
        let mut world = World::alike(&config, 50);
        world.ends[CLIENT].write(u64::MAX);
        let from = Instant::from_secs(2);
        world.run_until(from);
        world.outages = [(from, from + Duration::from_secs(20))].into();
        let before = world.ends[SERVER].received();
        world.run_until(Instant::from_secs(60));
        assert!(world.ends[SERVER].received() > before + 100_000, "{variant}");
        let back = world
            .trace
            .iter()
            .find(|sent| sent.from == CLIENT && sent.at >= from + Duration::from_secs(20))
            .unwrap();
        // Armed within 0.1 s of the beginning: 1 + 2 + 4 + 8 + 16 = 31 s later.
        let after = (back.at - from).as_secs_f64();
        if variant != Variant::Linux20 {
            assert!((30.9..31.2).contains(&after), "{variant}: {after}");
        }
        assert!(back.retransmission);
    }
}

#[test]
fn a_bottleneck_is_filled_by_everyone() {
    for profile in Profile::ALL {
        for rto in RtoEstimator::ALL {
            let config = Config { rto: *rto, receive_window: 65_535, mss: 1_000, ..Config::from(*profile) };
            let mut world = World::alike(&config, 20);
            world.traced = false;
            world.ways[CLIENT].rate = Some(DataRate::from_megabits_per_second(1));
            world.ways[CLIENT].queue = 15;
            world.ends[CLIENT].write(u64::MAX);
            world.run_until(Instant::from_secs(60));
            let utilisation = world.ends[SERVER].received() as f64 * 8.0 * 1.04 / 60e6;
            // Linux 2.0 waits for a timeout after every loss; on BSD's clock that is seconds.
            let least = if *profile == Profile::Linux20 { 0.6 } else { 0.85 };
            assert!((least..=1.0).contains(&utilisation), "{profile} {rto}: {utilisation}");
        }
    }
}

#[test]
fn a_large_scaled_window_fills_a_long_path() {
    let config = Config {
        variant: Variant::Sack,
        sack: true,
        window_scaling: true,
        timestamps: true,
        receive_window: 4 << 20,
        ..Config::default()
    };
    let mut world = World::alike(&config, 100);
    world.traced = false;
    world.ends[CLIENT].write(u64::MAX);
    world.run_until(Instant::from_secs(10));
    let before = world.ends[SERVER].received();
    world.run_until(Instant::from_secs(20));
    // A window each round trip of 200 ms, and no loss anywhere.
    let rate = (world.ends[SERVER].received() - before) as f64 / 10.0;
    let limit = (4 << 20) as f64 / 0.2;
    assert!((0.99..1.01).contains(&(rate / limit)), "{}", rate / limit);
    assert_eq!(world.ends[CLIENT].counters().segments_retransmitted, 0);
}

#[test]
fn a_reader_that_pauses_stops_the_sender_and_nothing_is_lost() {
    let mut world = World::alike(&Config { receive_window: 8_000, ..config(Variant::NewReno) }, 10);
    world.ends[SERVER].set_auto_read(false);
    world.ends[CLIENT].write(50_000);
    world.run_until(Instant::from_secs(20));
    assert_eq!(world.ends[SERVER].available(), 8_000);
    assert!(world.ends[CLIENT].counters().window_probes >= 4);
    // The update that opens the window is lost: a probe finds out.
    world.outages = [(Instant::from_secs(20), Instant::from_secs(21))].into();
    world.ends[SERVER].read(8_000);
    world.run_until(Instant::from_secs(60));
    assert_eq!(world.ends[SERVER].available(), 8_000);
    world.ends[SERVER].set_auto_read(true);
    world.run_until(Instant::from_secs(120));
    assert_eq!(world.ends[SERVER].received(), 50_000);
    assert_eq!(world.ends[CLIENT].counters().timeouts, 0);
}

#[test]
fn a_path_that_narrows_under_way_loses_nothing() {
    for &variant in Variant::ALL {
        let mut world = World::alike(&Config { sack: true, ..config(variant) }, 50);
        world.ends[CLIENT].write(200_000);
        world.run_until(Instant::from_millis(700));
        world.ends[CLIENT].path_mtu_changed(world.now, 576);
        world.run_until(Instant::from_secs(60));
        assert_eq!(world.ends[SERVER].received(), 200_000, "{variant}");
        assert_eq!(world.ends[CLIENT].snapshot().mss, 536);
        let at = Instant::from_millis(700);
        assert!(
            world
                .trace
                .iter()
                .filter(|s| s.at > at && s.from == CLIENT)
                .all(|s| s.segment.payload_len <= 536)
        );
    }
}

#[test]
fn where_large_segments_are_swallowed_a_sender_that_probes_gets_through_and_another_does_not() {
    for &variant in Variant::ALL {
        for (path, mss) in [(1_100, 1_024), (600, 512)] {
            let config = Config { sack: true, mss: 1_460, mtu_probing: true, ..config(variant) };
            let mut world = World::alike(&config, 50);
            world.swallows_above = Some(path);
            world.ends[CLIENT].write(100_000);
            world.run_until(Instant::from_secs(300));
            assert_eq!(world.ends[SERVER].received(), 100_000, "{variant}");
            assert_eq!(world.ends[CLIENT].snapshot().mss, mss, "{variant}");
        }
        let mut world = World::alike(&Config { sack: true, mss: 1_460, ..config(variant) }, 50);
        world.swallows_above = Some(1_100);
        world.ends[CLIENT].write(100_000);
        world.run_until(Instant::from_secs(100));
        assert_eq!(world.ends[SERVER].received(), 0, "{variant}");
    }
}

#[test]
fn an_outage_of_fewer_timeouts_leaves_segments_as_they_are() {
    for &variant in Variant::ALL {
        let mut world = World::alike(&Config { mtu_probing: true, ..config(variant) }, 50);
        world.outages = [(Instant::from_millis(700), Instant::from_millis(1_700))].into();
        world.ends[CLIENT].write(200_000);
        world.run_until(Instant::from_secs(60));
        assert_eq!(world.ends[SERVER].received(), 200_000, "{variant}");
        assert_eq!(world.ends[CLIENT].snapshot().mss, u32::from(config(variant).mss), "{variant}");
    }
}

#[test]
fn data_flows_both_ways_at_once() {
    for &variant in Variant::ALL {
        let mut world = World::alike(&Config { sack: true, ..config(variant) }, 20);
        world.drops = [(7, 1), (40, 1), (41, 1)].into();
        world.ends[CLIENT].write(150_000);
        world.ends[SERVER].write(90_000);
        world.run_until(Instant::from_secs(100));
        assert_eq!(world.ends[SERVER].received(), 150_000, "{variant}");
        assert_eq!(world.ends[CLIENT].received(), 90_000, "{variant}");
        for end in &world.ends {
            assert_eq!(end.next_timeout(), None);
            assert_eq!(end.snapshot().phase, Phase::Open);
        }
    }
}

#[test]
fn closing_waits_for_the_data() {
    let (world, _, _) = transfer(&config(Variant::NewReno), &[98, 99, 100]);
    assert_eq!(world.events[SERVER], [Event::Connected, Event::PeerClosed, Event::Closed]);
    assert_eq!(world.events[CLIENT].last(), Some(&Event::Closed));
    assert!(world.trace.iter().any(World::has_fin));
    for end in &world.ends {
        assert_eq!(end.next_timeout(), None);
    }
}

#[test]
fn the_owner_can_tell_a_spurious_timeout_from_the_trace() {
    // The path becomes slower in one step: the timer runs out although nothing is lost.
    let mut config = config(Variant::NewReno);
    config.rto_min = Some(Duration::from_millis(200));
    let mut world = World::alike(&config, 2);
    world.ends[CLIENT].write(u64::MAX);
    world.run_until(Instant::from_millis(500));
    for way in &mut world.ways {
        way.delay = Duration::from_millis(500);
    }
    world.run_until(Instant::from_millis(1_400));
    let timeout = world.events[CLIENT].iter().find_map(|event| match event {
        Event::Timeout { seq, .. } => Some(*seq),
        _ => None,
    });
    assert!(world.ends[SERVER].has_received(timeout.unwrap()));
}
