//! What a daemon draws by chance, which strangers hear: none of it repeats, and none of it follows from anything else.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::daemons::support::{
    CORRESPONDENT, Daemon, HOME_ADDRESS, HOME_AGENT, Network, PATIENCE, key, realm_or_skip,
};
use crate::support::Udp;
use careof_base::RandomStream;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags, Spi, append_authentication,
};

fn signed(message: Message) -> Vec<u8> {
    let mut bytes = message.emit();
    let (kind, algorithm) = (AuthenticationKind::MobileHome, Algorithm::HmacMd5);
    append_authentication(&mut bytes, kind, Spi(256), algorithm, &key());
    bytes
}

/// Of which stream of the simulator's generator two of these numbers are, if of one that a daemon might have made.
fn stream_of(numbers: &[u32], half: fn(u64) -> u32) -> Option<(u64, String)> {
    let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
    let names = ["agent", "home", "mobile", "home agent", "mobile node", "careof-agent"];
    let streams = (0..500).flat_map(|seed| names.map(|name| (seed, name)));
    let is_of = |(seed, name): &(u64, &str)| {
        let mut stream = RandomStream::new(*seed, 0, name);
        (0..200).filter(|_| numbers.contains(&half(stream.next_u64()))).count() > 1
    };
    streams.into_iter().find(is_of).map(|(seed, name)| (seed, name.to_owned()))
}

fn assert_by_chance(lives: &[Vec<u32>], half: fn(u64) -> u32) {
    let all: Vec<u32> = lives.concat();
    let distinct: BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "none repeats: {lives:?}");
    assert_eq!(stream_of(&all, half), None);
}

/// The nonces that a home agent gives one after the other.
fn nonces(socket: &Udp, count: u32) -> Vec<u32> {
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut nonces, mut low) = (vec![0], 0);
    while nonces.len() <= count as usize {
        low += 1;
        assert!(low < 100 + count, "{nonces:?}");
        let nonce = *nonces.last().unwrap();
        let request = RegistrationRequest {
            flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
            lifetime: Lifetime::from_secs(60),
            home_address: HOME_ADDRESS,
            home_agent: HOME_AGENT,
            care_of_address: CORRESPONDENT,
            identification: Identification::from_halves(nonce, low),
            extensions: Vec::new(),
        };
        socket.send_to(&signed(Message::Request(request)), (HOME_AGENT, 434)).unwrap();
        let mut buffer = [0; 1000];
        let Ok(len) = socket.recv(&mut buffer) else { continue };
        let Ok(Message::Reply(reply)) = Message::parse(&buffer[..len]) else { panic!() };
        // A denial of a wrong nonce repeats the one that is expected.
        if reply.identification.high() != nonce {
            nonces.push(reply.identification.high());
        }
    }
    nonces.split_off(1)
}

#[test]
fn the_nonces_of_home_agents_that_are_configured_alike_have_nothing_in_common() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let socket = network.correspondent.run(|| Udp::bind((CORRESPONDENT, 0))).unwrap().unwrap();
    let configuration = format!("{}replay = \"nonces\"\n", network.home_configuration(""));
    let lives = [1, 2].map(|_| {
        let directory = network.directory();
        // As if it had never been there before.
        for entry in fs::read_dir(directory).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let mut home = Daemon::start(&network.home, directory, "home", &configuration);
        let nonces = nonces(&socket, 100);
        home.kill();
        nonces
    });
    assert_by_chance(&lives, |number| (number >> 32) as u32);
}

/// The low halves of Identifications of a mobile node whose home agent tells it again and again to take another nonce.
fn low_halves(home: &Udp, count: usize) -> Vec<u32> {
    home.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut halves: Vec<u32> = Vec::new();
    let mut buffer = [0; 1000];
    while halves.len() < count {
        let (len, from) = home.recv_from(&mut buffer).unwrap();
        let Ok(Message::Request(request)) = Message::parse(&buffer[..len]) else { continue };
        let low = request.identification.low();
        // One that is sent again is the same.
        if halves.last() != Some(&low) {
            halves.push(low);
        }
        let reply = RegistrationReply {
            code: ReplyCode::HomeIdentificationMismatch,
            lifetime: request.lifetime,
            home_address: HOME_ADDRESS,
            home_agent: HOME_AGENT,
            identification: Identification::from_halves(halves.len() as u32, low),
            extensions: Vec::new(),
        };
        home.send_to(&signed(Message::Reply(reply)), from).unwrap();
    }
    halves
}

#[test]
fn the_identifications_of_mobile_nodes_that_are_configured_alike_have_nothing_in_common() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let home = network.home.run(|| Udp::bind((Ipv4Addr::UNSPECIFIED, 434))).unwrap().unwrap();
    let configuration = Network::mobile_configuration("[[interface]]\nname = \"wlan0\"\n");
    let configuration = configuration.replacen("spi = 256", "spi = 256\nreplay = \"nonces\"", 1);
    let lives = [1, 2].map(|_| {
        let mut mobile = Daemon::start(&network.mobile, network.directory(), "mobile", &configuration);
        let halves = low_halves(&home, 5);
        mobile.kill();
        halves
    });
    assert_by_chance(&lives, |number| number as u32);
}
