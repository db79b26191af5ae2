//! What the kernel tells of interfaces, addresses and routers, and what is done about it.

use careof_base::Instant;
use careof_lab::Route;
use careof_mobility::InterfaceId;
use careof_mobility::v6::Input;

use super::Ipv6Carrier;
use super::agent::Agent;
use super::care_of::AddressChange;
use super::routers::RouterChange;
use crate::carrier::Error;
use crate::carrier::interfaces::InterfaceChange;
use crate::carrier::network_news::NetworkNews;

impl Ipv6Carrier {
    /// Takes in what the kernel says about changes.
    pub(super) fn take_changes(&mut self, now: Instant) -> Result<(), Error> {
        let news = NetworkNews::read(&mut self.monitor, &mut self.host, &mut self.interfaces)?;
        self.overruns += news.overruns;
        for &(index, address) in &news.removed {
            self.at_home.address_removed(index, address, self.setup.home_address());
        }
        let (everything, others) = (news.lost_some(), news.addresses);
        if matches!(self.agent, Agent::Mobile(_)) {
            if news.links {
                self.questions.link_changed(now);
            } else if others || everything {
                self.questions.ask(now);
            }
        }
        let by_links = !news.interfaces.is_empty();
        self.apply_changes(now, news.interfaces)?;
        if everything {
            self.host.doubt_everything();
            self.read_network(now)?;
            self.look_for_failed_routers(now);
        } else if others || by_links {
            self.read_addresses(now);
        }
        let failed = news.failed_neighbours;
        if !failed.is_empty() {
            self.neighbours_failed(now, &failed);
        }
        if by_links || everything || others || !failed.is_empty() {
            self.host.settle();
        }
        Ok(())
    }

    pub(super) fn apply_changes(&mut self, now: Instant, changes: Vec<InterfaceChange>) -> Result<(), Error> {
        for change in changes {
            match change {
                InterfaceChange::Appeared(id) => self.appeared(id)?,
                InterfaceChange::Removed { name, index } => {
                    self.parameters.forget_interface(&name);
                    self.host.forget_interface(index);
                }
                InterfaceChange::Renamed { name, to, index } => {
                    self.host.wait_for_interface(index);
                    self.parameters.leave_interface(&name, &to);
                    self.host.leave_interface(index);
                }
                InterfaceChange::Up(interface) => self.link_came(now, interface),
                InterfaceChange::Down { id, index } => {
                    // One that flaps is where it was: what comes for the new address meanwhile is not to be lost.
                    self.drop_new_care_of(Some(id));
                    self.link_lost(now, id, index);
                }
                InterfaceChange::Flapped { id, index } => {
                    self.questions.flaps += 1;
                    self.link_lost(now, id, index);
                    self.link_came(now, id);
                }
            }
        }
        Ok(())
    }

    /// An interface that the agent uses exists.
    pub(super) fn appeared(&mut self, id: InterfaceId) -> Result<(), Error> {
        let Some(interface) = self.interfaces.get(id) else { return Ok(()) };
        let (name, index) = (interface.device.name.clone(), interface.index());
        if let Some(index) = index {
            self.host.wait_for_interface(index);
        }
        match self.agent {
            Agent::Home(_) => return self.home_link_appeared(id),
            Agent::AccessRouter(_) => {
                return self.parameters.set(&format!("ipv6/conf/{name}/proxy_ndp"), "1").map_err(Into::into);
            }
            Agent::Mobile(_) | Agent::Correspondent(_) => {}
        }
        // A link that carries nothing is no way to what is on it.
        self.parameters.set(&format!("ipv6/conf/{name}/ignore_routes_with_linkdown"), "1")?;
        self.prepare_ipv4_interface(id, &name)?;
        if self.setup.mobile().is_some_and(|setup| setup.optimistic_detection) {
            for parameter in ["optimistic_dad", "use_optimistic"] {
                self.parameters.set(&format!("ipv6/conf/{name}/{parameter}"), "1")?;
            }
        }
        Ok(())
    }

