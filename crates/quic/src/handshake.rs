//! The handshake in the place of TLS 1.3: messages of the usual types and sizes that agree on nothing but transport parameters.

use std::any::Any;
use std::sync::Arc;

use careof_base::RandomStream;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

use crate::keys::{Checksum, initial_secret, keys, seals};

/// Bytes of a ClientHello around the transport parameters: one key share of X25519, three cipher suites, a server's name of 18 bytes, ALPN
/// `h3` and the signature schemes that `rustls` offers (RFC 8446 section 4.1.2 and appendix B.3.1).
pub const CLIENT_HELLO: usize = 200;
/// Bytes of a ServerHello with a key share of X25519 and no session identifier (RFC 8446 section 4.1.3).
pub const SERVER_HELLO: usize = 90;
/// Bytes of EncryptedExtensions around the transport parameters, with ALPN `h3` (RFC 8446 section 4.3.1).
pub const ENCRYPTED_EXTENSIONS: usize = 17;
/// Bytes of a Certificate message: a leaf and an intermediate certificate of ECDSA P-256, 1 kB each, which is about what web servers send.
pub const CERTIFICATE: usize = 2_020;
/// Bytes of a CertificateVerify message with a signature of ECDSA P-256 (RFC 8446 section 4.4.3).
pub const CERTIFICATE_VERIFY: usize = 79;
/// Bytes of a Finished message with SHA-256 (RFC 8446 section 4.4.4).
pub const FINISHED: usize = 36;

/// Type and length in front of each message (RFC 8446 section 4).
const HEADER: usize = 4;
/// Bytes that either hello draws at random (RFC 8446 sections 4.1.2 and 4.1.3).
const RANDOM: usize = 32;

/// Types of messages (RFC 8446 appendix B.3).
mod kind {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(super) const CERTIFICATE: u8 = 11;
    pub(super) const CERTIFICATE_VERIFY: u8 = 15;
    pub(super) const FINISHED: u8 = 20;
}

/// The alert `unexpected_message` (RFC 8446 section 6.2).
const UNEXPECTED_MESSAGE: u8 = 10;
/// The alert `decode_error`.
const DECODE_ERROR: u8 = 50;

fn alert(alert: u8, reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::crypto(alert), frame: None, reason: reason.to_owned() }
}

/// Writes a message of `len` bytes with its header, or more where `body` needs them.
fn message(to: &mut Vec<u8>, kind: u8, body: &[u8], len: usize) {
    let body_len = body.len().max(len.saturating_sub(HEADER));
    to.push(kind);
    to.extend_from_slice(&(body_len as u32).to_be_bytes()[1..]);
    to.extend_from_slice(body);
    to.resize(to.len() + body_len - body.len(), 0);
}

/// What an end waits for, or has to say next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SayHello,
    AwaitHello,
    /// A server's: its keys for the handshake follow from both hellos.
    AnswerHello,
    SayCertificate,
    AwaitFinished,
    /// A client's: both hellos are there.
    TakeHandshakeKeys,
    AwaitCertificate,
    SayFinished,
    Done,
}

/// One end of a handshake.
pub(crate) struct Session {
    side: Side,
    step: Step,
    own: Vec<u8>,
    random: [u8; RANDOM],
    peer: Option<TransportParameters>,
    /// Bytes of a message that has not come whole.
    unread: Vec<u8>,
    /// Of both hellos.
    transcript: Checksum,
    /// How often the keys of data were renewed.
    generation: u64,
}

impl Session {
    fn new(side: Side, params: &TransportParameters, random: [u8; RANDOM]) -> Self {
        let mut own = Vec::new();
        params.write(&mut own);
        let step = if side.is_client() { Step::SayHello } else { Step::AwaitHello };
        let transcript = Checksum::new(0);
        Self { side, step, own, random, peer: None, unread: Vec::new(), transcript, generation: 0 }
    }

    fn secret(&self, label: &[u8]) -> u64 {
        self.transcript.add(label).number()
    }

    fn hello(&mut self, to: &mut Vec<u8>, kind: u8, len: usize) {
        let start = to.len();
        let mut body = self.random.to_vec();
        let with_parameters = kind == kind::CLIENT_HELLO;
        if with_parameters {
            body.extend_from_slice(&(self.own.len() as u16).to_be_bytes());
            body.extend_from_slice(&self.own);
        }
        let room = if with_parameters { self.own.len() } else { 0 };
        message(to, kind, &body, len + room);
        self.transcript = self.transcript.add(&to[start..]);
    }

