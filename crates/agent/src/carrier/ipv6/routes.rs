//! What the agents of Mobile IPv6 have in the kernel's routing.
//!
//! A mobile node: packets from a care-of address leave by the interface that has it; from the first registration to the end of the
//! service all others of this host, but for what is on a link or has a route of its own, go into the tunnel device and come from the
//! home address. A rule with a source is of no use for the latter: of IPv6, a packet whose source is still open follows none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_lab::{IpVersion, Route, RouteKind, Rule};
use careof_mobility::InterfaceId;
use careof_mobility::v6::Prefix;

use super::Ipv6MobileSetup;
use super::care_of::CareOfAddresses;
use super::fast_handover::Announced;
use super::routers::Routers;
use super::setup::HomeSide;
use crate::carrier::interfaces::Interfaces;
use crate::carrier::mobile_routes::Wishes;
use crate::carrier::{Error, HostOptions};

/// Tables of a mobile node, counted from its first one.
const HOME: u32 = 0;
const HOME_LINK: u32 = 1;
const FIRST_INTERFACE: u32 = 8;
const MOST_INTERFACES: usize = (HostOptions::TABLES - FIRST_INTERFACE) as usize;
/// Table of a home agent and a correspondent node: routes to home addresses.
const HOME_ADDRESSES: u32 = 0;
/// Priorities of rules, counted from the agent's first one.
const FROM_CARE_OF: u32 = 0;
const MARKED: u32 = 0;
const TO_HOME_ADDRESSES: u32 = 1;
const FROM_HERE_AT_HOME: u32 = 199;
const MAIN: u32 = 200;
const FROM_HERE: u32 = 201;

const ANY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Whether the kernel's tables can hold what a mobile node is configured with.
pub(super) fn check(setup: &Ipv6MobileSetup) -> Result<(), Error> {
    let (what, found, most) = ("interfaces", setup.devices.len(), MOST_INTERFACES);
    if found > most { Err(Error::TooMany { what, found, most }) } else { Ok(()) }
}

/// The rule for the main table, which is none of the agent's.
pub(super) fn main_rule(options: &HostOptions) -> Rule {
    Rule {
        suppress_prefix_length: Some(0),
        ..Rule::new_for(IpVersion::V6, options.first_priority + MAIN, Route::MAIN_TABLE)
    }
}

/// The same for IPv4.
pub(super) fn ipv4_main_rule(options: &HostOptions) -> Rule {
    Rule { version: IpVersion::V4, ..main_rule(options) }
}

/// The rule for packets of a correspondent node's own that are not to go into its tunnel device.
pub(super) fn marked_rule(options: &HostOptions) -> Rule {
    Rule {
        mark: Some(mark(options)),
        ..Rule::new_for(IpVersion::V6, options.first_priority + MARKED, Route::MAIN_TABLE)
    }
}

/// The rule for packets that an access router puts back: they go on by the main table, and not into the tunnel device again.
pub(super) fn from_device_rule(options: &HostOptions) -> Rule {
    Rule {
        input: Some(options.tunnel_device.clone()),
        ..Rule::new_for(IpVersion::V6, options.first_priority + MARKED, Route::MAIN_TABLE)
    }
}

/// The mark of these packets: no other agent's.
pub(super) const fn mark(options: &HostOptions) -> u32 {
    options.first_table
}

/// Has packets for home addresses looked up in the agent's table.
pub(super) fn home_addresses_rule(options: &HostOptions) -> Rule {
    let (priority, table) =
        (options.first_priority + TO_HOME_ADDRESSES, options.first_table + HOME_ADDRESSES);
    Rule::new_for(IpVersion::V6, priority, table)
}

/// Home agent: the same for IPv4 home addresses.
pub(super) fn ipv4_home_addresses_rule(options: &HostOptions) -> Rule {
    Rule { version: IpVersion::V4, ..home_addresses_rule(options) }
}

/// Home agent: packets to an IPv4 home address go into the tunnel device while it is bound, and else nowhere: back to the routers would
/// be in circles.
pub(super) fn of_ipv4_home_address(
    options: &HostOptions,
    address: Ipv4Addr,
    device: u32,
    is_bound: bool,
) -> Route {
    let table = Some(options.first_table + HOME_ADDRESSES);
    if is_bound {
        return Route {
            table,
            mtu: Some(options.tunnel_mtu.into()),
            ..Route::to(address.into(), 32, device)
        };
    }
    Route { table, kind: RouteKind::Unreachable, ..Route::to(address.into(), 32, 0) }
}

