//! `link_layer` of `[[handover]]` as the file gives it.

use careof_base::{Duration, Probability};
use careof_link::{BEACON_INTERVAL, PhaseLength, Scan, WirelessHandover};

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::model::HandoverStyle;
use crate::reference::link_layer::{LINK_LAYER, PHASE};
use crate::tree::Value;
use crate::words::{LinkLayerKind, ReadWord as _, ScanKind};

/// Channels of 2.4 GHz (IEEE 802.11-2012, annex E, all of them in Japan).
const MOST_CHANNELS: u64 = 14;
/// Channels of 2.4 GHz in the United States (the same).
const USUAL_CHANNELS: u8 = 11;
/// `MinChannelTime` and `MaxChannelTime` that Velayos and Karlsson advise to ("Techniques to Reduce the IEEE 802.11b Handoff Time", ICC 2004).
const CHANNEL_TIMES: [Duration; 2] = [Duration::from_millis(1), Duration::from_micros(10_240)];

/// Reads it from the table of a handover of this style; of one round stations only a style that is given.
pub(crate) fn link_layer(
    handover: &Reader<'_>,
    style: Option<HandoverStyle>,
    problems: &mut Problems,
) -> Option<WirelessHandover> {
    let field = handover.get("link_layer")?;
    if style == Some(HandoverStyle::MakeBeforeBreak) {
        let hint = "write style = \"break-before-make\", or leave `link_layer` out".to_owned();
        field.wrong("make-before-break has no interruption", Some(hint), problems);
        return None;
    }
    handover.refuse(
        &["interruption"],
        "how long there is no link follows from `link_layer`: leave one of the two out",
        problems,
    );
    if let Value::Table(_) = &field.node.value {
        return table(&field.reader(&LINK_LAYER, problems)?, problems);
    }
    let _: LinkLayerKind = field.word(problems)?;
    Some(WirelessHandover {
        lost_beacons: 0,
        beacon_interval: BEACON_INTERVAL,
        scan: active(USUAL_CHANNELS, usual_answering(USUAL_CHANNELS), CHANNEL_TIMES),
        answer: Duration::ZERO,
        detection: None,
        authentication: None,
        reassociation: None,
    })
}

/// The length of a phase where it is given: one that is always the same, or a distribution.
fn phase(field: &Field<'_>, problems: &mut Problems) -> Option<PhaseLength> {
    let Value::Table(_) = &field.node.value else {
        let length = field.duration(problems)?;
        return Some(PhaseLength::Uniform { least: length, most: length });
    };
    let reader = field.reader(&PHASE, problems)?;
    let ends = reader.has_any(&["min", "max"]);
    if ends {
        let reason = "between `min` and `max` all lengths are alike: leave these two out, or those";
        reader.refuse(&["mean", "deviation"], reason, problems);
    }
    let keys = if ends { ["min", "max"] } else { ["mean", "deviation"] };
    let expected =
        "a length has { min = \"20 ms\", max = \"40 ms\" } or { mean = \"30 ms\", deviation = \"5 ms\" }";
    let [one, other] = keys
        .map(|key| Some((reader.require(key, expected, problems)?, key)))
        .map(|given| given.and_then(|(field, _)| Some((field.duration(problems)?, field))));
    let ((one, _), (other, last)) = (one?, other?);
    if ends && one > other {
        last.wrong("it must not be less than `min`", None, problems);
        return None;
    }
    Some(if ends {
        PhaseLength::Uniform { least: one, most: other }
    } else {
        PhaseLength::Normal { mean: one, deviation: other }
    })
}

const fn active(channels: u8, answering: Probability, times: [Duration; 2]) -> Scan {
    Scan::Active { channels, answering, min_channel_time: times[0], max_channel_time: times[1] }
}

/// Three channels of 2.4 GHz do not overlap: two of the others have somebody, where there are so many.
fn usual_answering(channels: u8) -> Probability {
    let others = f64::from(channels.saturating_sub(1)).max(1.0);
    Probability::new((2.0 / others).min(1.0)).unwrap_or(Probability::ONE)
}

fn table(reader: &Reader<'_>, problems: &mut Problems) -> Option<WirelessHandover> {
    const OF_ACTIVE: [&str; 3] = ["answering", "min_channel_time", "max_channel_time"];
    let errors_before = problems.count();
    if let Some(field) = reader.get("kind") {
        let _: Option<LinkLayerKind> = field.word(problems);
    }
    let given = ["detection_time", "scan_time", "authentication_time", "reassociation_time"]
        .map(|key| reader.get(key).and_then(|field| phase(&field, problems)));
    let [detection, scan_time, authentication, reassociation] = given;
    if reader.get("scan_time").is_some() {
        let keys = ["scan", "channels", "answering", "min_channel_time", "max_channel_time"];
        reader.refuse(&keys, "`scan_time` says how long the scan is", problems);
    }
    if reader.get("detection_time").is_some() {
        reader.refuse(&["lost_beacons"], "`detection_time` says how long it takes to notice", problems);
    }
    if authentication.is_some() && reassociation.is_some() {
        let reason = "the lengths of authentication and reassociation have it in them";
        reader.refuse(&["answer"], reason, problems);
    }
    let kind: Option<ScanKind> =
        reader.get("scan").map_or(Some(ScanKind::default()), |field| field.word(problems));
    let scan = kind?;
    if scan != ScanKind::Active {
        reader.refuse(&OF_ACTIVE, "it belongs to scan = \"active\"", problems);
    }
    if scan == ScanKind::None {
        reader.refuse(&["channels"], "no channel is looked at", problems);
    }
    let channels = reader.get("channels").and_then(|field| field.integer(1, MOST_CHANNELS, problems));
    let channels = channels.and_then(|channels| u8::try_from(channels).ok()).unwrap_or(USUAL_CHANNELS);
    let positive = |field: Field<'_>, problems: &mut Problems| field.positive_duration(problems);
    let beacon_interval =
        reader.get("beacon_interval").map_or(Some(BEACON_INTERVAL), |field| positive(field, problems));
    let scan = match scan {
        _ if scan_time.is_some() => Scan::Given(scan_time?),
        ScanKind::None => Scan::Known,
        ScanKind::Passive => Scan::Passive { channels },
        ScanKind::Active => {
            let answering = reader
                .get("answering")
                .map_or_else(|| Some(usual_answering(channels)), |field| field.probability(problems));
            let times = ["min_channel_time", "max_channel_time"].map(|key| reader.get(key));
            let [least, most] = match &times {
                [None, None] => CHANNEL_TIMES,
                [Some(least), Some(most)] => [least.duration(problems)?, most.duration(problems)?],
                [Some(one), None] | [None, Some(one)] => {
                    let hint = "write min_channel_time = \"20 ms\", max_channel_time = \"40 ms\"".to_owned();
                    one.wrong("a scan has both times, or those that are usual", Some(hint), problems);
                    return None;
                }
            };
            if let [_, Some(field)] = &times
                && least > most
            {
                field.wrong("it must not be less than `min_channel_time`", None, problems);
            }
            active(channels, answering?, [least, most])
        }
    };
    let lost_beacons = reader.get("lost_beacons").and_then(|field| field.integer(0, 255, problems));
    let answer = reader.get("answer").map_or(Some(Duration::ZERO), |field| field.duration(problems));
    let handover = WirelessHandover {
        lost_beacons: lost_beacons.and_then(|lost| u8::try_from(lost).ok()).unwrap_or(0),
        beacon_interval: beacon_interval?,
        scan,
        answer: answer?,
        detection,
        authentication,
        reassociation,
    };
    (problems.count() == errors_before).then_some(handover)
}
