//! What the parts of a hierarchical mobile node tell, and the handovers of the whole that follow from it.

use core::time::Duration;

use careof_base::Instant;

use super::{HierarchicalMobileNode, REGIONAL};
use crate::v6::{Event, HandoverEvent, HandoverFailure, RegistrationEvent, RegistrationStep};
use crate::{HandoverReason, HandoverStyle, InterfaceId, Notice, PathProperties, Selection};

/// The shortest lifetime granted that is of use: care-of addresses are not registered in the last seconds of theirs.
const SHORTEST_GRANT: Duration = Duration::from_secs(12);
/// For how long an interface is not chosen again to which a handover has failed.
const AVOIDED_FOR: Duration = Duration::from_secs(30);

/// A handover of the whole that is not registered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    from: Option<InterfaceId>,
    to: InterfaceId,
    started: Instant,
    old: PathProperties,
}

/// What a part has said of a registration that was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    attempts: u32,
    round_trip: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Home,
    Current,
    Previous,
}

impl HierarchicalMobileNode {
    /// Takes out what the parts have to send and to tell; whether there was something.
    pub(super) fn absorb(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(transmit) = self.home.poll_transmit(now) {
            any = true;
            self.send_for_home(transmit);
        }
        while let Some(event) = self.home.poll_event() {
            any = true;
            self.absorb_event(now, Part::Home, event);
        }
        for part in [Part::Current, Part::Previous] {
            while let Some(transmit) = self.part_mut(part).and_then(|part| part.node.poll_transmit(now)) {
                any = true;
                self.outbox.transmit(transmit);
            }
            while let Some(event) = self.part_mut(part).and_then(|part| part.node.poll_event()) {
                any = true;
                self.absorb_event(now, part, event);
            }
        }
        any
    }

    fn part_mut(&mut self, part: Part) -> Option<&mut super::Regional> {
        match part {
            Part::Home => None,
            Part::Current => self.current.as_mut(),
            Part::Previous => self.previous.as_mut(),
        }
    }

    fn absorb_event(&mut self, now: Instant, part: Part, event: Event) {
        match event {
            Event::Handover(event) => self.absorb_handover(now, part, event),
            Event::Registration(event) => self.absorb_registration(now, part, event),
            Event::Dropped { reason, source } => self.outbox.drop(reason, source),
            // Somebody else on the link of the mobility anchor point has the regional care-of address.
            Event::HomeAddressLost { .. } if part == Part::Current => self.fail_map(now),
            Event::HomeAddressLost { .. } | Event::HomePrefixes { .. } if part != Part::Home => {}
            event => self.outbox.event(event),
        }
    }

    fn absorb_registration(&mut self, now: Instant, part: Part, event: RegistrationEvent) {
        let is_regional = event.interface == Some(REGIONAL);
        let interface = if is_regional { self.active_interface() } else { event.interface };
        self.outbox.event(Event::Registration(RegistrationEvent { interface, ..event }));
        match event.step {
            RegistrationStep::Accepted { .. } => {
                self.outbox.counters.count_accepted();
                let index = self.current.as_ref().map(|current| current.index);
                if let Some(candidate) = index.and_then(|index| self.candidates.get_mut(index))
                    && is_regional
                {
                    candidate.works();
                }
                let short = |current: &super::Regional| {
                    current.binding_end(now).is_none_or(|end| end < now + SHORTEST_GRANT)
                };
                let asked = self.template.lifetime.duration() >= SHORTEST_GRANT;
                if part == Part::Current && asked && !self.left && self.current.as_ref().is_some_and(short) {
                    self.fail_map(now);
                }
            }
            RegistrationStep::Refused { status, .. } => {
                self.outbox.counters.count_refusal(status.number());
                let target = self.target();
                let current = self.current.as_ref().filter(|_| part == Part::Current && !self.is_elsewhere());
                if current.is_some_and(|current| target.is_some_and(|target| current.node.is_refused(target)))
                {
                    self.fail_map(now);
                }
            }
            // Who takes leave does not wait long for anybody.
            RegistrationStep::TimedOut { attempt } if attempt >= self.patience && !self.left => {
                // Through it nobody answers, or it does not itself.
                let is_silent = part == Part::Current && !self.is_elsewhere();
                let is_black_hole = is_regional && self.carrier().is_some_and(|known| known.until.is_none());
                if is_silent || is_black_hole {
                    self.fail_map(now);
                }
            }
            _ => {}
        }
    }

    /// The interface that the registrations have been told to go through. The leading one is another while it is not known yet what is there.
    fn target(&self) -> Option<InterfaceId> {
        let told = match &self.current {
            Some(current) => current.lead(),
            None => self.home_on.filter(|&interface| interface != REGIONAL),
        };
        told.or_else(|| self.lead_id())
    }

    /// Whether the mobility anchor point in use is reached through another interface than the one it is to be: a handover that fails then
    /// leaves the node where it is.
    fn is_elsewhere(&self) -> bool {
        let Some(current) = &self.current else { return false };
        current.node.active_interface() != self.target() && current.way().is_some()
    }

    fn absorb_handover(&mut self, now: Instant, part: Part, event: HandoverEvent) {
        match event {
            // All parts hear of links.
            HandoverEvent::LinkUp { interface } | HandoverEvent::LinkDown { interface }
                if part == Part::Home && interface != REGIONAL =>
            {
                self.outbox.event(Event::Handover(event));
            }
            _ if part == Part::Previous => {}
            HandoverEvent::Initiated { .. } => self.begin_course(now),
            HandoverEvent::Registered { attempts, round_trip, .. } => {
                self.outcome = Some(Outcome { attempts, round_trip });
            }
            HandoverEvent::Failed { reason, .. } => self.failure = Some(reason),
            // The end of the old interface is told by the whole.
            _ => {}
        }
    }

