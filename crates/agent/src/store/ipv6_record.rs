//! A record of Mobile IPv6 as it is written: JSON, so that it can be read without us, in numbers that lose nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use careof_mobility::NtpTime;
use careof_mobility::v6::{HomeRegistrationRecord, MobileNodeRecord};
use careof_wire::mip6::{BindingId, Lifetime, SequenceNumber};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Node {
    home_address: Ipv6Addr,
    bindings: Vec<Binding>,
    sequence: Option<u16>,
    /// NTP format, 32.32 bits.
    latest_ntp: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    /// Not there in records of before IPv4 home addresses.
    #[serde(default)]
    ipv4_home_address: Option<Ipv4Addr>,
    care_of: Ipv6Addr,
    /// The Binding Identifier (RFC 5648).
    id: Option<u16>,
    /// Units of 4 s.
    lifetime_units: u16,
    /// NTP format, 32.32 bits.
    expires_ntp: u64,
    sequence: u16,
    link_local: bool,
}

impl From<&HomeRegistrationRecord> for Binding {
    fn from(record: &HomeRegistrationRecord) -> Self {
        Self {
            ipv4_home_address: record.ipv4_home_address,
            care_of: record.care_of,
            id: record.id.map(|id| id.0),
            lifetime_units: record.lifetime.as_units(),
            expires_ntp: record.expires.to_bits(),
            sequence: record.sequence.0,
            link_local: record.link_local,
        }
    }
}

impl From<Binding> for HomeRegistrationRecord {
    fn from(stored: Binding) -> Self {
        Self {
            ipv4_home_address: stored.ipv4_home_address,
            care_of: stored.care_of,
            id: stored.id.map(BindingId),
            lifetime: Lifetime::from_units(stored.lifetime_units),
            expires: NtpTime::from_bits(stored.expires_ntp),
            sequence: SequenceNumber(stored.sequence),
            link_local: stored.link_local,
        }
    }
}

pub(super) fn encode(record: &MobileNodeRecord) -> Vec<u8> {
    let node = Node {
        home_address: record.home_address,
        bindings: record.bindings.iter().map(Binding::from).collect(),
        sequence: record.sequence.map(|sequence| sequence.0),
        latest_ntp: record.latest.map(NtpTime::to_bits),
    };
    // Plain values have no way to fail.
    serde_json::to_vec(&node).unwrap_or_default()
}

pub(super) fn decode(bytes: &[u8]) -> Result<MobileNodeRecord, String> {
    let node: Node = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(MobileNodeRecord {
        home_address: node.home_address,
        bindings: node.bindings.into_iter().map(HomeRegistrationRecord::from).collect(),
        sequence: node.sequence.map(SequenceNumber),
        latest: node.latest_ntp.map(NtpTime::from_bits),
    })
}
