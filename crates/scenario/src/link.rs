//! `[links]`: presets, what changes them, and the two directions.

use careof_link::{
    Config, Discipline, Framing, Jitter, Loss, MINIMUM_MTU, QueueConfig, RedConfig, UNLIMITED_RATE,
};

use crate::decode::{Field, Reader, check_name};
use crate::error::{Origin, Problems};
use crate::medium::{self, MediumDraft};
use crate::model::{KnownRate, MediumId, TraceFile};
use crate::pattern::{is_pattern, name_or_pattern};
use crate::prefix::{PrefixDraft, prefix};
use crate::presets::{Preset, preset, presets};
use crate::reference::link::{FRAMING, JITTER, LINK, LOSS, QUEUE};
use crate::trace::{ReadFile, TraceChoice, trace};
use crate::tree::{Entry, Value, join};
use crate::units;
use crate::words::{DisciplineKind, JitterKind, LossKind, ReadWord as _, nearest};

/// Why a link has a least MTU.
const LEAST_REASON: &str = "every IPv4 node passes on 68 bytes whole (RFC 791, section 3.2)";
/// The preset of links that are understood without being given.
pub(crate) const IMPLIED_PRESET: &str = "ethernet-10m";

/// Links that one table can stand for, and mobile nodes of one scenario.
pub(crate) const MOST_COPIES: u64 = 20_000;

/// A link as the file gives it, its place in the network still open.
#[derive(Debug)]
pub(crate) struct LinkDraft<'a> {
    pub(crate) name: &'a str,
    pub(crate) origin: Origin,
    pub(crate) path: String,
    pub(crate) preset: Option<&'static str>,
    pub(crate) between: Option<Between<'a>>,
    /// The medium it is on.
    pub(crate) medium: Option<MediumId>,
    /// How often it stands there, and where that is written.
    pub(crate) count: Option<(usize, Origin, String)>,
    /// Down and up; `None` if there was an error in them.
    pub(crate) directions: Option<[Config; 2]>,
    /// Of down and up.
    pub(crate) traces: [Option<TraceFile>; 2],
    pub(crate) known_rate: KnownRate,
    pub(crate) prefix: Option<PrefixDraft>,
    /// Where it is written that the link has only IPv4.
    pub(crate) ipv4_only: Option<(Origin, String)>,
}

/// Both directions of a link, down and up.
#[derive(Debug)]
pub(crate) struct Directions {
    pub(crate) configs: [Config; 2],
    pub(crate) traces: [Option<TraceFile>; 2],
}

impl LinkDraft<'_> {
    /// Where an error of the link's ends belongs.
    pub(crate) fn ends_place(&self) -> (Origin, String) {
        match &self.between {
            Some(between) => (between.origin, between.path.clone()),
            None => (self.origin, self.path.clone()),
        }
    }
}

/// The value of `between`.
#[derive(Debug)]
pub(crate) struct Between<'a> {
    pub(crate) origin: Origin,
    pub(crate) path: String,
    /// `None` if it was not two names.
    pub(crate) ends: Option<[&'a str; 2]>,
}

/// What a mobile node takes the link's rate for.
fn known_rate(field: &Field<'_>, problems: &mut Problems) -> KnownRate {
    if matches!(&field.node.value, Value::Text(text) if text == "none") {
        return KnownRate::Unknown;
    }
    field.rate(problems).map_or(KnownRate::True, KnownRate::Told)
}

/// Where the version of the link's network is written, if it is 4.
fn only_ipv4(field: &Field<'_>, problems: &mut Problems) -> Option<(Origin, String)> {
    match field.integer(4, 6, problems)? {
        4 => Some((field.node.origin, field.path.clone())),
        6 => None,
        _ => {
            field.wrong("there is 4 and there is 6", None, problems);
            None
        }
    }
}

