//! An interface as a host wants it: made, addressed and up.

use std::net::IpAddr;
use std::os::fd::AsFd;

use careof_base::Duration;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock::Clock;
use crate::error::Error;
use crate::namespace::Host;
use crate::netlink::{AddressOptions, Netlink, NetlinkMonitor};
use crate::sysctl::set_sysctl;
use crate::tun::Tun;

/// How long the kernel may take to begin sending by a new cable; usually it is less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(5);

/// An address with the prefix that is on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_length: u8,
}

/// An interface to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Its addresses, which nobody else has: they are usable at once. Without an IPv6 address among them IPv6 is switched off, so
    /// that nothing but what the scenario says crosses the link; unless it configures itself.
    pub addresses: Vec<InterfaceAddress>,
    /// Whether the kernel forms IPv6 addresses for it, of what routers advertise (RFC 4862).
    pub configures_itself: bool,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Packets that wait inside the kernel for whoever reads a TUN device. The emulator empties it at once, so
    /// this is room for its being late, not a queue of the link.
    pub transmit_queue: u32,
    /// Whether a TUN device comes up with a carrier; a cable has one when both its ends are up.
    ///
    /// Where a carrier that was there is taken away, the kernel may let a second pass before it acts, and until then
    /// does not say either that it is there again. One that was never there it tells of at once.
    pub has_carrier: bool,
}

impl InterfaceConfig {
    /// An interface with a carrier, one address, an MTU of 1500 bytes and room for an emulator that is late by 50 ms at
    /// 1 Gbit/s.
    #[must_use]
    pub fn new(name: &str, address: IpAddr, prefix_length: u8) -> Self {
        Self {
            name: name.to_owned(),
            addresses: vec![InterfaceAddress { address, prefix_length }],
            configures_itself: false,
            mtu: 1500,
            transmit_queue: 4096,
            has_carrier: true,
        }
    }
}

impl Host {
    /// Makes an interface in this host, gives it its addresses and takes it up.
    ///
    /// # Errors
    /// Those of [`Tun::open`], [`Netlink`] and [`set_sysctl`]. Nothing is left of the interface then.
    pub fn attach(&self, config: &InterfaceConfig) -> Result<Tun, Error> {
        let config = config.clone();
        self.run(move || attach(&config))?
    }

    /// Makes an Ethernet cable (veth) between two hosts, an interface at each end, both addressed, up and with a
    /// carrier: packets pass from now on.
    ///
    /// No emulator comes into it: it delivers at once, as fast as the machine can. It goes with either host.
    ///
    /// # Errors
    /// Those of [`Netlink::add_veth`], [`Netlink`] and [`set_sysctl`]. Nothing is left of the interfaces then.
    pub fn connect(
        &self,
        here: &InterfaceConfig,
        other: &Self,
        there: &InterfaceConfig,
    ) -> Result<(), Error> {
        let namespace = other.namespace()?;
        let (name, peer) = (here.name.clone(), there.name.clone());
        self.run(move || Netlink::open()?.add_veth(&name, &peer, namespace.as_fd()))??;
        let set_up_end = |host: &Self, config: &InterfaceConfig| {
            let config = config.clone();
            host.run(move || set_up(&config))?
        };
        let wait_at_end = |host: &Self, config: &InterfaceConfig| {
            let name = config.name.clone();
            host.run(move || wait_for_carrier(&name))?
        };
        let set_up = || {
            set_up_end(self, here)?;
            set_up_end(other, there)?;
            wait_at_end(self, here)?;
            wait_at_end(other, there)
        };
        set_up().inspect_err(|_| {
            let name = here.name.clone();
            let _ = self.run(move || {
                let mut netlink = Netlink::open()?;
                let index = netlink.index_of(&name)?;
                netlink.remove_interface(index)
            });
        })
    }
}

/// Waits until the kernel sends packets by an interface, which is a moment after both ends of a cable are up.
fn wait_for_carrier(name: &str) -> Result<(), Error> {
    let mut monitor = NetlinkMonitor::open()?;
    let mut netlink = Netlink::open()?;
    let index = netlink.index_of(name)?;
    let clock = Clock::start();
    while !netlink.interface(index)?.has_carrier {
        let left = PATIENCE.saturating_sub(clock.now().since_start());
        if left.is_zero() {
            return Err(Error::system(
                format!("wait for the carrier of {name:?}"),
                "RTM_GETLINK",
                Errno::ETIMEDOUT,
            ));
        }
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        // Whatever ends the wait, the interface is looked at again.
        let _ = poll(&mut [PollFd::new(monitor.as_fd(), PollFlags::POLLIN)], timeout);
        while monitor.poll_change()?.is_some() {}
    }
    Ok(())
}

fn attach(config: &InterfaceConfig) -> Result<Tun, Error> {
    let tun = Tun::open(&config.name)?;
    if !config.has_carrier {
        tun.set_carrier(false)?;
    }
    set_up(config)?;
    Ok(tun)
}

/// Gives an interface of the calling thread's namespace what `config` says, and takes it up.
fn set_up(config: &InterfaceConfig) -> Result<(), Error> {
    if !config.configures_itself && !config.addresses.iter().any(|on| on.address.is_ipv6()) {
        match set_sysctl(&format!("net.ipv6.conf.{}.disable_ipv6", config.name.replace('.', "/")), "1") {
            // A kernel without IPv6 has none to switch off.
            Ok(()) | Err(Error::System { errno: Errno::ENOENT, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let mut netlink = Netlink::open()?;
    let index = netlink.index_of(&config.name)?;
    netlink.set_mtu(index, config.mtu)?;
    netlink.set_transmit_queue(index, config.transmit_queue)?;
    for on in &config.addresses {
        let options = AddressOptions { skips_detection: on.address.is_ipv6(), ..AddressOptions::default() };
        netlink.add_address_as(options, index, on.address, on.prefix_length)?;
    }
    netlink.set_up(index)
}
