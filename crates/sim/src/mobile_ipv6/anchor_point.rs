//! Mobility anchor points (RFC 5380): packets of mobile nodes in tunnels of which this one is an inner part, and regional addresses.

use core::net::{IpAddr, Ipv6Addr};

use careof_assist::{PathId, Towards};
use careof_mobility::v6::{Addresses, BindingChanged, MobilityAnchorPoint, Prefix};
use careof_mobility::{InterfaceId, PathProperties};
use careof_plan::{Locator, NodeId};
use careof_wire::PathReport;
use careof_wire::mip6::Lifetime;

use super::{Ipv6Host, Ipv6Role};
use crate::agents::Agent;
use crate::packet::Packet;
use crate::simulation::Simulation;

impl Ipv6Host {
    /// The mobility anchor point, if this is one.
    pub(super) fn anchor_point(&self) -> Option<&MobilityAnchorPoint> {
        match &self.role {
            Ipv6Role::AnchorPoint(agent) => Some(agent),
            _ => None,
        }
    }
}

impl Simulation {
    /// Whether `address` is a regional care-of address of the mobile node at `node`.
    pub(crate) fn is_regional_address_of(&self, node: NodeId, address: Locator) -> bool {
        !self.topology.anchor_points.is_empty() && self.topology.mobile_at_regional(address) == Some(node)
    }

    /// The regional care-of address at the mobility anchor point `node` of the mobile node with this home address.
    fn regional_of_home(&self, node: NodeId, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        let mobile = self.topology.homes.node_at(self.locate(home_address))?;
        Some(self.address_v6(self.topology.regional_address(node, mobile)?))
    }

    /// How the mobile node sends from its regional care-of address; `None` if `care_of` is none.
    pub(crate) fn regional_way(
        &self,
        node: NodeId,
        care_of: Ipv6Addr,
        peer: Ipv6Addr,
    ) -> Option<(InterfaceId, Addresses)> {
        let Agent::Ipv6(host) = &self.node(node).agent else { return None };
        let Ipv6Role::HierarchicalMobile(mobile) = &host.role else { return None };
        let is_it = mobile.regional_address() == Some(care_of);
        let delivery = mobile.regional_delivery(peer).filter(|_| is_it)?;
        Some((delivery.interface, delivery.addresses))
    }

    /// Mobility anchor point: the paths to a mobile node, of which nothing is reported.
    pub(crate) fn regional_paths_to(
        &self,
        node: NodeId,
        home_address: Ipv6Addr,
    ) -> Vec<(PathId, PathProperties)> {
        let Agent::Ipv6(host) = &self.node(node).agent else { return Vec::new() };
        let (Some(agent), Some(regional)) = (host.anchor_point(), self.regional_of_home(node, home_address))
        else {
            return Vec::new();
        };
        let bindings = agent.bindings_of(regional).iter();
        bindings.map(|one| (PathId::CareOf(one.care_of.into()), PathProperties::default())).collect()
    }

    /// Mobility anchor point: which way a packet goes that passes in the tunnel to the home agent, or with the headers of route
    /// optimisation, and the path to the mobile node; `None` for others.
    pub(crate) fn regional_direction(
        &self,
        host: &Ipv6Host,
        packet: &Packet,
    ) -> Option<(Towards, Option<PathId>)> {
        let agent = host.anchor_point()?;
        let outer = packet.outer.filter(|_| !packet.is_nested() && !packet.outermost().is_fragment())?;
        let (to, from) = (outer.header.destination, outer.header.source);
        if agent.serves(self.address_v6(to)) {
            let last = host.tunnels.get(&to).and_then(|tunnels| tunnels.last());
            let path = last.map(|passage| PathId::CareOf(self.address_v6(passage.exit).into()));
            return Some((Towards::Mobile, path));
        }
        agent.serves(self.address_v6(from)).then_some((Towards::Peer, None))
    }

    /// Mobility anchor point: the binding of a regional address has changed. Its assists see to moves within the domain, and to what it had
    /// sent to a mobile node that has left: where packets are sent on, the home agent sees no gap.
    pub(super) fn regional_binding_changed(&mut self, node: NodeId, change: &BindingChanged) {
        let regional = self.locate(change.home_address);
        let Some(mobile) = self.topology.mobile_at_regional(regional) else { return };
        let Some(home_address) = self.topology.homes.address_of(mobile) else { return };
        if let Some(home) = self.topology.homes.of(mobile) {
            self.binding_changed(home.agent, home_address);
        }
        let (is_here, is_bound) =
            (self.is_in_domain(node, change.care_of), change.lifetime != Lifetime::ZERO);
        let Some(host) = self.ipv6(node) else { return };
        let comes_back = match (is_bound, is_here) {
            (true, true) => host.abroad.remove(&regional),
            (true, false) => {
                host.abroad.insert(regional);
                false
            }
            (false, _) => false,
        };
        // What is kept of one that comes back is of long ago, and others have seen to it.
        let report = comes_back.then(|| PathReport { old_path_lost: Some(false), ..PathReport::default() });
        let mobile = IpAddr::V6(self.address_v6(home_address));
        self.assist_moved(node, mobile, report.or(change.path), change.received);
    }

    /// Whether a mobility anchor point sends what comes to this regional address on to `care_of`.
    pub(crate) fn is_relayed_to(&self, regional: Locator, care_of: Locator) -> bool {
        let is_of = |place: &&careof_plan::AnchorPointPlace| regional.subnet() == Some(place.network);
        let Some(place) = self.topology.anchor_points.iter().find(is_of) else { return false };
        let agent = &self.node(place.node).agent;
        let mut tunnels = (0..).map_while(|n| agent.tunnel_to(regional, n));
        tunnels.any(|(tunnel, _)| tunnel.exit == care_of)
    }

    fn is_in_domain(&self, node: NodeId, care_of: Ipv6Addr) -> bool {
        let mobility = self.scenario.mobility.as_ref();
        let Some(hierarchy) = mobility.and_then(|mobility| mobility.hierarchy.as_ref()) else { return false };
        let name = &self.node(node).place.name;
        let is_it = |one: &&careof_scenario::AnchorPoint| self.scenario.node(one.node).name == *name;
        let Some(plan) = hierarchy.anchor_points.iter().find(is_it) else { return false };
        let network = Prefix::new(care_of, careof_plan::Ipv6Plan::PREFIX_LEN);
        plan.domain.iter().any(|router| {
            let router = self.topology.find(&self.scenario.node(*router).name);
            let interfaces = router.map(|router| &self.node(router).place.interfaces);
            interfaces
                .into_iter()
                .flatten()
                .any(|interface| network.contains(self.address_v6(interface.address)))
        })
    }
}
