//! The handovers of several mobile nodes.

use alloc::vec::Vec;

use careof_base::Instant;

use crate::flow::FlowMetrics;
use crate::handover::{Direction, Handover, HandoverMetrics, HandoverSummary, NewPath};

/// Measures the handovers of mobile nodes, which are counted from 0. Each has its own: a handover of one is nothing to the flows
/// of another. Silences of a flow between two of them count for the handover that began last, of either.
///
/// What is told of a node that does not exist is nothing, so that a network without mobile nodes needs no case of its own.
#[derive(Clone, Debug, Default)]
pub struct Journeys {
    nodes: Vec<HandoverMetrics>,
    /// By flow: the mobile nodes that are its ends.
    ends: Vec<[Option<usize>; 2]>,
}

impl Journeys {
    /// Of `nodes` mobile nodes, each with a usable path.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self { nodes: alloc::vec![HandoverMetrics::new(); nodes], ends: Vec::new() }
    }

    /// Adds a flow between the mobile nodes `from` and `to`, where its ends are some, and returns its index. All slices of flows
    /// given later have this order.
    pub fn add_flow(&mut self, name: &str, from: Option<usize>, to: Option<usize>) -> usize {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let direction = match index {
                index if from == Some(index) => Direction::FromMobile,
                index if to == Some(index) => Direction::ToMobile,
                _ => Direction::Elsewhere,
            };
            node.add_flow(name, direction);
        }
        self.ends.push([from, to]);
        self.ends.len() - 1
    }

    /// [`HandoverMetrics::on_handover`] of `node`.
    pub fn on_handover(&mut self, node: usize, now: Instant, handover: Handover, flows: &mut [FlowMetrics]) {
        if let Some(metrics) = self.nodes.get_mut(node) {
            metrics.on_handover(now, handover, flows);
        }
    }

    /// [`HandoverMetrics::on_path`] of `node`.
    pub fn on_path(&mut self, node: usize, now: Instant, usable: bool) {
        if let Some(metrics) = self.nodes.get_mut(node) {
            metrics.on_path(now, usable);
        }
    }

    /// [`HandoverMetrics::on_address`] of `node`.
    pub fn on_address(&mut self, node: usize, now: Instant) {
        if let Some(metrics) = self.nodes.get_mut(node) {
            metrics.on_address(now);
        }
    }

    /// [`HandoverMetrics::on_ready`] of `node`.
    pub fn on_ready(&mut self, node: usize, now: Instant, path: NewPath, flows: &[FlowMetrics]) {
        if let Some(metrics) = self.nodes.get_mut(node) {
            metrics.on_ready(now, path, flows);
        }
    }

    /// The receiving application of `flow` got `new_bytes` more in order.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, flow: usize, new_bytes: u64) {
        if self.ends.get(flow).is_some_and(|[from, to]| from.is_some() || to.is_some()) {
            self.on_delivered_by_mobile(now, flow, new_bytes);
        }
    }

    fn on_delivered_by_mobile(&mut self, now: Instant, flow: usize, new_bytes: u64) {
        for node in self.ends[flow].into_iter().flatten() {
            if let Some(metrics) = self.nodes.get_mut(node) {
                metrics.on_delivered(now, flow, new_bytes);
            }
        }
    }

    /// The run ends. The handovers of all nodes in the order in which they began; of those that began together the node that
    /// is counted first comes first.
    #[must_use]
    pub fn finish(self, now: Instant, flows: &[FlowMetrics]) -> Vec<HandoverSummary> {
        let mut all: Vec<_> = self.nodes.into_iter().flat_map(|node| node.finish(now, flows)).collect();
        all.sort_by_key(|handover| handover.at);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handover::{PathRate, Resumption};
    use alloc::vec;
    use careof_base::{DataRate, Duration};

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn to(link: &str, node: &str) -> Handover {
        let style = "break-before-make".into();
        Handover { from: "wavelan".into(), to: link.into(), style, node: Some(node.into()) }
    }

    fn path() -> NewPath {
        let rate = PathRate::of(DataRate::from_bits_per_second(1_000_000), 12_000, 1460);
        NewPath { to_mobile: rate, from_mobile: rate, round_trip: Duration::from_millis(100) }
    }

    #[test]
    fn nodes_that_move_at_the_same_time_stall_each_for_itself() {
        let mut journeys = Journeys::new(2);
        let flows: Vec<usize> =
            [(None, Some(0)), (Some(1), None)].map(|(from, to)| journeys.add_flow("one", from, to)).into();
        let between = journeys.add_flow("between", Some(0), Some(1));
        let mut metrics = vec![FlowMetrics::new(), FlowMetrics::new(), FlowMetrics::new()];
        for flow in &mut metrics {
            flow.on_wanted(at(0), u64::MAX);
        }
        for node in [1, 0] {
            journeys.on_handover(node, at(1000), to("gsm", ["a", "b"][node]), &mut metrics);
            journeys.on_path(node, at(1000), false);
        }
        journeys.on_ready(0, at(1200), path(), &metrics);
        journeys.on_ready(1, at(1500), path(), &metrics);
        metrics[between].on_delivered(at(1600), 1460);
        journeys.on_delivered(at(1600), flows[0], 1460);
        journeys.on_delivered(at(1600), between, 1460);
        let [a, b] = &journeys.finish(at(5000), &metrics)[..] else { panic!() };
        assert_eq!((a.node.as_deref(), b.node.as_deref()), (Some("a"), Some("b")));
        let parts = [a, b].map(|one| (one.interruption.as_millis(), one.stall, one.flows.len()));
        assert_eq!(parts, [(200, Resumption::Resumed, 2), (500, Resumption::Never, 2)]);
        let of_both = a.flows.last().unwrap();
        assert_eq!((of_both.name.as_str(), of_both.longest_silence_at), ("between", Some(at(1600))));
    }
}
