//! Duplicate address detection (RFC 4862 section 5.4), enhanced by nonces (RFC 7527).

use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::Nonce;

use super::neighbor_cache::MAX_MULTICAST_SOLICIT;

/// MAX_RTR_SOLICITATION_DELAY (RFC 4861 section 10), which bounds the random delay of detection too.
pub(super) const MAX_RTR_SOLICITATION_DELAY: Duration = Duration::from_secs(1);

/// Nonces that are remembered: a probe that is looped back later than this many others counts as another node's.
const MAX_NONCES: usize = 8;

/// How addresses are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectionConfig {
    /// DupAddrDetectTransmits: solicitations for each address; 0 takes every address for unique (RFC 4862 section 5.1). Of a
    /// care-of address detection must not be left out (section 5.4).
    pub transmits: u8,
    /// The first solicitation waits a random time up to this, and so does that for an address that many nodes make at the same time.
    /// RFC 4862 section 5.4.2 has 1 s; a mobile node that moves leaves it out (RFC 4429 section 3.3).
    pub max_delay: Duration,
    /// Whether solicitations carry a nonce, so that one that is looped back is not taken for a duplicate (RFC 7527).
    pub enhanced: bool,
    /// Whether addresses of prefixes are used while they are verified (RFC 4429).
    pub optimistic: bool,
}

impl Default for DetectionConfig {
    /// One solicitation, after up to 1 s, with a nonce; addresses wait until they are verified.
    fn default() -> Self {
        Self { transmits: 1, max_delay: MAX_RTR_SOLICITATION_DELAY, enhanced: true, optimistic: false }
    }
}

/// What is to be done next for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A solicitation goes out; `first`: the node joins the groups before.
    Solicit { first: bool, nonce: Option<Nonce> },
    /// Nobody else has the address.
    Unique,
}

/// What a solicitation for a tentative address, from the unspecified address, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is the node's own, looped back.
    Own,
    /// Another node wants the address.
    Duplicate,
}

/// The detection for one address.
#[derive(Clone, Debug)]
pub(super) struct Detection {
    left: u8,
    sent: bool,
    next: Instant,
    enhanced: bool,
    /// After the last solicitation this time passes instead of RetransTimer.
    wait: Option<Duration>,
    /// The latest nonces sent.
    nonces: Vec<[u8; Nonce::MIN_LEN]>,
    /// Whether a probe has been looped back since the last time that more were added.
    looped_back: bool,
}

impl Detection {
    /// Begins at `now`, after a random delay up to `delay`.
    pub(super) fn new(
        now: Instant,
        config: &DetectionConfig,
        delay: Duration,
        wait: Option<Duration>,
        random: &mut Randomness,
    ) -> Self {
        Self {
            left: config.transmits,
            sent: false,
            next: now + random.duration_up_to(delay),
            enhanced: config.enhanced,
            wait,
            nonces: Vec::new(),
            looped_back: false,
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.next
    }

    /// What is due by `now`. After [`Step::Unique`] the detection is over.
    pub(super) fn poll(&mut self, now: Instant, retrans: Duration, random: &mut Randomness) -> Option<Step> {
        if self.next > now {
            return None;
        }
        if self.left == 0 && core::mem::take(&mut self.looped_back) {
            // RFC 7527 section 4.1: what was sent did not necessarily reach anybody.
            self.left = MAX_MULTICAST_SOLICIT;
        }
        if self.left == 0 {
            return Some(Step::Unique);
        }
        self.left -= 1;
        let first = !core::mem::replace(&mut self.sent, true);
        self.next = now + if self.left == 0 { self.wait.unwrap_or(retrans) } else { retrans };
        let nonce = self.enhanced.then(|| self.draw_nonce(random));
        Some(Step::Solicit { first, nonce })
    }

    fn draw_nonce(&mut self, random: &mut Randomness) -> Nonce {
        let [_, _, nonce @ ..] = random.next_u64().to_be_bytes();
        if self.nonces.len() >= MAX_NONCES {
            self.nonces.remove(0);
        }
        self.nonces.push(nonce);
        Nonce::new(nonce)
    }

    /// A solicitation for the address has come from the unspecified address.
    pub(super) fn heard(&mut self, nonce: Option<&Nonce>) -> Heard {
        match nonce {
            Some(nonce) if self.nonces.iter().any(|own| own == nonce.bytes()) => {
                self.looped_back = true;
                Heard::Own
            }
            _ => Heard::Duplicate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    const RETRANS: Duration = Duration::from_secs(1);

    fn random() -> Randomness {
        RandomStream::new(1, 0, "detection").into()
    }

    fn begin(config: &DetectionConfig, random: &mut Randomness) -> Detection {
        Detection::new(Instant::ZERO, config, config.max_delay, None, random)
    }

    #[test]
    fn an_address_is_unique_when_the_retransmission_time_passes_in_silence() {
        let mut random = random();
        let mut detection = begin(&DetectionConfig::default(), &mut random);
        let first = detection.deadline();
        assert!(first <= Instant::from_secs(1));
        assert!(matches!(
            detection.poll(first, RETRANS, &mut random),
            Some(Step::Solicit { first: true, nonce: Some(_) })
        ));
        assert_eq!(detection.poll(first, RETRANS, &mut random), None);
        assert_eq!(detection.deadline(), first + RETRANS);
        assert_eq!(detection.poll(first + RETRANS, RETRANS, &mut random), Some(Step::Unique));
    }

    #[test]
    fn as_many_solicitations_go_out_as_configured() {
        let mut random = random();
        for transmits in [0, 1, 3] {
            let config = DetectionConfig { transmits, enhanced: false, ..DetectionConfig::default() };
            let mut detection = begin(&config, &mut random);
            let mut sent = 0;
            while let Some(Step::Solicit { first, nonce }) =
                detection.poll(detection.deadline(), RETRANS, &mut random)
            {
                assert_eq!((first, nonce), (sent == 0, None));
                sent += 1;
            }
            assert_eq!(sent, transmits);
        }
    }

    #[test]
    fn a_probe_that_is_looped_back_is_followed_by_three_more() {
        let mut random = random();
        let mut detection = begin(&DetectionConfig::default(), &mut random);
        let mut sent = 0;
        loop {
            match detection.poll(detection.deadline(), RETRANS, &mut random) {
                Some(Step::Solicit { nonce, .. }) => {
                    sent += 1;
                    // The first two come back.
                    if sent <= 2 {
                        assert_eq!(detection.heard(nonce.as_ref()), Heard::Own);
                    }
                }
                step => break assert_eq!(step, Some(Step::Unique)),
            }
        }
        assert_eq!(sent, 1 + 3 + 3);
        assert!(detection.nonces.len() <= MAX_NONCES);
    }

    #[test]
    fn another_nonce_or_none_is_another_node() {
        let mut random = random();
        let mut detection = begin(&DetectionConfig::default(), &mut random);
        // Before one has been sent as well as after.
        assert_eq!(detection.heard(Some(&Nonce::new([7; 6]))), Heard::Duplicate);
        let _ = detection.poll(detection.deadline(), RETRANS, &mut random);
        assert_eq!(detection.heard(Some(&Nonce::new([7; 6]))), Heard::Duplicate);
        assert_eq!(detection.heard(None), Heard::Duplicate);
    }
}
