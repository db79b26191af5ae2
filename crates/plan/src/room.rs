//! Whether mobile nodes leave room for their tunnels.

use careof_scenario::{NodeId, Role, Scenario};

/// Whether the TCP of a mobile node that is away leaves room for the tunnel, in what it sends and in what it asks for, so that flows
/// begin with segments that fit: unless the scenario says no, or a flow of a mobile node's discovers no path MTU. Who asks for that
/// wants to see full packets cut by the tunnel's entry and put together at its exit, and a host has one route for all its flows.
#[must_use]
pub fn leaves_room(scenario: &Scenario) -> bool {
    let is_mobile = |end: NodeId| scenario.node(end).role == Role::Mobile;
    let wanted = scenario.mobility.as_ref().is_some_and(|mobility| mobility.leave_room);
    wanted
        && !scenario
            .flows
            .iter()
            .any(|flow| !flow.tcp.pmtu_discovery && (is_mobile(flow.from) || is_mobile(flow.to)))
}
