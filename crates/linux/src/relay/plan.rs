//! Which flows are split, and with which TCP.

use std::net::{IpAddr, SocketAddr};

use careof_assist::Exception;
use careof_plan::{FlowId, NodeId, Side, Topology, exceptions, flow_key, port};
use careof_scenario::{Assist, Flow, Scenario, Split, Workload};

use super::{RelayPlan, RelayedFlow};
use crate::error::WorldError;
use crate::tcp::{KernelChoice, RelayChoices, choose_for_relay};

/// What the least buffers of two kernel sockets take.
const LEAST_BUFFER: u64 = 16 << 10;
/// A window of more than half of that has no number in a TCP header (RFC 7323 section 2.3).
const LARGEST_BUFFER: u64 = 2 << 30;

/// Who splits what.
pub(crate) struct Splitter<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology,
    split: &'a Split,
    home_agent: NodeId,
    mobile: NodeId,
    home_address: IpAddr,
    exceptions: Vec<Exception>,
}

impl<'a> Splitter<'a> {
    /// `None` where a scenario has no relay.
    pub(crate) fn new(scenario: &'a Scenario, topology: &'a Topology) -> Option<Self> {
        let split = scenario.assists.iter().find_map(|assist| match assist {
            Assist::Split(split) => Some(split),
            _ => None,
        })?;
        let home = topology.homes.first()?;
        Some(Self {
            scenario,
            topology,
            split,
            home_agent: home.agent,
            mobile: home.first,
            home_address: topology.address(topology.address_of(home.first)),
            exceptions: exceptions(scenario, topology),
        })
    }

    /// Refuses what the relay of a Linux host cannot do.
    ///
    /// # Errors
    /// [`WorldError::Unsupported`], by its key.
    pub(crate) fn refuse(&self) -> Result<(), WorldError> {
        if self.topology.homes.mobile_nodes().count() > 1 {
            return Err(WorldError::Unsupported {
                key: "assist.use".to_owned(),
                found: "\"split\" for several mobile nodes".to_owned(),
                remedy: "the relay of this world serves one: leave one mobile node, or use the simulator"
                    .to_owned(),
            });
        }
        if !(LEAST_BUFFER..=LARGEST_BUFFER).contains(&self.split.buffer) {
            return Err(WorldError::Unsupported {
                key: "assist.split.buffer".to_owned(),
                found: format!("{} B", self.split.buffer),
                remedy: "a kernel's sockets hold what is relayed, and take 16 KiB to 2 GiB".to_owned(),
            });
        }
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if flow.workload == Workload::Command && self.splits(index, flow) {
                return Err(WorldError::Unsupported {
                    key: format!("flow.{index}.command"),
                    found: "the connection of a program through the relay of \"split\"".to_owned(),
                    remedy: "a relay listens at ports that are known before: leave the program alone by its peer, as in \
                             `except = [{ prefix = \"correspondent\" }]` of [assist]; or use a flow of another kind"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The TCP of the relay's connections towards the mobile node.
    ///
    /// # Errors
    /// As [`choose_for_relay`].
    pub(crate) fn choices(&self) -> Result<RelayChoices, WorldError> {
        let flows = self.scenario.flows.iter().enumerate();
        let choices = flows
            .filter(|(index, flow)| self.splits(*index, flow))
            .map(|(index, flow)| Ok((index, choose_for_relay(index, flow, self.split)?)))
            .collect::<Result<_, WorldError>>()?;
        Ok(RelayChoices { node: self.home_agent, choices })
    }

    /// What the relay is to do, the flows having these TCPs between their ends and with it.
    pub(crate) fn plan(&self, of_flows: &[KernelChoice], of_relay: &RelayChoices) -> RelayPlan {
        let buffer = u32::try_from(self.split.buffer).unwrap_or(u32::MAX);
        let flows = of_relay.choices.iter().filter_map(|(&index, towards_mobile)| {
            let (flow, towards_fixed) = (self.scenario.flows.get(index)?, of_flows.get(index)?);
            let nodes = self.nodes(flow)?;
            let end = |side: Side| {
                let address = self.topology.address_of(nodes[side.index()]);
                SocketAddr::new(self.topology.address(address), port(FlowId(index as u16), side))
            };
            let half = |side: Side| {
                let is_mobile = nodes[side.index()] == self.mobile;
                if is_mobile { towards_mobile } else { towards_fixed }.of_relay(buffer)
            };
            let (ends, halves) = (Side::BOTH.map(end), Side::BOTH.map(half));
            Some(RelayedFlow { flow: index, ends, halves, buffer })
        });
        RelayPlan { node: self.home_agent, home_address: self.home_address, flows: flows.collect() }
    }

    /// Opener and acceptor.
    fn nodes(&self, flow: &Flow) -> Option<[NodeId; 2]> {
        let find = |node| self.topology.find(&self.scenario.node(node).name);
        Some([find(flow.from)?, find(flow.to)?])
    }

    /// Whether a flow passes the relay. One that ends at the home agent is where the relay is, and Multipath TCP has nothing to do with that.
    fn splits(&self, index: usize, flow: &Flow) -> bool {
        let Some(nodes) = self.nodes(flow) else { return false };
        let Some(own) = Side::BOTH.into_iter().find(|side| nodes[side.index()] == self.mobile) else {
            return false;
        };
        let peer = nodes[own.peer().index()];
        let passes_by =
            flow.mptcp.is_some() || matches!(flow.workload, Workload::Probe { .. } | Workload::Voice(_));
        if peer == self.home_agent || passes_by {
            return false;
        }
        // Those of a program are its own.
        let has_known_ports = flow.workload != Workload::Command;
        let addresses = nodes.map(|node| self.topology.address_of(node));
        let key =
            flow_key(FlowId(index as u16), own, addresses.map(|address| self.topology.address(address)));
        let covers =
            |exception: &Exception| (has_known_ports || exception.port.is_none()) && exception.covers(&key);
        !self.exceptions.iter().any(covers)
    }
}
