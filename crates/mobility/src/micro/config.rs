//! What a router of a micro-mobility domain is configured with.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Allowance;
use careof_wire::micro::PathScheme;

use super::Ports;
use super::security::NetworkKey;
use crate::config_error::check_distinct;
use crate::packet_buffer::{Limits, WhenFull};
use crate::v4::Prefix;
use crate::{ConfigError, InterfaceId, WallClock};

/// What a router is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The root: Cellular IP's gateway, HAWAII's domain root router, M&M's border router. Its uplink leads out of the domain.
    Gateway,
    /// Between the gateway and the base stations.
    Inner,
    /// It has a cell. It may have routers below it, too.
    BaseStation,
}

/// A link towards base stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downlink {
    /// The interface.
    pub interface: InterfaceId,
    /// The addresses of all base stations that are reached over it, however far down.
    pub stations: Vec<Ipv4Addr>,
}

/// How much is kept for mobile nodes that are between two base stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Packets for one mobile node.
    pub packets: usize,
    /// Bytes for one mobile node.
    pub bytes: usize,
    /// Packets for all together.
    pub total_packets: usize,
    /// Bytes for all together.
    pub total_bytes: usize,
    /// How long a packet may wait; `None`: as long as the mobile node is waited for.
    pub age: Option<Duration>,
    /// What goes where there is no room.
    pub when_full: WhenFull,
}

impl Buffer {
    /// Nothing is kept.
    pub const NONE: Self = Self {
        packets: 0,
        bytes: 0,
        total_packets: 0,
        total_bytes: 0,
        age: None,
        when_full: WhenFull::DropOldest,
    };

    /// So many packets for one mobile node, whatever their length, and for as many mobile nodes as there are.
    #[must_use]
    pub const fn packets(packets: usize) -> Self {
        Self {
            packets,
            bytes: usize::MAX,
            total_packets: usize::MAX,
            total_bytes: usize::MAX,
            age: None,
            when_full: WhenFull::DropOldest,
        }
    }

    /// Whether nothing can be kept.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.packets == 0 || self.bytes == 0 || self.total_packets == 0 || self.total_bytes == 0
    }

    /// Kept packets go on all at once: the link they go to has a rate of its own.
    pub(super) const fn limits(&self) -> Limits {
        Limits {
            packets: self.packets,
            bytes: self.bytes,
            total_packets: self.total_packets,
            total_bytes: self.total_bytes,
            age: self.age,
            when_full: self.when_full,
            release_percent: None,
        }
    }
}

/// Which candidate access routers get packets before a handover, by what starts it (Bhaskara and Helmy, section II.C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// None do: the handover is reactive. The candidate access router set is empty.
    None,
    /// Source trigger: the announcement names the station that the mobile node goes to. The set has this one.
    Source,
    /// Path trigger: the announcement names those that it may go to; further ones are neighbours of the station, as they are listed, until
    /// there are so many in all.
    Path {
        /// The size of the set.
        candidates: usize,
    },
    /// No-path trigger: all neighbours of the station, whatever the announcement names.
    NoPath,
}

/// The building blocks of a handover: any combination is a protocol (Bhaskara and Helmy, section II; Bhaskara, Helmy and Gupta, VTC 2003).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Who gets packets before the handover.
    pub trigger: Trigger,
    /// How long before the mobile node leaves the announcement is made. Routers and hosts do not act on it: it is for whoever calls
    /// [`super::MobileHost::announce`].
    pub lead: Duration,
    /// What a candidate keeps until the mobile node comes, and the old station while it is gone ([`Blocks::forward`]).
    pub buffer: Buffer,
    /// How long the crossover router goes on sending to the old station too when the mobile node is at the new one. Zero: it does not.
    pub bicast: Duration,
    /// How long the old station, told that the mobile node is elsewhere, sends on what still comes for it; it also keeps what comes while
    /// nobody knows where the mobile node is. Zero: it drops both. Not together with `bicast`: packets would come twice over the same link.
    pub forward: Duration,
    /// How long a candidate is sent packets if the mobile node does not come.
    pub candidate_lifetime: Duration,
    /// How long a host route lasts that nobody renews.
    pub route_lifetime: Duration,
    /// How often the mobile node renews it.
    pub refresh_interval: Duration,
    /// How long the mobile node waits for a confirmation before it repeats its message.
    pub retransmit_interval: Duration,
}

