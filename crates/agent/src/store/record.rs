//! A record as it is written: JSON, so that it can be read without us, in numbers that lose nothing.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_mobility::multipath::PathId;
use careof_mobility::v4::{BindingRecord, EncapsulationChoice, MobileNodeRecord, NtpTime, ReplayGuard};
use careof_wire::mip4::{Identification, Lifetime, Spi};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Node {
    home_address: Ipv4Addr,
    bindings: Vec<Binding>,
    replay: Vec<Replay>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    care_of: Ipv4Addr,
    /// 65535 is for ever.
    lifetime_s: u16,
    /// NTP format, 32.32 bits; none is never.
    expires_ntp: Option<u64>,
    identification: u64,
    co_located: bool,
    broadcasts: bool,
    reverse_tunnel: bool,
    encapsulation: Encapsulation,
    /// The number of the path, where packets are dispersed; records of before had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<u8>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    relayed: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Encapsulation {
    IpInIp,
    Minimal,
    Gre,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Replay {
    spi: u32,
    guard: Guard,
}

#[derive(Deserialize, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
enum Guard {
    Timestamps { window_ns: u64, last_ntp: Option<u64> },
    Nonces { expected: Option<u32> },
}

impl From<&BindingRecord> for Binding {
    fn from(record: &BindingRecord) -> Self {
        Self {
            care_of: record.care_of,
            lifetime_s: record.lifetime.as_secs(),
            expires_ntp: record.expires.map(NtpTime::to_bits),
            identification: record.identification.0,
            co_located: record.co_located,
            broadcasts: record.broadcasts,
            reverse_tunnel: record.reverse_tunnel,
            encapsulation: match record.encapsulation {
                EncapsulationChoice::IpInIp => Encapsulation::IpInIp,
                EncapsulationChoice::Minimal => Encapsulation::Minimal,
                EncapsulationChoice::Gre => Encapsulation::Gre,
            },
            path: record.path_id.map(PathId::number),
            relayed: record.relayed,
        }
    }
}

impl From<Binding> for BindingRecord {
    fn from(stored: Binding) -> Self {
        Self {
            care_of: stored.care_of,
            lifetime: Lifetime::from_secs(stored.lifetime_s),
            expires: stored.expires_ntp.map(NtpTime::from_bits),
            identification: Identification(stored.identification),
            co_located: stored.co_located,
            broadcasts: stored.broadcasts,
            reverse_tunnel: stored.reverse_tunnel,
            encapsulation: match stored.encapsulation {
                Encapsulation::IpInIp => EncapsulationChoice::IpInIp,
                Encapsulation::Minimal => EncapsulationChoice::Minimal,
                Encapsulation::Gre => EncapsulationChoice::Gre,
            },
            path_id: stored.path.and_then(PathId::new),
            relayed: stored.relayed,
        }
    }
}

impl From<&(Spi, ReplayGuard)> for Replay {
    fn from(&(Spi(spi), guard): &(Spi, ReplayGuard)) -> Self {
        let guard = match guard {
            ReplayGuard::Timestamps { window, last } => Guard::Timestamps {
                window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
                last_ntp: last.map(NtpTime::to_bits),
            },
            ReplayGuard::Nonces { expected } => Guard::Nonces { expected },
        };
        Self { spi, guard }
    }
}

impl From<Replay> for (Spi, ReplayGuard) {
    fn from(stored: Replay) -> Self {
        let guard = match stored.guard {
            Guard::Timestamps { window_ns, last_ntp } => ReplayGuard::Timestamps {
                window: Duration::from_nanos(window_ns),
                last: last_ntp.map(NtpTime::from_bits),
            },
            Guard::Nonces { expected } => ReplayGuard::Nonces { expected },
        };
        (Spi(stored.spi), guard)
    }
}

pub(super) fn encode(record: &MobileNodeRecord) -> Vec<u8> {
    let node = Node {
        home_address: record.home_address,
        bindings: record.bindings.iter().map(Binding::from).collect(),
        replay: record.replay.iter().map(Replay::from).collect(),
    };
    // Plain values have no way to fail.
    serde_json::to_vec(&node).unwrap_or_default()
}

pub(super) fn decode(bytes: &[u8]) -> Result<MobileNodeRecord, String> {
    let node: Node = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(MobileNodeRecord {
        home_address: node.home_address,
        bindings: node.bindings.into_iter().map(BindingRecord::from).collect(),
        replay: node.replay.into_iter().map(Into::into).collect(),
    })
}
