//! What a flow carries: the keys of `[[flow]]` that say what its application does.

use careof_base::{DataRate, Duration};

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::flow::{Work, programs};
use crate::mobility::Reference;
use crate::model::{Adaptation, Burst, Codec, Ladder, Law, OnOff, Video, Voice, Workload};
use crate::tree::Value;
use crate::words::{LawWord, ReadWord as _, WorkloadKind};

/// Keys that not every kind has: whose they are, and what is said where another one has them.
const KEYS: [(&[WorkloadKind], &[&str], &str); 8] = [
    (
        &[WorkloadKind::RequestResponse],
        &["response", "think", "requests"],
        "it belongs to kind = \"request-response\"",
    ),
    (
        &[WorkloadKind::RequestResponse, WorkloadKind::Video],
        &["request"],
        "it belongs to kind = \"request-response\" and to kind = \"video\"",
    ),
    (
        &[WorkloadKind::Video],
        &["segment", "rates", "buffer", "startup", "adaptation", "length"],
        "it belongs to kind = \"video\"",
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
    (
        &[WorkloadKind::Voice],
        &["codec", "payload", "interval", "jitter_buffer", "ie", "bpl"],
        "it belongs to kind = \"voice\"",
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
        WorkloadKind::Voice => {
            reader.refuse(&["size"], "a voice flow lasts until `stop`, or the end of the run", problems);
            let reason = "voice is carried by RTP over UDP";
            reader.refuse(&["tcp", "quic", "mptcp"], reason, problems);
            return voice(reader, problems).map(|voice| Work::Model(Workload::Voice(voice)));
        }
        WorkloadKind::Video => {
            reader.refuse(&["size"], "a film has a `length`", problems);
            return video(reader, problems).map(|video| Work::Model(Workload::Video(video)));
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
        WorkloadKind::Command | WorkloadKind::Probe | WorkloadKind::Voice | WorkloadKind::Video => None,
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

/// A voice flow: of a codec, or packets of the file's own.
fn voice(reader: &Reader<'_>, problems: &mut Problems) -> Option<Voice> {
    let is_own = reader.has_any(&["payload", "interval"]);
    let codec = match reader.get("codec") {
        Some(field) => {
            reader.refuse(
                &["payload", "interval"],
                "a codec has its own: leave `codec` out for packets of your own",
                problems,
            );
            Some(field.word::<Codec>(problems)?)
        }
        None => (!is_own).then_some(Codec::G711),
    };
    let mut own = || {
        let payload = reader
            .require("payload", "packets of your own need their size: payload = \"160 B\"", problems)
            .and_then(|field| {
                let bytes = field.size(problems)?;
                let fits = u16::try_from(bytes).ok().filter(|bytes| *bytes <= Voice::LARGEST);
                if fits.is_none() {
                    field.wrong(format!("a packet has {} bytes at most", Voice::LARGEST), None, problems);
                }
                fits
            });
        let interval = reader
            .require("interval", "packets of your own need their distance: interval = \"20 ms\"", problems)
            .and_then(|field| field.positive_duration(problems));
        Some((payload?, interval?))
    };
    let (payload, interval) = match codec {
        Some(codec) => (codec.payload(), codec.interval()),
        None => own()?,
    };
    let jitter_buffer = match reader.get("jitter_buffer") {
        Some(field) => field.duration(problems)?,
        None => Voice::USUAL_BUFFER,
    };
    let known = codec.and_then(Codec::impairment);
    let mut factor = |key: &str, expected: &str, fits: fn(f64) -> bool| match reader.get(key) {
        Some(field) => field.number(fits, expected, problems).map(Some),
        None => Some(None),
    };
    let ie = factor("ie", "it must be a number from 0 to 95", |ie| (0.0..=95.0).contains(&ie))?;
    let bpl = factor("bpl", "it must be a number above 0", |bpl| bpl > 0.0 && bpl.is_finite())?;
    let impairment = match (ie, bpl) {
        (None, None) => known,
        (ie, bpl) => {
            let [known_ie, known_bpl] = known.map_or([None; 2], |known| known.map(Some));
            let both = ie.or(known_ie).zip(bpl.or(known_bpl));
            if both.is_none() {
                let (missing, expected) = match ie {
                    Some(_) => ("bpl", "the E-model needs both: bpl = 25.1"),
                    None => ("ie", "the E-model needs both: ie = 0"),
                };
                let _ = reader.require(missing, expected, problems);
                return None;
            }
            both.map(|(ie, bpl)| [ie, bpl])
        }
    };
    Some(Voice { codec, payload, interval, jitter_buffer, impairment })
}

/// The length of a segment, the most that is fetched ahead, and the request, where none is given.
const USUAL_SEGMENT: Duration = Duration::from_secs(4);
const USUAL_BUFFER: Duration = Duration::from_secs(30);
const USUAL_REQUEST: u64 = 400;

fn video(reader: &Reader<'_>, problems: &mut Problems) -> Option<Video> {
    let mut span = |key: &str, usual: Duration| match reader.get(key) {
        Some(field) => field.positive_duration(problems),
        None => Some(usual),
    };
    let segment = span("segment", USUAL_SEGMENT);
    let startup = span("startup", segment.unwrap_or(USUAL_SEGMENT));
    let buffer = span("buffer", USUAL_BUFFER);
    let ladder = match reader.get("rates") {
        Some(field) => ladder(&field, problems),
        None => Some(Ladder::default()),
    };
    let adaptation = match reader.get("adaptation") {
        Some(field) => field.word(problems),
        None => Some(Adaptation::Throughput),
    };
    let length = match reader.get("length") {
        Some(field) => field.positive_duration(problems).map(Some),
        None => Some(None),
    };
    let request = match reader.get("request") {
        Some(field) => field.size(problems),
        None => Some(USUAL_REQUEST),
    };
    let (segment, startup, buffer) = (segment?, startup?, buffer?);
    let least = startup.saturating_add(segment);
    if buffer < least {
        let least = crate::units::duration(least);
        let expected = format!(
            "before it is played there is `startup`, and a segment has to fit beside it: {least} at least"
        );
        match reader.get("buffer") {
            Some(field) => field.wrong(expected, None, problems),
            None => {
                let place = format!("{}.buffer", reader.path);
                problems.add((reader.origin, &place), crate::units::duration(buffer), expected, None);
            }
        }
        return None;
    }
    let segments = length?.map(|length| {
        u64::try_from(length.as_nanos().div_ceil(segment.as_nanos().max(1))).unwrap_or(u64::MAX).max(1)
    });
    Some(Video {
        segment,
        ladder: ladder?,
        buffer,
        startup,
        adaptation: adaptation?,
        segments,
        request: request?,
    })
}

fn ladder(field: &Field<'_>, problems: &mut Problems) -> Option<Ladder> {
    let items = field.list("rates = [\"400 kbit/s\", \"1 Mbit/s\"]", problems);
    let rates = items.iter().map(|item| item.rate(problems)).collect::<Option<Vec<_>>>()?;
    let ladder = Ladder::new(&rates);
    if ladder.is_none() {
        let expected =
            format!("it must have 1 to {} rates, above zero and each above the one before", Ladder::MOST);
        field.wrong(expected, None, problems);
    }
    ladder
}

fn positive_rate(field: &Field<'_>, problems: &mut Problems) -> Option<DataRate> {
    let rate = field.rate(problems)?;
    if rate == DataRate::ZERO {
        field.wrong("it must be above zero", None, problems);
        return None;
    }
    Some(rate)
}