/// Reads one entry of `[links]`. `implied` says whether the link would exist without it.
pub(crate) fn link<'a>(
    entry: &'a Entry,
    implied: bool,
    media: &[MediumDraft<'_>],
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> LinkDraft<'a> {
    let path = join("links", &entry.key);
    let field = Field { node: &entry.node, path: path.clone() };
    if let Err(expected) = check_name(&entry.key) {
        problems.add((entry.origin, &path), "a link of that name", expected, None);
    }
    let mut draft = LinkDraft {
        name: &entry.key,
        origin: entry.node.origin,
        path,
        preset: None,
        between: None,
        medium: None,
        count: None,
        directions: None,
        traces: [None, None],
        known_rate: KnownRate::True,
        prefix: None,
        ipv4_only: None,
    };
    match &entry.node.value {
        Value::Text(_) => {
            if let Some(preset) = preset_of(&field, problems) {
                draft.preset = Some(preset.name.as_str());
                draft.directions = Some([preset.down.clone(), preset.up.clone()]);
            }
        }
        Value::Table(_) => {
            let Some(reader) = field.reader(&LINK, problems) else { return draft };
            let mut base = None;
            let mut preset_failed = false;
            let on_medium = medium::chosen(&reader, media, problems);
            draft.medium = on_medium.and_then(Result::ok);
            if on_medium.is_some() {
                // What else it is made of comes from there.
            } else if let Some(field) = reader.get("preset") {
                base = preset_of(&field, problems);
                preset_failed = base.is_none();
            } else if implied {
                base = preset(IMPLIED_PRESET);
            }
            draft.preset = base.map(|preset| preset.name.as_str());
            draft.between = reader.get("between").map(|field| between(&field, problems));
            draft.count = reader.get("count").and_then(|field| {
                let count = field.integer(1, MOST_COPIES, problems)?;
                Some((usize::try_from(count).unwrap_or(usize::MAX), field.node.origin, field.path.clone()))
            });
            if let Some(field) = reader.get("known_rate") {
                draft.known_rate = known_rate(&field, problems);
            }
            if let Some(field) = reader.get("ip_version") {
                draft.ipv4_only = only_ipv4(&field, problems);
            }
            if let Some(field) = reader.get("prefix") {
                let ends = draft.between.as_ref().and_then(|between| between.ends);
                if draft.count.is_some() || ends.is_some_and(|ends| ends.iter().any(|end| is_pattern(end))) {
                    field.wrong(
                        "a prefix is that of one link, and this table stands for many",
                        None,
                        problems,
                    );
                } else {
                    draft.prefix = prefix(&field, problems);
                }
            }
            let errors_before = problems.count();
            let directions = match draft.medium.and_then(|id| media.get(id.0)) {
                Some(medium) => medium::directions(&reader, medium, problems),
                None if on_medium.is_some() => None,
                None => directions(&reader, base, preset_failed, files, problems),
            };
            if let Some(Directions { configs, traces }) = directions
                && problems.count() == errors_before
                && !preset_failed
            {
                (draft.directions, draft.traces) = (Some(configs), traces);
            }
        }
        _ => field.wrong(
            "a link is the name of a preset, such as \"wavelan\", or a table, such as \
             { rate = \"2 Mbit/s\", delay = \"1.5 ms\" }",
            None,
            problems,
        ),
    }
    draft
}

fn preset_of(field: &Field<'_>, problems: &mut Problems) -> Option<&'static Preset> {
    let name = field.text(problems)?;
    let found = preset(name);
    if found.is_none() {
        let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("they are {}", names.join(", ")),
        };
        field.wrong("it must be one of the presets that `careof presets` lists", Some(hint), problems);
    }
    found
}

fn between<'a>(field: &Field<'a>, problems: &mut Problems) -> Between<'a> {
    const EXPECTED: &str = "it names the two ends of the link, such as [\"home-agent\", \"mobile\"]";
    let mut between = Between { origin: field.node.origin, path: field.path.clone(), ends: None };
    let Value::List(items) = &field.node.value else {
        field.wrong(EXPECTED, None, problems);
        return between;
    };
    let [_, _] = items.as_slice() else {
        field.wrong(EXPECTED, None, problems);
        return between;
    };
    let ends: Vec<&str> =
        field.list(EXPECTED, problems).iter().filter_map(|end| name_or_pattern(end, problems)).collect();
    if let [first, second] = ends[..] {
        if first == second {
            field.wrong(format!("a link joins two nodes, not {first} and itself"), None, problems);
        } else {
            between.ends = Some([first, second]);
        }
    }
    between
}

