//! The path between the mobile node and its peer: what metrics compare a handover with.

use core::time::Duration;

use careof_base::DataRate;
use careof_link::Config as LinkConfig;
use careof_metrics::{NewPath, PathRate};
use careof_mobility::v4::PathProperties;
use careof_scenario::{KnownRate, LinkId, Scenario};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::{
    Algorithm, AuthenticationExtension, PathReport, RegistrationReply, RegistrationRequest,
};
use careof_wire::udp::UdpHeader;

use crate::locator::Plan;
use crate::topology::{NodeId, OneWayId, Route, Topology, down_of, up_of};

/// Bytes of a TCP header without options.
const TCP_HEADER: u32 = 20;

/// One-way links in a row, each with the bytes that a tunnel adds there.
type Ways = Vec<(OneWayId, u32)>;

/// How packets are tunnelled to and from the mobile node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnelling {
    /// Bytes that the tunnel to the mobile node adds to a packet; 0 when there is none.
    pub overhead: u32,
    /// Whether the mobile node sends through the tunnel too.
    pub reverse: bool,
    /// Whether its peers begin the tunnel to it themselves, so that it passes the home agent by.
    pub straight: bool,
    /// Bytes that are added to what it sends straight to its peers: of a Home Address option, over IPv6.
    pub straight_up: u32,
}

/// The other end of the first flow that has `mobile` as one.
#[must_use]
pub fn first_peer(scenario: &Scenario, topology: &Topology, mobile: NodeId) -> Option<(usize, NodeId)> {
    scenario.flows.iter().enumerate().find_map(|(index, flow)| {
        let ends = [flow.from, flow.to].map(|node| topology.find(&scenario.node(node).name));
        let moves = ends.contains(&Some(mobile));
        ends.into_iter().flatten().find(|end| moves && *end != mobile).map(|peer| (index, peer))
    })
}

/// The path of the first flow that moves, with segments of `mss` bytes, through an access link: its narrowest link in
/// each direction, and its round trip without queueing.
#[must_use]
pub fn new_path(
    scenario: &Scenario,
    topology: &Topology,
    link: LinkId,
    tunnelling: Tunnelling,
    mss: u32,
) -> NewPath {
    let peer = first_peer(scenario, topology, topology.mobile_of(link))
        .map_or_else(|| topology.entrance(down_of(link)), |(_, peer)| peer);
    let (down, up) = ways_through(scenario, topology, link, peer, tunnelling);
    let headers = topology.plan.header_len() + TCP_HEADER;
    let rate = |ways: &[(OneWayId, u32)]| {
        ways.iter()
            .map(|(way, tunnelled)| {
                let config = config(scenario, *way);
                PathRate::of(config.rate, config.framing.bits(mss + headers + tunnelled), mss)
            })
            .min_by_key(|rate| rate.payload_rate)
    };
    let crossing = |(way, tunnelled): (OneWayId, u32), bytes| crossing(scenario, way, bytes + tunnelled);
    let none = || PathRate::of(DataRate::ZERO, 1, 1);
    let round_trip = down.iter().map(|way| crossing(*way, mss + headers)).sum::<Duration>()
        + up.iter().map(|way| crossing(*way, headers)).sum::<Duration>();
    NewPath {
        to_mobile: rate(&down).unwrap_or_else(none),
        from_mobile: rate(&up).unwrap_or_else(none),
        round_trip,
    }
}

/// Bytes of a Binding Update that carries a report, and of its acknowledgement, as home registrations are authenticated in
/// scenarios: a test in `crates/sim` holds them against what is sent.
const BINDING_UPDATE: usize = 152;
const BINDING_ACKNOWLEDGEMENT: usize = 112;

/// The size of datagram whose rate on a link is told: what most of a bulk flow's are.
const FULL_BYTES: u32 = 1500;

/// What there is to know beforehand of the path between the home agent and the mobile node by way of an access link: the rates at
/// which full-sized datagrams cross the access link, framing taken off, and the time of a registration - a request that carries
/// a report, and its reply - on empty links.
pub(crate) fn path_to_home_agent(
    scenario: &Scenario,
    topology: &Topology,
    link: LinkId,
    algorithm: Algorithm,
) -> PathProperties {
    let access = scenario.link(link);
    match access.known_rate {
        KnownRate::True => {}
        KnownRate::Unknown => return PathProperties::default(),
        KnownRate::Told(rate) => {
            return PathProperties { downlink: Some(rate), uplink: Some(rate), round_trip: None };
        }
    }
    let (request, reply) = match topology.plan {
        Plan::Ipv4 => {
            let headers = usize::from(Ipv4Header::LEN) + usize::from(UdpHeader::LEN);
            let signature = AuthenticationExtension::OVERHEAD + algorithm.authenticator_len();
            let request = headers + RegistrationRequest::FIXED_LEN + PathReport::WIRE_LEN + signature;
            (request, headers + RegistrationReply::FIXED_LEN + signature)
        }
        Plan::Ipv6(_) => (BINDING_UPDATE, BINDING_ACKNOWLEDGEMENT),
    };
    let crossing = |way, bytes| crossing(scenario, way, u32::try_from(bytes).unwrap_or(u32::MAX));
    let round_trip = home_agent_of(topology, link).map(|home_agent| {
        let anchor = topology.entrance(down_of(link));
        let up = core::iter::once(up_of(link)).chain(walk(topology, anchor, home_agent));
        let down = walk(topology, home_agent, anchor).into_iter().chain([down_of(link)]);
        up.map(|way| crossing(way, request)).sum::<Duration>()
            + down.map(|way| crossing(way, reply)).sum::<Duration>()
    });
    let rate = |link: &LinkConfig| {
        Some(PathRate::of(link.rate, link.framing.bits(FULL_BYTES), FULL_BYTES).payload_rate)
    };
    PathProperties { downlink: rate(&access.down), uplink: rate(&access.up), round_trip }
}

