//! `[[handover]]` tables that stand for several handovers of one mobile node: instants in a list, at even distances, or
//! drawn.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::mobility::{HandoverDraft, Reference};
use crate::tree::Value;
use crate::words::{ReadWord as _, Spacing};

/// `every` stands for no more handovers of a run than this.
pub(crate) const MOST_HANDOVERS: u64 = 100_000;

/// The time of a handover.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub(crate) time: Duration,
    /// As an error message shows it.
    pub(crate) written: String,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

impl At {
    fn read(field: &Field<'_>, problems: &mut Problems) -> Option<Self> {
        let time = field.duration(problems)?;
        let written = field.node.value.describe();
        Some(Self { time, written, origin: field.node.origin, path: field.path.clone() })
    }

    pub(crate) fn place(&self) -> (Origin, &str) {
        (self.origin, &self.path)
    }
}

/// What the distances of drawn handovers follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) mean: Duration,
    /// No two are closer.
    pub(crate) least: Duration,
}

/// When the handovers of a table are.
#[derive(Debug)]
pub(crate) enum Times {
    /// At these instants, at least one; at even distances, where that is what the table says.
    Given(Vec<At>, Option<Duration>),
    /// Each run draws them. The place is for messages.
    Drawn(Draws, At),
}

impl Times {
    /// The first one; zero where it is drawn.
    pub(crate) fn first(&self) -> Duration {
        match self {
            Self::Given(all, _) => all.first().map(|at| at.time).unwrap_or_default(),
            Self::Drawn(..) => Duration::ZERO,
        }
    }
}

/// Whether a table stands for several handovers.
pub(crate) fn is_repeated(reader: &Reader<'_>) -> bool {
    let has_list = reader.get("at").is_some_and(|field| matches!(field.node.value, Value::List(_)));
    has_list || reader.get("every").is_some()
}

/// Reads when the handovers of a table are, each of which takes `span` and is announced `notice` before, in a run of
/// length `duration`.
pub(crate) fn times(
    reader: &Reader<'_>,
    (span, notice): (Duration, Duration),
    duration: Option<Duration>,
    problems: &mut Problems,
) -> Option<Times> {
    let Some(field) = reader.get("every") else {
        reader.refuse(
            &["spacing", "least_spacing"],
            "it is about handovers that come again: add `every`",
            problems,
        );
        let field = reader.require("at", "a handover needs its time: at = \"12 s\"", problems)?;
        let Value::List(items) = &field.node.value else {
            return At::read(&field, problems).map(|at| Times::Given(vec![at], None));
        };
        if items.is_empty() {
            field.wrong("it must name one instant at least", None, problems);
            return None;
        }
        let all: Vec<_> = field.list("", problems).iter().map(|item| At::read(item, problems)).collect();
        return all.into_iter().collect::<Option<_>>().map(|all| Times::Given(all, None));
    };
    let every = field.positive_duration(problems)?;
    if duration.is_some_and(|duration| duration.as_nanos() / every.as_nanos() > MOST_HANDOVERS.into()) {
        field.wrong(format!("a run has at most {MOST_HANDOVERS} of them"), None, problems);
        return None;
    }
    if span >= every {
        let taken = crate::units::duration(span);
        field.wrong(format!("it must be longer than a handover takes, which is {taken}"), None, problems);
        return None;
    }
    let written = |time: Duration, field: &Field<'_>| At {
        time,
        written: crate::units::duration(time),
        origin: field.node.origin,
        path: field.path.clone(),
    };
    let spacing: Spacing = reader.get("spacing").and_then(|field| field.word(problems)).unwrap_or_default();
    if spacing == Spacing::Poisson {
        reader.refuse(&["at"], "the instants are drawn, the first one as well", problems);
        let least = match reader.get("least_spacing") {
            None => span.max(notice),
            Some(field) => {
                let least = field.duration(problems)?;
                if least < span.max(notice) {
                    let taken = crate::units::duration(span.max(notice));
                    let expected = format!("a handover takes, or is announced before, {taken}");
                    field.wrong(expected, Some("raise it".to_owned()), problems);
                }
                least
            }
        };
        if least >= every {
            field.wrong(
                format!(
                    "it is the mean distance, which must be above the least, {}",
                    crate::units::duration(least)
                ),
                None,
                problems,
            );
            return None;
        }
        return Some(Times::Drawn(Draws { mean: every, least }, written(every, &field)));
    }
    reader.refuse(&["least_spacing"], "it belongs to spacing = \"poisson\"", problems);
    let first = match reader.get("at") {
        Some(field) => At::read(&field, problems)?,
        None => written(every, &field),
    };
    // Those that would not be over before the run ends are left out.
    let end = duration.unwrap_or_default().saturating_sub(span);
    let mut all = vec![first];
    while let Some(last) = all.last().filter(|last| last.time.saturating_add(every) < end) {
        let next = last.time.saturating_add(every);
        all.push(written(next, &field));
    }
    Some(Times::Given(all, Some(every)))
}

/// The links that `to` names: one, or with several handovers those that are entered one after the other.
pub(crate) fn links_to<'a>(
    reader: &Reader<'a>,
    is_repeated: bool,
    problems: &mut Problems,
) -> Option<Vec<Reference<'a>>> {
    let expected = "a handover needs the link it enters: to = \"gsm\"";
    let field = reader.require("to", expected, problems)?;
    let Value::List(items) = &field.node.value else {
        return Reference::read(&field, problems).map(|link| vec![link]);
    };
    if !is_repeated || items.is_empty() {
        let hint = "write to = \"gsm\", or add `every`".to_owned();
        field.wrong("several links are for several handovers, one after the other", Some(hint), problems);
        return None;
    }
    field.list("", problems).iter().map(|item| Reference::read(item, problems)).collect()
}

/// The handovers of a table, each like `one`, at `times`: from `one.from` to the first of `links`, on to the next, and
/// from the last back again. Of drawn ones a single round.
pub(crate) fn expand<'a>(
    one: HandoverDraft<'a>,
    links: &[Reference<'a>],
    times: Times,
) -> Vec<HandoverDraft<'a>> {
    let mut round = vec![one.from.clone()];
    round.extend(links.iter().cloned());
    let step = |number: usize, at: At, every: Option<Duration>, drawn: Option<Draws>| HandoverDraft {
        at,
        every,
        from: round[number % round.len()].clone(),
        to: round[(number + 1) % round.len()].clone(),
        drawn,
        ..one.clone()
    };
    match times {
        Times::Given(all, every) => {
            all.into_iter().enumerate().map(|(number, at)| step(number, at, every, None)).collect()
        }
        Times::Drawn(draws, at) => {
            (0..round.len()).map(|number| step(number, at.clone(), None, Some(draws))).collect()
        }
    }
}
