//! What Linux hosts cannot do, or not yet.

use careof_plan::refuse_what_no_world_can;
use careof_scenario::{QueuedFate, Scenario};

use crate::error::WorldError;
use crate::tcp::choose;

/// Refuses what no Linux host can do, without building any; what this machine lacks is not looked at.
///
/// # Errors
/// The first such thing, by its key.
pub fn check(scenario: &Scenario) -> Result<(), WorldError> {
    refuse_what_no_world_can(scenario)?;
    refuse_what_linux_cannot(scenario)?;
    for (index, flow) in scenario.flows.iter().enumerate() {
        choose(index, flow)?;
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
    if let Some(fleet) = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref()) {
        return Err(WorldError::Unsupported {
            key: "mobility.nodes".to_owned(),
            found: fleet.count.to_string(),
            remedy: "this world moves one mobile node: leave `nodes` out and name its access links, or use the simulator"
                .to_owned(),
        });
    }
    // Every node is a host with network namespaces of its own, and every link end a device.
    if scenario.nodes.len() > MAX_HOSTS {
        let counted = |link: &careof_scenario::Link| link.copy.is_some_and(|copy| copy.number == 1);
        let key = scenario.links.iter().find(|link| counted(link));
        let table = |name: &str| name.strip_suffix("-1").unwrap_or(name).to_owned();
        return Err(WorldError::Unsupported {
            key: key.map_or("links".to_owned(), |link| format!("links.{}.count", table(&link.name))),
            found: format!("{} nodes", scenario.nodes.len()),
            remedy: format!("this world has at most {MAX_HOSTS} hosts: lower `count`, or use the simulator"),
        });
    }
    for (index, handover) in scenario.handovers.iter().enumerate() {
        let unsupported = |remedy: String| {
            Err(WorldError::Unsupported {
                key: format!("handover.{index}.queued"),
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
