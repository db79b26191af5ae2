//! The parameters of each assist.

use careof_base::{Duration, Probability};
use careof_link::{Discipline, RedConfig};

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::model::{
    AckHold, Assist, AssistPlace, BlackHole, BufferForward, FastRetransmit, Freeze, HoldLast, LcdKick,
    MssClamp, PathQueue, ReplayAssist, RtoFastDecrease, RtoReset, Snoop, Split, TcpCm, WindowClamp,
};
use crate::reference::assist::section_of;
use crate::tcp::{TcpDraft, tcp};
use crate::tree::Value;
use crate::units;
use crate::words::{
    BufferBegin, ClampFrom, DisciplineKind, Duplicates, HeldFrom, ReadWord as _, SackBlocks, Word,
};

/// Where an `at` is written.
type At = Option<(Origin, String)>;

/// An assist as its table gives it.
pub(super) struct Read {
    pub(super) assist: Assist,
    pub(super) at: At,
    /// TCP of its own, whose segment size depends on the links.
    pub(super) tcp: Option<TcpDraft>,
}

/// The assist called `name` with what `table` says of it; `None` if something in it is wrong.
pub(super) fn with_parameters(
    name: &str,
    table: Option<&Field<'_>>,
    problems: &mut Problems,
) -> Option<Read> {
    let before = problems.count();
    let mut given = Parameters { reader: None, problems };
    if let Some((table, section)) = table.zip(section_of(name)) {
        given.reader = Some(table.reader(section, given.problems)?);
    }
    let (mut at, mut tcp) = (None, None);
    let assist = match name {
        "replay" => {
            let (replay, place) = replay(&mut given);
            at = place;
            Assist::Replay(replay)
        }
        "hold-last" => Assist::HoldLast(hold_last(&mut given)),
        "lcd-kick" => Assist::LcdKick(lcd_kick(&mut given)),
        "freeze" => Assist::Freeze(freeze(&mut given)),
        "fast-retransmit" => Assist::FastRetransmit(fast_retransmit(&mut given)),
        "ack-hold" => Assist::AckHold(ack_hold(&mut given)),
        "window-clamp" => {
            let (clamp, place) = window_clamp(&mut given);
            at = place;
            Assist::WindowClamp(clamp)
        }
        "path-queue" => Assist::PathQueue(path_queue(&mut given)),
        "buffer-forward" => Assist::BufferForward(buffer_forward(&mut given)),
        "bicast" => Assist::Bicast,
        "snoop" => Assist::Snoop(snoop(&mut given)),
        "ebsn" => Assist::Ebsn,
        "split" => {
            let (split, place, draft) = split(&mut given)?;
            (at, tcp) = (place, draft);
            Assist::Split(split)
        }
        "m-tcp" => Assist::MTcp,
        "rto-reset" => Assist::RtoReset(rto_reset(&mut given)),
        "tcp-cm" => Assist::TcpCm(tcp_cm(&mut given)),
        "mobile-tcp" => Assist::MobileTcp,
        "rto-fast-decrease" => Assist::RtoFastDecrease(rto_fast_decrease(&mut given)),
        "mss-clamp" => {
            let (clamp, place) = mss_clamp(&mut given);
            at = place;
            Assist::MssClamp(clamp)
        }
        "black-hole" => {
            let (hole, place) = black_hole(&mut given);
            at = place;
            Assist::BlackHole(hole)
        }
        _ => return None,
    };
    (problems.count() == before).then_some(Read { assist, at, tcp })
}

