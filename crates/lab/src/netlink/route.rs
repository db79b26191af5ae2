//! Routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::Duration;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    self, RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;

use super::{Effect, Netlink, family};
use crate::congestion::CongestionControl;
use crate::error::Error;

/// What happens to packets that follow a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RouteKind {
    /// They go out by its interface.
    #[default]
    Unicast,
    /// They are this host's own.
    Local,
    /// They are for all on the link.
    Broadcast,
    /// They are dropped without a word.
    Blackhole,
    /// They are answered with "host unreachable".
    Unreachable,
    /// They are answered with "administratively prohibited".
    Prohibit,
    /// The look-up goes on with the next rule, as if the table ended here.
    Throw,
}

/// How far a destination is away (`rtm_scope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteScope {
    /// Behind a router.
    Universe,
    /// On the link.
    Link,
    /// This host itself.
    Host,
}

/// A route.
///
/// Begin with [`Route::to`] or [`Route::default_through`] and set what else it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads: an address of the prefix; bits behind the prefix are ignored.
    pub destination: IpAddr,
    /// Length of the prefix in bits; 0 is the default route.
    pub prefix_length: u8,
    /// The next hop; `None` on a point-to-point link, and for destinations on the link.
    pub via: Option<IpAddr>,
    /// Index of the interface that it leaves by; 0 for kinds that leave by none.
    pub interface: u32,
    /// The source address for packets that have none yet.
    pub source: Option<IpAddr>,
    /// Number of the routing table; `None` for the main one.
    pub table: Option<u32>,
    /// Preference among routes to the same prefix, the smallest first; `None` for the kernel's default.
    pub metric: Option<u32>,
    /// Takes `via` to be on the link although no address of the interface says so.
    pub on_link: bool,
    /// `None` for what follows from `kind` and `via`.
    pub scope: Option<RouteScope>,
    /// What happens to the packets.
    pub kind: RouteKind,
    /// Who made it (`rtm_protocol`), for telling one's own from others': [`Route::STATIC`] unless set.
    pub protocol: u8,
    /// Largest packet in bytes; `None` for the interface's MTU.
    pub mtu: Option<u32>,
    /// Congestion control of TCP connections that begin on it, at either end. Any that the kernel has may be named,
    /// also one that `net.ipv4.tcp_allowed_congestion_control` does not allow.
    pub congestion_control: Option<CongestionControl>,
    /// Congestion window, in segments, with which TCP connections on it begin.
    pub initial_window: Option<u32>,
    /// Least retransmission timeout of TCP connections on it, to the millisecond.
    pub rto_min: Option<Duration>,
    /// IPv6: for how long it stays, as its router has said; `None`: until it is removed. Read, and not part of what is added.
    pub lifetime: Option<Duration>,
}

impl Route {
    /// The table that is looked up when no rule says otherwise.
    pub const MAIN_TABLE: u32 = 254;
    /// `RTPROT_STATIC`: made by the administrator.
    pub const STATIC: u8 = 4;
    /// `RTPROT_RA`: made by the kernel, because a router advertised itself or a prefix (RFC 4861).
    pub const ADVERTISED: u8 = 9;

    /// A route to a prefix out of an interface, without a next hop.
    #[must_use]
    pub const fn to(destination: IpAddr, prefix_length: u8, interface: u32) -> Self {
        Self {
            destination,
            prefix_length,
            via: None,
            interface,
            source: None,
            table: None,
            metric: None,
            on_link: false,
            scope: None,
            kind: RouteKind::Unicast,
            protocol: Self::STATIC,
            mtu: None,
            congestion_control: None,
            initial_window: None,
            rto_min: None,
            lifetime: None,
        }
    }

    /// The default route of IPv4 or IPv6 through an interface without neighbours.
    #[must_use]
    pub const fn default_through(interface: u32, any: IpAddr) -> Self {
        Self::to(any, 0, interface)
    }

