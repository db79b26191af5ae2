//! The packets that what was written makes, before they are cut into segments (Linux 6.1, `tcp_sendmsg_locked`).
//!
//! The kernel fills packets of many segments, as far as half of the largest window the peer has offered allows, and
//! sends them piece by piece. Where one ends a piece is smaller, and the last may wait for more. What the application writes
//! at once is packed at once; of that, what the send buffer would not have had room for yet is packed anew when the path
//! takes smaller segments or the peer's window larger packets.

use alloc::collections::VecDeque;

/// Packets of the same size, which are many in a row: bytes, how many.
#[derive(Clone, Copy, Debug)]
struct Run {
    len: u32,
    count: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    runs: VecDeque<Run>,
    /// Bytes in all of them.
    packed: u64,
    /// Bytes packed since the sender was made to send.
    since_push: u64,
    /// Bytes sent in all, and up to the end of the last packet.
    sent: u64,
    last_end: u64,
    /// Where in the stream the last push was forced, and by how many bytes since the one before.
    pushed: u64,
    interval: u64,
    /// The largest window that the peer had offered when packets were filled last.
    offered: u32,
}

/// What there is to send next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) len: u32,
    /// Nothing follows.
    pub(super) last: bool,
}

impl Packets {
    pub(super) fn head(&self) -> Option<Head> {
        let run = self.runs.front()?;
        Some(Head { len: run.len, last: self.runs.len() == 1 && run.count == 1 })
    }

    /// Whether packets may be larger than they were when the peer had not offered as much as `offered` yet; asked once.
    #[inline]
    pub(super) fn is_outgrown(&mut self, offered: u32) -> bool {
        if offered == self.offered {
            return false;
        }
        let before = core::mem::replace(&mut self.offered, offered);
        self.packed > 0 && before / 2 < super::transmit::LARGEST_PACKET as u32
    }

    /// Bytes in packets.
    pub(super) fn packed(&self) -> u64 {
        self.packed
    }

    /// Bytes of `unsent` that are not in a packet yet. What was discarded is taken out.
    pub(super) fn missing(&mut self, unsent: u64) -> u64 {
        self.keep(unsent);
        unsent - self.packed
    }

    /// Keeps at most the first `bytes` bytes in packets.
    pub(super) fn keep(&mut self, bytes: u64) {
        while self.packed > bytes {
            let Some(last) = self.runs.back_mut() else { break };
            let excess = self.packed - bytes;
            let len = u64::from(last.len);
            let whole = (excess / len.max(1)).min(last.count);
            if whole > 0 {
                last.count -= whole;
                self.packed -= whole.saturating_mul(len);
                if last.count == 0 {
                    self.runs.pop_back();
                }
            } else {
                last.count -= 1;
                let rest = last.len - excess as u32;
                if last.count == 0 {
                    self.runs.pop_back();
                }
                self.runs.push_back(Run { len: rest, count: 1 });
                self.packed -= excess;
            }
        }
    }

    /// Fills the last packet up to `goal` bytes, or begins another, with up to `bytes`; returns how many it took, and
    /// whether that packet is full.
    pub(super) fn fill(&mut self, bytes: u64, goal: u32) -> (u64, bool) {
        let room = match self.runs.back() {
            Some(last) if last.count == 1 && last.len < goal => goal - last.len,
            _ => 0,
        };
        let taken = u32::try_from(bytes).unwrap_or(u32::MAX).min(if room > 0 { room } else { goal });
        let len = match self.runs.back_mut() {
            Some(last) if room > 0 => {
                last.len += taken;
                last.len
            }
            _ => {
                self.runs.push_back(Run { len: taken, count: 1 });
                taken
            }
        };
        self.join();
        self.packed += u64::from(taken);
        self.since_push = self.since_push.saturating_add(u64::from(taken));
        (u64::from(taken), len >= goal)
    }

    /// Packs all but what does not fill a packet of `goal` bytes.
    /// After each `half_window` bytes a packet ends with a push.
    pub(super) fn fill_all(&mut self, bytes: u64, goal: u32, half_window: u32) {
        self.interval = u64::from(half_window);
        let mut rest = bytes;
        if self.runs.back().is_some_and(|last| last.count == 1 && last.len < goal) {
            rest -= self.fill(rest, goal).0;
        }
        let count = rest / u64::from(goal.max(1));
        if count > 0 {
            self.runs.push_back(Run { len: goal, count });
            self.join();
            let whole = count * u64::from(goal);
            self.packed = self.packed.saturating_add(whole);
            rest -= whole;
        }
        if rest > 0 {
            self.fill(rest, goal);
        }
        self.since_push = 0;
    }

    /// Full packets of the same size are one run.
    fn join(&mut self) {
        let count = self.runs.len();
        if count < 2 {
            return;
        }
        let last = self.runs[count - 1];
        let before = &mut self.runs[count - 2];
        if before.len == last.len {
            before.count = before.count.saturating_add(last.count);
            self.runs.pop_back();
        }
    }