fn replay(given: &mut Parameters<'_, '_>) -> (ReplayAssist, At) {
    let mut replay = ReplayAssist::default();
    let at = given.places(AssistPlace::WORDS, &mut replay.at);
    given.set("bytes", &mut replay.bytes, Field::size);
    given.set("packets", &mut replay.packets, packets);
    given.set("total", &mut replay.total, Field::size);
    given.set("flows", &mut replay.flows, |field, problems| count(field, 1, problems));
    given.set("age", &mut replay.age, Field::positive_duration);
    given.set("keep", &mut replay.keep, word);
    given.set("rest", &mut replay.rest, word);
    given.set("wait", &mut replay.wait, Field::duration);
    given.is("duplicates", Duplicates::Swallow, &mut replay.swallow);
    given.set("patience", &mut replay.patience, |field, problems| count(field, 0, problems));
    if replay.bytes > replay.total {
        let [bytes, total] = [replay.bytes, replay.total].map(units::size);
        let expected = format!("all flows together may keep {total}, and a flow of them {bytes}");
        given.wrong(&["bytes", "total"], expected, "raise `total` or lower `bytes`");
    }
    (replay, at)
}

fn hold_last(given: &mut Parameters<'_, '_>) -> HoldLast {
    let mut hold = HoldLast::default();
    given.set("packets", &mut hold.packets, packets);
    given.set("age", &mut hold.age, Field::positive_duration);
    hold
}

fn lcd_kick(given: &mut Parameters<'_, '_>) -> LcdKick {
    let mut kick = LcdKick::default();
    given.set("during", &mut kick.during, Field::boolean);
    given.set("interval", &mut kick.interval, Field::positive_duration);
    given.set("burst", &mut kick.burst, |field, problems| count(field, 0, problems));
    given.set("spacing", &mut kick.spacing, Field::duration);
    given.set("limit", &mut kick.limit, |field, problems| count(field, 1, problems));
    if !kick.during && kick.burst == 0 {
        let expected = "neither during an outage nor at its end would it send anything";
        given.wrong(&["burst", "during"], expected, "leave one of them out, or \"lcd-kick\" out of `use`");
    }
    kick
}

fn freeze(given: &mut Parameters<'_, '_>) -> Freeze {
    let mut freeze = Freeze::default();
    given.set("warning", &mut freeze.warning, |field, problems| field.positive_duration(problems).map(Some));
    given.set("acks", &mut freeze.acks, |field, problems| count(field, 1, problems));
    given.set("patience", &mut freeze.patience, Field::duration);
    freeze
}

fn fast_retransmit(given: &mut Parameters<'_, '_>) -> FastRetransmit {
    let mut repeat = FastRetransmit::default();
    given.set("acks", &mut repeat.acks, |field, problems| count(field, 1, problems));
    given.is("sack", SackBlocks::AsLast, &mut repeat.sack);
    given.set("longest_outage", &mut repeat.longest_outage, longest_outage);
    repeat
}

fn ack_hold(given: &mut Parameters<'_, '_>) -> AckHold {
    let mut hold = AckHold::default();
    given.set("bytes", &mut hold.bytes, |field, problems| field.packet_size(1, u16::MAX, problems));
    given.is("from", HeldFrom::Always, &mut hold.always);
    given.set("longest", &mut hold.longest, Field::positive_duration);
    hold
}

fn window_clamp(given: &mut Parameters<'_, '_>) -> (WindowClamp, At) {
    let mut clamp = WindowClamp::default();
    let at = given.places(&[AssistPlace::HomeAgent, AssistPlace::Mobile], &mut clamp.at);
    given.set("factor", &mut clamp.factor, |field, problems| {
        let fits = |factor: f64| factor > 0.0 && factor <= 1000.0;
        field.number(fits, "it must be a number above 0 and at most 1000", problems)
    });
    given.set("plus", &mut clamp.plus, |field, problems| {
        field.quantity(units::parse_segments, "\"1 segment\"", problems)
    });
    given.is("from", ClampFrom::Always, &mut clamp.always);
    (clamp, at)
}

fn mss_clamp(given: &mut Parameters<'_, '_>) -> (MssClamp, At) {
    let mut clamp = MssClamp::default();
    let at = given.places(AssistPlace::WORDS, &mut clamp.at);
    given.set("mtu", &mut clamp.mtu, |field, problems| {
        field.packet_size(MssClamp::LEAST_MTU, u16::MAX, problems)
    });
    (clamp, at)
}

