//! Home agent and mobile node, each carried by a thread.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use careof_agent::{
    Carrier, Device, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup, MultipathSetup, Setup, Status,
};
use careof_base::{Duration, RandomStream};
use careof_lab::{Clock, Host};
use careof_mobility::v4::{
    ConfigError, DeliveryMethod, HomeAgentConfig, InterfaceConfig, InterfaceId, MobileNodeConfig, Notice,
    PolicyTable, Prefix, SecurityAssociation, ServedMobileNode,
};
use careof_wire::mip4::Spi;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;

/// How often to look whether it is over, milliseconds.
const LOOK: u8 = 100;
/// The interface between home agent and mobile node, on either.
const DEVICE: &str = "far0";
/// How long a registration may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A carrier that runs.
pub(crate) struct Running {
    name: &'static str,
    stop: Arc<AtomicBool>,
    is_registered: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Status, careof_agent::Error>>>,
}

/// A home agent in `host`, whose home network is behind it.
pub(crate) fn home_agent(
    host: &Host,
    address: Ipv4Addr,
    home_address: Ipv4Addr,
    offloads: bool,
    clock: Clock,
) -> Result<Running, Error> {
    let network = Prefix::new(home_address, 24);
    let setup = HomeSetup {
        config: HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(home_address, security()?)],
            advertisements: None,
            ..HomeAgentConfig::new(address, network, InterfaceId(0))
        },
        devices: vec![Device::new(0, DEVICE)],
        home_network: HomeNetwork::Routed,
        host: HostOptions { offloads, ..HostOptions::default() },
        assist: None,
        multipath: MultipathSetup::default(),
    };
    Running::start("home agent", host, Setup::Home(setup), clock, None)
}

/// A mobile node in `host`, whose every packet goes through the tunnel.
pub(crate) fn mobile_node(
    host: &Host,
    home_agent: Ipv4Addr,
    home_address: Ipv4Addr,
    offloads: bool,
    clock: Clock,
) -> Result<Running, Error> {
    let interfaces = vec![InterfaceConfig::new(InterfaceId(0))];
    let network = Prefix::new(home_address, 24);
    let setup = MobileSetup {
        config: MobileNodeConfig {
            policy: PolicyTable::new(DeliveryMethod::ReverseTunnel, []),
            ..MobileNodeConfig::new(home_address, network, home_agent, security()?, interfaces)
        },
        devices: vec![Device::new(0, DEVICE)],
        host: HostOptions { offloads, ..HostOptions::default() },
        assist: None,
        multipath: MultipathSetup::default(),
    };
    Running::start("mobile node", host, Setup::Mobile(setup), clock, Some(DEVICE))
}

fn security() -> Result<SecurityAssociation, Error> {
    let refused = |problem: ConfigError| Error::NotRegistered { problem: problem.to_string() };
    SecurityAssociation::hmac_md5(Spi(256), b"0123456789abcdef").map_err(refused)
}

impl Running {
    fn start(
        name: &'static str,
        host: &Host,
        setup: Setup,
        clock: Clock,
        device: Option<&'static str>,
    ) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_registered = Arc::new(AtomicBool::new(false));
        let random = RandomStream::new(1, 0, name);
        let opened = host.run(move || {
            let mut carrier = Carrier::open(setup, clock, random, Hooks::default())?;
            if let Some(device) = device {
                carrier.switch_to(device, Notice::None)?;
            }
            Ok::<_, careof_agent::Error>(carrier)
        })?;
        let carrier = opened?;
        let thread = Builder::new().name(name.to_owned()).spawn({
            let (stop, is_registered) = (stop.clone(), is_registered.clone());
            move || drive(carrier, &stop, &is_registered)
        });
        let thread = thread.map_err(crate::transfer::failed("clone"))?;
        Ok(Self { name, stop, is_registered, thread: Some(thread) })
    }

    /// Waits until the mobile node is registered.
    pub(crate) fn wait_registered(&mut self) -> Result<(), Error> {
        let clock = Clock::start();
        while !self.is_registered.load(Ordering::Relaxed) {
            if clock.now().since_start() > PATIENCE {
                let problem = self.stop()?;
                return Err(Error::NotRegistered { problem });
            }
            crate::transfer::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends it; returns what it has to say.
    pub(crate) fn stop(&mut self) -> Result<String, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(String::new()) };
        let status = thread.join().map_err(|_| Error::Panicked { name: self.name })??;
        let tunnels = status.tunnels.iter().map(|tunnel| {
            let (to, into, out) = (tunnel.there, tunnel.packets_out, tunnel.packets_in);
            format!("tunnel to {to}: {into} packets into it, {out} out of it")
        });
        let counters = status.counters.iter().filter(|(_, count)| **count > 0);
        let said = tunnels.chain(counters.map(|(name, count)| format!("{name} {count}")));
        Ok(format!("{}: {}", self.name, said.collect::<Vec<_>>().join(", ")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wanted to know has asked before.
        let _ = self.stop();
    }
}

fn drive(
    mut carrier: Carrier,
    stop: &AtomicBool,
    is_registered: &AtomicBool,
) -> Result<Status, careof_agent::Error> {
    while !stop.load(Ordering::Relaxed) {
        // Interrupted or not, it is looked at again.
        let _ = poll(&mut [PollFd::new(carrier.as_fd(), PollFlags::POLLIN)], PollTimeout::from(LOOK));
        carrier.turn()?;
        while carrier.poll_event().is_some() {}
        is_registered.store(carrier.is_registered(), Ordering::Relaxed);
    }
    let status = carrier.status();
    carrier.close()?;
    Ok(status)
}
