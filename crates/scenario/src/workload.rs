//! What a flow carries: the keys of `[[flow]]` that say what its application does.

use careof_base::{DataRate, Duration};

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::flow::{Work, programs};
use crate::mobility::Reference;
use crate::model::{Burst, Law, OnOff, Workload};
use crate::tree::Value;
use crate::words::{LawWord, ReadWord as _, WorkloadKind};

/// Keys that not every kind has: whose they are, and what is said where another one has them.
const KEYS: [(&[WorkloadKind], &[&str], &str); 5] = [
    (
        &[WorkloadKind::RequestResponse],
        &["request", "response", "think", "requests"],
        "it belongs to kind = \"request-response\"",
    ),
    (
        &[WorkloadKind::Paced, WorkloadKind::OnOff],
        &["rate", "message"],
        "it belongs to kind = \"paced\" and to kind = \"on-off\" with `on`",
    ),
    (
        &[WorkloadKind::OnOff],
        &["burst", "on", "pause", "burst_law", "pause_law", "shape"],
        "it belongs to kind = \"on-off\"",
    ),
    (&[WorkloadKind::Command], &["command", "server"], "it belongs to kind = \"command\""),
    (&[WorkloadKind::Probe], &["link"], "it belongs to kind = \"probe\""),
];

/// Reads what a flow carries.
pub(crate) fn workload<'a>(reader: &Reader<'a>, problems: &mut Problems) -> Option<Work<'a>> {
    let kind = match reader.get("kind") {
        Some(field) => field.word(problems)?,
        None if reader.get("command").is_some() => WorkloadKind::Command,
        None => WorkloadKind::Bulk,
    };
    for (kinds, keys, reason) in KEYS {
        if !kinds.contains(&kind) {
            reader.refuse(keys, reason, problems);
        }
    }
    match kind {
        WorkloadKind::Command => {
            reader.refuse(&["size"], "the program decides how much it sends", problems);
            return programs(reader, problems).map(Work::Programs);
        }
        WorkloadKind::Probe => {
            reader.refuse(&["size", "tcp", "quic", "mptcp"], "a probe sends packets of its own", problems);
            let link = match reader.get("link") {
                Some(field) => Some(Reference::read(&field, problems)?),
                None => None,
            };
            return Some(Work::Probe(link));
        }
        WorkloadKind::Bulk | WorkloadKind::RequestResponse | WorkloadKind::Paced | WorkloadKind::OnOff => {}
    }
    model(reader, kind, problems).map(Work::Model)
}

fn model(reader: &Reader<'_>, kind: WorkloadKind, problems: &mut Problems) -> Option<Workload> {
    // A size that is given and wrong must not pass for none.
    let size = |problems: &mut Problems| match reader.get("size") {
        Some(field) => field.size(problems).map(Some),
        None => Some(None),
    };
    match kind {
        WorkloadKind::Command | WorkloadKind::Probe => None,
        WorkloadKind::Bulk => Some(Workload::Bulk { size: size(problems)? }),
        WorkloadKind::Paced => {
            let size = size(problems);
            let (rate, message) = pace(reader, "a paced flow", problems)?;
            Some(Workload::Paced { rate, message, size: size? })
        }
        WorkloadKind::OnOff => {
            let size = size(problems);
            on_off(reader, problems)
                .map(|on_off| (on_off, size))
                .and_then(|(on_off, size)| Some(Workload::OnOff(OnOff { size: size?, ..on_off })))
        }
        WorkloadKind::RequestResponse => {
            let reason = "a request-response flow counts its requests: requests = 10";
            reader.refuse(&["size"], reason, problems);
            let mut part = |key: &str, expected: &str| {
                reader.require(key, expected, problems).and_then(|field| field.size(problems))
            };
            let request = part("request", "it needs the size of a request: request = \"400 B\"");
            let response = part("response", "it needs the size of a response: response = \"30 kB\"");
            let think = reader.get("think").map_or(Some(Duration::ZERO), |field| field.duration(problems));
            let count = match reader.get("requests") {
                Some(field) if matches!(&field.node.value, Value::Text(text) if text == "endless") => {
                    Some(None)
                }
                Some(field) => field.integer(1, u64::MAX, problems).map(Some),
                None => Some(None),
            };
            Some(Workload::RequestResponse {
                request: request?,
                response: response?,
                think: think?,
                count: count?,
            })
        }
    }
}

/// Rate and message of `what`, which writes at an even pace.
fn pace(reader: &Reader<'_>, what: &str, problems: &mut Problems) -> Option<(DataRate, u64)> {
    let rate = reader
        .require("rate", &format!("{what} needs its rate: rate = \"64 kbit/s\""), problems)
        .and_then(|field| positive_rate(&field, problems));
    let message = reader
        .require("message", &format!("{what} needs the size of a message: message = \"160 B\""), problems)
        .and_then(|field| field.size(problems));
    Some((rate?, message?))
}

/// Bursts and pauses, without their size in all.
fn on_off(reader: &Reader<'_>, problems: &mut Problems) -> Option<OnOff> {
    let burst = match (reader.get("burst"), reader.get("on")) {
        (Some(_), Some(on)) => {
            on.wrong("a burst has bytes or a time: leave `burst` or `on` out", None, problems);
            None
        }
        (Some(burst), None) => {
            reader.refuse(
                &["rate", "message"],
                "a burst of `burst` bytes is written at once: write `on` in its place",
                problems,
            );
            burst.size(problems).map(Burst::Bytes)
        }
        (None, Some(on)) => {
            let span = on.positive_duration(problems);
            pace(reader, "a burst that lasts `on`", problems)
                .and_then(|(rate, message)| Some(Burst::Time { span: span?, rate, message }))
        }
        (None, None) => {
            let expected = "an on-off flow needs its bursts: burst = \"500 kB\", or on = \"2 s\" with a rate";
            let _ = reader.require("burst", expected, problems);
            None
        }
    };
    let pause = reader
        .require("pause", "an on-off flow needs its pauses: pause = \"3 s\"", problems)
        .and_then(|field| field.positive_duration(problems));
    let word = |key: &str, problems: &mut Problems| match reader.get(key) {
        Some(field) => field.word(problems),
        None => Some(LawWord::Fixed),
    };
    let (of_bursts, of_pauses) = (word("burst_law", problems), word("pause_law", problems));
    let shape = match reader.get("shape") {
        Some(field) if ![of_bursts, of_pauses].contains(&Some(LawWord::Pareto)) => {
            field.wrong("it is the shape of a law that is \"pareto\", and none is", None, problems);
            None
        }
        Some(field) => {
            let above_one = |shape: f64| shape > 1.0 && shape.is_finite();
            field.number(above_one, "the shape must be a number above 1", problems)
        }
        None => Some(Law::USUAL_SHAPE),
    };
    let law = |word: LawWord| {
        Some(match word {
            LawWord::Fixed => Law::Fixed,
            LawWord::Exponential => Law::Exponential,
            LawWord::Pareto => Law::Pareto(shape?),
        })
    };
    Some(OnOff {
        burst: burst?,
        burst_law: law(of_bursts?)?,
        pause: pause?,
        pause_law: law(of_pauses?)?,
        size: None,
    })
}

fn positive_rate(field: &Field<'_>, problems: &mut Problems) -> Option<DataRate> {
    let rate = field.rate(problems)?;
    if rate == DataRate::ZERO {
        field.wrong("it must be above zero", None, problems);
        return None;
    }
    Some(rate)
}
