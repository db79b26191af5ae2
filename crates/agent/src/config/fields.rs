//! Values that only configurations have: addresses, prefixes, names of interfaces, lifetimes, paths.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_document::units;
use careof_mobility::{v4, v6};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip4::Lifetime;

/// Reads `key` if it is given; what is wrong is reported and read as if it were not given.
pub(super) fn given<'a, T>(
    reader: &Reader<'a>,
    key: &str,
    problems: &mut Problems,
    read: impl FnOnce(&Field<'a>, &mut Problems) -> Option<T>,
) -> Option<T> {
    reader.get(key).and_then(|field| read(&field, problems))
}

/// Reads `key`, which must be given; `expected` says so.
pub(super) fn required<'a, T>(
    reader: &Reader<'a>,
    key: &str,
    expected: &str,
    problems: &mut Problems,
    read: impl FnOnce(&Field<'a>, &mut Problems) -> Option<T>,
) -> Option<T> {
    reader.require(key, expected, problems).and_then(|field| read(&field, problems))
}

/// An address of either version of IP, as configurations have it.
pub(super) trait Ip: Copy + FromStr + fmt::Display {
    /// An address of the other version.
    type Other: FromStr;
    /// What a field must hold: an address, or a prefix.
    const ADDRESS: &'static str;
    const PREFIX: &'static str;
    /// The remedy for an address of the other version.
    const ONE_VERSION: &'static str;
    /// Bits of an address.
    const BITS: u8;

    /// Why no host has this address, or none that others reach.
    fn unfit(self) -> Option<&'static str>;
}

impl Ip for Ipv4Addr {
    type Other = Ipv6Addr;
    const ADDRESS: &'static str = "it must be an IPv4 address, such as \"192.0.2.1\"";
    const PREFIX: &'static str = "it must be an IPv4 prefix, such as \"192.0.2.0/24\"";
    const ONE_VERSION: &'static str =
        "the other addresses of this configuration are of IPv4: an agent is of one version";
    const BITS: u8 = 32;

    fn unfit(self) -> Option<&'static str> {
        let is_unfit = self.is_unspecified() || self.is_loopback() || self.octets()[0] >= 224;
        is_unfit.then_some("no host on a network can have this address")
    }
}

impl Ip for Ipv6Addr {
    type Other = Ipv4Addr;
    const ADDRESS: &'static str = "it must be an IPv6 address, such as \"2001:db8:1::1\"";
    const PREFIX: &'static str = "it must be an IPv6 prefix, such as \"2001:db8:1::/64\"";
    const ONE_VERSION: &'static str =
        "the other addresses of this configuration are of IPv6: an agent is of one version";
    const BITS: u8 = 128;

    fn unfit(self) -> Option<&'static str> {
        (!is_unicast_routable(self)).then_some("no host can be reached by this address beyond its link")
    }
}

/// A prefix of either version of IP.
pub(super) trait IpPrefix: Copy + fmt::Display {
    type Address: Ip + PartialEq;

    /// That of an address, with so many bits.
    fn of(address: Self::Address, length: u8) -> Self;

    /// Its first address.
    fn first(self) -> Self::Address;
}

impl IpPrefix for v4::Prefix {
    type Address = Ipv4Addr;

    fn of(address: Ipv4Addr, length: u8) -> Self {
        Self::new(address, length)
    }

    fn first(self) -> Ipv4Addr {
        self.address()
    }
}

impl IpPrefix for v6::Prefix {
    type Address = Ipv6Addr;

    fn of(address: Ipv6Addr, length: u8) -> Self {
        Self::new(address, length)
    }

    fn first(self) -> Ipv6Addr {
        self.address()
    }
}

/// An address a host can have.
pub(super) fn address<A: Ip>(field: &Field<'_>, problems: &mut Problems) -> Option<A> {
    let text = field.text(problems)?;
    let Ok(address) = text.parse::<A>() else {
        let alone = text.split_once('/').filter(|(address, _)| address.parse::<A>().is_ok());
        let hint = match alone {
            Some((address, _)) => Some(format!("write \"{address}\", without the length of its network")),
            None => of_other_version::<A>(text),
        };
        field.wrong(A::ADDRESS, hint, problems);
        return None;
    };
    if let Some(expected) = address.unfit() {
        field.wrong(expected, None, problems);
        return None;
    }
    Some(address)
}

/// The remedy for an address or prefix of the version that is not `A`'s.
fn of_other_version<A: Ip>(text: &str) -> Option<String> {
    let address = text.split_once('/').map_or(text, |(address, _)| address);
    address.parse::<A::Other>().is_ok().then(|| A::ONE_VERSION.to_owned())
}

