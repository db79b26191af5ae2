//! Flows over Multipath TCP: what the path managers of their hosts are told, as a network manager on the mobile node would.
//!
//! With each access link that comes up and has an address the mobile node's kernel may have a subflow there, and with each
//! that goes down the address is taken back: the kernel itself heeds neither. Who has a subflow when is in the books by what their
//! segments say.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use careof_lab::{Error, Host, MptcpEndpoint, MptcpPathManager, Netlink, mptcp_schedulers};
use careof_plan::{NodeId, Side, Topology, client_of};
use careof_scenario::{Flow, LinkId, Mptcp, Scenario};

use crate::error::WorldError;

/// What the kernel does without being told.
const USUAL_SCHEDULER: &str = "default";

/// By which link of its own a mobile node is reached now: what a connection is opened from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) address: IpAddr,
    /// The interface.
    pub(crate) device: String,
}

/// [`Attachment`], as the director knows it and the flows' applications ask for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whereabouts(Arc<Mutex<Option<Attachment>>>);

impl Whereabouts {
    pub(crate) fn get(&self) -> Option<Attachment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, attachment: Option<Attachment>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attachment;
    }
}

/// Multipath TCP of a host: which flow says so first, and what.
#[derive(Clone, Debug)]
struct OfHost {
    flow: usize,
    settings: Mptcp,
    /// Of a mobile node.
    whereabouts: Option<Whereabouts>,
}

/// The hosts with flows over Multipath TCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathManagers {
    hosts: BTreeMap<NodeId, OfHost>,
}

impl PathManagers {
    /// Those of a scenario.
    ///
    /// # Errors
    /// [`WorldError::Unsupported`] where flows that share a host want different settings of it.
    pub(crate) fn new(scenario: &Scenario, topology: &Topology) -> Result<Self, WorldError> {
        let mut hosts: BTreeMap<NodeId, OfHost> = BTreeMap::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let Some(settings) = &flow.mptcp else { continue };
            let [client, server] = ends_of(scenario, topology, flow);
            for node in [client, server] {
                let own = hosts.entry(node).or_insert_with(|| OfHost {
                    flow: index,
                    settings: settings.clone(),
                    whereabouts: (node == client).then(Whereabouts::default),
                });
                // Whose links wait as a backup is the mobile node's own business.
                let said = if node == client {
                    own.settings.clone()
                } else {
                    Mptcp { backup: settings.backup.clone(), ..own.settings.clone() }
                };
                if said != *settings {
                    let remedy = format!(
                        "flow {} has another one, and all connections of {} share it: give both the same",
                        scenario.flows[own.flow].name,
                        topology.place(node).name
                    );
                    return Err(WorldError::Unsupported {
                        key: format!("flow.{index}.mptcp"),
                        found: "such a table".to_owned(),
                        remedy,
                    });
                }
            }
        }
        Ok(Self { hosts })
    }

    /// Refuses what this kernel lacks, before anything is made.
    ///
    /// # Errors
    /// [`WorldError::Missing`] without Multipath TCP, [`WorldError::Unsupported`] for a scheduler that it does not have.
    pub(crate) fn refuse_missing(&self) -> Result<(), WorldError> {
        for own in self.hosts.values() {
            let key = format!("flow.{}.mptcp", own.flow);
            let schedulers =
                mptcp_schedulers().map_err(|error| WorldError::Missing { key: key.clone(), error })?;
            let wanted = &own.settings.scheduler;
            if !schedulers.contains(wanted) {
                return Err(WorldError::Unsupported {
                    key: format!("{key}.scheduler"),
                    found: format!("\"{wanted}\""),
                    remedy: format!(
                        "this kernel has {}: load it first, or take one of these",
                        schedulers.join(", ")
                    ),
                });
            }
        }
        Ok(())
    }

    /// The kernel's parameters at a host.
    pub(crate) fn sysctls(&self, node: NodeId) -> Vec<(String, String)> {
        let Some(OfHost { settings, .. }) = self.hosts.get(&node) else { return Vec::new() };
        let mut sysctls = vec![
            ("net.mptcp.enabled".to_owned(), "1".to_owned()),
            ("net.mptcp.stale_loss_cnt".to_owned(), settings.stale_loss_count.to_string()),
        ];
        if settings.scheduler != USUAL_SCHEDULER {
            sysctls.push(("net.mptcp.scheduler".to_owned(), settings.scheduler.clone()));
        }
        sysctls
    }

    /// Tells the path managers what does not change: how many subflows there may be, and with `fullmesh` the peer's other addresses.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn prepare(&self, hosts: &[Host], topology: &Topology) -> Result<(), Error> {
        for (node, own) in &self.hosts {
            let settings = own.settings.clone();
            let is_server = own.whereabouts.is_none();
            let place = topology.place(*node);
            let others = place.interfaces.iter().skip(1).filter(|_| is_server && settings.fullmesh);
            let others: Vec<IpAddr> = others.map(|one| topology.address(one.address)).collect();
            let accepted = if settings.fullmesh && !is_server { Mptcp::MOST_SUBFLOWS } else { 0 };
            hosts[usize::from(node.0)].run(move || {
                let mut manager = MptcpPathManager::open()?;
                manager.set_limits(settings.subflows, accepted)?;
                for (id, address) in (1..=u8::MAX).zip(others) {
                    manager.announce(id, address)?;
                }
                Ok(())
            })??;
        }
        Ok(())
    }

    /// Where the client of a flow is.
    pub(crate) fn whereabouts(&self, client: NodeId) -> Whereabouts {
        self.hosts.get(&client).and_then(|own| own.whereabouts.clone()).unwrap_or_default()
    }

    /// A mobile node has `address` on its `index`th interface, of `link`: connections get a subflow there, and new ones begin there.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn raised(
        &self,
        (node, host): (NodeId, &Host),
        (index, link, name): (usize, LinkId, &str),
        address: IpAddr,
    ) -> Result<(), Error> {
        let Some(OfHost { settings, whereabouts: Some(whereabouts), .. }) = self.hosts.get(&node) else {
            return Ok(());
        };
        whereabouts.set(Some(Attachment { address, device: name.to_owned() }));
        let id = id_of(index);
        let (backup, fullmesh) = (settings.backup.contains(&link), settings.fullmesh);
        let name = name.to_owned();
        host.run(move || {
            let interface = Netlink::open()?.index_of(&name)?;
            let mut manager = MptcpPathManager::open()?;
            // A link that was up already may be told of again.
            manager.remove(id, address)?;
            manager.add(&MptcpEndpoint { id, address, interface, backup, fullmesh })
        })?
    }

    /// That link went down: the subflow there is closed, and the peer is told where another one is.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn lowered(
        &self,
        (node, host): (NodeId, &Host),
        index: usize,
        address: IpAddr,
    ) -> Result<(), Error> {
        if self.hosts.get(&node).is_none_or(|own| own.whereabouts.is_none()) {
            return Ok(());
        }
        host.run(move || MptcpPathManager::open()?.remove(id_of(index), address).map(drop))?
    }
}

