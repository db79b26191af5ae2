//! The parameters of an assist: how tables of them are read, and those of the assists that both kinds of file know.
//!
//! Each function leaves at its default what is not given or wrong, and reports what is wrong.

use std::time::Duration;

use careof_assist::{
    BlackHole, Config, FastRetransmit, HoldLast, LcdKick, Limits, MssClamp, Replay, Rest, Sack, Which,
    WindowClamp,
};
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::section::Section;
use careof_document::tree::Value;
use careof_document::units;

/// The most of whatever is counted.
const MOST: u64 = 1_000_000;
/// The tunnel's header and 40 bytes of IP and TCP leave some of it for every encapsulation.
const LEAST_CLAMPED_MTU: u16 = 128;

/// The table of an assist, if there is one.
#[derive(Debug)]
pub struct Parameters<'a, 'p> {
    reader: Option<Reader<'a>>,
    /// What is wrong.
    pub problems: &'p mut Problems,
}

impl<'a, 'p> Parameters<'a, 'p> {
    /// Those of `table`, which is a `section`; `None` if it is no table.
    pub fn new(
        table: Option<&Field<'a>>,
        section: Option<&'static Section>,
        problems: &'p mut Problems,
    ) -> Option<Self> {
        let reader = match table.zip(section) {
            Some((table, section)) => Some(table.reader(section, problems)?),
            None => None,
        };
        Some(Self { reader, problems })
    }

    /// The value of `key`, if it is given.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Field<'a>> {
        self.reader.as_ref().and_then(|reader| reader.get(key))
    }

    /// Puts the value of `key` into `place`, if it is given and right.
    pub fn set<T>(
        &mut self,
        key: &str,
        place: &mut T,
        read: impl FnOnce(&Field<'a>, &mut Problems) -> Option<T>,
    ) {
        if let Some(value) = self.get(key).and_then(|field| read(&field, self.problems)) {
            *place = value;
        }
    }

    /// Puts into `place` what the word of `key` stands for.
    pub fn word<T: Copy>(&mut self, key: &str, place: &mut T, words: &[(&'static str, T)]) {
        self.set(key, place, |field, problems| field.choice(words, &[], problems));
    }

    /// Reports what the values of `keys` are together, at the first of them that is given.
    pub fn wrong(&mut self, keys: &[&str], expected: impl Into<String>, hint: &str) {
        if let Some(field) = keys.iter().find_map(|key| self.get(key)) {
            field.wrong(expected, Some(hint.to_owned()), self.problems);
        }
    }
}

/// A whole number from `least` up.
pub fn count(field: &Field<'_>, least: u64, problems: &mut Problems) -> Option<u32> {
    field.integer(least, MOST, problems).and_then(|count| u32::try_from(count).ok())
}

/// A number of packets above zero, with its unit or as a plain number.
pub fn packets(field: &Field<'_>, problems: &mut Problems) -> Option<usize> {
    let packets = match field.node.value {
        Value::Integer(_) => count(field, 1, problems)?,
        _ => field.packets(problems)?,
    };
    if packets == 0 {
        field.wrong("it must be above zero", None, problems);
        return None;
    }
    usize::try_from(packets).ok()
}

/// Parameters of `replay`, those for all flows together among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayTable {
    /// Those for each flow.
    pub replay: Replay,
    /// Bytes kept of all flows, at least those of one.
    pub total: u64,
    /// Flows followed at a time, at least 1.
    pub flows: usize,
}

impl Default for ReplayTable {
    /// Those of [`Replay::DEFAULT`] and [`Limits::DEFAULT`].
    fn default() -> Self {
        Self { replay: Replay::DEFAULT, total: Limits::DEFAULT.bytes, flows: Limits::DEFAULT.flows }
    }
}

impl ReplayTable {
    /// Enters it into `config`.
    pub fn enter(&self, config: &mut Config) {
        config.replay = Some(self.replay);
        config.limits.bytes = self.total;
        config.limits.flows = self.flows;
    }
}

/// Parameters of `lcd-kick`, that for all flows together among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcdKickTable {
    /// Those for each flow.
    pub kick: LcdKick,
    /// Messages a second to all flows together, at least 1.
    pub limit: u32,
}

impl LcdKickTable {
    /// Enters it into `config`.
    pub fn enter(&self, config: &mut Config) {
        config.lcd_kick = Some(self.kick);
        config.limits.unreachables_per_second = self.limit;
    }
}

