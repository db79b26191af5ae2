//! The correspondent node's side of return routability: node keys, nonces, and the tokens made of them (RFC 6275 sections 5.2 and
//! 9.4). It remembers nothing of mobile nodes.

use alloc::collections::VecDeque;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::mip6::{
    BindingManagementKey, BindingStatus, KeygenToken, NodeKey, Nonce, NonceIndex, NonceIndices,
};

/// MAX_NONCE_LIFETIME (RFC 6275 section 12): no nonce is accepted for longer after its first use.
const MAX_NONCE_LIFETIME: Duration = Duration::from_secs(240);
/// MAX_TOKEN_LIFETIME (RFC 6275 section 12): every token is accepted for as long.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(210);
/// For how long a nonce is used to make tokens (RFC 6275 section 5.2.7).
const NONCE_INTERVAL: Duration =
    Duration::from_secs(MAX_NONCE_LIFETIME.as_secs() - MAX_TOKEN_LIFETIME.as_secs());

/// A nonce with the node key of its time, so that the index names both (RFC 6275 section 5.2.7).
#[derive(Debug)]
struct Generation {
    index: NonceIndex,
    nonce: Nonce,
    key: NodeKey,
    /// When the first token was made with it.
    first_used: Instant,
}

impl Generation {
    /// When it is accepted no longer.
    fn ends(&self) -> Instant {
        self.first_used + MAX_NONCE_LIFETIME
    }
}

/// The nonces that are accepted, eight at most. A new one is made when a token is asked for and the last one has served its time.
#[derive(Debug, Default)]
pub(super) struct ReturnRoutability {
    /// The oldest first.
    generations: VecDeque<Generation>,
}

/// The key of a Binding Update.
#[derive(Debug)]
pub(super) struct RecoveredKey {
    pub(super) key: BindingManagementKey,
    /// Until when the update could be repeated: then one of its nonces ends.
    pub(super) until: Instant,
}

impl ReturnRoutability {
    /// A home keygen token, and the nonce it is made with.
    pub(super) fn home_token(
        &mut self,
        now: Instant,
        random: &mut Randomness,
        home_address: Ipv6Addr,
    ) -> (NonceIndex, KeygenToken) {
        let generation = self.current(now, random);
        (generation.index, generation.key.home_keygen_token(home_address, generation.nonce))
    }

    /// A care-of keygen token, and the nonce it is made with.
    pub(super) fn care_of_token(
        &mut self,
        now: Instant,
        random: &mut Randomness,
        care_of_address: Ipv6Addr,
    ) -> (NonceIndex, KeygenToken) {
        let generation = self.current(now, random);
        (generation.index, generation.key.care_of_keygen_token(care_of_address, generation.nonce))
    }

    /// The key of a Binding Update for these addresses; without a care-of address, of one that deletes a binding.
    ///
    /// # Errors
    /// With which status the update is refused, when a nonce is not accepted any longer.
    pub(super) fn key(
        &self,
        now: Instant,
        indices: NonceIndices,
        home_address: Ipv6Addr,
        care_of_address: Option<Ipv6Addr>,
    ) -> Result<RecoveredKey, BindingStatus> {
        let home = self.find(now, indices.home);
        let Some(care_of_address) = care_of_address else {
            let home = home.ok_or(BindingStatus::ExpiredHomeNonceIndex)?;
            let key =
                BindingManagementKey::for_deletion(home.key.home_keygen_token(home_address, home.nonce));
            return Ok(RecoveredKey { key, until: home.ends() });
        };
        match (home, self.find(now, indices.care_of)) {
            (Some(home), Some(care_of)) => {
                let key = BindingManagementKey::new(
                    home.key.home_keygen_token(home_address, home.nonce),
                    care_of.key.care_of_keygen_token(care_of_address, care_of.nonce),
                );
                Ok(RecoveredKey { key, until: home.ends().min(care_of.ends()) })
            }
            (None, Some(_)) => Err(BindingStatus::ExpiredHomeNonceIndex),
            (Some(_), None) => Err(BindingStatus::ExpiredCareOfNonceIndex),
            (None, None) => Err(BindingStatus::ExpiredNonces),
        }
    }

    fn find(&self, now: Instant, index: NonceIndex) -> Option<&Generation> {
        self.generations.iter().find(|generation| generation.index == index && now < generation.ends())
    }

