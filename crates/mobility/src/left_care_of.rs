//! Care-of addresses that a mobile node has left, and what may still come back from there.
//!
//! A handover that makes before it breaks leaves packets on the old path: in the queue of a slow link for seconds. What the old path
//! delivers to the mobile node is delivered; what the mobile node sent into its reverse tunnel there would be thrown away at its end, for RFC
//! 3024 (section 4.4) wants a binding with the tunnel's source. So a care-of address counts for some time after another one has replaced it.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use careof_base::Instant;

/// Care-of addresses remembered for one mobile node.
const MOST: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Left<A, T> {
    care_of: A,
    tunnel: T,
    until: Instant,
}

/// The care-of addresses that mobile nodes have left, with the tunnels there; `A` is the protocol's address, `T` its tunnel.
#[derive(Debug)]
pub(crate) struct LeftCareOfAddresses<A, T> {
    of: BTreeMap<A, [Option<Left<A, T>>; MOST]>,
    /// In the order in which they end: all last the same time.
    ends: VecDeque<(Instant, A)>,
}

impl<A, T> Default for LeftCareOfAddresses<A, T> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), ends: VecDeque::new() }
    }
}

impl<A: Ord + Copy, T: Copy> LeftCareOfAddresses<A, T> {
    /// The binding of `home_address` with `care_of`, to which `tunnel` led, has been replaced by one with another care-of address;
    /// it counts for `span`.
    pub(crate) fn add(&mut self, now: Instant, home_address: A, (care_of, tunnel): (A, T), span: Duration) {
        if span.is_zero() {
            return;
        }
        let until = now + span;
        let all = self.of.entry(home_address).or_insert([None; MOST]);
        let same = |left: &Option<Left<A, T>>| left.is_none_or(|left| left.care_of == care_of);
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.rotate_left(1);
            MOST - 1
        });
        all[at] = Some(Left { care_of, tunnel, until });
        self.ends.push_back((until, home_address));
    }

    /// The mobile node is there again, or nothing of it counts any longer.
    pub(crate) fn forget(&mut self, home_address: A, care_of: Option<A>) {
        let Some(all) = self.of.get_mut(&home_address) else { return };
        for left in all.iter_mut() {
            *left = left.filter(|left| care_of.is_some_and(|care_of| left.care_of != care_of));
        }
        if all.iter().all(Option::is_none) {
            self.of.remove(&home_address);
        }
    }

    /// Tunnels to care-of addresses that the mobile node has left.
    pub(crate) fn tunnels(&self, home_address: A) -> impl Iterator<Item = T> {
        self.of.get(&home_address).into_iter().flatten().flatten().map(|left| left.tunnel)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.ends.front().map(|&(at, _)| at)
    }

    /// A mobile node of which something counts no longer at `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<A> {
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
