//! `[micro_mobility]` as the file gives it, its names not yet looked up.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::mobility::{MobilityDraft, Reference};
use crate::model::{
    BuildingBlocks, CandidateBuffer, CandidateSet, CellularHandover, MicroProtocol, PathScheme, Protocol,
    Trigger,
};
use crate::reference::micro_mobility::{BUFFER, MICRO_MOBILITY};
use crate::tree::Value;
use crate::words::{CellularWord, MicroProtocolName, ReadWord as _};

/// The node where the domain begins if the file says none.
const GATEWAY: &str = "gateway";
/// A buffer of which nothing is said: as that of an access router of fast handovers.
const USUAL_BUFFER: CandidateBuffer = CandidateBuffer {
    packets: 256,
    bytes: 384_000,
    age: Duration::from_secs(5),
    when_full: crate::model::WhenFull::DropOldest,
};
const MOST_PACKETS: u64 = 100_000;
/// The longest that a base station waits for a mobile node.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// How long before a handover a trigger comes where nothing is said.
const USUAL_LEAD: Duration = Duration::from_millis(100);
/// Interfaces of a router, of which one leads up.
pub(crate) const MOST_INTERFACES: usize = 64;

/// The `[micro_mobility]` table.
#[derive(Debug)]
pub(crate) struct MicroDraft<'a> {
    pub(crate) origin: Origin,
    pub(crate) gateway: Reference<'a>,
    /// `None` where something in it is wrong, which is reported.
    pub(crate) protocol: Option<MicroProtocol>,
    /// From one advertisement of a base station to its next.
    pub(crate) advertisement_interval: Duration,
    /// Where the number of candidates stands, if it does.
    pub(crate) car_set: Option<(Origin, String, u64)>,
}

/// Reads the value of `micro_mobility`.
pub(crate) fn micro_mobility<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<MicroDraft<'a>> {
    let reader = field.reader(&MICRO_MOBILITY, problems)?;
    let before = problems.count();
    let expected = "a domain needs its protocol: protocol = \"building-blocks\"";
    let name = reader.require("protocol", expected, problems);
    let name: Option<MicroProtocolName> = name.and_then(|field| field.word(problems));
    let gateway = reader.get("gateway").and_then(|field| Reference::read(&field, problems));
    let gateway = gateway.unwrap_or_else(|| Reference {
        name: GATEWAY,
        origin: reader.origin,
        path: "micro_mobility.gateway".to_owned(),
    });
    let car_set = reader.get("car_set").and_then(|field| match field.node.value {
        Value::Integer(_) => {
            Some((field.node.origin, field.path.clone(), field.integer(0, u16::MAX.into(), problems)?))
        }
        _ => None,
    });
    let name = name?;
    refuse_keys_of_others(name, &reader, problems);
    let protocol = match name {
        MicroProtocolName::BuildingBlocks => {
            MicroProtocol::BuildingBlocks(building_blocks(&reader, problems))
        }
        MicroProtocolName::CellularIp => MicroProtocol::CellularIp(cellular_ip(&reader, problems)),
        MicroProtocolName::Hawaii => hawaii(&reader, problems),
        MicroProtocolName::Multicast => {
            let blocks = building_blocks(&reader, problems);
            let BuildingBlocks { candidates, trigger, lead, buffer, bicast, .. } = blocks;
            MicroProtocol::Multicast { candidates, trigger, lead, buffer, bicast }
        }
    };
    let interval = reader.get("advertisement_interval").and_then(|field| field.duration(problems));
    let protocol = (problems.count() == before).then_some(protocol);
    let advertisement_interval = interval.unwrap_or_default();
    Some(MicroDraft { origin: reader.origin, gateway, protocol, advertisement_interval, car_set })
}

