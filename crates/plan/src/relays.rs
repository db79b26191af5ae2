//! Nodes that lend a mobile node their links: what both ends of an alliance are configured with.

use careof_base::{Instant, Probability};
use careof_mobility::multipath::alliance::{
    ClientConfig, ClientEvent, ClusterKey, RelayConfig, RelayEvent, Trust,
};
use careof_mobility::v4::Prefix;
use careof_scenario::{LinkId, Multipath, RelayLink, Scenario};
use careof_wire::mip4::Spi;
use careof_wire::shake::IntroducedKey;

use crate::agents::told_rate;
use crate::layout::stream;
use crate::locator::{Locator, Subnet};
use crate::topology::{InterfaceIndex, NodeId, OneWayId, Topology, down_of, up_of};

/// The SPIs of the keys of a cluster: of advertisements, and of alliances.
const CLUSTER_SPI: Spi = Spi(260);
const ALLIANCE_SPI: Spi = Spi(261);

/// A relay and its only client, the mobile node.
#[derive(Clone, Debug)]
pub struct RelayPlan {
    /// The relay.
    pub node: NodeId,
    /// The link that it lends.
    pub link: LinkId,
    /// Its interface on that link.
    pub outer_interface: InterfaceIndex,
    /// Its address there: the care-of address.
    pub outside: Locator,
    /// The link of the cluster.
    pub cluster: LinkId,
    /// The relay's interface there.
    pub inner_interface: InterfaceIndex,
    /// The relay's address there.
    pub relay_address: Locator,
    /// The mobile node's interface there, which is the number of the path.
    pub interface: InterfaceIndex,
    /// The mobile node's address there.
    pub client_address: Locator,
    /// What the relay is configured with.
    pub relay: RelayConfig,
    /// What the mobile node is.
    pub client: ClientConfig,
    /// How many packets the relay drops rather than pass on.
    pub drops: Probability,
    /// When it vanishes, and when it is back.
    pub gone: Option<(Instant, Option<Instant>)>,
}

impl RelayPlan {
    /// What an event of the relay says: the phase, where, and the rest in words.
    #[must_use]
    pub const fn news_of_relay(&self, event: &RelayEvent) -> (&'static str, OneWayId, &'static str) {
        let (phase, text) = match event {
            RelayEvent::Allied { .. } => ("relay-allied", "with the mobile node"),
            RelayEvent::Ended { why, .. } => ("relay-ended", why.name()),
        };
        (phase, down_of(self.cluster), text)
    }

    /// The same of an event of the mobile node as its client.
    #[must_use]
    pub const fn news_of_client(&self, event: &ClientEvent) -> (&'static str, OneWayId, &'static str) {
        let (phase, text) = match event {
            ClientEvent::RelayGained { .. } => ("relay-gained", "by its reply"),
            ClientEvent::RelayLost { why, .. } => ("relay-lost", why.name()),
        };
        (phase, up_of(self.cluster), text)
    }

    /// When it vanishes or returns next, after `now`.
    #[must_use]
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let (vanishes, returns) = self.gone?;
        [Some(vanishes), returns].into_iter().flatten().find(|at| *at > now)
    }

    /// Whether it has vanished.
    #[must_use]
    pub fn is_gone(&self, now: Instant) -> bool {
        let is_back = |returns: Option<Instant>| returns.is_some_and(|returns| now >= returns);
        self.gone.is_some_and(|(vanishes, returns)| now >= vanishes && !is_back(returns))
    }
}

/// The relays of the mobile node `mobile`, in the order of the scenario.
pub(crate) fn relays(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    multipath: &Multipath,
    mobile: NodeId,
) -> Vec<RelayPlan> {
    let mut random = stream(scenario, run, "multipath.cluster");
    let mut key = || [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat();
    let cluster_key = ClusterKey { spi: CLUSTER_SPI, key: key() };
    let mut secret = [0; 32];
    let drawn = [key(), key()].concat();
    secret.copy_from_slice(&drawn);
    let home_address = topology.address_of(mobile).to_ipv4();
    let home_agent = topology.homes.of(mobile).map(|home| home.agent_address.to_ipv4());
    let plan = |lent: &RelayLink| {
        let alliance_key = ClusterKey { spi: ALLIANCE_SPI, key: key() };
        let node = topology.find(&scenario.node(lent.node).name)?;
        let find = |node: NodeId, out| {
            let interfaces = &topology.place(node).interfaces;
            let index = interfaces.iter().position(|one| one.out == out)?;
            Some((InterfaceIndex(u16::try_from(index).ok()?), interfaces.get(index)?.address))
        };
        let (outer_interface, outside) = find(node, up_of(lent.link))?;
        let (inner_interface, relay_address) = find(node, down_of(lent.cluster))?;
        let (interface, client_address) = find(mobile, up_of(lent.cluster))?;
        let link = scenario.link(lent.link);
        let cluster = relay_address.to_ipv4();
        let cluster_network = Prefix::new(relay_address.beside(0).to_ipv4(), Subnet::PREFIX_LEN);
        let trust = |peer| match multipath.trust {
            careof_scenario::Trust::Keys => {
                Trust::Keys { cluster: cluster_key.clone(), peers: vec![(peer, alliance_key.clone())] }
            }
            careof_scenario::Trust::FirstUse => Trust::FirstUse,
        };
        Some(RelayPlan {
            node,
            link: lent.link,
            outer_interface,
            outside,
            cluster: lent.cluster,
            inner_interface,
            relay_address,
            interface,
            client_address,
            relay: RelayConfig {
                cluster,
                cluster_network,
                outside: outside.to_ipv4(),
                downlink: lent.claims.or_else(|| told_rate(link, |link| link.down.rate)),
                uplink: lent.claims.or_else(|| told_rate(link, |link| link.up.rate)),
                cost: lent.cost,
                clients: 1,
                client_rate: lent.client_rate,
                client_bytes: lent.client_bytes,
                longest: lent.longest,
                trust: trust(home_address),
            },
            client: ClientConfig {
                home_address,
                home_agent,
                cluster: client_address.to_ipv4(),
                cluster_network,
                relays: 1,
                highest_cost: u16::MAX,
                lifetime: lent.longest,
                trust: trust(cluster),
                secret: IntroducedKey(secret),
            },
            drops: lent.drops,
            gone: lent.gone.map(|(vanishes, returns)| {
                (Instant::ZERO + vanishes, returns.map(|returns| Instant::ZERO + returns))
            }),
        })
    };
    multipath.relays.iter().filter_map(plan).collect()
}
