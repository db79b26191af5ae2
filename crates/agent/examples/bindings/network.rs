//! The two hosts.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use careof_lab::{Host, Netlink, Realm, Route, set_sysctl};

use crate::Options;
use crate::error::Error;

/// The home agent.
pub(crate) const AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Who registers.
pub(crate) const WORLD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Addresses of the home network that are mobile nodes'.
pub(crate) const MOST_NODES: u32 = (1 << 20) - 1024;
/// Length of the home network's prefix.
pub(crate) const HOME_NETWORK: &str = "10.0.0.0/12";
/// The first table of an agent, where its routes to home addresses are.
const FIRST_TABLE: u32 = 43_400;

/// The home address of a mobile node.
pub(crate) const fn home_address(node: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0100 + node)
}

/// Its care-of address, when it has moved so many times.
pub(crate) const fn care_of(node: u32, moves: u32) -> Ipv4Addr {
    // 172.16.0.0/12, and 100.64.0.0/10 beyond.
    let network = if moves.is_multiple_of(2) { 0xac10_0001 } else { 0x6440_0001 };
    Ipv4Addr::from_bits(network + node)
}

/// The hosts and what is between them. All of it goes when it is dropped.
pub(crate) struct Network {
    pub(crate) agent: Host,
    pub(crate) world: Host,
    /// Where the daemon keeps its files.
    pub(crate) directory: tempfile::TempDir,
}

impl Network {
    pub(crate) fn build(options: &Options) -> Result<Self, Error> {
        let realm = Realm::enter()?;
        let (agent, world) = (realm.host("agent")?, realm.host("world")?);
        for host in [&agent, &world] {
            host.run(|| {
                for scope in ["all", "default"] {
                    set_sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
                    set_sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1")?;
                }
                // For the metrics, which are scraped from the host itself.
                let mut netlink = Netlink::open()?;
                let loopback = netlink.index_of("lo")?;
                netlink.set_up(loopback)
            })??;
        }
        cable(&agent, &world, "up0", (AGENT, WORLD, 24))?;
        if options.proxy_arp {
            let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            cable(&agent, &world, "lan0", (here, there, 12))?;
        }
        agent.run(|| {
            let mut netlink = Netlink::open()?;
            let interface = netlink.index_of("up0")?;
            netlink.set_route(&Route {
                via: Some(IpAddr::V4(WORLD)),
                ..Route::default_through(interface, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
            })
        })??;
        let directory = tempfile::tempdir().map_err(Error::system("make a directory"))?;
        Ok(Self { agent, world, directory })
    }

    /// Routes to home addresses in the agent's table.
    pub(crate) fn routes(&self) -> Result<usize, Error> {
        let routes = self.agent.run(|| Netlink::open()?.routes(FIRST_TABLE))??;
        Ok(routes.iter().filter(|route| route.prefix_length == 32).count())
    }
}

fn cable(
    one: &Host,
    other: &Host,
    name: &'static str,
    (here, there, length): (Ipv4Addr, Ipv4Addr, u8),
) -> Result<(), Error> {
    let namespace = other.namespace()?;
    one.run(move || Netlink::open()?.add_veth(name, name, namespace.as_fd()))??;
    for (host, address) in [(one, here), (other, there)] {
        host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.add_address(index, address.into(), length)?;
            netlink.set_up(index)
        })??;
    }
    Ok(())
}
