//! Flows that go by the mobile node's own address, past Mobile IP: over QUIC where they migrate, and over Multipath TCP. Who is the client of
//! each, and by which address the mobile node goes.

use careof_mobility::v4::{DeliveryMethod, PolicyEntry, Prefix};
use careof_scenario::{CareOf, Flow, Protocol, Role, Scenario};

use crate::flow::{FlowId, port};
use crate::refusal::Unsupported;
use crate::topology::{NodeId, Topology};
use crate::workload::Side;

/// The client of a flow over QUIC or Multipath TCP: the mobile node where one end alone is one, for only clients of QUIC can move (RFC 9000,
/// section 9), and a subflow is opened by whoever has a new address; otherwise who opens the flow.
#[must_use]
pub fn client_of(scenario: &Scenario, flow: &Flow) -> Side {
    let [opener, acceptor] = mobile_ends(scenario, flow);
    if acceptor && !opener { Side::Acceptor } else { Side::Opener }
}

fn mobile_ends(scenario: &Scenario, flow: &Flow) -> [bool; 2] {
    [flow.from, flow.to].map(|end| scenario.node(end).role == Role::Mobile)
}

/// Whether the mobile node's end of a flow moves with the node's own address, past Mobile IP.
#[must_use]
pub fn migrates(flow: &Flow) -> bool {
    flow.quic.as_ref().is_some_and(|quic| quic.config.migration)
}

/// What the policy tables of mobile nodes say of flows that migrate: their packets are none of Mobile IP's business.
pub(crate) fn policy_of_migrating_flows(
    scenario: &Scenario,
    topology: &Topology,
) -> impl Iterator<Item = PolicyEntry> {
    scenario.flows.iter().zip(0..).filter(|(flow, _)| migrates(flow)).map(|(flow, number)| {
        let client = client_of(scenario, flow);
        let server = if client == Side::Opener { flow.to } else { flow.from };
        let server = topology.find(&scenario.node(server).name).unwrap_or(NodeId(0));
        PolicyEntry {
            destination: Prefix::host(topology.address_of(server).to_ipv4()),
            port: Some(port(FlowId(number), client.peer())),
            method: DeliveryMethod::RegularIp,
        }
    })
}

/// The key by which a flow asks for the mobile node's own address, and its last word.
fn asked_by(flow: &Flow) -> Option<(&'static str, &'static str)> {
    let migration = migrates(flow).then_some(("quic.migration", "migration"));
    migration.or(flow.mptcp.as_ref().map(|_| ("mptcp", "mptcp")))
}

/// Refuses flows by the mobile node's own address where there is none, or none that changes.
///
/// # Errors
/// The first such flow.
pub(crate) fn refuse_flows_without_addresses(scenario: &Scenario) -> Result<(), Unsupported> {
    for (index, flow) in scenario.flows.iter().enumerate() {
        let Some((key, word)) = asked_by(flow) else { continue };
        let mobile = mobile_ends(scenario, flow).into_iter().filter(|mobile| *mobile).count();
        let remedy = match (&scenario.mobility, mobile) {
            (None, _) | (_, 0) => format!("no end of this flow moves: leave `{word}` out"),
            (_, 2) => format!(
                "both ends move, and the peer has to stay where it is: leave `{word}` out, and let Mobile IP do it"
            ),
            (Some(mobility), _) if mobility.protocol == Protocol::MobileIpv6 => format!(
                "over IPv6 flows use the home address: leave `{word}` out, or write protocol = \"mobile-ipv4\""
            ),
            (Some(mobility), _) if mobility.care_of == CareOf::ForeignAgent => {
                "the mobile node has no address of its own behind a foreign agent: write care_of = \"co-located\""
                    .to_owned()
            }
            (Some(mobility), _) if mobility.fleet.is_some() || mobility.micro_mobility.is_some() => format!(
                "the addresses of many mobile nodes, and of those in a domain, do not change: leave `{word}` out"
            ),
            _ => continue,
        };
        return Err(Unsupported { key: format!("flow.{index}.{key}"), found: "true".to_owned(), remedy });
    }
    Ok(())
}