    fn begin_course(&mut self, now: Instant) {
        let Some(to) = self.target() else { return };
        if let Some(course) = self.course {
            if course.to == to {
                return;
            }
            self.fail_course(HandoverFailure::Superseded);
        }
        self.end_retirement(now);
        let from = self.used;
        let reason = match from {
            None => HandoverReason::Attached,
            Some(from) if from == to => HandoverReason::Moved,
            Some(_) => HandoverReason::NotWorking,
        };
        let (notice, reason) = self.why.take().unwrap_or((Notice::None, reason));
        // Any destination will do.
        let works = self.delivery(self.home_prefix().address()).is_some();
        let style = if works { HandoverStyle::MakeBeforeBreak } else { HandoverStyle::BreakBeforeMake };
        let old = from.map_or(PathProperties::default(), |from| self.path(from));
        let new = self.path(to);
        self.course = Some(Course { from, to, started: now, old });
        (self.outcome, self.failure) = (None, None);
        let event = HandoverEvent::Initiated { from, to, notice, reason, style, old, new };
        self.outbox.event(Event::Handover(event));
    }

    fn fail_course(&mut self, reason: HandoverFailure) {
        if let Some(Course { from, to, .. }) = self.course.take() {
            self.outbox.event(Event::Handover(HandoverEvent::Failed { from, to, reason }));
        }
    }

    /// Ends the handover under way when all registrations that it needs are made, or one has failed and nothing else is tried.
    pub(super) fn finish_course(&mut self, now: Instant) {
        let is_moving =
            self.home.is_moving() || self.current.as_ref().is_some_and(|current| current.node.is_moving());
        if self.course.is_some_and(|course| self.target() != Some(course.to)) {
            // Where it leads now everything may be in place already.
            self.fail_course(HandoverFailure::Superseded);
            if is_moving {
                self.begin_course(now);
            }
        }
        if let Some(course) = self.course {
            if self.is_settled_on(course.to) {
                self.register(now, course);
            } else if let Some(reason) = self.failure.filter(|_| !is_moving) {
                self.fail_course(reason);
                self.go_back(now, course, reason);
            }
        }
        self.failure = None;
        let listened = self.retiring.is_some_and(|(from, ..)| self.is_listened_to(from));
        if !listened {
            self.end_retirement(now);
        }
    }

    /// Whether packets take the way through `interface`, and everybody knows who has to.
    fn is_settled_on(&self, interface: InterfaceId) -> bool {
        match &self.current {
            Some(current) => {
                let knows = self.home.care_of() == Some(current.regional);
                knows && current.node.is_settled_on(interface) && self.home.is_settled_on(REGIONAL)
            }
            None => self.home.is_settled_on(interface),
        }
    }

    fn register(&mut self, now: Instant, course: Course) {
        let Course { from, to, started, old } = course;
        (self.course, self.retry_at) = (None, None);
        self.used = Some(to);
        let outcome = self.outcome.take();
        let Outcome { attempts, round_trip } =
            outcome.unwrap_or(Outcome { attempts: 0, round_trip: Duration::ZERO });
        let care_of = self.home.care_of();
        let (latency, new) = (now - started, self.path(to));
        self.outbox.event(Event::Handover(HandoverEvent::Registered {
            from,
            to,
            care_of,
            attempts,
            latency,
            round_trip,
            old,
            new,
            keeps_old: false,
        }));
        match from.filter(|&from| from != to && self.is_listened_to(from)) {
            Some(from) => self.retiring = Some((from, to, started)),
            None => {
                let duration = now - started;
                self.outbox.event(Event::Handover(HandoverEvent::Terminated { from, to, duration }));
            }
        }
    }

    fn is_listened_to(&self, interface: InterfaceId) -> bool {
        let current = self.current.as_ref().is_some_and(|current| current.node.listens_on(interface));
        current || self.home.listens_on(interface)
    }

    fn end_retirement(&mut self, now: Instant) {
        if let Some((from, to, started)) = self.retiring.take() {
            let (from, duration) = (Some(from), now - started);
            self.outbox.event(Event::Handover(HandoverEvent::Terminated { from, to, duration }));
        }
    }

    /// A handover has failed: the interface of before stays in use, where it works. Otherwise another one is chosen, or this one is tried
    /// again later, which a part that believes that its old interface works would not do.
    fn go_back(&mut self, now: Instant, course: Course, reason: HandoverFailure) {
        // What was superseded by something else has its successor.
        if self.left || self.lead_id() != Some(course.to) || reason == HandoverFailure::Superseded {
            return;
        }
        if let Some(place) = self.places.iter_mut().find(|place| place.config.id == course.to)
            && matches!(self.template.selection, Selection::Preferred { .. })
        {
            place.avoided_until = Some(now + AVOIDED_FOR);
        }
        self.pinned = false;
        let works = self.delivery(self.home_prefix().address()).is_some();
        let from = course.from.filter(|&from| from != course.to && works);
        let from = from.filter(|&from| self.active_interface() == Some(from));
        match from.and_then(|from| self.places.iter().position(|place| place.config.id == from)) {
            Some(index) => self.lead = Some(index),
            None => self.retry_at = Some(now + AVOIDED_FOR),
        }
        self.settle(now);
    }
}
