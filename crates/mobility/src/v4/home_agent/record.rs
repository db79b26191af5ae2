//! What a home agent must remember across a restart.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_wire::mip4::{Identification, Lifetime, Spi};

use crate::multipath::PathId;
use crate::v4::{EncapsulationChoice, NtpTime, ReplayGuard};

/// One binding, in terms that outlive the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingRecord {
    /// Where the packets go.
    pub care_of: Ipv4Addr,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends, by the home agent's clock; `None`: never.
    pub expires: Option<NtpTime>,
    /// The Identification of the request.
    pub identification: Identification,
    /// D.
    pub co_located: bool,
    /// B.
    pub broadcasts: bool,
    /// T.
    pub reverse_tunnel: bool,
    /// M or G.
    pub encapsulation: EncapsulationChoice,
    /// Which path of the mobile node it is, where packets are dispersed.
    pub path_id: Option<PathId>,
    /// The care-of address is a relay's.
    pub relayed: bool,
}

/// Everything a home agent must remember of a mobile node so that, started again, it carries on: bindings,
/// or its connections break, and replay state, or what it once accepted can be replayed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNodeRecord {
    /// Which mobile node.
    pub home_address: Ipv4Addr,
    /// Its bindings.
    pub bindings: Vec<BindingRecord>,
    /// The replay state of each of its security associations.
    pub replay: Vec<(Spi, ReplayGuard)>,
}
