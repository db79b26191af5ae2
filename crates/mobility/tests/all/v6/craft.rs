//! Binding Updates as a mobile node would send them, and a home agent to send them to.

use careof_base::{Duration, Instant, RandomStream};
use careof_mobility::v6::*;
use careof_mobility::{InterfaceId, NtpTime, WallClock};
use careof_wire::mip6::{
    Algorithm, BindingAcknowledgement, BindingUpdate, Lifetime, Message, MobileHomeAuthentication,
    MobilityOption, MobilityOptions, NtpTimestamp, SequenceNumber, Spi, UpdateFlags,
};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const HOME_IF: InterfaceId = InterfaceId(0);
pub(crate) const HA: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
/// The home agent's IPv4 address, and the mobile node's.
pub(crate) const HA_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const HOME_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// The first number of a network that has only IPv4.
pub(crate) const IPV4_ONLY: u16 = 1000;
pub(crate) const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
pub(crate) const HOME_PREFIX: Prefix = prefix(1);
pub(crate) const KEY: &[u8] = b"sixteen bytes ok";
pub(crate) const SPI: Spi = Spi(256);

/// The prefix of network `number`; 1 is the home network.
pub(crate) const fn prefix(number: u16) -> Prefix {
    match ipv4_care_of(number) {
        Some(address) => Prefix::new(address.to_ipv6_mapped(), 96 + 24),
        None => Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), 64),
    }
}

/// The mobile node's address on network `number`.
pub(crate) const fn care_of(number: u16) -> Ipv6Addr {
    match ipv4_care_of(number) {
        Some(address) => address.to_ipv6_mapped(),
        None => Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 7),
    }
}

/// The mobile node's address on a network that has only IPv4.
pub(crate) const fn ipv4_care_of(number: u16) -> Option<Ipv4Addr> {
    match number.checked_sub(IPV4_ONLY) {
        Some(number) => Some(Ipv4Addr::new(198, 51, number as u8, 7)),
        None => None,
    }
}

pub(crate) fn clock() -> WallClock {
    WallClock::new(NtpTime::from_unix(Duration::from_secs(1_000_000_000)))
}

pub(crate) fn timestamps() -> SecurityAssociation {
    SecurityAssociation::hmac_sha1(SPI, KEY).unwrap()
}

pub(crate) fn sequence_numbers() -> SecurityAssociation {
    SecurityAssociation::new(SPI, Algorithm::HmacSha1, KEY, ReplayProtection::SequenceNumbers).unwrap()
}

/// A Binding Update.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) sequence: u16,
    pub(crate) units: u16,
    pub(crate) care_of: Ipv6Addr,
    /// The source of the packet; the home address makes one without a Home Address option.
    pub(crate) source: Ipv6Addr,
    /// Whom it is sent to.
    pub(crate) to: Ipv6Addr,
    /// The source of the header of IPv4 around it, and the port of the UDP header between, if there is one.
    pub(crate) outer: Option<(Ipv4Addr, Option<u16>)>,
    pub(crate) home_address: Ipv6Addr,
    pub(crate) flags: UpdateFlags,
    pub(crate) stamp: Option<NtpTime>,
    pub(crate) options: Vec<MobilityOption>,
    pub(crate) spi: Spi,
    pub(crate) key: &'static [u8],
}

impl Update {
    /// A registration of `care_of`, as a mobile node under `SequenceNumbers` sends it.
    pub(crate) fn new(sequence: u16, care_of: Ipv6Addr) -> Self {
        Self {
            sequence,
            units: 75,
            care_of,
            source: care_of,
            to: HA,
            outer: None,
            home_address: HOME,
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            stamp: None,
            options: vec![MobilityOption::AlternateCareOfAddress(care_of)],
            spi: SPI,
            key: KEY,
        }
    }

    /// A registration of an IPv4 care-of address, as a mobile node sends it from there.
    pub(crate) fn through_ipv4(sequence: u16, care_of: Ipv4Addr) -> Self {
        Self {
            source: HOME,
            outer: Some((care_of, Some(40_000))),
            options: vec![MobilityOption::Ipv4CareOfAddress(care_of)],
            ..Self::new(sequence, care_of.to_ipv6_mapped())
        }
    }

    /// The deregistration of all bindings by a mobile node at home.
    pub(crate) fn at_home(sequence: u16) -> Self {
        Self { units: 0, ..Self::new(sequence, HOME) }
    }

    pub(crate) fn with(mut self, option: MobilityOption) -> Self {
        self.options.push(option);
        self
    }

    pub(crate) fn stamped(self, stamp: NtpTime) -> Self {
        Self { stamp: Some(stamp), ..self }
    }

    pub(crate) fn packet(&self) -> (Addresses, Vec<u8>) {
        let addresses = Addresses::new(self.source, self.to);
        let addresses = if self.source == self.home_address {
            addresses
        } else {
            addresses.with_home_address(self.home_address)
        };
        let addresses = match self.outer {
            Some((outer, udp_port)) => {
                Addresses { udp_port, ..addresses.through(Tunnel::through_ipv4(outer, HA_IPV4)) }
            }
            None => addresses,
        };
        let mut options: MobilityOptions = self.options.iter().cloned().collect();
        if let Some(stamp) = self.stamp {
            options.push(MobilityOption::ReplayProtection(NtpTimestamp(stamp.to_bits())));
        }
        let message = Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(self.sequence),
            flags: self.flags,
            lifetime: Lifetime::from_units(self.units),
            options,
        });
        let authentication = MobileHomeAuthentication {
            spi: self.spi,
            algorithm: Algorithm::HmacSha1,
            key: self.key,
            care_of_address: authenticated(self.care_of, self.home_address),
            home_address: self.home_address,
        };
        let (from, to) = (addresses.real_source(), addresses.real_destination());
        (addresses, message.emit_authenticated(from, to, &authentication).unwrap())
    }
}

