//! A node that lends its link, as `[nodes]` gives it.

use careof_base::{DataRate, Duration, Probability};

use crate::decode::Reader;
use crate::error::Problems;

/// The keys that only such a node has.
pub(crate) const RELAY_KEYS: [&str; 8] =
    ["cost", "claims", "client_rate", "client_bytes", "longest", "drops", "vanishes", "returns"];

/// For how long it lends at once, unless the file says otherwise.
const USUAL_LONGEST: Duration = Duration::from_secs(60);

/// What the file says of a relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelayDraft {
    pub(crate) cost: u16,
    pub(crate) claims: Option<DataRate>,
    pub(crate) client_rate: Option<DataRate>,
    pub(crate) client_bytes: Option<u64>,
    pub(crate) longest: Duration,
    pub(crate) drops: Probability,
    pub(crate) vanishes: Option<Duration>,
    pub(crate) returns: Option<Duration>,
}

impl RelayDraft {
    /// One of which nothing is said.
    pub(crate) const USUAL: Self = Self {
        cost: 0,
        claims: None,
        client_rate: None,
        client_bytes: None,
        longest: USUAL_LONGEST,
        drops: Probability::ZERO,
        vanishes: None,
        returns: None,
    };
}

/// Reads what the table of a node says of it as a relay.
pub(crate) fn relay(reader: &Reader<'_>, problems: &mut Problems) -> RelayDraft {
    let cost = reader.get("cost").and_then(|field| field.integer(0, u16::MAX.into(), problems));
    let mut rate = |key| reader.get(key).and_then(|field| field.rate(problems));
    let (claims, client_rate) = (rate("claims"), rate("client_rate"));
    if let (Some(field), Some(0)) = (reader.get("client_rate"), client_rate.map(DataRate::bits_per_second)) {
        field.wrong("it must be above zero", Some("leave it out for no limit".to_owned()), problems);
    }
    let client_bytes = reader.get("client_bytes").and_then(|field| {
        let bytes = field.size(problems)?;
        if bytes == 0 {
            field.wrong("it must be above zero", Some("leave it out for no limit".to_owned()), problems);
        }
        Some(bytes)
    });
    let longest = reader.get("longest").and_then(|field| {
        let longest = field.positive_duration(problems)?;
        if longest.subsec_nanos() != 0 || longest.as_secs() > u16::MAX.into() {
            let expected = "it is whole seconds, at most 65,535, as an alliance message has them";
            field.wrong(expected, Some("write longest = \"60 s\"".to_owned()), problems);
        }
        Some(longest)
    });
    let drops = reader.get("drops").and_then(|field| field.probability(problems));
    let vanishes = reader.get("vanishes").and_then(|field| field.duration(problems));
    let returns = reader.get("returns").and_then(|field| {
        let returns = field.duration(problems)?;
        if vanishes.is_none_or(|vanishes| vanishes >= returns) {
            field.wrong("it comes after `vanishes`", Some("give both".to_owned()), problems);
        }
        Some(returns)
    });
    RelayDraft {
        cost: cost.and_then(|cost| u16::try_from(cost).ok()).unwrap_or_default(),
        claims,
        client_rate,
        client_bytes,
        longest: longest.unwrap_or(USUAL_LONGEST),
        drops: drops.unwrap_or(Probability::ZERO),
        vanishes,
        returns,
    }
}
