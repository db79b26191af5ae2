//! The addresses of an experiment as numbers.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network of the experiment: every link is one, and so is a home network without a link.
///
/// Over IPv4 it is 10.(s / 256).(s mod 256).0/24, over IPv6 2001:db8:0:s::/64 (the prefix for documentation, RFC 3849), unless the
/// scenario has another prefix for it: then its addresses over IPv4 are those of that network, and so are their locators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(pub u16);

impl Subnet {
    /// Prefix length of every subnet over IPv4.
    pub const PREFIX_LEN: u8 = 24;

    /// Host `host` of the subnet.
    #[must_use]
    pub const fn host(self, host: u8) -> Locator {
        Locator((self.0 as u32) << 8 | host as u32)
    }
}

/// An address by its network and its place there, whatever the IP version: what routes are looked up by.
///
/// The network's number is an index into the table of routes, so that a look-up is an array access, and a packet on its way has
/// four bytes to be read. Addresses proper are where people, agents and captures see them.
///
/// Every IPv4 address has a locator. An IPv6 address has one if it is of the experiment's plan ([`Plan`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator(u32);

/// Where care-of addresses of many mobile nodes begin: by the number of a station and that of a mobile node.
const CARE_OF: u32 = 0x1000_0000;
/// Where they end, before the groups.
const BEHIND_CARE_OF: u32 = 0xd000_0000;
/// 10.0.0.0.
const NET_10: u32 = 10 << 24;

impl Locator {
    /// Everybody on the link, over IPv6 (over IPv4 there are several such groups).
    pub const GROUP: Self = Self::of_ipv4(Ipv4Addr::new(224, 0, 0, 1));
    /// Somewhere that no route leads to.
    pub const NOWHERE: Self = Self::of_ipv4(Ipv4Addr::UNSPECIFIED);

    /// The network's number, for a look-up in a table; of an address outside the experiment, some number that is no network's.
    #[inline]
    #[must_use]
    pub const fn network(self) -> usize {
        (self.0 >> 8) as usize
    }

    /// The place in the network.
    #[must_use]
    pub const fn place(self) -> u8 {
        self.0 as u8
    }

    /// Place `host` in the same network.
    #[must_use]
    pub const fn beside(self, host: u8) -> Self {
        Self(self.0 & !0xff | host as u32)
    }

    /// The subnet, if it is one that is planned.
    #[must_use]
    pub const fn subnet(self) -> Option<Subnet> {
        if self.network() <= u16::MAX as usize { Some(Subnet(self.network() as u16)) } else { None }
    }

    /// The `n`th locator after this one.
    #[inline]
    #[must_use]
    pub const fn after(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// How many locators after `first` this one is; `None` before it.
    #[inline]
    #[must_use]
    pub const fn since(self, first: Self) -> Option<u32> {
        self.0.checked_sub(first.0)
    }

    /// Of many mobile nodes over IPv6: the care-of address of a mobile node at a station, each by its number.
    #[must_use]
    pub const fn care_of(station: u16, mobile: u16) -> Self {
        Self(CARE_OF + ((station as u32) << 16 | mobile as u32))
    }

    /// The station and the mobile node of a [care-of address](Self::care_of). Over IPv4, and where few move, others have such locators.
    #[inline]
    #[must_use]
    pub const fn station_and_mobile(self) -> Option<(u16, u16)> {
        match self.0 {
            CARE_OF..BEHIND_CARE_OF => {
                let number = self.0 - CARE_OF;
                Some(((number >> 16) as u16, number as u16))
            }
            _ => None,
        }
    }

    /// Of an IPv4 address.
    #[inline]
    #[must_use]
    pub const fn of_ipv4(address: Ipv4Addr) -> Self {
        Self(address.to_bits().wrapping_sub(NET_10))
    }

    /// The IPv4 address.
    #[inline]
    #[must_use]
    pub const fn to_ipv4(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.0.wrapping_add(NET_10))
    }

    /// Whether it stands for a multicast group or the limited broadcast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        let address = self.to_ipv4();
        address.is_multicast() || address.is_broadcast()
    }
}

impl From<Ipv4Addr> for Locator {
    fn from(address: Ipv4Addr) -> Self {
        Self::of_ipv4(address)
    }
}

/// Which addresses the locators of an experiment stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// IPv4 addresses.
    #[default]
    Ipv4,
    /// IPv6 addresses.
    Ipv6(Ipv6Plan),
}

