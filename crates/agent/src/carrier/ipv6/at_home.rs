//! Mobile node: its home address on the home link (RFC 6275 section 11.5.5).
//!
//! The home address is on the tunnel device all the time. At home the interface has it, too, so that the kernel answers for it there; from
//! when the Binding Update that ends the bindings has left, and without Duplicate Address Detection, in which the home agent would be heard.

use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_lab::{AddressOptions, Effect};
use careof_mobility::InterfaceId;

use super::Ipv6Carrier;
use super::unsolicited::{Announcements, advertise};

/// Where the home address is used without a tunnel.
#[derive(Debug, Default)]
pub(super) struct AtHome {
    /// The link on which the node answers for its home address.
    link: Option<InterfaceId>,
    /// The interface that has been given the address, by its number in the kernel.
    assigned: Option<u32>,
    announcements: Announcements,
}

impl AtHome {
    pub(super) const fn link(&self) -> Option<InterfaceId> {
        self.link
    }

    /// The agent is to end.
    pub(super) const fn forget_link(&mut self) {
        self.link = None;
    }

    pub(super) fn announce(&mut self, now: Instant, address: Ipv6Addr) {
        self.announcements.begin(now, address);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.announcements.next_timeout()
    }

    /// An interface has lost an address, as when it is taken down.
    pub(super) fn address_removed(&mut self, index: u32, address: IpAddr, home_address: Option<Ipv6Addr>) {
        if self.assigned == Some(index) && home_address.map(IpAddr::V6) == Some(address) {
            self.assigned = None;
        }
    }
}

impl Ipv6Carrier {
    /// Mobile node: from now on it answers for its home address on a link, or no longer. Of a link-local address that belongs to it the
    /// kernel knows by itself.
    pub(super) fn answer(&mut self, interface: InterfaceId, address: Ipv6Addr, on: bool) {
        if self.setup.home_address() == Some(address) {
            self.at_home.link = on.then_some(interface);
            self.keep_ipv4_home_quiet(interface, !on);
        }
        if !on {
            self.at_home.announcements.cancel(address);
        }
    }

    fn home_link_of_mobile_node(&self) -> Option<u32> {
        let interface = self.interfaces.get(self.at_home.link?)?;
        interface.index().filter(|_| interface.is_up())
    }

    /// Takes the home address from an interface on whose link it is used no longer.
    pub(super) fn leave_home_link(&mut self) {
        let wanted = self.at_home.link.and_then(|id| self.interfaces.get(id)).and_then(|there| there.index());
        let (Some(index), Some(setup)) = (self.at_home.assigned, self.setup.mobile()) else { return };
        if wanted == Some(index) {
            return;
        }
        self.at_home.assigned = None;
        let (address, length) = (setup.config.home_address, setup.config.home_prefix.length());
        if self.host.netlink().remove_address(index, address.into(), length).is_err() {
            self.unsent += 1;
        }
    }

    /// Gives the interface on the home link the home address, unless it has it.
    pub(super) fn come_home(&mut self) {
        let (Some(index), Some(setup)) = (self.home_link_of_mobile_node(), self.setup.mobile()) else {
            return;
        };
        if self.at_home.assigned == Some(index) {
            return;
        }
        let (address, length) = (IpAddr::V6(setup.config.home_address), setup.config.home_prefix.length());
        let options =
            AddressOptions { skips_detection: true, without_route: true, ..AddressOptions::default() };
        let netlink = self.host.netlink();
        let mut outcome = netlink.add_address_as(options, index, address, length);
        if matches!(outcome, Ok(Effect::Unchanged)) && !has_usable(netlink, index, address) {
            // One that the interface has formed itself, against the home agent's word.
            outcome = netlink
                .remove_address(index, address, length)
                .and_then(|_| netlink.add_address_as(options, index, address, length));
        }
        if outcome.is_ok() {
            self.at_home.assigned = Some(index);
        }
    }

    /// Mobile node: tells its neighbours at home that it is there.
    pub(super) fn advertise_home_address(&mut self, now: Instant) {
        while let Some(address) = self.at_home.announcements.due(now) {
            let state = self.at_home.link.and_then(|id| self.interfaces.get(id)?.state.as_ref());
            if let (Some(state), Some(icmp)) = (state, &self.sockets.icmp)
                && !advertise(icmp, state.index, address, state.link_address)
            {
                self.unsent += 1;
            }
        }
    }
}

fn has_usable(netlink: &mut careof_lab::Netlink, index: u32, address: IpAddr) -> bool {
    let found = netlink.assigned_addresses().unwrap_or_default();
    found
        .iter()
        .any(|on| on.interface == index && on.address == address && on.is_usable() && !on.is_tentative)
}