    /// The first packet takes up to `amount` bytes from the one behind it (`tcp_grow_skb` of Linux 6.18).
    pub(super) fn grow(&mut self, amount: u32) {
        let Some(first) = self.runs.front().copied() else { return };
        let Some(next) =
            (if first.count > 1 { Some(first.len) } else { self.runs.get(1).map(|run| run.len) })
        else {
            return;
        };
        let taken = amount.min(next);
        if taken == 0 {
            return;
        }
        self.take_first();
        self.take_first();
        if next > taken {
            self.runs.push_front(Run { len: next - taken, count: 1 });
        }
        self.runs.push_front(Run { len: first.len.saturating_add(taken), count: 1 });
    }

    /// One packet less in the first run.
    fn take_first(&mut self) {
        let Some(first) = self.runs.front_mut() else { return };
        first.count -= 1;
        if first.count == 0 {
            self.runs.pop_front();
        }
    }

    /// The sender was made to send if more than `half_window` bytes were packed since it was; returns whether.
    pub(super) fn force(&mut self, half_window: u32) -> bool {
        let forced = self.since_push > u64::from(half_window);
        if forced {
            self.since_push = 0;
            self.pushed = self.sent.saturating_add(self.packed);
        }
        forced
    }

    /// `bytes` of the first packet were sent. Returns whether they end with a push that was forced.
    pub(super) fn sent(&mut self, bytes: u32) -> bool {
        let Some(first) = self.runs.front_mut() else { return false };
        self.sent = self.sent.saturating_add(u64::from(bytes));
        let rest = first.len.saturating_sub(bytes);
        self.packed -= u64::from(bytes.min(first.len)).min(self.packed);
        self.take_first();
        if rest > 0 {
            self.runs.push_front(Run { len: rest, count: 1 });
            return false;
        }
        let forced_within = self.pushed > self.last_end && self.pushed <= self.sent;
        self.last_end = self.sent;
        if !forced_within && self.interval > 0 && self.sent.saturating_sub(self.pushed) > self.interval {
            self.pushed = self.sent;
            return true;
        }
        forced_within
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn lengths(packets: &Packets) -> Vec<(u32, u64)> {
        packets.runs.iter().map(|run| (run.len, run.count)).collect()
    }

    #[test]
    fn what_is_written_fills_packets_and_the_last_grows() {
        let mut packets = Packets::default();
        assert_eq!(packets.missing(250), 250);
        assert_eq!(packets.fill(250, 100), (100, true));
        packets.fill_all(150, 100, 1_000);
        assert_eq!(lengths(&packets), [(100, 2), (50, 1)]);
        assert_eq!(packets.missing(280), 30);
        assert_eq!(packets.fill(30, 100), (30, false));
        packets.sent(40);
        assert_eq!(lengths(&packets), [(60, 1), (100, 1), (80, 1)]);
        assert!(!packets.head().unwrap().last);
        // Discarded: all but 75 bytes.
        assert_eq!(packets.missing(75), 0);
        assert_eq!(lengths(&packets), [(60, 1), (15, 1)]);
        packets.sent(60);
        assert!(packets.head().unwrap().last);
    }

    #[test]
    fn packets_are_outgrown_once_by_each_larger_window_until_they_are_as_large_as_they_get() {
        let mut packets = Packets::default();
        assert!(!packets.is_outgrown(65_535));
        packets.fill_all(400_000, 31_856, 32_767);
        assert!(!packets.is_outgrown(65_535));
        assert!(packets.is_outgrown(262_144));
        // What is in the send buffer stays; behind it packets are larger.
        packets.keep(40_000);
        let missing = packets.missing(400_000);
        packets.fill_all(missing, 65_160, 131_072);
        assert_eq!(lengths(&packets), [(31_856, 1), (65_160, 5), (42_344, 1)]);
        assert!(!packets.is_outgrown(524_288));
    }

    #[test]
    fn an_endless_flow_is_packed_at_once() {
        let mut packets = Packets::default();
        packets.fill_all(u64::MAX, 31_856, 32_767);
        assert_eq!(packets.missing(u64::MAX), 0);
        assert!(!packets.sent(31_856));
        assert_eq!(packets.missing(u64::MAX), 31_856);
        assert_eq!(packets.runs.len(), 2);
        // Every second packet ends with a push.
        assert!(packets.sent(31_856) && !packets.sent(31_856) && packets.sent(31_856));
    }

    #[test]
    fn a_packet_grows_by_what_the_one_behind_it_has_and_no_further() {
        let mut packets = Packets::default();
        packets.fill_all(250, 100, 1_000);
        packets.grow(30);
        assert_eq!(lengths(&packets), [(130, 1), (70, 1), (50, 1)]);
        // The second is eaten up; what is behind it is left alone.
        packets.grow(100);
        assert_eq!(lengths(&packets), [(200, 1), (50, 1)]);
        packets.grow(0);
        packets.grow(60);
        assert_eq!(lengths(&packets), [(250, 1)]);
        packets.grow(10);
        assert_eq!((lengths(&packets), packets.packed()), ([(250, 1)].into(), 250));
    }
}