/// The IPv6 addresses of an experiment: host `h` of network `s` is 2001:db8:0:s::h, unless it forms its address itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ipv6Plan {
    /// By network: whether host 2 there is a mobile node, which forms its address of its link-layer address (RFC 4291 appendix A).
    autoconfigured: Vec<bool>,
    /// The networks that have another prefix, each with it.
    prefixes: Vec<(Subnet, Ipv6Addr)>,
    /// The addresses that are not those of their places, in the order of these.
    given: Vec<(Locator, Ipv6Addr)>,
    /// Where many move: their home addresses and care-of addresses.
    cells: Option<Cells>,
    /// The networks that have only IPv4, where host `h` of network `s` has the address that it would have in an experiment over IPv4.
    ipv4_only: Vec<Subnet>,
    /// The networks in which a mobile node has the link-layer address that it has elsewhere: that of this locator.
    stations: Vec<(Subnet, Locator)>,
}

/// The addresses of many mobile nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The home network, as a locator in which the place of each mobile node is its number.
    pub home_network: Locator,
    /// The home address of the first.
    pub home_address: Locator,
    /// How many mobile nodes there are.
    pub mobile_nodes: usize,
    /// The network in the cell of the first station; those of the others follow.
    pub first_cell: Subnet,
    /// How many stations there are.
    pub stations: usize,
}

/// Bits of the number of a host in the home network of many mobile nodes.
const HOME_HOST_BITS: u32 = 22;

impl Cells {
    /// The address of a locator of theirs.
    fn address(&self, locator: Locator) -> Option<Ipv6Addr> {
        if locator.0 >> HOME_HOST_BITS == self.home_network.0 >> HOME_HOST_BITS {
            let network = u128::from(self.home_network.0 >> 8) << 64;
            return Some(Ipv6Addr::from_bits(
                DOCUMENTATION | network | u128::from(locator.0 - self.home_network.0),
            ));
        }
        let (station, mobile) = locator.station_and_mobile()?;
        let network = u128::from(self.first_cell.0 + station) << 64;
        let hardware = self.home_address.after(mobile.into());
        Some(Ipv6Addr::from_bits(DOCUMENTATION | network | u128::from(OF_HARDWARE | u64::from(hardware.0))))
    }

    /// The locator of an address of theirs.
    fn locate(&self, address: Ipv6Addr) -> Option<Locator> {
        let (network, identifier) = ((address.to_bits() >> 64) as u64, address.to_bits() as u64);
        let subnet = network.checked_sub((DOCUMENTATION >> 64) as u64)?;
        if subnet == u64::from(self.home_network.0 >> 8) {
            return u32::try_from(identifier)
                .ok()
                .filter(|n| n >> HOME_HOST_BITS == 0)
                .map(|n| self.home_network.after(n));
        }
        let station = subnet.checked_sub(self.first_cell.0.into()).filter(|n| *n < self.stations as u64)?;
        let mobile = self.mobile_with_hardware(identifier)?;
        Some(Locator::care_of(station as u16, mobile))
    }

    /// The mobile node whose link-layer address this interface identifier is formed of.
    fn mobile_with_hardware(&self, identifier: u64) -> Option<u16> {
        let hardware = Locator(u32::try_from(identifier.checked_sub(OF_HARDWARE)?).ok()?);
        let mobile = hardware.since(self.home_address)?;
        u16::try_from(mobile).ok().filter(|mobile| usize::from(*mobile) < self.mobile_nodes)
    }
}

/// 2001:db8::/48.
const DOCUMENTATION: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0000;
/// The interface identifier of the link-layer address 02:00:00:00:00:00.
const OF_HARDWARE: u64 = 0x0000_00ff_fe00_0000;
/// The place of the mobile node on its links.
const MOBILE: u8 = 2;

impl Ipv6Plan {
    /// A plan in which host 2 of the networks marked so forms its address itself, and some networks have a prefix of their own.
    #[must_use]
    pub const fn new(autoconfigured: Vec<bool>, prefixes: Vec<(Subnet, Ipv6Addr)>) -> Self {
        Self {
            autoconfigured,
            prefixes,
            given: Vec::new(),
            cells: None,
            ipv4_only: Vec::new(),
            stations: Vec::new(),
        }
    }

    /// The same, with many mobile nodes.
    #[must_use]
    pub const fn with_cells(mut self, cells: Cells) -> Self {
        self.cells = Some(cells);
        self
    }