impl Default for Blocks {
    /// Nothing but route repair: no trigger, no buffer, no bicast, no forwarding. The paper of the building blocks gives no timers. Routes
    /// are renewed as often and last as long as in Cellular IP, so that the two compare; the other two are our choice.
    fn default() -> Self {
        Self {
            trigger: Trigger::None,
            lead: Duration::ZERO,
            buffer: Buffer::NONE,
            bicast: Duration::ZERO,
            forward: Duration::ZERO,
            // Our choice: as long as a route lasts.
            candidate_lifetime: Duration::from_secs(9),
            // draft-ietf-mobileip-cellularip-00, section 3.1: route-timeout and route-update-time.
            route_lifetime: Duration::from_secs(9),
            refresh_interval: Duration::from_secs(3),
            // Our choice: far above a round trip inside a domain.
            retransmit_interval: Duration::from_secs(1),
        }
    }
}

/// How a Cellular IP host hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellularHandover {
    /// It sends a route-update packet from the new base station (draft-ietf-mobileip-cellularip section 2.3).
    Hard,
    /// It sends a semi-soft route-update packet to the new base station before it leaves the old one (section 4.1).
    SemiSoft {
        /// The delay device of the crossover router: how much later packets leave for the new base station than for the old one, until the
        /// host has moved. Zero: there is none.
        delay: Duration,
        /// How many packets the delay device holds for all hosts; a copy that finds it full is not made.
        packets: usize,
        /// How long before the mobile node leaves the semi-soft packet is sent. It is for whoever calls [`super::MobileHost::announce`].
        lead: Duration,
    },
}

/// Cellular IP (draft-ietf-mobileip-cellularip-00).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellularIp {
    /// How hosts hand over.
    pub handover: CellularHandover,
    /// Whether this router has a Paging Cache. Where there is none, packets for an idle host go to all neighbours below (section 3.6.3).
    pub paging_cache: bool,
    /// route-update-time: how often an active host that sends no packets sends a route-update packet.
    pub route_update_time: Duration,
    /// route-timeout: how long a Route Cache mapping lasts.
    pub route_timeout: Duration,
    /// paging-update-time: how often a host sends a paging-update packet.
    pub paging_update_time: Duration,
    /// paging-timeout: how long a Paging Cache mapping lasts.
    pub paging_timeout: Duration,
    /// active-state-timeout: how long after the last packet to it a host is still active.
    pub active_state_timeout: Duration,
}

impl Default for CellularIp {
    /// Hard handover, Paging Caches everywhere, and the typical values of section 3.1 for all five timers.
    fn default() -> Self {
        Self {
            handover: CellularHandover::Hard,
            paging_cache: true,
            route_update_time: Duration::from_secs(3),
            route_timeout: Duration::from_secs(9),
            paging_update_time: Duration::from_secs(180),
            paging_timeout: Duration::from_secs(540),
            active_state_timeout: Duration::from_secs(5),
        }
    }
}

/// HAWAII (draft-ietf-mobileip-hawaii; Ramjee et al., ICNP 1999).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hawaii {
    /// The order of updates after a handover. The mobile host names it in its message.
    pub scheme: PathScheme,
    /// What the old base station keeps while it has lost the mobile host (forwarding schemes).
    pub buffer: Buffer,
    /// How long MNF's crossover router sends to both at most, if the old base station's answer does not come.
    pub dual_cast: Duration,
    /// How often the mobile host, and each router towards the root, refreshes forwarding entries.
    pub refresh_interval: Duration,
    /// How long an entry lasts that nobody refreshes.
    pub entry_lifetime: Duration,
    /// How long the mobile host waits for a confirmation before it repeats its message.
    pub retransmit_interval: Duration,
}

