//! Formats of the messages of a cluster.

use core::net::Ipv4Addr;

use careof_base::DataRate;

use super::*;

const FEEDBACK_MESSAGE: PathFeedback = PathFeedback {
    path: 3,
    answer: true,
    sent_at: 0x0102_0304,
    sent_at_high: 0x0506,
    echo: Some(PathEcho { sent_at: 0x11, held: 0x12, transit: 0xffff_fff0, variation: 0x14 }),
    highest: Some(0x21),
    packets: 0x31,
    bytes: 0x41,
    late: 0x51,
    sender: 0x61,
    receiver: 0x71,
};

const KEY: ShakeKey<'_> = ShakeKey { spi: Spi(0x1000), key: b"sixteen bytes ok" };

#[test]
fn feedback_has_the_layout_told_above() {
    let bytes = ShakeMessage::Feedback(FEEDBACK_MESSAGE).emit(None);
    let expected = [
        1, 5, 0, 52, 0, 0, 0, 0, 3, 0xe0, 5, 6, 1, 2, 3, 4, 0, 0, 0, 0x11, 0, 0, 0, 0x12, 0xff, 0xff, 0xff,
        0xf0, 0, 0, 0, 0x14, 0, 0, 0, 0x21, 0, 0, 0, 0x31, 0, 0, 0, 0, 0, 0, 0, 0x41, 0, 0, 0, 0x51, 0, 0, 0,
        0x61, 0, 0, 0, 0x71,
    ];
    assert_eq!(bytes, expected);
    let read = ShakeMessage::parse(&bytes).unwrap();
    assert_eq!((read.message, read.spi), (ShakeMessage::Feedback(FEEDBACK_MESSAGE), None));
    assert!(!read.is_genuine(KEY.key), "nobody has signed it");
}

#[test]
fn an_advertisement_has_the_layout_told_above() {
    let advertisement = ClusterAdvertisement {
        sequence: 7,
        willing: true,
        cost: 2,
        downlink: Some(DataRate::from_kilobits_per_second(384)),
        uplink: None,
        outside: Ipv4Addr::new(192, 0, 2, 9),
        cluster: Ipv4Addr::new(10, 9, 0, 9),
        clients: 3,
        longest: 600,
        client_rate: Some(DataRate::from_kilobits_per_second(64)),
    };
    let bytes = ShakeMessage::Advertisement(advertisement).emit(None);
    let expected = [
        1, 1, 0, 32, 0, 0, 0, 0, 0x80, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0x0f, 0, 0, 0, 0, 0, 192, 0, 2, 9, 10, 9,
        0, 9, 0, 3, 2, 88, 0, 0, 2, 0x80,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(ShakeMessage::parse(&bytes).unwrap().message, ShakeMessage::Advertisement(advertisement));
}

#[test]
fn request_reply_and_withdrawal_share_a_format() {
    let alliance = Alliance {
        code: AllianceCode::Full,
        lifetime: 300,
        home_address: Ipv4Addr::new(10, 0, 0, 7),
        client: Ipv4Addr::new(10, 9, 0, 7),
        relay: Ipv4Addr::new(10, 9, 0, 9),
        outside: Ipv4Addr::new(192, 0, 2, 9),
        home_agent: Ipv4Addr::new(10, 0, 0, 1),
        rate: Some(DataRate::from_kilobits_per_second(64)),
        cost: 0x0304,
        challenge: 0x2122_2324_2526_2728,
        counter: 0x0102_0304_0506_0708,
        nonce: 0x1112_1314_1516_1718,
        key: Some(IntroducedKey([0xab; 32])),
    };
    let mut expected = alloc::vec![
        1, 2, 0, 88, 0, 0, 0, 0, 1, 0x80, 1, 44, 10, 0, 0, 7, 10, 9, 0, 7, 10, 9, 0, 9, 192, 0, 2, 9, 10, 0,
        0, 1, 0, 0, 2, 0x80, 3, 4, 0, 0, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 1, 2, 3, 4, 5, 6, 7,
        8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
    ];
    expected.extend([0xab; 32]);
    let kinds =
        [ShakeMessage::Request(alliance), ShakeMessage::Reply(alliance), ShakeMessage::Withdrawal(alliance)];
    for (message, kind) in kinds.into_iter().zip(2..) {
        expected[1] = kind;
        let bytes = message.emit(None);
        assert_eq!(bytes, expected);
        assert_eq!(ShakeMessage::parse(&bytes).unwrap().message, message);
    }
    let without = Alliance { key: None, code: AllianceCode::Unknown(77), ..alliance };
    let bytes = ShakeMessage::Reply(without).emit(Some(KEY));
    assert_eq!(ShakeMessage::parse(&bytes).unwrap().message, ShakeMessage::Reply(without));
    assert_eq!(alloc::format!("{:?}", alliance.key), "Some(IntroducedKey)", "no key is printed");
}

#[test]
fn an_authenticator_protects_every_bit() {
    let bytes = ShakeMessage::Feedback(FEEDBACK_MESSAGE).emit(Some(KEY));
    let read = ShakeMessage::parse(&bytes).unwrap();
    assert_eq!(read.spi, Some(KEY.spi));
    assert!(read.is_genuine(KEY.key) && !read.is_genuine(b"another key"));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let genuine = ShakeMessage::parse(&flipped).is_ok_and(|read| read.is_genuine(KEY.key));
        assert!(!genuine, "bit {bit}");
    }
}

#[test]
fn what_is_cut_or_too_long_is_refused() {
    for key in [None, Some(KEY)] {
        let mut bytes = ShakeMessage::Feedback(FEEDBACK_MESSAGE).emit(key);
        for len in 0..bytes.len() {
            assert!(ShakeMessage::parse(&bytes[..len]).is_err(), "{len}");
        }
        bytes.push(0);
        assert!(matches!(ShakeMessage::parse(&bytes), Err(Error::Invalid { .. })));
    }
    for (at, value) in [(0, 2), (1, 0), (1, 6)] {
        let mut bytes = ShakeMessage::Feedback(FEEDBACK_MESSAGE).emit(None);
        bytes[at] = value;
        assert!(matches!(ShakeMessage::parse(&bytes), Err(Error::Invalid { offset, .. }) if offset == at));
    }
}

#[test]
fn a_longer_body_is_read_as_far_as_it_is_known() {
    let mut bytes = ShakeMessage::Feedback(FEEDBACK_MESSAGE).emit(None);
    bytes[3] += 2;
    bytes.extend([7, 7]);
    assert_eq!(ShakeMessage::parse(&bytes).unwrap().message, ShakeMessage::Feedback(FEEDBACK_MESSAGE));
}