    /// The number of the mobile node, one of many, that the packet of a station to this link-scope or care-of address is for.
    #[must_use]
    pub fn mobile_with_identifier(&self, address: Ipv6Addr) -> Option<usize> {
        let cells = self.cells?;
        cells.mobile_with_hardware(address.to_bits() as u64).map(usize::from)
    }

    /// The same, in which some places stand for addresses of the author's.
    #[must_use]
    pub fn with_addresses(mut self, mut given: Vec<(Locator, Ipv6Addr)>) -> Self {
        given.sort_unstable();
        self.given = given;
        self
    }

    /// The same, in which some networks have only IPv4. All others then have IPv4, too.
    #[must_use]
    pub fn with_ipv4_only(mut self, networks: Vec<Subnet>) -> Self {
        self.ipv4_only = networks;
        self
    }

    /// The same, in which the mobile nodes of some networks have one link-layer address in all of theirs, that of a locator.
    #[must_use]
    pub fn with_stations(mut self, stations: Vec<(Subnet, Locator)>) -> Self {
        self.stations = stations;
        self
    }

    /// The locator of which the link-layer address of an interface is formed: its own, but of mobile nodes that have one address on all
    /// their links.
    #[must_use]
    pub fn station(&self, locator: Locator) -> Locator {
        let same = self
            .stations
            .iter()
            .find(|(network, _)| locator.subnet() == Some(*network) && locator.place() == MOBILE);
        same.map_or(locator, |(_, station)| *station)
    }

    /// Whether IPv4 is spoken in the networks of the experiment, too.
    #[must_use]
    pub fn is_dual_stack(&self) -> bool {
        !self.ipv4_only.is_empty()
    }

    /// Whether a network has only IPv4.
    #[must_use]
    pub fn is_ipv4_only(&self, network: Subnet) -> bool {
        self.ipv4_only.contains(&network)
    }

    /// The prefix length of every network.
    pub const PREFIX_LEN: u8 = 64;

    /// The address of a locator, IPv4-mapped in a network that has only IPv4; unspecified if it is not of the experiment.
    #[must_use]
    pub fn address(&self, locator: Locator) -> Ipv6Addr {
        if self.is_dual_stack() && locator.subnet().is_some_and(|network| self.is_ipv4_only(network)) {
            return locator.to_ipv4().to_ipv6_mapped();
        }
        if let Ok(at) = self.given.binary_search_by_key(&locator, |(locator, _)| *locator) {
            return self.given[at].1;
        }
        if let Some(address) = self.cells.and_then(|cells| cells.address(locator)) {
            return address;
        }
        let Some(Subnet(subnet)) = locator.subnet() else { return Ipv6Addr::UNSPECIFIED };
        let forms_it = self.autoconfigured.get(usize::from(subnet)).copied().unwrap_or_default();
        let identifier = if forms_it && locator.place() == MOBILE {
            OF_HARDWARE | u64::from(self.station(locator).0)
        } else {
            locator.place().into()
        };
        let own = self.prefixes.iter().find(|(of, _)| of.0 == subnet);
        let network = own.map_or(DOCUMENTATION | u128::from(subnet) << 64, |(_, prefix)| prefix.to_bits());
        Ipv6Addr::from_bits(network | u128::from(identifier))
    }

    /// The locator of an address, IPv4-mapped or not: [`Locator::GROUP`] of multicast groups, [`Locator::NOWHERE`] of what is not of the
    /// experiment.
    #[must_use]
    pub fn locate(&self, address: Ipv6Addr) -> Locator {
        if address.is_multicast() {
            return Locator::GROUP;
        }
        if let Some(ipv4) = address.to_ipv4_mapped() {
            return if self.is_dual_stack() { Locator::of_ipv4(ipv4) } else { Locator::NOWHERE };
        }
        if let Some((locator, _)) = self.given.iter().find(|(_, given)| *given == address) {
            return *locator;
        }
        if let Some(locator) = self.cells.and_then(|cells| cells.locate(address)) {
            return locator;
        }
        let bits = address.to_bits();
        let network = bits & !u128::from(u64::MAX);
        let own = self.prefixes.iter().find(|(_, prefix)| prefix.to_bits() == network);
        let locator = own.map_or(Subnet((bits >> 64) as u16), |(subnet, _)| *subnet).host(bits as u8);
        if self.address(locator) == address { locator } else { Locator::NOWHERE }
    }

