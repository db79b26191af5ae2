//! The hosts of each case, and what runs in them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use careof_lab::{Error, Host, InterfaceConfig, Netlink, Realm, Route, set_sysctl};
use nix::errno::Errno;

use crate::agent::Agent;
use crate::forwarder;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Router,
    Tunnel,
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
/// The name of the TUN devices.
const TUNNEL: &str = "tunnel0";
/// Bytes of a packet on the links.
const MTU: u16 = 1500;
/// What is left of that inside the tunnel.
const TUNNEL_MTU: u16 = 1480;

type Running = JoinHandle<Result<String, Error>>;

/// Hosts between which a connection can be measured.
pub(crate) struct Topology {
    pub(crate) sender: Host,
    pub(crate) receiver: Host,
    /// Where the receiver listens.
    pub(crate) address: Ipv4Addr,
    /// Kept for what it forwards.
    _middle: Option<Host>,
    stop: Arc<AtomicBool>,
    running: Vec<Running>,
}

impl Case {
    pub(crate) const ALL: [Self; 3] = [Self::Router, Self::Tunnel, Self::Forwarder];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Tunnel => "tunnel",
            Self::Forwarder => "forwarder",
        }
    }

    pub(crate) fn build(self, realm: Realm) -> Result<Topology, Error> {
        let hosts = || Ok((host(realm, "sender")?, host(realm, "receiver")?));
        match self {
            Self::Router => {
                let ((sender, receiver), middle) = (hosts()?, chain_middle(realm)?);
                chain(&sender, &middle, &receiver)?;
                add_route(&receiver, "far0", Ipv4Addr::UNSPECIFIED, 0, Some(FAR))?;
                Ok(Topology::of(sender, Some(middle), receiver, RECEIVER))
            }
            Self::Tunnel => {
                let ((sender, receiver), middle) = (hosts()?, chain_middle(realm)?);
                chain(&sender, &middle, &receiver)?;
                let mut topology = Topology::of(sender, Some(middle), receiver, HOME);
                topology.start_agents()?;
                Ok(topology)
            }
            Self::Forwarder => {
                let (sender, receiver) = hosts()?;
                let a = sender.attach(&interface("near0", SENDER, 16))?;
                let b = receiver.attach(&interface("far0", RECEIVER, 16))?;
                let mut topology = Topology::of(sender, None, receiver, RECEIVER);
                let stop = topology.stop.clone();
                topology.running.push(start("forwarder", move || {
                    forwarder::forward(&a, &b, &stop);
                    Ok(String::new())
                })?);
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
        let (stop, running) = (Arc::new(AtomicBool::new(false)), Vec::new());
        Self { sender, receiver, address, _middle: middle, stop, running }
    }

    fn start_agents(&mut self) -> Result<(), Error> {
        let Some(home) = &self._middle else { return Ok(()) };
        let agent = home.run(|| Agent::open(TUNNEL, FAR, RECEIVER))??;
        up(home, TUNNEL, None, TUNNEL_MTU)?;
        add_route(home, TUNNEL, HOME, 32, None)?;
        self.running.push(start("home agent", {
            let stop = self.stop.clone();
            move || agent.run(&stop)
        })?);

        let agent = self.receiver.run(|| Agent::open(TUNNEL, RECEIVER, FAR))??;
        up(&self.receiver, TUNNEL, Some((HOME, 32)), TUNNEL_MTU)?;
        add_route(&self.receiver, TUNNEL, Ipv4Addr::UNSPECIFIED, 0, None)?;
        self.running.push(start("mobile node", {
            let stop = self.stop.clone();
            move || agent.run(&stop)
        })?);
        Ok(())
    }

    /// Ends what runs; returns what it has to say.
    pub(crate) fn stop(&mut self) -> Result<Vec<String>, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let said =
            self.running.drain(..).map(|thread| thread.join().unwrap_or_else(|_| Ok("panicked".to_owned())));
        said.filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty()) || line.is_err()).collect()
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        // Whoever wanted to know has asked before.
        let _ = self.stop();
    }
}

fn start(
    name: &str,
    work: impl FnOnce() -> Result<String, Error> + Send + 'static,
) -> Result<Running, Error> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| Error::System {
        doing: format!("start the thread {name:?}"),
        call: "clone",
        errno: Errno::from_raw(error.raw_os_error().unwrap_or(libc::EAGAIN)),
    })
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
        Ok::<_, Error>(())
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
        use std::os::fd::AsFd;
        let namespace = end.namespace()?;
        middle.run(move || Netlink::open()?.add_veth(name, name, namespace.as_fd()))??;
        up(middle, name, Some((ours, 24)), MTU)?;
        up(end, name, Some((its, 24)), MTU)?;
    }
    add_route(sender, "near0", Ipv4Addr::UNSPECIFIED, 0, Some(NEAR))
}

fn up(host: &Host, name: &'static str, address: Option<(Ipv4Addr, u8)>, mtu: u16) -> Result<(), Error> {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.set_mtu(index, mtu)?;
        netlink.set_transmit_queue(index, 1000)?;
        if let Some((address, prefix_length)) = address {
            netlink.add_address(index, address.into(), prefix_length)?;
        }
        netlink.set_up(index)
    })?
}

fn add_route(
    host: &Host,
    name: &'static str,
    to: Ipv4Addr,
    prefix_length: u8,
    via: Option<Ipv4Addr>,
) -> Result<(), Error> {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let interface = netlink.index_of(name)?;
        let through = Route::default_through(interface, to.into());
        let route = Route { destination: to.into(), prefix_length, via: via.map(IpAddr::V4), ..through };
        netlink.set_route(&route).map(drop)
    })?
}
