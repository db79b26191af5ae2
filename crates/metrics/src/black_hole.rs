//! Tunnels that swallow large packets, as they showed.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use careof_base::Instant;
use serde::Serialize;

use crate::seconds::instant;

/// A black hole that an assist met and worked around; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlackHoleSummary {
    /// The node at which the tunnel begins.
    pub node: String,
    /// Where its path leads: the care-of address, or the interface.
    pub towards: String,
    /// The flow by which it showed.
    pub flow: String,
    /// When.
    #[serde(rename = "at_s", serialize_with = "instant")]
    pub at: Instant,
    /// Size of the outer datagrams that did not get through.
    pub failed_bytes: u16,
    /// The MTU that the path was taken to have from then on.
    pub assumed_mtu_bytes: u16,
    /// Messages that told senders what fits.
    pub senders_told: u64,
    /// Packets that went on in fragments.
    pub packets_in_fragments: u64,
}

/// Messages that a packet was too large which a link filtered; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilteredSummary {
    /// The one-way link that filtered them.
    pub link: String,
    /// Whom the packets were for: of tunnelled ones the tunnel's end.
    pub towards: String,
    /// What would have fitted, as they said.
    pub mtu_bytes: u16,
    /// How many.
    pub messages: u64,
    /// When the first was filtered.
    #[serde(rename = "first_at_s", serialize_with = "instant")]
    pub first_at: Instant,
}

/// What is noted of black holes in a run.
#[derive(Clone, Debug, Default)]
pub struct BlackHoles {
    met: Vec<BlackHoleSummary>,
    filtered: BTreeMap<(String, String, u16), (u64, Instant)>,
}

impl BlackHoles {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An assist takes the path of a tunnel to have a smaller MTU from now on.
    pub fn on_assumed(&mut self, at: Instant, place: (&str, String), flow: &str, failed: u16, mtu: u16) {
        let (node, towards) = place;
        self.met.push(BlackHoleSummary {
            node: node.into(),
            towards,
            flow: flow.into(),
            at,
            failed_bytes: failed,
            assumed_mtu_bytes: mtu,
            senders_told: 0,
            packets_in_fragments: 0,
        });
    }

    /// A sender was told what fits.
    pub fn on_told(&mut self, node: &str, towards: &str) {
        if let Some(hole) = self.latest(node, towards) {
            hole.senders_told += 1;
        }
    }

    /// A packet went on in fragments.
    pub fn on_fragments(&mut self, node: &str, towards: &str) {
        if let Some(hole) = self.latest(node, towards) {
            hole.packets_in_fragments += 1;
        }
    }

    /// A link filtered a message that a packet `towards` an address was too large.
    pub fn on_filtered(&mut self, at: Instant, link: &str, towards: String, mtu: u16) {
        let (messages, _) = self.filtered.entry((link.into(), towards, mtu)).or_insert((0, at));
        *messages += 1;
    }

    fn latest(&mut self, node: &str, towards: &str) -> Option<&mut BlackHoleSummary> {
        self.met.iter_mut().rev().find(|hole| hole.node == node && hole.towards == towards)
    }

    /// What was met, in order, and what was filtered, by link.
    #[must_use]
    pub fn summaries(&self) -> (Vec<BlackHoleSummary>, Vec<FilteredSummary>) {
        let filtered =
            self.filtered.iter().map(|((link, towards, mtu), (messages, first_at))| FilteredSummary {
                link: link.clone(),
                towards: towards.clone(),
                mtu_bytes: *mtu,
                messages: *messages,
                first_at: *first_at,
            });
        (self.met.clone(), filtered.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_counts_for_the_last_assumption_about_the_path() {
        let mut holes = BlackHoles::new();
        let at = Instant::from_secs;
        holes.on_told("home-agent", "10.0.3.2");
        holes.on_assumed(at(3), ("home-agent", "10.0.3.2".into()), "download", 1_500, 1_492);
        holes.on_told("home-agent", "10.0.3.2");
        holes.on_assumed(at(4), ("home-agent", "10.0.3.2".into()), "download", 1_492, 1_006);
        holes.on_fragments("home-agent", "10.0.3.2");
        holes.on_fragments("home-agent", "10.0.4.2");
        let (met, _) = holes.summaries();
        let done: Vec<_> = met.iter().map(|hole| (hole.senders_told, hole.packets_in_fragments)).collect();
        assert_eq!(done, [(1, 0), (0, 1)]);
    }

    #[test]
    fn filtered_messages_are_counted_by_link_destination_and_what_they_said() {
        let mut holes = BlackHoles::new();
        for (at, mtu) in [(1, 1_400), (2, 1_400), (3, 1_300)] {
            holes.on_filtered(Instant::from_secs(at), "path.up", "10.0.3.2".into(), mtu);
        }
        let (_, filtered) = holes.summaries();
        let told: Vec<_> = filtered.iter().map(|one| (one.mtu_bytes, one.messages, one.first_at)).collect();
        assert_eq!(told, [(1_300, 1, Instant::from_secs(3)), (1_400, 2, Instant::from_secs(1))]);
    }
}