    /// The link-layer address of the interface with this locator.
    #[must_use]
    pub const fn link_layer_address(locator: Locator) -> [u8; 6] {
        let [_, a, b, c] = locator.0.to_be_bytes();
        [2, 0, 0, a, b, c]
    }
}

impl Plan {
    /// The address of a locator.
    #[must_use]
    pub fn address(&self, locator: Locator) -> IpAddr {
        match self {
            Self::Ipv4 => locator.to_ipv4().into(),
            Self::Ipv6(plan) => IpAddr::V6(plan.address(locator)).to_canonical(),
        }
    }

    /// [`Ipv6Plan::station`] of a locator; over IPv4 it is its own.
    #[must_use]
    pub fn station(&self, locator: Locator) -> Locator {
        match self {
            Self::Ipv4 => locator,
            Self::Ipv6(plan) => plan.station(locator),
        }
    }

    /// The address of a locator as agents have it for a care-of address: over IPv6 one of IPv4 is IPv4-mapped.
    #[must_use]
    pub fn care_of_address(&self, locator: Locator) -> IpAddr {
        match self {
            Self::Ipv4 => locator.to_ipv4().into(),
            Self::Ipv6(plan) => plan.address(locator).into(),
        }
    }

    /// The locator of an address; [`Locator::NOWHERE`] of one of a version that is not spoken.
    #[must_use]
    pub fn locate(&self, address: IpAddr) -> Locator {
        match (self, address) {
            (Self::Ipv4, IpAddr::V4(address)) => Locator::of_ipv4(address),
            (Self::Ipv6(plan), IpAddr::V6(address)) => plan.locate(address),
            (Self::Ipv6(plan), IpAddr::V4(address)) => plan.locate(address.to_ipv6_mapped()),
            (Self::Ipv4, IpAddr::V6(_)) => Locator::NOWHERE,
        }
    }

