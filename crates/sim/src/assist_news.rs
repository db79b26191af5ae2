//! What the assists of a node are told: bindings and visitors, paths, links and handovers.

use std::net::{IpAddr, Ipv6Addr};

use careof_assist::{Input, PathId, Told};
use careof_mobility::{HandoverEvent, InterfaceId, PathProperties};
use careof_plan::{NodeId, announced_path, down_of};
use careof_scenario::{Handover, LinkId};
use careof_wire::{PathReport, ReceivedData};

use crate::agents::Agent;
use crate::assists::{Anchor, path_by, path_to};
use crate::simulation::{Node, Simulation};

impl Simulation {
    /// A binding or a visitor of an agent changed. Its assists are told when all that the registration changed is known.
    pub(crate) fn assist_moved(
        &mut self,
        node: NodeId,
        mobile: IpAddr,
        report: Option<PathReport>,
        received: ReceivedData,
    ) {
        if let Some(anchor) = &mut self.node_mut(node).assist {
            anchor.moved.entry(mobile).or_default().take_in(report, received);
        }
    }

    /// The assists of an agent learn by which paths mobile nodes are reached now, and what the nodes reported of them.
    #[inline]
    pub(crate) fn assist_paths(&mut self, node: NodeId) {
        if self.node(node).assist.is_some() {
            self.tell_assist_paths(node);
        }
    }

    fn tell_assist_paths(&mut self, node: NodeId) {
        let Some(anchor) = &mut self.node_mut(node).assist else { return };
        let known = |report: Option<PathReport>| report.map(PathProperties::from).unwrap_or_default();
        for (mobile, told) in core::mem::take(&mut anchor.moved) {
            let Told { mut old_lost, received } = told;
            let paths: Vec<(PathId, PathProperties)> = match (&self.node(node).agent, mobile) {
                (Agent::Ipv6(host), IpAddr::V6(mobile)) if host.is_home_agent() => host.paths_to(mobile),
                (Agent::Ipv6(_), IpAddr::V6(mobile)) => self.regional_paths_to(node, mobile),
                (Agent::Home(agent), IpAddr::V4(mobile)) => {
                    let bindings = agent.bindings_of(mobile).iter();
                    bindings.map(|binding| (path_to(binding.care_of), known(binding.path))).collect()
                }
                (Agent::Foreign(agent), IpAddr::V4(mobile)) => {
                    let reported = agent.visitor(mobile).and_then(|visitor| visitor.path);
                    let behind = path_by;
                    let here = agent.deliver(mobile).map(|interface| (behind(interface), known(reported)));
                    // One that has told where it went does not hear this agent any longer.
                    let gone = agent.tunnel_after(mobile).filter(|_| here.is_none());
                    old_lost = old_lost.or(gone.map(|_| true));
                    here.or(gone.map(|tunnel| (path_to(tunnel.exit), known(None)))).into_iter().collect()
                }
                _ => return,
            };
            self.assist_event(node, &Input::Paths { mobile, paths: &paths, old_lost, received });
        }
    }

    /// What a request that a mobile node may send now says of its flows.
    pub(crate) fn tell_received_data(&mut self, node: NodeId) {
        let now = self.now;
        let Node { assist: Some(_), home_address: Some(mobile), .. } = self.node(node) else { return };
        let address = self.topology.address(*mobile);
        let Node { agent, assist: Some(anchor), .. } = self.node_mut(node) else { return };
        match agent {
            Agent::Mobile(agent) => agent.set_received_data(anchor.assistant.received_data(now, address)),
            Agent::Ipv6(host) => host.set_received_data(anchor.assistant.received_data(now, address)),
            _ => {}
        }
    }

