//! From one side of a relay to the other: which tunnel a packet goes on in.

use core::net::Ipv4Addr;

use careof_base::Instant;

use super::relay::{Ally, Relay, RelayDrop};

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
    /// The time to live of the outer header, hops.
    pub ttl: u8,
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
    /// The time to live of the outer header, hops: one less than it came with, as a packet within a tunnel loses none by which a loop
    /// could end.
    pub ttl: u8,
}

/// Where a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// To this client in the cluster, and nowhere else.
    ToClient(Ipv4Addr),
    /// By the relay's own link, not through another relay.
    ByOwnLink,
}

impl Relay {
    /// Decides by which tunnel a packet goes on. It leaves on the other side: towards the cluster to its client, and towards the link to
    /// where the inner header says, which is the client's home agent.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn switch(&mut self, now: Instant, packet: &Incoming) -> Result<Onward, RelayDrop> {
        let &Incoming { side, entry, source, destination, ttl, len } = packet;
        let Some(ttl) = ttl.checked_sub(1).filter(|ttl| *ttl > 0) else {
            return Err(self.refuse(RelayDrop::Expired));
        };
        let forwarded = match side {
            Side::Link => self.forward_inward(now, entry, destination, len)?,
            Side::Cluster => self.forward_outward(now, entry, source, destination, len)?,
        };
        Ok(match forwarded {
            Forwarded::ToClient(client) => {
                Onward { side: Side::Cluster, entry: self.config().cluster, exit: client, ttl }
            }
            Forwarded::ByOwnLink => {
                Onward { side: Side::Link, entry: self.config().outside, exit: destination, ttl }
            }
        })
    }

    /// A packet of `len` bytes has come by the relay's link, out of a tunnel that begins at `entry`, and is for `destination`.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn forward_inward(
        &mut self,
        now: Instant,
        entry: Ipv4Addr,
        destination: Ipv4Addr,
        len: u32,
    ) -> Result<Forwarded, RelayDrop> {
        let rate = self.config().client_rate;
        let Some(ally) = self.allies.get_mut(&destination).filter(|ally| now < ally.record.expires) else {
            return Err(self.refuse(RelayDrop::NoAlly));
        };
        if entry != ally.home_agent {
            return Err(self.refuse(RelayDrop::NotHomeAgent));
        }
        let Ally { record, meters: [inward, _], .. } = ally;
        if !inward.take(now, len, rate) {
            return Err(self.refuse(RelayDrop::OverRate));
        }
        count(&mut record.inward, len);
        let client = record.client;
        self.end_if_spent(now, destination);
        Ok(Forwarded::ToClient(client))
    }

    /// A packet of `len` bytes has come from the cluster address `client`, from `source` to `destination`. Through a tunnel to the home
    /// agent these are of the inner header.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn forward_outward(
        &mut self,
        now: Instant,
        client: Ipv4Addr,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        len: u32,
    ) -> Result<Forwarded, RelayDrop> {
        let rate = self.config().client_rate;
        let leads_back = self.config().cluster_network.contains(destination)
            || destination == self.config().outside
            || self.allies.contains_key(&destination);
        let is_its = |ally: &&mut Ally| ally.record.client == client && now < ally.record.expires;
        let Some(ally) = self.allies.get_mut(&source).filter(is_its) else {
            return Err(self.refuse(RelayDrop::NoAlly));
        };
        if leads_back {
            return Err(self.refuse(RelayDrop::WouldLoop));
        }
        if destination != ally.home_agent {
            return Err(self.refuse(RelayDrop::NotHomeAgent));
        }
        let Ally { record, meters: [_, outward], .. } = ally;
        if !outward.take(now, len, rate) {
            return Err(self.refuse(RelayDrop::OverRate));
        }
        count(&mut record.outward, len);
        self.end_if_spent(now, source);
        Ok(Forwarded::ByOwnLink)
    }
}

fn count(counts: &mut (u64, u64), len: u32) {
    counts.0 = counts.0.saturating_add(1);
    counts.1 = counts.1.saturating_add(u64::from(len));
}
