//! What the counters of both ends of a path tell of one direction.

use core::time::Duration;

use careof_base::DataRate;

use crate::PathFlow;

/// Packets that a loss is told from.
const LOSS_SAMPLE: u32 = 20;
/// Bytes and time that a rate is told from.
const RATE_SAMPLE: (u64, Duration) = (10_000, Duration::from_millis(100));

/// What has passed in one direction between two marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    pub(crate) put_in: u32,
    pub(crate) taken_out: u32,
    pub(crate) bytes: u64,
    pub(crate) span: Duration,
}

impl Passage {
    /// A counter that began anew leaps.
    fn is_sound(self) -> bool {
        self.put_in < u32::MAX / 2 && self.bytes < u64::MAX / 2
    }

    /// Whether so many packets were put in that losses can be told.
    pub(crate) const fn tells_loss(self) -> bool {
        self.put_in >= LOSS_SAMPLE
    }

    /// What got through; `None` where too little did to tell.
    pub(crate) fn rate(self) -> Option<DataRate> {
        let (least, shortest) = RATE_SAMPLE;
        if !self.is_sound() || self.bytes < least || self.span < shortest {
            return None;
        }
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000 / self.span.as_nanos().max(1);
        Some(DataRate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    /// Enters it; whether it was enough to tell anything.
    pub(crate) fn enter(self, flow: &mut PathFlow) -> bool {
        if self.is_sound() && self.tells_loss() && self.taken_out < u32::MAX / 2 {
            let lost = u64::from(self.put_in.saturating_sub(self.taken_out)) * 1000 / u64::from(self.put_in);
            let lost = u16::try_from(lost).unwrap_or(1000);
            flow.loss_permille = Some(match flow.loss_permille {
                None => lost,
                Some(before) => (before * 3 + lost) / 4,
            });
        }
        flow.delivered = self.rate().or(flow.delivered);
        !self.is_sound() || self.tells_loss() || self.bytes >= RATE_SAMPLE.0
    }
}
