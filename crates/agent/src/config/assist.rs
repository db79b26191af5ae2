//! `[assist]`: what is done for TCP connections at handovers. The words are those of the scenarios.

use std::net::IpAddr;
use std::time::Duration;

use careof_assist::{
    BlackHole, Config, Exception, FastRetransmit, HoldLast, Kind, LcdKick, MssClamp, Place, Replay, Rest,
    Which, WindowClamp,
};
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::section::Section;
use careof_document::tree::Value;
use careof_document::units;
use careof_mobility::{v4, v6};

use super::fields::{count, given, prefix};
use super::reference::{
    ASSIST, ASSIST_BLACK_HOLE, ASSIST_EXCEPT, ASSIST_FAST_RETRANSMIT, ASSIST_HOLD_LAST, ASSIST_LCD_KICK,
    ASSIST_MSS_CLAMP, ASSIST_REPLAY, ASSIST_WINDOW_CLAMP,
};

/// The assists of a daemon, the sections of their parameters, and whether they run on mobile nodes only.
const KNOWN: [(Kind, &Section, bool); 7] = [
    (Kind::Replay, &ASSIST_REPLAY, false),
    (Kind::HoldLast, &ASSIST_HOLD_LAST, false),
    (Kind::LcdKick, &ASSIST_LCD_KICK, false),
    (Kind::FastRetransmit, &ASSIST_FAST_RETRANSMIT, true),
    (Kind::WindowClamp, &ASSIST_WINDOW_CLAMP, true),
    (Kind::MssClamp, &ASSIST_MSS_CLAMP, false),
    (Kind::BlackHole, &ASSIST_BLACK_HOLE, false),
];

/// Those of a scenario that need what a daemon does not have.
const ELSEWHERE: [&str; 13] = [
    "freeze",
    "ack-hold",
    "path-queue",
    "buffer-forward",
    "bicast",
    "snoop",
    "ebsn",
    "split",
    "m-tcp",
    "rto-reset",
    "tcp-cm",
    "mobile-tcp",
    "rto-fast-decrease",
];

const MOST: u64 = 10_000_000;
/// The tunnel's header and 40 bytes of IP and TCP leave some of it for every encapsulation.
const LEAST_CLAMPED_MTU: u16 = 128;

/// The assists that `assist` asks for; `None`: none.
pub(super) fn assist(reader: &Reader<'_>, place: Place, problems: &mut Problems) -> Option<Config> {
    let field = reader.get("assist")?;
    let table = match &field.node.value {
        Value::Table(_) => Some(field.reader(&ASSIST, problems)?),
        // assist = "default"
        _ => None,
    };
    let used = match &table {
        Some(table) => table.get("use"),
        None => Some(field),
    };
    let used = used.map(|field| kinds(&field, place, problems)).unwrap_or_default();
    let mut config = Config::none(place);
    for (kind, section, _) in KNOWN {
        let parameters = table.as_ref().and_then(|table| table.get(kind.name()));
        let is_used = used.contains(&kind);
        if let (Some(parameters), false) = (&parameters, is_used) {
            let hint = format!("add \"{}\" to `use`, or leave its parameters out", kind.name());
            parameters.wrong(format!("\"{}\" is not in use", kind.name()), Some(hint), problems);
        }
        if is_used {
            let reader = parameters.and_then(|field| field.reader(section, problems));
            take(kind, reader.as_ref(), &mut config, problems);
        }
    }
    if let Some(except) = table.as_ref().and_then(|table| table.get("except")) {
        const EXPECTED: &str = "it is an array of tables, such as [{ prefix = \"10.0.0.0/8\", port = 22 }]";
        let items = except.list(EXPECTED, problems);
        config.except = items.iter().filter_map(|item| exception(item, problems)).collect();
    }
    (!used.is_empty()).then_some(config)
}

