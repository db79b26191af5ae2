//! How a mobile node asks another one to relay for it, and how either ends that.
//!
//! The body of messages of kinds 2 (request), 3 (reply) and 4 (withdrawal); the paper has one format for request and reply, too:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     Code      |K|    zero     |      Lifetime, seconds        |
//! |                     Client's home address                     |
//! |                    Client's cluster address                   |
//! |                    Relay's cluster address                    |
//! |                    Relay's outside address                    |
//! |                  Client's home agent's address                |
//! |                  Rate for the client, 100 bit/s               |
//! |             Cost              |             zero              |
//! |                         Challenge (64)                        |
//! |                          Counter (64)                         |
//! |                           Nonce (64)                          |
//! |                       Introduced key (256)                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A request has the code 0. What a client says repeats the challenge that the relay has drawn when it began, and its counter goes up with
//! each message, so that none can be replayed. A request whose challenge or counter is not what it should be is answered with code 5,
//! which names the challenge and the highest counter. What a relay says repeats the nonce of a request: a reply that of its own one, a
//! withdrawal that of the last one that was accepted. K: the key by which this message and all later ones of the client are
//! authenticated is introduced, for a relay that trusts on first use. Who hears that first message has the key, too.

use core::fmt;
use core::net::Ipv4Addr;

use careof_base::DataRate;

use super::advertisement::{rate_of, rate_units};
use crate::Error;
use crate::fixed::Fixed;
use crate::numbered::numbered;

const KEY_INTRODUCED: u8 = 0x80;

mod at {
    pub(super) const CODE: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const LIFETIME: usize = 2;
    pub(super) const HOME: usize = 4;
    pub(super) const CLIENT: usize = 8;
    pub(super) const RELAY: usize = 12;
    pub(super) const OUTSIDE: usize = 16;
    pub(super) const HOME_AGENT: usize = 20;
    pub(super) const RATE: usize = 24;
    pub(super) const COST: usize = 28;
    pub(super) const CHALLENGE: usize = 32;
    pub(super) const COUNTER: usize = 40;
    pub(super) const NONCE: usize = 48;
    pub(super) const KEY: usize = 56;
    pub(super) const LEN: usize = 88;
}

numbered! {
    /// What a relay answers, or why somebody withdraws.
    AllianceCode, unknown: "alliance code";
    /// The relay agrees; in a request and in a withdrawal without a reason.
    Accepted = 0, "accepted";
    /// It relays for as many as it can.
    Full = 1, "no place for another client";
    /// It does not relay now.
    Unwilling = 2, "not willing";
    /// The lifetime or the bytes that it grants are used up.
    LimitReached = 3, "limit reached";
    /// Its own link is gone.
    LinkLost = 4, "link lost";
    /// The request lacks the relay's challenge, or its counter is not higher than the last one: the reply says which they are.
    NotFresh = 5, "not fresh";
}

/// A key that is introduced.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntroducedKey(pub [u8; 32]);

impl fmt::Debug for IntroducedKey {
    /// Without the key: debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IntroducedKey")
    }
}

/// The body of a request, a reply or a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alliance {
    /// What a relay answers, or why somebody withdraws.
    pub code: AllianceCode,
    /// For how long, seconds: wished for, or granted.
    pub lifetime: u16,
    /// Whose packets are to be relayed.
    pub home_address: Ipv4Addr,
    /// Where the client is in the cluster.
    pub client: Ipv4Addr,
    /// Where the relay is in the cluster.
    pub relay: Ipv4Addr,
    /// The relay's address outside of it; unspecified in what a client says.
    pub outside: Ipv4Addr,
    /// The client's home agent: the only other end that packets are relayed from and to.
    pub home_agent: Ipv4Addr,
    /// The most that the client may have; `None`: there is no limit.
    pub rate: Option<DataRate>,
    /// What the relay's link costs, in its replies.
    pub cost: u16,
    /// What the relay has drawn when it began; 0 where the client does not know it yet.
    pub challenge: u64,
    /// Of what a client says, higher than in all its messages before under the same key and challenge; a reply repeats that of its request,
    /// and with [`AllianceCode::NotFresh`] names the highest.
    pub counter: u64,
    /// What nobody who has not seen the request can know; what a relay says of it repeats it.
    pub nonce: u64,
    /// The key of the client's messages, where it is introduced.
    pub key: Option<IntroducedKey>,
}

impl Alliance {
    pub(super) fn emit(&self, bytes: &mut impl Extend<u8>) {
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::CODE }, 1>([self.code.number()]);
        fixed.put::<{ at::FLAGS }, 1>([if self.key.is_some() { KEY_INTRODUCED } else { 0 }]);
        fixed.put::<{ at::LIFETIME }, 2>(self.lifetime.to_be_bytes());
        fixed.put::<{ at::HOME }, 4>(self.home_address.octets());
        fixed.put::<{ at::CLIENT }, 4>(self.client.octets());
        fixed.put::<{ at::RELAY }, 4>(self.relay.octets());
        fixed.put::<{ at::OUTSIDE }, 4>(self.outside.octets());
        fixed.put::<{ at::HOME_AGENT }, 4>(self.home_agent.octets());
        fixed.put::<{ at::RATE }, 4>(rate_units(self.rate).to_be_bytes());
        fixed.put::<{ at::COST }, 2>(self.cost.to_be_bytes());
        fixed.put::<{ at::CHALLENGE }, 8>(self.challenge.to_be_bytes());
        fixed.put::<{ at::COUNTER }, 8>(self.counter.to_be_bytes());
        fixed.put::<{ at::NONCE }, 8>(self.nonce.to_be_bytes());
        fixed.put::<{ at::KEY }, 32>(self.key.map_or([0; 32], |key| key.0));
        bytes.extend(fixed.bytes().iter().copied());
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        let (fixed, _) = Fixed::<{ at::LEN }>::split(body, "alliance message")?;
        let is_introduced = fixed.u8::<{ at::FLAGS }>() & KEY_INTRODUCED != 0;
        Ok(Self {
            code: AllianceCode::from_number(fixed.u8::<{ at::CODE }>()),
            lifetime: fixed.u16::<{ at::LIFETIME }>(),
            home_address: fixed.address::<{ at::HOME }>(),
            client: fixed.address::<{ at::CLIENT }>(),
            relay: fixed.address::<{ at::RELAY }>(),
            outside: fixed.address::<{ at::OUTSIDE }>(),
            home_agent: fixed.address::<{ at::HOME_AGENT }>(),
            rate: rate_of(fixed.u32::<{ at::RATE }>()),
            cost: fixed.u16::<{ at::COST }>(),
            challenge: fixed.u64::<{ at::CHALLENGE }>(),
            counter: fixed.u64::<{ at::COUNTER }>(),
            nonce: fixed.u64::<{ at::NONCE }>(),
            key: is_introduced.then(|| IntroducedKey(fixed.array::<{ at::KEY }, 32>())),
        })
    }
}
