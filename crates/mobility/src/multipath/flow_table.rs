//! The flows that are dispersed, as the sending end knows them.
//!
//! A table of fixed size: a flow has its place in one of a few neighbouring slots, and a new one takes the place of the one that
//! was silent longest. What a flow is called on the wire is its slot and how often that has changed hands, so that a flow that
//! comes back after its place was taken is a new one for the other end, too, whose numbers begin anew.

use alloc::vec::Vec;

use careof_base::Instant;

use super::auto::Pressure;
use super::path_id::PathId;

/// Neighbouring slots that a flow may be in.
const WAYS: usize = 4;

/// A flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    key: u64,
    generation: u16,
    is_used: bool,
    begun_at: Instant,
    last: Instant,
    /// Packets so far.
    next: u32,
    /// The path of its latest packet.
    pub(super) path: Option<PathId>,
    /// Until when packets of it may be on other paths than that.
    pub(super) split_until: Instant,
    /// When it last changed its path.
    pub(super) moved_at: Instant,
    /// `ECF`: whether it waits for the fastest path.
    pub(super) waits: bool,
    /// `auto`: what was sent while the flow's path was full and another one was not.
    pub(super) full: Pressure,
    /// `auto`: what was sent while the flow's path lost packets by itself that no copy took the place of.
    pub(super) lossy: Pressure,
    /// `auto`: whether it is split.
    pub(super) is_split: bool,
}

impl Flow {
    /// What it is known by.
    pub(super) const fn key(&self) -> u64 {
        self.key
    }

    /// When it had its first packet.
    pub(super) const fn begun_at(&self) -> Instant {
        self.begun_at
    }

    /// The number of the packet that is sent now.
    pub(super) fn take_sequence(&mut self) -> u32 {
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        sequence
    }
}

/// All flows.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    slots: Vec<Flow>,
}

impl FlowTable {
    /// The most slots: a label has 16 bits for them.
    pub(super) const MOST: usize = 1 << 16;

    /// Room for at least so many flows, within 4 and [`Self::MOST`]. Generations begin with `start`, so that a sender that begins
    /// anew calls its flows otherwise than before.
    pub(super) fn new(flows: usize, start: u16) -> Self {
        let count = flows.clamp(WAYS, Self::MOST).next_power_of_two();
        let slots = alloc::vec![Flow { generation: start, ..Flow::default() }; count];
        Self { slots }
    }

    /// The flow with this key, and what it is called on the wire.
    pub(super) fn get(&mut self, now: Instant, key: u64) -> (&mut Flow, u32) {
        let sets = self.slots.len() / WAYS;
        // Multiplicative hashing: the upper bits depend on all of the key.
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % sets * WAYS;
        let slots = first..first + WAYS;
        let is_its = |flow: &Flow| flow.is_used && flow.key == key;
        let ways = self.slots.get(slots.clone()).unwrap_or_default();
        let found = ways.iter().position(is_its);
        let oldest = || {
            let ages = ways.iter().enumerate();
            ages.min_by_key(|(_, flow)| (flow.is_used, flow.last)).map_or(0, |(way, _)| way)
        };
        let index = first + found.unwrap_or_else(oldest);
        // The index is below the length: there are `WAYS` slots to a set.
        let Some(flow) = self.slots.get_mut(index) else { unreachable!("a slot beyond the table") };
        if found.is_none() {
            let generation = flow.generation.wrapping_add(1);
            *flow = Flow { key, generation, is_used: true, begun_at: now, ..Flow::default() };
        }
        flow.last = now;
        let label = u32::from(flow.generation) << 16 | index as u32;
        (flow, label)
    }

    /// Flows that had a packet since `since`, and the path of the latest.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_keeps_its_name_and_its_numbers() {
        let mut table = FlowTable::new(64, 7);
        let (flow, label) = table.get(Instant::ZERO, 42);
        assert_eq!([flow.take_sequence(), flow.take_sequence()], [0, 1]);
        for other in 0..3 {
            table.get(Instant::from_secs(1), other);
        }
        let (flow, again) = table.get(Instant::from_secs(2), 42);
        assert_eq!((flow.take_sequence(), again), (2, label));
    }

    #[test]
    fn a_flow_whose_place_was_taken_comes_back_under_another_name() {
        let mut table = FlowTable::new(4, 0);
        let (_, label) = table.get(Instant::ZERO, 42);
        for other in 0..4 {
            table.get(Instant::from_secs(1 + other), other);
        }
        let (flow, again) = table.get(Instant::from_secs(9), 42);
        assert_eq!(flow.take_sequence(), 0);
        assert_ne!(again, label);
        assert_eq!(table.len(), 4, "the table does not grow");
    }
}
