//! How a mobile node's packets find their way: its policy table and care-of addresses in terms of the kernel's.
//!
//! From the first registration to the end of the service the rules are, by priority:
//!
//! 1. from a care-of address: that interface's own table. The node's messages, the outside of its tunnels, and what
//!    applications bound to that address themselves.
//! 2. the main table without its default routes: what is on a link, or what somebody has set a route for.
//! 3. for each entry of the policy table, the best match first, and for its default: the table of the entry's
//!    method. Only packets from the home address, and those whose source is still open, take part in it: the
//!    route chosen gives them the source that goes with the method. An entry for regular IP leaves what comes
//!    from the home address to the method by which that can travel.
//!
//! A handover replaces the default routes of the methods' tables, one request each. While there is no way to send
//! they lead into the tunnel device, where packets are dropped and counted: TCP sends them again, instead of telling
//! the application.

use std::net::{IpAddr, Ipv4Addr};

use careof_lab::{Route, Rule};
use careof_mobility::v4::{Delivery, DeliveryMethod, MobileNode, Prefix};

use super::interfaces::Interfaces;
use super::{Error, HostOptions, MobileSetup};

/// Tables, counted from the agent's first one.
const REGULAR: u32 = 0;
const TRIANGLE: u32 = 1;
const REVERSE: u32 = 2;
/// What comes from the home address although the policy table says regular IP.
const BOUND: u32 = 3;
const FIRST_INTERFACE: u32 = 8;
/// Interfaces that can have a table of their own.
pub(super) const MOST_INTERFACES: usize = (HostOptions::TABLES - FIRST_INTERFACE) as usize;

/// Priorities, counted from the agent's first one.
const FROM_CARE_OF: u32 = 0;
const MAIN: u32 = 200;
const POLICY: u32 = 201;
/// Entries of a policy table: two rules each.
pub(super) const MOST_ENTRIES: usize = ((HostOptions::PRIORITIES - POLICY) / 2 - 1) as usize;

const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// What is to be in the kernel's routing for a mobile node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) routes: Vec<Route>,
    pub(super) rules: Vec<Rule>,
}

/// Whether the kernel's tables can hold what a mobile node is configured with.
pub(super) fn check(setup: &MobileSetup) -> Result<(), Error> {
    let within = |what, found, most| {
        if found > most { Err(Error::TooMany { what, found, most }) } else { Ok(()) }
    };
    within("interfaces", setup.devices.len(), MOST_INTERFACES)?;
    within("entries of the policy table", setup.config.policy.entries().len(), MOST_ENTRIES)
}

/// The only rule for a table that is not the agent's.
pub(super) fn main_rule(options: &HostOptions) -> Rule {
    Rule { suppress_prefix_length: Some(0), ..Rule::new(options.first_priority + MAIN, Route::MAIN_TABLE) }
}

struct Writer<'a> {
    node: &'a MobileNode,
    setup: &'a MobileSetup,
    interfaces: &'a Interfaces,
    /// The tunnel device.
    tunnel: u32,
    wishes: Wishes,
}

/// What is to be in the kernel's routing now. `in_service` is false before the first registration and after the
/// service ended: then the host is one like any other.
pub(super) fn wishes(
    node: &MobileNode,
    setup: &MobileSetup,
    interfaces: &Interfaces,
    tunnel: u32,
    in_service: bool,
) -> Wishes {
    let mut writer = Writer { node, setup, interfaces, tunnel, wishes: Wishes::default() };
    writer.care_of_addresses();
    if in_service {
        writer.policy();
    }
    writer.wishes
}

