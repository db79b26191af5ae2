//! What the agent told, for the owner to take, and the handovers of late for whoever asks.

use std::collections::VecDeque;
use std::net::IpAddr;

use careof_base::Instant;
use careof_mobility::v4::Event;
use careof_mobility::{HandoverEvent, InterfaceId};

use super::HandoverStatus;

/// Events kept for an owner that does not take them.
const MOST_EVENTS: usize = 4096;
/// Handovers remembered.
const MOST_HANDOVERS: usize = 32;

/// Events, bounded: the newest are lost when the owner does not take them.
#[derive(Debug)]
pub(super) struct EventQueue<E = Event> {
    events: VecDeque<(Instant, E)>,
    handovers: VecDeque<HandoverStatus>,
    /// Events for which there was no room.
    pub(super) lost: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { events: VecDeque::new(), handovers: VecDeque::new(), lost: 0 }
    }
}

impl<E> EventQueue<E> {
    pub(super) fn push(&mut self, now: Instant, event: E) {
        if self.events.len() < MOST_EVENTS {
            self.events.push_back((now, event));
        } else {
            self.lost += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, E)> {
        self.events.pop_front()
    }
}

impl<E> EventQueue<E> {
    pub(super) fn handovers(&self) -> impl Iterator<Item = &HandoverStatus> {
        self.handovers.iter()
    }

    /// Remembers a phase of a handover; `name` tells what an interface is called.
    pub(super) fn note_handover<A: Copy + Into<IpAddr>, C: Copy>(
        &mut self,
        now: Instant,
        event: &HandoverEvent<A, C>,
        name: impl Fn(InterfaceId) -> Option<String>,
    ) {
        match *event {
            HandoverEvent::Initiated { from, to, reason, .. } => {
                if self.handovers.len() == MOST_HANDOVERS {
                    self.handovers.pop_front();
                }
                self.handovers.push_back(HandoverStatus {
                    at_s: now.as_secs_f64(),
                    from: from.and_then(&name),
                    to: name(to),
                    reason: reason.to_string(),
                    phase: event.name(),
                    care_of: None,
                    latency_ms: None,
                    attempts: None,
                });
            }
            HandoverEvent::Registered { care_of, attempts, latency, .. } => {
                if let Some(last) = self.handovers.back_mut() {
                    last.phase = event.name();
                    last.care_of = care_of.map(Into::into);
                    last.attempts = Some(attempts);
                    last.latency_ms = Some(latency.as_secs_f64() * 1e3);
                }
            }
            HandoverEvent::Failed { .. } => {
                if let Some(last) = self.handovers.back_mut() {
                    last.phase = event.name();
                }
            }
            HandoverEvent::Terminated { to, .. } => {
                let to = name(to);
                let registered = |known: &&mut HandoverStatus| known.phase == "registered" && known.to == to;
                if let Some(known) = self.handovers.iter_mut().rev().find(registered) {
                    known.phase = event.name();
                }
            }
            HandoverEvent::LinkDown { .. }
            | HandoverEvent::LinkUp { .. }
            | HandoverEvent::PathSilent { .. }
            | HandoverEvent::PathAnswers { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_mobility::v4::{DropReason, HandoverReason, HandoverStyle, Notice, PathFault, PathProperties};
    use std::net::Ipv4Addr;

    #[test]
    fn an_owner_that_takes_nothing_costs_bounded_memory() {
        let mut queue = EventQueue::<Event>::default();
        let event = Event::Dropped { reason: DropReason::Malformed, source: Ipv4Addr::LOCALHOST };
        for _ in 0..MOST_EVENTS + 10 {
            queue.push(Instant::ZERO, event.clone());
        }
        assert_eq!((queue.events.len(), queue.lost), (MOST_EVENTS, 10));
        assert_eq!(queue.pop(), Some((Instant::ZERO, event)));
    }

    #[test]
    fn a_handover_is_remembered_with_how_far_it_came() {
        let mut queue = EventQueue::<Event>::default();
        let name = |id: InterfaceId| Some(format!("if{}", id.0));
        let path = PathProperties::default();
        let (old, new) = (path, path);
        let to = InterfaceId(1);
        let initiated: HandoverEvent = HandoverEvent::Initiated {
            from: None,
            to,
            notice: Notice::None,
            reason: HandoverReason::PathBad(PathFault::Loss { permille: 87 }),
            style: HandoverStyle::BreakBeforeMake,
            old,
            new,
        };
        let latency = core::time::Duration::from_millis(42);
        let registered: HandoverEvent = HandoverEvent::Registered {
            from: None,
            to,
            care_of: None,
            attempts: 2,
            latency,
            round_trip: latency,
            old,
            new,
            keeps_old: false,
        };
        for event in [initiated, registered, HandoverEvent::Terminated { from: None, to, duration: latency }]
        {
            queue.note_handover(Instant::from_secs(3), &event, name);
        }
        let known: Vec<_> = queue.handovers().collect();
        assert_eq!(known.len(), 1);
        assert_eq!(
            (known[0].phase, known[0].attempts, known[0].latency_ms),
            ("terminated", Some(2), Some(42.0))
        );
        assert_eq!(known[0].reason, "path-lossy: 8.7 % lost");
        for _ in 0..100 {
            queue.note_handover(Instant::ZERO, &initiated, name);
        }
        assert_eq!(queue.handovers().count(), MOST_HANDOVERS);
    }
}
