//! Registrations that a test sends itself, in a mobile node's name and with its key.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_mobility::v4::NtpTime;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Extension, Identification, Lifetime, Message, RegistrationRequest,
    RequestFlags, Spi, append_authentication,
};

use super::{HA, PATIENCE, Udp};

/// What a home agent is asked for.
pub(crate) struct Asked {
    pub(crate) home_agent: Ipv4Addr,
    pub(crate) home_address: Ipv4Addr,
    pub(crate) care_of_address: Ipv4Addr,
    /// Beside the D bit.
    pub(crate) flags: RequestFlags,
    pub(crate) extensions: Vec<Extension>,
}

impl Asked {
    /// That packets for `home_address` go to `care_of_address`.
    pub(crate) fn new(home_address: Ipv4Addr, care_of_address: Ipv4Addr) -> Self {
        let flags = RequestFlags::default();
        Self { home_agent: HA, home_address, care_of_address, flags, extensions: Vec::new() }
    }
}

/// Asks, again where a queue on the way was full, and returns the code of the answer.
pub(crate) fn register(from: &Udp, asked: Asked) -> u8 {
    from.set_read_timeout(Some(AGAIN)).unwrap();
    let tries = PATIENCE.as_secs() / AGAIN.as_secs();
    let code = (0..tries).find_map(|_| ask(from, &asked));
    from.set_read_timeout(Some(PATIENCE)).unwrap();
    code.expect("an answer")
}

/// How long an answer is waited for.
const AGAIN: Duration = Duration::from_secs(2);

/// The Identification of a request that is made now.
pub(crate) fn identification() -> Identification {
    #[expect(clippy::disallowed_methods, reason = "the agent under test has the real time of day")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Identification(NtpTime::from_unix(now).to_bits())
}

fn ask(from: &Udp, asked: &Asked) -> Option<u8> {
    let &Asked { home_agent, home_address, care_of_address, flags, ref extensions } = asked;
    let identification = identification();
    let request = RegistrationRequest {
        flags: flags.with(RequestFlags::DECAPSULATION_BY_MOBILE_NODE),
        lifetime: Lifetime::from_secs(600),
        home_address,
        home_agent,
        care_of_address,
        identification,
        extensions: extensions.clone(),
    };
    let mut bytes = Message::Request(request).emit();
    let key = b"0123456789abcdef";
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), Algorithm::HmacMd5, key);
    from.send_to(&bytes, (home_agent, 434)).unwrap();
    let mut buffer = [0; 1000];
    // One that is late answers what was asked before.
    loop {
        let (len, _) = from.recv_from(&mut buffer).ok()?;
        let Message::Reply(reply) = Message::parse(&buffer[..len]).unwrap() else { panic!() };
        if reply.identification.low() == identification.low() {
            return Some(reply.code.number());
        }
    }
}
