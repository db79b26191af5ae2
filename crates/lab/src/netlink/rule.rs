//! Rules of policy routing: which table is looked up for which packets.

use std::net::IpAddr;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{RouteHeader, RouteProtocol};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;

use super::route::network;
use super::{Effect, IpVersion, Netlink, Route};
use crate::error::Error;

/// The attribute for the protocol inside IP, whose type the crate keeps to itself.
const FRA_IP_PROTO: u16 = 22;

/// A rule: packets that fulfil all its conditions are looked up in its table.
///
/// Begin with [`Rule::new`] or [`Rule::new_for`] and set the conditions. A new namespace has the rules 0 (the host's own addresses),
/// 32766 (main table) and, of IPv4, 32767.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The version of the packets that it is for; its addresses are of that.
    pub version: IpVersion,
    /// Rules are tried from the smallest priority up.
    pub priority: u32,
    /// Source address and length of its prefix in bits. A packet that has no source address yet has none of these; of IPv4 it has
    /// 0.0.0.0, of IPv6 no rule with a source is for it.
    pub from: Option<(IpAddr, u8)>,
    /// Destination address and length of its prefix in bits.
    pub to: Option<(IpAddr, u8)>,
    /// Name of the interface it came in by; `lo` for packets of this host.
    pub input: Option<String>,
    /// Name of the interface that the sending socket is bound to.
    pub output: Option<String>,
    /// The packet's mark (`SO_MARK`).
    pub mark: Option<u32>,
    /// The number of the protocol inside IP.
    pub protocol: Option<u8>,
    /// First and last source port, of TCP, UDP and the like; names of fragments other than the first have none.
    pub source_port: Option<(u16, u16)>,
    /// First and last destination port.
    pub destination_port: Option<(u16, u16)>,
    /// Number of the table.
    pub table: u32,
    /// Routes of the table with a prefix of at most that many bits are passed over: with 0 its default route.
    pub suppress_prefix_length: Option<u32>,
    /// Who made it (`FRA_PROTOCOL`), for telling one's own from others': [`Route::STATIC`] unless set.
    pub maker: u8,
}

impl Rule {
    /// A rule for every packet of IPv4.
    #[must_use]
    pub const fn new(priority: u32, table: u32) -> Self {
        Self::new_for(IpVersion::V4, priority, table)
    }

    /// A rule for every packet of this version.
    #[must_use]
    pub const fn new_for(version: IpVersion, priority: u32, table: u32) -> Self {
        Self {
            version,
            priority,
            from: None,
            to: None,
            input: None,
            output: None,
            mark: None,
            protocol: None,
            source_port: None,
            destination_port: None,
            table,
            suppress_prefix_length: None,
            maker: Route::STATIC,
        }
    }

    /// Itself without bits behind the prefixes, and without conditions that every packet fulfils.
    fn resolved(mut self) -> Self {
        let resolve = |prefix: Option<(IpAddr, u8)>| {
            prefix
                .filter(|(_, length)| *length > 0)
                .map(|(address, length)| (network(address, length), length))
        };
        self.from = resolve(self.from);
        self.to = resolve(self.to);
        self
    }
}

impl Netlink {
    /// The rules, those of IPv4 before those of IPv6, each in the order in which they are tried. One with conditions or an action that
    /// [`Rule`] does not have appears without them.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn rules(&mut self) -> Result<Vec<Rule>, Error> {
        let mut rules = self.rules_for(IpVersion::V4)?;
        match self.rules_for(IpVersion::V6) {
            // A kernel without it.
            Err(Error::System { errno: Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT, .. }) => {}
            found => rules.extend(found?),
        }
        Ok(rules)
    }

    fn rules_for(&mut self, version: IpVersion) -> Result<Vec<Rule>, Error> {
        let mut message = RuleMessage::default();
        message.header.family = version.family();
        self.dump(
            &RouteNetlinkMessage::GetRule(message),
            "RTM_GETRULE",
            |message, found| {
                if let RouteNetlinkMessage::NewRule(message) = message {
                    found.extend(read(message));
                }
            },
            || "list the rules".to_owned(),
        )
    }

    /// Adds a rule; [`Effect::Unchanged`] when this very rule is there.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<Effect, Error> {
        self.tell_unless(
            RouteNetlinkMessage::NewRule(rule_message(rule)),
            NLM_F_CREATE | NLM_F_EXCL,
            "RTM_NEWRULE",
            &[Errno::EEXIST],
            || format!("add the rule {} for table {}", rule.priority, rule.table),
        )
    }

    /// Removes a rule; [`Effect::Unchanged`] when it is not there.
    ///
    /// The kernel takes the first rule that has all of `rule`'s conditions, even if it has more. So nothing is asked
    /// of it unless this very rule is there, and it is safe where nobody else uses the same priority and table.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<Effect, Error> {
        let wanted = rule.clone().resolved();
        if !self.rules_for(rule.version)?.contains(&wanted) {
            return Ok(Effect::Unchanged);
        }
        self.tell_unless(
            RouteNetlinkMessage::DelRule(rule_message(rule)),
            0,
            "RTM_DELRULE",
            &[Errno::ENOENT],
            || format!("remove the rule {} for table {}", rule.priority, rule.table),
        )
    }
}

