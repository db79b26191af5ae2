//! Duplicates of the last acknowledgement on reconnection (Caceres and Iftode 1995).
//!
//! Three duplicate acknowledgements have a sender repeat what is missing at once, instead of when its timer goes off (RFC 5681 section
//! 3.2). After a short outage, before that timer has gone off, they save the rest of the timeout.
//!
//! - **Where.** On the mobile node, for downloads towards the peer and for uploads into its own host; elsewhere for what passes. No
//!   end host changes.
//! - **What it needs.** To know of the outage: that the path was lost, and when it is usable. Nothing is sent after a handover without
//!   an outage.
//! - **What it does.** When a path is usable after an outage of at most [`crate::FastRetransmit::longest_outage`], it injects
//!   [`crate::FastRetransmit::acks`] copies of the last acknowledgement, once a handover.
//! - **Route optimisation.** A peer that sends straight (RFC 6275) is told when it has acknowledged the new care-of address, not at the home
//!   registration: what it repeats sooner goes to the old one, and after that no copy wakes it. The outage is that of the peer, then.
//! - **Late, missing or wrong.** Late or missing: the timer has gone off, or will. An outage in which nothing was lost is followed by a
//!   repetition too much, and the sender halves its window for it.
//! - **Risks.** After a timeout the copies wake nobody; and SACK blocks that the sender has not seen make one with F-RTO (RFC 5682)
//!   take the timeout for spurious, and leave the hole until the next one: hence the limit on the outage, and
//!   [`crate::Sack::None`]. Where the window of the last acknowledgement is not what is sent now (`window-clamp`), the first copy is
//!   an update of the window and no duplicate.

use crate::acknowledgement::{Wanted, Window};
use crate::assist::Assist;
use crate::context::Context;
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::{Kind, Towards};

/// Injects duplicates of the last acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct FastRetransmitAssist;

impl Assist for FastRetransmitAssist {
    type State = ();

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut (), event: &PathEvent) {
        if flow.peer_awaits.is_none() {
            self.on_peer_updated(cx, flow, state, event);
        }
    }

    fn on_peer_updated(&mut self, cx: &mut Context<'_>, flow: &mut Flow, _state: &mut (), event: &PathEvent) {
        let (Some(config), PathEvent::Usable(usable)) = (cx.config.fast_retransmit, event) else { return };
        let is_short =
            usable.outage.is_some_and(|outage| config.longest_outage.is_none_or(|longest| outage <= longest));
        if !is_short {
            return;
        }
        for towards in [Towards::Mobile, Towards::Peer] {
            if may_wait(cx, flow, towards) {
                let wanted = Wanted {
                    towards,
                    window: Window::AsLast,
                    sack: config.sack,
                    assist: Kind::FastRetransmit,
                    what: "duplicate-acks",
                };
                wanted.inject(cx, flow, config.acks);
            }
        }
    }
}

/// Whether the sender `towards` which acknowledgements would go may wait for one. Where its data pass here before the path that was
/// lost, it does if some are not acknowledged; where they pass behind it, what was lost was not seen, and it is enough that it has
/// sent data at all.
fn may_wait(cx: &Context<'_>, flow: &Flow, towards: Towards) -> bool {
    let of = towards.back();
    let stream = flow.stream(of);
    let Some((una, next)) = stream.una.zip(stream.next) else { return false };
    if of == cx.config.place.keeps() {
        una.is_before(next)
    } else {
        stream.syn.is_none_or(|syn| una.is_after(syn.plus(1)))
    }
}
