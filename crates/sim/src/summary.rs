//! The end of a run: what is drawn up of it.

use std::collections::BTreeMap;
use std::io;

use careof_base::Instant;
use careof_link::DropCause;
use careof_metrics::{
    FlowSummary, LinkSummary, MobilitySummary, PacketSummary, StallSummary, Summary, TcpSummary, World,
};
use careof_mobility::v4::{Counters, DropReason};
use careof_plan::{OneWayId, Side, kind, measured_name, measured_senders, stall_threshold};
use careof_trace::Columns;

use crate::agents::Agent;
use crate::observer::Pcap;
use crate::simulation::{Node, OneWay, Simulation};

impl Simulation {
    /// The events since the last call, in order of time. Empty without a trace.
    pub fn take_events(&mut self) -> Columns {
        if let Some(pcap) = &mut self.observer.pcap {
            pcap.flush(self.now);
        }
        self.observer.log.take_columns()
    }

    /// Ends the run where it stands: completes the capture and draws up the summary. To be called once; events
    /// can still be taken afterwards.
    ///
    /// # Errors
    /// The capture could not be written.
    pub fn finish(&mut self) -> io::Result<Summary> {
        for id in 0..self.links.len() {
            // What lies between the last event and now: packets that a queue dropped, services that ended.
            let now = self.now;
            self.links[id].link.advance(now);
        }
        self.advance_media();
        let captures = self.observer.pcap.take().map(Pcap::finish).transpose()?.unwrap_or_default();
        let now = self.now;
        let links: Vec<LinkSummary> = (self.links.iter().zip(0..))
            .map(|(way, id)| link_summary(way, self.on_the_way(OneWayId(id)), now))
            .collect();
        let packets = self.packet_summary();
        let mut conservation: BTreeMap<String, i64> =
            links.iter().map(|link| (format!("link {}", link.name), link.ledger().difference())).collect();
        conservation.insert("packets".to_owned(), packets.ledger().difference());
        // Every packet alive is on a link or held for reassembly; the slab and the links count separately.
        let somewhere = packets.queued + packets.in_flight;
        conservation.insert("packets alive".to_owned(), self.pool.live() as i64 - somewhere as i64);
        let flows = self.flow_summaries();
        let names: Vec<String> = flows.iter().map(|flow| flow.name.clone()).collect();
        let metrics = std::mem::take(&mut self.script.metrics);
        let named = || names.iter().map(String::as_str).zip(&self.flow_metrics);
        let (black_holes, icmp_filtered) = self.black_holes.summaries();
        Ok(Summary {
            careof: env!("CARGO_PKG_VERSION").to_owned(),
            title: self.scenario.title.clone(),
            scenario: file_name(&self.scenario_file).to_owned(),
            world: World::Sim,
            kernel: None,
            lateness: None,
            remarks: Vec::new(),
            seed: self.scenario.seed,
            run: self.run,
            overrides: Vec::new(),
            duration: now.since_start(),
            digest: self.digest.to_string(),
            stall_threshold: stall_threshold(&self.scenario),
            stalls: StallSummary::of(named(), now),
            voice: named().filter_map(|(name, metrics)| metrics.voice(name, now)).collect(),
            video: (self.flows.iter())
                .filter_map(|flow| Some(flow.workload.player()?.summary(&flow.name, now)))
                .collect(),
            histograms: named().flat_map(|(name, metrics)| metrics.histograms(name)).collect(),
            flows,
            handovers: metrics.finish(now, &self.flow_metrics),
            roaming: self.fleet.as_ref().map(|fleet| fleet.metrics.summary()),
            multipath: self.multipath_summaries(),
            micro_mobility: self.micro.as_ref().map(|domain| domain.summary()),
            black_holes,
            icmp_filtered,
            links,
            probes: Vec::new(),
            mobility: self.mobility_summary(),
            packets,
            conservation,
            captures,
        })
    }

    fn flow_summaries(&self) -> Vec<FlowSummary> {
        let mut summaries = Vec::new();
        for (flow, spec) in self.flows.iter().zip(&self.scenario.flows) {
            let config = &spec.tcp.config;
            for (rank, sender) in measured_senders(&spec.workload).iter().enumerate() {
                let Some(index) = flow.measured[sender.index()] else { continue };
                let name = |side: Side| self.node(flow.ends[side.index()].node).place.name.as_str();
                summaries.push(FlowSummary::new(
                    &measured_name(&flow.name, rank),
                    [name(*sender), name(sender.peer())],
                    kind(&spec.workload),
                    match &spec.quic {
                        _ if flow.voice.is_some() => TcpSummary::udp(),
                        Some(quic) => TcpSummary::quic(quic.config.congestion.name()),
                        None => TcpSummary {
                            profile: Some(spec.tcp.profile.name().to_owned()),
                            variant: config.variant.name().to_owned(),
                            rto: config.rto.name().to_owned(),
                        },
                    },
                    &self.flow_metrics[index],
                    self.now,
                ));
            }
        }
        summaries
    }

