//! Carries one mobility agent on this host.
//!
//! [`Carrier`] is what everybody else knows. What differs by the version of IP - which agents there are, how their packets travel - is in
//! `ipv4` with what surrounds it, and in `ipv6`; they share the host's interfaces, what is put into it and back, and when to ask it.

mod advertiser;
mod agent;
pub(crate) mod alarm;
mod announcements;
mod assist_actions;
mod assist_events;
mod assists;
mod bond_tally;
mod bonded_packets;
mod cluster;
mod data_plane;
mod decisions;
mod error;
mod error_reports;
mod event_queue;
mod hooks;
mod host_changes;
mod interfaces;
mod ipv4;
mod ipv6;
mod mobile_routes;
mod multipath;
mod neighbourhood;
mod network_news;
mod parameters;
mod passed;
mod paths;
mod persistence;
mod questions;
mod reactions;
mod reading;
mod relay;
mod segment_errors;
mod setup;
mod signalling;
mod snapshot;
mod status;
mod tunnel_device;
mod tunnel_entry;
mod tunnel_errors;
mod turn;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use careof_base::{Instant, RandomStream, Randomness};
use careof_lab::{Clock, Netlink};
use careof_mobility::v4::{InterfaceId, Notice, PathProperties};
use careof_mobility::{v4, v6};

pub use advertiser::RouterAdvertiser;
pub use assist_events::{AssistEvent, AssistNews, PacketDeed};
pub use cluster::{ClusterEvent, ClusterSetup};
pub use error::Error;
pub use hooks::{BindingStore, Hooks, ParameterChange, ParameterLog, StoreError, TimeOfDay};
pub use ipv6::{
    AccessPointSetup, FastHandoverSetup, Ipv6AccessRouterSetup, Ipv6AnchorPointSetup, Ipv6BindingStatus,
    Ipv6CorrespondentSetup, Ipv6HierarchicalMobileSetup, Ipv6HomeSetup, Ipv6InterfaceStatus, Ipv6MobileSetup,
    Ipv6RegistrationStatus, Ipv6Setup, Ipv6Status,
};
pub use multipath::{MultipathEvent, MultipathSetup};
#[doc(hidden)]
pub use relay::RelayFaults;
pub use relay::RelaySetup;
pub use setup::{Device, ForeignSetup, HomeNetwork, HomeSetup, HostOptions, MobileSetup, Setup};
pub use status::{
    AgentCounters, AllyStatus, AssistDeed, AssistFlowStatus, AssistStatus, BindingStatus, ClusterStatus,
    HandoverStatus, InterfaceStatus, LeftPath, MultipathPathStatus, MultipathStatus, PathStatus,
    RegistrationStatus, RelayInUse, RelayStatus, Role, Status, StoreStatus, TunnelStatus, VisitorStatus,
};

#[cfg(test)]
pub(crate) use status::AssistOverview;
pub(crate) use status::Overview;

use assists::Assists;
use ipv4::Ipv4Carrier;
use ipv6::Ipv6Carrier;
use multipath::Bonds;
use relay::RelayCarrier;

/// Which agent of which version, with everything it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum AnySetup {
    /// Of Mobile IPv4.
    V4(Box<Setup>),
    /// Of Mobile IPv6.
    V6(Box<Ipv6Setup>),
    /// A relay, which lends its link to mobile nodes of Mobile IPv4.
    Relay(Box<RelaySetup>),
}

impl From<RelaySetup> for AnySetup {
    fn from(setup: RelaySetup) -> Self {
        Self::Relay(Box::new(setup))
    }
}

impl From<Setup> for AnySetup {
    fn from(setup: Setup) -> Self {
        Self::V4(Box::new(setup))
    }
}

impl From<Ipv6Setup> for AnySetup {
    fn from(setup: Ipv6Setup) -> Self {
        Self::V6(Box::new(setup))
    }
}

impl AnySetup {
    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::V4(setup) => setup.role(),
            Self::V6(setup) => setup.role(),
            Self::Relay(_) => Role::Relay,
        }
    }

    /// The names of the interfaces that it speaks of and the host has not. They may come later: an agent waits for them.
    ///
    /// # Errors
    /// The kernel does not list its interfaces.
    pub fn missing_interfaces(&self) -> Result<Vec<&str>, careof_lab::Error> {
        let devices = match self {
            Self::V4(setup) => setup.devices(),
            Self::V6(setup) => setup.devices(),
            Self::Relay(_) => &[],
        };
        let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        if let Self::Relay(setup) = self {
            names.extend([setup.cluster.as_str(), &setup.link]);
        }
        if let Self::V4(setup) = self
            && let Some(cluster) = setup.multipath().and_then(|several| several.cluster.as_ref())
        {
            names.push(&cluster.interface);
        }
        let there = Netlink::open()?.interfaces()?;
        Ok(names.into_iter().filter(|name| there.iter().all(|found| found.name != *name)).collect())
    }
}