/// Home agent: what comes for its IPv4 address goes into the tunnel device.
pub(super) fn of_ipv4_address(options: &HostOptions, address: Ipv4Addr, device: u32) -> Route {
    Route { table: Some(options.first_table + HOME_ADDRESSES), ..Route::to(address.into(), 32, device) }
}

/// Home agent and correspondent node: packets to `home_address` go into the tunnel device, as long as its tunnel takes.
pub(super) fn into_device(options: &HostOptions, home_address: Ipv6Addr, device: u32) -> Route {
    Route {
        table: Some(options.first_table + HOME_ADDRESSES),
        mtu: Some(options.tunnel_mtu.into()),
        ..Route::to(home_address.into(), 128, device)
    }
}

/// Home agent: what comes for its own addresses goes into the tunnel device. Without a home link what comes for mobile nodes that are not
/// away goes nowhere: back to the routers would be in circles.
pub(super) fn of_home_agent(side: &HomeSide<'_>, own: &[Ipv6Addr], device: u32) -> Vec<Route> {
    let table = Some(side.host.first_table + HOME_ADDRESSES);
    let prefixes = side.prefixes.iter().map(|home| home.prefix);
    let prefixes = prefixes.filter(|_| side.home_link.is_none());
    let nowhere = prefixes.map(|prefix| Route {
        table,
        kind: RouteKind::Unreachable,
        ..Route::to(prefix.address().into(), prefix.length(), 0)
    });
    let own = own.iter().map(|address| Route { table, ..Route::to((*address).into(), 128, device) });
    nowhere.chain(own).collect()
}

/// Home agent on a link: mobile nodes that are at home, and their neighbours.
pub(super) fn onto_home_link(side: &HomeSide<'_>, index: u32) -> Vec<Route> {
    let prefixes = side.prefixes.iter().map(|home| home.prefix);
    let table = Some(side.host.first_table + HOME_ADDRESSES);
    prefixes
        .map(|prefix| Route { table, ..Route::to(prefix.address().into(), prefix.length(), index) })
        .collect()
}

/// How a mobile node reaches the world by each of its links, and whether applications use its home address.
pub(super) struct MobileRouting<'a> {
    pub(super) setup: &'a Ipv6MobileSetup,
    pub(super) interfaces: &'a Interfaces,
    pub(super) addresses: &'a CareOfAddresses,
    pub(super) routers: &'a Routers,
    /// Default routes that the kernel has, for links whose router does not advertise itself.
    pub(super) defaults: &'a [Route],
    pub(super) device: u32,
    pub(super) in_service: bool,
    /// The link on which it uses its home address by itself.
    pub(super) at_home: Option<InterfaceId>,
    /// The IPv4 home address, while it is bound.
    pub(super) ipv4_home: Option<Ipv4Addr>,
    /// The link that the node has just come to by a fast handover: its router may not have been heard yet.
    pub(super) announced: Option<Announced>,
}

