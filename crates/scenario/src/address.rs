//! Addresses of single nodes, as the file gives them.

use core::net::IpAddr;

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::tree::Value;

/// An address, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct AddressDraft {
    pub(crate) address: IpAddr,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

/// What `address` of IPv4 hosts can end with. The others are the network's own, its broadcast address, and one that careof keeps free.
const IPV4_HOSTS: core::ops::RangeInclusive<u8> = 1..=253;

/// Reads an address, or an array of them.
pub(crate) fn addresses(field: &Field<'_>, problems: &mut Problems) -> Vec<AddressDraft> {
    const EXPECTED: &str = "it is an address, or an array of them: \"192.0.2.10\" or \"2001:db8:1::10\"";
    let fields = match &field.node.value {
        Value::Text(_) => vec![field.clone()],
        _ => field.list(EXPECTED, problems),
    };
    fields.iter().filter_map(|field| address(field, EXPECTED, problems)).collect()
}

fn address(field: &Field<'_>, expected: &str, problems: &mut Problems) -> Option<AddressDraft> {
    let text = field.text(problems)?;
    let Ok(address) = text.parse::<IpAddr>() else {
        let hint = text.contains('/').then(|| "leave the length of the prefix out".to_owned());
        field.wrong(expected, hint, problems);
        return None;
    };
    if let Err(expected) = can_be_a_hosts(address) {
        field.wrong(expected, None, problems);
        return None;
    }
    Some(AddressDraft { address, origin: field.node.origin, path: field.path.clone() })
}

/// Whether a host of a network of an experiment can have this address.
fn can_be_a_hosts(address: IpAddr) -> Result<(), &'static str> {
    /// The identifiers of subnet anycast addresses (RFC 2526), and those that mobile nodes form of their link-layer addresses, which are
    /// 02:00:00 and a number.
    const ANYCAST: u64 = 0xfdff_ffff_ffff_ff80;
    const FORMED: u64 = 0x0000_00ff_fe00_0000;
    match address {
        IpAddr::V4(address) if IPV4_HOSTS.contains(&address.octets()[3]) => Ok(()),
        IpAddr::V4(_) => Err("the addresses of hosts end with 1 to 253"),
        IpAddr::V6(address) => match address.to_bits() as u64 {
            0 => Err("this is the address of all routers of its network (RFC 4291 section 2.6.1)"),
            ANYCAST..=0xfdff_ffff_ffff_ffff => Err("these are anycast addresses (RFC 2526)"),
            identifier if identifier & !0xff_ffff == FORMED => {
                Err("mobile nodes form such addresses of their link-layer addresses")
            }
            _ => Ok(()),
        },
    }
}