/// Whether names and numbers of interfaces fit together, and the assists to the agent.
pub(crate) fn check(setup: &AnySetup) -> Result<(), Error> {
    match setup {
        AnySetup::V4(setup) => ipv4::check(setup),
        AnySetup::V6(setup) => ipv6::check(setup),
        AnySetup::Relay(setup) => relay::check(setup),
    }
}

/// One mobility agent on this host, of Mobile IPv4 or Mobile IPv6, in the network namespace of the thread that opened it.
///
/// It is driven from outside, by whichever thread: wait until its descriptor is readable ([`AsFd`]; it nests in any
/// `epoll` or `poll`), call [`Carrier::turn`], take what [`Carrier::poll_event`] has. Timers make the descriptor
/// readable, too. After a command ([`Carrier::switch_to`], [`Carrier::release`], [`Carrier::deregister`]) nothing more
/// need be called.
///
/// What it changed in the host - routes, rules, addresses, neighbours, kernel parameters - is put back by
/// [`Carrier::close`], or as far as possible when it is dropped. What a killed agent left is replaced by the next
/// one with the same [`HostOptions`]; for kernel parameters it needs [`Hooks::parameters`].
///
/// What is said of visitors concerns Mobile IPv4.
#[derive(Debug)]
pub struct Carrier {
    version: Version,
}

#[derive(Debug)]
enum Version {
    V4(Box<Ipv4Carrier>),
    V6(Box<Ipv6Carrier>),
    Relay(Box<RelayCarrier>),
}

/// The same call on the carrier of whichever version.
macro_rules! on_carrier {
    ($version:expr, $bound:ident => $call:expr) => {
        match $version {
            Version::V4($bound) => $call,
            Version::V6($bound) => $call,
            Version::Relay($bound) => $call,
        }
    };
}

impl Carrier {
    /// Opens sockets and the tunnel device, installs what the agent needs in the host, and starts the agent: a home
    /// agent with the bindings from its store, a mobile node with the interfaces and addresses it finds.
    ///
    /// A home agent has its bindings, and what it must not accept again, before this returns: no request is judged without them.
    /// Their routes and proxied addresses are put into the host a portion a turn; [`Carrier::is_restoring`] says whether some
    /// are missing. Bindings that are taken back are in the [status](Carrier::status) and no events.
    ///
    /// `clock` is the one that all instants are of; `random` feeds the agent, and is secret where strangers are about.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind then.
    pub fn open(
        setup: impl Into<AnySetup>,
        clock: Clock,
        random: impl Into<Randomness>,
        hooks: Hooks,
    ) -> Result<Self, Error> {
        let version = match setup.into() {
            AnySetup::V4(setup) => Version::V4(Box::new(Ipv4Carrier::open(*setup, clock, random, hooks)?)),
            AnySetup::V6(setup) => Version::V6(Box::new(Ipv6Carrier::open(*setup, clock, random, hooks)?)),
            AnySetup::Relay(setup) => {
                Version::Relay(Box::new(RelayCarrier::open(*setup, clock, random.into())?))
            }
        };
        Ok(Self { version })
    }

