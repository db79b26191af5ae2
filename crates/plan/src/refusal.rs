//! What no world can do, or not yet.

use careof_scenario::{Assist, AssistPlace, CareOf, MovementDetection, QueuedFate, Role, Routing, Scenario};

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

/// More flows would run out of port numbers, and more links of the numbers that traces give them.
const MAX_FLOWS: usize = 40_000;
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
        if by_advertisements && mobility.care_of.is_co_located() {
            return Err(Unsupported {
                key: "mobility.movement_detection".to_owned(),
                found: format!("\"{}\"", mobility.movement_detection),
                remedy: "no agent advertises where care-of addresses are co-located; use \"link-trigger\", or care_of = \"foreign-agent\"".to_owned(),
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
        let at_home_agent = |assist: &&Assist| assist.places().contains(&AssistPlace::HomeAgent);
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
    for (index, handover) in scenario.handovers.iter().enumerate() {
        let anchor = scenario.node(scenario.link(handover.from).ends[0]);
        if handover.queued == QueuedFate::ReRoute && anchor.role != Role::HomeAgent {
            return Err(Unsupported {
                key: format!("handover.{index}.queued"),
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
            key: format!("handover.{index}.queued"),
            found: format!("\"{found}\""),
            remedy: "this version knows \"drain-late\", \"drop\", \"drop-with-icmp\" and \"re-route\""
                .to_owned(),
        });
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
