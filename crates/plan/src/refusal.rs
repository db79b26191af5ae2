//! What no world can do, or not yet.

use careof_mobility::path_mtu;
use careof_scenario::{
    Assist, AssistPlace, CareOf, IpVersion, LinkId, MovementDetection, Protocol, QueuedFate, Role, Routing,
    Scenario, Workload,
};

use careof_wire::ipv6::Ipv6Header;

use crate::assists::tunnel_overhead;
use crate::layout::lay_out;
use crate::own_address::refuse_flows_without_addresses;
use crate::path::ways_to_home_agent;

/// Something a scenario asks for that a world does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The scenario's key.
    pub key: String,
    /// Its value.
    pub found: String,
    /// What would be right.
    pub remedy: String,
}

/// More flows would run out of the port numbers of openers ([`port`](crate::port)), and more links of the numbers that
/// traces give them.
const MAX_FLOWS: usize = 1 << 14;
const MAX_LINKS: usize = 30_000;
/// A datagram of this size can still be put into a tunnel.
const MAX_TUNNELLED_MTU: u16 = 65_000;

/// Refuses what neither world can do.
///
/// # Errors
/// The first such thing.
pub fn refuse_what_no_world_can(scenario: &Scenario) -> Result<(), Unsupported> {
    for (key, found, limit) in
        [("flow", scenario.flows.len(), MAX_FLOWS), ("links", scenario.links.len(), MAX_LINKS)]
    {
        if found > limit {
            return Err(Unsupported {
                key: key.to_owned(),
                found: format!("{found} of them"),
                remedy: format!("there can be at most {limit}"),
            });
        }
    }
    refuse_assists_not_carried_out(scenario)?;
    refuse_flows_without_addresses(scenario)?;
    for (index, flow) in scenario.flows.iter().enumerate() {
        if let Workload::Probe { link } = flow.workload
            && scenario.link(link).ipv4_only
        {
            return Err(Unsupported {
                key: format!("flow.{index}.link"),
                found: format!("\"{}\"", scenario.link(link).name),
                remedy: "the run is over IPv6, and this link has only IPv4: measure another".to_owned(),
            });
        }
    }
    if scenario.ip_version == IpVersion::V6 {
        refuse_what_ipv6_has_not(scenario)?;
    }
    if let Some(mobility) = &scenario.mobility {
        if mobility.fleet.is_some() && mobility.movement_detection != MovementDetection::LinkTrigger {
            return Err(Unsupported {
                key: "mobility.movement_detection".to_owned(),
                found: format!("\"{}\"", mobility.movement_detection),
                remedy: "many mobile nodes are told by their link layer; use \"link-trigger\", or leave `nodes` out"
                    .to_owned(),
            });
        }
        let by_advertisements = mobility.movement_detection != MovementDetection::LinkTrigger;
        if by_advertisements && mobility.care_of.is_co_located() && mobility.protocol == Protocol::MobileIpv4
        {
            return Err(Unsupported {
                key: "mobility.movement_detection".to_owned(),
                found: format!("\"{}\"", mobility.movement_detection),
                remedy: "no agent advertises where care-of addresses are co-located; use \"link-trigger\", or care_of = \"foreign-agent\"".to_owned(),
            });
        }
        if mobility.movement_detection == MovementDetection::UnreachableRouter
            && mobility.protocol == Protocol::MobileIpv4
        {
            return Err(Unsupported {
                key: "mobility.movement_detection".to_owned(),
                found: format!("\"{}\"", mobility.movement_detection),
                remedy: "neighbor unreachability detection is IPv6's; write protocol = \"mobile-ipv6\""
                    .to_owned(),
            });
        }
        let regular = mobility.policy.iter().position(|rule| rule.method == Routing::RegularIp);
        if let (Some(rule), CareOf::ForeignAgent) = (regular, mobility.care_of) {
            return Err(Unsupported {
                key: format!("mobility.policy.{rule}.method"),
                found: "\"regular-ip\"".to_owned(),
                remedy: "the mobile node has no address of its own behind a foreign agent; use care_of = \"co-located\"".to_owned(),
            });
        }
        refuse_narrow_tunnels(scenario)?;
        let at_home_agent = |assist: &&Assist| {
            let places = assist.places();
            places.contains(&AssistPlace::HomeAgent) && !places.contains(&AssistPlace::Mobile)
        };
        if let Some(assist) =
            scenario.assists.iter().find(at_home_agent).filter(|_| mobility.route_optimization)
        {
            return Err(Unsupported {
                key: "mobility.route_optimization".to_owned(),
                found: "true".to_owned(),
                remedy: format!(
                    "packets pass the home agent by, at which the assist \"{}\" acts: leave one of them out, or write at = \"mobile\" where the assist has that",
                    assist.name()
                ),
            });
        }
        for link in &scenario.links {
            let mtu = link.down.mtu.max(link.up.mtu);
            if mtu > MAX_TUNNELLED_MTU {
                return Err(Unsupported {
                    key: format!("links.{}.mtu", link.name),
                    found: format!("{mtu} B"),
                    remedy: format!("where packets are tunnelled it can be at most {MAX_TUNNELLED_MTU} B"),
                });
            }
        }
    }
    for handover in scenario.possible_handovers() {
        let anchor = scenario.node(scenario.link(handover.from).ends[0]);
        if handover.queued == QueuedFate::ReRoute && anchor.role != Role::HomeAgent {
            return Err(Unsupported {
                key: format!("handover.{}.queued", handover.table),
                found: "\"re-route\"".to_owned(),
                remedy: format!(
                    "packets can be re-routed where the tunnel begins, but link {} hangs on {}",
                    scenario.link(handover.from).name,
                    anchor.name
                ),
            });
        }
        let found = match handover.queued {
            QueuedFate::BufferAndForward => "buffer-and-forward",
            QueuedFate::Duplicate => "duplicate",
            QueuedFate::DrainLate | QueuedFate::Drop | QueuedFate::DropWithIcmp | QueuedFate::ReRoute => {
                continue;
            }
        };
        return Err(Unsupported {
            key: format!("handover.{}.queued", handover.table),
            found: format!("\"{found}\""),
            remedy: "this version knows \"drain-late\", \"drop\", \"drop-with-icmp\" and \"re-route\""
                .to_owned(),
        });
    }
    Ok(())
}

