//! What a mobile node is configured with.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::mip4::Lifetime;

use crate::config_error::check_distinct;
use crate::v4::home_agent::PeerSecurity;
use crate::v4::unicast::check_unicast;
use crate::v4::{
    ConfigError, EncapsulationChoice, InterfaceAddress, InterfaceId, MovementConfig, PathProperties,
    PolicyTable, Prefix, ReplayProtection, SecurityAssociation, Selection, SolicitorConfig, WallClock,
};

/// Which kind of care-of address an interface uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CareOfChoice {
    /// The interface's own address only.
    #[default]
    CoLocated,
    /// A foreign agent's only.
    ForeignAgent,
    /// The interface's own address if it has one, else a foreign agent's.
    PreferCoLocated,
    /// A foreign agent's if one is heard, else the interface's own.
    PreferForeignAgent,
}

impl CareOfChoice {
    pub(super) const fn allows_foreign_agent(self) -> bool {
        !matches!(self, Self::CoLocated)
    }

    pub(super) const fn allows_co_located(self) -> bool {
        !matches!(self, Self::ForeignAgent)
    }
}

/// How a mobile node that uses all its interfaces at once tells its home agent which of its paths a care-of address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MultipathForm {
    /// As SHAKE has it: simultaneous bindings, with a reserved bit for those of relays, and the number in a vendor extension.
    #[default]
    Shake,
    /// The Multipath extension of RFC 7629.
    Rfc7629,
}

/// An interface of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its number.
    pub id: InterfaceId,
    /// Which kind of care-of address it uses.
    pub care_of: CareOfChoice,
    /// The higher, the better, under [`Selection::Preferred`].
    pub preference: u8,
    /// Whether its use costs something: under [`Selection::Preferred`] it comes after all that cost nothing, and is no
    /// refuge from a path that is merely bad, unless hardly anything gets through that.
    pub metered: bool,
    /// What is known of the path through it. The round-trip time sets the first retransmission time of
    /// registrations.
    pub path: PathProperties,
    /// It stands for a relay: its address is that of the relay's own link, and is there as long as the alliance lasts. Registrations of it
    /// go by the interface in use; it is never in use itself. Only with [`MobileNodeConfig::multipath`].
    pub relay: bool,
    /// Whether the link is up at the start.
    pub up: bool,
    /// The address at the start.
    pub address: Option<InterfaceAddress>,
}

impl InterfaceConfig {
    /// An interface that is down and without address, for co-located care-of addresses.
    #[must_use]
    pub fn new(id: InterfaceId) -> Self {
        Self {
            id,
            care_of: CareOfChoice::CoLocated,
            preference: 0,
            metered: false,
            path: PathProperties::default(),
            relay: false,
            up: false,
            address: None,
        }
    }
}

/// When an unanswered request is sent again (RFC 5944 section 3.6.3).
///
/// The first time after twice the round-trip time of the path plus `processing`, but no less than
/// `minimum`; then each time after twice as long, up to `maximum` or the lifetime asked for.
///
/// Before that `early` requests are sent sooner than the RFC has it, where packets wait for the registration: at a handover, on
/// a link that came or came back, not for the renewal of a binding in use. "The minimum time between Registration Requests MUST NOT be
/// less than 1 second" there; but a request that is lost, as the first packets on a radio often are, then costs a second in which
/// nothing arrives, and twenty times what the handover costs without it. What the rule is for stands: there is never more than one request a
/// second on average (section 3.6), and no more than three are sent at once, or four when another registration begins.
///
/// An early request follows after twice the least round trip that was given or measured for the interface, plus `processing`; where
/// there is none, the least of any other interface, or 100 ms if that is less. As each has an Identification of its own,
/// the reply to any of the last four counts, where section 3.6.2.1 has the last only. Early requests are no `attempts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmissionConfig {
    /// At least 1 s.
    pub minimum: Duration,
    /// Time the agents take; at least 100 ms.
    pub processing: Duration,
    /// The longest wait.
    pub maximum: Duration,
    /// Early requests, at most 2; 0 is the RFC to the letter.
    pub early: u32,
    /// Requests without a reply after which a handover has failed, when the old path still works, and after
    /// which, under [`Selection::Preferred`], the interface in use is left for another; `None`: never. Without
    /// another path the node never gives up.
    pub attempts: Option<u32>,
}