    /// A phase of a handover of a mobile node.
    pub(crate) fn assist_handover<A, C>(&mut self, node: NodeId, event: &HandoverEvent<A, C>) {
        if self.node(node).assist.is_some()
            && let Some(mobile) = self.topology.homes.address_of(node)
        {
            let mobile = self.topology.address(mobile);
            if let (HandoverEvent::Registered { .. }, Agent::Ipv6(host)) = (event, &self.node(node).agent) {
                let peers = host.outdated_correspondents();
                self.assist_event(node, &Input::Outdated { mobile, peers: &peers });
            }
            self.assist_event(node, &Input::Handover { mobile, event: &event.phase() });
        }
    }

    /// A mobile node that its home agent does not know of yet is reached by a new link, through its former access router.
    pub(crate) fn assist_handed_over(&mut self, node: NodeId, interface: InterfaceId, new: PathProperties) {
        if self.node(node).assist.is_some()
            && let Some(mobile) = self.topology.homes.address_of(node)
        {
            let (mobile, path) = (self.topology.address(mobile), PathId::Interface(interface));
            self.assist_event(node, &Input::HandedOver { mobile, path, new });
        }
    }

    /// What a correspondent knows of a mobile node's care-of address is new, in the mobile node's view.
    pub(crate) fn assist_correspondent(&mut self, node: NodeId, correspondent: Ipv6Addr) {
        if self.node(node).assist.is_some()
            && let Some(mobile) = self.topology.homes.address_of(node)
        {
            let (mobile, peer) = (self.topology.address(mobile), correspondent.into());
            self.assist_event(node, &Input::Updated { mobile, peer });
        }
    }

    /// Somebody tells the mobile node that a handover is coming, and the agent that is to buffer until it is over.
    pub(crate) fn assist_announced(&mut self, handover: &Handover) {
        let node = self.topology.mobile_of(handover.from);
        let agent = self.topology.entrance(down_of(handover.from));
        let buffers = |anchor: &Anchor| anchor.assistant.config().buffer_forward.is_some();
        let agent = Some(agent).filter(|agent| self.node(*agent).assist.as_deref().is_some_and(buffers));
        let mobile = self.topology.homes.address_of(node);
        let Some(mobile) = mobile.map(|mobile| self.topology.address(mobile)) else { return };
        for node in [node].into_iter().chain(agent) {
            if self.node(node).assist.is_some() {
                let new = announced_path(&self.scenario, &self.topology, handover.to);
                let within = handover.notice;
                self.assist_event(node, &Input::Announced { mobile, within, new });
            }
        }
    }

    /// An agent notices that the access link at one of its own interfaces went down or came up.
    pub(crate) fn assist_link(&mut self, node: NodeId, link: LinkId, interface: InterfaceId, up: bool) {
        let path = match &self.node(node).agent {
            _ if self.node(node).assist.is_none() => return,
            Agent::Foreign(_) => path_by(interface),
            Agent::Home(_) => {
                let interfaces = &self.node(self.topology.mobile_of(link)).place.interfaces;
                path_to(interfaces[usize::from(self.mobile_end(link).1.0)].address.to_ipv4())
            }
            Agent::Ipv6(host) if host.has_bindings() => {
                let interfaces = &self.node(self.topology.mobile_of(link)).place.interfaces;
                let care_of = interfaces[usize::from(self.mobile_end(link).1.0)].address;
                PathId::CareOf(self.topology.plan.care_of_address(care_of))
            }
            Agent::None | Agent::Mobile(_) | Agent::Correspondent(_) | Agent::Ipv6(_) => return,
        };
        self.assist_event(node, &if up { Input::LinkUp { path } } else { Input::LinkDown { path } });
    }

    /// A tunnel that begins here does not reach its end.
    pub(crate) fn assist_unreachable(&mut self, node: NodeId, exit: IpAddr) {
        let begins_here = match &self.node(node).agent {
            Agent::Home(_) => true,
            Agent::Ipv6(host) => host.has_bindings(),
            _ => false,
        };
        if begins_here {
            self.assist_event(node, &Input::Unreachable { path: PathId::CareOf(exit) });
        }
    }
}