/// Refuses keys that say something of a protocol that is not used.
fn refuse_keys_of_others(name: MicroProtocolName, reader: &Reader<'_>, problems: &mut Problems) {
    use MicroProtocolName::{BuildingBlocks, CellularIp, Hawaii, Multicast};
    let keys: [(&str, &[MicroProtocolName]); 9] = [
        ("handover", &[CellularIp]),
        ("delay", &[CellularIp]),
        ("scheme", &[Hawaii]),
        ("trigger", &[BuildingBlocks, Multicast]),
        ("car_set", &[BuildingBlocks, Multicast]),
        ("lead", &[BuildingBlocks, Multicast, CellularIp]),
        ("buffer", &[BuildingBlocks, Multicast, Hawaii]),
        ("bicast", &[BuildingBlocks, Multicast]),
        ("forward", &[BuildingBlocks]),
    ];
    for (key, of) in keys.iter().filter(|(_, of)| !of.contains(&name)) {
        let names: Vec<&str> = of.iter().map(|name| crate::words::Word::word(*name)).collect();
        let reason = format!("it is for protocol = {}", crate::words::one_of(&names));
        reader.refuse(&[*key], &reason, problems);
    }
}

fn cellular_ip(reader: &Reader<'_>, problems: &mut Problems) -> CellularHandover {
    /// As many packets as ns-2's queues hold, and no fewer than a window of its senders.
    const DELAY_DEVICE: u32 = 50;
    let handover: Option<CellularWord> = reader.get("handover").and_then(|field| field.word(problems));
    match handover.unwrap_or(CellularWord::Hard) {
        CellularWord::Hard => {
            let reason = "a hard handover is told from the new base station: write handover = \"semi-soft\"";
            reader.refuse(&["lead", "delay"], reason, problems);
            CellularHandover::Hard
        }
        CellularWord::SemiSoft => {
            let mut span = |key| reader.get(key).and_then(|field| field.duration(problems));
            CellularHandover::SemiSoft {
                lead: span("lead").unwrap_or(USUAL_LEAD),
                delay: span("delay").unwrap_or_default(),
                packets: DELAY_DEVICE,
            }
        }
    }
}

fn hawaii(reader: &Reader<'_>, problems: &mut Problems) -> MicroProtocol {
    let scheme: Option<PathScheme> = reader.get("scheme").and_then(|field| field.word(problems));
    let scheme = scheme.unwrap_or(PathScheme::Unf);
    if matches!(scheme, PathScheme::Unf | PathScheme::Mnf) {
        let reason = "nobody forwards with this scheme: write scheme = \"msf\" or \"ssf\"";
        reader.refuse(&["buffer"], reason, problems);
    }
    let buffer = reader.get("buffer").and_then(|field| buffer(&field, problems));
    MicroProtocol::Hawaii { scheme, buffer }
}

fn building_blocks(reader: &Reader<'_>, problems: &mut Problems) -> BuildingBlocks {
    let trigger: Option<Trigger> = reader.get("trigger").and_then(|field| field.word(problems));
    let trigger = trigger.unwrap_or_default();
    if trigger == Trigger::None {
        let reason = "without a trigger nobody is told before the handover: write trigger = \"source\", \"path\" or \"no-path\"";
        reader.refuse(&["car_set", "lead"], reason, problems);
        if !reader.has_any(&["forward"]) {
            reader.refuse(&["buffer"], "without a trigger and without `forward` nothing is kept", problems);
        }
    }
    let candidates = reader.get("car_set").and_then(|field| candidates(&field, trigger, problems));
    let lead = reader.get("lead").and_then(|field| field.duration(problems));
    let span = |key, problems: &mut Problems| reader.get(key).and_then(|field| field.duration(problems));
    let bicast = span("bicast", problems).unwrap_or_default();
    let forward = span("forward", problems).unwrap_or_default();
    if !bicast.is_zero()
        && !forward.is_zero()
        && let Some(field) = reader.get("forward")
    {
        let expected = "with `bicast` what still goes to the old base station goes to the new one anyhow";
        field.wrong(expected, Some("leave one of the two out".to_owned()), problems);
    }
    let keep = reader.get("buffer").and_then(|field| buffer(&field, problems));
    BuildingBlocks {
        candidates: candidates.unwrap_or(match trigger {
            Trigger::None => CandidateSet::Empty,
            Trigger::Source => CandidateSet::Nearest(1),
            Trigger::Path | Trigger::NoPath => CandidateSet::All,
        }),
        trigger,
        lead: match trigger {
            Trigger::None => Duration::ZERO,
            _ => lead.unwrap_or(USUAL_LEAD),
        },
        buffer: keep,
        bicast,
        forward,
    }
}