/// The home agent of the mobile node whose access link `link` is.
fn home_agent_of(topology: &Topology, link: LinkId) -> Option<NodeId> {
    topology.homes.of(topology.mobile_of(link)).map(|home| home.agent)
}

/// The one-way links between the home agent and the mobile node by way of an access link, in both directions.
pub(crate) fn ways_to_home_agent(topology: &Topology, link: LinkId) -> Vec<OneWayId> {
    let inside = home_agent_of(topology, link).map(|home_agent| {
        let anchor = topology.entrance(down_of(link));
        walk(topology, anchor, home_agent).into_iter().chain(walk(topology, home_agent, anchor))
    });
    [up_of(link), down_of(link)].into_iter().chain(inside.into_iter().flatten()).collect()
}

fn config(scenario: &Scenario, way: OneWayId) -> &LinkConfig {
    let link = scenario.link(LinkId(way.0 as usize / 2));
    if way.0.is_multiple_of(2) { &link.down } else { &link.up }
}

/// Time of a datagram of `bytes` on an empty one-way link.
fn crossing(scenario: &Scenario, way: OneWayId, bytes: u32) -> Duration {
    let config = config(scenario, way);
    config.delay + config.rate.time_for_bits(config.framing.bits(bytes)).unwrap_or_default()
}

/// The one-way links between `peer` and the mobile node by way of an access link, each with the bytes that a
/// tunnel adds there: first those towards the mobile node, then those from it.
fn ways_through(
    scenario: &Scenario,
    topology: &Topology,
    link: LinkId,
    peer: NodeId,
    tunnelling: Tunnelling,
) -> (Ways, Ways) {
    let home_agent = home_agent_of(topology, link).unwrap_or(NodeId(0));
    let anchor = topology.entrance(down_of(link));
    let overhead = tunnelling.overhead;
    let co_located = scenario.mobility.as_ref().is_some_and(|mobility| mobility.care_of.is_co_located());
    // A tunnel to a foreign agent ends before the access link.
    let on_access = if co_located { overhead } else { 0 };
    let walk = |from, to| walk(topology, from, to);
    let plain = |ways: Vec<OneWayId>, bytes: u32| ways.into_iter().map(move |way| (way, bytes));

    let mut down: Vec<_> = if tunnelling.straight {
        plain(walk(peer, anchor), overhead).collect()
    } else {
        plain(walk(peer, home_agent), 0).chain(plain(walk(home_agent, anchor), overhead)).collect()
    };
    down.push((down_of(link), on_access));

    let mut up = vec![(up_of(link), if tunnelling.reverse { on_access } else { tunnelling.straight_up })];
    if tunnelling.reverse {
        up.extend(plain(walk(anchor, home_agent), overhead));
        up.extend(plain(walk(home_agent, peer), 0));
    } else {
        up.extend(plain(walk(anchor, peer), tunnelling.straight_up));
    }
    (straight(scenario, down), straight(scenario, up))
}

/// The same without what a medium saves: a packet that only passes a node of it by crosses it once.
fn straight(scenario: &Scenario, mut ways: Ways) -> Ways {
    let medium = |way: OneWayId| {
        let medium = scenario.link(LinkId(way.0 as usize / 2)).medium;
        medium.filter(|id| scenario.media.get(id.0).is_some_and(|medium| medium.config.joins_every_two()))
    };
    ways.dedup_by(|(next, tunnelled), (way, tunnelled_before)| {
        medium(*next).is_some() && medium(*next) == medium(*way) && tunnelled == tunnelled_before
    });
    ways
}

/// The one-way links a packet crosses from one node to another that does not move.
fn walk(topology: &Topology, from: NodeId, to: NodeId) -> Vec<OneWayId> {
    let destination = topology.address_of(to);
    let mut ways = Vec::new();
    let mut node = from;
    while node != to && ways.len() <= topology.places.len() {
        let Route::Via(interface) = topology.place(node).route(destination) else { break };
        let interface = topology.place(node).interface(interface);
        ways.push(interface.out);
        node = interface.peer;
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::lay_out;

    #[test]
    fn a_medium_is_crossed_once_at_home_and_twice_by_way_of_a_tunnel() {
        const TEXT: &str = "duration = \"9 s\"\n[media.lan]\nrate = \"10 Mbit/s\"\ndelay = \"1 us\"\n[links]\n\
            ethernet = { medium = \"lan\" }\nhome = { medium = \"lan\" }\ncell-backhaul = { medium = \"lan\" }\n\
            cell = { rate = \"unlimited\", delay = \"0 s\" }\n[mobility]\ncare_of = \"foreign-agent\"\nhome = \"home\"\n\
            [[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n";
        let scenario = Scenario::parse("x.toml", TEXT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let topology = lay_out(&scenario);
        let round_trip = |link: &str, overhead| {
            let link = scenario.link_named(link).unwrap();
            new_path(&scenario, &topology, link, Tunnelling { overhead, ..Tunnelling::default() }, 1460)
                .round_trip
        };
        // 38 bytes of preamble, header, check sequence and gap around each packet, at 100 ns a bit.
        let crossing = |bytes: u64| Duration::from_nanos((bytes + 38) * 800 + 1_000);
        assert_eq!(round_trip("home", 0), crossing(1500) + crossing(40));
        // Down to the home agent and on in the tunnel, up straight from the foreign agent.
        let away = crossing(1500) + crossing(1520) + crossing(40);
        assert_eq!(
            round_trip("cell", 20),
            away + Duration::from_nanos(2),
            "and a nanosecond each way of the cell"
        );
    }
}
