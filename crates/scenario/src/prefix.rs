//! Networks that the file gives addresses of its own.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::model::IpVersion;

/// A network: of /24 over IPv4, of /64 over IPv6, as those that are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpAddr);

/// A prefix, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct PrefixDraft {
    pub(crate) prefix: Prefix,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

impl Prefix {
    /// Its address, whose host part is zero.
    #[must_use]
    pub const fn network(self) -> IpAddr {
        self.0
    }

    /// Its length, bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        match self.0 {
            IpAddr::V4(_) => 24,
            IpAddr::V6(_) => 64,
        }
    }

    /// Whether `address` is in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        Self::around(address) == self
    }

    const fn version(self) -> IpVersion {
        match self.0 {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        }
    }

    /// The network that `address` is in.
    pub(crate) fn around(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & !0xff).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network(), self.length())
    }
}

/// Reads a prefix.
pub(crate) fn prefix(field: &Field<'_>, problems: &mut Problems) -> Option<PrefixDraft> {
    const EXPECTED: &str = "a prefix is a network of IPv4 or IPv6: \"192.0.2.0/24\" or \"2001:db8:1::/64\"";
    let text = field.text(problems)?;
    let read = text
        .split_once('/')
        .and_then(|(address, length)| Some((address.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?)));
    let Some((address, length)) = read else {
        field.wrong(EXPECTED, None, problems);
        return None;
    };
    let prefix = Prefix::around(address);
    let hint = Some(format!("write \"{prefix}\""));
    let wrong = if length != prefix.length() {
        "networks of an experiment are /24 over IPv4 and /64 over IPv6"
    } else if address != prefix.network() {
        "the address of a network ends in zeros"
    } else if !is_of_hosts(address) {
        field.wrong("hosts have no addresses in that network", None, problems);
        return None;
    } else if is_planned(address) {
        let expected = "the networks without a prefix are planned from 10.0.0.0/8 and 2001:db8::/48";
        let hint = "take another: of 172.16.0.0/12 or 192.168.0.0/16, or of 2001:db8:1::/48".to_owned();
        field.wrong(expected, Some(hint), problems);
        return None;
    } else {
        return Some(PrefixDraft { prefix, origin: field.node.origin, path: field.path.clone() });
    };
    field.wrong(wrong, hint, problems);
    None
}

/// Whether hosts can have addresses there (RFC 6890).
fn is_of_hosts(network: IpAddr) -> bool {
    match network {
        IpAddr::V4(network) => {
            let [first, ..] = network.octets();
            first != 0 && first < 224 && !network.is_loopback() && !network.is_link_local()
        }
        // Global unicast and unique local.
        IpAddr::V6(network) => {
            matches!(network.segments()[0] >> 13, 1) || matches!(network.octets()[0], 0xfc | 0xfd)
        }
    }
}

fn is_planned(network: IpAddr) -> bool {
    match network {
        IpAddr::V4(network) => network.octets()[0] == 10,
        IpAddr::V6(network) => network.segments()[..3] == [0x2001, 0xdb8, 0],
    }
}

/// Refuses prefixes of the other IP version, and one that is given twice.
pub(crate) fn check_prefixes<'a>(
    drafts: impl Iterator<Item = &'a PrefixDraft>,
    version: IpVersion,
    problems: &mut Problems,
) {
    let mut known: Vec<&PrefixDraft> = Vec::new();
    for draft in drafts {
        let found = format!("\"{}\"", draft.prefix);
        let place = (draft.origin, draft.path.as_str());
        if draft.prefix.version() != version {
            let expected = format!("the run is of IPv{}", version.number());
            problems.add(place, found, expected, None);
        } else if let Some(first) = known.iter().find(|other| other.prefix == draft.prefix) {
            let expected =
                format!("each network has a prefix of its own, and this one is that of `{}`", first.path);
            problems.add(place, found, expected, None);
        }
        known.push(draft);
    }
}