/// Refuses what careof has for IPv4 only.
fn refuse_what_ipv6_has_not(scenario: &Scenario) -> Result<(), Unsupported> {
    // RFC 8200 section 5.
    let least = Ipv6Header::MIN_MTU;
    if let Some(link) = scenario.links.iter().find(|link| link.down.mtu.min(link.up.mtu) < least) {
        return Err(Unsupported {
            key: format!("links.{}.mtu", link.name),
            found: format!("{} B", link.down.mtu.min(link.up.mtu)),
            remedy: format!(
                "every link of IPv6 takes packets of {least} B (RFC 8200): write as much at least"
            ),
        });
    }
    let Some(mobility) = &scenario.mobility else { return Ok(()) };
    if let MovementDetection::Lifetime | MovementDetection::Prefix = mobility.movement_detection {
        return Err(Unsupported {
            key: "mobility.movement_detection".to_owned(),
            found: format!("\"{}\"", mobility.movement_detection),
            remedy: "these are algorithms of RFC 5944; over IPv6 there are \"link-trigger\", \"missed-advertisements\", \"eager\" and \"unreachable-router\""
                .to_owned(),
        });
    }
    Ok(())
}

/// Refuses a link on the way of a tunnel, from the home agent to an access link, that leaves less inside than every node passes on
/// whole (RFC 791 section 3.2): registrations themselves would not fit.
fn refuse_narrow_tunnels(scenario: &Scenario) -> Result<(), Unsupported> {
    let overhead = tunnel_overhead(scenario);
    let least = path_mtu::LEAST + overhead;
    if scenario.links.iter().all(|link| link.down.mtu.min(link.up.mtu) >= least) {
        return Ok(());
    }
    let topology = lay_out(scenario);
    for index in 0..scenario.links.len() {
        let access = LinkId(index);
        if !scenario.link(access).access {
            continue;
        }
        for way in ways_to_home_agent(&topology, access) {
            let link = scenario.link(LinkId(way.0 as usize / 2));
            let mtu = if way.0.is_multiple_of(2) { link.down.mtu } else { link.up.mtu };
            if mtu < least {
                return Err(Unsupported {
                    key: format!("links.{}.mtu", link.name),
                    found: format!("{mtu} B"),
                    remedy: format!(
                        "a tunnel to the mobile node crosses it, whose header takes {overhead} bytes, and of what is inside every \
                         node passes on {} whole (RFC 791): write at least {least} B",
                        path_mtu::LEAST
                    ),
                });
            }
        }
    }
    Ok(())
}