impl Default for Hawaii {
    /// UNF without buffers. The draft says that entries are soft state and leaves all timers to the operator: these are our choice.
    fn default() -> Self {
        Self {
            scheme: PathScheme::UnicastNonForwarding,
            buffer: Buffer::NONE,
            // Longer than an answer takes through any domain.
            dual_cast: Duration::from_secs(1),
            // Two refreshes in a row may be lost.
            refresh_interval: Duration::from_secs(10),
            entry_lifetime: Duration::from_secs(30),
            // As in the building blocks.
            retransmit_interval: Duration::from_secs(1),
        }
    }
}

/// Which multicast group a mobile node has: algorithmic mapping (Helmy, Jaseemuddin and Bhaskara, section 3.2). The bits of its address
/// behind the domain's prefix are those of the group behind the groups' prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMapping {
    /// The groups: a multicast prefix that is no longer than the domain's.
    pub groups: Prefix,
}

impl GroupMapping {
    /// The group of `mobile`, an address of `domain`.
    #[must_use]
    pub fn group(&self, domain: Prefix, mobile: Ipv4Addr) -> Ipv4Addr {
        let host = mobile.to_bits() ^ domain.address().to_bits();
        Ipv4Addr::from_bits(self.groups.address().to_bits() | host)
    }

    /// The mobile node of `group`; `None`: it is the group of nobody.
    #[must_use]
    pub fn mobile(&self, domain: Prefix, group: Ipv4Addr) -> Option<Ipv4Addr> {
        let host = group.to_bits() ^ self.groups.address().to_bits();
        let mobile = Ipv4Addr::from_bits(domain.address().to_bits() | host);
        (domain.contains(mobile) && self.group(domain, mobile) == group).then_some(mobile)
    }
}

/// Multicast-based micro-mobility, M&M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastMobility {
    /// How addresses and groups belong together.
    pub mapping: GroupMapping,
    /// Which stations join before the handover.
    pub trigger: Trigger,
    /// How long before the mobile node leaves the announcement is made. It is for whoever calls [`super::MobileHost::announce`].
    pub lead: Duration,
    /// What a station that has joined keeps until the mobile node comes.
    pub buffer: Buffer,
    /// How long the old station stays joined when the mobile node has left its cell. If it leaves before the new one joins, the next join has
    /// to go up to the root instead of to the crossover router.
    pub leave_delay: Duration,
    /// How long a station that has joined waits for the mobile node.
    pub candidate_lifetime: Duration,
    /// How often routers join again (t_periodic, RFC 7761 section 4.11).
    pub join_interval: Duration,
    /// How long a join lasts (J/P_HoldTime).
    pub hold_time: Duration,
    /// How often the mobile node reports its membership.
    pub report_interval: Duration,
    /// How long the mobile node waits for a confirmation before it repeats its report.
    pub retransmit_interval: Duration,
}

impl MulticastMobility {
    /// No candidates, no buffer, no delay in leaving. The papers on M&M give no timers: those of joins are of the protocol that it takes
    /// them from, sparse-mode PIM; the others are our choice.
    #[must_use]
    pub const fn new(mapping: GroupMapping) -> Self {
        Self {
            mapping,
            trigger: Trigger::None,
            lead: Duration::ZERO,
            buffer: Buffer::NONE,
            leave_delay: Duration::ZERO,
            // Our choice: as in the building blocks.
            candidate_lifetime: Duration::from_secs(9),
            // RFC 7761, section 4.11: t_periodic and J/P_HoldTime, 3.5 times as long.
            join_interval: Duration::from_secs(60),
            hold_time: Duration::from_secs(210),
            // Our choice: as often as joins.
            report_interval: Duration::from_secs(60),
            // Our choice: as in the building blocks.
            retransmit_interval: Duration::from_secs(1),
        }
    }
}

