//! What Linux hosts cannot do, or not yet.

use careof_plan::{lay_out, refuse_what_no_world_can};
use careof_scenario::{
    Assist, AssistPlace, CareOf, Fleet, Flow, IpVersion, Link, Mobility, MovementDetection, Protocol,
    QueuedFate, Routing, Scenario, Workload,
};

use crate::error::WorldError;
use crate::mptcp::PathManagers;
use crate::relay::Splitter;
use crate::tcp::choose;
use crate::tcp_cm::TcpCmPlan;

/// Refuses what no Linux host can do in any run of a scenario, without building any; what this machine lacks is not looked at.
///
/// # Errors
/// The first such thing, by its key.
pub fn check(scenario: &Scenario) -> Result<(), WorldError> {
    refuse_what_no_world_can(scenario)?;
    refuse_what_linux_cannot(scenario)?;
    let topology = lay_out(scenario);
    let choices = scenario
        .flows
        .iter()
        .enumerate()
        .map(|(index, flow)| choose(index, flow))
        .collect::<Result<Vec<_>, _>>()?;
    TcpCmPlan::new(scenario, &topology, &choices)?;
    PathManagers::new(scenario, &topology)?;
    if let Some(splitter) = Splitter::new(scenario, &topology) {
        splitter.choices()?;
    }
    Ok(())
}

/// More hosts than this would take a machine's memory and minutes to set up.
const MAX_HOSTS: usize = 250;

