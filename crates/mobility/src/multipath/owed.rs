//! Packets that the other end has not confirmed, kept for the case that their path goes out.

use alloc::collections::VecDeque;

use careof_wire::tunnel::MultipathPayload;

use super::path_id::{MAX_PATHS, PathId, PathSet};
use super::wire_time::is_before;

/// How much is kept for a path that may go out, of all paths together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Packets; with 0 nothing is kept, and what was on a path that goes out is lost.
    pub packets: usize,
    /// Bytes.
    pub bytes: u64,
}

impl Default for ReplayConfig {
    /// 8 MiB, as much as a [`super::Resequencer`] holds by default.
    fn default() -> Self {
        Self { packets: 8192, bytes: 8 << 20 }
    }
}

/// A packet that was put on one path.
#[derive(Clone, Debug)]
pub(super) struct Owed<P> {
    pub(super) path_sequence: u32,
    pub(super) flow: u32,
    pub(super) sequence: u32,
    pub(super) len: u32,
    pub(super) payload: MultipathPayload,
    pub(super) allowed: PathSet,
    pub(super) packet: P,
}

/// All that is kept, by path, each in the order of sending.
#[derive(Debug)]
pub(super) struct OwedPackets<P> {
    config: ReplayConfig,
    paths: [VecDeque<Owed<P>>; MAX_PATHS],
    packets: usize,
    bytes: u64,
}

impl<P> OwedPackets<P> {
    pub(super) fn new(config: ReplayConfig) -> Self {
        Self { config, paths: Default::default(), packets: 0, bytes: 0 }
    }

    pub(super) const fn keeps(&self) -> bool {
        self.config.packets > 0 && self.config.bytes > 0
    }

    /// Packets and bytes that are kept.
    pub(super) const fn holds(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    fn forget_first(&mut self, path: PathId) -> bool {
        let first = self.paths.get_mut(path.index()).and_then(VecDeque::pop_front);
        let Some(first) = first else { return false };
        self.packets -= 1;
        self.bytes -= u64::from(first.len);
        true
    }

    /// Keeps a packet; how many others had to go, those of the path that has most first.
    pub(super) fn keep(&mut self, path: PathId, owed: Owed<P>) -> u64 {
        let Some(place) = self.paths.get_mut(path.index()) else { return 0 };
        self.packets += 1;
        self.bytes += u64::from(owed.len);
        place.push_back(owed);
        let mut gone = 0;
        while self.packets > self.config.packets || self.bytes > self.config.bytes {
            let fullest = PathId::all().max_by_key(|path| self.paths.get(path.index()).map(VecDeque::len));
            if !fullest.is_some_and(|path| self.forget_first(path)) {
                break;
            }
            gone += 1;
        }
        gone
    }

    /// Packets up to `highest` have come, or were overtaken and are lost: TCP finds that out sooner than anybody here.
    pub(super) fn confirmed(&mut self, path: PathId, highest: u32) {
        while self
            .paths
            .get(path.index())
            .and_then(VecDeque::front)
            .is_some_and(|owed| !is_before(highest, owed.path_sequence))
        {
            self.forget_first(path);
        }
    }

    /// What was put on a path that goes out.
    pub(super) fn take(&mut self, path: PathId) -> VecDeque<Owed<P>> {
        let taken = self.paths.get_mut(path.index()).map(core::mem::take).unwrap_or_default();
        self.packets -= taken.len();
        self.bytes -= taken.iter().map(|owed| u64::from(owed.len)).sum::<u64>();
        taken
    }
}
