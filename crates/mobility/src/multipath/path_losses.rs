//! What a path loses of what it carries.

/// Packets of which losses are remembered, at least half of it.
const LOSS_MEMORY: u32 = 2048;
/// Lost packets that are no chance any more.
const NOTICED_LOSSES: u32 = 3;

/// What a path has lost while no queue stood before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    sent: u32,
    /// What was overtaken by a report is lost until the next one: less than nothing can have been lost of late.
    lost: i32,
}

impl Losses {
    pub(super) fn add(&mut self, sent: u32, arrived: u32) {
        self.sent = self.sent.saturating_add(sent);
        self.lost = self.lost.saturating_add_unsigned(sent).saturating_sub_unsigned(arrived);
        if self.sent > LOSS_MEMORY {
            *self = Self { sent: self.sent / 2, lost: self.lost / 2 };
        }
    }

    fn lost(self) -> u64 {
        u64::try_from(self.lost).unwrap_or_default()
    }

    /// Packets of a thousand; 0 where it may be chance.
    pub(super) fn permille(self) -> u64 {
        let lost = self.lost();
        if lost < u64::from(NOTICED_LOSSES) { 0 } else { lost * 1000 / u64::from(self.sent.max(1)) }
    }

    /// Whether nothing was sent that could be lost.
    pub(super) const fn are_unknown(self) -> bool {
        self.sent == 0
    }

    /// Whether these are more than twice those of `other`, chance aside: by two standard deviations of a count on either side.
    pub(super) fn are_twice(self, other: Self) -> bool {
        if other.sent == 0 {
            return false;
        }
        let least = self.lost().saturating_sub(2 * self.lost().isqrt());
        let most = other.lost() + 2 * (other.lost() + 1).isqrt();
        least * u64::from(other.sent) > 2 * most * u64::from(self.sent)
    }
}