    /// Whether it is a default route.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.prefix_length == 0
    }

    /// Whether the kernel has made it because a router advertised itself, or a prefix.
    #[must_use]
    pub const fn is_advertised(&self) -> bool {
        self.protocol == Self::ADVERTISED
    }

    /// Itself, with what was left to the kernel filled in as the kernel reports it.
    fn resolved(mut self) -> Self {
        self.destination = network(self.destination, self.prefix_length);
        self.table = Some(self.table.unwrap_or(Self::MAIN_TABLE));
        // IPv6 has no metric of 0; what is not given is 1024 (IP6_RT_PRIO_USER).
        self.metric = self.metric.filter(|metric| *metric > 0).or(self.destination.is_ipv6().then_some(1024));
        self.scope = Some(self.scope.unwrap_or(self.implied_scope()));
        self.lifetime = None;
        self
    }

    fn implied_scope(&self) -> RouteScope {
        match self.kind {
            // IPv6 has no scopes of routes.
            _ if self.destination.is_ipv6() => RouteScope::Universe,
            RouteKind::Local => RouteScope::Host,
            RouteKind::Broadcast => RouteScope::Link,
            RouteKind::Unicast if self.via.is_none() => RouteScope::Link,
            _ => RouteScope::Universe,
        }
    }

    /// Whether the kernel takes `other` for another version of the same route.
    fn has_key_of(&self, other: &Self) -> bool {
        let key = |route: &Self| {
            let route = route.resolved();
            (route.destination, route.prefix_length, route.table, route.metric)
        };
        key(self) == key(other)
    }
}

/// A route in the kernel, as far as [`Route`] can express it.
struct Found {
    route: Route,
    /// Whether there is more to it, so that putting `route` in its place would lose something.
    has_more: bool,
}

impl Netlink {
    /// The routes of a table, IPv4 before IPv6. One with several next hops appears once for each.
    ///
    /// # Errors
    /// The kernel's answer. A table that nobody made is empty.
    pub fn routes(&mut self, table: u32) -> Result<Vec<Route>, Error> {
        let mut routes = self.found_routes(AddressFamily::Inet, table)?;
        routes.extend(self.found_routes(AddressFamily::Inet6, table)?);
        Ok(routes.into_iter().map(|found| found.route).collect())
    }

