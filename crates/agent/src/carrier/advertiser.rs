//! Has this host advertise itself as a router on one of its links (RFC 4861, RFC 6275 section 7.5).

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::{Instant, Randomness};
use careof_lab::{Clock, Icmpv6Socket, IpVersion, Netlink, NetlinkMonitor, OutgoingIcmpv6};
use careof_mobility::v6::neighbor_discovery::{AdvertisingConfig, AdvertisingRouter, Counters};
use careof_wire::icmpv6::{IpFields, LinkLayerAddress};
use careof_wire::ipv6::ALL_ROUTERS;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::Error;
use super::alarm::{Alarm, failed};

/// Router Solicitation (RFC 4861 section 4.1).
const SOLICITATION: u8 = 133;
/// Messages, and changes of the network, taken in one turn.
const MESSAGES_A_TURN: usize = 128;
/// The longest message taken.
const LONGEST_MESSAGE: usize = 4096;

/// Advertises this host as a router on one link, in the network namespace of the thread that opened it.
///
/// It is driven like a [`Carrier`](super::Carrier): wait until its descriptor is readable, and call [`RouterAdvertiser::turn`]. It begins
/// when the interface has a carrier and a link-local address that can be used, and pauses while it has not. That the host forwards
/// packets is for its owner to see to; without that, hosts on the link would send into nothing.
#[derive(Debug)]
pub struct RouterAdvertiser {
    router: AdvertisingRouter,
    interface: String,
    clock: Clock,
    icmp: Icmpv6Socket,
    netlink: Netlink,
    monitor: NetlinkMonitor,
    epoll: Epoll,
    alarm: Alarm,
    /// What is told of an interface without a link-layer address.
    link_layer_address: Option<LinkLayerAddress>,
    /// Index of the interface, while it advertises.
    link: Option<u32>,
    unsent: u64,
}

impl RouterAdvertiser {
    /// Begins to advertise as `config` says, from the interface's link-local address, whatever address it says, and with the interface's
    /// link-layer address. An interface without one, as a TUN device is, is told by that of `config`: hosts use an address during
    /// Duplicate Address Detection only if the router has told its link-layer address (RFC 4429 section 3.3), on whatever link.
    ///
    /// # Errors
    /// [`Error::System`], or [`Error::Config`] for what is wrong with the configuration.
    pub fn open(
        interface: &str,
        config: AdvertisingConfig,
        clock: Clock,
        random: impl Into<Randomness>,
    ) -> Result<Self, Error> {
        let link_layer_address = config.link_layer_address;
        // Any link-local address: it is replaced before anything is said.
        let placeholder = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let router =
            AdvertisingRouter::new(AdvertisingConfig { address: placeholder, ..config }, random.into())?;
        // Before anything is read, so that no change falls in between.
        let monitor = NetlinkMonitor::open_for(IpVersion::V6)?;
        let icmp = Icmpv6Socket::open(&[SOLICITATION])?;
        let alarm = Alarm::new()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        for fd in [monitor.as_fd(), icmp.as_fd(), alarm.as_fd()] {
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(failed("epoll_ctl"))?;
        }
        let mut advertiser = Self {
            router,
            interface: interface.to_owned(),
            clock,
            icmp,
            netlink: Netlink::open()?,
            monitor,
            epoll,
            alarm,
            link_layer_address,
            link: None,
            unsent: 0,
        };
        let now = clock.now();
        advertiser.look(now)?;
        advertiser.finish(now)?;
        Ok(advertiser)
    }

    /// Does what there is to do now, and never waits.
    ///
    /// # Errors
    /// [`Error::System`]: the kernel cannot be asked any longer.
    pub fn turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        self.alarm.acknowledge();
        let mut has_changed = false;
        for _ in 0..MESSAGES_A_TURN {
            if self.monitor.poll_change()?.is_none() {
                break;
            }
            has_changed = true;
        }
        if has_changed {
            self.look(now)?;
        }
        let mut buffer = [0; LONGEST_MESSAGE];
        for _ in 0..MESSAGES_A_TURN {
            let Ok(Some(heard)) = self.icmp.receive(&mut buffer) else { break };
            if Some(heard.interface) == self.link {
                let (source, destination, hop_limit) = (heard.source, heard.destination, heard.hop_limit);
                self.router.handle_message(now, &IpFields { source, destination, hop_limit }, heard.message);
            }
        }
        self.router.handle_timeout(now);
        self.finish(now)
    }

    /// Whether it advertises: the interface has a carrier, and a link-local address.
    #[must_use]
    pub const fn is_advertising(&self) -> bool {
        self.link.is_some()
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.router.counters()
    }

    /// Advertisements that could not be sent.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Ends, with a last advertisement that says so (RFC 4861 section 6.2.5).
    pub fn close(mut self) {
        let now = self.clock.now();
        self.router.stop(now);
        self.send(now);
    }

    /// Looks at the interface, and goes on, begins or pauses.
    fn look(&mut self, now: Instant) -> Result<(), Error> {
        let state = self.netlink.index_of(&self.interface).and_then(|index| self.netlink.interface(index));
        // One that is not there yet may come.
        let state = state.ok().filter(|state| state.has_carrier);
        let mut found = None;
        if let Some(state) = state {
            let own = self.netlink.assigned_addresses()?.into_iter().filter(|on| on.interface == state.index);
            found = own.filter(|on| on.is_usable()).find_map(|on| match on.address {
                IpAddr::V6(address) if address.is_unicast_link_local() => {
                    Some((state.index, address, state.link_address))
                }
                _ => None,
            });
        }
        let Some((index, address, link_address)) = found else {
            if self.link.take().is_some() {
                self.router.handle_link_down(now);
            }
            return Ok(());
        };
        let config = AdvertisingConfig {
            address,
            link_layer_address: link_address.map(LinkLayerAddress).or(self.link_layer_address),
            ..self.router.config().clone()
        };
        if config != *self.router.config() {
            self.router.set_config(now, config)?;
        }
        if self.link != Some(index) {
            // A router hears who asks for routers; while it forwards the kernel has joined by itself.
            let _ = self.icmp.join(ALL_ROUTERS, index);
            self.link = Some(index);
            self.router.handle_link_up(now);
        }
        Ok(())
    }

    fn finish(&mut self, now: Instant) -> Result<(), Error> {
        self.send(now);
        Ok(self.alarm.arm(now, self.router.next_timeout().map(|(at, _)| at))?)
    }

    fn send(&mut self, now: Instant) {
        while let Some(transmit) = self.router.poll_transmit(now) {
            let outgoing = OutgoingIcmpv6 {
                interface: self.link,
                source: transmit.source,
                destination: transmit.destination,
                hop_limit: transmit.hop_limit,
                message: &transmit.message,
            };
            if self.icmp.send(&outgoing).is_err() {
                self.unsent += 1;
            }
        }
    }
}

impl AsFd for RouterAdvertiser {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
