//! What stands in the place of ciphers: packets are readable, and carry a checksum where the tag of an AEAD would be.

use bytes::BytesMut;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::{
    AeadKey, CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};

/// Bytes of the tag of each packet: that of AES-128-GCM (RFC 9001 section 5.3).
pub(crate) const TAG_LEN: usize = 16;

/// A checksum of 16 bytes, which depends on every byte and on their order. Anybody can compute it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum([u64; 2]);

impl Checksum {
    /// Odd constants whose multiples differ in all bits: the fractions of the golden ratio and of the square root of 3.
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbb67_ae85_84ca_a73b];

    pub(crate) const fn new(start: u64) -> Self {
        Self([start, !start])
    }

    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            self.mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        self.mix(u64::from_le_bytes(last));
        self.mix(bytes.len() as u64);
        self
    }

    fn mix(&mut self, word: u64) {
        for (state, factor) in self.0.iter_mut().zip(Self::FACTORS) {
            *state = (state.rotate_left(29) ^ word).wrapping_mul(factor);
        }
    }

    pub(crate) fn finish(mut self) -> [u8; TAG_LEN] {
        self.mix(0);
        let [a, b] = self.0.map(|state| state ^ (state >> 31));
        let mut tag = [0; TAG_LEN];
        tag[..8].copy_from_slice(&a.to_le_bytes());
        tag[8..].copy_from_slice(&b.to_le_bytes());
        tag
    }

    /// Half of the checksum, as a number.
    pub(crate) fn number(self) -> u64 {
        let tag = self.finish();
        u64::from_le_bytes(tag[..8].try_into().unwrap_or_default())
    }
}

/// What the packets of one direction are sealed with in one phase of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal(pub(crate) u64);

impl Seal {
    fn tag(self, packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG_LEN] {
        Checksum::new(self.0).add(&packet.to_be_bytes()).add(header).add(payload).finish()
    }
}

impl PacketKey for Seal {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (packet_bytes, place) = buf.split_at_mut(buf.len() - TAG_LEN);
        let (header, payload) = packet_bytes.split_at(header_len);
        place.copy_from_slice(&self.tag(packet, header, payload));
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let Some(len) = payload.len().checked_sub(TAG_LEN) else { return Err(CryptoError) };
        let tag = payload.split_off(len);
        if tag == self.tag(packet, header, payload)[..] { Ok(()) } else { Err(CryptoError) }
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    /// That of AES-128-GCM (RFC 9001 section 6.6).
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// Leaves headers as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenHeader;

impl HeaderKey for OpenHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// That of AES (RFC 9001 section 5.4.3): it decides how long the shortest packets are.
    fn sample_size(&self) -> usize {
        16
    }
}

/// The seals of both directions, for `side`.
pub(crate) fn keys(secret: u64, side: quinn_proto::Side) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(OpenHeader), remote: Box::new(OpenHeader) },
        packet: seals(secret, side),
    }
}

pub(crate) fn seals(secret: u64, side: quinn_proto::Side) -> KeyPair<Box<dyn PacketKey>> {
    let [client, server] = [b"client", b"server"].map(|name| Seal(Checksum::new(secret).add(name).number()));
    let (local, remote) = if side.is_client() { (client, server) } else { (server, client) };
    KeyPair { local: Box::new(local), remote: Box::new(remote) }
}

/// The secret of the first packets: it follows from the client's first connection identifier, as in RFC 9001 section 5.2.
pub(crate) fn initial_secret(connection: &ConnectionId) -> u64 {
    Checksum::new(0).add(connection).number()
}

/// Makes the tokens of stateless resets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResetKey(pub(crate) u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let tag = Checksum::new(self.0).add(data).finish();
        signature_out.iter_mut().zip(tag).for_each(|(place, byte)| *place = byte);
    }

    fn signature_len(&self) -> usize {
        TAG_LEN
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if signature == Checksum::new(self.0).add(data).finish() { Ok(()) } else { Err(CryptoError) }
    }
}

/// No tokens that validate addresses are made, and none is believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoTokens {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_opens_with_the_seal_it_was_closed_with_and_with_no_other() {
        let seal = Seal(7);
        let mut packet = b"head".to_vec();
        packet.extend((0..100).map(|n| n as u8));
        packet.resize(packet.len() + TAG_LEN, 0);
        seal.encrypt(5, &mut packet, 4);
        let sealed = |from: usize| BytesMut::from(&packet[from..]);
        let mut payload = sealed(4);
        assert!(seal.decrypt(5, b"head", &mut payload).is_ok());
        assert_eq!(payload.len(), 100);
        assert!(seal.decrypt(6, b"head", &mut sealed(4)).is_err(), "another number");
        assert!(seal.decrypt(5, b"tail", &mut sealed(4)).is_err(), "another header");
        assert!(Seal(8).decrypt(5, b"head", &mut sealed(4)).is_err(), "another seal");
        for changed in 0..116 {
            let mut payload = sealed(4);
            payload[changed] ^= 1;
            assert!(seal.decrypt(5, b"head", &mut payload).is_err(), "byte {changed}");
        }
        assert!(seal.decrypt(5, b"head", &mut BytesMut::from(&b"short"[..])).is_err());
    }
}