fn black_hole(given: &mut Parameters<'_, '_>) -> (BlackHole, At) {
    let mut hole = BlackHole::default();
    let at = given.places(AssistPlace::WORDS, &mut hole.at);
    given.set("repeats", &mut hole.repeats, |field, problems| count(field, 1, problems));
    given.set("lifetime", &mut hole.lifetime, Field::positive_duration);
    (hole, at)
}

fn path_queue(given: &mut Parameters<'_, '_>) -> PathQueue {
    let mut path = PathQueue::default();
    given.set("limit", &mut path.queue.limit, units::read_queue_limit);
    given.set("discipline", &mut path.queue.discipline, |field, problems| {
        Some(match field.word(problems)? {
            DisciplineKind::DropTail => Discipline::DropTail,
            DisciplineKind::Red => Discipline::Red(RedConfig::default()),
            DisciplineKind::CoDel => Discipline::CODEL,
        })
    });
    given.set("margin", &mut path.margin, margin);
    given.set("at_handover", &mut path.at_handover, word);
    if let (careof_link::QueueLimit::Packets(limit), Discipline::Red(red)) =
        (path.queue.limit, path.queue.discipline)
        && red.max_threshold > limit
    {
        let least = red.max_threshold;
        let hint = format!("raise `limit` to \"{least} packets\", or choose another discipline");
        given.wrong(&["limit"], format!("RED needs room for {least} packets"), &hint);
    }
    path
}

fn buffer_forward(given: &mut Parameters<'_, '_>) -> BufferForward {
    let mut buffer = BufferForward::default();
    given.set("limit", &mut buffer.limit, packets);
    given.is("begin", BufferBegin::Notice, &mut buffer.from_notice);
    buffer
}

fn snoop(given: &mut Parameters<'_, '_>) -> Snoop {
    let mut snoop = Snoop::default();
    given.set("packets", &mut snoop.packets, packets);
    given.set("least_timeout", &mut snoop.least_timeout, Field::positive_duration);
    snoop
}

fn split(given: &mut Parameters<'_, '_>) -> Option<(Split, At, Option<TcpDraft>)> {
    const PLACES: [(&str, AssistPlace); 2] =
        [("home-agent", AssistPlace::HomeAgent), ("foreign-agent", AssistPlace::ForeignAgent)];
    let at = given.get("at").map(|field| (field.node.origin, field.path));
    let mut place = AssistPlace::HomeAgent;
    given.set("at", &mut place, |field, problems| field.choice(&PLACES, &[], problems));
    let mut buffer = Split::BUFFER;
    given.set("buffer", &mut buffer, Field::size);
    let draft = match given.get("tcp") {
        None => None,
        Some(field) => {
            let (origin, path) = (field.node.origin, field.path.clone());
            Some(tcp(Some(field), false, (origin, &path), given.problems)?)
        }
    };
    let split = Split { at: place, buffer, tcp: draft.as_ref().map(|draft| Box::new(draft.tcp.clone())) };
    Some((split, at, draft))
}

fn rto_reset(given: &mut Parameters<'_, '_>) -> RtoReset {
    let mut reset = RtoReset::default();
    given.set("slow_start", &mut reset.slow_start, Field::boolean);
    given.set("by", &mut reset.by, word);
    reset
}

fn tcp_cm(given: &mut Parameters<'_, '_>) -> TcpCm {
    let mut manager = TcpCm::default();
    given.set("resend", &mut manager.resend, Field::boolean);
    given.set("suspend", &mut manager.suspend, Field::boolean);
    manager
}

fn rto_fast_decrease(given: &mut Parameters<'_, '_>) -> RtoFastDecrease {
    let mut decrease = RtoFastDecrease::default();
    given.set("samples", &mut decrease.samples, |field, problems| count(field, 1, problems));
    decrease
}

/// The table of an assist, if there is one.
struct Parameters<'a, 'p> {
    reader: Option<Reader<'a>>,
    problems: &'p mut Problems,
}

