//! Mobility Headers that others have put on the wire, held against what tshark reads there.

use std::net::Ipv6Addr;
use std::path::Path;

use careof_wire::Error;
use careof_wire::mip6::{
    self, AcknowledgementFlags, BindingAcknowledgement, BindingError, BindingErrorStatus,
    BindingRefreshRequest, BindingStatus, BindingUpdate, CareOfTest, CareOfTestInit, HomeTest, HomeTestInit,
    InitCookie, KeygenToken, Lifetime, Message, MobilityOption, MobilityOptions, NonceIndex, NonceIndices,
    SequenceNumber, UpdateFlags,
};

use crate::captures::{captures, frames};

/// DLT_EN10MB; the other captures have no link header.
const ETHERNET: u32 = 1;
/// A Next Header value from before RFC 3775, which the malformed captures have.
const OLD_PROTOCOL: u8 = 62;

/// A Mobility Header and the addresses around it.
struct Captured {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    header: Vec<u8>,
}

impl Captured {
    fn parse(&self) -> Result<Message, Error> {
        Message::parse(self.source, self.destination, &self.header)
    }

    /// The header with its checksum made right.
    fn repaired(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        header[4..6].fill(0);
        let (source, destination) = (self.source.octets(), self.destination.octets());
        let pseudo = [0, 0, 0, header.len() as u8, 0, 0, 0, mip6::PROTOCOL];
        let all = [&source[..], &destination, &pseudo, &header].concat();
        let sum: u32 = all.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        header[4..6].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        header
    }
}

/// The Mobility Headers of a capture, or `None` where there are no captures.
fn mobility_headers(name: &str) -> Option<Vec<Captured>> {
    let paths = captures("mip6")?;
    let path = paths.iter().find(|path| path.file_stem() == Path::new(name).file_name()).expect(name);
    let (link, frames) = frames(path);
    let packets = frames.iter().filter_map(|frame| frame.get(if link == ETHERNET { 14 } else { 0 }..));
    Some(packets.filter_map(captured).collect())
}

fn captured(packet: &[u8]) -> Option<Captured> {
    let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
    let is_mobility = [mip6::PROTOCOL, OLD_PROTOCOL].contains(packet.get(6)?);
    let header = packet.get(40..).filter(|_| is_mobility)?.to_vec();
    Some(Captured { source: address(8)?, destination: address(24)?, header })
}

#[test]
fn messages_with_right_checksums_are_what_tshark_reads() {
    let none = MobilityOptions::new;
    let cookie = InitCookie([0, 0, 0, 0, 0, 0, 0, 1]);
    for (name, expected) in [
        ("zeek-mip6_brr", Message::BindingRefreshRequest(BindingRefreshRequest::default())),
        ("zeek-mip6_hoti", Message::HomeTestInit(HomeTestInit { cookie, options: none() })),
        ("zeek-mip6_coti", Message::CareOfTestInit(CareOfTestInit { cookie, options: none() })),
        (
            "zeek-mip6_cot",
            Message::CareOfTest(CareOfTest {
                nonce_index: NonceIndex(13),
                cookie: InitCookie([0, 0, 0, 0, 0, 0, 0, 15]),
                token: KeygenToken([0, 0, 0, 0, 0, 0, 0, 255]),
                options: none(),
            }),
        ),
        (
            "zeek-mip6_back",
            Message::BindingAcknowledgement(BindingAcknowledgement {
                status: BindingStatus::Accepted,
                flags: AcknowledgementFlags::KEY_MANAGEMENT_MOBILITY_CAPABILITY,
                sequence: SequenceNumber(42),
                lifetime: Lifetime::from_units(8),
                options: none(),
            }),
        ),
        ("zeek-mip6_be", binding_error("2001:78:1:32::1")),
        ("zeek-mip6-good-mh-chksum", binding_error("2001:78:1:32::1")),
    ] {
        let Some(headers) = mobility_headers(name) else { return };
        let [captured] = &headers[..] else { panic!("{name} has one message") };
        assert_eq!(captured.parse(), Ok(expected.clone()), "{name}");
        let emitted = expected.emit(captured.source, captured.destination).unwrap();
        assert_eq!(emitted, captured.header, "{name}");
    }
}

fn binding_error(home_address: &str) -> Message {
    Message::BindingError(BindingError {
        status: BindingErrorStatus::UnknownBinding,
        home_address: home_address.parse().unwrap(),
        options: MobilityOptions::new(),
    })
}

#[test]
fn a_wrong_checksum_is_refused() {
    let Some(headers) = mobility_headers("zeek-mip6-bad-mh-chksum") else { return };
    let error = Error::Checksum { what: "Mobility Header", offset: 4, found: 1, expected: 0xb0d8 };
    assert_eq!(headers[0].parse(), Err(error));
}

