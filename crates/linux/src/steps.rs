//! The steps of a run's script, as the director takes them: what links do, and what hosts and agents are told of it.

use careof_base::{Duration, Instant};
use careof_lab::Error;
use careof_metrics::Handover as MeasuredHandover;
use careof_mobility::Notice;
use careof_plan::{Locator, NodeId, Step, announced_path, down_of, fate_of_queue, is_told, up_of};
use careof_scenario::{Handover, HandoverStyle, LinkId, Role, Scenario};

use crate::books::Record;
use crate::director::{Director, advertises_on, is_mobile_ipv6};
use crate::error::WorldError;
use crate::network::{Network, give_address};

/// Default routes of a mobile node's links, in the order of its interfaces.
const FIRST_METRIC: u32 = 100;

impl Director {
    /// Carries out a step of the script, whose time is `at`.
    pub(crate) fn take_step(&mut self, at: Instant, step: Step) -> Result<(), WorldError> {
        match step {
            Step::Attach(link) => {
                self.raise_link(link)?;
                if is_told(&self.scenario, step) {
                    self.switch_to(link, Notice::None);
                }
            }
            Step::Announce(index) => {
                let handover = &self.scenario.handovers[index].as_announced();
                let text = format!("in {} ms", handover.notice.as_millis());
                let way = up_of(handover.to);
                self.books.note(at, Record::Announced { text, way });
                let mobile = self.topology.mobile_of(handover.to);
                if let Some(agent) = self.agents.iter().find(|one| one.node == mobile) {
                    agent.announce(&self.scenario.link(handover.to).name, handover.notice);
                }
                self.announce_to_agent(handover);
            }
            Step::Prepare(index) => {
                let handover = &self.scenario.handovers[index].as_announced();
                let mobile = self.topology.mobile_of(handover.to);
                if let Some(agent) = self.agents.iter().find(|one| one.node == mobile) {
                    agent.prepare(&self.scenario.link(handover.to).name);
                }
            }
            Step::CallOff(index) => {
                let mobile = self.topology.mobile_of(self.scenario.handovers[index].from);
                if let Some(agent) = self.agents.iter().find(|one| one.node == mobile) {
                    agent.call_off();
                }
            }
            Step::Begin(index) => self.begin_handover(at, index)?,
            Step::OldLink(index) => {
                let from = self.scenario.handovers[index].from;
                let mobile = self.topology.mobile_of(from);
                if self.journey(mobile).current == Some(index) {
                    // The new path is not ready.
                    self.note_path(at, mobile, false);
                }
                self.set_carriers(from, false)?;
            }
            Step::NewLink(index) => {
                let to = self.scenario.handovers[index].to;
                self.raise_link(to)?;
                self.tell_movers(self.topology.mobile_of(to), Some(to));
                if is_told(&self.scenario, step) {
                    self.switch_to(to, Notice::None);
                }
            }
        }
        Ok(())
    }

    /// Connections that migrate learn that their mobile node uses this link: as in the simulator when the link comes up, where it had none,
    /// and otherwise with the registration.
    pub(crate) fn tell_movers(&self, node: NodeId, link: Option<LinkId>) {
        let Some(link) = link else { return };
        let interface = self.topology.place(node).interfaces.iter().find(|one| one.out == up_of(link));
        let Some(address) = interface.map(|one| self.topology.address(one.address)) else { return };
        for mover in self.flows.iter().filter_map(|flow| flow.mover.as_ref()) {
            if mover.node == node {
                mover.move_to(address);
            }
        }
    }

    /// The agent that is to buffer until a handover is over hears of it, too.
    fn announce_to_agent(&self, handover: &Handover) {
        let node = self.topology.entrance(down_of(handover.from));
        let buffers = self.assists_at(node).is_some_and(|config| config.buffer_forward.is_some());
        let agent = self.agents.iter().find(|agent| buffers && agent.node == node);
        let mobile = self.topology.homes.address_of(self.topology.mobile_of(handover.from));
        if let (Some(agent), Some(mobile)) = (agent, mobile) {
            let new = announced_path(&self.scenario, &self.topology, handover.to);
            agent.announce_departure(self.topology.address(mobile), handover.notice, new);
        }
    }

    fn assists_at(&self, node: NodeId) -> Option<careof_assist::Config> {
        careof_plan::assists(&self.scenario, &self.topology, node)
    }

    fn begin_handover(&mut self, at: Instant, index: usize) -> Result<(), WorldError> {
        let handover = self.scenario.handovers[index].clone();
        let name = |link: LinkId| self.scenario.link(link).name.clone();
        let style = handover.style.name().to_owned();
        let mobile = self.topology.mobile_of(handover.from);
        let node = (self.journeys.len() > 1).then(|| self.topology.place(mobile).name.clone());
        let measured = MeasuredHandover { from: name(handover.from), to: name(handover.to), style, node };
        if let Some(mobile) = self.topology.homes.index(mobile) {
            self.books.note(at, Record::Handover { mobile, handover: measured });
            self.journeys[mobile].current = Some(index);
        }
        match handover.style {
            HandoverStyle::MakeBeforeBreak => {
                self.raise_link(handover.to)?;
                let notice = if handover.notice > Duration::ZERO {
                    Notice::Ahead(handover.notice)
                } else {
                    Notice::None
                };
                if is_told(&self.scenario, Step::Begin(index)) {
                    self.switch_to(handover.to, notice);
                }
            }
            HandoverStyle::BreakBeforeMake => {
                self.note_path(at, mobile, false);
                self.set_carriers(handover.from, false)?;
            }
        }
        Ok(())
    }

