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

use crate::assist::Assist;
use crate::context::{Context, Outbox};
use crate::keeping::Held;
use crate::paths::{LONGEST_OUTAGE, PathEvent};
use crate::timers::Owner;
use crate::{DropReason, Fate, Wake};

/// Lets packets wait while their mobile nodes have no path.
#[derive(Debug, Default)]
pub(crate) struct BufferForwardAssist {
    mobiles: BTreeMap<IpAddr, Buffer>,
}

#[derive(Debug)]
struct Buffer {
    waiting: VecDeque<Held>,
    /// Until when at the latest.
    until: Instant,
}

impl Assist for BufferForwardAssist {
    type State = ();

    fn on_datagram(&mut self, cx: &mut Context<'_>, mobile: IpAddr, size: u16) -> Fate {
        let Some(config) = &cx.config.buffer_forward else { return Fate::Pass };
        let Some(buffer) = self.mobiles.get_mut(&mobile) else { return Fate::Pass };
        let token = if buffer.waiting.len() < config.packets { cx.store.take(size) } else { None };
        let Some(token) = token else {
            cx.counters.not_kept += 1;
            return Fate::Drop(DropReason::QueueFull);
        };
        cx.counters.held += 1;
        buffer.waiting.push_back(Held { token, size });
        Fate::Hold(token)
    }

    fn on_mobile_path(&mut self, cx: &mut Context<'_>, mobile: IpAddr, event: &PathEvent) {
        let Some(config) = &cx.config.buffer_forward else { return };
        let begin = match event {
            PathEvent::Lost => cx.now,
            PathEvent::Announced { ends_at, .. } if config.from_notice => *ends_at,
            PathEvent::Announced { .. } | PathEvent::Copies { .. } => return,
            PathEvent::Usable(_) | PathEvent::FalseAlarm => return self.forward(cx, mobile),
        };
        let until = begin + LONGEST_OUTAGE;
        let waiting = VecDeque::new();
        self.mobiles.entry(mobile).or_insert(Buffer { waiting, until }).until = until;
        cx.timers.set(Owner::Mobile(mobile), Wake::Queue, until);
    }

    fn on_mobile_timeout(&mut self, cx: &mut Context<'_>, mobile: IpAddr, wake: Wake) {
        if wake == Wake::Queue && self.mobiles.get(&mobile).is_some_and(|buffer| buffer.until <= cx.now) {
            self.forward(cx, mobile);
        }
    }

    fn close(&mut self, outbox: &mut Outbox) {
        for buffer in core::mem::take(&mut self.mobiles).into_values() {
            buffer.leave(outbox);
        }
    }
}

impl BufferForwardAssist {
    /// All of them leave, and none waits from now on.
    fn forward(&mut self, cx: &mut Context<'_>, mobile: IpAddr) {
        if let Some(buffer) = self.mobiles.remove(&mobile) {
            buffer.leave(cx.outbox);
            cx.timers.stop(Owner::Mobile(mobile), Wake::Queue);
        }
    }
}

impl Buffer {
    fn leave(self, outbox: &mut Outbox) {
        self.waiting.into_iter().for_each(|held| outbox.let_go(held, None));
    }
}