impl MobileRouting<'_> {
    pub(super) fn wishes(&self) -> Wishes {
        let options = &self.setup.host;
        let mut wishes = Wishes::default();
        for (number, interface) in (0_u32..).zip(self.interfaces.named()) {
            let id = interface.device.id;
            let Some(index) = interface.index().filter(|_| interface.is_up()) else { continue };
            let table = options.first_table + FIRST_INTERFACE + number;
            self.ipv4_link(&mut wishes, (id, index), (options.first_priority + FROM_CARE_OF + number, table));
            let Some(first) = self.addresses.of(id).next() else { continue };
            for address in self.addresses.of(id) {
                wishes.rules.push(Rule {
                    from: Some((address.into(), 128)),
                    ..Rule::new_for(IpVersion::V6, options.first_priority + FROM_CARE_OF + number, table)
                });
            }
            wishes.routes.extend(self.onto_link(id, index, table));
            let via = self.first_hop(id, index, first);
            let announced = self.announced.filter(|there| there.interface == id && via.is_none());
            let (via, on_link) = match announced {
                Some(there) => (Some(IpAddr::V6(there.router)), true),
                None => (via, false),
            };
            let default = Route::default_through(index, ANY);
            wishes.routes.push(Route { table: Some(table), via, on_link, ..default });
        }
        if let Some(source) = self.ipv4_home.filter(|_| self.in_service) {
            let table = options.first_table + HOME;
            wishes.rules.push(ipv4_main_rule(options));
            wishes.rules.push(Rule {
                input: Some("lo".to_owned()),
                ..Rule::new_for(IpVersion::V4, options.first_priority + FROM_HERE, table)
            });
            wishes.routes.push(Route {
                table: Some(table),
                source: Some(source.into()),
                mtu: Some(options.tunnel_mtu.into()),
                ..Route::default_through(self.device, ANY_IPV4)
            });
        }
        if self.in_service {
            let table = options.first_table + HOME;
            wishes.rules.push(main_rule(options));
            wishes.rules.push(Rule {
                input: Some("lo".to_owned()),
                ..Rule::new_for(IpVersion::V6, options.first_priority + FROM_HERE, table)
            });
            let source = Some(self.setup.config.home_address.into());
            let home_link = self.at_home.and_then(|id| Some((id, self.interfaces.get(id)?.index()?)));
            if let Some((id, index)) = home_link {
                let on_link = options.first_table + HOME_LINK;
                wishes.rules.push(Rule {
                    input: Some("lo".to_owned()),
                    ..Rule::new_for(IpVersion::V6, options.first_priority + FROM_HERE_AT_HOME, on_link)
                });
                let routes = self.onto_link(id, index, on_link);
                wishes.routes.extend(routes.into_iter().map(|route| Route { source, ..route }));
                let via = self.first_hop(id, index, self.setup.config.home_address);
                let everywhere = Route::default_through(index, ANY);
                wishes.routes.push(Route { table: Some(table), via, source, ..everywhere });
            } else {
                wishes.routes.push(Route {
                    table: Some(table),
                    source,
                    mtu: Some(options.tunnel_mtu.into()),
                    ..Route::default_through(self.device, ANY)
                });
            }
        }
        wishes
    }

    /// The routes and rules of a link's addresses of IPv4.
    fn ipv4_link(&self, wishes: &mut Wishes, (id, index): (InterfaceId, u32), (priority, table): (u32, u32)) {
        let mut is_first = true;
        for (address, length) in self.addresses.ipv4_of(id) {
            wishes.rules.push(Rule {
                from: Some((address.into(), 32)),
                ..Rule::new_for(IpVersion::V4, priority, table)
            });
            let source = Some(IpAddr::V4(address));
            let network =
                address.to_bits() & u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            if length > 0 && length < 32 {
                let network = IpAddr::V4(Ipv4Addr::from_bits(network));
                wishes.routes.push(Route { table: Some(table), source, ..Route::to(network, length, index) });
            }
            if !std::mem::take(&mut is_first) {
                continue;
            }
            let by_it = self.defaults.iter().filter(|route| route.interface == index);
            let by_it = by_it.filter(|route| route.destination.is_ipv4());
            let via = by_it.min_by_key(|route| route.metric).and_then(|route| route.via);
            wishes.routes.push(Route {
                table: Some(table),
                source,
                via,
                on_link: via.is_some(),
                ..Route::default_through(index, ANY_IPV4)
            });
        }
    }

    /// Routes to what is on a link.
    fn onto_link(&self, id: InterfaceId, index: u32, table: u32) -> Vec<Route> {
        let mut on_link: Vec<Prefix> = self.routers.prefixes(id).collect();
        on_link.sort_unstable();
        on_link.dedup();
        let route = |prefix: &Prefix| Route {
            table: Some(table),
            ..Route::to(prefix.address().into(), prefix.length(), index)
        };
        on_link.iter().map(route).collect()
    }

    /// The router for what is sent from `address`.
    fn first_hop(&self, id: InterfaceId, index: u32, address: Ipv6Addr) -> Option<IpAddr> {
        let configured = || {
            let by_it = self.defaults.iter().filter(|route| route.interface == index);
            let by_it = by_it.filter(|route| route.destination.is_ipv6());
            by_it.min_by_key(|route| route.metric).and_then(|route| route.via)
        };
        self.routers.first_hop(id, address).map(IpAddr::V6).or_else(configured)
    }
}