impl Default for RetransmissionConfig {
    /// From 1 s up to 32 s, after 2 early requests; a handover fails after 6 others.
    fn default() -> Self {
        Self {
            minimum: Duration::from_secs(1),
            processing: Duration::from_millis(100),
            maximum: Duration::from_secs(32),
            early: 2,
            attempts: Some(6),
        }
    }
}

/// The configuration of a [`super::MobileNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNodeConfig {
    /// The home address.
    pub home_address: Ipv4Addr,
    /// The home network.
    pub home_network: Prefix,
    /// The home agent; `None`: found by asking the home network (RFC 5944 section 3.6.1.2).
    pub home_agent: Option<Ipv4Addr>,
    /// The security association with the home agent.
    pub security: SecurityAssociation,
    /// Foreign agents with which there is a security association.
    pub foreign_agents: Vec<PeerSecurity>,
    /// The node's time of day.
    pub clock: WallClock,
    /// The lifetime asked for; not zero.
    pub lifetime: Lifetime,
    /// How much of a lifetime passes before it is renewed, percent, 1 to 95.
    pub renew_after_percent: u8,
    /// Renew at least this often: how fast a link is noticed that is up and carries nothing. `None`: only as
    /// the lifetime wants it.
    pub probe: Option<Duration>,
    /// Whether the home agent is asked to keep the old binding at a handover (S): packets then come through
    /// both until the old interface is released.
    pub simultaneous: bool,
    /// Whether the addresses of all interfaces are registered at once, as paths over which packets are dispersed both ways
    /// ([`crate::multipath`]); an interface with the address of a foreign agent is none. The path of an interface has the number of its
    /// place in `interfaces`.
    pub multipath: Option<MultipathForm>,
    /// Whether the broadcasts of the home link are wanted (B).
    pub broadcasts: bool,
    /// Whether reverse tunnelling is asked for (T); it also is when the policy table uses it.
    pub reverse_tunnel: bool,
    /// Whether a foreign agent gets what it is to tunnel back in a tunnel (RFC 3024 section 2.2).
    pub encapsulating_delivery: bool,
    /// The encapsulation asked for, where the agents have it.
    pub encapsulation: EncapsulationChoice,
    /// When unanswered requests are sent again.
    pub retransmission: RetransmissionConfig,
    /// How the node notices that it has moved.
    pub movement: MovementConfig,
    /// How it looks for agents.
    pub solicitation: SolicitorConfig,
    /// Who chooses the interface.
    pub selection: Selection,
    /// How long the old interface of a handover is listened to; `None`: until the owner calls
    /// [`super::MobileNode::release`] or the link goes.
    pub keep_old: Option<Duration>,
    /// Whether requests tell the agents what is known of the path ([`careof_wire::mip4::PathReport`]). With it a node
    /// registers again when a link that was lost is back, as only that tells what was lost with it.
    pub report_paths: bool,
    /// Whether the paths through interfaces with care-of addresses of their own are watched: by what the owner
    /// [notes](super::MobileNode::note_sent), and by probes, which home agents that do not know them ignore. Under
    /// [`Selection::Preferred`] a path in use that is silent is left for another one that answers.
    pub path_monitor: bool,
    /// Whether, with `path_monitor` and under [`Selection::Preferred`], a path in use that is bad - it loses much, or has become
    /// slow - is left for another one that is known to carry more and is found clearly better by probes.
    pub leave_bad_paths: bool,
    /// Whether the foreign agent that the node comes to is asked to tell the one it comes from
    /// (draft-ietf-mobileip-optim), where there is a security association with both. The identifications must be
    /// timestamps.
    pub smooth_handoff: bool,
    /// Which traffic travels how.
    pub policy: PolicyTable,
    /// The interfaces.
    pub interfaces: Vec<InterfaceConfig>,
}

