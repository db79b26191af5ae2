//! What a run looks like while it goes on: for a line that people watch.

use careof_base::{Duration, Instant};
use careof_lab::Error;
use careof_plan::Step;
use careof_scenario::LinkId;

use crate::director::Director;

/// A moment of a run, of its first mobile node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// When.
    pub at: Instant,
    /// The access link that the mobile node is on, or on its way to; `None` before the first one.
    pub link: Option<String>,
    /// Whether the home agent knows it there.
    pub is_ready: bool,
    /// IP bytes that this link has delivered since the run began: to the mobile node, and from it.
    pub delivered_bytes: [u64; 2],
    /// Packets that wait for this link: towards the mobile node, and from it.
    pub queued: [u64; 2],
    /// The smoothed round trip of the connection that was looked at last.
    pub round_trip: Option<Duration>,
    /// Programs of flows that have been started; servers do not count.
    pub programs: usize,
    /// Handovers that have begun.
    pub handovers: usize,
    /// When the next one begins, if there is another one.
    pub next_handover: Option<Instant>,
}

impl Director {
    /// The run as it is now.
    pub(crate) fn live(&self) -> Result<Live, Error> {
        let (done, coming) = self.script.split_at(self.next_step.min(self.script.len()));
        let first = self.topology.homes.mobile_nodes().next();
        let of = |link: LinkId| first.is_none_or(|first| self.topology.mobile_of(link) == first);
        let link_of = |(_, step): &(Instant, Step)| match step {
            Step::Attach(link) => Some(*link),
            Step::Begin(index) => self.scenario.handovers.get(*index).map(|one| one.to),
            _ => None,
        };
        let begins =
            |step: &&(Instant, Step)| matches!(step.1, Step::Begin(_)) && link_of(step).is_some_and(of);
        let link = done.iter().rev().filter_map(link_of).find(|link| of(*link));
        let name = link.map(|link| self.scenario.link(link).name.as_str());
        let reports = self.network.emulator.report()?;
        let report = reports.iter().find(|report| Some(report.name.as_str()) == name);
        let ways = report.map(|report| [&report.forward, &report.backward]);
        Ok(Live {
            at: self.clock.now(),
            link: name.map(str::to_owned),
            is_ready: first.is_none_or(|first| self.is_at_ease(first)),
            delivered_bytes: ways.map(|ways| ways.map(|way| way.link.delivered_bytes)).unwrap_or_default(),
            queued: ways.map(|ways| ways.map(|way| way.queued)).unwrap_or_default(),
            round_trip: self.round_trip,
            programs: self.programs,
            handovers: done.iter().filter(begins).count(),
            next_handover: coming.iter().find(begins).map(|(at, _)| *at),
        })
    }
}
