//! Whom the link layer of a base station has in its cell.

use alloc::collections::BTreeSet;
use core::net::Ipv4Addr;

/// Mobile nodes in a cell: as many as there is room for.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    attached: BTreeSet<Ipv4Addr>,
    room: usize,
}

impl Cell {
    pub(super) const fn new(room: usize) -> Self {
        Self { attached: BTreeSet::new(), room }
    }

    pub(super) fn has(&self, mobile: Ipv4Addr) -> bool {
        self.attached.contains(&mobile)
    }

    pub(super) fn attach(&mut self, mobile: Ipv4Addr) {
        if self.attached.len() < self.room {
            self.attached.insert(mobile);
        }
    }

    pub(super) fn detach(&mut self, mobile: Ipv4Addr) {
        self.attached.remove(&mobile);
    }
}
