//! The handovers of many mobile nodes, counted and spread out instead of listed: memory does not grow with time.

use alloc::vec;
use alloc::vec::Vec;

use careof_base::{Duration, Instant};
use serde::Serialize;

use crate::seconds::optional_span;
use crate::spread::Spread;

/// What is known of one mobile node between two handovers.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// When it left its station, while its new path is not ready.
    left: Option<Instant>,
    /// When the new path was ready, while nothing new has come over it.
    ready: Option<Instant>,
}

/// Measures the handovers of many mobile nodes.
#[derive(Clone, Debug)]
pub struct RoamingMetrics {
    nodes: Vec<Node>,
    stations: usize,
    handovers: u64,
    not_ready: u64,
    not_resumed: u64,
    interruption: Spread,
    stall_after: Spread,
}

/// The handovers of many mobile nodes; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoamingSummary {
    /// Mobile nodes.
    pub nodes: u64,
    /// Stations they go round.
    pub stations: u64,
    /// Handovers of all of them.
    pub handovers: u64,
    /// Handovers whose new path was not ready before the next one or the end of the run.
    pub not_ready: u64,
    /// Handovers after which nothing new came over the new path before the next one or the end of the run.
    pub not_resumed: u64,
    /// The shortest interruption.
    #[serde(rename = "interruption_min_s", serialize_with = "optional_span")]
    pub interruption_min: Option<Duration>,
    /// Their median.
    #[serde(rename = "interruption_median_s", serialize_with = "optional_span")]
    pub interruption_median: Option<Duration>,
    /// The longest.
    #[serde(rename = "interruption_max_s", serialize_with = "optional_span")]
    pub interruption_max: Option<Duration>,
    /// The shortest stall.
    #[serde(rename = "stall_after_min_s", serialize_with = "optional_span")]
    pub stall_after_min: Option<Duration>,
    /// Their median.
    #[serde(rename = "stall_after_median_s", serialize_with = "optional_span")]
    pub stall_after_median: Option<Duration>,
    /// The longest.
    #[serde(rename = "stall_after_max_s", serialize_with = "optional_span")]
    pub stall_after_max: Option<Duration>,
}

impl RoamingMetrics {
    /// No handover yet, of `nodes` mobile nodes that go round `stations`.
    #[must_use]
    pub fn new(nodes: usize, stations: usize) -> Self {
        Self {
            nodes: vec![Node { left: None, ready: None }; nodes],
            stations,
            handovers: 0,
            not_ready: 0,
            not_resumed: 0,
            interruption: Spread::new(),
            stall_after: Spread::new(),
        }
    }

    /// Node `node` leaves its station: it has no path any longer.
    pub fn on_handover(&mut self, node: usize, now: Instant) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        self.handovers += 1;
        self.not_ready += u64::from(node.left.is_some());
        self.not_resumed += u64::from(node.ready.is_some());
        *node = Node { left: Some(now), ready: None };
    }

    /// The path of `node` carries packets both ways; whether it `carries` any flow that has something to carry.
    ///
    /// Renewals, which follow no handover, are ignored.
    pub fn on_ready(&mut self, node: usize, now: Instant, carries: bool) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        if let Some(left) = node.left.take() {
            self.interruption.add(now - left);
            node.ready = carries.then_some(now);
        }
    }

    /// A flow of `node` delivered something new to its application.
    #[inline]
    pub fn on_delivered(&mut self, node: usize, now: Instant) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        if let Some(ready) = node.ready.take() {
            self.stall_after.add(now - ready);
        }
    }

    /// What was measured up to now.
    #[must_use]
    pub fn summary(&self) -> RoamingSummary {
        let waiting = |waits: fn(&Node) -> bool| self.nodes.iter().filter(|node| waits(node)).count() as u64;
        let [interruption_min, interruption_max] = self.interruption.extremes();
        let [stall_after_min, stall_after_max] = self.stall_after.extremes();
        RoamingSummary {
            nodes: self.nodes.len() as u64,
            stations: self.stations as u64,
            handovers: self.handovers,
            not_ready: self.not_ready + waiting(|node| node.left.is_some()),
            not_resumed: self.not_resumed + waiting(|node| node.ready.is_some()),
            interruption_min,
            interruption_median: self.interruption.median(),
            interruption_max,
            stall_after_min,
            stall_after_median: self.stall_after.median(),
            stall_after_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_handover_is_measured_from_leaving_to_the_path_and_from_there_to_the_data() {
        let mut metrics = RoamingMetrics::new(2, 3);
        metrics.on_ready(0, at(50), true);
        metrics.on_delivered(0, at(90));
        metrics.on_handover(0, at(1000));
        metrics.on_delivered(0, at(1010));
        metrics.on_ready(0, at(1200), true);
        metrics.on_ready(0, at(1250), true);
        metrics.on_delivered(0, at(1500));
        metrics.on_delivered(0, at(1600));
        let summary = metrics.summary();
        assert_eq!((summary.handovers, summary.not_ready, summary.not_resumed), (1, 0, 0));
        assert_eq!(summary.interruption_min, Some(Duration::from_millis(200)));
        assert_eq!(summary.interruption_median, summary.interruption_max);
        assert_eq!(summary.stall_after_max, Some(Duration::from_millis(300)));
    }

    #[test]
    fn what_comes_too_late_is_counted() {
        let mut metrics = RoamingMetrics::new(3, 2);
        // The first node never has its path, the second gets nothing over it, the third has nothing to carry.
        for node in 0..3 {
            metrics.on_handover(node, at(10));
        }
        metrics.on_ready(1, at(20), true);
        metrics.on_ready(2, at(20), false);
        metrics.on_handover(0, at(30));
        let summary = metrics.summary();
        assert_eq!((summary.handovers, summary.not_ready, summary.not_resumed), (4, 2, 1));
        metrics.on_handover(9, at(30));
        assert_eq!(metrics.summary(), summary, "there is no such node");
    }

    proptest! {
        #[test]
        fn a_median_is_right_to_two_per_cent(mut values in prop::collection::vec(0_u64..u64::MAX / 16, 1..200)) {
            let mut spread = Spread::new();
            for nanos in &values {
                spread.add(Duration::from_nanos(*nanos));
            }
            values.sort_unstable();
            let exact = values[(values.len() - 1) / 2];
            let found = spread.median().unwrap().as_nanos() as u64;
            prop_assert!(found.abs_diff(exact) <= exact / 50 + 1, "{found} for {exact}");
            prop_assert_eq!(spread.extremes()[0], Some(Duration::from_nanos(values[0])));
        }
    }
}