    /// The nonce to make tokens with.
    fn current(&mut self, now: Instant, random: &mut Randomness) -> &Generation {
        while self.generations.front().is_some_and(|oldest| oldest.ends() <= now) {
            self.generations.pop_front();
        }
        let is_serving = |last: &Generation| now < last.first_used + NONCE_INTERVAL;
        let serving = match self.generations.pop_back() {
            Some(last) if is_serving(&last) => last,
            Some(last) => {
                let index = NonceIndex(last.index.0.wrapping_add(1));
                self.generations.push_back(last);
                Generation::new(now, index, random)
            }
            // After a restart nobody's old index should mean another nonce.
            None => Generation::new(now, NonceIndex(random.next_u64() as u16), random),
        };
        let at = self.generations.len();
        self.generations.push_back(serving);
        &self.generations[at]
    }
}

impl Generation {
    fn new(now: Instant, index: NonceIndex, random: &mut Randomness) -> Self {
        let nonce = Nonce(random.next_u64().to_be_bytes());
        let mut key = [0; 20];
        for bytes in key.chunks_mut(8) {
            let number = random.next_u64().to_be_bytes();
            bytes.copy_from_slice(&number[..bytes.len()]);
        }
        Self { index, nonce, key: NodeKey(key), first_used: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7);

    fn random() -> Randomness {
        RandomStream::new(1, 0, "return routability").into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1_000 + seconds)
    }

    #[test]
    fn tokens_make_the_key_that_is_found_again_from_their_indices() {
        let (mut routability, mut random) = (ReturnRoutability::default(), random());
        let (home, home_token) = routability.home_token(at(0), &mut random, HOME);
        let (care_of, care_of_token) = routability.care_of_token(at(100), &mut random, CARE_OF);
        assert_ne!(home, care_of);
        let indices = NonceIndices { home, care_of };
        let found = routability.key(at(200), indices, HOME, Some(CARE_OF)).unwrap();
        assert!(found.key == BindingManagementKey::new(home_token, care_of_token));
        assert_eq!(found.until, at(240));
        let other = routability.key(at(200), indices, CARE_OF, Some(HOME)).unwrap();
        assert!(other.key != found.key);
        let deletion = routability.key(at(200), indices, HOME, None).unwrap();
        assert!(deletion.key == BindingManagementKey::for_deletion(home_token));
    }

    #[test]
    fn a_token_lasts_210_seconds_and_no_nonce_more_than_240() {
        let (mut routability, mut random) = (ReturnRoutability::default(), random());
        let (early, _) = routability.home_token(at(0), &mut random, HOME);
        let just_before = Instant::from_millis(1_029_999);
        let (late, _) = routability.home_token(just_before, &mut random, HOME);
        assert_eq!(early, late, "a nonce serves for 30 s");
        let (next, _) = routability.care_of_token(at(30), &mut random, CARE_OF);
        assert_eq!(next.0, early.0.wrapping_add(1));
        let status = |now, home, care_of| {
            routability.key(now, NonceIndices { home, care_of }, HOME, Some(CARE_OF)).err()
        };
        assert_eq!(status(just_before + MAX_TOKEN_LIFETIME, early, next), None);
        assert_eq!(status(at(240), early, next), Some(BindingStatus::ExpiredHomeNonceIndex));
        assert_eq!(status(at(240), next, early), Some(BindingStatus::ExpiredCareOfNonceIndex));
        assert_eq!(status(at(270), early, next), Some(BindingStatus::ExpiredNonces));
        let deletion =
            |home| routability.key(at(240), NonceIndices { home, care_of: early }, HOME, None).err();
        assert_eq!(deletion(next), None, "the care-of nonce index is not looked at");
        assert_eq!(deletion(early), Some(BindingStatus::ExpiredHomeNonceIndex));
    }

    #[test]
    fn no_more_nonces_are_kept_than_are_accepted_however_often_tokens_are_asked_for() {
        let (mut routability, mut random) = (ReturnRoutability::default(), random());
        for seconds in 0..2_000 {
            let (index, _) = routability.home_token(at(seconds), &mut random, HOME);
            assert!(routability.generations.len() <= 8);
            let distinct = routability.generations.iter().filter(|g| g.index == index).count();
            assert_eq!(distinct, 1);
        }
        let (_, old) = routability.home_token(at(2_000), &mut random, HOME);
        let (_, new) = routability.home_token(at(2_030), &mut random, HOME);
        assert!(old != new);
    }
}