/// The names in `use`: an array, or text in which `+` stands between them.
fn kinds(used: &Field<'_>, place: Place, problems: &mut Problems) -> Vec<Kind> {
    const EXPECTED: &str = "it is an array of names, such as [\"replay\", \"lcd-kick\"], or one of them";
    let fields = match &used.node.value {
        Value::Text(_) => vec![used.clone()],
        _ => used.list(EXPECTED, problems),
    };
    let mut names = Vec::new();
    for field in &fields {
        let Some(text) = field.text(problems) else { continue };
        names.extend(text.split('+').map(|name| (name.trim(), field)));
    }
    let is_alone = names.len() == 1;
    let is_mobile = place == Place::MobileNode;
    let mut kinds = Vec::new();
    for (name, field) in names {
        let wrong = |expected: String, hint: &str, problems: &mut Problems| {
            field.wrong(expected, Some(hint.to_owned()), problems);
        };
        match KNOWN.into_iter().find(|(kind, ..)| kind.name() == name) {
            Some((_, _, true)) if !is_mobile => {
                wrong(format!("\"{name}\" runs on a mobile node"), "configure it there", problems);
            }
            Some((kind, ..)) if kinds.contains(&kind) => {
                wrong(format!("\"{name}\" is named twice"), "name an assist once", problems);
            }
            Some((kind, ..)) => kinds.push(kind),
            None if matches!(name, "none" | "default") && !is_alone => {
                wrong(format!("\"{name}\" stands alone"), "write it alone, or name the assists", problems);
            }
            None if name == "none" => {}
            None if name == "default" => {
                kinds.extend([Kind::Replay, Kind::LcdKick]);
                kinds.extend(is_mobile.then_some(Kind::WindowClamp));
            }
            None if ELSEWHERE.contains(&name) => {
                let expected = format!("\"{name}\" needs what a daemon on its own does not have");
                wrong(expected, "use \"default\"; the simulator has it", problems);
            }
            None => {
                let known: Vec<_> = KNOWN.iter().map(|(kind, ..)| format!("\"{}\"", kind.name())).collect();
                let expected = format!("known are \"none\", \"default\", {}", known.join(", "));
                field.wrong(expected, None, problems);
            }
        }
    }
    if kinds.contains(&Kind::Replay) && kinds.contains(&Kind::HoldLast) {
        let expected = "\"replay\" and \"hold-last\" both keep the packets of a flow";
        used.wrong(expected, Some("use one of them".to_owned()), problems);
    }
    kinds
}

/// Enters an assist with its parameters.
fn take(kind: Kind, reader: Option<&Reader<'_>>, config: &mut Config, problems: &mut Problems) {
    match kind {
        Kind::Replay => {
            let mut replay = Replay::DEFAULT;
            if let Some(reader) = reader {
                set(reader, "bytes", &mut replay.bytes, problems, Field::size);
                set(reader, "packets", &mut replay.packets, problems, |field, p| count(field, 1, MOST, p));
                set(reader, "total", &mut config.limits.bytes, problems, Field::size);
                set(reader, "flows", &mut config.limits.flows, problems, |field, p| count(field, 1, MOST, p));
                set(reader, "age", &mut replay.age, problems, Field::positive_duration);
                let ends = [("oldest", Which::Oldest), ("newest", Which::Newest)];
                set(reader, "keep", &mut replay.keep, problems, |field, p| field.choice(&ends, &[], p));
                let rests = [("wait", Rest::Wait), ("drop", Rest::Drop), ("burst", Rest::Burst)];
                set(reader, "rest", &mut replay.rest, problems, |field, p| field.choice(&rests, &[], p));
                set(reader, "wait", &mut replay.wait, problems, Field::duration);
                let words = [("swallow", true), ("pass", false)];
                set(reader, "duplicates", &mut replay.swallow, problems, |f, p| f.choice(&words, &[], p));
                set(reader, "patience", &mut replay.patience, problems, |field, p| number(field, 0, p));
                if config.limits.bytes < replay.bytes
                    && let Some(field) = reader.get("total").or_else(|| reader.get("bytes"))
                {
                    field.wrong("`total` must be at least `bytes`", None, problems);
                }
            }
            config.replay = Some(replay);
        }
        Kind::HoldLast => {
            let mut hold = HoldLast::DEFAULT;
            if let Some(reader) = reader {
                set(reader, "packets", &mut hold.packets, problems, |field, p| count(field, 1, MOST, p));
                set(reader, "age", &mut hold.age, problems, Field::positive_duration);
            }
            config.hold_last = Some(hold);
        }
        Kind::LcdKick => {
            let mut kick = LcdKick::DEFAULT;
            if let Some(reader) = reader {
                let limits = &mut config.limits;
                set(reader, "during", &mut kick.during, problems, Field::boolean);
                set(reader, "interval", &mut kick.interval, problems, Field::positive_duration);
                set(reader, "burst", &mut kick.burst, problems, |field, p| number(field, 0, p));
                set(reader, "spacing", &mut kick.spacing, problems, Field::duration);
                set(reader, "limit", &mut limits.unreachables_per_second, problems, |f, p| number(f, 1, p));
            }
            config.lcd_kick = Some(kick);
        }
        Kind::FastRetransmit => {
            let mut repeat = FastRetransmit::DEFAULT;
            if let Some(reader) = reader {
                set(reader, "acks", &mut repeat.acks, problems, |field, p| number(field, 1, p));
                set(reader, "longest_outage", &mut repeat.longest_outage, problems, longest_outage);
            }
            config.fast_retransmit = Some(repeat);
        }
        Kind::WindowClamp => {
            let mut clamp = WindowClamp::DEFAULT;
            if let Some(reader) = reader {
                let fits = |factor: f64| factor > 0.0 && factor <= 1000.0;
                let expected = "it must be a number above 0 and at most 1000";
                set(reader, "factor", &mut clamp.factor, problems, |f, p| f.number(fits, expected, p));
                set(reader, "plus", &mut clamp.segments, problems, |field, p| {
                    field.quantity(units::parse_segments, "\"1 segment\"", p)
                });
                let origins = [("slower", false), ("always", true)];
                set(reader, "from", &mut clamp.always, problems, |field, p| field.choice(&origins, &[], p));
            }
            config.window_clamp = Some(clamp);
        }
        Kind::MssClamp => {
            let mut clamp = MssClamp::DEFAULT;
            if let Some(reader) = reader {
                set(reader, "mtu", &mut clamp.mtu, problems, |field, p| {
                    field.packet_size(LEAST_CLAMPED_MTU, u16::MAX, p)
                });
            }
            config.mss_clamp = Some(clamp);
        }
        Kind::BlackHole => {
            let mut hole = BlackHole::DEFAULT;
            if let Some(reader) = reader {
                set(reader, "repeats", &mut hole.repeats, problems, |field, p| number(field, 1, p));
                set(reader, "lifetime", &mut hole.lifetime, problems, Field::positive_duration);
            }
            config.black_hole = Some(hole);
        }
        // No others are known here.
        _ => {}
    }
}

