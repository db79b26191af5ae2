//! Hierarchical Mobile IPv6 (RFC 5380): mobility anchor points with the regional addresses of mobile nodes, the configurations of both, and
//! what access routers advertise.

use careof_mobility::v6::{
    HierarchicalMobileNodeConfig, MapAssociation, MapSelection, MobileNodeConfig, MobilityAnchorPointConfig,
    Prefix, SecurityAssociation, ServedMobileNode,
};
use careof_mobility::{ConfigError, InterfaceId};
use careof_scenario::{AnchorPoint, Hierarchy, LinkId, Mobility, Scenario};
use careof_wire::icmpv6::{MapOption, PrefixLifetime};
use careof_wire::mip6::{Lifetime, MobileNodeIdentifier};

use crate::agents::wall_clock;
use crate::layout::stream;
use crate::locator::{Ipv6Plan, Locator, Subnet};
use crate::mobile_ipv6::{address, security};
use crate::topology::{NodeId, Topology, down_of};

/// The place of a mobility anchor point in the network of its regional addresses, and of the first mobile node there.
const ANCHOR_POINT_HOST: u8 = 1;
const FIRST_MOBILE_HOST: u8 = 2;
/// The interface to that network, which is no link.
const NO_LINK: InterfaceId = InterfaceId(u16::MAX);

/// A mobility anchor point, with the network of its address and of regional care-of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorPointPlace {
    /// The node.
    pub node: NodeId,
    /// The network, which exists only there.
    pub network: Subnet,
}

impl AnchorPointPlace {
    /// Its address.
    #[must_use]
    pub fn address(&self) -> Locator {
        self.network.host(ANCHOR_POINT_HOST)
    }
}

impl Topology {
    /// The regional care-of address of a mobile node at a mobility anchor point; `None` if they are not of the experiment.
    #[must_use]
    pub fn regional_address(&self, anchor_point: NodeId, mobile: NodeId) -> Option<Locator> {
        let place = self.anchor_points.iter().find(|place| place.node == anchor_point)?;
        let host = u8::try_from(self.homes.index(mobile)?).ok()?.checked_add(FIRST_MOBILE_HOST)?;
        Some(place.network.host(host))
    }

    /// The mobile node with this regional care-of address.
    #[must_use]
    pub fn mobile_at_regional(&self, regional: Locator) -> Option<NodeId> {
        let subnet = regional.subnet()?;
        self.anchor_points.iter().find(|place| place.network == subnet)?;
        let index = regional.place().checked_sub(FIRST_MOBILE_HOST)?;
        self.homes.mobile_nodes().nth(index.into())
    }
}

/// What an agent of a hierarchy is made of.
pub(crate) struct Parts<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) mobility: &'a Mobility,
    pub(crate) topology: &'a Topology,
    pub(crate) run: u64,
}