/// The number of an interface's address; 0 belongs to the first subflow.
fn id_of(interface: usize) -> u8 {
    u8::try_from(interface + 1).unwrap_or(u8::MAX)
}

/// Client and server of a flow.
fn ends_of(scenario: &Scenario, topology: &Topology, flow: &Flow) -> [NodeId; 2] {
    let nodes =
        [flow.from, flow.to].map(|node| topology.find(&scenario.node(node).name).unwrap_or(NodeId(0)));
    let client: Side = client_of(scenario, flow);
    [nodes[client.index()], nodes[client.peer().index()]]
}

#[cfg(test)]
mod tests {
    use careof_plan::lay_out;

    use super::*;

    fn managers(flows: &[&str]) -> Result<PathManagers, String> {
        let mut text = String::from(
            "duration = \"9 s\"\n[links]\nwifi = \"wifi-good\"\nlte = \"lte\"\n[mobility]\n\
             [[handover]]\nat = \"4 s\"\nfrom = \"wifi\"\nto = \"lte\"\n",
        );
        for mptcp in flows {
            text += &format!("[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\nmptcp = {mptcp}\n");
        }
        let scenario = Scenario::parse("x.toml", &text, &[]).map_err(|errors| errors.to_string())?;
        PathManagers::new(&scenario, &lay_out(&scenario)).map_err(|error| error.to_string())
    }

    #[test]
    fn both_hosts_of_a_flow_have_its_settings_and_the_mobile_node_opens_it() {
        let managers = managers(&["{ stale_loss_count = 2 }"]).unwrap();
        let mobile: Vec<bool> = managers.hosts.values().map(|own| own.whereabouts.is_some()).collect();
        assert_eq!((mobile.len(), mobile.iter().filter(|mobile| **mobile).count()), (2, 1));
        for node in managers.hosts.keys() {
            let sysctls = managers.sysctls(*node);
            assert!(
                sysctls.contains(&("net.mptcp.stale_loss_cnt".to_owned(), "2".to_owned())),
                "{sysctls:?}"
            );
        }
        assert!(managers.sysctls(NodeId(99)).is_empty());
    }

    #[test]
    fn flows_that_share_a_host_share_its_path_manager() {
        assert!(managers(&["true", "{ subflows = 2 }", "false"]).is_ok());
        for other in ["{ subflows = 3 }", "{ backup = \"lte\" }", "{ fullmesh = true }"] {
            let error = managers(&["true", other]).unwrap_err();
            assert!(error.contains("flow.1.mptcp") && error.contains("share it"), "{error}");
        }
    }
}
