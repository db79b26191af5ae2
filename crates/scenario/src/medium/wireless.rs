//! A radio channel of `[media]`.

use careof_base::{DataRate, Duration};
use careof_link::{DcfConfig, Phy};

use crate::decode::Reader;
use crate::error::Problems;
use crate::link::{loss, queue};
use crate::units;
use crate::words::{MediumKind, Preamble, ReadWord as _, one_of};

/// Keys that a cable has not.
pub(super) const KEYS: [&str; 7] = [
    "preamble",
    "protection",
    "control_rate",
    "rts_threshold",
    "short_retry_limit",
    "long_retry_limit",
    "loss",
];

/// The largest retry limit (IEEE 802.11-2012, annex C, `dot11ShortRetryLimit`).
const MOST_RETRIES: u64 = 255;

pub(super) fn channel(reader: &Reader<'_>, kind: MediumKind, problems: &mut Problems) -> Option<DcfConfig> {
    let (others, reason) = match kind {
        MediumKind::G => (["preamble"], "it belongs to kind = \"802.11b\": OFDM has one preamble"),
        _ => (["protection"], "it belongs to kind = \"802.11g\": 802.11b protects nobody from itself"),
    };
    reader.refuse(&others, reason, problems);
    let preamble = reader.get("preamble").map_or(Some(Preamble::default()), |field| field.word(problems));
    let protection = reader.get("protection").map_or(Some(false), |field| field.boolean(problems));
    let with_rate: fn(DataRate) -> DcfConfig = match (kind, preamble?, protection?) {
        (MediumKind::G, _, false) => DcfConfig::g,
        (MediumKind::G, _, true) => DcfConfig::g_protected,
        (_, Preamble::Long, _) => DcfConfig::b,
        (_, Preamble::Short, _) => DcfConfig::b_short,
    };
    let rates = with_rate(DataRate::ZERO).phy.rates;
    let given = |key: &str, problems: &mut Problems| match reader.get(key) {
        None => Some(None),
        Some(field) => {
            let rate = field.rate(problems)?;
            if rates.contains(&rate) {
                return Some(Some(rate));
            }
            let names: Vec<String> = rates.iter().map(|rate| units::rate(*rate)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            field.wrong(format!("stations of this kind have the rates {}", one_of(&names)), None, problems);
            None
        }
    };
    let rate = given("rate", problems)?.or_else(|| rates.iter().copied().max())?;
    let mut config = with_rate(rate);
    if let Some(rate) = given("control_rate", problems)? {
        if rate > config.rate
            && let Some(field) = reader.get("control_rate")
        {
            let hint = format!("write at most \"{}\"", units::rate(config.rate));
            field.wrong("an acknowledgement is not faster than what it acknowledges", Some(hint), problems);
        }
        config.control_rate = rate;
    }
    if let Some(field) = reader.get("delay") {
        config.delay = field.duration(problems)?;
        let below = room_in_a_slot(&config.phy);
        if config.delay >= below {
            let hint = format!("write less than \"{}\"", units::duration(below));
            field.wrong(
                "a station would be heard too late by those who are about to send",
                Some(hint),
                problems,
            );
        }
    }
    if let Some(field) = reader.get("rts_threshold") {
        config.rts_threshold = field.packet_size(0, u16::MAX, problems)?;
    }
    for (key, limit) in [
        ("short_retry_limit", &mut config.short_retry_limit),
        ("long_retry_limit", &mut config.long_retry_limit),
    ] {
        if let Some(field) = reader.get(key) {
            *limit = u32::try_from(field.integer(1, MOST_RETRIES, problems)?).unwrap_or(u32::MAX);
        }
    }
    if let Some(field) = reader.get("loss") {
        config.loss = loss(&field, problems)?;
    }
    if let Some(field) = reader.get("queue") {
        config.queue = queue(&field, config.queue, problems)?;
    }
    Some(config)
}

/// The part of a slot in which a signal has to come to everybody.
fn room_in_a_slot(phy: &Phy) -> Duration {
    phy.slot.saturating_sub(phy.cca)
}
