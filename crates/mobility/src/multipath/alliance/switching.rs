//! From one side of a relay to the other: which tunnel a packet goes on in.

use core::net::Ipv4Addr;

use careof_base::Instant;

use super::relay::{Forwarded, Relay, RelayDrop};

/// A side of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The cluster, where its clients are.
    Cluster,
    /// The link that it lends.
    Link,
}

/// A packet of IP within IP that has come to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Where it came in.
    pub side: Side,
    /// Who put it into the tunnel: the source of the outer header.
    pub entry: Ipv4Addr,
    /// The source of the inner header.
    pub source: Ipv4Addr,
    /// The destination of the inner header.
    pub destination: Ipv4Addr,
    /// Bytes within the outer header.
    pub len: u32,
}

/// The tunnel, again of IP within IP, that a packet goes on in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Onward {
    /// Where it leaves: never where it came in.
    pub side: Side,
    /// The source of the outer header: the relay's address on that side.
    pub entry: Ipv4Addr,
    /// The destination of the outer header.
    pub exit: Ipv4Addr,
}

impl Relay {
    /// Decides by which tunnel a packet goes on. It leaves on the other side: towards the cluster to its client, and towards the link to
    /// where the inner header says, which is the client's home agent.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn switch(&mut self, now: Instant, packet: &Incoming) -> Result<Onward, RelayDrop> {
        let &Incoming { side, entry, source, destination, len } = packet;
        let forwarded = match side {
            Side::Link => self.forward_inward(now, destination, len)?,
            Side::Cluster => self.forward_outward(now, entry, source, destination, len)?,
        };
        Ok(match forwarded {
            Forwarded::ToClient(client) => {
                Onward { side: Side::Cluster, entry: self.config().cluster, exit: client }
            }
            Forwarded::ByOwnLink => {
                Onward { side: Side::Link, entry: self.config().outside, exit: destination }
            }
        })
    }
}