    fn found_routes(&mut self, family: AddressFamily, table: u32) -> Result<Vec<Found>, Error> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        message.attributes.push(RouteAttribute::Table(table));
        let found = self.dump(
            &RouteNetlinkMessage::GetRoute(message),
            "RTM_GETROUTE",
            |message, found| {
                if let RouteNetlinkMessage::NewRoute(message) = message {
                    found.extend(read(message).into_iter().filter(|of| of.route.table == Some(table)));
                }
            },
            || format!("list the routes of table {table}"),
        );
        match found {
            // No such table, or a kernel without this family.
            Err(Error::System { errno: Errno::ENOENT | Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT, .. }) => {
                Ok(Vec::new())
            }
            found => found,
        }
    }

    /// The MTU in bytes of the route that packets from `source` to `destination` follow: its own, or that of its interface.
    /// What ICMP errors have told of the path has no part in it.
    ///
    /// # Errors
    /// The kernel's answer: `ENETUNREACH` where there is no route. [`Error::Netlink`] for one by which nothing leaves.
    pub fn route_mtu(
        &mut self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        interface: Option<u32>,
    ) -> Result<u16, Error> {
        let doing = || format!("find the route to {destination}");
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = 32;
        // The route as it is written in its table, not the kernel's copy with what it has learnt.
        message.header.flags = RouteFlags::FibMatch;
        message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(destination)));
        if !source.is_unspecified() {
            message.header.source_prefix_length = 32;
            message.attributes.push(RouteAttribute::Source(RouteAddress::Inet(source)));
        }
        message.attributes.extend(interface.map(RouteAttribute::Oif));
        let found = match self.ask(RouteNetlinkMessage::GetRoute(message), 0, "RTM_GETROUTE", doing)? {
            Some(RouteNetlinkMessage::NewRoute(message)) => read(message),
            _ => Vec::new(),
        };
        let Some(Found { route, .. }) = found.into_iter().find(|found| found.route.interface != 0) else {
            return Err(Error::Netlink { doing: doing(), problem: "no route with an interface".to_owned() });
        };
        let link = self.interface(interface.unwrap_or(route.interface))?.mtu;
        let mtu = route.mtu.filter(|mtu| *mtu > 0).map_or(link, |mtu| mtu.min(link));
        Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Whether the kernel takes packets to `address` for this host's own. An IPv6 address that was added a moment ago is listed already when
    /// it does not yet: what comes for it in between is dropped.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn is_local(&mut self, address: Ipv6Addr) -> Result<bool, Error> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet6;
        message.header.destination_prefix_length = 128;
        message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet6(address)));
        let doing = || format!("find out whether {address} is local");
        match self.ask(RouteNetlinkMessage::GetRoute(message), 0, "RTM_GETROUTE", doing) {
            Ok(Some(RouteNetlinkMessage::NewRoute(message))) => Ok(message.header.kind == RouteType::Local),
            Ok(_) | Err(Error::System { errno: Errno::ENETUNREACH | Errno::EHOSTUNREACH, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Adds a route; [`Effect::Unchanged`] when this very route is there.
    ///
    /// # Errors
    /// `EEXIST` when there is another one to the same prefix with the same metric in its table, `ENETUNREACH`
    /// when the next hop cannot be reached, `ENETDOWN` when the interface is down.
    pub fn add_route(&mut self, route: &Route) -> Result<Effect, Error> {
        let added = self.new_route(route, NLM_F_CREATE | NLM_F_EXCL);
        let Err(Error::System { errno: Errno::EEXIST, .. }) = added else {
            return added.map(|()| Effect::Changed);
        };
        let present = self.same_key(route)?;
        if present.is_some_and(|found| !found.has_more && found.route.resolved() == route.resolved()) {
            return Ok(Effect::Unchanged);
        }
        added.map(|()| Effect::Changed)
    }

    /// Adds a route, in place of the one to the same prefix with the same metric if there is one. Returns that
    /// one, so that it can be put back; when it is the same as `route` nothing was changed.
    ///
    /// # Errors
    /// `ENETUNREACH` when the next hop cannot be reached, `ENETDOWN` when the interface is down; `EEXIST` when the
    /// present one could not be put back: one with several next hops, or with properties [`Route`] does not have.
    pub fn set_route(&mut self, route: &Route) -> Result<Option<Route>, Error> {
        let added = self.new_route(route, NLM_F_CREATE | NLM_F_EXCL);
        let Err(Error::System { errno: Errno::EEXIST, .. }) = added else {
            return added.map(|()| None);
        };
        match self.same_key(route)? {
            Some(Found { has_more: true, .. }) => added.map(|()| None),
            Some(Found { route: present, .. }) => {
                if present.resolved() != route.resolved() {
                    self.new_route(route, NLM_F_CREATE | NLM_F_REPLACE)?;
                }
                Ok(Some(present))
            }
            // Gone in between.
            None => self.new_route(route, NLM_F_CREATE | NLM_F_REPLACE).map(|()| None),
        }
    }

    /// Has a route be there, in place of whatever is to the same prefix with the same metric in its table. It is one request,
    /// however many routes the table has: for tables that nobody else uses, where nothing is to be put back.
    ///
    /// # Errors
    /// `ENETUNREACH` when the next hop cannot be reached, `ENETDOWN` when the interface is down.
    pub fn put_route(&mut self, route: &Route) -> Result<(), Error> {
        self.new_route(route, NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn new_route(&mut self, route: &Route, flags: u16) -> Result<(), Error> {
        self.tell(RouteNetlinkMessage::NewRoute(route_message(route)), flags, "RTM_NEWROUTE", || {
            format!("add the route to {}/{}", route.destination, route.prefix_length)
        })
    }

    fn same_key(&mut self, route: &Route) -> Result<Option<Found>, Error> {
        let table = route.table.unwrap_or(Route::MAIN_TABLE);
        let found = self.found_routes(family(route.destination), table)?;
        Ok(found.into_iter().find(|found| found.route.has_key_of(route)))
    }

    /// Removes a route; [`Effect::Unchanged`] when there is none.
    ///
    /// Interface, next hop, scope and protocol must be those of `route`; without a metric the kernel takes the
    /// first one that fits, whatever its metric. A protocol number of one's own avoids taking another's.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove_route(&mut self, route: &Route) -> Result<Effect, Error> {
        self.tell_unless(
            RouteNetlinkMessage::DelRoute(route_message(route)),
            0,
            "RTM_DELROUTE",
            // ENOENT for a table that nobody made, ENODEV for an interface that is gone.
            &[Errno::ESRCH, Errno::ENOENT, Errno::ENODEV],
            || format!("remove the route to {}/{}", route.destination, route.prefix_length),
        )
    }
}

fn route_message(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.destination);
    message.header.destination_prefix_length = route.prefix_length;
    message.header.protocol = RouteProtocol::from(route.protocol);
    message.header.scope = match route.scope.unwrap_or(route.implied_scope()) {
        RouteScope::Universe => route::RouteScope::Universe,
        RouteScope::Link => route::RouteScope::Link,
        RouteScope::Host => route::RouteScope::Host,
    };
    message.header.kind = match route.kind {
        RouteKind::Unicast => RouteType::Unicast,
        RouteKind::Local => RouteType::Local,
        RouteKind::Broadcast => RouteType::Broadcast,
        RouteKind::Blackhole => RouteType::BlackHole,
        RouteKind::Unreachable => RouteType::Unreachable,
        RouteKind::Prohibit => RouteType::Prohibit,
        RouteKind::Throw => RouteType::Throw,
    };
    if route.on_link {
        message.header.flags = RouteFlags::Onlink;
    }
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    let attributes = &mut message.attributes;
    if route.prefix_length > 0 {
        let network = network(route.destination, route.prefix_length);
        attributes.push(RouteAttribute::Destination(RouteAddress::from(network)));
    }
    if let Some(via) = route.via {
        attributes.push(RouteAttribute::Gateway(RouteAddress::from(via)));
    }
    if let Some(source) = route.source {
        attributes.push(RouteAttribute::PrefSource(RouteAddress::from(source)));
    }
    if let Some(table) = route.table {
        // The header has room for small numbers only; the attribute wins over it.
        message.header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        attributes.push(RouteAttribute::Table(table));
    }
    if let Some(metric) = route.metric {
        attributes.push(RouteAttribute::Priority(metric));
    }
    let metrics: Vec<RouteMetric> = [
        route.mtu.map(RouteMetric::Mtu),
        route.congestion_control.map(|control| RouteMetric::CcAlgo(control.as_str().to_owned())),
        route.initial_window.map(RouteMetric::InitCwnd),
        route.rto_min.map(|least| RouteMetric::RtoMin(u32::try_from(least.as_millis()).unwrap_or(u32::MAX))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(metrics));
    }
    if route.interface != 0 {
        attributes.push(RouteAttribute::Oif(route.interface));
    }
    message
}

/// The route of a message as a [`Route`].
pub(super) fn read_route(message: RouteMessage) -> Option<Route> {
    read(message).into_iter().next().map(|found| found.route)
}

/// What is in a message: nothing for a kind that is none of ours, several for several next hops.
fn read(message: RouteMessage) -> Vec<Found> {
    let header = message.header;
    let any = match header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        _ => return Vec::new(),
    };
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::Local => RouteKind::Local,
        RouteType::Broadcast => RouteKind::Broadcast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        RouteType::Prohibit => RouteKind::Prohibit,
        RouteType::Throw => RouteKind::Throw,
        _ => return Vec::new(),
    };
    // The cache's copies are no routes.
    if header.flags.contains(RouteFlags::Cloned) {
        return Vec::new();
    }
    let mut route = Route {
        table: Some(u32::from(header.table)),
        on_link: header.flags.contains(RouteFlags::Onlink),
        scope: Some(match header.scope {
            route::RouteScope::Host => RouteScope::Host,
            route::RouteScope::Link => RouteScope::Link,
            _ => RouteScope::Universe,
        }),
        kind,
        protocol: header.protocol.into(),
        ..Route::to(any, header.destination_prefix_length, 0)
    };
    let mut has_more = header.tos != 0 || header.source_prefix_length != 0;
    let mut next_hops = Vec::new();
    for attribute in message.attributes {
        match attribute {
            RouteAttribute::Destination(to) => route.destination = ip(&to).unwrap_or(any),
            RouteAttribute::Gateway(via) => route.via = ip(&via),
            RouteAttribute::PrefSource(source) => route.source = ip(&source),
            RouteAttribute::Oif(interface) => route.interface = interface,
            RouteAttribute::Table(table) => route.table = Some(table),
            RouteAttribute::Priority(metric) => route.metric = Some(metric),
            RouteAttribute::Metrics(metrics) => {
                for metric in metrics {
                    match metric {
                        RouteMetric::Mtu(mtu) => route.mtu = Some(mtu),
                        RouteMetric::CcAlgo(name) => {
                            route.congestion_control = CongestionControl::from_kernel(name.as_bytes());
                        }
                        RouteMetric::InitCwnd(segments) => route.initial_window = Some(segments),
                        RouteMetric::RtoMin(least) => {
                            route.rto_min = Some(Duration::from_millis(least.into()));
                        }
                        _ => has_more = true,
                    }
                }
            }
            RouteAttribute::MultiPath(hops) => {
                has_more = true;
                next_hops = hops;
            }
            RouteAttribute::CacheInfo(info) => {
                // In hundredths of a second (USER_HZ), signed: what has ended may still be there.
                let ticks = i64::from(info.expires.cast_signed()).max(0).unsigned_abs();
                route.lifetime = (info.expires != 0).then(|| Duration::from_millis(ticks * 10));
            }
            // About IPv6's routers; the same for all that is made by hand.
            RouteAttribute::Preference(_) => {}
            _ => has_more = true,
        }
    }
    if next_hops.is_empty() {
        return vec![Found { route, has_more }];
    }
    let hop = |hop: route::RouteNextHop| {
        let via = hop.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Gateway(via) => ip(via),
            _ => None,
        });
        Found { route: Route { via, interface: hop.interface_index, ..route }, has_more }
    };
    next_hops.into_iter().map(hop).collect()
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// `address` without the bits behind its prefix; the kernel refuses a route that has some.
pub(super) fn network(address: IpAddr, prefix_length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(prefix_length))).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(u32::from(prefix_length))).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{Emitable, Parseable};

    use super::*;

    #[test]
    fn a_network_has_no_bits_behind_its_prefix() {
        let cases = [
            ("10.1.2.3", 24, "10.1.2.0"),
            ("10.1.2.3", 32, "10.1.2.3"),
            ("10.1.2.3", 0, "0.0.0.0"),
            ("10.1.2.3", 200, "10.1.2.3"),
            ("fd00::1:2", 112, "fd00::1:0"),
            ("fd00::1", 0, "::"),
        ];
        for (address, length, expected) in cases {
            assert_eq!(network(address.parse().unwrap(), length), expected.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn a_route_reads_as_it_was_written() {
        let to = |destination: &str, length| Route::to(destination.parse().unwrap(), length, 3);
        let routes = [
            Route { via: Some("10.0.0.1".parse().unwrap()), table: Some(70_000), ..to("0.0.0.0", 0) },
            Route {
                source: Some("10.0.0.9".parse().unwrap()),
                metric: Some(7),
                mtu: Some(1300),
                congestion_control: CongestionControl::from_kernel(b"cubic"),
                initial_window: Some(2),
                rto_min: Some(Duration::from_secs(1)),
                protocol: 99,
                ..to("192.0.2.0", 24)
            },
            Route { kind: RouteKind::Throw, interface: 0, ..to("192.0.2.0", 24) },
            Route { via: Some("fe80::1".parse().unwrap()), on_link: true, ..to("2001:db8::", 32) },
        ];
        for route in routes {
            let message = route_message(&route);
            let mut bytes = vec![0; message.buffer_len()];
            message.emit(&mut bytes);
            let found = read(RouteMessage::parse(&bytes).unwrap());
            assert!(!found[0].has_more);
            assert_eq!(found[0].route.resolved(), route.resolved());
        }
    }
}