impl Parts<'_> {
    fn anchor_point_of(&self, node: NodeId) -> Option<(&Hierarchy, &AnchorPoint)> {
        let hierarchy = self.mobility.hierarchy.as_ref()?;
        let name = &self.topology.place(node).name;
        let is_it = |one: &&AnchorPoint| self.scenario.node(one.node).name == *name;
        Some((hierarchy, hierarchy.anchor_points.iter().find(is_it)?))
    }

    /// What a mobile node and a mobility anchor point have agreed on.
    fn agreed(&self, anchor_point: NodeId, mobile: NodeId) -> Result<SecurityAssociation, ConfigError> {
        let [mobile, anchor_point] = [mobile, anchor_point].map(|node| &self.topology.place(node).name);
        let mut random = stream(self.scenario, self.run, &format!("mobility.key.{mobile}.{anchor_point}"));
        security(self.mobility, &mut random)
    }

    /// The mobility anchor point at `node`; `None` where there is none.
    pub(crate) fn anchor_point(
        &self,
        node: NodeId,
    ) -> Result<Option<MobilityAnchorPointConfig>, ConfigError> {
        let topology = self.topology;
        let place = topology.anchor_points.iter().find(|place| place.node == node);
        let (Some(place), Some((hierarchy, plan))) = (place, self.anchor_point_of(node)) else {
            return Ok(None);
        };
        let own = address(topology, place.address());
        let prefix = Prefix::new(own, Ipv6Plan::PREFIX_LEN);
        let mut config = MobilityAnchorPointConfig::new(own, prefix, NO_LINK);
        config.clock = wall_clock();
        // Nobody else can have an address of a network that is no link.
        config.duplicate_address_detection = None;
        let (domain, others) = self.visited_prefixes(plan);
        config.domain = domain;
        if let Some(forwarding) = hierarchy.forwarding {
            config.neighbors = others;
            config.forwarding = Lifetime::from_duration(forwarding);
        }
        for mobile in topology.homes.mobile_nodes() {
            let Some(regional) = topology.regional_address(node, mobile) else { continue };
            let security = self.agreed(node, mobile)?;
            let mut served = ServedMobileNode::new(address(topology, regional), security);
            served.identifier = identifier(&topology.place(mobile).name);
            config.mobile_nodes.push(served);
        }
        Ok(Some(config))
    }

    /// The prefixes of the links that mobile nodes visit: those at the access routers of its domain, and the others.
    fn visited_prefixes(&self, plan: &AnchorPoint) -> (Vec<Prefix>, Vec<Prefix>) {
        let is_visited = |id: &LinkId| self.scenario.link(*id).access && self.mobility.home != Some(*id);
        let links = (0..self.scenario.links.len()).map(LinkId).filter(is_visited);
        let (domain, others): (Vec<LinkId>, Vec<LinkId>) =
            links.partition(|id| plan.domain.contains(&self.scenario.link(*id).ends[0]));
        let prefixes =
            |links: Vec<LinkId>| links.into_iter().filter_map(|link| self.prefix_of(link)).collect();
        (prefixes(domain), prefixes(others))
    }

    fn prefix_of(&self, link: LinkId) -> Option<Prefix> {
        let router = self.topology.place(self.topology.entrance(down_of(link)));
        let interface = router.interfaces.iter().find(|interface| interface.out == down_of(link))?;
        Some(Prefix::new(address(self.topology, interface.address), Ipv6Plan::PREFIX_LEN))
    }

    /// The mobile node at `node`, made of what it is without mobility anchor points.
    pub(crate) fn mobile_node(
        &self,
        node: NodeId,
        mut config: MobileNodeConfig,
        hierarchy: &Hierarchy,
    ) -> Result<HierarchicalMobileNodeConfig, ConfigError> {
        // Its home agent is told of a regional address, and reports would be of another path than the one that changes.
        config.report_paths = false;
        let association = |place: &AnchorPointPlace| {
            let regional = self.topology.regional_address(place.node, node);
            Ok::<_, ConfigError>(MapAssociation {
                address: address(self.topology, place.address()),
                regional_address: regional.map(|regional| address(self.topology, regional)),
                security: self.agreed(place.node, node)?,
            })
        };
        let maps = self.topology.anchor_points.iter().map(association).collect::<Result<_, _>>()?;
        let mut config = HierarchicalMobileNodeConfig::new(config, maps);
        config.selection = match hierarchy.selection {
            careof_scenario::MapSelection::Furthest => MapSelection::Furthest,
            careof_scenario::MapSelection::HighestPreference => MapSelection::HighestPreference,
            careof_scenario::MapSelection::Nearest => MapSelection::Nearest,
        };
        config.forwarding = hierarchy.forwarding;
        Ok(config)
    }
}

/// The NAI by which a mobile node is known.
pub(crate) fn identifier(name: &str) -> Option<MobileNodeIdentifier> {
    let identifier = format!("{name}@careof.example");
    MobileNodeIdentifier::new(MobileNodeIdentifier::NAI, identifier.as_bytes())
}

/// What the access router at `node` advertises of mobility anchor points.
pub(crate) fn advertised(
    scenario: &Scenario,
    mobility: &Mobility,
    topology: &Topology,
    node: NodeId,
) -> Vec<MapOption> {
    let name = &topology.place(node).name;
    let anchor_points = mobility.hierarchy.iter().flat_map(|hierarchy| &hierarchy.anchor_points);
    let advertises =
        |one: &&AnchorPoint| one.domain.iter().any(|router| scenario.node(*router).name == *name);
    let option = |one: &AnchorPoint| {
        let place = topology
            .anchor_points
            .iter()
            .find(|place| topology.place(place.node).name == scenario.node(one.node).name)?;
        let locator = place.address();
        // A mobility anchor point on the link of the mobile node is at distance 1 (RFC 5380 section 5).
        let hops = topology.hops(node, locator)?.saturating_add(1);
        Some(MapOption {
            distance: u8::try_from(hops).unwrap_or(MapOption::MAX).min(MapOption::MAX),
            preference: one.preference,
            allocates_address: false,
            valid_lifetime: PrefixLifetime::INFINITE,
            address: address(topology, locator),
        })
    };
    anchor_points.filter(advertises).filter_map(option).collect()
}