    fn packet_summary(&self) -> PacketSummary {
        let mut dropped = BTreeMap::<String, u64>::new();
        for way in &self.links {
            for (cause, count) in drops(way) {
                *dropped.entry(cause.to_owned()).or_default() += count;
            }
        }
        for (cause, count) in self.ledger.dropped_at_nodes() {
            *dropped.entry(cause.name().to_owned()).or_default() += count;
        }
        let held_for_neighbors = |node: &Node| match &node.agent {
            Agent::Ipv6(host) => host.held(),
            _ => 0,
        };
        let held = |node: &Node| node.reassembly.held() + node.held_by_assist() + held_for_neighbors(node);
        let held: u64 = self.nodes.iter().map(held).sum::<u64>()
            + self.micro.as_ref().map_or(0, |domain| domain.held())
            + self.multipath.as_ref().map_or(0, |multipath| multipath.held());
        let (mut queued, mut in_flight) = (0, 0);
        for (waiting, sent) in (0..self.links.len()).map(|id| self.on_the_way(OneWayId(id as u32))) {
            (queued, in_flight) = (queued + waiting, in_flight + sent);
        }
        PacketSummary {
            created: self.pool.created(),
            delivered: self.ledger.consumed,
            dropped,
            fragmented: self.ledger.fragmented,
            reassembled: self.ledger.reassembled,
            queued: queued + held,
            in_flight,
        }
    }

    fn mobility_summary(&self) -> Option<MobilitySummary> {
        self.scenario.mobility.as_ref()?;
        let mut summary =
            MobilitySummary { registrations_sent: self.registration_requests, ..MobilitySummary::default() };
        for node in &self.nodes {
            let counters: &Counters = match &node.agent {
                Agent::None => continue,
                Agent::Ipv6(host) => {
                    host.add_to(&mut summary);
                    continue;
                }
                Agent::Home(agent) => agent.counters(),
                Agent::Foreign(agent) => agent.counters(),
                Agent::Correspondent(agent) => agent.counters(),
                Agent::Mobile(mobile) => {
                    let counters = mobile.counters();
                    summary.registrations_accepted += counters.accepted;
                    summary.registrations_denied += counters.denials().map(|(_, count)| count).sum::<u64>();
                    counters
                }
            };
            for reason in DropReason::ALL {
                let count = counters.dropped(reason);
                if count > 0 {
                    *summary.discarded.entry(reason.name().to_owned()).or_default() += count;
                }
            }
        }
        for (reason, count) in self.multipath.iter().flat_map(|multipath| multipath.dropped_messages()) {
            *summary.discarded.entry(format!("multipath-{}", reason.name())).or_default() += count;
        }
        if self.malformed_messages > 0 {
            *summary.discarded.entry("unreadable".to_owned()).or_default() += self.malformed_messages;
        }
        Some(summary)
    }
}

fn drops(way: &OneWay) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let counters = way.counters();
    DropCause::ALL.into_iter().map(|cause| (cause.name(), counters.dropped_by(cause))).filter(|(_, n)| *n > 0)
}

/// What became of a one-way link by `now`, with so many packets in its queue and in flight.
fn link_summary(way: &OneWay, (queued, in_flight): (u64, u64), now: Instant) -> LinkSummary {
    let counters = way.counters();
    let config = way.link.config();
    let framing = config.framing;
    let sent_bits = (u128::from(counters.delivered_bytes)
        + u128::from(counters.delivered) * u128::from(framing.overhead_bytes))
        * u128::from(framing.bits_per_byte);
    LinkSummary {
        name: way.name.clone(),
        offered_packets: counters.offered,
        offered_bytes: counters.offered_bytes,
        delivered_packets: counters.delivered,
        delivered_bytes: counters.delivered_bytes,
        dropped_packets: drops(way).map(|(cause, count)| (cause.to_owned(), count)).collect(),
        marked_packets: counters.marked,
        drained_packets: counters.drained,
        queued_packets: queued,
        in_flight_packets: in_flight,
        utilisation: LinkSummary::utilisation(sent_bits, config.bits_by(now)),
        max_queue_packets: way.longest_queue.0 as u64,
        max_queue_bytes: way.longest_queue.1,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
