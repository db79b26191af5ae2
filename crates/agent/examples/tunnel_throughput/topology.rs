//! The hosts of each case, and what runs in them.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use careof_lab::{Clock, Host, InterfaceConfig, Netlink, Realm, Route, set_sysctl};

use crate::carriers::{self, Running};
use crate::error::Error;
use crate::forwarder::Forwarder;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Router,
    Tunnel,
    TunnelPlain,
    Forwarder,
}

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 1);
/// The middle's address towards the sender.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 2);
/// The middle's address towards the receiver.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 1);
/// The receiver's own address: the care-of address of the mobile node.
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 78, 2, 2);
/// The mobile node's home address.
const HOME: Ipv4Addr = Ipv4Addr::new(10, 78, 3, 5);
/// Bytes of a packet on the links.
const MTU: u16 = 1500;
/// Hosts between which a connection can be measured.
pub(crate) struct Topology {
    pub(crate) sender: Host,
    pub(crate) receiver: Host,
    /// Where the receiver listens.
    pub(crate) address: Ipv4Addr,
    middle: Option<Host>,
    agents: Vec<Running>,
    forwarder: Option<Forwarder>,
}

impl Case {
    pub(crate) const ALL: [Self; 4] = [Self::Router, Self::Tunnel, Self::TunnelPlain, Self::Forwarder];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Tunnel => "tunnel",
            Self::TunnelPlain => "tunnel-plain",
            Self::Forwarder => "forwarder",
        }
    }

    pub(crate) fn build(self, realm: Realm) -> Result<Topology, Error> {
        let hosts = || Ok::<_, Error>((host(realm, "sender")?, host(realm, "receiver")?));
        match self {
            Self::Router => {
                let ((sender, receiver), middle) = (hosts()?, chain_middle(realm)?);
                chain(&sender, &middle, &receiver)?;
                add_route(&receiver, "far0", Ipv4Addr::UNSPECIFIED, 0, Some(FAR))?;
                Ok(Topology::of(sender, Some(middle), receiver, RECEIVER))
            }
            Self::Tunnel | Self::TunnelPlain => {
                let ((sender, receiver), middle) = (hosts()?, chain_middle(realm)?);
                chain(&sender, &middle, &receiver)?;
                add_route(&receiver, "far0", Ipv4Addr::UNSPECIFIED, 0, Some(FAR))?;
                let mut topology = Topology::of(sender, Some(middle), receiver, HOME);
                topology.start_agents(self == Self::Tunnel)?;
                Ok(topology)
            }
            Self::Forwarder => {
                let (sender, receiver) = hosts()?;
                let a = sender.attach(&interface("near0", SENDER, 16))?;
                let b = receiver.attach(&interface("far0", RECEIVER, 16))?;
                let mut topology = Topology::of(sender, None, receiver, RECEIVER);
                topology.forwarder = Some(Forwarder::start(a, b)?);
                Ok(topology)
            }
        }
    }
}

fn interface(name: &str, address: Ipv4Addr, prefix_length: u8) -> InterfaceConfig {
    InterfaceConfig { mtu: MTU, ..InterfaceConfig::new(name, IpAddr::V4(address), prefix_length) }
}

impl Topology {
    fn of(sender: Host, middle: Option<Host>, receiver: Host, address: Ipv4Addr) -> Self {
        Self { sender, receiver, address, middle, agents: Vec::new(), forwarder: None }
    }

    fn start_agents(&mut self, offloads: bool) -> Result<(), Error> {
        let Some(home) = &self.middle else { return Ok(()) };
        let clock = Clock::start();
        self.agents.push(carriers::home_agent(home, FAR, HOME, offloads, clock)?);
        let mut mobile = carriers::mobile_node(&self.receiver, FAR, HOME, offloads, clock)?;
        mobile.wait_registered()?;
        self.agents.push(mobile);
        Ok(())
    }

    /// Ends what runs; returns what it has to say.
    pub(crate) fn stop(&mut self) -> Result<Vec<String>, Error> {
        drop(self.forwarder.take());
        // The mobile node first: it says good-bye.
        self.agents.iter_mut().rev().map(Running::stop).collect()
    }
}

fn host(realm: Realm, name: &str) -> Result<Host, Error> {
    let host = realm.host(name)?;
    host.run(|| {
        // The same for every case; an ordinary user may find that it is not allowed, and all have the default.
        let _ = set_sysctl("net.ipv4.tcp_congestion_control", "cubic");
        for scope in ["all", "default"] {
            set_sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
            set_sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1")?;
        }
        Ok::<_, careof_lab::Error>(())
    })??;
    Ok(host)
}

fn chain_middle(realm: Realm) -> Result<Host, Error> {
    let middle = host(realm, "middle")?;
    middle.run(|| set_sysctl("net.ipv4.ip_forward", "1"))??;
    Ok(middle)
}

/// Sender, middle, receiver in a row; the sender's default route leads to the middle.
fn chain(sender: &Host, middle: &Host, receiver: &Host) -> Result<(), Error> {
    for (end, name, its, ours) in [(sender, "near0", SENDER, NEAR), (receiver, "far0", RECEIVER, FAR)] {
        let namespace = end.namespace()?;
        middle.run(move || Netlink::open()?.add_veth(name, name, namespace.as_fd()))??;
        up(middle, name, ours)?;
        up(end, name, its)?;
    }
    add_route(sender, "near0", Ipv4Addr::UNSPECIFIED, 0, Some(NEAR))
}

fn up(host: &Host, name: &'static str, address: Ipv4Addr) -> Result<(), Error> {
    let done = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.set_mtu(index, MTU)?;
        netlink.add_address(index, address.into(), 24)?;
        netlink.set_up(index)
    })?;
    Ok(done?)
}

fn add_route(
    host: &Host,
    name: &'static str,
    to: Ipv4Addr,
    prefix_length: u8,
    via: Option<Ipv4Addr>,
) -> Result<(), Error> {
    let done = host.run(move || {
        let mut netlink = Netlink::open()?;
        let interface = netlink.index_of(name)?;
        let through = Route::default_through(interface, to.into());
        let route = Route { destination: to.into(), prefix_length, via: via.map(IpAddr::V4), ..through };
        netlink.set_route(&route).map(drop)
    })?;
    Ok(done?)
}
