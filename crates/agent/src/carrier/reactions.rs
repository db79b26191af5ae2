//! What follows in the host from what the agent decides, and for the agent from what happens to the host.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use careof_assist::{self as assist, Told};
use careof_base::Instant;
use careof_lab::{InterfaceAddress, Neighbour, Netlink, Route, RouteKind, Rule, SeenRequest};
use careof_mobility::multipath::alliance::RelayInterfaceChange;
use careof_mobility::v4::{
    AgentEvent, ArpEvent, CareOfChoice, Event, HandoverEvent, Input, InterfaceId, PathProperties, Prefix,
    RegistrationEvent, RegistrationStep, Surroundings, Transmit, TransmitPayload,
};
use careof_wire::mip4::{Message, PathReport, ReceivedData, ReplyCode};

use super::agent::Agent;
use super::announcements::Announcement;
use super::decisions::{path_by, path_to};
use super::interfaces::{Interface, InterfaceChange};
use super::network_news::NetworkNews;
use super::{Error, HomeNetwork, Ipv4Carrier, Setup, mobile_routes};

/// Tables of an agent, counted from its first one: routes to home addresses, and the way into the tunnel.
const HOME_ADDRESSES: u32 = 0;
const INTO_TUNNEL: u32 = 1;
/// Priorities of an agent's rules, counted from its first one.
const FROM_VISITORS: u32 = 0;
const TO_HOME_ADDRESSES: u32 = 1;

