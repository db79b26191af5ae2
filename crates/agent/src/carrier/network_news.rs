//! What the kernel has told of the network, as the carriers of both versions take it in.

use std::net::IpAddr;

use careof_lab::{NetlinkMonitor, NetworkChange};

use super::Error;
use super::host_changes::HostChanges;
use super::interfaces::{InterfaceChange, Interfaces};

/// Changes of the network taken in one turn.
const CHANGES_A_TURN: usize = 256;

/// What has been told since it was read last.
#[derive(Debug, Default)]
pub(super) struct NetworkNews {
    /// What it means for the agent's interfaces.
    pub(super) interfaces: Vec<InterfaceChange>,
    /// Something about a link, any link.
    pub(super) links: bool,
    /// Something about addresses, or about routes that came.
    pub(super) addresses: bool,
    /// Addresses that were removed, each with the index of its interface.
    pub(super) removed: Vec<(u32, IpAddr)>,
    /// Neighbours that do not answer, likewise; told only to who asks.
    pub(super) failed_neighbours: Vec<(u32, IpAddr)>,
    /// How often news were lost: everything may be otherwise.
    pub(super) overruns: u64,
}

impl NetworkNews {
    /// Reads what there is. What the agent has put into the kernel and is not there any longer, or may not be, is noted by `host`.
    pub(super) fn read(
        monitor: &mut NetlinkMonitor,
        host: &mut HostChanges,
        interfaces: &mut Interfaces,
    ) -> Result<Self, Error> {
        let mut news = Self::default();
        for _ in 0..CHANGES_A_TURN {
            let Some(change) = monitor.poll_change()? else { break };
            match &change {
                NetworkChange::Overrun => news.overruns += 1,
                NetworkChange::Link { state } => {
                    if !state.is_up {
                        // The kernel removes its routes, in whichever table, and does not say so.
                        host.doubt_interface(state.index);
                    }
                    interfaces.take_in(&change, &mut news.interfaces);
                    news.links = true;
                }
                NetworkChange::LinkRemoved { index, .. } => {
                    host.forget_interface(*index);
                    interfaces.take_in(&change, &mut news.interfaces);
                    news.links = true;
                }
                NetworkChange::AddressRemoved { index, address, .. } => {
                    host.doubt_address(*index, *address);
                    news.removed.push((*index, *address));
                    news.addresses = true;
                }
                NetworkChange::RouteRemoved { route } => host.note_removal(route),
                NetworkChange::NeighbourFailed { index, address } => {
                    news.failed_neighbours.push((*index, *address));
                }
                _ => news.addresses = true,
            }
        }
        Ok(news)
    }

    /// Whether news were lost.
    pub(super) const fn lost_some(&self) -> bool {
        self.overruns > 0
    }
}
