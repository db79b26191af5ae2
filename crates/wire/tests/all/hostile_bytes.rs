//! Whatever bytes arrive, every parser gives a message or an error.
//!
//! The same functions that the fuzz targets run, on mutilated messages and on noise.

use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use careof_base::RandomStream;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::micro::{Body, MicroMessage, PathScheme};
use careof_wire::mip4::Spi;
use careof_wire::protocol;
use careof_wire::shake::{
    Alliance, AllianceCode, ClusterAdvertisement, PathEcho, PathFeedback, ShakeKey, ShakeMessage,
};
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

/// Every sample, whole and from each layer on.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (name, datagram) in crate::samples::samples() {
        // Replies differ in their code only.
        if name.starts_with("reply_") && name != "reply_133" {
            continue;
        }
        let (header, payload) = Ipv4Header::parse(&datagram).expect("a sample");
        if header.protocol == protocol::UDP {
            seeds.push(payload[usize::from(careof_wire::udp::UdpHeader::LEN)..].to_vec());
        }
        seeds.push(payload.to_vec());
        // With an MTU in front, for the fragmentation.
        seeds.push([&[0, 68], &datagram[..]].concat());
        seeds.push(datagram);
    }
    seeds.extend(crate::samples_v6::samples());
    seeds.extend(mobility_headers());
    seeds.extend(micro_messages());
    seeds.extend(several_paths());
    // Long samples repeat a pattern, and quadratic work on it teaches nothing; of DHCP it is what pads.
    seeds.retain(|seed| seed.len() <= 200);
    let padded = crate::samples::samples().into_iter().filter(|(name, _)| name.starts_with("dhcp_"));
    seeds.extend(
        padded.map(|(_, datagram)| datagram[28..].to_vec()).filter(|message| message.len() == 300).map(
            |message| {
                let end = message.iter().rposition(|&byte| byte != 0).expect("an end option");
                message[..=end].to_vec()
            },
        ),
    );
    seeds
}

/// Micro-mobility messages of every shape: without addresses, with flags, with one address and with several.
fn micro_messages() -> Vec<Vec<u8>> {
    let address = |last| Ipv4Addr::new(10, 1, 0, last);
    let scheme = PathScheme::MulticastNonForwarding;
    let bodies = [
        Body::Attach,
        Body::RouteUpdate { semi_soft: true },
        Body::PathSetupUpdate { scheme, old: address(9) },
        Body::Expect { candidates: vec![address(4), address(5), address(6)] },
    ];
    let mobile = Ipv4Addr::new(10, 9, 0, 7);
    let message =
        |body| MicroMessage { mobile, station: address(3), origin: mobile, timestamp: 1 << 63, body };
    bodies.into_iter().map(|body| message(body).emit(b"a network's key")).collect()
}

/// Mobility Headers of every kind, with all options among them, and what travels in IPv4 of them.
fn mobility_headers() -> Vec<Vec<u8>> {
    const IPV6_HEADER_LEN: usize = 40;
    let packets = crate::samples::mobility::samples().into_iter();
    // Those of fast handovers differ in their codes only.
    let is_one_of_many = |name: &str| {
        name.starts_with("fast_acknowledgement_") && name != "fast_acknowledgement_1"
            || name.starts_with("handover_acknowledge_") && name != "handover_acknowledge_2"
    };
    let packets = packets.filter(|(name, _)| !is_one_of_many(name));
    let headers = packets.map(|(_, packet)| packet[IPV6_HEADER_LEN..].to_vec());
    headers.chain(crate::samples::dual_stack::samples().into_iter().map(|(_, packet)| packet)).collect()
}

/// What is said about several paths, and a packet that goes by one of them.
fn several_paths() -> Vec<Vec<u8>> {
    let alliance = Alliance {
        code: AllianceCode::Accepted,
        lifetime: 60,
        home_address: [10, 0, 0, 7].into(),
        client: [10, 9, 0, 7].into(),
        relay: [10, 9, 0, 9].into(),
        outside: [192, 0, 2, 9].into(),
        home_agent: [10, 0, 0, 1].into(),
        rate: None,
        cost: 3,
        challenge: 4,
        counter: 1,
        nonce: 2,
        key: None,
    };
    let advertisement = ClusterAdvertisement {
        sequence: 1,
        willing: true,
        cost: 2,
        downlink: None,
        uplink: None,
        outside: alliance.outside,
        cluster: alliance.relay,
        clients: 3,
        longest: 60,
        client_rate: None,
    };
    let key = ShakeKey { spi: Spi(256), key: b"key" };
    let feedback =
        PathFeedback { echo: Some(PathEcho::default()), highest: Some(1), ..PathFeedback::default() };
    let mut seeds = vec![
        ShakeMessage::Advertisement(advertisement).emit(None),
        ShakeMessage::Request(alliance).emit(Some(key)),
        ShakeMessage::Feedback(feedback).emit(None),
    ];
    let header = MultipathHeader {
        flow: 1,
        sequence: 2,
        split: true,
        path: 3,
        path_sequence: 4,
        sent_at: 5,
        payload: MultipathPayload::Ipv4,
    };
    let mut packet = Vec::new();
    header.emit(&mut packet);
    seeds.push([&packet[..], b"payload"].concat());
    seeds
}

/// Runs `bytes` through every parser; a panic names the parser and the bytes.
fn run_every_entry(bytes: &[u8]) {
    for (name, entry) in crate::entry::ENTRIES {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| entry(bytes))) {
            eprintln!("{name} panicked on {bytes:02x?}");
            resume_unwind(panic);
        }
    }
}

#[test]
fn whole_messages_come_back_as_they_were() {
    crate::samples::samples().iter().for_each(|(_, datagram)| run_every_entry(datagram));
    seeds().iter().for_each(|seed| run_every_entry(seed));
}

#[test]
fn every_truncation_is_survived() {
    for seed in seeds() {
        (0..seed.len()).for_each(|len| run_every_entry(&seed[..len]));
    }
}

#[test]
fn every_flipped_bit_is_survived() {
    for mut seed in seeds() {
        for bit in 0..seed.len() * 8 {
            seed[bit / 8] ^= 1 << (bit % 8);
            run_every_entry(&seed);
            seed[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn noise_is_survived() {
    let mut random = RandomStream::new(1, 0, "wire.noise");
    for _ in 0..10_000 {
        let len = random.below(120);
        let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        run_every_entry(&noise);
    }
}

#[test]
fn messages_mutilated_at_random_are_survived() {
    let mut random = RandomStream::new(1, 0, "wire.mutilated");
    let seeds = seeds();
    let mut at = |len: usize| random.below(len as u64) as usize;
    for _ in 0..10_000 {
        let mut bytes = seeds[at(seeds.len())].clone();
        for _ in 0..=at(4) {
            let place = at(bytes.len() + 1);
            match at(5) {
                0 => bytes.insert(place, at(256) as u8),
                1 => drop(bytes.drain(place.min(bytes.len())..(place + at(4)).min(bytes.len()))),
                2 => bytes.truncate(place),
                3 => bytes.extend_from_within(place..),
                _ => {
                    if let Some(byte) = bytes.get_mut(place) {
                        // The ends of the range are where lengths and counts go wrong.
                        *byte = [0, 1, 0x7f, 0x80, 0xff, at(256) as u8][at(6)];
                    }
                }
            }
        }
        run_every_entry(&bytes);
    }
}
