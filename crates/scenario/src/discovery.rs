//! `advertisement_interval` and `[mobility.discovery]` as the file gives them.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::model::{Discovery, MovementDetection, Protocol};
use crate::reference::discovery::DISCOVERY;
use crate::units;

/// The bounds of MaxRtrAdvInterval.
const IPV6_LEAST: Duration = Duration::from_millis(70);
const IPV6_MOST: Duration = Duration::from_secs(1800);

/// Reads both from the table of `mobility`, for this protocol, in which mobile nodes notice by `detection` that they moved.
pub(crate) fn discovery(
    mobility: &Reader<'_>,
    (protocol, detection): (Protocol, MovementDetection),
    problems: &mut Problems,
) -> Discovery {
    let given = mobility.get("advertisement_interval");
    let interval = given.as_ref().and_then(|field| field.positive_duration(problems));
    let default = Discovery::every(interval.unwrap_or(Discovery::RECOMMENDED_INTERVAL));
    let reader = mobility.get("discovery").and_then(|field| field.reader(&DISCOVERY, problems));
    let is_meant = reader.as_ref().and_then(|reader| reader.get("above_recommended_rate"));
    let is_meant = is_meant.and_then(|field| field.boolean(problems)).unwrap_or(false);
    if let Some(field) = given
        && default.interval < Discovery::RECOMMENDED_INTERVAL
        && !is_meant
        && protocol == Protocol::MobileIpv4
    {
        let hint =
            "add discovery = { above_recommended_rate = true } to [mobility] if it is meant".to_owned();
        field.wrong(
            "RFC 5944 (section 2.3) calls one advertisement a second the reasonable maximum",
            Some(hint),
            problems,
        );
    }
    if let Some(field) = mobility.get("advertisement_interval")
        && protocol == Protocol::MobileIpv6
        && !(IPV6_LEAST..=IPV6_MOST).contains(&default.interval)
    {
        field.wrong(
            "router advertisements are 70 ms (RFC 6275 section 7.5) to 1800 s (RFC 4861) apart",
            None,
            problems,
        );
    }
    reader.map_or(default, |reader| table(&reader, default, detection, problems))
}

fn table(
    reader: &Reader<'_>,
    default: Discovery,
    detection: MovementDetection,
    problems: &mut Problems,
) -> Discovery {
    let flag = |key: &str, default: bool, problems: &mut Problems| {
        reader.get(key).and_then(|field| field.boolean(problems)).unwrap_or(default)
    };
    let prefix = flag("prefix", default.prefix, problems);
    if let Some(field) = reader.get("prefix").filter(|_| !prefix && detection == MovementDetection::Prefix) {
        let hint = "leave `prefix` out, or choose another `movement_detection`".to_owned();
        field.wrong("movement_detection = \"prefix\" goes by the prefix that is told", Some(hint), problems);
    }
    let missed = reader.get("missed").and_then(|field| field.integer(1, 255, problems));
    let margin = reader.get("margin").and_then(|field| field.probability(problems));
    Discovery {
        interval: default.interval,
        least_interval: reader
            .get("least_interval")
            .and_then(|field| least_interval(&field, default.interval, problems))
            .unwrap_or(default.least_interval),
        missed: missed.and_then(|missed| u8::try_from(missed).ok()).unwrap_or(default.missed),
        // Of 0 to 1, so that it fits.
        margin_permille: margin
            .map_or(default.margin_permille, |margin| (margin.get() * 1000.0).round() as u16),
        solicitation: flag("solicitation", default.solicitation, problems),
        on_link_up: flag("on_link_up", default.on_link_up, problems),
        response_delay: reader
            .get("response_delay")
            .and_then(|field| field.duration(problems))
            .unwrap_or(default.response_delay),
        prefix,
    }
}

fn least_interval(field: &Field<'_>, interval: Duration, problems: &mut Problems) -> Option<Duration> {
    let least = field.positive_duration(problems)?;
    if least > interval {
        let expected =
            format!("it must be at most `advertisement_interval`, which is {}", units::duration(interval));
        field.wrong(expected, None, problems);
        return None;
    }
    Some(least)
}