    /// Bytes of an IP header without options and extension headers.
    #[must_use]
    pub const fn header_len(&self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6(_) => 40,
        }
    }

    /// The prefix length of the networks that are links.
    #[must_use]
    pub const fn prefix_len(&self) -> u8 {
        match self {
            Self::Ipv4 => Subnet::PREFIX_LEN,
            Self::Ipv6(_) => Ipv6Plan::PREFIX_LEN,
        }
    }

    /// The prefix length of the network of an address.
    #[must_use]
    pub const fn prefix_len_of(&self, address: IpAddr) -> u8 {
        match address {
            IpAddr::V4(_) => Subnet::PREFIX_LEN,
            IpAddr::V6(_) => self.prefix_len(),
        }
    }

    /// The second address, of IPv4, of a locator in a network of IPv6, where all networks have IPv4 because some have nothing else.
    #[must_use]
    pub fn ipv4_beside(&self, locator: Locator) -> Option<Ipv4Addr> {
        match self {
            Self::Ipv6(plan) if plan.is_dual_stack() => Some(locator.to_ipv4()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_numbered_within_net_10_and_nowhere_else() {
        for subnet in [Subnet(0), Subnet(0x1234), Subnet(u16::MAX)] {
            let locator = subnet.host(7);
            assert_eq!((locator.subnet(), locator.network()), (Some(subnet), usize::from(subnet.0)));
            assert_eq!(locator.place(), 7);
        }
        assert_eq!(Subnet(0x1234).host(7).to_ipv4(), Ipv4Addr::new(10, 0x12, 0x34, 7));
        for address in ["0.0.0.0", "9.255.255.255", "11.0.0.0", "255.255.255.255"] {
            let locator = Locator::of_ipv4(address.parse().unwrap());
            assert_eq!(locator.subnet(), None);
            assert!(locator.network() > usize::from(u16::MAX));
            assert_eq!(locator.to_ipv4().to_string(), address);
        }
    }

    #[test]
    fn an_ipv6_address_and_its_locator_stand_for_each_other() {
        let plan =
            Ipv6Plan::new(vec![false, false, true], vec![(Subnet(3), "fd00:1:2:3::".parse().unwrap())]);
        let addresses = [
            (Subnet(1).host(1), "2001:db8:0:1::1"),
            (Subnet(1).host(2), "2001:db8:0:1::2"),
            (Subnet(2).host(1), "2001:db8:0:2::1"),
            (Subnet(2).host(2), "2001:db8:0:2:0:ff:fe00:202"),
            (Subnet(3).host(1), "fd00:1:2:3::1"),
            (Subnet(0x1234).host(9), "2001:db8:0:1234::9"),
        ];
        for (locator, address) in addresses {
            let address = address.parse().unwrap();
            assert_eq!((plan.address(locator), plan.locate(address)), (address, locator));
        }
        // What nobody has: a mobile node by a number, a host by its hardware, others' networks.
        for address in [
            "2001:db8:0:2::2",
            "2001:db8:0:3::1",
            "2001:db8:0:1:0:ff:fe00:102",
            "2001:db8:1:1::1",
            "fe80::1",
            "::",
            "::1",
        ] {
            assert_eq!(plan.locate(address.parse().unwrap()), Locator::NOWHERE, "{address}");
        }
        assert_eq!(plan.locate("ff02::1".parse().unwrap()), Locator::GROUP);
        assert!(Locator::GROUP.is_group() && !Locator::NOWHERE.is_group());
    }

    #[test]
    fn in_a_network_of_ipv4_addresses_are_of_ipv4_and_elsewhere_there_are_both() {
        let plain = Ipv6Plan::new(vec![false, false, true, true], Vec::new());
        let both = Plan::Ipv6(plain.clone().with_ipv4_only(vec![Subnet(3)]));
        let (router, mobile) = (Subnet(3).host(1), Subnet(3).host(2));
        for (locator, address) in [(router, "10.0.3.1"), (mobile, "10.0.3.2")] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!((both.address(locator), both.locate(address)), (address, locator));
            let IpAddr::V4(ipv4) = address else { panic!() };
            assert_eq!(both.locate(ipv4.to_ipv6_mapped().into()), locator);
            assert_eq!(both.prefix_len_of(address), 24);
        }
        let wired = Subnet(1).host(1);
        assert_eq!(both.address(wired), "2001:db8:0:1::1".parse::<IpAddr>().unwrap());
        assert_eq!(both.ipv4_beside(wired), Some([10, 0, 1, 1].into()));
        assert_eq!(both.locate("10.0.1.1".parse().unwrap()), wired);
        let plain = Plan::Ipv6(plain);
        assert_eq!(
            (plain.ipv4_beside(wired), plain.locate("10.0.1.1".parse().unwrap())),
            (None, Locator::NOWHERE)
        );
        assert_eq!(plain.address(mobile), "2001:db8:0:3:0:ff:fe00:302".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn of_many_mobile_nodes_every_address_and_its_locator_stand_for_each_other() {
        let home_network = Subnet(0xc000).host(0);
        let home_address = home_network.after(2);
        let cells =
            Cells { home_network, home_address, mobile_nodes: 70_000, first_cell: Subnet(5), stations: 3 };
        let plan = Ipv6Plan::new(Vec::new(), Vec::new()).with_cells(cells);
        let addresses = [
            (home_network.after(1), "2001:db8:0:c000::1"),
            (home_address, "2001:db8:0:c000::2"),
            (home_address.after(65_000), "2001:db8:0:c000::fdea"),
            (Subnet(5).host(1), "2001:db8:0:5::1"),
            (Locator::care_of(0, 0), "2001:db8:0:5:0:ff:fec0:2"),
            (Locator::care_of(2, 65_535), "2001:db8:0:7:0:ff:fec1:1"),
            (Subnet(1).host(2), "2001:db8:0:1::2"),
        ];
        for (locator, address) in addresses {
            let address = address.parse().unwrap();
            assert_eq!((plan.address(locator), plan.locate(address)), (address, locator));
        }
        // There is no fourth station, and nobody with that link-layer address.
        for address in ["2001:db8:0:8:0:ff:fec0:2", "2001:db8:0:5:0:ff:fec0:1"] {
            assert_eq!(plan.locate(address.parse().unwrap()), Locator::NOWHERE, "{address}");
        }
        assert_eq!(plan.mobile_with_identifier("fe80::ff:fec0:3".parse().unwrap()), Some(1));
        assert_eq!(Locator::care_of(2, 7).station_and_mobile(), Some((2, 7)));
        assert_eq!(home_address.station_and_mobile().or(Locator::GROUP.station_and_mobile()), None);
    }

    #[test]
    fn the_address_that_a_mobile_node_forms_is_that_of_its_hardware() {
        let locator = Subnet(0x0203).host(2);
        let plan = Ipv6Plan::new(vec![true; 0x204], Vec::new());
        let [a, b, c, d, e, f] = Ipv6Plan::link_layer_address(locator);
        let identifier = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        assert_eq!(plan.address(locator).to_bits() as u64, identifier);
    }
}
