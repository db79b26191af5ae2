//! What a mechanism is given to work with.

use alloc::collections::VecDeque;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::{IpHeader, Segment};

use crate::courses::Courses;
use crate::flow::{Flow, Seen};
use crate::keeping::{Held, Kept, Queue, Store, Whereabouts};
use crate::paths::PathTable;
use crate::rate_limit::RateLimit;
use crate::standing::Standing;
use crate::timers::Timers;
use crate::tunnels::Tunnels;
use crate::{Action, Config, Counters, DropReason, FlowKey, Kind, PathId, Place, Report, Token, Towards};

/// The segment that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    pub(crate) towards: Towards,
    /// The path it takes, or came by, if it is known.
    pub(crate) path: Option<PathId>,
    pub(crate) header: &'a IpHeader,
    pub(crate) segment: &'a Segment,
    /// What it was for the flow; nothing before the flow has learnt of it.
    pub(crate) seen: Seen,
    /// What the tunnel of the mobile node adds.
    pub(crate) overhead: u16,
}

/// Everything but the flow.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) store: &'a mut Store,
    pub(crate) timers: &'a mut Timers,
    pub(crate) paths: &'a PathTable,
    /// ICMP messages of all flows.
    pub(crate) unreachables: &'a mut RateLimit,
    /// Those of flows whose ends were not both heard.
    pub(crate) unproven_unreachables: &'a mut RateLimit,
    /// Acknowledgements made up of all flows whose ends were not both heard.
    pub(crate) unproven_acks: &'a mut RateLimit,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) courses: &'a mut Courses,
    pub(crate) counters: &'a mut Counters,
}

impl Context<'_> {
    /// Round trip between the far end of the path and the peer.
    pub(crate) fn behind_path(&self, flow: &Flow) -> Option<Duration> {
        match self.config.place {
            // What is measured from there to the peer is the way behind the path; a handover does not change it.
            Place::HomeAgent | Place::ForeignAgent => {
                let later = flow.stream(Towards::Peer).round_trip;
                flow.behind_path.into_iter().chain(later).min()
            }
            Place::MobileNode => flow.behind_path,
        }
    }

    /// Whether the sender of a flow may be told something by ICMP, which then counts. What may be made up leaves a quarter of the
    /// ration to the others.
    pub(crate) fn may_tell(&mut self, flow: &Flow) -> bool {
        let is_proven = flow.proof.standing() == Standing::Mutual;
        (is_proven || self.unproven_unreachables.allows(self.now)) && self.unreachables.allows(self.now)
    }
}

/// What is on its way to the owner.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Each with the bytes it frees when it is polled, if its token is free then.
    actions: VecDeque<(Action, Option<(Token, u16)>)>,
    reports: VecDeque<Report>,
    /// Of the acknowledgements among the actions those that the assists have not seen yet.
    injected: VecDeque<Injected>,
}

/// An acknowledgement that is on its way to the owner and may still be changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injected {
    pub(crate) segment: Segment,
    pub(crate) towards: Towards,
    /// Where its copies stand among the actions.
    first: usize,
    copies: u32,
}

impl Outbox {
    pub(crate) fn act(&mut self, action: Action) {
        debug_assert!(
            !matches!(action, Action::Release { .. } | Action::Discard { .. }),
            "those move what is stored: release() and discard()"
        );
        self.actions.push_back((action, None));
    }

    /// Injects copies of an acknowledgement. If it `is_open`, the assists see it before it leaves and may change it. They see it even if the
    /// limits have left no copy.
    pub(crate) fn inject(
        &mut self,
        (header, segment): (IpHeader, Segment),
        towards: Towards,
        copies: u32,
        is_open: bool,
    ) {
        if is_open {
            self.injected.push_back(Injected { segment, towards, first: self.actions.len(), copies });
        }
        for _ in 0..copies {
            self.act(Action::Inject { header, segment, towards });
        }
    }

    /// Whether there are acknowledgements that the assists have not seen yet.
    pub(crate) fn has_injected(&self) -> bool {
        !self.injected.is_empty()
    }

    /// The next of these.
    pub(crate) fn next_injected(&mut self) -> Option<Injected> {
        self.injected.pop_front()
    }

    /// It goes as it is now.
    pub(crate) fn change_injected(&mut self, injected: &Injected) {
        for (action, _) in self.actions.iter_mut().skip(injected.first).take(injected.copies as usize) {
            if let Action::Inject { segment, .. } = action {
                *segment = injected.segment;
            }
        }
    }

    /// Sends a stored packet on; its copy stays.
    pub(crate) fn release_copy(&mut self, kept: &Kept, via: Option<PathId>) {
        self.actions.push_back((Action::Release { token: kept.token, via, keep: true }, None));
    }

    /// Sends a stored packet on, which then is not stored any longer.
    pub(crate) fn release(&mut self, kept: &Kept, via: Option<PathId>) {
        let action = Action::Release { token: kept.token, via, keep: false };
        self.actions.push_back((action, Some((kept.token, kept.size))));
    }

    /// Does away with a stored packet.
    pub(crate) fn discard(&mut self, kept: &Kept, dropped: Option<DropReason>) {
        let action = Action::Discard { token: kept.token, dropped };
        self.actions.push_back((action, Some((kept.token, kept.size))));
    }

    /// Does away with a stored packet, for a reason if it has never gone on.
    pub(crate) fn drop_kept(&mut self, kept: &Kept, reason: DropReason) {
        let is_held = kept.whereabouts == Whereabouts::Here;
        self.discard(kept, is_held.then_some(reason));
    }

    /// All that is stored makes room: what waits goes on if there is a path, copies are dropped. Returns how many packets and
    /// bytes it was.
    pub(crate) fn empty(&mut self, kept: &mut Queue, path_is_lost: bool) -> (usize, u64) {
        let load = (kept.len(), kept.bytes());
        while let Some(packet) = kept.pop_oldest() {
            if packet.waits() && !path_is_lost {
                self.release(&packet, None);
            } else {
                self.drop_kept(&packet, DropReason::QueueFull);
            }
        }
        load
    }

    /// Sends a packet on that was held.
    pub(crate) fn let_go(&mut self, held: Held, via: Option<PathId>) {
        let action = Action::Release { token: held.token, via, keep: false };
        self.actions.push_back((action, Some((held.token, held.size))));
    }

    /// Drops a packet that was held.
    pub(crate) fn give_up(&mut self, held: Held, reason: DropReason) {
        let action = Action::Discard { token: held.token, dropped: Some(reason) };
        self.actions.push_back((action, Some((held.token, held.size))));
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.reports.push_back(report);
    }

    pub(crate) fn did(&mut self, flow: FlowKey, assist: Kind, what: &'static str, packets: u32, bytes: u64) {
        self.reports.push_back(Report::Did { flow, assist, what, packets, bytes });
    }

    pub(crate) fn poll_action(&mut self, store: &mut Store) -> Option<Action> {
        debug_assert!(self.injected.is_empty(), "the assists see what is injected before it leaves");
        let (action, freed) = self.actions.pop_front()?;
        if let Some((token, size)) = freed {
            store.give_back(token, size);
        }
        Some(action)
    }

    pub(crate) fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }
}