/// The care-of address that the authenticator covers beside the message: in place of one of IPv4 the home address.
fn authenticated(care_of: Ipv6Addr, home_address: Ipv6Addr) -> Ipv6Addr {
    if care_of.to_ipv4_mapped().is_some() { home_address } else { care_of }
}

/// Makes the checksum of a changed message right, so that it is not what stops it.
pub(crate) fn make_checksum_right(addresses: Addresses, bytes: &mut [u8]) {
    if bytes.len() < 8 {
        return;
    }
    bytes[4..6].fill(0);
    let (from, to) = (addresses.real_source(), addresses.real_destination());
    let sum = careof_wire::ipv6::upper_layer_checksum(from, to, careof_wire::mip6::PROTOCOL, bytes);
    bytes[4..6].copy_from_slice(&sum.to_be_bytes());
}

/// A home agent and its owner.
pub(crate) struct Agent {
    pub(crate) node: HomeAgent,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
}

impl Agent {
    pub(crate) fn new(config: HomeAgentConfig) -> Self {
        let random = RandomStream::new(1, 0, "home agent");
        let node = HomeAgent::new(Instant::ZERO, config, random).unwrap();
        Self { node, now: Instant::ZERO, events: Vec::new() }
    }

    /// One that serves a mobile node, without duplicate address detection.
    pub(crate) fn serving(security: SecurityAssociation) -> Self {
        Self::new(HomeAgentConfig { duplicate_address_detection: None, ..config(security) })
    }

    pub(crate) fn drain(&mut self) -> Vec<Transmit> {
        self.events.extend(std::iter::from_fn(|| self.node.poll_event()));
        std::iter::from_fn(|| self.node.poll_transmit(self.now)).collect()
    }

    pub(crate) fn hand_in(&mut self, (addresses, bytes): &(Addresses, Vec<u8>)) -> Vec<Transmit> {
        let input = Input::Mobility { interface: HOME_IF, addresses: *addresses, message: bytes };
        self.node.handle_input(self.now, input);
        self.drain()
    }

    /// The acknowledgement of `update`, with its addresses.
    pub(crate) fn ask(&mut self, update: &Update) -> Option<(Addresses, BindingAcknowledgement)> {
        let sent = self.hand_in(&update.packet());
        sent.iter().find_map(|transmit| acknowledgement(transmit, update.care_of))
    }

    pub(crate) fn status(&mut self, update: &Update) -> Option<u8> {
        self.ask(update).map(|(_, acknowledgement)| acknowledgement.status.number())
    }

    /// Goes on to `now`, doing what is due.
    pub(crate) fn until(&mut self, now: Instant) -> Vec<Transmit> {
        let mut sent = Vec::new();
        let mut rounds = 0;
        while let Some((at, _)) = self.node.next_timeout().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            self.node.handle_timeout(self.now);
            sent.extend(self.drain());
            rounds += 1;
            assert!(rounds < 10_000, "it is woken in vain: {:?}", self.node.next_timeout());
        }
        self.now = now;
        sent
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.node.counters().dropped(reason)
    }

    pub(crate) fn care_ofs(&self) -> Vec<Ipv6Addr> {
        self.node.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect()
    }

    pub(crate) fn neighbor_events(&mut self) -> Vec<NeighborEvent> {
        let events = std::mem::take(&mut self.events);
        let neighbor = |event| if let Event::Neighbor(event) = event { Some(event) } else { None };
        events.into_iter().filter_map(neighbor).collect()
    }
}

/// The acknowledgement in a packet, whose authenticator is checked for the update's care-of address.
pub(crate) fn acknowledgement(
    transmit: &Transmit,
    care_of_address: Ipv6Addr,
) -> Option<(Addresses, BindingAcknowledgement)> {
    let TransmitPayload::Mobility(bytes) = &transmit.payload else { return None };
    let addresses = transmit.addresses;
    match Message::parse(addresses.real_source(), addresses.real_destination(), bytes).unwrap() {
        Message::BindingAcknowledgement(acknowledgement) => {
            let authentication = MobileHomeAuthentication {
                spi: SPI,
                algorithm: Algorithm::HmacSha1,
                key: KEY,
                care_of_address: authenticated(care_of_address, addresses.real_destination()),
                home_address: addresses.real_destination(),
            };
            assert!(authentication.verify(bytes), "an acknowledgement without its authenticator");
            Some((addresses, acknowledgement))
        }
        _ => None,
    }
}

pub(crate) fn config(security: SecurityAssociation) -> HomeAgentConfig {
    HomeAgentConfig {
        mobile_nodes: vec![ServedMobileNode::new(HOME, security)],
        clock: clock(),
        ..HomeAgentConfig::new(HA, HOME_PREFIX, HOME_IF)
    }
}