    pub(super) fn link_came(&mut self, now: Instant, interface: InterfaceId) {
        self.read_addresses(now);
        self.tell_agent(now, Input::LinkUp { interface });
        if matches!(self.agent, Agent::Mobile(_)) {
            self.solicitations.begin(now, interface);
            self.solicit(now);
        }
        self.fast_link(now, interface, true);
        self.take_early(now, interface);
        self.advertise_all(now);
    }

    pub(super) fn link_lost(&mut self, now: Instant, interface: InterfaceId, index: u32) {
        self.host.doubt_interface(index);
        self.routers.forget(interface);
        self.solicitations.end(interface);
        self.tell_agent(now, Input::LinkDown { interface });
        self.fast_link(now, interface, false);
        // Those that were formed there are of no use before a router is heard again.
        self.read_addresses(now);
    }

    /// Reads what there is of interfaces and addresses, and tells the agent what is news. What cannot be read is left as it was known, and
    /// read again soon.
    pub(super) fn read_network(&mut self, now: Instant) -> Result<(), Error> {
        self.reading.begin();
        let outcome = self.reading.check().and_then(|()| self.interfaces.read(self.host.netlink()));
        let changes = self.reading.note(now, outcome).unwrap_or_default();
        self.apply_changes(now, changes)?;
        self.read_addresses(now);
        Ok(())
    }

    pub(super) fn read_again(&mut self, now: Instant) -> Result<(), Error> {
        if self.reading.next_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        self.read_network(now)?;
        self.host.settle();
        Ok(())
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
        self.apply_changes(now, changes)?;
        self.host.settle();
        Ok(())
    }

    /// Mobile node: tells it which addresses it has.
    pub(super) fn read_addresses(&mut self, now: Instant) {
        let Some(home_address) = self.setup.home_address() else { return self.look_for_own_address(now) };
        let outcome = self.reading.check().and_then(|()| {
            let netlink = self.host.netlink();
            let addresses = netlink.assigned_addresses()?;
            let mut routes = netlink.routes(Route::MAIN_TABLE)?;
            routes.retain(Route::is_default);
            Ok((addresses, routes))
        });
        let Some((found, defaults)) = self.reading.note(now, outcome) else { return };
        self.defaults = defaults.into_iter().map(|route| Route { lifetime: None, ..route }).collect();
        let of_ours = |index: u32| {
            let mut named = self.interfaces.named().iter();
            named.find(|interface| interface.index() == Some(index)).map(|interface| interface.device.id)
        };
        let found: Vec<_> = found.into_iter().filter_map(|on| Some((of_ours(on.interface)?, on))).collect();
        let announced = self.fast.as_ref().and_then(|fast| fast.announced_there());
        let announced = announced.map(|there| (there.interface, there.address));
        for change in self.addresses.take_in(now, &found, home_address, &self.routers, announced) {
            let input = match change {
                AddressChange::Added(interface, address) => Input::AddressAdded { interface, address },
                AddressChange::Removed(interface, address) => Input::AddressRemoved { interface, address },
            };
            self.tell_agent(now, input);
            if let AddressChange::Added(interface, address) = change {
                self.fast_address(now, interface, address.address);
            }
        }
    }

    /// Mobile node: tells it what is new about routers. Addresses of their prefixes are told first, so that it finds everything when it
    /// looks. One that uses mobility anchor points is told of addresses last, by [`Self::take_advertisement`]: else it would register them
    /// with its home agent.
    pub(super) fn tell_routers(&mut self, now: Instant, changes: Vec<RouterChange>) {
        if changes.is_empty() {
            return;
        }
        self.read_addresses(now);
        for change in changes {
            self.tell_router(now, change);
        }
    }

    pub(super) fn tell_router(&mut self, now: Instant, change: RouterChange) {
        match change {
            RouterChange::Found { interface, router, prefixes } => {
                self.tell_agent(now, Input::RouterFound { interface, router, prefixes: &prefixes });
            }
            RouterChange::Lost { interface, router } => {
                self.tell_agent(now, Input::RouterLost { interface, router });
            }
        }
    }
}
