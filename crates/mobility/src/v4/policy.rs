//! The mobile policy table: which traffic travels how.
//!
//! After MosquitoNet's Mobile Policy Table: a mobile node away from home can send with its home address
//! straight to the correspondent, through the home agent, or - for what does not need to survive a move -
//! like any other host, with its care-of address. Destination and port decide.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::Prefix;

/// How a mobile node away from home sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryMethod {
    /// As a host without Mobile IP, from the care-of address. The connection does not survive a move.
    RegularIp,
    /// From the home address straight to the correspondent; only what comes back passes the home agent. A
    /// border router with ingress filtering drops it.
    #[default]
    Triangle,
    /// From the home address through the tunnel to the home agent (RFC 3024).
    ReverseTunnel,
}

/// One line of the policy table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyEntry {
    /// Where the traffic goes.
    pub destination: Prefix,
    /// To which TCP or UDP port; `None` is any traffic.
    pub port: Option<u16>,
    /// How it travels.
    pub method: DeliveryMethod,
}

/// Destination prefix and port to delivery method. The longest prefix wins, and among equal prefixes the
/// entry with a port; of two equal entries the later one given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyTable {
    /// The best match first.
    entries: Vec<PolicyEntry>,
    default: DeliveryMethod,
}

impl PolicyTable {
    /// A table of `entries`, and `default` for what none of them matches.
    #[must_use]
    pub fn new(default: DeliveryMethod, entries: impl IntoIterator<Item = PolicyEntry>) -> Self {
        let mut table = Self { entries: Vec::new(), default };
        for entry in entries {
            table.set(entry);
        }
        table
    }

    /// Adds `entry`, replacing one for the same prefix and port.
    pub fn set(&mut self, entry: PolicyEntry) {
        let same = |e: &PolicyEntry| e.destination == entry.destination && e.port == entry.port;
        if let Some(existing) = self.entries.iter_mut().find(|e| same(e)) {
            *existing = entry;
            return;
        }
        let rank = |e: &PolicyEntry| (e.destination.length(), e.port.is_some());
        let at = self.entries.partition_point(|e| rank(e) >= rank(&entry));
        self.entries.insert(at, entry);
    }

    /// The entries, the best match first: the first one that fits a packet decides.
    #[must_use]
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.entries
    }

    /// The method for what no entry fits.
    #[must_use]
    pub const fn default_method(&self) -> DeliveryMethod {
        self.default
    }

    /// The method for a packet to `destination`; `port` is `None` for traffic without ports.
    #[must_use]
    pub fn lookup(&self, destination: Ipv4Addr, port: Option<u16>) -> DeliveryMethod {
        self.entries
            .iter()
            .find(|e| e.destination.contains(destination) && (e.port.is_none() || e.port == port))
            .map_or(self.default, |e| e.method)
    }

    /// Whether any traffic could be sent by `method`.
    #[must_use]
    pub fn uses(&self, method: DeliveryMethod) -> bool {
        self.default == method || self.entries.iter().any(|e| e.method == method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEB: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

    fn entry(length: u8, port: Option<u16>, method: DeliveryMethod) -> PolicyEntry {
        PolicyEntry { destination: Prefix::new(WEB, length), port, method }
    }

    #[test]
    fn the_longest_prefix_decides_before_the_port() {
        let table = PolicyTable::new(
            DeliveryMethod::Triangle,
            [
                entry(8, Some(80), DeliveryMethod::RegularIp),
                entry(24, None, DeliveryMethod::ReverseTunnel),
                entry(0, Some(23), DeliveryMethod::ReverseTunnel),
            ],
        );
        assert_eq!(table.lookup(WEB, Some(80)), DeliveryMethod::ReverseTunnel);
        let elsewhere = Ipv4Addr::new(10, 9, 9, 9);
        assert_eq!(table.lookup(elsewhere, Some(80)), DeliveryMethod::RegularIp);
        assert_eq!(table.lookup(elsewhere, Some(443)), DeliveryMethod::Triangle);
        assert_eq!(table.lookup(elsewhere, None), DeliveryMethod::Triangle);
        assert_eq!(table.lookup(elsewhere, Some(23)), DeliveryMethod::ReverseTunnel);
    }

    #[test]
    fn among_equal_prefixes_the_entry_with_the_port_wins() {
        let table = PolicyTable::new(
            DeliveryMethod::Triangle,
            [entry(8, None, DeliveryMethod::ReverseTunnel), entry(8, Some(80), DeliveryMethod::RegularIp)],
        );
        assert_eq!(table.lookup(WEB, Some(80)), DeliveryMethod::RegularIp);
        assert_eq!(table.lookup(WEB, Some(22)), DeliveryMethod::ReverseTunnel);
    }

    #[test]
    fn setting_an_entry_again_replaces_it() {
        let mut table =
            PolicyTable::new(DeliveryMethod::Triangle, [entry(8, None, DeliveryMethod::RegularIp)]);
        assert!(table.uses(DeliveryMethod::RegularIp));
        table.set(entry(8, None, DeliveryMethod::ReverseTunnel));
        assert_eq!(table.lookup(WEB, None), DeliveryMethod::ReverseTunnel);
        assert!(!table.uses(DeliveryMethod::RegularIp));
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_search_through_all_entries(
            entries in proptest::collection::vec((any::<u32>(), 0u8..=32, proptest::option::of(0u16..4), 0u8..3), 0..12),
            destination in any::<u32>(), port in proptest::option::of(0u16..4),
        ) {
            let methods = [DeliveryMethod::RegularIp, DeliveryMethod::Triangle, DeliveryMethod::ReverseTunnel];
            let entries: Vec<_> = entries.iter().map(|&(bits, length, port, method)| PolicyEntry {
                // Few distinct top bits, so that prefixes nest and meet the destination.
                destination: Prefix::new(Ipv4Addr::from_bits(bits & 0xc000_0000), length % 4),
                port, method: methods[usize::from(method)],
            }).collect();
            let destination = Ipv4Addr::from_bits(destination & 0xc000_0000);
            let table = PolicyTable::new(DeliveryMethod::Triangle, entries.iter().copied());
            let expected = entries.iter().enumerate()
                .filter(|(_, e)| e.destination.contains(destination) && (e.port.is_none() || e.port == port))
                .max_by_key(|(order, e)| (e.destination.length(), e.port.is_some(), *order))
                .map_or(DeliveryMethod::Triangle, |(_, e)| e.method);
            prop_assert_eq!(table.lookup(destination, port), expected);
        }
    }
}
