//! The way of the mobile nodes from base station to base station.

use careof_base::{Duration, Instant};
use careof_link::Fate;
use careof_mobility::{InterfaceId, Notice};
use careof_plan::{Itinerary, Locator, NodeId, OneWayId};

use crate::agents::Agent;
use crate::observer::Note;
use crate::simulation::Simulation;

use super::Station;

/// The only interface of a mobile node, whichever of its radios is behind it.
const RADIO: InterfaceId = InterfaceId(0);

/// What a mobile node does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It comes to the station that it goes to.
    Arrive,
    /// The handover is announced.
    Announce,
    /// It leaves its station, or, where they overlap, comes to the next one.
    Leave,
    /// It leaves the station before.
    EndOverlap,
}

/// A mobile node on its way.
pub(crate) struct Walker {
    /// By radio, the station that it is on.
    at: [Option<usize>; 2],
    /// The radio that it sends by.
    in_use: usize,
    path: Itinerary,
    next: Step,
    /// Whether it has been at a station.
    has_come: bool,
}

impl Walker {
    /// One that is about to come to its first station.
    pub(super) const fn new(path: Itinerary) -> Self {
        Self { at: [None; 2], in_use: 0, path, next: Step::Arrive, has_come: false }
    }

    /// The station that it sends to.
    pub(super) fn station_in_use(&self) -> Option<usize> {
        self.at[self.in_use]
    }

    /// The radio that it sends by.
    pub(super) const fn in_use(&self) -> usize {
        self.in_use
    }

    /// The station that it goes to, or is at.
    pub(super) const fn target(&self) -> usize {
        self.path.target
    }

    /// The radio on the station that is asked for.
    pub(super) fn radio_at(&self, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        (0..2).find(|which| self.at[*which].is_some_and(&is_it))
    }
}

impl Simulation {
    /// The next step of a mobile node.
    pub(crate) fn walk(&mut self, mobile: usize) {
        let now = self.now;
        let Some(walker) = self.walker(mobile) else { return };
        match walker.next {
            Step::Arrive => {
                self.come(mobile);
                self.plan_handover(mobile);
            }
            Step::Announce => {
                self.announce(mobile);
                if let Some(walker) = self.walker(mobile) {
                    walker.next = Step::Leave;
                    let leaves = walker.path.leaves;
                    self.wake_roamer(mobile, leaves);
                }
            }
            Step::Leave => {
                let Some(round) = self.micro.as_ref().and_then(|domain| domain.round) else { return };
                if let Some(fleet) = &mut self.fleet {
                    fleet.metrics.on_handover(mobile, now);
                }
                let node = self.node_of_host(mobile);
                self.note(node, None, Note::Handover("initiated"), format_args!(""));
                let fleet = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
                let host = self.micro.as_mut().and_then(|domain| domain.hosts.get_mut(mobile));
                if let Some((host, fleet)) = host.zip(fleet) {
                    let walker = &mut host.walker;
                    walker.path.leave(fleet);
                    walker.in_use = if round.overlap.is_zero() { walker.in_use } else { 1 - walker.in_use };
                    walker.next = if round.overlap.is_zero() { Step::Arrive } else { Step::EndOverlap };
                }
                if round.overlap.is_zero() {
                    self.leave_by(mobile, |walker| walker.in_use);
                    let gap = self.walker(mobile).map_or(Duration::ZERO, |walker| walker.path.gap);
                    if gap.is_zero() {
                        return self.walk(mobile);
                    }
                    return self.wake_roamer(mobile, now + gap);
                }
                self.come(mobile);
                self.wake_roamer(mobile, now + round.overlap);
            }
            Step::EndOverlap => {
                self.leave_by(mobile, |walker| 1 - walker.in_use);
                self.plan_handover(mobile);
            }
        }
    }

    fn walker(&mut self, mobile: usize) -> Option<&mut Walker> {
        self.micro.as_mut()?.hosts.get_mut(mobile).map(|host| &mut host.walker)
    }