fn rule_message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = rule.version.family();
    message.header.action = RuleAction::ToTable;
    message.header.table = u8::try_from(rule.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    let attributes = &mut message.attributes;
    attributes.push(RuleAttribute::Priority(rule.priority));
    attributes.push(RuleAttribute::Table(rule.table));
    attributes.push(RuleAttribute::Protocol(RouteProtocol::from(rule.maker)));
    if let Some((address, length)) = rule.from.filter(|(_, length)| *length > 0) {
        message.header.src_len = length;
        attributes.push(RuleAttribute::Source(network(address, length)));
    }
    if let Some((address, length)) = rule.to.filter(|(_, length)| *length > 0) {
        message.header.dst_len = length;
        attributes.push(RuleAttribute::Destination(network(address, length)));
    }
    if let Some(name) = &rule.input {
        attributes.push(RuleAttribute::Iifname(name.clone()));
    }
    if let Some(name) = &rule.output {
        attributes.push(RuleAttribute::Oifname(name.clone()));
    }
    if let Some(mark) = rule.mark {
        attributes.push(RuleAttribute::FwMark(mark));
    }
    if let Some(protocol) = rule.protocol {
        attributes.push(RuleAttribute::Other(DefaultNla::new(FRA_IP_PROTO, vec![protocol])));
    }
    let range = |(start, end)| RulePortRange { start, end };
    if let Some(ports) = rule.source_port {
        attributes.push(RuleAttribute::SourcePortRange(range(ports)));
    }
    if let Some(ports) = rule.destination_port {
        attributes.push(RuleAttribute::DestinationPortRange(range(ports)));
    }
    if let Some(length) = rule.suppress_prefix_length {
        attributes.push(RuleAttribute::SuppressPrefixLen(length));
    }
    message
}

fn read(message: RuleMessage) -> Option<Rule> {
    let version = match message.header.family {
        AddressFamily::Inet => IpVersion::V4,
        AddressFamily::Inet6 => IpVersion::V6,
        _ => return None,
    };
    let mut rule = Rule { maker: 0, ..Rule::new_for(version, 0, u32::from(message.header.table)) };
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::Protocol(maker) => rule.maker = maker.into(),
            RuleAttribute::Source(address) => rule.from = Some((address, message.header.src_len)),
            RuleAttribute::Destination(address) => rule.to = Some((address, message.header.dst_len)),
            RuleAttribute::Iifname(name) => rule.input = Some(name),
            RuleAttribute::Oifname(name) => rule.output = Some(name),
            RuleAttribute::FwMark(mark) => rule.mark = Some(mark),
            RuleAttribute::IpProtocol(protocol) => rule.protocol = Some(protocol.into()),
            RuleAttribute::SourcePortRange(range) => rule.source_port = Some((range.start, range.end)),
            RuleAttribute::DestinationPortRange(range) => {
                rule.destination_port = Some((range.start, range.end))
            }
            // Without suppression the kernel reports -1.
            RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            RuleAttribute::SuppressPrefixLen(length) => rule.suppress_prefix_length = Some(length),
            _ => {}
        }
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{Emitable, Parseable};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_rule_reads_as_it_was_written() {
        let rules = [
            Rule::new(100, Route::MAIN_TABLE),
            Rule { suppress_prefix_length: Some(0), ..Rule::new(101, Route::MAIN_TABLE) },
            Rule {
                from: Some((ip("10.1.2.3"), 32)),
                to: Some((ip("10.9.9.9"), 8)),
                input: Some("lo".to_owned()),
                output: Some("up0".to_owned()),
                mark: Some(9),
                protocol: Some(6),
                source_port: Some((1, 9)),
                destination_port: Some((80, 443)),
                maker: 77,
                ..Rule::new(102, 100_000)
            },
            Rule {
                from: Some((ip("2001:db8::7"), 128)),
                to: Some((ip("2001:db8:9::9"), 48)),
                ..Rule::new_for(IpVersion::V6, 102, 100_000)
            },
            Rule::new_for(IpVersion::V6, 103, 7),
        ];
        for rule in rules {
            let message = rule_message(&rule);
            let mut bytes = vec![0; message.buffer_len()];
            message.emit(&mut bytes);
            assert_eq!(read(RuleMessage::parse(&bytes).unwrap()), Some(rule.resolved()));
        }
    }
}