/// A prefix; an address alone is that of one host.
pub(super) fn prefix<P: IpPrefix>(field: &Field<'_>, problems: &mut Problems) -> Option<P> {
    let written = field.text(problems)?;
    let bits = P::Address::BITS;
    let (address, length) = match written.split_once('/') {
        Some((address, length)) => (address, length.parse::<u8>().ok().filter(|length| *length <= bits)),
        None => (written, Some(bits)),
    };
    let Some((address, length)) = address.parse::<P::Address>().ok().zip(length) else {
        field.wrong(P::Address::PREFIX, of_other_version::<P::Address>(written), problems);
        return None;
    };
    let prefix = P::of(address, length);
    if prefix.first() != address {
        let hint = Some(format!("write \"{prefix}\""));
        field.wrong(format!("the bits of a prefix beyond its length of {length} are zero"), hint, problems);
        return None;
    }
    Some(prefix)
}

/// The network of a home link.
pub(super) fn network(field: &Field<'_>, problems: &mut Problems) -> Option<v4::Prefix> {
    let prefix: v4::Prefix = prefix(field, problems)?;
    if prefix.length() == 0 {
        field.wrong("a home network is not everything; give its length, as \"192.0.2.0/24\"", None, problems);
        return None;
    }
    Some(prefix)
}

/// The name of an interface.
pub(super) fn interface(field: &Field<'_>, problems: &mut Problems) -> Option<String> {
    let name = field.text(problems)?;
    let fits = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if !(1..=15).contains(&name.len()) || !name.chars().all(fits) || matches!(name, "." | "..") {
        let hint = Some("`ip -brief link` lists them".to_owned());
        field.wrong("the name of an interface has 1 to 15 characters, no space, `/` or `:`", hint, problems);
        return None;
    }
    Some(name.to_owned())
}

/// A registration lifetime, or `"infinity"`.
pub(super) fn lifetime_or_infinity(field: &Field<'_>, problems: &mut Problems) -> Option<Lifetime> {
    if matches!(&field.node.value, Value::Text(text) if text == "infinity") {
        return Some(Lifetime::INFINITE);
    }
    whole_seconds(field, Some("write \"infinity\" for one without end"), problems)
}

/// A registration lifetime that ends.
pub(super) fn lifetime(field: &Field<'_>, problems: &mut Problems) -> Option<Lifetime> {
    whole_seconds(field, None, problems)
}

fn whole_seconds(field: &Field<'_>, hint: Option<&str>, problems: &mut Problems) -> Option<Lifetime> {
    let span = field.positive_duration(problems)?;
    let seconds = u16::try_from(span.as_secs()).ok().filter(|seconds| *seconds != u16::MAX);
    let Some(seconds) = seconds.filter(|_| span.subsec_nanos() == 0) else {
        let expected = "registrations carry whole seconds, at most 65534";
        field.wrong(expected, hint.map(str::to_owned), problems);
        return None;
    };
    Some(Lifetime::from_secs(seconds))
}

/// A duration of at least `least`.
pub(super) fn at_least(field: &Field<'_>, least: Duration, problems: &mut Problems) -> Option<Duration> {
    let span = field.duration(problems)?;
    if span < least {
        field.wrong(format!("it must be at least {}", units::duration(least)), None, problems);
        return None;
    }
    Some(span)
}

/// A duration of at most `most`.
pub(super) fn at_most(field: &Field<'_>, most: Duration, problems: &mut Problems) -> Option<Duration> {
    let span = field.duration(problems)?;
    if span > most {
        field.wrong(format!("it must be at most {}", units::duration(most)), None, problems);
        return None;
    }
    Some(span)
}

/// A path, taken from `directory` if it is relative.
pub(super) fn path(field: &Field<'_>, directory: &Path, problems: &mut Problems) -> Option<PathBuf> {
    let text = field.text(problems)?;
    if text.is_empty() || text.contains('\0') {
        field.wrong("it must be a path", None, problems);
        return None;
    }
    Some(directory.join(text))
}

/// A count.
pub(super) fn count(field: &Field<'_>, least: u64, most: u64, problems: &mut Problems) -> Option<usize> {
    field.integer(least, most, problems).and_then(|number| usize::try_from(number).ok())
}

/// The tables of an array such as `[[interface]]`; `None` where one of them is wrong.
pub(super) fn tables<'a, T>(
    field: &Field<'a>,
    name: &str,
    problems: &mut Problems,
    mut read: impl FnMut(&Field<'a>, usize, &mut Problems) -> Option<T>,
) -> Option<Vec<T>> {
    let before = problems.count();
    let expected = format!("write [[{name}]], once for each");
    let items = field.list(&expected, problems);
    let read: Vec<T> =
        items.iter().enumerate().filter_map(|(index, item)| read(item, index, problems)).collect();
    (problems.count() == before).then_some(read)
}
