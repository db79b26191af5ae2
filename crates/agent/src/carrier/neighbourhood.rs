//! In whose frames messages came, for links on which nobody may be asked by ARP (RFC 5944 section 4.6).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use careof_lab::{Error, NeighbourWatch};
use careof_mobility::v4::REGISTRATION_PORT;

use super::Role;

/// Senders that are remembered. What is needed is used as soon as the message has been read; with more all are
/// forgotten, and messages come again.
const MOST: usize = 4096;
/// Senders taken at a time.
const AT_A_TIME: usize = 1024;

/// Link addresses of those who sent messages lately.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    /// `None` for a home agent: its mobile nodes are on their home link when they are near, and answer ARP there.
    watch: Option<NeighbourWatch>,
    heard: BTreeMap<(u32, Ipv4Addr), [u8; 6]>,
}

impl Neighbourhood {
    pub(super) fn open(role: Role) -> Result<Self, Error> {
        let watch = match role {
            Role::Home => None,
            Role::Foreign | Role::Mobile => Some(NeighbourWatch::open(REGISTRATION_PORT)?),
        };
        Ok(Self { watch, heard: BTreeMap::new() })
    }

    /// Takes in who has sent something; to be called before the messages are read. A failure leaves what is known:
    /// the kernel may know more.
    pub(super) fn listen(&mut self) {
        let Some(watch) = &self.watch else { return };
        for _ in 0..AT_A_TIME {
            let Ok(Some(seen)) = watch.receive() else { break };
            if self.heard.len() >= MOST {
                self.heard.clear();
            }
            self.heard.insert((seen.interface, seen.address), seen.link_address);
        }
    }

    /// The link address from which `address` has sent lately.
    pub(super) fn link_address(&self, interface: u32, address: Ipv4Addr) -> Option<[u8; 6]> {
        self.heard.get(&(interface, address)).copied()
    }
}
