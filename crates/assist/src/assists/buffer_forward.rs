//! A buffer in the agent while there is no path ("buffer" of the paper on micro-mobility behind this project: HAWAII's
//! forwarding schemes and Caceres and Padmanabhan 1996 have it).
//!
//! - **Where.** At the home agent, for all packets to the mobile node; at a foreign agent or base station for the time in which its
//!   own link is away, for there is no way here to the next one. No end host changes.
//! - **What it needs.** The news that the path is lost, or will be; and that one is usable.
//! - **What it does.** From that news on every packet to the mobile node waits, up to a number; then what comes is dropped. When a path
//!   is usable, all of them leave at once, in order. It keeps no copies: what was in flight when the path was lost stays lost.
//! - **Late, missing or wrong.** Late news cost what was sent in between. Without any it does nothing. An announcement holds up the
//!   mobile node's packets until the path that ends has ended and another one is there; a false one, until that is known. Longer than
//!   [`LONGEST_OUTAGE`] nothing waits.
//! - **Risks.** The sender has timed out and repeats what waits here: the receiver gets both, and answers the second with duplicate
//!   acknowledgements, which cost a sender of that time its window again. That is what the paper finds for long handovers, and what
//!   `replay` avoids by its order and by what it drops. The burst may overflow the new path's queue.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use careof_base::Instant;

use crate::context::Outbox;
use crate::keeping::{Held, Store};
use crate::paths::{LONGEST_OUTAGE, PathEvent};
use crate::{BufferForward, Counters, DropReason, Fate};

/// What waits for the mobile nodes without a path.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    mobiles: BTreeMap<IpAddr, Buffer>,
}

#[derive(Debug)]
struct Buffer {
    waiting: VecDeque<Held>,
    /// Until when at the latest.
    until: Instant,
}

impl Buffers {
    /// A packet of `size` bytes goes to the mobile node: whether it waits.
    pub(crate) fn on_packet(
        &mut self,
        config: &BufferForward,
        mobile: IpAddr,
        size: u16,
        store: &mut Store,
        counters: &mut Counters,
    ) -> Fate {
        let Some(buffer) = self.mobiles.get_mut(&mobile) else { return Fate::Pass };
        let token = if buffer.waiting.len() < config.packets { store.take(size) } else { None };
        let Some(token) = token else {
            counters.not_kept += 1;
            return Fate::Drop(DropReason::QueueFull);
        };
        counters.held += 1;
        buffer.waiting.push_back(Held { token, size });
        Fate::Hold(token)
    }

    /// Something happened to the path of the mobile node.
    pub(crate) fn on_path(
        &mut self,
        now: Instant,
        config: &BufferForward,
        mobile: IpAddr,
        event: &PathEvent,
        outbox: &mut Outbox,
    ) {
        let begin = match event {
            PathEvent::Lost => now,
            PathEvent::Announced { ends_at, .. } if config.from_notice => *ends_at,
            PathEvent::Announced { .. } => return,
            PathEvent::Usable(_) | PathEvent::FalseAlarm => return self.forward(mobile, outbox),
        };
        let until = begin + LONGEST_OUTAGE;
        let waiting = VecDeque::new();
        self.mobiles.entry(mobile).or_insert(Buffer { waiting, until }).until = until;
    }

    /// All of them leave, and none waits from now on.
    fn forward(&mut self, mobile: IpAddr, outbox: &mut Outbox) {
        if let Some(buffer) = self.mobiles.remove(&mobile) {
            buffer.waiting.into_iter().for_each(|held| outbox.let_go(held, None));
        }
    }

    /// Does what is due for a mobile node.
    pub(crate) fn serve(&mut self, now: Instant, mobile: IpAddr, outbox: &mut Outbox) {
        if self.wake_at(mobile).is_some_and(|until| until <= now) {
            self.forward(mobile, outbox);
        }
    }

    /// When to serve it next.
    pub(crate) fn wake_at(&self, mobile: IpAddr) -> Option<Instant> {
        self.mobiles.get(&mobile).map(|buffer| buffer.until)
    }

    /// Lets everything go.
    pub(crate) fn close(&mut self, outbox: &mut Outbox) {
        while let Some((&mobile, _)) = self.mobiles.first_key_value() {
            self.forward(mobile, outbox);
        }
    }
}
