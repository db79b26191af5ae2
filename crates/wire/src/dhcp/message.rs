//! The message.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use super::options::{self, Options};
use super::{HardwareAddress, LeaseTime, UnknownOption, code};
use crate::Error;
use crate::fixed::Fixed;

/// Offsets in the fixed part of a message (RFC 2131 section 2).
mod at {
    pub(super) const OP: usize = 0;
    pub(super) const HTYPE: usize = 1;
    pub(super) const HLEN: usize = 2;
    pub(super) const HOPS: usize = 3;
    pub(super) const XID: usize = 4;
    pub(super) const SECS: usize = 8;
    pub(super) const FLAGS: usize = 10;
    pub(super) const CIADDR: usize = 12;
    pub(super) const YIADDR: usize = 16;
    pub(super) const SIADDR: usize = 20;
    pub(super) const GIADDR: usize = 24;
    pub(super) const CHADDR: usize = 28;
    pub(super) const SNAME: usize = 44;
    pub(super) const FILE: usize = 108;
    pub(super) const COOKIE: usize = 236;
    pub(super) const LEN: usize = 240;
}

const SNAME_LEN: usize = at::FILE - at::SNAME;
const FILE_LEN: usize = at::COOKIE - at::FILE;

/// 99, 130, 83, 99 (RFC 2131 section 3).
const MAGIC_COOKIE: u32 = 0x6382_5363;
const BOOTREQUEST: u8 = 1;
const BOOTREPLY: u8 = 2;
/// The leftmost bit of the flags; the others must be zero, and are ignored.
const BROADCAST: u16 = 0x8000;
/// A BOOTP message has 300 bytes at least (RFC 1542 section 2.1), and some relays drop shorter ones.
const LEAST_LEN: usize = 300;

/// What a message is: the value of option 53 (RFC 2132 section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageType {
    /// A client looks for servers.
    Discover = 1,
    /// A server offers an address.
    Offer = 2,
    /// A client asks for an address, or to keep it.
    Request = 3,
    /// A client has found the address in use.
    Decline = 4,
    /// A server grants an address.
    Ack = 5,
    /// A server says that an address is not the client's.
    Nak = 6,
    /// A client gives its address back.
    Release = 7,
    /// A client that has an address asks for parameters.
    Inform = 8,
}

impl MessageType {
    /// All types in the order of their numbers, from 1.
    pub const ALL: [Self; 8] = [
        Self::Discover,
        Self::Offer,
        Self::Request,
        Self::Decline,
        Self::Ack,
        Self::Nak,
        Self::Release,
        Self::Inform,
    ];

