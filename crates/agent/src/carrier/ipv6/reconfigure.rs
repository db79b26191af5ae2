//! Goes on with another configuration.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use careof_assist::Told;
use careof_base::Instant;
use careof_mobility::v6::{HomePrefix, Input};

use super::agent::Agent;
use super::assists::assistance;
use super::care_of::CareOfAddresses;
use super::{Error, Ipv6Carrier, Ipv6Setup, check, hooks};
use crate::carrier::Role;

impl Ipv6Carrier {
    /// See [`Carrier::reconfigure`](crate::Carrier::reconfigure).
    pub(in crate::carrier) fn reconfigure(&mut self, setup: Ipv6Setup) -> Result<(), Error> {
        check(&setup)?;
        if self.setup != setup && (self.setup.role() == Role::AccessRouter || self.fast.is_some()) {
            return Err(Error::NeedsRestart { what: "a configuration with fast handovers" });
        }
        self.check_same_foundations(&setup)?;
        if self.setup == setup {
            return Ok(());
        }
        let now = self.clock.now();
        let wall_clock = hooks::wall_clock(self.time_of_day.as_ref(), now);
        let assists = (setup.assist() != self.setup.assist()).then(|| assistance(&setup)).transpose()?;
        // Of its own: one that takes another's place must not draw the same again.
        let mut agent = Agent::new(now, &setup, wall_clock, self.random.branch())?;
        let homes: Vec<Ipv6Addr> = match &self.agent {
            Agent::Home(old) => old.bindings().map(|binding| binding.home_address).collect(),
            Agent::Correspondent(old) => old.bindings().map(|binding| binding.home_address).collect(),
            Agent::Mobile(_) | Agent::AccessRouter(_) => Vec::new(),
        };
        if let (Agent::Home(old), Agent::Home(new), Some(before)) =
            (&self.agent, &mut agent, self.setup.home_side())
        {
            let served = before.mobile_nodes.iter().map(|node| node.home_address);
            for record in served.filter_map(|home_address| old.record(now, home_address)) {
                new.restore(now, &record);
                self.persistence.note(record.home_address);
            }
        }
        self.agent = agent;
        let watched = self.watches_neighbours();
        self.setup = setup;
        if !watched {
            self.watch_neighbours()?;
        }
        if let Some(new) = assists {
            self.replace_assists(now, new);
        }
        self.host.is_unhurried = true;
        self.take_restored(now);
        for home_address in homes {
            self.binding_changed(now, home_address);
            self.proxy_no_longer_unless_bound(home_address);
            self.tell_paths(now, home_address, &Told::default());
        }
        self.ipv4_homes_may_have_moved(now);
        self.host.is_unhurried = false;
        if self.setup.role() == Role::Mobile {
            self.tell_surroundings(now);
        }
        self.finish_turn()
    }

    /// Mobile node: tells a new one of the links, addresses and routers that were there before it.
    fn tell_surroundings(&mut self, now: Instant) {
        self.addresses = CareOfAddresses::new(self.setup.takes_ipv4());
        let is_hierarchical = matches!(self.setup, Ipv6Setup::HierarchicalMobile(_));
        if !is_hierarchical {
            self.read_addresses(now);
        }
        let up = self.interfaces.named().iter().filter(|interface| interface.is_up());
        let up: Vec<_> = up.map(|interface| interface.device.id).collect();
        for interface in &up {
            self.tell_agent(now, Input::LinkUp { interface: *interface });
        }
        let known = self.routers.known();
        if !is_hierarchical {
            return self.tell_routers(now, known);
        }
        for change in known {
            self.tell_router(now, change);
        }
        for interface in up {
            self.tell_maps(now, interface);
        }
        self.read_addresses(now);
    }

    fn check_same_foundations(&self, setup: &Ipv6Setup) -> Result<(), Error> {
        let (from, to) = (self.setup.role(), setup.role());
        if from != to {
            return Err(Error::RoleChanged { from: from.name(), to: to.name() });
        }
        let same = |what, is_same: bool| if is_same { Ok(()) } else { Err(Error::NeedsRestart { what }) };
        same("the tunnel device, tables and priorities", self.setup.host() == setup.host())?;
        same("the interfaces", self.setup.devices() == setup.devices())?;
        if let (Some(old), Some(new)) = (self.setup.home_side(), setup.home_side()) {
            let prefixes = |all: &[HomePrefix]| all.iter().map(|home| home.prefix).collect::<Vec<_>>();
            same("the address", old.address == new.address)?;
            same("the IPv4 address", self.setup.ipv4_address() == setup.ipv4_address())?;
            let ipv4_homes = |setup: &Ipv6Setup| setup.ipv4_home_addresses().collect::<BTreeSet<_>>();
            same("the IPv4 home addresses", ipv4_homes(&self.setup) == ipv4_homes(setup))?;
            return same("the home network", prefixes(old.prefixes) == prefixes(new.prefixes));
        }
        if let (Ipv6Setup::Correspondent(old), Ipv6Setup::Correspondent(new)) = (&self.setup, setup) {
            return same("the address", old.config.address == new.config.address);
        }
        match (self.setup.mobile(), setup.mobile()) {
            (Some(old), Some(new)) => {
                same("the home address", old.config.home_address == new.config.home_address)?;
                same("`optimistic_detection`", old.optimistic_detection == new.optimistic_detection)?;
                let (before, now) = (old.config.home_agent_ipv4, new.config.home_agent_ipv4);
                same("the home agent's IPv4 address", before == now)?;
                let (before, now) = (old.config.ipv4_home_address, new.config.ipv4_home_address);
                same("the IPv4 home address", before == now)
            }
            _ => Ok(()),
        }
    }
}
