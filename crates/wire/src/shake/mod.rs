//! Messages of a cluster that shares its links (SHAKE: Koyama et al., Evaluation of Performance of TCP on Mobile IP SHAKE, 2004,
//! sections 2.2 and 2.3), and of the ends of its paths.
//!
//! The paper names the messages and what they say, but gives no formats; these are ours. Each is the payload of a UDP datagram:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Version=1   |     Kind      |        Length of the body     |
//! |                              SPI                              |
//! |                             Body ...                          |
//! |           Authenticator, 32 bytes; none where SPI is 0        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The authenticator is HMAC-SHA-256 over everything before it. The SPI names the key. A body that is longer than what is known
//! here is read as far as it is known, so that a later edition may append fields.

mod advertisement;
mod alliance;
mod feedback;

use alloc::vec::Vec;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Error;
use crate::fixed::Fixed;
use crate::spi::Spi;

pub use advertisement::ClusterAdvertisement;
pub use alliance::{Alliance, AllianceCode, IntroducedKey};
pub use feedback::{PathEcho, PathFeedback};

const VERSION: u8 = 1;
const ADVERTISEMENT: u8 = 1;
const REQUEST: u8 = 2;
const REPLY: u8 = 3;
const WITHDRAWAL: u8 = 4;
const FEEDBACK: u8 = 5;
const AUTHENTICATOR_LEN: usize = 32;

mod at {
    pub(super) const VERSION: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const BODY_LEN: usize = 2;
    pub(super) const SPI: usize = 4;
    pub(super) const LEN: usize = 8;
}

/// A message of a cluster, or of an end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShakeMessage {
    /// Kind 1: what a node would lend.
    Advertisement(ClusterAdvertisement),
    /// Kind 2: a node asks another one to relay for it.
    Request(Alliance),
    /// Kind 3: what that answers.
    Reply(Alliance),
    /// Kind 4: either ends it.
    Withdrawal(Alliance),
    /// Kind 5: what has come by a path.
    Feedback(PathFeedback),
}

/// How a message is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShakeKey<'a> {
    /// Names the key; 0 is no name.
    pub spi: Spi,
    /// The secret.
    pub key: &'a [u8],
}

/// A message as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedShake<'a> {
    /// What it says.
    pub message: ShakeMessage,
    /// Names the key of the authenticator; `None` where there is none.
    pub spi: Option<Spi>,
    covered: &'a [u8],
    authenticator: &'a [u8],
}

fn keyed(key: &[u8], covered: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length, so the error `new_from_slice` shares with other codes never happens.
    let Ok(mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else { unreachable!("HMAC refused a key") };
    mac.chain_update(covered)
}

impl ReceivedShake<'_> {
    /// Whether it was made by somebody who has the key. A message without an authenticator was not.
    #[must_use]
    pub fn is_genuine(&self, key: &[u8]) -> bool {
        self.spi.is_some() && keyed(key, self.covered).verify_slice(self.authenticator).is_ok()
    }
}

impl ShakeMessage {
    /// Bytes of a message of `body` bytes, with an authenticator or without.
    #[must_use]
    pub const fn wire_len(body: usize, authenticated: bool) -> usize {
        at::LEN + body + if authenticated { AUTHENTICATOR_LEN } else { 0 }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Advertisement(_) => ADVERTISEMENT,
            Self::Request(_) => REQUEST,
            Self::Reply(_) => REPLY,
            Self::Withdrawal(_) => WITHDRAWAL,
            Self::Feedback(_) => FEEDBACK,
        }
    }

    /// The message, with an authenticator where there is a key. A key with SPI 0 is none.
    #[must_use]
    pub fn emit(&self, key: Option<ShakeKey<'_>>) -> Vec<u8> {
        let key = key.filter(|key| key.spi != Spi(0));
        let mut body = Vec::with_capacity(Self::wire_len(PathFeedback::LEN, true));
        match self {
            Self::Advertisement(advertisement) => advertisement.emit(&mut body),
            Self::Request(alliance) | Self::Reply(alliance) | Self::Withdrawal(alliance) => {
                alliance.emit(&mut body);
            }
            Self::Feedback(feedback) => feedback.emit(&mut body),
        }
        let mut head = Fixed::<{ at::LEN }>::ZERO;
        head.put::<{ at::VERSION }, 1>([VERSION]);
        head.put::<{ at::KIND }, 1>([self.kind()]);
        // No body is longer than a few hundred bytes.
        head.put::<{ at::BODY_LEN }, 2>((body.len() as u16).to_be_bytes());
        head.put::<{ at::SPI }, 4>(key.map_or(0, |key| key.spi.0).to_be_bytes());
        let mut bytes = Vec::with_capacity(Self::wire_len(body.len(), key.is_some()));
        bytes.extend(head.bytes());
        bytes.extend(&body);
        if let Some(key) = key {
            bytes.extend(keyed(key.key, &bytes).finalize().as_bytes().as_slice());
        }
        bytes
    }

    /// Reads a message, without checking its authenticator: see [`ReceivedShake::is_genuine`].
    ///
    /// # Errors
    /// [`Error::Truncated`], and [`Error::Invalid`] for another version, an unknown kind, a field without meaning, and bytes that
    /// are left over.
    pub fn parse(bytes: &[u8]) -> Result<ReceivedShake<'_>, Error> {
        let (head, rest) = Fixed::<{ at::LEN }>::split(bytes, "message of a cluster")?;
        let invalid = |field, offset, found, expected| Error::Invalid { field, offset, found, expected };
        let version = head.u8::<{ at::VERSION }>();
        if version != VERSION {
            return Err(invalid("version of a message of a cluster", at::VERSION, u32::from(version), "1"));
        }
        let body_len = usize::from(head.u16::<{ at::BODY_LEN }>());
        let Some((body, authenticator)) = rest.split_at_checked(body_len) else {
            let (offset, found) = (at::LEN, rest.len());
            return Err(Error::Truncated {
                what: "body of a message of a cluster",
                offset,
                needed: body_len,
                found,
            });
        };
        let spi = head.u32::<{ at::SPI }>();
        let expected = if spi == 0 { 0 } else { AUTHENTICATOR_LEN };
        if authenticator.len() != expected {
            let found = u32::try_from(authenticator.len()).unwrap_or(u32::MAX);
            let field = "bytes behind the body of a message of a cluster";
            return Err(invalid(field, at::LEN + body_len, found, "32, or none where the SPI is 0"));
        }
        let message = match head.u8::<{ at::KIND }>() {
            ADVERTISEMENT => ClusterAdvertisement::parse(body).map(Self::Advertisement),
            REQUEST => Alliance::parse(body).map(Self::Request),
            REPLY => Alliance::parse(body).map(Self::Reply),
            WITHDRAWAL => Alliance::parse(body).map(Self::Withdrawal),
            FEEDBACK => PathFeedback::parse(body).map(Self::Feedback),
            kind => {
                return Err(invalid("kind of a message of a cluster", at::KIND, u32::from(kind), "1 to 5"));
            }
        };
        Ok(ReceivedShake {
            message: message.map_err(|error| error.shifted(at::LEN))?,
            spi: (spi != 0).then_some(Spi(spi)),
            covered: bytes.get(..at::LEN + body_len).unwrap_or(bytes),
            authenticator,
        })
    }
}

#[cfg(test)]
mod tests;