impl Writer<'_> {
    const fn table(&self, number: u32) -> u32 {
        self.setup.host.first_table + number
    }

    fn rule(&mut self, priority: u32, table: u32) -> &mut Rule {
        self.wishes.rules.push(Rule::new(self.setup.host.first_priority + priority, table));
        let last = self.wishes.rules.len() - 1;
        &mut self.wishes.rules[last]
    }

    fn route(
        &mut self,
        table: u32,
        to: (Ipv4Addr, u8),
        interface: u32,
        source: Option<Ipv4Addr>,
    ) -> &mut Route {
        self.wishes.routes.push(Route {
            table: Some(table),
            source: source.map(IpAddr::V4),
            ..Route::to(IpAddr::V4(to.0), to.1, interface)
        });
        let last = self.wishes.routes.len() - 1;
        &mut self.wishes.routes[last]
    }

    /// A table for each interface that has an address.
    fn care_of_addresses(&mut self) {
        let interfaces = self.interfaces;
        for (number, interface) in (0u32..).zip(interfaces.named()) {
            let (Some(own), Some(index)) = (interface.address, interface.index()) else { continue };
            if own.address == self.setup.config.home_address || !interface.is_up() {
                continue;
            }
            let table = self.table(FIRST_INTERFACE + number);
            let source = Some(own.address);
            if own.prefix_length < 32 && own.prefix_length > 0 {
                let network = Prefix::new(own.address, own.prefix_length);
                self.route(table, (network.address(), network.length()), index, source);
            }
            let default = self.route(table, (ANY, 0), index, source);
            default.via = own.gateway.map(IpAddr::V4);
            default.on_link = own.gateway.is_some();
            self.rule(FROM_CARE_OF + number, table).from = Some((own.address.into(), 32));
        }
    }

    fn policy(&mut self) {
        self.wishes.rules.push(main_rule(&self.setup.host));
        let policy = self.node.policy();
        let entries = policy.entries().iter().map(|entry| (entry.destination, entry.port, entry.method));
        let default = (Prefix::ALL, None, policy.default_method());
        for (number, (destination, port, method)) in (0u32..).zip(entries.chain([default])) {
            let (of_unbound, of_home) = match method {
                DeliveryMethod::RegularIp => (REGULAR, BOUND),
                DeliveryMethod::Triangle => (TRIANGLE, TRIANGLE),
                DeliveryMethod::ReverseTunnel => (REVERSE, REVERSE),
            };
            let home_address = self.setup.config.home_address;
            for (half, from, table) in [(0, ANY, of_unbound), (1, home_address, of_home)] {
                let table = self.table(table);
                let rule = self.rule(POLICY + 2 * number + half, table);
                rule.from = Some((from.into(), 32));
                rule.to =
                    (destination.length() > 0).then(|| (destination.address().into(), destination.length()));
                rule.destination_port = port.map(|port| (port, port));
            }
        }
        let by = |method| self.node.delivery_by(method, ANY);
        let regular = by(DeliveryMethod::RegularIp);
        let (triangle, reverse) = (by(DeliveryMethod::Triangle), by(DeliveryMethod::ReverseTunnel));
        // Where reverse tunnelling was granted there is a reason for it, and the tunnel is the safe way.
        let bound = reverse.filter(|delivery| delivery.tunnel.is_some()).or(triangle);
        if let Some(delivery) = regular {
            self.method(REGULAR, Some(delivery));
        }
        self.method(TRIANGLE, triangle);
        self.method(REVERSE, reverse);
        self.method(BOUND, bound);
    }

    /// The routes of one method's table.
    fn method(&mut self, table: u32, delivery: Option<Delivery>) {
        let table = self.table(table);
        let home_address = self.setup.config.home_address;
        let by_link = delivery.filter(|delivery| delivery.tunnel.is_none());
        // Several paths take more of a packet than the header of RFC 2003.
        let more = self.setup.config.multipath.map_or(0, |_| self.setup.multipath.overhead() - 20);
        let link = by_link.and_then(|delivery| Some((delivery, self.interfaces.get(delivery.interface)?)));
        let Some((delivery, interface, index)) = link.and_then(|(d, i)| Some((d, i, i.index()?))) else {
            let mtu = delivery.and_then(|delivery| {
                let link = self.interfaces.get(delivery.interface)?.state.as_ref()?;
                let mtu = self.node.mtu_beside_tunnel(&delivery, u16::try_from(link.mtu).unwrap_or(u16::MAX));
                mtu.map(|mtu| u32::from(mtu.saturating_sub(more)))
            });
            let tunnel = self.tunnel;
            let most = u32::from(self.setup.host.tunnel_mtu.saturating_sub(more));
            let leave_room = self.setup.host.leave_room;
            let mtu = mtu.filter(|&mtu| leave_room && mtu < most);
            self.route(table, (ANY, 0), tunnel, Some(home_address)).mtu = mtu;
            return;
        };
        let at_home = self.node.is_at_home();
        // A TCP that is told so does not fill up the tunnel by which its answers come.
        let link_mtu = interface.state.as_ref().map_or(u32::MAX, |state| state.mtu);
        let beside = self.node.mtu_beside_tunnel(&delivery, u16::try_from(link_mtu).unwrap_or(u16::MAX));
        let beside = beside.filter(|_| self.setup.host.leave_room);
        let mtu = beside.map(|mtu| u32::from(mtu.min(self.setup.host.tunnel_mtu).saturating_sub(more)));
        let no_address = interface.address.is_none();
        if at_home && no_address {
            let network = self.setup.config.home_network;
            self.route(table, (network.address(), network.length()), index, Some(delivery.source));
        }
        let route = self.route(table, (ANY, 0), index, Some(delivery.source));
        route.via = delivery.via.map(IpAddr::V4);
        route.on_link = delivery.via.is_some();
        route.mtu = mtu.filter(|&mtu| mtu >= 68);
    }
}
