//! The end of a run: what is drawn up of it.

use std::collections::BTreeMap;
use std::{fs, io};

use careof_base::Instant;
use careof_lab::{DirectionReport, LinkReport};
use careof_link::{Config, DropCause};
use careof_metrics::{
    FlowMetrics, FlowSummary, LinkSummary, MobilitySummary, PacketSummary, RoamingMetrics, StallSummary,
    Summary, World,
};

use careof_plan::{Captures, sum_of_domain};

use crate::books::{HANDOVER, NO_BUFFER, UNDELIVERABLE};
use crate::director::{Director, Finished};
use crate::multipath;

impl Director {
    /// Ends the run, if it has not ended by itself, and draws up its summary.
    pub(crate) fn finish(&mut self) -> io::Result<Summary> {
        if self.finished.is_none()
            && let Err(error) = self.finish_run(self.clock.now().min(self.end))
        {
            return Err(io::Error::other(error.to_string()));
        }
        let captures = self.books.capture.take().map(Captures::finish).transpose()?.unwrap_or_default();
        let Some(finished) = &self.finished else { return Err(io::Error::other("the run did not end")) };
        Ok(Summary { captures, ..self.summary(finished) })
    }

    fn summary(&self, finished: &Finished) -> Summary {
        let at = finished.at;
        let links = self.link_summaries(&finished.links, at);
        let packets = packet_summary(&finished.links);
        let mut conservation: BTreeMap<String, i64> =
            links.iter().map(|link| (format!("link {}", link.name), link.ledger().difference())).collect();
        conservation.insert("packets".to_owned(), packets.ledger().difference());
        // The emulator and the sightings at its links' ends count separately.
        let alive = packets.queued + packets.in_flight;
        let difference = self.books.packets_on_links() as i64 - alive as i64;
        conservation.insert("packets alive".to_owned(), difference);
        conservation.insert("sightings that were missed".to_owned(), self.tap.missed() as i64);
        for account in &finished.domain {
            let name = &self.topology.place(account.node).name;
            conservation.insert(format!("domain at {name}"), account.traffic.difference());
        }
        if let Some(plan) = &self.multipath {
            let ends = (plan.home_agent, plan.mobile);
            conservation.extend(multipath::differences(&self.topology, ends, &finished.agents));
        }
        let micro_mobility = self.domain.is_some().then(|| {
            let counters = finished.domain.iter().map(|account| &account.counters);
            sum_of_domain(counters, finished.domain.iter().map(|account| &account.kept))
        });
        let metrics = self.books.handovers.clone();
        let (black_holes, icmp_filtered) = self.books.black_holes.summaries();
        Summary {
            careof: env!("CARGO_PKG_VERSION").to_owned(),
            title: self.scenario.title.clone(),
            scenario: self.file.rsplit('/').next().unwrap_or_default().to_owned(),
            world: World::Linux,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .ok()
                .map(|release| release.trim().to_owned()),
            lateness: Some(self.lateness.max(self.network.emulator.lateness())),
            remarks: Vec::new(),
            seed: self.scenario.seed,
            run: self.run,
            overrides: Vec::new(),
            duration: at.since_start(),
            digest: self.books.digest.to_string(),
            stall_threshold: self.books.stall_threshold,
            flows: self.flow_summaries(at),
            stalls: StallSummary::of(self.named_metrics(), at),
            voice: self.named_metrics().filter_map(|(name, metrics)| metrics.voice(name, at)).collect(),
            video: self.books.films(at),
            histograms: self.named_metrics().flat_map(|(name, metrics)| metrics.histograms(name)).collect(),
            handovers: metrics.finish(at, &self.books.flow_metrics),
            roaming: self.books.roaming.as_ref().map(RoamingMetrics::summary),
            micro_mobility,
            multipath: multipath::summaries(&self.scenario, &self.topology, self.run, &finished.agents),
            black_holes,
            icmp_filtered,
            links,
            probes: self.books.probes.clone(),
            mobility: self.mobility_summary(finished),
            packets,
            conservation,
            captures: Vec::new(),
        }
    }

    /// What was measured of each direction of data, and its name.
    fn named_metrics(&self) -> impl Iterator<Item = (&str, &FlowMetrics)> {
        self.books.measured.iter().map(|flow| flow.name.as_str()).zip(&self.books.flow_metrics)
    }

