//! Care-of addresses that a mobile node has left, and what may still come back from there.
//!
//! A handover that makes before it breaks leaves packets on the old path: in the queue of a slow link for seconds. What the old path
//! delivers to the mobile node is delivered; what the mobile node sent into its reverse tunnel there would be thrown away at its end, for RFC
//! 3024 (section 4.4) wants a binding with the tunnel's source. So a care-of address counts for some time after another one has replaced it.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;

use crate::v4::{MobilityBinding, Tunnel};

/// Care-of addresses remembered for one mobile node.
const MOST: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Left {
    tunnel: Tunnel,
    until: Instant,
}

/// The care-of addresses that mobile nodes have left.
#[derive(Debug, Default)]
pub(super) struct LeftCareOfAddresses {
    of: BTreeMap<Ipv4Addr, [Option<Left>; MOST]>,
    /// In the order in which they end: all last the same time.
    ends: VecDeque<(Instant, Ipv4Addr)>,
}

impl LeftCareOfAddresses {
    /// `binding` has been replaced by one with another care-of address; it counts for `span`.
    pub(super) fn add(&mut self, now: Instant, binding: &MobilityBinding, span: Duration) {
        if span.is_zero() || !binding.reverse_tunnel {
            return;
        }
        let until = now + span;
        let all = self.of.entry(binding.home_address).or_default();
        let same = |left: &Option<Left>| left.is_none_or(|left| left.tunnel.exit == binding.care_of);
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.rotate_left(1);
            MOST - 1
        });
        all[at] = Some(Left { tunnel: binding.tunnel, until });
        self.ends.push_back((until, binding.home_address));
    }

    /// The mobile node is there again, or nothing of it counts any longer.
    pub(super) fn forget(&mut self, home_address: Ipv4Addr, care_of: Option<Ipv4Addr>) {
        let Some(all) = self.of.get_mut(&home_address) else { return };
        for left in all.iter_mut() {
            *left = left.filter(|left| care_of.is_some_and(|care_of| left.tunnel.exit != care_of));
        }
        if all.iter().all(Option::is_none) {
            self.of.remove(&home_address);
        }
    }

    /// Tunnels to care-of addresses that the mobile node has left.
    pub(super) fn tunnels(&self, home_address: Ipv4Addr) -> impl Iterator<Item = Tunnel> {
        self.of.get(&home_address).into_iter().flatten().flatten().map(|left| left.tunnel)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ends.front().map(|&(at, _)| at)
    }

    /// A mobile node of which something counts no longer at `now`; to be called until `None`.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Ipv4Addr> {
        while let Some(&(_, home_address)) = self.ends.front().filter(|(at, _)| *at <= now) {
            self.ends.pop_front();
            let Some(all) = self.of.get_mut(&home_address) else { continue };
            let before = all.iter().flatten().count();
            for left in all.iter_mut() {
                *left = left.filter(|left| left.until > now);
            }
            let after = all.iter().flatten().count();
            if after == 0 {
                self.of.remove(&home_address);
            }
            if after < before {
                return Some(home_address);
            }
        }
        None
    }
}