/// The protocol of a domain. All its routers and hosts have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The building blocks.
    Blocks(Blocks),
    /// Cellular IP.
    CellularIp(CellularIp),
    /// HAWAII.
    Hawaii(Hawaii),
    /// M&M.
    Multicast(MulticastMobility),
}

impl Scheme {
    /// How long before a mobile node leaves [`super::MobileHost::announce`] is to be called; `None`: it need not be.
    #[must_use]
    pub fn lead(&self) -> Option<Duration> {
        match self {
            Self::Blocks(blocks) => (blocks.trigger != Trigger::None).then_some(blocks.lead),
            Self::Multicast(multicast) => (multicast.trigger != Trigger::None).then_some(multicast.lead),
            Self::CellularIp(CellularIp { handover: CellularHandover::SemiSoft { lead, .. }, .. }) => {
                Some(*lead)
            }
            Self::CellularIp(_) | Self::Hawaii(_) => None,
        }
    }

    fn check(&self, domain: Prefix) -> Result<(), ConfigError> {
        match self {
            Self::Blocks(blocks) => {
                if blocks.bicast > Duration::ZERO && blocks.forward > Duration::ZERO {
                    return Err(ConfigError::Incompatible("bicast", "forwarding from the old station"));
                }
                check_trigger(blocks.trigger)?;
                check_lifetime(blocks.route_lifetime, blocks.refresh_interval)
            }
            Self::CellularIp(cellular) => {
                check_lifetime(cellular.route_timeout, cellular.route_update_time)?;
                check_lifetime(cellular.paging_timeout, cellular.paging_update_time)
            }
            Self::Hawaii(hawaii) => check_lifetime(hawaii.entry_lifetime, hawaii.refresh_interval),
            Self::Multicast(multicast) => {
                check_trigger(multicast.trigger)?;
                let groups = multicast.mapping.groups;
                if !groups.address().is_multicast() || groups.length() < 4 {
                    return Err(ConfigError::Incompatible("the groups", "addresses that are no multicast"));
                }
                if groups.length() > domain.length() {
                    return Err(ConfigError::OutOfRange {
                        what: "the length of the groups' prefix",
                        found: u64::from(groups.length()),
                        low: 4,
                        high: u64::from(domain.length()),
                    });
                }
                check_lifetime(multicast.hold_time, multicast.join_interval)?;
                check_lifetime(multicast.hold_time, multicast.report_interval)
            }
        }
    }
}

fn check_trigger(trigger: Trigger) -> Result<(), ConfigError> {
    let most = careof_wire::micro::MicroMessage::MAX_ADDRESSES as u64;
    match trigger {
        Trigger::Path { candidates } if candidates == 0 || candidates as u64 > most => {
            let found = candidates as u64;
            Err(ConfigError::OutOfRange {
                what: "the candidates of a path trigger",
                found,
                low: 1,
                high: most,
            })
        }
        _ => Ok(()),
    }
}

/// What is renewed must outlive the time between renewals, and time must pass between them.
fn check_lifetime(lifetime: Duration, interval: Duration) -> Result<(), ConfigError> {
    if interval == Duration::ZERO || lifetime <= interval {
        return Err(ConfigError::OutOfRange {
            what: "the time between renewals, in ms",
            found: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            low: 1,
            high: u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).saturating_sub(1),
        });
    }
    Ok(())
}

/// What bounds a router's memory and work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterLimits {
    /// Mobile nodes with a host route, and as many in each other table about mobile nodes.
    pub mobiles: usize,
    /// Messages of one mobile node that its base station takes.
    pub messages: Allowance,
    /// How far a message's timestamp may be from this router's clock, either way.
    pub window: Duration,
}

