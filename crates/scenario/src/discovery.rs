//! `advertisement_interval` and `[mobility.discovery]` as the file gives them.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::model::{Discovery, MovementDetection, Protocol, Unreachability};
use crate::reference::discovery::DISCOVERY;
use crate::units;

/// The bounds of MaxRtrAdvInterval.
const IPV6_LEAST: Duration = Duration::from_millis(70);
const IPV6_MOST: Duration = Duration::from_secs(1800);

/// The longest ReachableTime (RFC 4861 section 6.2.1), and as good for the other times.
const LONGEST: Duration = Duration::from_secs(3600);
/// RFC 4861 section 6.2.1.
const LONGEST_LIFETIME: Duration = Duration::from_secs(9000);
/// The keys of [`Unreachability`].
const UNREACHABILITY: [&str; 4] = ["router_lifetime", "reachable_time", "retrans_timer", "delay_first_probe"];

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
        unreachability: unreachability(reader, default.interval, detection, problems),
    }
}

fn unreachability(
    reader: &Reader<'_>,
    interval: Duration,
    detection: MovementDetection,
    problems: &mut Problems,
) -> Unreachability {
    if detection != MovementDetection::UnreachableRouter {
        let reason = "it is a time of movement_detection = \"unreachable-router\"";
        reader.refuse(&UNREACHABILITY, reason, problems);
        return Unreachability::default();
    }
    let mut read = |key: &str, (least, most): (Duration, Duration), default: Duration| {
        let Some(field) = reader.get(key) else { return default };
        let Some(span) = field.positive_duration(problems) else { return default };
        if !(least..=most).contains(&span) || !span.as_nanos().is_multiple_of(least_unit(key).as_nanos()) {
            let unit = if key == "router_lifetime" { "seconds" } else { "milliseconds" };
            let expected = format!(
                "it must be {} to {}, in whole {unit}",
                units::duration(least),
                units::duration(most)
            );
            field.wrong(expected, None, problems);
            return default;
        }
        span
    };
    let Unreachability { router_lifetime, reachable_time, retrans_timer, delay_first_probe } =
        Unreachability::default();
    let short = (Duration::from_millis(1), LONGEST);
    // A router is one until it can have advertised itself again (RFC 4861 section 6.2.1).
    let least_lifetime = Duration::from_secs(interval.as_secs() + u64::from(interval.subsec_nanos() > 0));
    Unreachability {
        router_lifetime: read("router_lifetime", (least_lifetime, LONGEST_LIFETIME), router_lifetime),
        reachable_time: read("reachable_time", short, reachable_time),
        retrans_timer: read("retrans_timer", short, retrans_timer),
        delay_first_probe: read("delay_first_probe", short, delay_first_probe),
    }
}

/// In what advertisements carry it, or the simulator counts it.
fn least_unit(key: &str) -> Duration {
    if key == "router_lifetime" { Duration::from_secs(1) } else { Duration::from_millis(1) }
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