    /// The mobile node is at the station that it went to: what is next?
    fn plan_handover(&mut self, mobile: usize) {
        let now = self.now;
        let Some(domain) = &mut self.micro else { return };
        let lead = domain.lead;
        let Some(host) = domain.hosts.get_mut(mobile) else { return };
        let fleet = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
        let Some(fleet) = fleet.filter(|fleet| fleet.round.is_some()) else { return };
        let walker = &mut host.walker;
        if walker.path.leaves == Instant::MAX {
            return;
        }
        walker.path.choose(fleet);
        let (next, at) = match lead {
            Some(lead) => {
                let before = walker.path.leaves.since_start().saturating_sub(lead);
                (Step::Announce, (Instant::ZERO + before).max(now))
            }
            None => (Step::Leave, walker.path.leaves),
        };
        walker.next = next;
        self.wake_roamer(mobile, at);
    }

    /// The mobile node comes to the station that it goes to, with the radio in use.
    fn come(&mut self, mobile: usize) {
        let now = self.now;
        let node = self.node_of_host(mobile);
        let Some(domain) = &mut self.micro else { return };
        let Some(host) = domain.hosts.get_mut(mobile) else { return };
        let which = host.walker.in_use;
        let Some(&base) = domain.stations.get(host.walker.path.target) else { return };
        let Station { node: station, address, cell, .. } = base;
        let is_first = !std::mem::replace(&mut host.walker.has_come, true);
        host.walker.at[which] = Some(host.walker.path.target);
        let down = domain.radio(mobile, which);
        let up = OneWayId(down.0 + 1);
        self.turn_radio(down, station, cell);
        self.bring_up(down);
        self.bring_up(up);
        // The interface of the mobile node is the radio in use.
        if let Some(interface) = self.node_mut(node).place.interfaces.first_mut() {
            (interface.out, interface.peer, interface.peer_address) = (up, station, address);
        }
        let home = self.topology.address_of(node);
        if self.micro.as_ref().is_some_and(|domain| domain.is_semi_soft) {
            self.end_semi_soft(mobile);
        }
        let hears = if is_first { now } else { self.next_advertisement(&base) };
        self.attached(mobile, (station, home), (address, hears));
        self.route_is_there(mobile, station);
        if is_first {
            self.link_changed(node, RADIO, true);
            if let Agent::Mobile(agent) = &mut self.node_mut(node).agent {
                // The interface is the only one, and it is there.
                let _ = agent.switch_to(now, RADIO, Notice::None);
            }
            self.drive_agent(node);
        }
    }

    /// When a base station advertises itself next; now where the link layer says who is there.
    fn next_advertisement(&self, base: &Station) -> Instant {
        let interval = self.micro.as_ref().map_or(Duration::ZERO, |domain| domain.advertisement_interval);
        if interval.is_zero() {
            return self.now;
        }
        let since_first = self.now.since_start().saturating_sub(base.first_advertisement).as_nanos();
        let before = since_first.div_ceil(interval.as_nanos()) * interval.as_nanos();
        let next = u64::try_from(before).map_or(Duration::MAX, Duration::from_nanos);
        Instant::ZERO + base.first_advertisement.saturating_add(next)
    }

    /// The link layer of a mobile node is at a station, whose address it hears at an instant, now or later.
    fn attached(
        &mut self,
        mobile: usize,
        (station, home): (NodeId, Locator),
        (address, hears): (Locator, Instant),
    ) {
        let now = self.now;
        let Some(domain) = &mut self.micro else { return };
        if let Some(router) = domain.router(station) {
            router.agent.note_attached(now, home.to_ipv4());
        }
        if let Some(host) = domain.hosts.get_mut(mobile) {
            host.hears = (hears > now).then_some((hears, address));
            if host.hears.is_none() {
                host.agent.attached(now, address.to_ipv4());
            }
        }
        self.drive_router(station);
        self.drive_host(mobile);
    }