impl Default for RouterLimits {
    /// 65,536 mobile nodes; 32 messages at once and one in 50 ms after that; 7 s, as RFC 5944 section 5.7.1 has it.
    fn default() -> Self {
        Self {
            mobiles: 65_536,
            messages: Allowance::new(32, Duration::from_millis(50)),
            window: Duration::from_secs(7),
        }
    }
}

/// A router of a domain.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// Its address; a base station is named by it.
    pub address: Ipv4Addr,
    /// What it is.
    pub role: Role,
    /// Towards the gateway; the gateway's own leads out of the domain, and need not be there.
    pub uplink: Option<InterfaceId>,
    /// Towards base stations.
    pub downlinks: Vec<Downlink>,
    /// The cell of a base station.
    pub cell: Option<InterfaceId>,
    /// Base stations: the stations whose cells are beside its own, the likeliest first: candidates for handovers.
    pub neighbors: Vec<Ipv4Addr>,
    /// The addresses of mobile nodes in this domain.
    pub domain: Prefix,
    /// What all routers of the domain share.
    pub key: NetworkKey,
    /// Its clock.
    pub clock: WallClock,
    /// What bounds its memory and work.
    pub limits: RouterLimits,
    /// The protocol.
    pub scheme: Scheme,
}

impl RouterConfig {
    /// A router without links.
    #[must_use]
    pub fn new(address: Ipv4Addr, role: Role, domain: Prefix, key: NetworkKey, scheme: Scheme) -> Self {
        Self {
            address,
            role,
            uplink: None,
            downlinks: Vec::new(),
            cell: None,
            neighbors: Vec::new(),
            domain,
            key,
            clock: WallClock::default(),
            limits: RouterLimits::default(),
            scheme,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let below = || self.downlinks.iter().map(|downlink| downlink.interface);
        let mut seen = BTreeSet::new();
        for interface in self.uplink.into_iter().chain(below()).chain(self.cell) {
            if interface.0 >= Ports::MAX {
                return Err(ConfigError::OutOfRange {
                    what: "the number of an interface",
                    found: u64::from(interface.0),
                    low: 0,
                    high: u64::from(Ports::MAX - 1),
                });
            }
            if !seen.insert(interface) {
                return Err(ConfigError::DuplicateInterface(interface));
            }
        }
        match (self.role, self.uplink, self.cell) {
            (Role::Gateway | Role::Inner, _, Some(_)) => {
                return Err(ConfigError::Incompatible("a cell", "a router that is no base station"));
            }
            (Role::Inner | Role::BaseStation, None, _) => return Err(ConfigError::Missing("uplink")),
            (Role::BaseStation, _, None) => return Err(ConfigError::Missing("cell of a base station")),
            _ => {}
        }
        let stations = || self.downlinks.iter().flat_map(|downlink| downlink.stations.iter().copied());
        let own = self.cell.map(|_| self.address);
        check_distinct("the base station", stations().chain(own))?;
        check_distinct("the neighbour", self.neighbors.iter().copied().chain(own))?;
        for address in stations().chain([self.address]) {
            if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
                return Err(ConfigError::NotUnicast { what: "the router", address: address.into() });
            }
            if self.domain.contains(address) {
                return Err(ConfigError::Incompatible("a router's address", "one of the mobile nodes'"));
            }
        }
        self.scheme.check(self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station() -> RouterConfig {
        let key = NetworkKey::new(*b"key").unwrap();
        let domain = Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 16);
        let scheme = Scheme::Blocks(Blocks::default());
        let mut config =
            RouterConfig::new(Ipv4Addr::new(10, 1, 0, 1), Role::BaseStation, domain, key, scheme);
        (config.uplink, config.cell) = (Some(InterfaceId(0)), Some(InterfaceId(1)));
        config
    }

    fn refused(change: impl FnOnce(&mut RouterConfig)) -> ConfigError {
        let mut config = station();
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config.check().unwrap_err()
    }

    fn downlink(interface: u16, station: u8) -> Downlink {
        let stations = alloc::vec![Ipv4Addr::new(10, 1, 0, station)];
        Downlink { interface: InterfaceId(interface), stations }
    }

    #[test]
    fn a_configuration_that_contradicts_itself_is_refused() {
        assert_eq!(refused(|config| config.cell = None), ConfigError::Missing("cell of a base station"));
        assert_eq!(refused(|config| config.uplink = None), ConfigError::Missing("uplink"));
        assert!(matches!(refused(|config| config.role = Role::Inner), ConfigError::Incompatible(..)));
        assert!(matches!(
            refused(|config| config.cell = Some(InterfaceId(64))),
            ConfigError::OutOfRange { found: 64, high: 63, .. }
        ));
        assert_eq!(
            refused(|config| config.downlinks.push(downlink(1, 7))),
            ConfigError::DuplicateInterface(InterfaceId(1))
        );
        assert!(matches!(
            refused(|config| config.downlinks.push(downlink(2, 1))),
            ConfigError::DuplicateAddress { .. }
        ));
        assert!(matches!(
            refused(|config| config.address = Ipv4Addr::new(10, 9, 0, 1)),
            ConfigError::Incompatible(..)
        ));
    }

    #[test]
    fn timers_that_cannot_hold_a_route_are_refused() {
        let blocks = |change: fn(&mut Blocks)| {
            let mut blocks = Blocks::default();
            change(&mut blocks);
            refused(|config| config.scheme = Scheme::Blocks(blocks))
        };
        assert!(matches!(
            blocks(|blocks| blocks.refresh_interval = blocks.route_lifetime),
            ConfigError::OutOfRange { found: 9000, high: 8999, .. }
        ));
        assert!(matches!(
            blocks(|blocks| blocks.refresh_interval = Duration::ZERO),
            ConfigError::OutOfRange { .. }
        ));
        let both = blocks(|blocks| {
            (blocks.bicast, blocks.forward) = (Duration::from_secs(1), Duration::from_secs(1));
        });
        assert!(matches!(both, ConfigError::Incompatible(..)));
        assert!(matches!(
            blocks(|blocks| blocks.trigger = Trigger::Path { candidates: 0 }),
            ConfigError::OutOfRange { .. }
        ));
    }

    #[test]
    fn a_mobile_node_and_its_group_are_found_from_each_other() {
        let domain = Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 16);
        let mapping = GroupMapping { groups: Prefix::new(Ipv4Addr::new(239, 7, 0, 0), 16) };
        let (mobile, group) = (Ipv4Addr::new(10, 9, 3, 4), Ipv4Addr::new(239, 7, 3, 4));
        assert_eq!(mapping.group(domain, mobile), group);
        assert_eq!(mapping.mobile(domain, group), Some(mobile));
        assert_eq!(mapping.mobile(domain, Ipv4Addr::new(239, 8, 3, 4)), None);
        let wide = GroupMapping { groups: Prefix::new(Ipv4Addr::new(239, 0, 0, 0), 8) };
        assert_eq!(wide.group(domain, mobile), Ipv4Addr::new(239, 0, 3, 4));
        assert_eq!(wide.mobile(domain, Ipv4Addr::new(239, 1, 3, 4)), None);
        let refuse = |groups| {
            let multicast = MulticastMobility::new(GroupMapping { groups });
            refused(|config| config.scheme = Scheme::Multicast(multicast))
        };
        let long = refuse(Prefix::new(Ipv4Addr::new(239, 0, 0, 0), 24));
        assert!(matches!(long, ConfigError::OutOfRange { found: 24, .. }));
        assert!(matches!(refuse(domain), ConfigError::Incompatible(..)));
    }
}