/// The options of tcpdump's capture, by their bytes.
fn option(first: u8) -> MobilityOption {
    let authenticator = [0x81, 0x01, 0x73, 0x8d, 0x51, 0x7d, 0x51, 0x69, 0x40, 0xec, 0x06, 0x11];
    match first {
        2 => MobilityOption::BindingRefreshAdvice(Lifetime::from_units(0x0708)),
        3 => MobilityOption::AlternateCareOfAddress("2001:660:4701:f004:20d:54ff:fe98:bc93".parse().unwrap()),
        4 => {
            let indices = NonceIndices { home: NonceIndex(1234), care_of: NonceIndex(5678) };
            MobilityOption::NonceIndices(indices)
        }
        _ => MobilityOption::BindingAuthorizationData(mip6::Authenticator::new(&authenticator).unwrap()),
    }
}

#[test]
fn messages_with_options_are_what_tshark_reads() {
    let Some(headers) = mobility_headers("tcpdump-ipv6_mobility_1") else { return };
    let options = |kinds: &[u8]| kinds.iter().map(|kind| option(*kind)).collect::<MobilityOptions>();
    let (first, second) = (InitCookie([1, 2, 3, 4, 5, 6, 7, 8]), InitCookie([9, 10, 11, 12, 13, 14, 15, 16]));
    let update = |kinds: &[u8]| {
        Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(1000),
            flags: UpdateFlags::ACKNOWLEDGE,
            lifetime: Lifetime::from_units(3600),
            options: options(kinds),
        })
    };
    let acknowledgement = |kinds: &[u8]| {
        Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::Accepted,
            flags: AcknowledgementFlags::default(),
            sequence: SequenceNumber(1000),
            lifetime: Lifetime::from_units(3600),
            options: options(kinds),
        })
    };
    let expected = [
        Message::BindingRefreshRequest(BindingRefreshRequest::default()),
        Message::HomeTestInit(HomeTestInit { cookie: first, options: options(&[]) }),
        Message::CareOfTestInit(CareOfTestInit { cookie: second, options: options(&[]) }),
        Message::HomeTest(HomeTest {
            nonce_index: NonceIndex(2314),
            cookie: InitCookie([0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x04, 0xd2]),
            token: KeygenToken([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]),
            options: options(&[]),
        }),
        Message::CareOfTest(CareOfTest {
            nonce_index: NonceIndex(2314),
            cookie: InitCookie([0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x16, 0x2e]),
            token: KeygenToken([0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20]),
            options: options(&[]),
        }),
        update(&[]),
        update(&[3]),
        update(&[4]),
        update(&[5]),
        update(&[3, 4, 5]),
        acknowledgement(&[]),
        acknowledgement(&[2]),
        acknowledgement(&[5]),
        acknowledgement(&[2, 5]),
        binding_error("2001:db8::1"),
        update(&[]),
    ];
    assert_eq!(headers.len(), expected.len());
    for (number, (captured, expected)) in (1..).zip(headers.iter().zip(expected)) {
        let is_checksum = |error| matches!(error, Error::Checksum { found: 0, .. });
        assert!(captured.parse().is_err_and(is_checksum), "frame {number} has no checksum");
        let repaired = captured.repaired();
        let parsed = Message::parse(captured.source, captured.destination, &repaired);
        assert_eq!(parsed, Ok(expected), "frame {number}");
    }
}

#[test]
fn malformed_messages_are_refused() {
    for (name, count) in [
        ("tcpdump-ipv6-mobility-header-oobr", 1),
        ("tcpdump-mobility_opt_asan", 2),
        ("tcpdump-mobility_opt_asan_2", 1),
        ("tcpdump-mobility_opt_asan_3", 2),
        ("tcpdump-mobility_opt_asan_4", 1),
    ] {
        let Some(headers) = mobility_headers(name) else { return };
        assert_eq!(headers.len(), count, "{name}");
        for mut captured in headers {
            let truncated = |error| matches!(error, Error::Truncated { what: "Mobility Header", .. });
            assert!(captured.parse().is_err_and(truncated), "{name}");
            // What they would do to a parser of options, if everything before these were right.
            captured.header.truncate(captured.header.len() / 8 * 8);
            let Some(units) = (captured.header.len() / 8).checked_sub(1) else { continue };
            (captured.header[0], captured.header[1]) = (59, units as u8);
            let parsed = Message::parse(captured.source, captured.destination, &captured.repaired());
            assert!(parsed.is_err(), "{name} {parsed:?}");
        }
    }
}