    fn take_parameters(&mut self, from: &[u8]) -> Result<(), TransportError> {
        let (len, rest) = from.split_first_chunk().ok_or_else(|| alert(DECODE_ERROR, "no parameters"))?;
        let len = usize::from(u16::from_be_bytes(*len));
        let mut read = rest.get(..len).ok_or_else(|| alert(DECODE_ERROR, "parameters cut off"))?;
        let params = TransportParameters::read(self.side, &mut read)?;
        self.peer = Some(params);
        Ok(())
    }

    fn hear(&mut self, kind: u8, whole: &[u8]) -> Result<bool, TransportError> {
        let body = &whole[HEADER..];
        let step = match (self.step, kind) {
            (Step::AwaitHello, kind::CLIENT_HELLO) if !self.side.is_client() => {
                self.take_parameters(body.get(RANDOM..).unwrap_or_default())?;
                self.transcript = self.transcript.add(whole);
                self.step = Step::AnswerHello;
                return Ok(true);
            }
            (Step::AwaitHello, kind::SERVER_HELLO) if self.side.is_client() => {
                self.transcript = self.transcript.add(whole);
                Step::TakeHandshakeKeys
            }
            (Step::AwaitCertificate, kind::ENCRYPTED_EXTENSIONS) => {
                self.take_parameters(body)?;
                self.step = Step::AwaitCertificate;
                return Ok(true);
            }
            (Step::AwaitCertificate, kind::CERTIFICATE | kind::CERTIFICATE_VERIFY) => Step::AwaitCertificate,
            (Step::AwaitCertificate, kind::FINISHED) => Step::SayFinished,
            (Step::AwaitFinished, kind::FINISHED) => Step::Done,
            _ => return Err(alert(UNEXPECTED_MESSAGE, "a message out of turn")),
        };
        self.step = step;
        Ok(false)
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        keys(initial_secret(dst_cid), side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend_from_slice(buf);
        let mut told = false;
        while let Some(&[kind, a, b, c]) = self.unread.first_chunk() {
            let end = HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            if self.unread.len() < end {
                break;
            }
            let rest = self.unread.split_off(end);
            let whole = std::mem::replace(&mut self.unread, rest);
            told |= self.hear(kind, &whole)?;
        }
        Ok(told)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let side = self.side;
        match self.step {
            Step::SayHello => {
                self.hello(buf, kind::CLIENT_HELLO, CLIENT_HELLO);
                self.step = Step::AwaitHello;
                None
            }
            Step::AnswerHello => {
                self.hello(buf, kind::SERVER_HELLO, SERVER_HELLO);
                self.step = Step::SayCertificate;
                Some(keys(self.secret(b"handshake"), side))
            }
            Step::TakeHandshakeKeys => {
                self.step = Step::AwaitCertificate;
                Some(keys(self.secret(b"handshake"), side))
            }
            Step::SayCertificate => {
                let mut parameters = (self.own.len() as u16).to_be_bytes().to_vec();
                parameters.extend_from_slice(&self.own);
                message(buf, kind::ENCRYPTED_EXTENSIONS, &parameters, ENCRYPTED_EXTENSIONS + self.own.len());
                message(buf, kind::CERTIFICATE, &[], CERTIFICATE);
                message(buf, kind::CERTIFICATE_VERIFY, &[], CERTIFICATE_VERIFY);
                message(buf, kind::FINISHED, &[], FINISHED);
                self.step = Step::AwaitFinished;
                Some(keys(self.secret(b"data"), side))
            }
            Step::SayFinished => {
                message(buf, kind::FINISHED, &[], FINISHED);
                self.step = Step::Done;
                Some(keys(self.secret(b"data"), side))
            }
            Step::AwaitHello | Step::AwaitFinished | Step::AwaitCertificate | Step::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(seals(self.secret(&self.generation.to_be_bytes()), self.side))
    }

    /// No end of ours sends a Retry.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Begins sessions, of which each endpoint has one.
pub(crate) struct Sessions([u8; RANDOM]);

impl Sessions {
    pub(crate) fn new(random: &mut RandomStream) -> Arc<Self> {
        Arc::new(Self(crate::connection::draw(random)))
    }
}

impl crypto::ClientConfig for Sessions {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(Box::new(Session::new(Side::Client, params, self.0)))
    }
}

impl crypto::ServerConfig for Sessions {
    fn initial_keys(&self, _version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(initial_secret(dst_cid), Side::Server))
    }

    fn retry_tag(&self, _: u32, connection: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        Checksum::new(0).add(connection).add(packet).finish()
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        Box::new(Session::new(Side::Server, params, self.0))
    }
}