/// Sets what is given.
fn set<'a, T>(
    reader: &Reader<'a>,
    key: &str,
    place: &mut T,
    problems: &mut Problems,
    read: impl FnOnce(&Field<'a>, &mut Problems) -> Option<T>,
) {
    if let Some(value) = given(reader, key, problems, read) {
        *place = value;
    }
}

fn number(field: &Field<'_>, least: u64, problems: &mut Problems) -> Option<u32> {
    field.integer(least, MOST, problems).and_then(|number| u32::try_from(number).ok())
}

/// A duration, or `"any"`.
fn longest_outage(field: &Field<'_>, problems: &mut Problems) -> Option<Option<Duration>> {
    match &field.node.value {
        Value::Text(text) if text == "any" => Some(None),
        _ => field.duration(problems).map(Some),
    }
}

/// A prefix of either version.
fn any_prefix(field: &Field<'_>, problems: &mut Problems) -> Option<(IpAddr, u8)> {
    if matches!(&field.node.value, Value::Text(text) if text.contains(':')) {
        let prefix: v6::Prefix = prefix(field, problems)?;
        return Some((prefix.address().into(), prefix.length()));
    }
    let prefix: v4::Prefix = prefix(field, problems)?;
    Some((prefix.address().into(), prefix.length()))
}

fn exception(field: &Field<'_>, problems: &mut Problems) -> Option<Exception> {
    let before = problems.count();
    let reader = field.reader(&ASSIST_EXCEPT, problems)?;
    let network = given(&reader, "prefix", problems, any_prefix);
    let port = given(&reader, "port", problems, |field, p| field.integer(1, 65_535, p));
    if problems.count() > before {
        return None;
    }
    if network.is_none() && port.is_none() {
        let hint = "write use = \"none\" to leave all flows alone".to_owned();
        field.wrong("an exception has a `prefix`, a `port` or both", Some(hint), problems);
        return None;
    }
    Some(Exception { prefix: network, port: port.and_then(|port| u16::try_from(port).ok()) })
}
