//! Who asks for addresses, and who leases them.

use careof_base::Duration;
use careof_mobility::dhcp::{ClientConfig, ConflictCheck, ServerConfig, StartDelay};
use careof_mobility::v4::InterfaceId;
use careof_scenario::{ClientCheck, Dhcp, Role, Scenario};
use careof_wire::dhcp::{HardwareAddress, LeaseTime};

use crate::locator::Subnet;
use crate::topology::{NodeId, Topology};

/// What runs of DHCP on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DhcpPlan {
    /// One for each interface that has to ask for its address.
    pub clients: Vec<ClientConfig>,
    /// One for each interface whose other end asks for an address there.
    pub servers: Vec<ServerConfig>,
}

/// The DHCP of `node`: nothing, unless its care-of addresses come that way.
///
/// A link has one address to lease, that of its other end in the [`Topology`], so that routes hold whoever asks when.
#[must_use]
pub fn dhcp(scenario: &Scenario, topology: &Topology, node: NodeId) -> DhcpPlan {
    let Some(dhcp) = scenario.mobility.as_ref().and_then(|mobility| mobility.dhcp.as_ref()) else {
        return DhcpPlan::default();
    };
    let place = topology.place(node);
    let mut plan = DhcpPlan::default();
    for (index, interface) in place.interfaces.iter().enumerate() {
        let id = InterfaceId(index as u16);
        if place.role == Role::Mobile && topology.address_of(node) != interface.address {
            plan.clients.push(client(dhcp, id, hardware(node, id)));
        } else if topology.homes.address_of(interface.peer).is_some_and(|own| own != interface.peer_address) {
            let pool = interface.peer_address.to_ipv4();
            plan.servers.push(ServerConfig {
                ping_check: dhcp.server_check,
                processing: dhcp.processing,
                lease_time: lease_time(dhcp.lease),
                max_lease_time: lease_time(dhcp.lease),
                ..ServerConfig::new(id, interface.address.to_ipv4(), Subnet::PREFIX_LEN, pool, pool)
            });
        }
    }
    plan
}

fn client(dhcp: &Dhcp, interface: InterfaceId, hardware: HardwareAddress) -> ClientConfig {
    let (least, most) = dhcp.start_delay.range();
    let check =
        |in_background| ConflictCheck { probes: dhcp.probes, in_background, ..ConflictCheck::RFC_5227 };
    ClientConfig {
        start_delay: StartDelay { least, most },
        conflict_check: match dhcp.client_check {
            ClientCheck::BeforeUse => Some(check(false)),
            ClientCheck::Background => Some(check(true)),
            ClientCheck::None => None,
        },
        ..ClientConfig::new(interface, hardware)
    }
}

/// Locally administered, and no other interface's.
fn hardware(node: NodeId, interface: InterfaceId) -> HardwareAddress {
    let ([a, b], [c, d]) = (node.0.to_be_bytes(), interface.0.to_be_bytes());
    HardwareAddress::ethernet([2, 0, a, b, c, d])
}

fn lease_time(lease: Option<Duration>) -> LeaseTime {
    lease
        .and_then(|lease| u32::try_from(lease.as_secs()).ok())
        .map_or(LeaseTime::INFINITE, LeaseTime::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::lay_out;

    #[test]
    fn every_access_link_but_home_has_a_client_and_a_server_that_leases_its_address() {
        const SCENARIO: &str = "duration = \"20 s\"\n[links]\nhome = \"wavelan\"\nwifi = \"wavelan\"\n\
            gsm = { preset = \"gsm-csd\", between = [\"router\", \"mobile\"] }\n\
            backbone = { rate = \"1 Mbit/s\", delay = \"5 ms\", between = [\"home-agent\", \"router\"] }\n\
            [mobility]\nhome = \"home\"\n";
        let plans = |care_of: &str| {
            let overrides = [format!("mobility.care_of={care_of}")];
            let scenario =
                Scenario::parse("x.toml", SCENARIO, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
            let topology = lay_out(&scenario);
            let of = |name| dhcp(&scenario, &topology, topology.find(name).unwrap());
            (of("mobile"), [of("home-agent"), of("router"), of("correspondent")], topology)
        };
        let (mobile, servers, topology) = plans("dhcp");
        assert_eq!(mobile.clients.iter().map(|client| client.interface.0).collect::<Vec<_>>(), [1, 2]);
        let leased: Vec<_> =
            servers.iter().flat_map(|plan| &plan.servers).map(|server| (server.first, server.last)).collect();
        let own = &topology.place(topology.find("mobile").unwrap()).interfaces;
        assert_eq!(leased, [1, 2].map(|n| (own[n].address.to_ipv4(), own[n].address.to_ipv4())));
        assert!(servers.iter().all(|plan| plan.clients.is_empty()) && mobile.servers.is_empty());
        let (mobile, servers, _) = plans("co-located");
        assert_eq!(mobile, DhcpPlan::default());
        assert!(servers.iter().all(|plan| *plan == DhcpPlan::default()));
    }
}