impl MobileNodeConfig {
    /// A node that asks for 300 s and renews after three quarters of it; otherwise with what the parts of
    /// the configuration have as defaults.
    #[must_use]
    pub fn new(
        home_address: Ipv4Addr,
        home_network: Prefix,
        home_agent: Ipv4Addr,
        security: SecurityAssociation,
        interfaces: Vec<InterfaceConfig>,
    ) -> Self {
        Self {
            home_address,
            home_network,
            home_agent: Some(home_agent),
            security,
            foreign_agents: Vec::new(),
            clock: WallClock::default(),
            lifetime: Lifetime::from_secs(300),
            renew_after_percent: 75,
            probe: None,
            simultaneous: false,
            multipath: None,
            broadcasts: false,
            reverse_tunnel: false,
            encapsulating_delivery: false,
            encapsulation: EncapsulationChoice::IpInIp,
            retransmission: RetransmissionConfig::default(),
            movement: MovementConfig::default(),
            solicitation: SolicitorConfig::default(),
            selection: Selection::Manual,
            keep_old: None,
            report_paths: false,
            path_monitor: false,
            leave_bad_paths: false,
            smooth_handoff: false,
            policy: PolicyTable::default(),
            interfaces,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let home_address = self.home_address;
        check_unicast("the home address", home_address)?;
        if !self.home_network.contains(home_address) {
            let (network, length) = (self.home_network.address().into(), self.home_network.length());
            return Err(ConfigError::NotAtHome { home_address: home_address.into(), network, length });
        }
        match self.home_agent {
            Some(address) => check_unicast("the home agent's address", address)?,
            // Nobody could be asked.
            None if self.home_network.directed_broadcast().is_none() => {
                return Err(ConfigError::Missing("home agent address, as its home network has no broadcast"));
            }
            None => {}
        }
        if self.smooth_handoff && self.security.replay() == ReplayProtection::Nonces {
            return Err(ConfigError::NeedsTimestamps("smooth hand-off"));
        }
        if self.interfaces.is_empty() {
            return Err(ConfigError::Missing("interface"));
        }
        for (index, interface) in self.interfaces.iter().enumerate() {
            if self.interfaces.iter().take(index).any(|other| other.id == interface.id) {
                return Err(ConfigError::DuplicateInterface(interface.id));
            }
        }
        if self.multipath.is_none() && self.interfaces.iter().any(|interface| interface.relay) {
            return Err(ConfigError::Missing("multipath, which a relay is for"));
        }
        let in_range = |what, found, low, high| {
            let fits = (low..=high).contains(&found);
            if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
        };
        if self.multipath.is_some() {
            let most = crate::multipath::MAX_PATHS as u64;
            in_range("the number of interfaces with multipath", self.interfaces.len() as u64, 1, most)?;
        }
        in_range("the lifetime", u64::from(self.lifetime.as_secs()), 1, u64::from(u16::MAX))?;
        in_range("renew_after_percent", u64::from(self.renew_after_percent), 1, 95)?;
        let probe = self.probe.map_or(u64::MAX, |probe| probe.as_millis().try_into().unwrap_or(u64::MAX));
        in_range("the time between probes in milliseconds", probe, 1000, u64::MAX)?;
        let minimum = self.retransmission.minimum.as_millis().try_into().unwrap_or(u64::MAX);
        in_range("the shortest retransmission time in milliseconds", minimum, 1000, u64::MAX)?;
        in_range("early requests", self.retransmission.early.into(), 0, 2)?;
        check_distinct("the foreign agent", self.foreign_agents.iter().map(|peer| peer.address))
    }
}
