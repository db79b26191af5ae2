//! Loss on the wire: Bernoulli, and the two-state chain of Gilbert and Elliott.

use careof_base::{Probability, RandomStream};

use crate::config::Loss;

/// Decides for each packet, in the order in which they are sent, whether it arrives.
///
/// Each packet takes the same number of draws whatever its fate - none, one (Bernoulli) or two
/// (Gilbert-Elliott: the fate, then the step) - so that a changed probability does not shift the stream.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    law: Loss,
    stream: RandomStream,
    in_bad_state: bool,
}

impl LossProcess {
    pub(crate) fn new(law: Loss, stream: RandomStream) -> Self {
        Self { law, stream, in_bad_state: false }
    }

    /// Takes on another law. A chain keeps its state when the new law is a chain as well.
    pub(crate) fn set_law(&mut self, law: Loss) {
        self.law = law;
        self.in_bad_state &= matches!(law, Loss::GilbertElliott { .. });
    }

    /// Whether the next packet is lost.
    pub(crate) fn next_is_lost(&mut self) -> bool {
        match self.law {
            Loss::None => false,
            Loss::Bernoulli { p } => self.draw(p),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => {
                let (loss, leave) =
                    if self.in_bad_state { (loss_in_bad, bad_to_good) } else { (loss_in_good, good_to_bad) };
                let lost = self.draw(loss);
                self.in_bad_state ^= self.draw(leave);
                lost
            }
        }
    }

    /// One draw, also when the outcome is certain.
    fn draw(&mut self, p: Probability) -> bool {
        self.stream.unit() < p.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(value: f64) -> Probability {
        Probability::new(value).expect("a probability")
    }

    fn process(law: Loss) -> LossProcess {
        LossProcess::new(law, RandomStream::new(3, 0, "loss"))
    }

    #[test]
    fn the_bernoulli_loss_rate_is_within_five_sigma() {
        let n = 1_000_000;
        for rate in [0.001, 0.02, 0.5] {
            let mut process = process(Loss::Bernoulli { p: p(rate) });
            let lost = (0..n).filter(|_| process.next_is_lost()).count() as f64;
            let (mean, sigma) = (f64::from(n) * rate, (f64::from(n) * rate * (1.0 - rate)).sqrt());
            assert!((lost - mean).abs() < 5.0 * sigma, "{lost} lost at {rate}");
        }
    }

    #[test]
    fn certain_outcomes_are_certain() {
        let (mut never, mut always) =
            (process(Loss::Bernoulli { p: p(0.0) }), process(Loss::Bernoulli { p: p(1.0) }));
        assert!((0..10_000).all(|_| !never.next_is_lost() && always.next_is_lost()));
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        let (good_to_bad, bad_to_good) = (0.01, 0.25);
        let mut process = process(Loss::GilbertElliott {
            good_to_bad: p(good_to_bad),
            bad_to_good: p(bad_to_good),
            loss_in_good: p(0.0),
            loss_in_bad: p(1.0),
        });
        let n = 2_000_000;
        let (mut lost, mut bursts, mut before) = (0.0, 0.0, false);
        for _ in 0..n {
            let now = process.next_is_lost();
            lost += f64::from(u8::from(now));
            bursts += f64::from(u8::from(now && !before));
            before = now;
        }
        let share = good_to_bad / (good_to_bad + bad_to_good);
        // Packets of a chain with second eigenvalue r are worth (1 - r) / (1 + r) independent ones each.
        let r = 1.0 - good_to_bad - bad_to_good;
        let sigma = (share * (1.0 - share) / f64::from(n) * (1.0 + r) / (1.0 - r)).sqrt();
        assert!((lost / f64::from(n) - share).abs() < 5.0 * sigma, "loss rate {}", lost / f64::from(n));
        // Burst lengths are geometric: mean 1/q, standard deviation sqrt(1-q)/q.
        let length = lost / bursts;
        let sigma = (1.0 - bad_to_good).sqrt() / bad_to_good / f64::sqrt(bursts);
        assert!((length - 1.0 / bad_to_good).abs() < 5.0 * sigma, "burst length {length}");
    }

    #[test]
    fn a_chain_keeps_its_state_when_its_numbers_change_and_starts_anew_after_another_law() {
        let chain = |leave_bad, loss_in_bad| Loss::GilbertElliott {
            good_to_bad: p(1.0),
            bad_to_good: p(leave_bad),
            loss_in_good: p(0.0),
            loss_in_bad: p(loss_in_bad),
        };
        let mut process = process(chain(0.0, 1.0));
        assert!(!process.next_is_lost() && process.next_is_lost());
        process.set_law(chain(0.000_001, 1.0));
        assert!(process.next_is_lost());
        process.set_law(Loss::None);
        process.set_law(chain(0.0, 1.0));
        assert!(!process.next_is_lost() && process.next_is_lost());
    }

    #[test]
    fn both_states_of_the_chain_lose_at_their_own_rate() {
        let mut process = process(Loss::GilbertElliott {
            good_to_bad: p(0.05),
            bad_to_good: p(0.05),
            loss_in_good: p(0.1),
            loss_in_bad: p(0.5),
        });
        let n = 1_000_000;
        let lost = (0..n).filter(|_| process.next_is_lost()).count() as f64 / f64::from(n);
        // Half the time in each state; the band allows for the chain's correlation.
        assert!((lost - 0.3).abs() < 0.006, "{lost}");
    }
}