/// The two directions of a link, down and up.
///
/// A value that is wrong is reported and leaves the default in its place.
pub(crate) fn directions(
    reader: &Reader<'_>,
    base: Option<&Preset>,
    base_failed: bool,
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Option<Directions> {
    let mut both =
        base.map_or_else(<[Config; 2]>::default, |preset| [preset.down.clone(), preset.up.clone()]);
    if base.is_none() && !base_failed && !reader.has_any(&["trace", "trace_up"]) {
        reader.require("rate", "a link needs a preset, or rate and delay: rate = \"2 Mbit/s\"", problems);
        reader.require(
            "delay",
            "a link needs a preset, or rate and delay: delay = \"1.5 ms\" (one way)",
            problems,
        );
    }
    // A key without `_up` sets both directions, one with it the second only.
    for (suffix, range) in [("", 0..2), ("_up", 1..2)] {
        let get = |key: &str| reader.get(&format!("{key}{suffix}"));
        let directions = &mut both[range];
        if let Some(rate) = get("rate").and_then(|field| rate(&field, problems)) {
            directions.iter_mut().for_each(|direction| direction.rate = rate);
        }
        if let Some(delay) = get("delay").and_then(|field| field.duration(problems)) {
            directions.iter_mut().for_each(|direction| direction.delay = delay);
        }
        if let Some(jitter) = get("jitter").and_then(|field| jitter(&field, problems)) {
            directions.iter_mut().for_each(|direction| direction.jitter = jitter);
        }
        if let Some(loss) = get("loss").and_then(|field| loss(&field, problems)) {
            directions.iter_mut().for_each(|direction| direction.loss = loss);
        }
        if let Some(filtered) = get("icmp").and_then(|field| icmp(&field, problems)) {
            directions.iter_mut().for_each(|direction| direction.filters_icmp = filtered);
        }
        if let Some(field) = get("queue") {
            for direction in directions {
                // Each direction keeps what the table leaves out; one report of an error is enough.
                let before = problems.count();
                match queue(&field, direction.queue, problems) {
                    Some(queue) => direction.queue = queue,
                    None if problems.count() > before => break,
                    None => {}
                }
            }
        }
    }
    if let Some(mtu) = reader
        .get("mtu")
        .and_then(|field| field.packet_size_for(MINIMUM_MTU, u16::MAX, Some(LEAST_REASON), problems))
    {
        both.iter_mut().for_each(|direction| direction.mtu = mtu);
    }
    if let Some(framing) = reader.get("framing").and_then(|field| framing(&field, problems)) {
        both.iter_mut().for_each(|direction| direction.framing = framing);
    }
    let traces = traces(reader, base.is_some() || base_failed, &mut both, files, problems);
    check_jitter(reader, &both, problems);
    Some(Directions { configs: both, traces })
}

/// Lets the directions go by their traces, down and up.
fn traces(
    reader: &Reader<'_>,
    based: bool,
    both: &mut [Config; 2],
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> [Option<TraceFile>; 2] {
    let errors_before = problems.count();
    let down = reader.get("trace").and_then(|field| trace(&field, files, problems));
    let up = reader.get("trace_up").and_then(|field| trace(&field, files, problems));
    if problems.count() > errors_before || (down.is_none() && up.is_none()) {
        return [None, None];
    }
    let own_up = up.is_some();
    let mut found = [None, None];
    for (index, choice) in [down.clone(), up.or(down)].into_iter().enumerate() {
        let draft = match choice {
            Some(TraceChoice::Some(draft)) => Some(draft),
            _ => None,
        };
        let trace = draft.as_ref().map(|draft| &draft.trace);
        let says = |what: &str| {
            trace.is_some_and(|trace| match what {
                "rate" => trace.mean_rate().is_some(),
                "delay" => trace.median_delay().is_some(),
                _ => trace.mean_loss().is_some(),
            })
        };
        for what in ["rate", "delay", "loss"] {
            let up_key = format!("{what}_up");
            let of_up = reader.get(&up_key).filter(|_| index == 1);
            // What is said of the direction up alone comes before what is said of both.
            let contradicted = of_up.clone().or(reader.get(what).filter(|_| index == 0 || !own_up));
            if says(what) {
                if let Some(field) = contradicted {
                    let expected = format!("the trace of this direction has its {what}");
                    let hint =
                        "leave one of them out; trace_up = \"none\" keeps the direction up without a trace"
                            .to_owned();
                    field.wrong(expected, Some(hint), problems);
                }
            } else if what != "loss" && !based && of_up.is_none() && reader.get(what).is_none() {
                let direction = ["down", "up"][index];
                let expected = format!(
                    "the direction {direction} has its {what} neither from a preset nor from a trace"
                );
                problems.add((reader.origin, &join(&reader.path, what)), "nothing", expected, None);
            }
        }
        if let Some(draft) = draft {
            both[index] = both[index].clone().following(draft.trace);
            found[index] = Some(draft.file);
        }
    }
    found
}

/// Whether ICMP errors are filtered.
fn icmp(field: &Field<'_>, problems: &mut Problems) -> Option<bool> {
    field.choice(&[("carried", false), ("filtered", true)], &[], problems)
}

fn rate(field: &Field<'_>, problems: &mut Problems) -> Option<careof_base::DataRate> {
    match &field.node.value {
        Value::Text(text) if text == "unlimited" => Some(UNLIMITED_RATE),
        _ => field.rate(problems),
    }
}

/// Uniform jitter may not exceed the delay it is drawn around, wherever the two come from.
fn check_jitter(reader: &Reader<'_>, both: &[Config; 2], problems: &mut Problems) {
    for (direction, keys) in both.iter().zip([["jitter", "delay"], ["jitter_up", "delay_up"]]) {
        let Jitter::Uniform { spread, .. } = direction.jitter else { continue };
        let least = direction.trace.as_ref().and_then(careof_link::Trace::least_delay);
        if spread <= least.unwrap_or(direction.delay) {
            continue;
        }
        let field = keys.into_iter().chain(["jitter", "delay"]).find_map(|key| reader.get(key));
        let (origin, path) = field.map_or((reader.origin, reader.path.clone()), |f| (f.node.origin, f.path));
        let (spread, delay) = (units::duration(spread), units::duration(least.unwrap_or(direction.delay)));
        let hint = match least {
            None => format!("raise the delay to \"{spread}\" or lower the jitter to \"{delay}\""),
            Some(_) => format!("lower the jitter to \"{delay}\", the least delay of the trace"),
        };
        problems.add(
            (origin, &path),
            format!("a jitter of ±{spread} around a delay of {delay}"),
            "uniform jitter is at most the delay, so that no packet arrives before it was sent",
            Some(hint),
        );
        return;
    }
}

fn jitter(field: &Field<'_>, problems: &mut Problems) -> Option<Jitter> {
    let Value::Table(_) = field.node.value else {
        if matches!(&field.node.value, Value::Text(text) if text == "none") {
            return Some(Jitter::None);
        }
        return field.duration(problems).map(|spread| Jitter::Uniform { spread, reorder: false });
    };
    let reader = field.reader(&JITTER, problems)?;
    let kind = match reader.get("kind") {
        Some(field) => field.word(problems)?,
        None if reader.has_any(&["deviation"]) => JitterKind::Normal,
        None if reader.has_any(&["scale", "shape"]) => JitterKind::Pareto,
        None => JitterKind::Uniform,
    };
    let reorder = reader.get("reorder").and_then(|field| field.boolean(problems)).unwrap_or(false);
    let only = |keys: &[&str], problems: &mut Problems| {
        let reason = format!("this jitter is {}, which has no such part", crate::words::Word::word(kind));
        reader.refuse(keys, &reason, problems);
    };
    match kind {
        JitterKind::None => {
            only(&["spread", "deviation", "scale", "shape"], problems);
            Some(Jitter::None)
        }
        JitterKind::Uniform => {
            only(&["deviation", "scale", "shape"], problems);
            let expected = "uniform jitter needs its largest deviation: spread = \"2 ms\"";
            let spread = reader.require("spread", expected, problems)?.duration(problems)?;
            Some(Jitter::Uniform { spread, reorder })
        }
        JitterKind::Normal => {
            only(&["spread", "scale", "shape"], problems);
            let expected = "normal jitter needs its standard deviation: deviation = \"2 ms\"";
            let deviation = reader.require("deviation", expected, problems)?.duration(problems)?;
            Some(Jitter::Normal { deviation, reorder })
        }
        JitterKind::Pareto => {
            only(&["spread", "deviation"], problems);
            let expected = "Pareto jitter needs its scale and shape: scale = \"2 ms\", shape = 3.0";
            let scale =
                reader.require("scale", expected, problems).and_then(|field| field.duration(problems));
            let above_one = |shape: f64| shape > 1.0 && shape.is_finite();
            let shape = reader
                .require("shape", expected, problems)
                .and_then(|field| field.number(above_one, "the shape must be a number above 1", problems));
            Some(Jitter::Pareto { scale: scale?, shape: shape?, reorder })
        }
    }
}

pub(crate) fn loss(field: &Field<'_>, problems: &mut Problems) -> Option<Loss> {
    let Value::Table(_) = field.node.value else {
        if matches!(&field.node.value, Value::Text(text) if text == "none") {
            return Some(Loss::None);
        }
        return field.probability(problems).map(bernoulli);
    };
    const CHAIN: [&str; 4] = ["good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad"];
    let reader = field.reader(&LOSS, problems)?;
    let kind = match reader.get("kind") {
        Some(field) => field.word(problems)?,
        None if reader.has_any(&CHAIN) => LossKind::GilbertElliott,
        None => LossKind::Bernoulli,
    };
    match kind {
        LossKind::None => {
            reader.refuse(&["p"], "this loss is none", problems);
            reader.refuse(&CHAIN, "this loss is none", problems);
            Some(Loss::None)
        }
        LossKind::Bernoulli => {
            reader.refuse(&CHAIN, "it belongs to kind = \"gilbert-elliott\"", problems);
            reader
                .require("p", "a loss needs its probability: p = \"1 %\"", problems)?
                .probability(problems)
                .map(bernoulli)
        }
        LossKind::GilbertElliott => {
            reader.refuse(&["p"], "it belongs to kind = \"bernoulli\"", problems);
            let expected = "the chain needs both its steps: good_to_bad = 0.01, bad_to_good = 0.3";
            let [good_to_bad, bad_to_good] = ["good_to_bad", "bad_to_good"].map(|key| {
                reader.require(key, expected, problems).and_then(|field| field.probability(problems))
            });
            let in_good = reader.get("loss_in_good").map(|field| field.probability(problems));
            let in_bad = reader.get("loss_in_bad").map(|field| field.probability(problems));
            Some(Loss::GilbertElliott {
                good_to_bad: good_to_bad?,
                bad_to_good: bad_to_good?,
                loss_in_good: in_good.unwrap_or(Some(careof_base::Probability::ZERO))?,
                loss_in_bad: in_bad.unwrap_or(Some(careof_base::Probability::ONE))?,
            })
        }
    }
}

fn bernoulli(p: careof_base::Probability) -> Loss {
    if p == careof_base::Probability::ZERO { Loss::None } else { Loss::Bernoulli { p } }
}

pub(crate) fn queue(field: &Field<'_>, base: QueueConfig, problems: &mut Problems) -> Option<QueueConfig> {
    let Value::Table(_) = field.node.value else {
        return units::read_queue_limit(field, problems).map(|limit| QueueConfig { limit, ..base });
    };
    const RED: [&str; 6] =
        ["min_threshold", "max_threshold", "max_probability", "weight", "gentle", "mean_packet"];
    const CODEL: [&str; 2] = ["target", "interval"];
    let reader = field.reader(&QUEUE, problems)?;
    let limit =
        reader.get("limit").map_or(Some(base.limit), |field| units::read_queue_limit(&field, problems));
    let discipline = match (reader.get("discipline"), base.discipline) {
        (Some(field), _) => field.word(problems)?,
        (None, Discipline::DropTail) => DisciplineKind::DropTail,
        (None, Discipline::Red(_)) => DisciplineKind::Red,
        (None, Discipline::CoDel { .. }) => DisciplineKind::CoDel,
    };
    if discipline != DisciplineKind::Red {
        reader.refuse(&RED, "it belongs to discipline = \"red\"", problems);
    }
    if discipline != DisciplineKind::CoDel {
        reader.refuse(&CODEL, "it belongs to discipline = \"codel\"", problems);
    }
    let discipline = match discipline {
        DisciplineKind::DropTail => Discipline::DropTail,
        DisciplineKind::Red => Discipline::Red(red(&reader, problems)?),
        DisciplineKind::CoDel => codel(&reader, problems)?,
    };
    let ecn = reader.get("ecn").map_or(Some(base.ecn), |field| field.boolean(problems))?;
    if let Some(field) = reader.get("ecn")
        && ecn
        && discipline == Discipline::DropTail
    {
        let hint = "write discipline = \"red\" or \"codel\" beside it".to_owned();
        field.wrong("a drop-tail queue has nothing to mark", Some(hint), problems);
        return None;
    }
    let ecn = ecn && discipline != Discipline::DropTail;
    let queue = QueueConfig { limit: limit?, discipline, ecn };
    if let (careof_link::QueueLimit::Packets(limit), Discipline::Red(red)) = (queue.limit, queue.discipline)
        && red.max_threshold > limit
    {
        let found = format!("an upper threshold of {} packets in a queue of {limit}", red.max_threshold);
        problems.add(
            field.place(),
            found,
            "RED's upper threshold must not lie beyond the queue's limit",
            None,
        );
        return None;
    }
    Some(queue)
}

fn red(reader: &Reader<'_>, problems: &mut Problems) -> Option<RedConfig> {
    let before = problems.count();
    let mut red = RedConfig::default();
    if let Some(packets) = reader.get("min_threshold").and_then(|field| field.packets(problems)) {
        red.min_threshold = packets;
    }
    if let Some(packets) = reader.get("max_threshold").and_then(|field| field.packets(problems)) {
        red.max_threshold = packets;
    }
    if let Some(field) = reader.get("max_probability")
        && let Some(p) = field.probability(problems)
    {
        if p == careof_base::Probability::ZERO {
            field.wrong("it must be above zero, or RED never drops", None, problems);
        }
        red.max_probability = p;
    }
    if let Some(field) = reader.get("weight") {
        let share = |weight: f64| weight > 0.0 && weight <= 1.0;
        if let Some(weight) =
            field.number(share, "the weight must be a number above 0 and at most 1", problems)
        {
            red.weight = weight;
        }
    }
    if let Some(gentle) = reader.get("gentle").and_then(|field| field.boolean(problems)) {
        red.gentle = gentle;
    }
    if let Some(bytes) = reader.get("mean_packet").and_then(|field| field.packet_size(1, u16::MAX, problems))
    {
        red.mean_packet_bytes = bytes;
    }
    if red.min_threshold >= red.max_threshold {
        problems.add(
            (reader.origin, &reader.path),
            format!("thresholds of {} and {} packets", red.min_threshold, red.max_threshold),
            "min_threshold must lie below max_threshold",
            None,
        );
    }
    (problems.count() == before).then_some(red)
}

fn codel(reader: &Reader<'_>, problems: &mut Problems) -> Option<Discipline> {
    let Discipline::CoDel { target, interval } = Discipline::CODEL else { return None };
    let target = reader.get("target").map_or(Some(target), |field| field.positive_duration(problems));
    let interval = reader.get("interval").map_or(Some(interval), |field| field.positive_duration(problems));
    let (target, interval) = (target?, interval?);
    if target >= interval {
        let found = format!(
            "a target of {} and an interval of {}",
            units::duration(target),
            units::duration(interval)
        );
        problems.add((reader.origin, &reader.path), found, "the target must lie below the interval", None);
        return None;
    }
    Some(Discipline::CoDel { target, interval })
}

fn framing(field: &Field<'_>, problems: &mut Problems) -> Option<Framing> {
    match &field.node.value {
        Value::Text(text) => match text.as_str() {
            "none" => Some(Framing::NONE),
            "async-ppp" => Some(Framing::ASYNC_PPP),
            other => {
                let hint =
                    nearest(other, ["none", "async-ppp"]).map(|near| format!("did you mean \"{near}\"?"));
                field.wrong("known are \"none\" and \"async-ppp\"", hint, problems);
                None
            }
        },
        Value::Table(_) => {
            let reader = field.reader(&FRAMING, problems)?;
            let bits = reader.get("bits_per_byte").map_or(Some(8), |field| field.integer(8, 16, problems));
            let overhead =
                reader.get("overhead").map_or(Some(0), |field| field.packet_size(0, u16::MAX, problems));
            Some(Framing { bits_per_byte: u8::try_from(bits?).unwrap_or(8), overhead_bytes: overhead? })
        }
        _ => {
            let expected = "it must be \"none\", \"async-ppp\" or { bits_per_byte = 10, overhead = 7 }";
            field.wrong(expected, None, problems);
            None
        }
    }
}