/// A place of an assist that neither world has.
fn refuse_assists_not_carried_out(scenario: &Scenario) -> Result<(), Unsupported> {
    let is_at_stations =
        |assist: &Assist| matches!(assist, Assist::Split(split) if split.at == AssistPlace::ForeignAgent);
    if scenario.assists.iter().any(is_at_stations) {
        return Err(Unsupported {
            key: "assist.split.at".to_owned(),
            found: "\"foreign-agent\"".to_owned(),
            remedy: "a relay there would have to move with the mobile node; use at = \"home-agent\""
                .to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leaves_no_room_inside_the_tunnel_is_refused_with_the_reason() {
        const SCENARIO: &str = "duration = \"20 s\"\n[links]\n\
            core = { rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"home-agent\", \"far\"] }\n\
            a = { rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"far\", \"mobile\"] }\n[mobility]\n";
        let refused = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
            refuse_what_no_world_can(&Scenario::parse("x.toml", SCENARIO, &overrides).unwrap()).err()
        };
        assert_eq!(refused(&["links.core.mtu=88"]), None);
        let refusal = refused(&["links.core.mtu=87"]).unwrap();
        assert_eq!((refusal.key.as_str(), refusal.found.as_str()), ("links.core.mtu", "87 B"));
        assert!(
            refusal.remedy.contains("20 bytes") && refusal.remedy.contains("at least 88 B"),
            "{refusal:?}"
        );
        assert!(refused(&["links.a.mtu=91", "mobility.encapsulation=gre"]).unwrap().remedy.contains("92 B"));
        // No tunnel comes to the correspondent.
        assert_eq!(refused(&["links.ethernet={ preset = \"ethernet-10m\", mtu = 68 }"]), None);
    }

    #[test]
    fn a_relay_that_would_have_to_move_is_refused() {
        const SCENARIO: &str =
            "duration = \"20 s\"\n[links]\na = \"wavelan\"\n[mobility]\ncare_of = \"foreign-agent\"\n";
        let refused = |used: &str, others: &[&str]| {
            let mut overrides = vec![format!("assist.use={used}")];
            overrides.extend(others.iter().map(|&text| text.to_owned()));
            let scenario = Scenario::parse("x.toml", SCENARIO, &overrides).unwrap();
            refuse_what_no_world_can(&scenario).err()
        };
        assert_eq!(refused("none", &[]), None);
        assert_eq!(refused("default", &[]), None);
        assert_eq!(refused("split", &["mobility.routing=reverse-tunnel"]), None);
        let refusal = refused("split", &["assist.split.at=foreign-agent"]).unwrap();
        assert_eq!((refusal.key.as_str(), refusal.found.as_str()), ("assist.split.at", "\"foreign-agent\""));
        assert!(refusal.remedy.contains("at = \"home-agent\""), "{}", refusal.remedy);
    }
}