    /// Does what there is to do now: a bounded amount of it, and never waits. When there is more, the descriptor
    /// stays readable.
    ///
    /// # Errors
    /// Something the agent cannot go on without is gone, as the tunnel device. What can be survived is counted
    /// instead.
    pub fn turn(&mut self) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.turn())
    }

    /// Whether a part of what a former life had in the host is still to be put there.
    #[must_use]
    pub const fn is_restoring(&self) -> bool {
        on_carrier!(&self.version, carrier => carrier.is_restoring())
    }

    /// How many bindings were taken back from the store when the agent was opened.
    #[must_use]
    pub const fn restored(&self) -> u64 {
        match &self.version {
            Version::V4(carrier) => carrier.restored(),
            Version::V6(carrier) => carrier.restored(),
            Version::Relay(_) => 0,
        }
    }

    /// The next thing the agent tells, and when it happened. A bounded number is kept; what was lost beyond is
    /// counted as `events-lost`.
    pub fn poll_event(&mut self) -> Option<(Instant, v4::Event)> {
        match &mut self.version {
            Version::V4(carrier) => carrier.poll_event(),
            Version::V6(_) | Version::Relay(_) => None,
        }
    }

    /// As [`Carrier::poll_event`], of an agent of Mobile IPv6.
    pub fn poll_ipv6_event(&mut self) -> Option<(Instant, v6::Event)> {
        match &mut self.version {
            Version::V4(_) | Version::Relay(_) => None,
            Version::V6(carrier) => carrier.poll_event(),
        }
    }

    /// The next thing that happened in a cluster, to a relay or to a mobile node that uses relays, and when. As of
    /// [`Carrier::poll_event`] a bounded number is kept.
    pub fn poll_cluster_event(&mut self) -> Option<(Instant, ClusterEvent)> {
        match &mut self.version {
            Version::V4(carrier) => carrier.poll_cluster_event(),
            Version::V6(_) => None,
            Version::Relay(carrier) => carrier.events.pop(),
        }
    }

    /// The next thing that happened to a tunnel over several paths, and when. As of [`Carrier::poll_event`] a bounded number is kept.
    pub fn poll_multipath_event(&mut self) -> Option<(Instant, MultipathEvent)> {
        self.bonds()?.events.pop()
    }

    /// From now on what tunnels over several paths pass on, in its order, is kept for [`Carrier::poll_passed_on`].
    pub fn watch_order(&mut self) {
        if let Some(bonds) = self.bonds() {
            bonds.watch();
        }
    }

    /// The next datagram that a tunnel over several paths passed on, and when, if that is [watched](Carrier::watch_order). A bounded
    /// number is kept; what was lost beyond is counted among `events-lost`.
    pub fn poll_passed_on(&mut self) -> Option<(Instant, Arc<[u8]>)> {
        self.bonds()?.poll_passed_on()
    }

    fn bonds(&mut self) -> Option<&mut Bonds> {
        match &mut self.version {
            Version::V4(carrier) => carrier.bonds(),
            Version::V6(_) | Version::Relay(_) => None,
        }
    }

    /// When and to which interface access routers have last handed the mobile node over (RFC 5568): packets go both ways there, whatever
    /// its home agent knows. Each time is told once.
    pub fn take_handed_over(&mut self) -> Option<(Instant, InterfaceId)> {
        match &mut self.version {
            Version::V4(_) | Version::Relay(_) => None,
            Version::V6(carrier) => carrier.take_handed_over(),
        }
    }

    /// From now on what assists do is kept for [`Carrier::poll_assist_event`].
    pub fn watch_assists(&mut self) {
        if let Some(assists) = self.assists() {
            assists.events.watch();
        }
    }

    /// The next thing that assists did, and when, if they are [watched](Carrier::watch_assists). A bounded number is
    /// kept; what was lost beyond is counted as `assist-events-lost`.
    pub fn poll_assist_event(&mut self) -> Option<(Instant, AssistEvent)> {
        self.assists()?.events.pop()
    }

    /// The interface that the agent's events call `id`.
    #[must_use]
    pub fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        on_carrier!(&self.version, carrier => carrier.interface_name(id))
    }

    /// Mobile node: moves to `interface`; see `MobileNode::switch_to`. The kernel is asked about the links and addresses first:
    /// whoever has just brought the interface up may say so before the kernel does.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`], [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn switch_to(&mut self, interface: &str, notice: Notice) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.switch_to(interface, notice))
    }

    /// Mobile node: `interface`, left by a handover, need not be listened to any longer.
    ///
    /// # Errors
    /// As [`Carrier::switch_to`].
    pub fn release(&mut self, interface: &str) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.release(interface))
    }

    /// Mobile node: somebody says that the path in use ends within some time, and that packets go by `interface` then. Only
    /// assists are told, who may take their measures; it may be wrong.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`], or what [`Carrier::turn`] says.
    pub fn announce_handover(&mut self, interface: &str, within: Duration) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.announce_handover(interface, within))
    }

    /// Mobile node of Mobile IPv6 with fast handovers: it will go to `interface` soon. The present access router is asked to send packets on
    /// to the one there (RFC 5568 section 3.3, predictive). Nothing for others.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`], or what [`Carrier::turn`] says.
    pub fn prepare_handover(&mut self, interface: &str) -> Result<(), Error> {
        match &mut self.version {
            Version::V4(_) | Version::Relay(_) => Ok(()),
            Version::V6(carrier) => carrier.prepare_handover(interface),
        }
    }

    /// The same: the handover that was [prepared](Carrier::prepare_handover) does not come. Packets are to come to the old link again.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn call_off_handover(&mut self) -> Result<(), Error> {
        match &mut self.version {
            Version::V4(_) | Version::Relay(_) => Ok(()),
            Version::V6(carrier) => carrier.call_off_handover(),
        }
    }

    /// Home and foreign agent: as [`Carrier::announce_handover`], for the mobile node with this home address, which will be
    /// reached by a path with these properties.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn announce_departure(
        &mut self,
        mobile: IpAddr,
        within: Duration,
        new: PathProperties,
    ) -> Result<(), Error> {
        self.tell_assists(&careof_assist::Input::Announced { mobile, within, new })
    }

    /// Home agent: whether packets reach this care-of address, from somebody who knows - as the link layer does where the
    /// address is on a link of this host. Assists are told, and an access router, which keeps packets for a mobile node that has left its
    /// link.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn care_of_reachable(&mut self, care_of: IpAddr, reachable: bool) -> Result<(), Error> {
        use careof_assist::Input::{LinkDown, LinkUp};
        if let (Version::V6(carrier), IpAddr::V6(care_of)) = (&mut self.version, care_of) {
            carrier.note_on_link(care_of, reachable);
        }
        let path = careof_assist::PathId::CareOf(care_of);
        self.tell_assists(&if reachable { LinkUp { path } } else { LinkDown { path } })
    }

    fn tell_assists(&mut self, input: &careof_assist::Input<'_>) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.tell_assists_of(input))
    }

    fn assists(&mut self) -> Option<&mut Assists> {
        on_carrier!(&mut self.version, carrier => carrier.assists())
    }

    /// Home and foreign agent: ends the bindings of a mobile node, or forgets it as a visitor, and returns how many entries that
    /// were. It is not told, and may register again.
    ///
    /// # Errors
    /// [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn drop_mobile_node(&mut self, home_address: impl Into<IpAddr>) -> Result<usize, Error> {
        match (&mut self.version, home_address.into()) {
            (Version::V4(carrier), IpAddr::V4(home_address)) => carrier.drop_mobile_node(home_address),
            (Version::V6(carrier), IpAddr::V6(home_address)) => carrier.drop_mobile_node(home_address),
            (Version::Relay(carrier), _) => carrier.drop_mobile_node(),
            // An agent holds nothing for addresses of the other version.
            _ => Ok(0),
        }
    }

    /// Mobile node: traffic by some link has stopped, or there is another reason to doubt it: the kernel is asked about all of the
    /// configuration's interfaces, as it may not have told yet, or not tell at all. Cheap, and no more than some twenty times a second
    /// however often this is called; the answer is taken in in this turn, or when it may be asked again. Nothing for other agents.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn ask_links(&mut self) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.ask_links())
    }

    /// Mobile node: asks the home agent to forget all bindings. It is done when [`Carrier::is_registered`] says no;
    /// then the host's own routes hold again.
    ///
    /// # Errors
    /// [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn deregister(&mut self) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.deregister())
    }

    /// Mobile node: whether packets to the home address arrive. Others are never registered.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        on_carrier!(&self.version, carrier => carrier.is_registered())
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        match &self.version {
            Version::V4(carrier) => carrier.role(),
            Version::V6(carrier) => carrier.setup().role(),
            Version::Relay(carrier) => carrier.role(),
        }
    }

    /// What the agent is doing. With very many bindings or visitors this takes its time, in which nothing else is done; see
    /// [`Carrier::status_part`].
    #[must_use]
    pub fn status(&self) -> Status {
        self.status_part(None, usize::MAX)
    }

    /// What the agent is doing, with the bindings or visitors of at most `most` mobile nodes and what they have of tunnels: of
    /// those with the home address `from` and larger ones, or of the first. [`Status::next`] says with which to go on.
    #[must_use]
    pub fn status_part(&self, from: Option<IpAddr>, most: usize) -> Status {
        on_carrier!(&self.version, carrier => carrier.status_part(from, most))
    }

    /// What an agent of Mobile IPv6 is doing; `None` for one of Mobile IPv4. What both have in common is in its
    /// [status](Carrier::status), too.
    #[must_use]
    pub fn ipv6_status(&self) -> Option<Ipv6Status> {
        match &self.version {
            Version::V4(_) | Version::Relay(_) => None,
            Version::V6(carrier) => Some(carrier.status()),
        }
    }

    /// What the agent is doing, in sums; tunnels one by one only where they are of at most `most` mobile nodes.
    pub(crate) fn overview(&self, most: usize) -> Overview {
        on_carrier!(&self.version, carrier => carrier.overview(most))
    }

    /// The interfaces that the agent uses.
    pub(crate) fn interface_statuses(&self) -> Vec<InterfaceStatus> {
        on_carrier!(&self.version, carrier => carrier.interface_statuses())
    }

    /// Why bindings cannot be written down, as long as that is so.
    #[must_use]
    pub fn store_problem(&self) -> Option<&StoreError> {
        on_carrier!(&self.version, carrier => carrier.store_problem())
    }

    /// Home and foreign agent, correspondent node: addresses by which others reach it, which this host does not have. It serves again
    /// when it has. A home agent of Mobile IPv6 misses none: its address is its own.
    #[must_use]
    pub fn missing_addresses(&self) -> &[IpAddr] {
        on_carrier!(&self.version, carrier => carrier.missing_addresses())
    }

    /// Why the host refused something last, or what of it is in the way; for a log.
    #[must_use]
    pub fn last_problem(&self) -> Option<String> {
        on_carrier!(&self.version, carrier => carrier.last_problem())
    }

    /// Goes on with another configuration of the same role. A home agent keeps its bindings, as far as the new
    /// configuration allows them; a foreign agent that changes forgets its visitors and says so by the sequence
    /// number of its advertisements; a mobile node that changes registers anew; a correspondent node that changes forgets its bindings,
    /// and mobile nodes tell it again.
    ///
    /// # Errors
    /// [`Error`]; the agent goes on with the old configuration. [`Error::NeedsRestart`] where what is laid down at
    /// the start was to change: the version of IP, [`HostOptions`], the interfaces, the home address, and over IPv6 the addresses of
    /// home agent and correspondent node and the home network.
    pub fn reconfigure(&mut self, setup: impl Into<AnySetup>) -> Result<(), Error> {
        let from = self.role();
        match (&mut self.version, setup.into()) {
            (Version::V4(carrier), AnySetup::V4(setup)) => carrier.reconfigure(*setup),
            (Version::V6(carrier), AnySetup::V6(setup)) => carrier.reconfigure(*setup),
            (Version::Relay(carrier), AnySetup::Relay(setup)) => carrier.reconfigure(*setup),
            (_, setup) if setup.role() != from => {
                Err(Error::RoleChanged { from: from.name(), to: setup.role().name() })
            }
            _ => Err(Error::NeedsRestart { what: "the version of IP" }),
        }
    }

    /// Puts back what was changed in the host, and ends. A mobile node that is to say good-bye does so before, by
    /// [`Carrier::deregister`].
    ///
    /// # Errors
    /// What could not be put back; the rest has been.
    pub fn close(mut self) -> Result<(), Error> {
        on_carrier!(&mut self.version, carrier => carrier.put_back())
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        on_carrier!(&self.version, carrier => carrier.as_fd())
    }
}

