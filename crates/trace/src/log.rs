//! The events of a run in memory, until somebody takes them as columns.

use std::collections::BTreeMap;
use std::fmt;

use careof_base::Instant;

use crate::columns::Columns;
use crate::event::{Body, Event, EventKind};

/// The names that identifiers stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Nodes: `home-agent`.
    pub nodes: Vec<String>,
    /// One-way links: `gsm.down`, `gsm.up`.
    pub links: Vec<String>,
    /// Flows: `download`.
    pub flows: Vec<String>,
}

/// A line of text that belongs to an event, interned in the [`EventLog`] that made it.
///
/// It is good for events pushed before the log is next drained; in a later batch it stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail(u32);

impl Detail {
    /// No text: the column stays empty.
    pub const NONE: Self = Self(u32::MAX);
}

impl Default for Detail {
    fn default() -> Self {
        Self::NONE
    }
}

/// The texts of one batch. They differ from message to message, so they leave with their batch and memory does
/// not grow with simulated time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    texts: Vec<String>,
    index: BTreeMap<String, u32>,
}

impl Details {
    fn intern(&mut self, text: String) -> Detail {
        if let Some(&known) = self.index.get(&text) {
            return Detail(known);
        }
        match u32::try_from(self.texts.len()) {
            Ok(next) if next != Detail::NONE.0 => {
                self.texts.push(text.clone());
                self.index.insert(text, next);
                Detail(next)
            }
            _ => Detail::NONE,
        }
    }

    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Where a text stands, and the text.
    pub(crate) fn get(&self, detail: Detail) -> Option<(usize, &str)> {
        let place = usize::try_from(detail.0).ok()?;
        self.texts.get(place).map(|text| (place, text.as_str()))
    }
}

/// A set of kinds of events; all of them by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds(u32);

impl Default for Kinds {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Kinds {
    fn of(kinds: &[EventKind]) -> Self {
        Self(kinds.iter().fold(0, |set, &kind| set | 1 << kind as u32))
    }

    #[inline]
    const fn has(self, kind: EventKind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }
}

/// Collects events while tracing is on; while it is off nothing is stored and nothing is formatted.
///
/// Events may be pushed slightly out of order (a link that is evaluated lazily learns late what it dropped):
/// a batch is sorted by time when it is taken, events of one instant staying in the order they were pushed.
/// Whoever takes batches while the run goes on uses [`EventLog::take_columns_before`] with an instant that no
/// later event can precede, and gets a trace that is sorted as a whole.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    on: bool,
    kinds: Kinds,
    names: Names,
    events: Vec<Event>,
    details: Details,
}

impl EventLog {
    /// A log that stores nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// A log whose identifiers stand for `names`.
    #[must_use]
    pub fn new(names: Names) -> Self {
        Self { on: true, names, ..Self::default() }
    }

    /// Stores events of these kinds only; the others are as good as never pushed.
    #[must_use]
    pub fn only(self, kinds: &[EventKind]) -> Self {
        Self { kinds: Kinds::of(kinds), ..self }
    }

    /// Whether events are stored. Ask before building an event where every packet passes.
    #[must_use]
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// The names, for what appears while the run goes on. An identifier's index never changes its name.
    pub const fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Stores an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        if self.on && self.kinds.has(event.kind()) {
            self.events.push(event);
        }
    }

    /// Stores a line of text for the events of this batch: `log.detail(format_args!("code {code}"))`.
    ///
    /// While tracing is off nothing is formatted.
    pub fn detail(&mut self, text: fmt::Arguments<'_>) -> Detail {
        if self.on { self.details.intern(text.to_string()) } else { Detail::NONE }
    }

    /// How many events wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether no event waits to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes all events, sorted by time.
    pub fn take_columns(&mut self) -> Columns {
        sort_mostly_sorted(&mut self.events);
        let columns = Columns::of(&self.events, &self.names, &self.details);
        self.events.clear();
        self.details = Details::default();
        columns
    }

    /// Takes the events before `watermark`, sorted by time; the others stay.
    ///
    /// When no event is pushed afterwards that happened before `watermark`, consecutive batches are in order.
    pub fn take_columns_before(&mut self, watermark: Instant) -> Columns {
        sort_mostly_sorted(&mut self.events);
        let taken = self.events.partition_point(|event| event.time() < watermark);
        let columns = Columns::of(self.events.get(..taken).unwrap_or_default(), &self.names, &self.details);
        self.events.drain(..taken);
        let mut kept = Details::default();
        for event in &mut self.events {
            if let Some(detail) = detail_of(event) {
                *detail =
                    self.details.get(*detail).map_or(Detail::NONE, |(_, text)| kept.intern(text.to_owned()));
            }
        }
        self.details = kept;
        columns
    }
}

/// A stable sort by time for events of which a few came late.
///
/// The late ones are picked out, sorted among themselves and merged back from the end, so that the others move
/// at most twice. An event in its place and a late one of the same instant keep their order: the late one came
/// after.
fn sort_mostly_sorted(events: &mut Vec<Event>) {
    if events.is_sorted_by_key(Event::time) {
        return;
    }
    let mut latest = Instant::ZERO;
    let mut late = Vec::new();
    events.retain(|event| {
        let in_place = event.time() >= latest;
        if in_place {
            latest = event.time();
        } else {
            late.push(*event);
        }
        in_place
    });
    late.sort_by_key(Event::time);
    let mut unmerged = events.len();
    events.extend_from_slice(&late);
    let mut free = events.len();
    while let Some(next_late) = late.last() {
        let in_place = unmerged.checked_sub(1).and_then(|last| events.get(last).copied());
        let next = match in_place {
            Some(event) if event.time() > next_late.time() => {
                unmerged -= 1;
                event
            }
            _ => {
                let next = *next_late;
                late.pop();
                next
            }
        };
        free -= 1;
        if let Some(place) = events.get_mut(free) {
            *place = next;
        }
    }
}

fn detail_of(event: &mut Event) -> Option<&mut Detail> {
    match &mut event.body {
        Body::Message(message) => Some(&mut message.detail),
        Body::Cause { detail, .. } | Body::Flow { detail } => Some(detail),
        Body::Segment(_)
        | Body::State { .. }
        | Body::Delivered { .. }
        | Body::Packet(_)
        | Body::Dropped { .. }
        | Body::DroppedAtNode { .. }
        | Body::Assist { .. }
        | Body::Derived { .. } => None,
    }
}