impl<'a> Parameters<'a, '_> {
    fn get(&self, key: &str) -> Option<Field<'a>> {
        self.reader.as_ref().and_then(|reader| reader.get(key))
    }

    /// Puts the value of `key` into `place`, if it is given and right.
    fn set<T>(
        &mut self,
        key: &str,
        place: &mut T,
        read: impl FnOnce(&Field<'a>, &mut Problems) -> Option<T>,
    ) {
        if let Some(value) = self.get(key).and_then(|field| read(&field, self.problems)) {
            *place = value;
        }
    }

    /// Puts into `place` whether the word of `key` is `word`.
    fn is<W: Word + PartialEq>(&mut self, key: &str, word: W, place: &mut bool) {
        self.set(key, place, |field, problems| field.word::<W>(problems).map(|found| found == word));
    }

    /// Reports what the values of `keys` are together, at the first of them that is given.
    fn wrong(&mut self, keys: &[&str], expected: impl Into<String>, hint: &str) {
        if let Some(field) = keys.iter().find_map(|key| self.get(key)) {
            field.wrong(expected, Some(hint.to_owned()), self.problems);
        }
    }

    /// Puts into `places` those of `allowed` that `at` names, in the order of the type: an array of words, or text in
    /// which `+` stands between them.
    fn places(&mut self, allowed: &[AssistPlace], places: &mut Vec<AssistPlace>) -> At {
        let at = self.get("at")?;
        let known: Vec<&str> = allowed.iter().map(|place| place.name()).collect();
        let expected = format!("it is an array of places: {}", crate::words::one_of(&known));
        let fields = match &at.node.value {
            Value::Text(_) => vec![at.clone()],
            _ => at.list(&expected, self.problems),
        };
        let mut found = Vec::new();
        for field in &fields {
            for word in field.text(self.problems).into_iter().flat_map(|text| text.split('+')) {
                let word = word.trim();
                let place = allowed.iter().find(|place| place.name() == word);
                let expected = match place {
                    Some(place) if found.contains(place) => "a place is named once".to_owned(),
                    Some(place) => {
                        found.push(*place);
                        continue;
                    }
                    None => format!("known are {}", crate::words::one_of(&known).replace(" or ", " and ")),
                };
                let near = || crate::words::nearest(word, known.iter().copied());
                let hint =
                    place.is_none().then(near).flatten().map(|near| format!("did you mean \"{near}\"?"));
                self.problems.add(field.place(), crate::tree::quote(word), expected, hint);
            }
        }
        if matches!(&at.node.value, Value::List(items) if items.is_empty()) {
            at.wrong(expected, Some("leave `at` out for the usual places".to_owned()), self.problems);
        }
        found.sort_unstable();
        *places = found;
        Some((at.node.origin, at.path))
    }
}

fn word<W: Word>(field: &Field<'_>, problems: &mut Problems) -> Option<W> {
    field.word(problems)
}

/// A whole number from `least` up.
fn count(field: &Field<'_>, least: u64, problems: &mut Problems) -> Option<u32> {
    field.integer(least, 1_000_000, problems).and_then(|count| u32::try_from(count).ok())
}

/// A number of packets above zero, with its unit or as a plain number.
fn packets(field: &Field<'_>, problems: &mut Problems) -> Option<u32> {
    if matches!(field.node.value, Value::Integer(_)) {
        return count(field, 1, problems);
    }
    let packets = field.packets(problems)?;
    if packets == 0 {
        field.wrong("it must be above zero", None, problems);
        return None;
    }
    Some(packets)
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

fn margin(field: &Field<'_>, problems: &mut Problems) -> Option<Probability> {
    let margin = field.probability(problems)?;
    if margin == Probability::ONE {
        field.wrong(
            "nothing would be left of the path's rate",
            Some("write \"3 %\", for example".into()),
            problems,
        );
        return None;
    }
    Some(margin)
}