impl Ipv4Carrier {
    /// What an agent needs in the host from the start.
    pub(super) fn install(&mut self) -> Result<(), Error> {
        let options = self.setup.host();
        let (table, priority) = (options.first_table, options.first_priority);
        match &self.setup {
            Setup::Home(setup) => {
                self.parameters.forward()?;
                self.host.set_rule(Rule::new(priority + TO_HOME_ADDRESSES, table + HOME_ADDRESSES));
                if setup.home_network == HomeNetwork::Routed {
                    // Who is not away is nowhere; back to the routers would be in circles.
                    let network = setup.config.home_network;
                    self.host.set_route(Route {
                        table: Some(table + HOME_ADDRESSES),
                        kind: RouteKind::Unreachable,
                        ..Route::to(IpAddr::V4(network.address()), network.length(), 0)
                    });
                }
            }
            Setup::Foreign(_) => {
                self.parameters.forward()?;
                // What comes out of a tunnel only. Who is a visitor, its home agent has said, which may be anybody's: what this host
                // sends or passes on itself does not go by that.
                self.host.set_rule(Rule {
                    input: Some(options.tunnel_device.clone()),
                    ..Rule::new(priority + TO_HOME_ADDRESSES, table + HOME_ADDRESSES)
                });
                self.host.set_route(Route {
                    table: Some(table + INTO_TUNNEL),
                    ..Route::default_through(self.tunnel, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
                });
            }
            Setup::Mobile(_) => {}
        }
        Ok(())
    }

    /// An interface that the agent uses exists.
    fn appeared(&mut self, id: InterfaceId) -> Result<(), Error> {
        let Some(interface) = self.interfaces.get(id) else { return Ok(()) };
        self.signalling.join(interface);
        let (name, index) = (interface.device.name.clone(), interface.index());
        let has_neighbours = interface.state.as_ref().is_some_and(|state| state.link_address.is_some());
        if let Some(index) = index {
            self.host.wait_for_interface(index);
        }
        match &self.setup {
            Setup::Home(setup) => {
                if setup.config.home_interface != id || setup.home_network == HomeNetwork::Routed {
                    return Ok(());
                }
                // Answers for others are put off by up to 0.8 s without this.
                self.parameters.set(&format!("ipv4/neigh/{name}/proxy_delay"), "0")?;
                let Agent::Home(agent) = &self.agent else { return Ok(()) };
                if let Some(index) = index.filter(|_| has_neighbours) {
                    let is_away = |node| match node {
                        IpAddr::V4(node) => agent.serves(node).then(|| !agent.tunnels(node).is_empty()),
                        IpAddr::V6(_) => None,
                    };
                    self.host.take_over_proxies(index, is_away);
                }
            }
            // Visitors send from addresses to which the way leads elsewhere.
            Setup::Foreign(_) => self.parameters.loosen_reverse_path_filter(&name)?,
            Setup::Mobile(setup) => {
                let own_address_only = setup
                    .config
                    .interfaces
                    .iter()
                    .any(|interface| interface.id == id && interface.care_of == CareOfChoice::CoLocated);
                if own_address_only {
                    self.parameters.loosen_reverse_path_filter(&name)?;
                } else {
                    self.parameters.disable_reverse_path_filter(&name)?;
                }
                // A link that carries nothing is no way to what is on it.
                self.parameters.set(&format!("ipv4/conf/{name}/ignore_routes_with_linkdown"), "1")?;
                if has_neighbours {
                    self.parameters.keep_home_address_quiet(&name, !self.answers_arp)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what there is of interfaces and addresses, and tells the agent what is news. What cannot be read is
    /// left as it was known, and read again soon. It takes the instant of its turn, since the agent's time must not run
    /// backwards within one.
    pub(super) fn read_network(&mut self, now: Instant) -> Result<(), Error> {
        self.reading.begin();
        let outcome = self.reading.check().and_then(|()| self.interfaces.read(self.host.netlink()));
        let changes = self.reading.note(now, outcome).unwrap_or_default();
        self.apply_changes(now, changes)?;
        self.read_addresses(now);
        self.read_cluster(now);
        Ok(())
    }

    /// Mobile node: reads what there is of the interface to its cluster.
    fn read_cluster(&mut self, now: Instant) {
        let Some(cluster) = &mut self.cluster else { return };
        let outcome = cluster.read(now, self.host.netlink());
        self.reading.note(now, outcome);
        self.follow_cluster(now);
    }

    /// Mobile node: does what its cluster asks for.
    pub(super) fn follow_cluster(&mut self, now: Instant) {
        let Some(cluster) = &mut self.cluster else { return };
        let mut own_path_works = false;
        if let Some(bonds) = &mut self.data.bonds {
            for (interface, works) in bonds.take_relay_news() {
                cluster.note_path(now, interface, works);
            }
            own_path_works = bonds.has_path_without_relay();
        }
        let home_agent = match &self.agent {
            Agent::Mobile(node) => node.home_agent(),
            Agent::Home(_) | Agent::Foreign(_) => None,
        };
        cluster.wake(now, home_agent, own_path_works);
        let changes = cluster.drive(now);
        self.tell_of_relays(now, &changes);
    }

    /// Mobile node: tells it what has become of the interfaces that stand for relays.
    pub(super) fn tell_of_relays(&mut self, now: Instant, changes: &[RelayInterfaceChange]) {
        for &RelayInterfaceChange { interface, address } in changes {
            self.tell_agent(now, Input::AddressChanged { interface, address });
            self.drain(now);
            let is_there = address.is_some();
            self.tell_agent(
                now,
                if is_there { Input::LinkUp { interface } } else { Input::LinkDown { interface } },
            );
            self.drain(now);
        }
    }

    /// Reads everything once more when that is due.
    pub(super) fn read_again(&mut self, now: Instant) -> Result<(), Error> {
        if self.reading.next_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        self.stirred = true;
        self.read_network(now)?;
        self.host.settle();
        self.decisions.paths.forget_mtus();
        Ok(())
    }

    pub(super) fn read_addresses(&mut self, now: Instant) {
        match self.agent {
            Agent::Home(_) | Agent::Foreign(_) => return self.read_surroundings(now),
            Agent::Mobile(_) => {}
        }
        let outcome = self.reading.check().and_then(|()| self.interfaces.read_addresses(self.host.netlink()));
        for (interface, address) in self.reading.note(now, outcome).unwrap_or_default() {
            self.tell_agent(now, Input::AddressChanged { interface, address });
            self.drain(now);
        }
    }

    /// Home and foreign agent: which addresses are everybody's, which no visitor may claim, and whether the agent's own are there.
    fn read_surroundings(&mut self, now: Instant) {
        let outcome = self.reading.check().and_then(|()| surroundings(self.host.netlink(), self.tunnel));
        let surroundings = self.reading.note(now, outcome);
        if let Some(surroundings) = &surroundings {
            let absent = self.setup.public_addresses().into_iter();
            let absent = absent.filter(|address| !surroundings.own.contains(address)).collect();
            let outcome = not_local(self.host.netlink(), absent);
            let missing = self.reading.note(now, outcome).unwrap_or_default();
            self.missing = missing.into_iter().map(IpAddr::V4).collect();
        }
        match (&mut self.agent, surroundings) {
            (Agent::Home(agent), Some(surroundings)) => agent.set_surroundings(surroundings),
            (Agent::Foreign(agent), Some(surroundings)) => agent.set_surroundings(surroundings),
            _ => {}
        }
    }

    /// Tells an agent that has just been made what it would know by now.
    pub(super) fn tell_interfaces(&mut self, now: Instant) {
        let there = self.interfaces.named().iter().filter(|interface| interface.state.is_some());
        let there: Vec<_> = there.map(|interface| (interface.device.id, interface.is_up())).collect();
        for (interface, up) in there {
            if up {
                self.tell_agent(now, Input::LinkUp { interface });
                self.drain(now);
            } else {
                self.tell_of_dead_link(now, interface);
            }
        }
    }

    /// An interface that is there from the beginning has no carrier. Who advertises takes it for able to carry
    /// otherwise, and says nothing when it comes up; a mobile node expects nothing of it.
    fn tell_of_dead_link(&mut self, now: Instant, interface: InterfaceId) {
        if !matches!(self.agent, Agent::Mobile(_)) {
            self.tell_agent(now, Input::LinkDown { interface });
            self.drain(now);
        }
    }

    /// Takes in what the kernel says about changes.
    pub(super) fn take_changes(&mut self, now: Instant) -> Result<(), Error> {
        self.stirred = true;
        let news = NetworkNews::read(&mut self.monitor, &mut self.host, &mut self.interfaces)?;
        self.overruns += news.overruns;
        let (links, everything, addresses) = (news.links, news.lost_some(), news.addresses);
        if matches!(self.agent, Agent::Mobile(_)) {
            if links {
                self.questions.link_changed(now);
            } else if addresses || everything {
                self.questions.ask(now);
            }
        }
        let by_links = !news.interfaces.is_empty();
        self.apply_changes(now, news.interfaces)?;
        if everything {
            self.host.doubt_everything();
            self.read_network(now)?;
        } else if addresses || by_links {
            self.read_addresses(now);
        }
        if !everything && (addresses || links) {
            self.read_cluster(now);
        }
        if by_links || everything || addresses {
            self.host.settle();
        }
        if links || everything || addresses {
            // Its MTU may be all that has changed about a link.
            self.decisions.paths.forget_mtus();
        }
        Ok(())
    }

    fn apply_changes(&mut self, now: Instant, changes: Vec<InterfaceChange>) -> Result<(), Error> {
        for change in changes {
            match change {
                InterfaceChange::Appeared(id) => {
                    self.appeared(id)?;
                    if !self.interfaces.get(id).is_some_and(Interface::is_up) {
                        self.tell_of_dead_link(now, id);
                    }
                    self.return_to(id);
                }
                InterfaceChange::Removed { name, index } => {
                    self.parameters.forget_interface(&name);
                    self.host.forget_interface(index);
                }
                InterfaceChange::Renamed { name, to, index } => {
                    // It has nothing to do with the agent any longer, and is left as it was found.
                    self.host.wait_for_interface(index);
                    self.parameters.leave_interface(&name, &to);
                    self.host.leave_interface(index);
                }
                InterfaceChange::Up(interface) => self.link_came(now, interface),
                InterfaceChange::Down { id, index } => self.link_lost(now, id, index),
                InterfaceChange::Flapped { id, index } => {
                    self.questions.flaps += 1;
                    self.link_lost(now, id, index);
                    self.link_came(now, id);
                }
            }
        }
        Ok(())
    }

    /// Hands the agent an input that may make it send a message.
    pub(super) fn tell_agent(&mut self, now: Instant, input: Input<'_>) {
        self.tell_received_data(now);
        self.agent.handle_input(now, input);
    }

    /// Mobile node: what a request that it may send now says of its flows.
    pub(super) fn tell_received_data(&mut self, now: Instant) {
        if let (Agent::Mobile(node), Some(assists)) = (&mut self.agent, &self.data.assists)
            && let Some(mobile) = self.setup.home_address()
        {
            node.set_received_data(assists.received_data(now, mobile.into()));
        }
    }

    fn link_came(&mut self, now: Instant, interface: InterfaceId) {
        // With its addresses, so that the agent finds everything when it looks.
        self.read_addresses(now);
        self.tell_agent(now, Input::LinkUp { interface });
        self.drain(now);
        self.tell_link(now, &assist::Input::LinkUp { path: path_by(interface) });
        self.return_to(interface);
    }

    fn link_lost(&mut self, now: Instant, interface: InterfaceId, index: u32) {
        self.host.doubt_interface(index);
        self.tell_link(now, &assist::Input::LinkDown { path: path_by(interface) });
        self.tell_agent(now, Input::LinkDown { interface });
        self.drain(now);
    }

    /// Asks about the links, if that is due.
    pub(super) fn ask_again(&mut self, now: Instant) -> Result<(), Error> {
        if self.questions.take(now) { self.look_at_links(now) } else { Ok(()) }
    }

    /// Asks the kernel what has become of the links.
    pub(super) fn look_at_links(&mut self, now: Instant) -> Result<(), Error> {
        let outcome = self.interfaces.ask(self.host.netlink());
        let changes = self.reading.note(now, outcome).unwrap_or_default();
        if changes.is_empty() {
            return Ok(());
        }
        self.stirred = true;
        self.apply_changes(now, changes)?;
        self.read_addresses(now);
        self.host.settle();
        Ok(())
    }

    /// Foreign agent: its own link is the path. A mobile node tells of its links by the phases of a handover.
    fn tell_link(&mut self, now: Instant, input: &assist::Input<'_>) {
        if let (Agent::Foreign(_), Some(assists)) = (&self.agent, &mut self.data.assists) {
            assists.handle_event(now, input);
        }
    }

    /// An interface is there again, perhaps with another number: what an agent wants on it is put there anew.
    fn return_to(&mut self, id: InterfaceId) {
        match &self.agent {
            Agent::Foreign(agent) => {
                let there = agent.visitors().filter(|visitor| visitor.interface == id);
                let homes: Vec<Ipv4Addr> = there.map(|visitor| visitor.home_address).collect();
                homes.into_iter().for_each(|home_address| self.visitor_changed(home_address));
            }
            Agent::Home(agent) => {
                let away: Vec<Ipv4Addr> = agent.bindings().map(|binding| binding.home_address).collect();
                self.host.is_unhurried = true;
                for home_address in away {
                    self.proxy(home_address, id, true);
                }
                self.host.is_unhurried = false;
            }
            Agent::Mobile(_) => {}
        }
    }

    /// Home agent: takes back what was written down. All of it before anything else, which is quick: it is memory only, and a
    /// request that were judged before its record is there could be an old one. What follows in the host comes a portion a turn.
    pub(super) fn restore(&mut self, now: Instant) -> Result<(), Error> {
        self.host.is_unhurried = true;
        for record in self.persistence.load()? {
            if let Agent::Home(agent) = &mut self.agent
                && agent.restore(now, &record)
            {
                let home_address = record.home_address;
                let bindings = agent.bindings_of(home_address).len();
                self.persistence.take_over(record, bindings, agent.record(now, home_address));
                self.take_restored(now);
            }
        }
        self.host.is_unhurried = false;
        Ok(())
    }

    /// What follows from bindings that an agent was given, instead of granting them. It may be much, and is nothing new.
    pub(super) fn take_restored(&mut self, now: Instant) {
        let mut moved = BTreeMap::new();
        while let Some(event) = self.agent.poll_event() {
            match event {
                Event::Binding(change) => self.binding_changed(change.home_address),
                Event::Arp(ArpEvent::Gratuitous { home_address, interface, owner }) => {
                    self.announcements.put_off(Announcement { interface, address: home_address, owner });
                }
                Event::Arp(event) => self.arp(now, event),
                _ => {}
            }
            self.tell_assists(now, &event, &mut moved);
        }
        for (mobile, told) in moved {
            self.tell_paths(now, mobile, &told);
        }
    }

    /// Takes everything the agent has to say and to tell.
    pub(super) fn drain(&mut self, now: Instant) {
        self.stirred = true;
        // A registration may remove a binding and make another one: what counts is where it ends.
        let mut moved = BTreeMap::new();
        loop {
            while let Some(transmit) = self.agent.poll_transmit(now) {
                self.outgoing.push(transmit);
            }
            let Some(event) = self.agent.poll_event() else { break };
            self.react(now, &event);
            self.tell_assists(now, &event, &mut moved);
            self.events.push(now, event);
        }
        for (mobile, told) in moved {
            self.tell_paths(now, mobile, &told);
        }
    }

    /// What an event of the agent means to assists; `moved` are the mobile nodes whose path may be another, and what they told.
    fn tell_assists(&mut self, now: Instant, event: &Event, moved: &mut BTreeMap<Ipv4Addr, Told>) {
        let Some(assists) = &mut self.data.assists else { return };
        let (home_address, path, received) = match event {
            Event::Binding(change) => (change.home_address, change.path, change.received),
            Event::Visitor(change) => (change.home_address, change.path, ReceivedData::EMPTY),
            Event::Handover(event) => {
                if let Some(mobile) = self.setup.home_address() {
                    let (mobile, event) = (mobile.into(), &event.phase());
                    assists.handle_event(now, &assist::Input::Handover { mobile, event });
                }
                return;
            }
            _ => return,
        };
        moved.entry(home_address).or_default().take_in(path, received);
    }

    /// Home and foreign agent: tells the assists by which paths a mobile node is reached now.
    fn tell_paths(&mut self, now: Instant, mobile: Ipv4Addr, told: &Told) {
        let Some(assists) = &mut self.data.assists else { return };
        let known = |path: Option<PathReport>| path.map(PathProperties::from).unwrap_or_default();
        let paths: Vec<_> = match &self.agent {
            Agent::Home(agent) => {
                let bindings = agent.bindings_of(mobile).iter();
                bindings.map(|binding| (path_to(binding.care_of), known(binding.path))).collect()
            }
            Agent::Foreign(agent) => {
                let reported = agent.visitor(mobile).and_then(|visitor| visitor.path);
                agent.deliver(mobile).map(|id| (path_by(id), known(reported))).into_iter().collect()
            }
            Agent::Mobile(_) => return,
        };
        let Told { old_lost, received } = *told;
        let mobile = mobile.into();
        assists.handle_event(now, &assist::Input::Paths { mobile, paths: &paths, old_lost, received });
    }

    /// Tells assists that begin while mobile nodes are bound where these are.
    pub(super) fn tell_assists_all(&mut self, now: Instant) {
        let mobiles: Vec<Ipv4Addr> = match &self.agent {
            Agent::Home(agent) => agent.bindings().map(|binding| binding.home_address).collect(),
            Agent::Foreign(agent) => agent.visitors().map(|visitor| visitor.home_address).collect(),
            Agent::Mobile(_) => Vec::new(),
        };
        mobiles.into_iter().for_each(|mobile| self.tell_paths(now, mobile, &Told::default()));
    }

    fn react(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Binding(change) => match &self.agent {
                Agent::Home(_) => {
                    self.persistence.note(change.home_address);
                    self.binding_changed(change.home_address);
                }
                Agent::Mobile(node) if self.leaving && !node.is_registered() => self.in_service = false,
                _ => {}
            },
            Event::ReverseTunnelEnded { home_address } => {
                if let Agent::Home(agent) = &self.agent {
                    self.decisions.home_changed(agent, *home_address);
                }
            }
            Event::Visitor(change) => self.visitor_changed(change.home_address),
            Event::Arp(event) => self.arp(now, *event),
            Event::Handover(event) => {
                if let HandoverEvent::Registered { .. } = event {
                    self.in_service = true;
                }
                let interfaces = &self.interfaces;
                let name = |id| interfaces.get(id).map(|interface| interface.device.name.clone());
                self.events.note_handover(now, event, name);
            }
            Event::Registration(event) => {
                // Who cannot prove who he is changes nothing, however often he asks.
                self.follow_request(event);
                if let RegistrationStep::ReplySent { code } = event.step
                    && code != ReplyCode::HomeMobileNodeFailedAuthentication
                {
                    self.persistence.note(event.home_address);
                }
            }
            Event::Agent(event) => self.agent_heard(*event),
            Event::Dropped { .. } => {}
        }
    }

    /// Home agent: packets for a mobile node go into the tunnel device while it is away.
    pub(super) fn binding_changed(&mut self, home_address: Ipv4Addr) {
        let Agent::Home(agent) = &self.agent else { return };
        self.decisions.home_changed(agent, home_address);
        if let Some(bonds) = &mut self.data.bonds {
            bonds.note_change(home_address);
        }
        let table = self.setup.host().first_table + HOME_ADDRESSES;
        if agent.tunnels(home_address).is_empty() {
            self.host.unset_route(table, home_address, 32);
        } else {
            self.host.set_route(Route {
                table: Some(table),
                ..Route::to(IpAddr::V4(home_address), 32, self.tunnel)
            });
        }
    }

    /// Foreign agent: packets for a visitor go to its link, and its own ones into the tunnel device if they are to
    /// be tunnelled back.
    pub(super) fn visitor_changed(&mut self, home_address: Ipv4Addr) {
        let Agent::Foreign(agent) = &self.agent else { return };
        self.decisions.visitor_changed(agent, &self.interfaces, home_address);
        let options = self.setup.host();
        let (table, priority) = (options.first_table, options.first_priority);
        let link = agent.deliver(home_address).and_then(|id| self.interfaces.get(id));
        let there = link.and_then(|link| Some((link.index()?, link.state.as_ref()?.link_address.is_some())));
        if link.is_none() {
            self.neighbourhood.forget_visitor(home_address);
        }
        let tunnels_back = agent.reverse_tunnel(home_address).is_some();
        let before = self.visitors_on.get(&home_address).copied();
        if let Some(before) = before.filter(|before| there.is_none_or(|(index, _)| index != *before)) {
            self.host.unset_neighbour(before, home_address);
            self.visitors_on.remove(&home_address);
        }
        // By its link only. What comes out of a tunnel is for a visitor, although another one may have sent it, and
        // from elsewhere nobody may speak in its name.
        let from_visitor = link.filter(|_| tunnels_back && there.is_some()).map(|link| Rule {
            from: Some((home_address.into(), 32)),
            input: Some(link.device.name.clone()),
            ..Rule::new(priority + FROM_VISITORS, table + INTO_TUNNEL)
        });
        self.host.set_rule_from(home_address, priority + FROM_VISITORS, from_visitor);
        let Some((index, has_neighbours)) = there else {
            return self.host.unset_route(table + HOME_ADDRESSES, home_address, 32);
        };
        self.host.set_route(Route {
            table: Some(table + HOME_ADDRESSES),
            ..Route::to(IpAddr::V4(home_address), 32, index)
        });
        self.visitors_on.insert(home_address, index);
        if has_neighbours {
            // It does not answer ARP for its home address here (RFC 5944 section 4.6).
            if let Some(link_address) = self.visitors_link_address(index, home_address) {
                self.host.set_neighbour(index, home_address, link_address);
            }
        }
    }

    /// Foreign agent: keeps in mind in whose frame a request came, until it is answered.
    fn follow_request(&mut self, event: &RegistrationEvent) {
        if !matches!(self.agent, Agent::Foreign(_)) {
            return;
        }
        let Some(index) = event.interface.and_then(|id| self.interfaces.index_of(id)) else { return };
        let (home_address, identification_low) = (event.home_address, event.identification.low());
        let request = SeenRequest { home_address, identification_low };
        match event.step {
            RegistrationStep::RequestReceived => self.neighbourhood.begin(index, request),
            RegistrationStep::ReplySent { .. } => self.neighbourhood.end(index, request, false),
            RegistrationStep::ReplyRelayed { code } => {
                let is_granted = code.is_accepted() && !event.lifetime.is_zero();
                self.neighbourhood.end(index, request, is_granted);
                if is_granted {
                    self.visitor_changed(home_address);
                }
            }
            _ => {}
        }
    }

    /// The link address of a visitor, by its request or as the kernel knows it.
    fn visitors_link_address(&mut self, index: u32, address: Ipv4Addr) -> Option<[u8; 6]> {
        self.neighbourhood.visitor(index, address).or_else(|| {
            let known = self.host.netlink().neighbour(index, address).ok().flatten();
            known.and_then(|neighbour| neighbour.link_address)
        })
    }

    /// Foreign agent: who asked to visit and is refused is told so, too, and cannot be asked for by ARP. Returns whom
    /// to forget afterwards.
    ///
    /// He has proved nothing. So whom the kernel knows already - a router, or one that the administrator has set -
    /// stays as he is, and so does whoever has an address of the link itself, where hosts answer ARP.
    pub(super) fn lend_neighbour(&mut self, transmit: &Transmit) -> Option<(u32, Ipv4Addr)> {
        let (Agent::Foreign(_), address) = (&self.agent, transmit.destination) else { return None };
        let index = transmit.interface.and_then(|id| self.interfaces.index_of(id))?;
        if self.visitors_on.get(&address) == Some(&index) {
            return None;
        }
        let link_address = match requested(transmit) {
            Some(request) => self.neighbourhood.requester(index, request)?,
            None => self.neighbourhood.link_address(index, address)?,
        };
        let netlink = self.host.netlink();
        let is_known = |known: Neighbour| known.is_permanent || known.link_address.is_some();
        if netlink.neighbour(index, address).ok()?.is_some_and(is_known) {
            return None;
        }
        let is_around = |own: InterfaceAddress| match own.address {
            IpAddr::V4(own_address) => Prefix::new(own_address, own.prefix_length).contains(address),
            IpAddr::V6(_) => false,
        };
        if netlink.addresses(index).ok()?.into_iter().any(is_around) {
            return None;
        }
        self.host.set_neighbour(index, address, link_address);
        Some((index, address))
    }

    /// Mobile node: an agent is known by the frames of its advertisements, so that the link need not be asked.
    fn agent_heard(&mut self, event: AgentEvent) {
        if !matches!(self.agent, Agent::Mobile(_)) {
            return;
        }
        match event {
            AgentEvent::Found { interface, agent } | AgentEvent::Rebooted { interface, agent } => {
                if let Some(index) = self.interfaces.index_of(interface)
                    && let Some(link_address) = self.neighbourhood.link_address(index, agent)
                {
                    self.host.set_neighbour(index, agent, link_address);
                }
            }
            AgentEvent::Lost { interface, agent, .. } => {
                if let Some(index) = self.interfaces.index_of(interface) {
                    self.host.unset_neighbour(index, agent);
                }
            }
            AgentEvent::PrefixChanged { .. } => {}
        }
    }

    fn arp(&mut self, now: Instant, event: ArpEvent) {
        match event {
            ArpEvent::Proxy { home_address, interface, on } => {
                self.announcements.cancel(home_address);
                self.proxy(home_address, interface, on);
            }
            ArpEvent::Answer { on, .. } => {
                self.answers_arp = on;
                let interfaces = self.interfaces.named().iter();
                let names: Vec<String> = interfaces.map(|interface| interface.device.name.clone()).collect();
                for name in names {
                    if self.parameters.keep_home_address_quiet(&name, !on).is_err() {
                        self.parameters.refused += 1;
                    }
                }
            }
            ArpEvent::Gratuitous { home_address, interface, owner } => {
                let announcement = Announcement { interface, address: home_address, owner };
                self.announce(announcement);
                self.announcements.repeat(now, announcement);
            }
        }
    }

    /// Home agent: answers ARP for a mobile node on its home link, or no longer.
    fn proxy(&mut self, home_address: Ipv4Addr, interface: InterfaceId, on: bool) {
        let Setup::Home(setup) = &self.setup else { return };
        if setup.home_network == HomeNetwork::Routed || setup.config.home_interface != interface {
            return;
        }
        let state = self.interfaces.get(interface).and_then(|interface| interface.state.as_ref());
        // A link without ARP has nobody to answer.
        let Some(index) = state.filter(|state| state.link_address.is_some()).map(|state| state.index) else {
            return;
        };
        if on {
            self.host.set_proxy(index, home_address);
        } else {
            self.host.unset_proxy(index, home_address);
        }
    }

    /// Tells the neighbours whose an address is.
    pub(super) fn announce(&mut self, announcement: Announcement) {
        let interface = announcement.interface;
        if matches!(&self.setup, Setup::Home(setup) if setup.home_network == HomeNetwork::Routed) {
            return;
        }
        let state = self.interfaces.get(interface).and_then(|interface| interface.state.as_ref());
        let Some((index, own)) = state.and_then(|state| Some((state.index, state.link_address?))) else {
            return;
        };
        self.announcements.announce(self.host.netlink(), (index, own), announcement);
    }

    /// Home agent: writes down what has changed.
    pub(super) fn save(&mut self, now: Instant) {
        if let Agent::Home(agent) = &self.agent {
            self.persistence.save(now, |home_address| agent.record(now, home_address));
        }
    }

    /// Mobile node: has the kernel route as the node decides.
    pub(super) fn follow_mobile_node(&mut self) {
        let (Agent::Mobile(node), Setup::Mobile(setup)) = (&self.agent, &self.setup) else { return };
        self.decisions.mobile_changed(node, &self.interfaces, setup.config.home_address);
        if let Some(bonds) = &mut self.data.bonds {
            bonds.note_change(setup.config.home_address);
        }
        let wishes = mobile_routes::wishes(node, setup, &self.interfaces, self.tunnel, self.in_service);
        if wishes != self.wishes {
            self.host.set_all(wishes.routes.clone(), wishes.rules.clone());
            self.wishes = wishes;
        }
    }

    /// Has tunnels over several paths go by those that there are now.
    pub(super) fn follow_paths(&mut self, now: Instant) {
        let (Some(bonds), cluster) = (&mut self.data.bonds, &self.cluster) else { return };
        let by_relay = |interface| cluster.as_ref()?.way(interface);
        for home_address in bonds.take_changed() {
            match (&self.agent, &self.setup) {
                (Agent::Home(agent), _) => bonds.follow_home(now, agent, home_address),
                (Agent::Mobile(node), Setup::Mobile(setup)) => {
                    let interfaces = &setup.config.interfaces;
                    let is_metered = |id| interfaces.iter().any(|known| known.id == id && known.metered);
                    bonds.follow_mobile(now, node, &self.interfaces, is_metered, by_relay, home_address);
                }
                _ => {}
            }
        }
    }

    /// Another agent takes the place of the one that put this into the host.
    pub(super) fn forget_agent(&mut self, homes: Vec<Ipv4Addr>) {
        for home_address in homes {
            match self.agent {
                Agent::Home(_) => self.binding_changed(home_address),
                Agent::Foreign(_) => self.visitor_changed(home_address),
                Agent::Mobile(_) => {}
            }
        }
    }
}

/// What this host is and is connected to, but for the tunnel device.
fn surroundings(netlink: &mut Netlink, tunnel: u32) -> Result<Surroundings, careof_lab::Error> {
    let mut found = Surroundings::default();
    for (interface, InterfaceAddress { address, prefix_length }) in netlink.all_addresses()? {
        if let (IpAddr::V4(address), true) = (address, interface != tunnel) {
            found.own.push(address);
            found.connected.push(Prefix::new(address, prefix_length));
        }
    }
    Ok(found)
}

/// Which of these addresses this host does not take for its own. A route of the kernel's `local` table makes it take a whole
/// network so, of which no interface has an address.
fn not_local(
    netlink: &mut Netlink,
    mut addresses: Vec<Ipv4Addr>,
) -> Result<Vec<Ipv4Addr>, careof_lab::Error> {
    const LOCAL_TABLE: u32 = 255;
    if addresses.is_empty() {
        return Ok(addresses);
    }
    for route in netlink.routes(LOCAL_TABLE)?.iter().filter(|route| route.kind == RouteKind::Local) {
        if let IpAddr::V4(network) = route.destination {
            let prefix = Prefix::new(network, route.prefix_length);
            addresses.retain(|address| !prefix.contains(*address));
        }
    }
    Ok(addresses)
}

/// The request that a message answers.
fn requested(transmit: &Transmit) -> Option<SeenRequest> {
    let TransmitPayload::Udp { bytes, .. } = &transmit.payload else { return None };
    let Ok(Message::Reply(reply)) = Message::parse(bytes) else { return None };
    let (home_address, identification_low) = (reply.home_address, reply.identification.low());
    Some(SeenRequest { home_address, identification_low })
}