    /// The name in RFC 2131.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discover => "DHCPDISCOVER",
            Self::Offer => "DHCPOFFER",
            Self::Request => "DHCPREQUEST",
            Self::Decline => "DHCPDECLINE",
            Self::Ack => "DHCPACK",
            Self::Nak => "DHCPNAK",
            Self::Release => "DHCPRELEASE",
            Self::Inform => "DHCPINFORM",
        }
    }

    /// Whether servers send it: `op` is then BOOTREPLY.
    #[must_use]
    pub const fn is_reply(self) -> bool {
        matches!(self, Self::Offer | Self::Ack | Self::Nak)
    }

    const fn op(self) -> u8 {
        if self.is_reply() { BOOTREPLY } else { BOOTREQUEST }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A DHCP message (RFC 2131 section 2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DhcpMessage {
    /// What it is; `op` follows from it.
    pub kind: MessageType,
    /// Relays it has passed.
    pub hops: u8,
    /// Transaction ID, chosen by the client.
    pub xid: u32,
    /// Since the client began, s.
    pub secs: u16,
    /// Whether the client cannot receive unicast datagrams yet.
    pub broadcast: bool,
    /// The client's address, if it answers for it already.
    pub ciaddr: Ipv4Addr,
    /// The address for the client.
    pub yiaddr: Ipv4Addr,
    /// The next server to use.
    pub siaddr: Ipv4Addr,
    /// The relay.
    pub giaddr: Ipv4Addr,
    /// The client's link-layer address.
    pub chaddr: HardwareAddress,
    /// Option 1, as the length of the prefix.
    pub prefix_length: Option<u8>,
    /// Option 3, the best one first; absent when empty.
    pub routers: Vec<Ipv4Addr>,
    /// Option 50.
    pub requested_address: Option<Ipv4Addr>,
    /// Option 51: asked for, or granted.
    pub lease_time: Option<LeaseTime>,
    /// Option 54.
    pub server_identifier: Option<Ipv4Addr>,
    /// Option 55: codes of options; absent when empty.
    pub parameter_requests: Vec<u8>,
    /// Option 57: the longest message its sender takes, headers included, 576 bytes or more.
    pub max_message_size: Option<u16>,
    /// Option 58: T1.
    pub renewal_time: Option<LeaseTime>,
    /// Option 59: T2.
    pub rebinding_time: Option<LeaseTime>,
    /// Option 61, at least 2 bytes.
    pub client_identifier: Option<Vec<u8>>,
    /// All other options, each code once.
    pub others: Vec<UnknownOption>,
}

impl DhcpMessage {
    /// A message of `kind` about the client `chaddr`, with nothing else in it.
    #[must_use]
    pub const fn new(kind: MessageType, xid: u32, chaddr: HardwareAddress) -> Self {
        Self {
            kind,
            hops: 0,
            xid,
            secs: 0,
            broadcast: false,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr,
            prefix_length: None,
            routers: Vec::new(),
            requested_address: None,
            lease_time: None,
            server_identifier: None,
            parameter_requests: Vec::new(),
            max_message_size: None,
            renewal_time: None,
            rebinding_time: None,
            client_identifier: None,
            others: Vec::new(),
        }
    }

    /// Reads the payload of a UDP datagram to [`SERVER_PORT`](super::SERVER_PORT) or [`CLIENT_PORT`](super::CLIENT_PORT).
    ///
    /// # Errors
    /// A message cut short, a wrong cookie (BOOTP without DHCP), a message type that is missing, unknown or not what `op`
    /// says, an option whose length or value cannot be, options that do not end, an option overload outside of the options
    /// field.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ at::LEN }>::split(bytes, "DHCP message")?;
        let cookie = fixed.u32::<{ at::COOKIE }>();
        if cookie != MAGIC_COOKIE {
            let (field, expected) = ("DHCP magic cookie", "99.130.83.99");
            return Err(Error::Invalid { field, offset: at::COOKIE, found: cookie, expected });
        }
        let hlen = usize::from(fixed.u8::<{ at::HLEN }>());
        let chaddr = fixed.array::<{ at::CHADDR }, { HardwareAddress::MAX_LEN }>();
        let chaddr =
            chaddr.get(..hlen).and_then(|bytes| HardwareAddress::new(fixed.u8::<{ at::HTYPE }>(), bytes));
        let Some(chaddr) = chaddr else {
            let (field, expected) = ("DHCP hlen", "16 or less");
            return Err(Error::Invalid { field, offset: at::HLEN, found: hlen as u32, expected });
        };
        let mut options = gather(&fixed, rest)?;
        let kind = kind(&mut options, fixed.u8::<{ at::OP }>())?;
        Ok(Self {
            kind,
            hops: fixed.u8::<{ at::HOPS }>(),
            xid: fixed.u32::<{ at::XID }>(),
            secs: fixed.u16::<{ at::SECS }>(),
            broadcast: fixed.u16::<{ at::FLAGS }>() & BROADCAST != 0,
            ciaddr: fixed.address::<{ at::CIADDR }>(),
            yiaddr: fixed.address::<{ at::YIADDR }>(),
            siaddr: fixed.address::<{ at::SIADDR }>(),
            giaddr: fixed.address::<{ at::GIADDR }>(),
            chaddr,
            prefix_length: options.prefix_length()?,
            routers: options.routers()?,
            requested_address: options.address(code::REQUESTED_ADDRESS, "Requested IP Address length")?,
            lease_time: options.time(code::LEASE_TIME, "IP Address Lease Time length")?,
            server_identifier: options.address(code::SERVER_IDENTIFIER, "Server Identifier length")?,
            parameter_requests: options
                .bytes(code::PARAMETER_REQUEST_LIST, 1, "Parameter Request List length", "1 or more")?
                .unwrap_or_default(),
            max_message_size: options.max_message_size()?,
            renewal_time: options.time(code::RENEWAL_TIME, "Renewal Time Value length")?,
            rebinding_time: options.time(code::REBINDING_TIME, "Rebinding Time Value length")?,
            client_identifier: options.bytes(
                code::CLIENT_IDENTIFIER,
                2,
                "Client-identifier length",
                "2 or more",
            )?,
            others: options.others(),
        })
    }

    /// The message as the payload of a UDP datagram.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::OP }, 1>([self.kind.op()]);
        fixed.put::<{ at::HTYPE }, 1>([self.chaddr.kind()]);
        fixed.put::<{ at::HLEN }, 1>([self.chaddr.bytes().len() as u8]);
        fixed.put::<{ at::HOPS }, 1>([self.hops]);
        fixed.put::<{ at::XID }, 4>(self.xid.to_be_bytes());
        fixed.put::<{ at::SECS }, 2>(self.secs.to_be_bytes());
        let flags = if self.broadcast { BROADCAST } else { 0 };
        fixed.put::<{ at::FLAGS }, 2>(flags.to_be_bytes());
        fixed.put::<{ at::CIADDR }, 4>(self.ciaddr.octets());
        fixed.put::<{ at::YIADDR }, 4>(self.yiaddr.octets());
        fixed.put::<{ at::SIADDR }, 4>(self.siaddr.octets());
        fixed.put::<{ at::GIADDR }, 4>(self.giaddr.octets());
        fixed.put::<{ at::CHADDR }, { HardwareAddress::MAX_LEN }>(self.chaddr.padded());
        fixed.put::<{ at::COOKIE }, 4>(MAGIC_COOKIE.to_be_bytes());
        let mut bytes = fixed.bytes().to_vec();
        self.emit_options(&mut bytes);
        bytes.push(code::END);
        if bytes.len() < LEAST_LEN {
            bytes.resize(LEAST_LEN, code::PAD);
        }
        bytes
    }

    fn emit_options(&self, bytes: &mut Vec<u8>) {
        let mut emit = |code, data: &[u8]| options::emit(code, data, bytes);
        emit(code::MESSAGE_TYPE, &[self.kind as u8]);
        if let Some(identifier) = &self.client_identifier {
            emit(code::CLIENT_IDENTIFIER, identifier);
        }
        for (code, address) in [
            (code::SERVER_IDENTIFIER, self.server_identifier),
            (code::REQUESTED_ADDRESS, self.requested_address),
        ] {
            if let Some(address) = address {
                emit(code, &address.octets());
            }
        }
        for (code, time) in [
            (code::LEASE_TIME, self.lease_time),
            (code::RENEWAL_TIME, self.renewal_time),
            (code::REBINDING_TIME, self.rebinding_time),
        ] {
            if let Some(time) = time {
                emit(code, &time.as_secs().to_be_bytes());
            }
        }
        if let Some(length) = self.prefix_length {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            emit(code::SUBNET_MASK, &mask.to_be_bytes());
        }
        if !self.routers.is_empty() {
            let addresses: Vec<u8> = self.routers.iter().flat_map(Ipv4Addr::octets).collect();
            emit(code::ROUTER, &addresses);
        }
        if let Some(size) = self.max_message_size {
            emit(code::MAX_MESSAGE_SIZE, &size.to_be_bytes());
        }
        if !self.parameter_requests.is_empty() {
            emit(code::PARAMETER_REQUEST_LIST, &self.parameter_requests);
        }
        for option in &self.others {
            emit(option.code(), option.data());
        }
    }
}

