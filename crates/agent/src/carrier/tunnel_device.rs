//! The tunnel device: where packets for tunnels leave the host, and those out of tunnels come in.

use std::net::IpAddr;

use careof_lab::{Error, OffloadTun};

use super::host_changes::HostChanges;
use super::parameters::Parameters;
use super::{Role, Setup};

/// Packets that wait in the kernel while the carrier does something else.
const QUEUE: u32 = 1000;

/// Makes the device, ready to be used; returns it with its index.
pub(super) fn make(
    setup: &Setup,
    host: &mut HostChanges,
    parameters: &mut Parameters,
) -> Result<(OffloadTun, u32), Error> {
    let options = setup.host();
    let name = &options.tunnel_device;
    let tun = if options.offloads { OffloadTun::open(name)? } else { OffloadTun::open_plain(name)? };
    let netlink = host.netlink();
    let index = netlink.index_of(name)?;
    // Otherwise it would be asked for IPv6 routers.
    parameters.set(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
    parameters.prepare_tunnel_device(name, setup.role() != Role::Mobile)?;
    netlink.set_mtu(index, setup.tunnel_mtu())?;
    netlink.set_transmit_queue(index, QUEUE)?;
    if let Some(home_address) = setup.home_address() {
        netlink.add_address(index, IpAddr::V4(home_address), 32)?;
    }
    netlink.set_up(index)?;
    Ok((tun, index))
}