/// Ends a carrier as the kernel ends a killed process: its descriptors are closed, and nothing is put back.
///
/// For tests of what the next one makes of it.
#[doc(hidden)]
pub fn abandon(mut carrier: Carrier) {
    on_carrier!(&mut carrier.version, carrier => carrier.abandon());
}

/// Has the next attempts to read the host's interfaces and addresses fail, as when the kernel's answer cannot be
/// understood, or changes faster than it is read.
///
/// For tests of how an agent goes on.
#[doc(hidden)]
pub fn refuse_readings(carrier: &mut Carrier, attempts: u32) {
    on_carrier!(&mut carrier.version, carrier => carrier.refuse_readings(attempts));
}

/// Has a relay do this wrong from now on; `random` counts the first time.
///
/// For tests, and for scenarios with such a relay.
#[doc(hidden)]
pub fn spoil_relay(carrier: &mut Carrier, faults: RelayFaults, random: RandomStream) {
    if let Version::Relay(carrier) = &mut carrier.version {
        carrier.go_wrong(faults, random);
    }
}

/// Whether each interface is listed once, and each number.
fn check_devices(devices: &[Device]) -> Result<(), Error> {
    for (at, device) in devices.iter().enumerate() {
        let earlier = devices.iter().take(at);
        if earlier.into_iter().any(|other| other.id == device.id || other.name == device.name) {
            return Err(Error::DoubleInterface { name: device.name.clone() });
        }
    }
    Ok(())
}

/// Whether assists are configured without contradiction, and for the place where they are to run.
fn check_assist(assist: &careof_assist::Config, place: careof_assist::Place) -> Result<(), Error> {
    assist.check()?;
    if assist.place == place { Ok(()) } else { Err(Error::AssistElsewhere) }
}

/// Whether an interface of the configuration has a name.
fn check_named(devices: &[Device], id: InterfaceId) -> Result<(), Error> {
    let is_named = devices.iter().any(|device| device.id == id);
    if is_named { Ok(()) } else { Err(Error::UnnamedInterface { number: id.0 }) }
}

// A carrier may be opened in one thread and driven by another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Carrier>();
};