    /// The link is up: the hosts notice, and its mobile node gets its address there.
    fn raise_link(&self, link: LinkId) -> Result<(), WorldError> {
        self.set_carriers(link, true)?;
        let Some((mobile, index)) = self.mobile_end(link) else { return Ok(()) };
        let is_ipv4_only = self.scenario.link(link).ipv4_only;
        if is_mobile_ipv6(&self.scenario) && !is_ipv4_only {
            // Its kernel forms one of what the router there advertises.
            return Ok(());
        }
        let interface = &self.topology.place(mobile).interfaces[index];
        let is_home = self.topology.homes.address_of(mobile) == Some(interface.address);
        if self.is_co_located() || is_home || is_ipv4_only {
            let name = &self.scenario.link(link).name;
            let metric = FIRST_METRIC + index as u32;
            let host = self.network.host(mobile);
            let [own, gateway] = [interface.address, interface.peer_address].map(Locator::to_ipv4);
            give_address(host, name, own, gateway, metric)?;
            self.path_managers.raised((mobile, host), (index, link, name), own.into())?;
        }
        Ok(())
    }

    /// Tells the hosts at both ends of an access link what it does: the mobile node always, the other end where an
    /// agent advertises. Elsewhere what is sent into a dead link is the link's to keep or drop.
    fn set_carriers(&self, link: LinkId, up: bool) -> Result<(), Error> {
        if let (false, Some((mobile, index))) = (up, self.mobile_end(link)) {
            let own = self.topology.address(self.topology.place(mobile).interfaces[index].address);
            self.path_managers.lowered((mobile, self.network.host(mobile)), index, own)?;
        }
        self.network.set_carrier(link, 1, up)?;
        if advertises_on(&self.scenario, link) {
            self.network.set_carrier(link, 0, up)?;
        }
        self.tell_home_agent(link, up);
        self.tell_access_router(link, up);
        Ok(())
    }

    /// A home agent at the fixed end of an access link knows what that does, where it queues or buffers for it. Others learn it from
    /// the next registration, as from a mobile node that is elsewhere: their copies do not depend on it, and with ICMP messages
    /// during the outage (`lcd-kick`) BBR was measured to stall more often (docs/studies/recovery.md).
    fn tell_home_agent(&self, link: LinkId, up: bool) {
        let anchor = self.topology.entrance(down_of(link));
        let Some((mobile, index)) = self.mobile_end(link) else { return };
        if self.topology.place(anchor).role == Role::HomeAgent
            && self.assists_at(anchor).is_some_and(|config| config.is_for_all_packets())
            && let Some(agent) = self.agents.iter().find(|agent| agent.node == anchor)
        {
            let care_of = self.topology.place(mobile).interfaces[index].address;
            agent.reachable(self.topology.plan.care_of_address(care_of), up);
        }
    }

    /// The link layer of an access router that does fast handovers tells it who is on its link.
    fn tell_access_router(&self, link: LinkId, up: bool) {
        let mobility = self.scenario.mobility.as_ref();
        if mobility.is_none_or(|mobility| mobility.fast_handover.is_none()) {
            return;
        }
        let router = self.topology.entrance(down_of(link));
        let Some((mobile, index)) = self.mobile_end(link) else { return };
        if let Some(agent) = self.agents.iter().find(|agent| agent.node == router) {
            let care_of = self.topology.place(mobile).interfaces[index].address;
            agent.reachable(self.topology.plan.care_of_address(care_of), up);
        }
    }

    fn switch_to(&self, link: LinkId, notice: Notice) {
        let Some((mobile, index)) = self.mobile_end(link) else { return };
        if let Some(agent) = self.agents.iter().find(|agent| agent.node == mobile) {
            agent.switch_to(index, &self.scenario.link(link).name, notice);
        }
    }
}

/// What the emulator does by itself at its time: access links that go up and down.
pub(crate) fn schedule(
    network: &Network,
    scenario: &Scenario,
    script: &[(Instant, Step)],
) -> Result<(), Error> {
    for (at, step) in script {
        let changes = match step {
            Step::Attach(link) => network.up(*link),
            Step::Announce(_) | Step::Prepare(_) | Step::CallOff(_) => continue,
            Step::Begin(index) => {
                let handover = &scenario.handovers[*index];
                match handover.style {
                    HandoverStyle::MakeBeforeBreak => network.up(handover.to),
                    HandoverStyle::BreakBeforeMake => lowered(network, handover),
                }
            }
            Step::OldLink(index) => lowered(network, &scenario.handovers[*index]),
            Step::NewLink(index) => network.up(scenario.handovers[*index].to),
        };
        network.emulator.schedule(*at, changes)?;
    }
    Ok(())
}

/// The link that a handover leaves goes down.
fn lowered(network: &Network, handover: &Handover) -> Vec<careof_lab::Change> {
    network.down(handover.from, fate_of_queue(handover))
}