/// The options in the order in which their pieces belong together: the options field, `file`, `sname` (RFC 3396 section 5).
fn gather(fixed: &Fixed<{ at::LEN }>, rest: &[u8]) -> Result<Options, Error> {
    let mut options = Options::default();
    options.gather(rest, at::LEN)?;
    let Some((overload, offset)) = options.byte(code::OVERLOAD, "Option Overload length")? else {
        return Ok(options);
    };
    let invalid = |offset, expected| Error::Invalid {
        field: "Option Overload",
        offset,
        found: overload.into(),
        expected,
    };
    if !(1..=3).contains(&overload) {
        return Err(invalid(offset, "1, 2 or 3"));
    }
    if overload & 1 != 0 {
        options.gather(&fixed.array::<{ at::FILE }, FILE_LEN>(), at::FILE)?;
    }
    if overload & 2 != 0 {
        options.gather(&fixed.array::<{ at::SNAME }, SNAME_LEN>(), at::SNAME)?;
    }
    match options.byte(code::OVERLOAD, "Option Overload length")? {
        Some((_, offset)) => Err(invalid(offset, "in the options field alone")),
        None => Ok(options),
    }
}

fn kind(options: &mut Options, op: u8) -> Result<MessageType, Error> {
    let Some((number, offset)) = options.byte(code::MESSAGE_TYPE, "DHCP Message Type length")? else {
        return Err(Error::Truncated {
            what: "DHCP message without its message type",
            offset: at::LEN,
            needed: 3,
            found: 0,
        });
    };
    let kind = usize::from(number).checked_sub(1).and_then(|index| MessageType::ALL.get(index)).copied();
    let Some(kind) = kind else {
        let (field, expected) = ("DHCP Message Type", "1 to 8");
        return Err(Error::Invalid { field, offset, found: number.into(), expected });
    };
    if op != kind.op() {
        let expected =
            if kind.is_reply() { "2, as the message type says" } else { "1, as the message type says" };
        return Err(Error::Invalid { field: "DHCP op", offset: at::OP, found: op.into(), expected });
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    const CLIENT: [u8; 6] = [0x02, 0, 0, 0, 0, 0x2a];
    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const OFFERED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);

    fn offer() -> DhcpMessage {
        DhcpMessage {
            secs: 2,
            broadcast: true,
            yiaddr: OFFERED,
            prefix_length: Some(24),
            routers: vec![SERVER],
            lease_time: Some(LeaseTime::from_secs(600)),
            server_identifier: Some(SERVER),
            renewal_time: Some(LeaseTime::from_secs(300)),
            rebinding_time: Some(LeaseTime::from_secs(525)),
            ..DhcpMessage::new(MessageType::Offer, 0xa1a2_a3a4, HardwareAddress::ethernet(CLIENT))
        }
    }

    /// The fixed part of a message of type 1, and these options.
    fn discover(options: &[u8]) -> Vec<u8> {
        let message = DhcpMessage::new(MessageType::Discover, 7, HardwareAddress::ethernet(CLIENT));
        let mut bytes = message.emit();
        bytes.truncate(at::LEN);
        bytes.extend(options);
        bytes
    }

    fn error_of(options: &[u8]) -> alloc::string::String {
        DhcpMessage::parse(&discover(options)).unwrap_err().to_string()
    }

    #[test]
    fn an_offer_has_the_layout_of_the_rfc() {
        let bytes = offer().emit();
        assert_eq!(bytes.len(), 300);
        assert_eq!(bytes[..12], [2, 1, 6, 0, 0xa1, 0xa2, 0xa3, 0xa4, 0, 2, 0x80, 0]);
        assert_eq!(bytes[12..28], [0, 0, 0, 0, 192, 0, 2, 77, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[28..34], CLIENT);
        assert!(bytes[34..236].iter().all(|&byte| byte == 0));
        assert_eq!(
            bytes[236..],
            [
                &[99, 130, 83, 99, 53, 1, 2, 54, 4, 192, 0, 2, 1, 51, 4, 0, 0, 2, 88][..],
                &[58, 4, 0, 0, 1, 44, 59, 4, 0, 0, 2, 13, 1, 4, 255, 255, 255, 0, 3, 4, 192, 0, 2, 1, 255],
                &[0; 20],
            ]
            .concat()
        );
        assert_eq!(DhcpMessage::parse(&bytes), Ok(offer()));
    }

    #[test]
    fn instances_of_an_option_are_put_together_and_not_one_of_them_taken() {
        let halves = [53, 1, 1, 61, 2, 1, 2, 0, 61, 1, 3, 50, 2, 192, 0, 50, 2, 2, 9, 255];
        let message = DhcpMessage::parse(&discover(&halves)).unwrap();
        assert_eq!(message.client_identifier, Some(vec![1, 2, 3]));
        assert_eq!(message.requested_address, Some(Ipv4Addr::new(192, 0, 2, 9)));
        let twice = [53, 1, 1, 54, 4, 1, 2, 3, 4, 54, 4, 1, 2, 3, 4, 255];
        assert_eq!(error_of(&twice), "Server Identifier length at offset 244 is 8, not 4 bytes long");
    }

    #[test]
    fn an_option_longer_than_255_bytes_travels_in_pieces() {
        let long: Vec<u8> = (0..600_u16).map(|n| n as u8).collect();
        let mut message = offer();
        message.others = vec![UnknownOption::new(43, &long).unwrap(), UnknownOption::new(80, &[]).unwrap()];
        let bytes = message.emit();
        assert_eq!(DhcpMessage::parse(&bytes), Ok(message));
        assert_eq!(
            bytes.iter().filter(|&&byte| byte == 255).count(),
            3 + 2 + 2 + 1,
            "mask, lengths, data, end"
        );
    }

    #[test]
    fn overloaded_fields_are_read_file_first() {
        let mut bytes = discover(&[53, 1, 1, 52, 1, 3, 61, 1, 1, 255]);
        bytes[at::FILE..at::FILE + 4].copy_from_slice(&[61, 1, 2, 255]);
        bytes[at::SNAME..at::SNAME + 10].copy_from_slice(&[61, 1, 3, 50, 4, 10, 0, 0, 9, 255]);
        let message = DhcpMessage::parse(&bytes).unwrap();
        assert_eq!(message.client_identifier, Some(vec![1, 2, 3]));
        assert_eq!(message.requested_address, Some(Ipv4Addr::new(10, 0, 0, 9)));
        // What stands there counts only where the overload says so.
        bytes[at::LEN + 5] = 1;
        assert_eq!(DhcpMessage::parse(&bytes).unwrap().client_identifier, Some(vec![1, 2]));
        bytes[at::FILE..at::FILE + 4].copy_from_slice(&[52, 1, 2, 255]);
        let said = DhcpMessage::parse(&bytes).unwrap_err().to_string();
        assert_eq!(said, "Option Overload at offset 110 is 1, not in the options field alone");
        bytes[at::LEN + 5] = 4;
        let said = DhcpMessage::parse(&bytes).unwrap_err().to_string();
        assert_eq!(said, "Option Overload at offset 245 is 4, not 1, 2 or 3");
    }

    #[test]
    fn overloaded_fields_must_end_too() {
        let mut bytes = discover(&[53, 1, 1, 52, 1, 1, 255]);
        let said = DhcpMessage::parse(&bytes).unwrap_err().to_string();
        assert_eq!(said, "DHCP options without their end option at offset 236 takes 1 bytes, 0 are left");
        bytes[at::FILE + 126] = 61;
        bytes[at::FILE + 127] = 1;
        assert!(matches!(
            DhcpMessage::parse(&bytes),
            Err(Error::Truncated { offset: 234, needed: 3, found: 2, .. })
        ));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        assert!(error_of(&[255]).starts_with("DHCP message without its message type"));
        assert_eq!(error_of(&[53, 1, 9, 255]), "DHCP Message Type at offset 242 is 9, not 1 to 8");
        assert_eq!(error_of(&[53, 1, 2, 255]), "DHCP op at offset 0 is 1, not 2, as the message type says");
        assert_eq!(error_of(&[53, 1]), "DHCP option at offset 240 takes 3 bytes, 2 are left");
        assert_eq!(error_of(&[53, 1, 1, 12]), "DHCP option at offset 243 takes 2 bytes, 1 are left");
        assert!(error_of(&[53, 1, 1]).starts_with("DHCP options without their end option at offset 243"));
        let mask = [53, 1, 1, 1, 4, 255, 0, 255, 0, 255];
        assert_eq!(error_of(&mask), "Subnet Mask at offset 245 is 4278255360, not ones and then zeros");
        assert_eq!(
            error_of(&[53, 1, 1, 3, 0, 255]),
            "Router length at offset 244 is 0, not a multiple of 4, and not 0"
        );
        let size = [53, 1, 1, 57, 2, 2, 63, 255];
        assert_eq!(error_of(&size), "Maximum DHCP Message Size at offset 245 is 575, not 576 or more");
        assert_eq!(
            error_of(&[53, 1, 1, 61, 1, 0, 255]),
            "Client-identifier length at offset 244 is 1, not 2 or more"
        );
        let mut bytes = discover(&[53, 1, 1, 255]);
        bytes[at::HLEN] = 17;
        assert_eq!(
            DhcpMessage::parse(&bytes).unwrap_err().to_string(),
            "DHCP hlen at offset 2 is 17, not 16 or less"
        );
        bytes[at::COOKIE] = 98;
        assert!(
            DhcpMessage::parse(&bytes)
                .unwrap_err()
                .to_string()
                .starts_with("DHCP magic cookie at offset 236")
        );
    }

    #[test]
    fn a_lease_of_all_ones_never_ends() {
        assert_eq!(LeaseTime::INFINITE.duration(), None);
        assert_eq!(LeaseTime::INFINITE.eighths(4), LeaseTime::INFINITE);
        assert_eq!(LeaseTime::from_secs(600).eighths(7), LeaseTime::from_secs(525));
        assert_eq!(LeaseTime::from_secs(u32::MAX - 1).eighths(8), LeaseTime::from_secs(u32::MAX - 1));
        assert_eq!(LeaseTime::INFINITE.to_string(), "infinite");
    }
}
