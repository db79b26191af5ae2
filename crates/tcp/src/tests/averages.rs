//! Long-run averages under periodic loss: the formulas of Mathis et al. (1997) and the response functions that RFC 9438
//! section 5.1 tabulates.
//!
//! Both are about a window that is cut at the moment of a loss, every 1/p segments, and grows again at once. A sender
//! takes a round trip to notice and another to repair. So 1/p segments are counted from the end of a repair to the next
//! loss, and the average is taken over that time; the repair is in neither. What is lost to it shows beside.

use core::time::Duration;

use careof_base::Instant;

use super::world::{CLIENT, SERVER, World};
use crate::{Config, CongestionControl, DelayedAck, RtoEstimator, Variant};

struct Average {
    /// The congestion window, segments, outside of repairs.
    window: f64,
    /// Segments sent in a round trip, outside of repairs.
    sent: f64,
    /// Segments delivered in a round trip, over all.
    delivered: f64,
}

/// The window when every `every`-th segment is lost, over `cycles` losses.
fn average(config: &Config, every: u32, rtt_ms: u64, cycles: u64) -> Average {
    let config = Config {
        variant: Variant::Sack,
        sack: true,
        mss: 1_000,
        window_scaling: true,
        receive_window: 1 << 24,
        rto: RtoEstimator::Linux,
        rto_min: Some(Duration::from_secs(1)),
        ..config.clone()
    };
    let mut world = World::alike(&config, rtt_ms / 2);
    world.traced = false;
    world.drop_every = Some(every);
    world.ends[CLIENT].write(u64::MAX);
    let losses = |world: &World| world.ends[CLIENT].counters().fast_retransmits;
    let warm = cycles / 2;
    world.run_while(Instant::MAX, |world| losses(world) < warm);
    let (since, open, received) = (world.now, world.open, world.ends[SERVER].received());
    world.run_while(Instant::MAX, |world| losses(world) < warm + cycles);
    assert_eq!(world.ends[CLIENT].counters().timeouts, 0);
    let trips = |seconds: f64| seconds * 1e3 / rtt_ms as f64;
    let seconds = world.open.seconds - open.seconds;
    Average {
        window: (world.open.window_seconds - open.window_seconds) / seconds / 1e3,
        sent: (world.open.segments - open.segments) as f64 / trips(seconds),
        delivered: (world.ends[SERVER].received() - received) as f64
            / 1e3
            / trips((world.now - since).as_secs_f64()),
    }
}

fn reno(delayed_ack: DelayedAck, threshold: u32) -> Config {
    Config { delayed_ack, initial_ssthresh: threshold * 1_000, ..Config::default() }
}

#[test]
fn the_window_under_periodic_loss_is_that_of_mathis() {
    for (p, every, cycles, wanted) in [
        ("0.01", 100, 40, [12.247, 8.660]),
        ("0.001", 1_000, 20, [38.730, 27.386]),
        ("0.0001", 10_000, 6, [122.474, 86.603]),
    ] {
        for (delayed_ack, wanted) in [(DelayedAck::Off, wanted[0]), (DelayedAck::RFC1122, wanted[1])] {
            let found = average(&reno(delayed_ack, wanted as u32), every, 100, cycles);
            within(found.window, wanted, 0.1, &alloc::format!("p = {p}, {delayed_ack:?}"));
            // Segments are sent whole: half of one is missing on average, and the round trips of repair.
            assert!(found.sent < found.window && found.sent > found.window - 1.0, "{}", found.sent);
            assert!(
                found.delivered < found.sent && found.delivered > 0.95 * found.sent,
                "{}",
                found.delivered
            );
        }
    }
}

#[test]
fn cubics_response_to_periodic_loss_is_that_of_the_rfc() {
    for (rtt, p, every, cycles, wanted) in [
        (100_u32, "0.01", 100, 60, 12.0),
        (100, "0.001", 1_000, 30, 38.0),
        (100, "0.0001", 10_000, 8, 187.0),
        (10, "0.01", 100, 60, 12.0),
        (10, "0.001", 1_000, 30, 38.0),
        (10, "0.0001", 10_000, 8, 120.0),
    ] {
        let id = alloc::format!("cubic-avg-rtt{}-p{p}", f64::from(rtt) / 1e3);
        let config = Config {
            congestion: CongestionControl::Cubic,
            delayed_ack: DelayedAck::Off,
            initial_ssthresh: wanted as u32 * 1_000,
            ..Config::default()
        };
        let found = average(&config, every, rtt as u64, cycles);
        within(found.window, wanted, 0.05, &id);
    }
}

fn within(found: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!((found / wanted - 1.0).abs() < tolerance, "{what}: {found} is not {wanted}");
}