fn candidates(field: &Field<'_>, trigger: Trigger, problems: &mut Problems) -> Option<CandidateSet> {
    let set = match &field.node.value {
        Value::Text(text) if text == "all" => CandidateSet::All,
        Value::Integer(_) => match field.integer(0, u16::MAX.into(), problems)? {
            0 => CandidateSet::Empty,
            some => CandidateSet::Nearest(u16::try_from(some).unwrap_or(u16::MAX)),
        },
        _ => {
            field.wrong("it must be how many base stations it names, or \"all\"", None, problems);
            return None;
        }
    };
    let (expected, hint) = match (trigger, set) {
        (Trigger::Source, CandidateSet::Nearest(1)) | (Trigger::NoPath, CandidateSet::All) => {
            return Some(set);
        }
        (Trigger::Source, _) => {
            ("a source trigger names one base station", "write car_set = 1, or trigger = \"path\"")
        }
        (Trigger::NoPath, _) => (
            "a no-path trigger names no base station, and goes to all",
            "leave `car_set` out, or write trigger = \"path\"",
        ),
        _ => return Some(set),
    };
    field.wrong(expected, Some(hint.to_owned()), problems);
    None
}

fn buffer(field: &Field<'_>, problems: &mut Problems) -> Option<CandidateBuffer> {
    if let Value::Boolean(on) = field.node.value {
        return on.then_some(USUAL_BUFFER);
    }
    if !matches!(field.node.value, Value::Table(_)) {
        let hint = "write buffer = { packets = 64 }, for example".to_owned();
        field.wrong("it must be true, false or a table", Some(hint), problems);
        return None;
    }
    let reader = field.reader(&BUFFER, problems)?;
    let packets = reader.get("packets").and_then(|field| field.integer(1, MOST_PACKETS, problems));
    let age = reader.get("age").and_then(|field| {
        let age = field.positive_duration(problems)?;
        if age > LONGEST_WAIT {
            field.wrong("it must be at most 10 min", None, problems);
        }
        Some(age)
    });
    Some(CandidateBuffer {
        packets: packets.and_then(|packets| u32::try_from(packets).ok()).unwrap_or(USUAL_BUFFER.packets),
        bytes: reader.get("bytes").and_then(|field| field.size(problems)).unwrap_or(USUAL_BUFFER.bytes),
        age: age.unwrap_or(USUAL_BUFFER.age),
        when_full: reader.get("when_full").and_then(|field| field.word(problems)).unwrap_or_default(),
    })
}

/// Says what a domain needs of `[mobility]` and it does not have.
pub(crate) fn refuse_other_mobility(
    draft: &MicroDraft<'_>,
    mobility: Option<&MobilityDraft<'_>>,
    problems: &mut Problems,
) {
    let place = (draft.origin, "micro_mobility");
    let mut refuse = |expected: &str, hint: &str| {
        problems.add(place, "a domain of micro-mobility", expected, Some(hint.to_owned()));
    };
    let Some(mobility) = mobility else {
        return refuse("it is about mobile nodes", "add [mobility] with nodes = 1");
    };
    if mobility.nodes.is_none() {
        refuse(
            "it is for mobile nodes with a radio",
            "write nodes = 1 in [mobility], and a link with between = [\"station-*\", \"mobile-*\"]",
        );
    }
    if mobility.protocol != Protocol::MobileIpv4 {
        refuse("it is below Mobile IPv4", "leave `protocol` of [mobility] out");
    }
    if mobility.route_optimization {
        refuse("the home agent alone knows the gateway", "leave `route_optimization` of [mobility] out");
    }
}