    fn flow_summaries(&self, at: Instant) -> Vec<FlowSummary> {
        let measured = self.books.measured.iter().zip(&self.books.flow_metrics);
        measured
            .map(|(measured, metrics)| {
                let name = |node| self.topology.place(node).name.as_str();
                let ends = [name(measured.from), name(measured.to)];
                FlowSummary::new(&measured.name, ends, measured.kind, measured.tcp.clone(), metrics, at)
            })
            .collect()
    }

    fn link_summaries(&self, reports: &[LinkReport], at: Instant) -> Vec<LinkSummary> {
        let links = self.scenario.links.iter().zip(reports);
        links
            .flat_map(|(link, report)| {
                [
                    link_summary(format!("{}.down", link.name), &report.forward, &link.down, at),
                    link_summary(format!("{}.up", link.name), &report.backward, &link.up, at),
                ]
            })
            .collect()
    }

    fn mobility_summary(&self, finished: &Finished) -> Option<MobilitySummary> {
        self.scenario.mobility.as_ref()?;
        let registrations = self.books.registrations;
        let mut discarded = BTreeMap::<String, u64>::new();
        for agent in &finished.agents {
            for (name, count) in &agent.counters {
                // What assists drop is called as in the simulator.
                let of_assist = name.strip_prefix("assist-dropped-").map(|reason| format!("assist-{reason}"));
                let reason = of_assist.or_else(|| name.strip_prefix("dropped-").map(str::to_owned));
                if let (Some(reason), 1..) = (reason, *count) {
                    *discarded.entry(reason).or_default() += count;
                }
            }
        }
        for account in &finished.domain {
            let traffic = &account.traffic;
            let unsent = [
                ("domain-message-not-sent", traffic.unsent_messages),
                ("domain-event-lost", traffic.lost_events),
            ];
            let dropped = traffic.dropped.iter().map(|(reason, count)| (*reason, *count));
            for (reason, count) in dropped.chain(unsent).filter(|(_, count)| *count > 0) {
                *discarded.entry(reason.to_owned()).or_default() += count;
            }
        }
        Some(MobilitySummary {
            registrations_sent: registrations.sent,
            registrations_accepted: registrations.accepted,
            registrations_denied: registrations.denied,
            discarded,
        })
    }
}

/// What was dropped, by cause, those that occurred.
fn drops(report: &DirectionReport) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let link = DropCause::ALL.into_iter().map(|cause| (cause.name(), report.link.dropped_by(cause)));
    let others = [(NO_BUFFER, report.no_buffer), (UNDELIVERABLE, report.refused)];
    link.chain(others).filter(|(_, count)| *count > 0)
}

fn link_summary(name: String, report: &DirectionReport, config: &Config, at: Instant) -> LinkSummary {
    let (link, framing) = (&report.link, config.framing);
    let sent_bits = (u128::from(link.delivered_bytes)
        + u128::from(link.delivered) * u128::from(framing.overhead_bytes))
        * u128::from(framing.bits_per_byte);
    LinkSummary {
        name,
        offered_packets: link.offered + report.no_buffer,
        offered_bytes: link.offered_bytes,
        delivered_packets: report.written,
        delivered_bytes: link.delivered_bytes,
        dropped_packets: drops(report).map(|(cause, count)| (cause.to_owned(), count)).collect(),
        marked_packets: link.marked,
        drained_packets: link.drained,
        queued_packets: report.queued,
        in_flight_packets: report.in_flight,
        utilisation: LinkSummary::utilisation(sent_bits, config.bits_by(at)),
        max_queue_packets: report.longest_queue.0.into(),
        max_queue_bytes: report.longest_queue.1,
    }
}

/// All crossings of links. A packet that a handover moved to another link's queue is the same one there.
fn packet_summary(reports: &[LinkReport]) -> PacketSummary {
    let mut summary = PacketSummary::default();
    for report in reports.iter().flat_map(|link| [&link.forward, &link.backward]) {
        summary.created += report.received;
        summary.delivered += report.written;
        summary.queued += report.queued;
        summary.in_flight += report.in_flight;
        let handover = (report.dropped_from_queue > 0).then_some((HANDOVER, report.dropped_from_queue));
        for (cause, count) in drops(report).chain(handover) {
            *summary.dropped.entry(cause.to_owned()).or_default() += count;
        }
    }
    summary
}