/// Reads [`sections::REPLAY`](crate::sections::REPLAY).
pub fn replay(given: &mut Parameters<'_, '_>) -> ReplayTable {
    let mut table = ReplayTable::default();
    let replay = &mut table.replay;
    given.set("bytes", &mut replay.bytes, Field::size);
    given.set("packets", &mut replay.packets, packets);
    given.set("total", &mut table.total, Field::size);
    given.set("flows", &mut table.flows, |field, problems| {
        count(field, 1, problems).and_then(|flows| usize::try_from(flows).ok())
    });
    given.set("age", &mut replay.age, Field::positive_duration);
    given.word("keep", &mut replay.keep, &Which::ALL.map(|end| (end.name(), end)));
    given.word("rest", &mut replay.rest, &Rest::ALL.map(|rest| (rest.name(), rest)));
    given.set("wait", &mut replay.wait, Field::duration);
    given.word("duplicates", &mut replay.swallow, &[("swallow", true), ("pass", false)]);
    given.set("patience", &mut replay.patience, |field, problems| count(field, 0, problems));
    if replay.bytes > table.total {
        let [bytes, total] = [replay.bytes, table.total].map(units::size);
        let expected = format!("all flows together may keep {total}, and a flow of them {bytes}");
        given.wrong(&["bytes", "total"], expected, "raise `total` or lower `bytes`");
    }
    table
}

/// Reads [`sections::HOLD_LAST`](crate::sections::HOLD_LAST).
pub fn hold_last(given: &mut Parameters<'_, '_>) -> HoldLast {
    let mut hold = HoldLast::DEFAULT;
    given.set("packets", &mut hold.packets, packets);
    given.set("age", &mut hold.age, Field::positive_duration);
    hold
}

/// Reads [`sections::LCD_KICK`](crate::sections::LCD_KICK).
pub fn lcd_kick(given: &mut Parameters<'_, '_>) -> LcdKickTable {
    let mut kick = LcdKick::DEFAULT;
    let mut limit = Limits::DEFAULT.unreachables_per_second;
    given.set("during", &mut kick.during, Field::boolean);
    given.set("interval", &mut kick.interval, Field::positive_duration);
    given.set("burst", &mut kick.burst, |field, problems| count(field, 0, problems));
    given.set("spacing", &mut kick.spacing, Field::duration);
    given.set("limit", &mut limit, |field, problems| count(field, 1, problems));
    if !kick.during && kick.burst == 0 {
        let expected = "neither during an outage nor at its end would it send anything";
        given.wrong(&["burst", "during"], expected, "leave one of them out, or \"lcd-kick\" out of `use`");
    }
    LcdKickTable { kick, limit }
}

/// Reads [`sections::FAST_RETRANSMIT`](crate::sections::FAST_RETRANSMIT).
pub fn fast_retransmit(given: &mut Parameters<'_, '_>) -> FastRetransmit {
    let mut repeat = FastRetransmit::DEFAULT;
    given.set("acks", &mut repeat.acks, |field, problems| count(field, 1, problems));
    given.word("sack", &mut repeat.sack, &Sack::ALL.map(|sack| (sack.name(), sack)));
    given.set("longest_outage", &mut repeat.longest_outage, longest_outage);
    repeat
}

/// Reads [`sections::WINDOW_CLAMP`](crate::sections::WINDOW_CLAMP).
pub fn window_clamp(given: &mut Parameters<'_, '_>) -> WindowClamp {
    let mut clamp = WindowClamp::DEFAULT;
    given.set("factor", &mut clamp.factor, |field, problems| {
        let fits = |factor: f64| factor > 0.0 && factor <= 1000.0;
        field.number(fits, "it must be a number above 0 and at most 1000", problems)
    });
    given.set("plus", &mut clamp.segments, |field, problems| {
        field.quantity(units::parse_segments, "\"1 segment\"", problems)
    });
    given.word("from", &mut clamp.always, &[("slower", false), ("always", true)]);
    clamp
}

/// Reads [`sections::MSS_CLAMP`](crate::sections::MSS_CLAMP).
pub fn mss_clamp(given: &mut Parameters<'_, '_>) -> MssClamp {
    let mut clamp = MssClamp::DEFAULT;
    given.set("mtu", &mut clamp.mtu, |field, problems| {
        field.packet_size(LEAST_CLAMPED_MTU, u16::MAX, problems)
    });
    clamp
}

/// Reads [`sections::BLACK_HOLE`](crate::sections::BLACK_HOLE).
pub fn black_hole(given: &mut Parameters<'_, '_>) -> BlackHole {
    let mut hole = BlackHole::DEFAULT;
    given.set("repeats", &mut hole.repeats, |field, problems| count(field, 1, problems));
    given.set("lifetime", &mut hole.lifetime, Field::positive_duration);
    hole
}

/// `None` is any outage.
fn longest_outage(field: &Field<'_>, problems: &mut Problems) -> Option<Option<Duration>> {
    match &field.node.value {
        Value::Text(text) if text == "any" => Some(None),
        Value::Text(text) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            field.wrong("it must be a duration, such as \"200 ms\", or \"any\"", None, problems);
            None
        }
        _ => field.duration(problems).map(Some),
    }
}
