//! A correspondent node as small as can be: one nonce, no memory beyond its bindings.

use careof_base::Instant;
use careof_mobility::v6::{Addresses, TransmitPayload};
use careof_wire::mip6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingAuthorization, BindingError, BindingErrorStatus,
    BindingManagementKey, BindingRefreshRequest, BindingStatus, BindingUpdate, CareOfTest, HomeTest, Message,
    MobilityOptions, NodeKey, Nonce, NonceIndex, SequenceNumber,
};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

pub(crate) type Answer = (Addresses, TransmitPayload);

pub(crate) struct Peer {
    pub(crate) address: Ipv6Addr,
    /// What time it is for it.
    pub(crate) now: Instant,
    /// Home address to care-of address, last sequence number and the end.
    pub(crate) bindings: BTreeMap<Ipv6Addr, (Ipv6Addr, SequenceNumber, Instant)>,
    /// The nonce of the tokens that it makes, and the only one that it takes.
    pub(crate) nonce: u16,
    pub(crate) home_tests: usize,
    pub(crate) care_of_tests: usize,
    pub(crate) updates: usize,
    /// What came from home addresses.
    pub(crate) data: Vec<u64>,
    /// Whether it answers with this status whatever is right.
    pub(crate) always: Option<BindingStatus>,
}

fn emit(way: Addresses, message: &Message) -> Answer {
    let bytes = message.emit(way.real_source(), way.real_destination()).unwrap();
    (way, TransmitPayload::Mobility(bytes))
}

impl Peer {
    pub(crate) fn new(address: Ipv6Addr) -> Self {
        let (bindings, data) = (BTreeMap::new(), Vec::new());
        let (home_tests, care_of_tests, updates) = (0, 0, 0);
        let now = Instant::ZERO;
        Self { address, now, bindings, nonce: 1, home_tests, care_of_tests, updates, data, always: None }
    }

    fn nonce(index: u16) -> Nonce {
        let [a, b] = index.to_be_bytes();
        Nonce([a, b, 3, 4, 5, 6, 7, 8])
    }

    fn key(&self) -> NodeKey {
        NodeKey([self.address.octets()[15]; 20])
    }

    /// Where `home_address` is, as far as it knows.
    pub(crate) fn care_of(&self, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        let binding = self.bindings.get(&home_address).filter(|(_, _, end)| *end > self.now);
        binding.map(|(care_of, ..)| *care_of)
    }

    pub(crate) fn handle(&mut self, addresses: Addresses, bytes: &[u8]) -> Option<Answer> {
        let message = Message::parse(addresses.real_source(), addresses.real_destination(), bytes).unwrap();
        let way = Addresses::new(self.address, addresses.source);
        let nonce_index = NonceIndex(self.nonce);
        let nonce = Self::nonce(self.nonce);
        let options = MobilityOptions::new();
        match message {
            Message::HomeTestInit(init) => {
                self.home_tests += 1;
                let token = self.key().home_keygen_token(addresses.source, nonce);
                Some(emit(
                    way,
                    &Message::HomeTest(HomeTest { nonce_index, cookie: init.cookie, token, options }),
                ))
            }
            Message::CareOfTestInit(init) => {
                self.care_of_tests += 1;
                let token = self.key().care_of_keygen_token(addresses.source, nonce);
                Some(emit(
                    way,
                    &Message::CareOfTest(CareOfTest { nonce_index, cookie: init.cookie, token, options }),
                ))
            }
            Message::BindingUpdate(update) => self.update(addresses, bytes, &update),
            _ => None,
        }
    }

    fn update(&mut self, addresses: Addresses, bytes: &[u8], update: &BindingUpdate) -> Option<Answer> {
        self.updates += 1;
        let home_address = addresses.real_source();
        let care_of = update.care_of_address(addresses.source);
        let nonces = update.options.nonce_indices()?;
        let deletes = update.lifetime.is_zero() || care_of == home_address;
        let home = self.key().home_keygen_token(home_address, Self::nonce(nonces.home.0));
        let key = if deletes {
            BindingManagementKey::for_deletion(home)
        } else {
            let token = self.key().care_of_keygen_token(care_of, Self::nonce(nonces.care_of.0));
            BindingManagementKey::new(home, token)
        };
        let authorization =
            BindingAuthorization { key: &key, care_of_address: care_of, correspondent: self.address };
        let is_old = |index: NonceIndex| index.0 != self.nonce;
        let mut sequence = update.sequence;
        let last = self.bindings.get(&home_address).map(|(_, sequence, _)| *sequence);
        let status = match (is_old(nonces.home), !deletes && is_old(nonces.care_of)) {
            (true, true) => BindingStatus::ExpiredNonces,
            (true, false) => BindingStatus::ExpiredHomeNonceIndex,
            (false, true) => BindingStatus::ExpiredCareOfNonceIndex,
            _ if !authorization.verify(bytes) => return None,
            _ => match last.filter(|last| !update.sequence.is_after(*last)) {
                Some(last) => {
                    sequence = last;
                    BindingStatus::SequenceNumberOutOfWindow
                }
                None => self.always.unwrap_or(BindingStatus::Accepted),
            },
        };
        if status.is_accepted() {
            if deletes {
                self.bindings.remove(&home_address);
            } else {
                let end = self.now + update.lifetime.duration();
                self.bindings.insert(home_address, (care_of, update.sequence, end));
            }
        }
        let way = Addresses::new(self.address, addresses.source);
        let way = match addresses.home_address {
            Some(home_address) => way.with_type_2_routing(home_address),
            None => way,
        };
        let lifetime = update.lifetime;
        let flags = AcknowledgementFlags::default();
        let options = MobilityOptions::new();
        let answer = Message::BindingAcknowledgement(BindingAcknowledgement {
            status,
            flags,
            sequence,
            lifetime,
            options,
        });
        let keyless = matches!(status.number(), 136..=138);
        if keyless {
            return Some(emit(way, &answer));
        }
        let bytes =
            answer.emit_authorized(way.real_source(), way.real_destination(), &authorization).unwrap();
        Some((way, TransmitPayload::Mobility(bytes)))
    }

    /// Takes in what is no signalling (section 9.3.1).
    pub(crate) fn receive(&mut self, addresses: Addresses, number: u64) -> Option<Answer> {
        if let Some(home_address) = addresses.home_address
            && self.care_of(home_address) != Some(addresses.source)
        {
            return Some(self.unknown_binding(addresses.source, home_address));
        }
        self.data.push(number);
        None
    }

    pub(crate) fn unknown_binding(&self, destination: Ipv6Addr, home_address: Ipv6Addr) -> Answer {
        let error = BindingError {
            status: BindingErrorStatus::UnknownBinding,
            home_address,
            options: MobilityOptions::new(),
        };
        emit(Addresses::new(self.address, destination), &Message::BindingError(error))
    }

    pub(crate) fn refresh_request(&self, home_address: Ipv6Addr) -> Answer {
        let request = BindingRefreshRequest { options: MobilityOptions::new() };
        emit(Addresses::new(self.address, home_address), &Message::BindingRefreshRequest(request))
    }

    /// The way of a packet to `home_address` (section 9.3.2).
    pub(crate) fn way_to(&self, home_address: Ipv6Addr) -> Addresses {
        match self.care_of(home_address) {
            Some(care_of) => Addresses::new(self.address, care_of).with_type_2_routing(home_address),
            None => Addresses::new(self.address, home_address),
        }
    }
}
