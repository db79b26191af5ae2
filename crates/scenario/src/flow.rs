//! `[[flow]]`.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::mobility::Reference;
use crate::model::{Programs, Workload};
use crate::mptcp::{MptcpDraft, mptcp};
use crate::quic::{QuicDraft, quic};
use crate::reference::flow::FLOW;
use crate::tcp::{TcpDraft, tcp};
use crate::tree::Value;
use crate::workload::workload;

/// A table stands for no more flows than this: each has a port of its own.
const MOST_FLOWS: u64 = 10_000;

/// A `[[flow]]` table, its nodes not yet looked up.
#[derive(Debug)]
pub(crate) struct FlowDraft<'a> {
    pub(crate) name: Option<&'a str>,
    /// Where an error of the name belongs.
    pub(crate) place: (Origin, String),
    pub(crate) from: Option<Reference<'a>>,
    pub(crate) to: Option<Reference<'a>>,
    pub(crate) start: Duration,
    pub(crate) stop: Option<Duration>,
    pub(crate) workload: Option<Work<'a>>,
    pub(crate) tcp: Option<TcpDraft>,
    pub(crate) quic: Option<QuicDraft>,
    pub(crate) mptcp: Option<MptcpDraft<'a>>,
    /// How many flows alike the table stands for, where it says so, and where.
    pub(crate) count: Option<(usize, Origin, String)>,
}

/// What the application does, as far as it is known before names are looked up.
#[derive(Debug)]
pub(crate) enum Work<'a> {
    Model(Workload),
    Programs(ProgramsDraft),
    Probe(Option<Reference<'a>>),
}

/// Programs whose placeholders are not yet looked up.
#[derive(Debug)]
pub(crate) struct ProgramsDraft {
    pub(crate) programs: Programs,
    /// Where an error of each program belongs, the command's first.
    pub(crate) places: Vec<(Origin, String)>,
}

/// Reads one element of `flow` in a run of length `duration`.
pub(crate) fn flow<'a>(
    field: &Field<'a>,
    duration: Option<Duration>,
    problems: &mut Problems,
) -> Option<FlowDraft<'a>> {
    let reader = field.reader(&FLOW, problems)?;
    let mut place = (reader.origin, reader.path.clone());
    let name = reader.get("name").and_then(|field| {
        place = (field.node.origin, field.path.clone());
        field.name(problems)
    });
    let mut end = |key: &str, expected: &str| {
        reader.require(key, expected, problems).and_then(|field| Reference::read(&field, problems))
    };
    let from = end("from", "a flow needs the node that opens it: from = \"correspondent\"");
    let to = end("to", "a flow needs its other end: to = \"mobile\"");
    let (start, stop) = times(&reader, duration, problems);
    let workload = workload(&reader, problems);
    let of_programs = matches!(workload, Some(Work::Programs(_)));
    let place_of_tcp = (reader.origin, &*format!("{}.tcp", reader.path));
    let quic = match reader.get("quic") {
        Some(field) => {
            reader.refuse(&["tcp"], "a flow is carried by one of both: leave `tcp` or `quic` out", problems);
            if of_programs {
                field.wrong(
                    "programs bring their own transport",
                    Some("leave `quic` out".to_owned()),
                    problems,
                );
            }
            Some(quic(&field, problems)?)
        }
        None => None,
    };
    let mptcp = match reader.get("mptcp") {
        Some(field) => {
            let read = mptcp(&field, problems)?;
            if read.is_some() && quic.is_some() {
                let expected = "a flow is carried by one of both: leave `mptcp` or `quic` out";
                field.wrong(expected, None, problems);
            }
            if read.is_some() && of_programs {
                let hint = "leave `mptcp` out".to_owned();
                field.wrong("programs open their own sockets", Some(hint), problems);
            }
            read
        }
        None => None,
    };
    let tcp = tcp(reader.get("tcp"), of_programs, place_of_tcp, problems);
    let count = count(&reader, workload.as_ref(), problems);
    Some(FlowDraft { name, place, from, to, start, stop, workload, tcp, quic, mptcp, count })
}

/// How many flows a table stands for.
fn count(
    reader: &Reader<'_>,
    workload: Option<&Work<'_>>,
    problems: &mut Problems,
) -> Option<(usize, Origin, String)> {
    let field = reader.get("count")?;
    if let Some(Work::Programs(_) | Work::Probe(_)) = workload {
        let hint = "write the table again, with another name".to_owned();
        field.wrong("each program and each probe has a table of its own", Some(hint), problems);
        return None;
    }
    let is_request_response = matches!(workload, Some(Work::Model(Workload::RequestResponse { .. })));
    if is_request_response && reader.get("requests").is_none() {
        let hint = "write `requests` for how many there are in each, or requests = \"endless\"".to_owned();
        field.wrong("`count` is how many connections there are", Some(hint), problems);
        return None;
    }
    let count = field.integer(1, MOST_FLOWS, problems)?;
    Some((usize::try_from(count).unwrap_or(usize::MAX), field.node.origin, field.path.clone()))
}

fn times(
    reader: &Reader<'_>,
    duration: Option<Duration>,
    problems: &mut Problems,
) -> (Duration, Option<Duration>) {
    let start = reader.get("start").map(|field| (field.duration(problems), field));
    if let (Some((Some(start), field)), Some(duration)) = (&start, duration)
        && *start >= duration
    {
        let expected = format!("the run ends at {}", crate::units::duration(duration));
        field.wrong(expected, Some("start the flow earlier or raise `duration`".to_owned()), problems);
    }
    let start = start.and_then(|(start, _)| start).unwrap_or_default();
    let stop = reader.get("stop").and_then(|field| {
        let stop = field.duration(problems)?;
        if stop <= start {
            let expected = format!("the flow starts at {}", crate::units::duration(start));
            field.wrong(expected, Some("stop it later".to_owned()), problems);
        }
        Some(stop)
    });
    (start, stop)
}

/// The programs of a flow that runs some.
pub(crate) fn programs(reader: &Reader<'_>, problems: &mut Problems) -> Option<ProgramsDraft> {
    let expected = "such a flow needs its program: command = \"iperf3 -c {correspondent}\"";
    let command = reader.require("command", expected, problems)?;
    let mut places = vec![(command.node.origin, command.path.clone())];
    let command = words(&command, problems);
    let server = match reader.get("server") {
        Some(field) => {
            places.push((field.node.origin, field.path.clone()));
            Some(words(&field, problems)?)
        }
        None => None,
    };
    Some(ProgramsDraft { programs: Programs { command: command?, server }, places })
}

/// A program with its arguments: an array, or text that is split at spaces outside quotes.
fn words(field: &Field<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let words = match &field.node.value {
        Value::List(_) => {
            let items = field.list("", problems);
            items.iter().map(|item| item.text(problems).map(str::to_owned)).collect::<Option<Vec<_>>>()?
        }
        _ => {
            let Some(words) = split(field.text(problems)?) else {
                field.wrong("a quotation mark is missing in it", None, problems);
                return None;
            };
            words
        }
    };
    if words.first().is_none_or(String::is_empty) {
        field.wrong("it must begin with the name of a program", None, problems);
        return None;
    }
    Some(words)
}

/// Words as a shell would split them, without its expansions; `None` when a quotation does not end.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