/// Links of more than one hop's numbers would not fit the interfaces' names; this is about handovers.
///
/// # Errors
/// The first thing that this world does not have, by its key.
pub(crate) fn refuse_what_linux_cannot(scenario: &Scenario) -> Result<(), WorldError> {
    let mobility = scenario.mobility.as_ref();
    let in_domain = mobility.is_some_and(|mobility| mobility.micro_mobility.is_some());
    if let Some(fleet) = mobility.and_then(|mobility| mobility.fleet.as_ref()).filter(|_| in_domain) {
        refuse_domain(scenario, fleet)?;
    } else if let Some(fleet) = mobility.and_then(|mobility| mobility.fleet.as_ref()) {
        return Err(WorldError::Unsupported {
            key: "mobility.nodes".to_owned(),
            found: fleet.count.to_string(),
            remedy: "this world moves one mobile node: leave `nodes` out and name its access links, or use the simulator"
                .to_owned(),
        });
    }
    if let Some(mobility) = &scenario.mobility
        && mobility.movement_detection == MovementDetection::UnreachableRouter
    {
        return Err(WorldError::Unsupported {
            key: "mobility.movement_detection".to_owned(),
            found: format!("\"{}\"", mobility.movement_detection),
            remedy: "the devices of this world's links have no link-layer addresses, and the kernel probes no neighbours there: use the simulator; careof-agent has it on Ethernet"
                .to_owned(),
        });
    }
    if let Some(link) = scenario.links.iter().find(|link| link.ipv4_only)
        && !scenario.media.is_empty()
    {
        return Err(WorldError::Unsupported {
            key: format!("links.{}.ip_version", link.name),
            found: "4".to_owned(),
            remedy: "the shortcuts over a medium of this world are of one version: leave [media] out, or use the simulator"
                .to_owned(),
        });
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        if let (Some(quic), IpVersion::V6) = (&flow.quic, scenario.ip_version) {
            return Err(WorldError::Unsupported {
                key: format!("flow.{index}.quic"),
                found: format!("\"{}\"", quic.config.congestion.name()),
                remedy:
                    "this world carries QUIC over IPv4 only: use the simulator, or protocol = \"mobile-ipv4\""
                        .to_owned(),
            });
        }
        if let Workload::Probe { link } = flow.workload
            && scenario.link(link).straight
        {
            let ends = scenario.link(link).ends.map(|end| scenario.node(end).name.as_str());
            return Err(WorldError::Unsupported {
                key: format!("flow.{index}.link"),
                found: format!("\"{}\"", scenario.link(link).name),
                remedy: format!(
                    "its ends have no interface of its own: give {} and {} a link of the file on that medium",
                    ends[0], ends[1]
                ),
            });
        }
    }
    // Every node is a host with network namespaces of its own, and every link end a device.
    if scenario.nodes.len() > MAX_HOSTS {
        let key = scenario.links.iter().find(|link| link.copy.is_some());
        return Err(WorldError::Unsupported {
            key: key.map_or("links".to_owned(), count_key),
            found: format!("{} nodes", scenario.nodes.len()),
            remedy: format!("this world has at most {MAX_HOSTS} hosts: lower `count`, or use the simulator"),
        });
    }
    if let Some(mobility) = &scenario.mobility {
        if let Some(relay) = mobility.multipath.as_ref().and_then(|multipath| multipath.relays.get(1)) {
            return Err(WorldError::Unsupported {
                key: format!("nodes.{}.role", scenario.node(relay.node).name),
                found: "\"relay\"".to_owned(),
                remedy: "a mobile node of this world is in one cluster, which is one link here: leave all relays but the first out, or use the simulator"
                    .to_owned(),
            });
        }
        if mobility.care_of == CareOf::Dhcp {
            return Err(WorldError::Unsupported {
                key: "mobility.care_of".to_owned(),
                found: format!("\"{}\"", mobility.care_of),
                remedy: "the hosts of this world have their addresses from the start: write care_of = \"co-located\", or use the simulator"
                    .to_owned(),
            });
        }
        for (key, wanted) in
            [("route_optimization", mobility.route_optimization), ("smooth_handoff", mobility.smooth_handoff)]
        {
            if wanted && mobility.protocol == Protocol::MobileIpv4 {
                return Err(WorldError::Unsupported {
                    key: format!("mobility.{key}"),
                    found: "true".to_owned(),
                    remedy: "the hosts of this world tunnel at the home agent only: leave it out, or use the simulator"
                        .to_owned(),
                });
            }
        }
        scenario.assists.iter().try_for_each(|assist| refuse_assist(assist, mobility))?;
        if let Some(splitter) = Splitter::new(scenario, &lay_out(scenario)) {
            splitter.refuse()?;
        }
    }
    for handover in scenario.possible_handovers() {
        let unsupported = |remedy: String| {
            Err(WorldError::Unsupported {
                key: format!("handover.{}.queued", handover.table),
                found: format!("\"{}\"", handover.queued),
                remedy,
            })
        };
        let [from, to] = [handover.from, handover.to].map(|link| scenario.link(link).ends[0]);
        match handover.queued {
            QueuedFate::DropWithIcmp => {
                return unsupported(
                    "the links of this world send no messages: use \"drop\", or the simulator".to_owned(),
                );
            }
            QueuedFate::ReRoute if from != to => {
                return unsupported(format!(
                    "packets can be moved between links of one host, but these hang on {} and {}",
                    scenario.node(from).name,
                    scenario.node(to).name
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The key that says how many copies there are of a link.
fn count_key(link: &Link) -> String {
    let number = link.copy.map(|copy| format!("-{}", copy.number)).unwrap_or_default();
    format!("links.{}.count", link.name.strip_suffix(&number).unwrap_or(&link.name))
}

/// More base stations than this are more hosts than a machine forwards for in time: each packet passes user space at every router.
const MOST_STATIONS: usize = 8;

/// Refuses a domain that is too large for Linux hosts.
fn refuse_domain(scenario: &Scenario, fleet: &Fleet) -> Result<(), WorldError> {
    let file = "scenarios/micromobility/seven-hosts-cellular-ip-semisoft.toml";
    let too_many = |key: &str, found: usize, most: usize, what: &str| WorldError::Unsupported {
        key: key.to_owned(),
        found: found.to_string(),
        remedy: format!(
            "a domain on hosts of this world has at most {most} {what}: {file} is one of seven routers, and others beside it have \
             other protocols; or use the simulator"
        ),
    };
    if fleet.count > 1 {
        return Err(too_many("mobility.nodes", fleet.count, 1, "mobile node"));
    }
    if fleet.stations.len() > MOST_STATIONS {
        // That of the links by which they hang on the others.
        let hangs = |link: &&Link| link.copy.is_some() && fleet.stations.contains(&link.ends[1]);
        let key = scenario.links.iter().find(hangs).map_or("links".to_owned(), count_key);
        return Err(too_many(&key, fleet.stations.len(), MOST_STATIONS, "base stations"));
    }
    let unsupported = |key: String, found: String, remedy: &str| WorldError::Unsupported {
        key,
        found,
        remedy: remedy.to_owned(),
    };
    let radio = &scenario.links[fleet.radio.0];
    if let Some(medium) = radio.medium {
        let remedy = "radios of a domain on hosts of this world are links of their own: leave `medium` out, or use the simulator";
        let found = scenario.media[medium.0].name.clone();
        return Err(unsupported(format!("links.{}.medium", radio_name(radio)), found, remedy));
    }
    let domain = scenario.mobility.as_ref().and_then(|mobility| mobility.micro_mobility.as_ref());
    if let Some(interval) =
        domain.map(|domain| domain.advertisement_interval).filter(|interval| !interval.is_zero())
    {
        let remedy = "on hosts of this world the link layer says which base station is there: leave it out, or use the simulator";
        let key = "micro_mobility.advertisement_interval".to_owned();
        return Err(unsupported(key, format!("{interval:?}"), remedy));
    }
    let probes = |flow: &&Flow| matches!(flow.workload, Workload::Probe { link, .. } if fleet.is_radio(link));
    if let Some(flow) = scenario.flows.iter().find(probes) {
        let remedy = "a radio of a domain hangs on another base station after each handover: measure a link that stays";
        return Err(unsupported(format!("flow.{}.link", flow.name), radio_name(radio).to_owned(), remedy));
    }
    Ok(())
}

/// The name of the radios in the file: that of the first one without its number.
fn radio_name(radio: &Link) -> &str {
    radio.name.strip_suffix("-1").unwrap_or(&radio.name)
}

/// Refuses an assist that Linux hosts cannot have.
fn refuse_assist(assist: &Assist, mobility: &Mobility) -> Result<(), WorldError> {
    let unsupported = |key: &str, remedy: &str| {
        let (found, remedy) = (format!("\"{}\"", assist.name()), remedy.to_owned());
        Err(WorldError::Unsupported { key: key.to_owned(), found, remedy })
    };
    // What it needs of a sender can be had in part (`tcp_cm.rs`).
    if assist.needs_changed_sender() && !matches!(assist, Assist::TcpCm(_)) {
        let remedy = "the TCP of a kernel is as it is: use the simulator, or an assist that works with any, such as \"replay\"";
        return unsupported("assist.use", remedy);
    }
    // What the mobile node sends without a tunnel never passes the device at which an agent could see it.
    let own_packets_pass = mobility.routing == Routing::ReverseTunnel;
    if matches!(assist, Assist::Snoop(_) | Assist::MTcp) && !own_packets_pass {
        let remedy = "the foreign agents of this world see acknowledgements only on their way into a tunnel: write \
                      routing = \"reverse-tunnel\" in [mobility], or use the simulator";
        return unsupported("assist.use", remedy);
    }
    if assist.places().contains(&AssistPlace::Mobile) && !own_packets_pass {
        let remedy = "at the mobile node it needs routing = \"reverse-tunnel\" in [mobility]";
        return match assist {
            Assist::Replay(_) | Assist::WindowClamp(_) | Assist::MssClamp(_) | Assist::BlackHole(_) => {
                unsupported(
                    &format!("assist.{}.at", assist.name()),
                    &format!("{remedy}; or write at = \"home-agent\""),
                )
            }
            _ => unsupported("assist.use", remedy),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(assist: &str, overrides: &[&str]) -> Option<String> {
        const SCENARIO: &str = "duration = \"20 s\"\n[links]\na = \"wavelan\"\nb = \"lte\"\n[mobility]\n[[handover]]\n\
            at = \"5 s\"\nfrom = \"a\"\nto = \"b\"\nnotice = \"1 s\"\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n";
        let mut overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        overrides.push(format!("assist.use={assist}"));
        let scenario =
            Scenario::parse("x.toml", SCENARIO, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        refuse_what_linux_cannot(&scenario).err().map(|error| error.to_string())
    }

    /// A first run may have no handover, and a later one some that no Linux link can carry out.
    #[test]
    fn what_only_later_runs_have_is_refused_beforehand() {
        let text = "duration = \"60 s\"\n[links]\na = \"lte\"\nb = \"lte\"\n[mobility]\n[[handover]]\nevery = \"50 s\"\n\
                    spacing = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nstyle = \"break-before-make\"\n\
                    interruption = \"1 s\"\nqueued = \"drop-with-icmp\"\n";
        let mut without = 0;
        for seed in 0..20 {
            let scenario = Scenario::parse("x.toml", text, &[format!("seed={seed}")])
                .unwrap_or_else(|errors| panic!("{errors}"));
            let said = check(&scenario).unwrap_err().to_string();
            assert!(said.contains("handover.0.queued: \"drop-with-icmp\""), "{said}");
            without += usize::from(careof_plan::drawn(scenario, 0).handovers.is_empty());
        }
        assert!(without > 0, "every first run had a handover");
    }

    #[test]
    fn a_probe_needs_a_link_of_the_file() {
        let scenario = |link: &str| {
            let text = format!(
                "duration = \"9 s\"\n[media.lan]\nrate = \"10 Mbit/s\"\ndelay = \"1 us\"\n[links]\n\
                 one = {{ medium = \"lan\", between = [\"a\", \"b\"] }}\n\
                 two = {{ medium = \"lan\", between = [\"b\", \"c\"] }}\n\
                 [[flow]]\nkind = \"probe\"\n{link}\n"
            );
            Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
        };
        let implied =
            refuse_what_linux_cannot(&scenario("from = \"a\"\nto = \"c\"")).unwrap_err().to_string();
        assert!(implied.contains("flow.0.link: \"lan-a-c\""), "{implied}");
        assert!(implied.contains("give a and c a link of the file"), "{implied}");
        assert!(refuse_what_linux_cannot(&scenario("from = \"a\"\nto = \"b\"")).is_ok());
    }

    #[test]
    fn an_assist_that_changes_the_sender_is_refused() {
        for name in ["rto-reset", "mobile-tcp", "tcp-ho", "demo-vegas", "rto-fast-decrease"] {
            let said = refused(name, &[]).unwrap();
            assert!(said.contains("assist.use") && said.contains(name), "{said}");
            assert!(said.contains("use the simulator"), "{said}");
        }
    }

    #[test]
    fn unreachable_routers_need_links_with_link_layer_addresses() {
        let more = ["mobility.protocol=mobile-ipv6", "mobility.movement_detection=unreachable-router"];
        let said = refused("none", &more).unwrap();
        assert!(said.contains("mobility.movement_detection") && said.contains("use the simulator"), "{said}");
    }

    #[test]
    fn tunnels_that_begin_elsewhere_than_at_the_home_agent_are_refused() {
        let said = refused("none", &["mobility.route_optimization=true"]).unwrap();
        assert!(
            said.contains("mobility.route_optimization: true") && said.contains("use the simulator"),
            "{said}"
        );
        let smooth = ["mobility.smooth_handoff=true", "mobility.care_of=foreign-agent"];
        let said = refused("none", &smooth).unwrap();
        assert!(
            said.contains("mobility.smooth_handoff: true") && said.contains("use the simulator"),
            "{said}"
        );
    }

    #[test]
    fn an_address_that_has_to_be_asked_for_is_refused() {
        let said = refused("none", &["mobility.care_of=dhcp"]).unwrap();
        assert!(said.contains("mobility.care_of: \"dhcp\""), "{said}");
        assert!(said.contains("write care_of = \"co-located\", or use the simulator"), "{said}");
        assert_eq!(refused("none", &["mobility.care_of=co-located"]), None);
    }

    #[test]
    fn an_assist_of_a_base_station_needs_the_acknowledgements_in_the_tunnel() {
        const STATIONS: &str = "mobility.care_of=foreign-agent";
        for name in ["snoop", "m-tcp"] {
            let said = refused(name, &[STATIONS]).unwrap();
            assert!(said.contains(name) && said.contains("routing = \"reverse-tunnel\""), "{said}");
            assert_eq!(refused(name, &[STATIONS, "mobility.routing=reverse-tunnel"]), None);
        }
    }

    #[test]
    fn an_assist_at_the_mobile_node_needs_its_packets_in_the_tunnel() {
        for name in ["default", "freeze", "ack-hold", "hold-last", "path-queue"] {
            let said = refused(name, &[]).unwrap();
            assert!(said.contains("routing = \"reverse-tunnel\""), "{said}");
            assert_eq!(refused(name, &["mobility.routing=reverse-tunnel"]), None);
        }
        assert!(refused("replay", &[]).unwrap().contains("assist.replay.at"));
        assert_eq!(refused("replay", &["assist.replay.at=home-agent"]), None);
    }
}