    /// The radio that `which` chooses leaves its station.
    fn leave_by(&mut self, mobile: usize, which: impl Fn(&Walker) -> usize) {
        let now = self.now;
        let node = self.node_of_host(mobile);
        let home = self.topology.address_of(node).to_ipv4();
        let Some(domain) = &mut self.micro else { return };
        let Some(host) = domain.hosts.get_mut(mobile) else { return };
        let which = which(&host.walker);
        let Some(station) = host.walker.at[which].take() else { return };
        let Some(&Station { node: station, address, .. }) = domain.stations.get(station) else { return };
        host.agent.detached(now, address.to_ipv4());
        host.hears.take_if(|(_, station)| *station == address);
        let down = domain.radio(mobile, which);
        if let Some(router) = domain.router(station) {
            router.agent.note_detached(now, home);
        }
        self.turn_off_radio(down);
        self.drive_router(station);
        self.drive_host(mobile);
    }

    fn announce(&mut self, mobile: usize) {
        let now = self.now;
        let node = self.node_of_host(mobile);
        let Some(domain) = &mut self.micro else { return };
        let Some(host) = domain.hosts.get_mut(mobile) else { return };
        let Some(&Station { node: station, address, cell, .. }) =
            domain.stations.get(host.walker.path.target)
        else {
            return;
        };
        host.agent.announce(now, &[address.to_ipv4()]);
        if domain.is_semi_soft {
            // Its other radio sends to the next base station, and listens to nobody yet.
            let down = domain.radio(mobile, 1 - domain.hosts[mobile].walker.in_use);
            self.turn_radio(down, station, cell);
            self.bring_up(OneWayId(down.0 + 1));
        }
        let next = self.topology.place(station).name.clone();
        self.note(node, None, Note::Handover("announced"), format_args!("to {next}"));
        self.drive_host(mobile);
    }

    /// What a mobile node announced is over: it has come, and its other radio is on no base station, unless they overlap.
    fn end_semi_soft(&mut self, mobile: usize) {
        let Some(domain) = &self.micro else { return };
        let Some(host) = domain.hosts.get(mobile) else { return };
        let other = 1 - host.walker.in_use;
        if host.walker.at[other].is_none() {
            let up = OneWayId(domain.radio(mobile, other).0 + 1);
            self.take_down(up, Fate::Drop, Fate::Drop);
        }
    }

    /// A base station has a host route for a mobile node. Where nothing is confirmed, its path is then ready if it is there.
    pub(super) fn route_is_there(&mut self, mobile: usize, node: NodeId) {
        let now = self.now;
        let home = self.topology.address_of(self.node_of_host(mobile)).to_ipv4();
        let Some(domain) = &mut self.micro else { return };
        if domain.confirms {
            return;
        }
        let Some(host) = domain.hosts.get(mobile) else { return };
        let at = host.walker.at[host.walker.in_use].and_then(|at| domain.stations.get(at));
        let Some(&Station { cell, .. }) = at.filter(|at| at.node == node) else { return };
        let Some(router) = domain.router(node) else { return };
        let ports = router.agent.route(now, home);
        if ports.is_some_and(|ports| ports.contains(InterfaceId(cell.0))) {
            self.roamer_path_ready(mobile);
        }
    }

    /// A base station has confirmed a message of a mobile node: the path is ready, or was before.
    pub(super) fn host_confirmed(&mut self, mobile: usize, station: Locator) {
        let Some(domain) = &self.micro else { return };
        let is_at = domain.hosts.get(mobile).is_some_and(|host| {
            let walker = &host.walker;
            let at = walker.at[walker.in_use].and_then(|at| domain.stations.get(at));
            at.is_some_and(|at| at.address == station)
        });
        if is_at {
            self.roamer_path_ready(mobile);
        }
    }
}
