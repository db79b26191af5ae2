//! Bursts and gaps of missing packets, by the definitions of RFC 3611 section 4.7.2.

/// Packets received in a row that end a burst, *Gmin*: the recommended value.
const GMIN: u64 = 16;

/// Packets that are missing close to each other, and may become a burst.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: u64,
    end: u64,
    missing: u64,
}

/// Takes packets in their order, each there or missing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BurstMeter {
    packets: u64,
    missing: u64,
    /// Runs of missing packets.
    runs: u64,
    open: Option<Open>,
    totals: Bursts,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bursts {
    /// Packets that were looked at.
    pub(crate) expected: u64,
    /// Bursts: at least two missing packets with fewer than [`GMIN`] others between them.
    pub(crate) bursts: u64,
    burst_packets: u64,
    burst_missing: u64,
    /// Packets that were missing outside of bursts.
    gap_missing: u64,
    runs: u64,
}

impl BurstMeter {
    /// The next packet: whether it is there.
    pub(crate) fn add(&mut self, is_there: bool) {
        let place = self.packets;
        self.packets += 1;
        if is_there {
            return;
        }
        self.missing += 1;
        match &mut self.open {
            Some(open) if place - open.end <= GMIN => {
                self.runs += u64::from(place - open.end > 1);
                open.missing += 1;
                open.end = place;
            }
            _ => {
                self.runs += 1;
                self.close();
                self.open = Some(Open { begin: place, end: place, missing: 1 });
            }
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.missing == 1 {
            // By itself between packets that came, it belongs to a gap.
            self.totals.gap_missing += 1;
            return;
        }
        self.totals.bursts += 1;
        self.totals.burst_packets += open.end - open.begin + 1;
        self.totals.burst_missing += open.missing;
    }

    /// What is found if all packets from now on come.
    pub(crate) fn finish(&self) -> Bursts {
        let mut meter = *self;
        meter.close();
        Bursts { expected: meter.packets, runs: meter.runs, ..meter.totals }
    }
}

impl Bursts {
    /// Packets that were missing.
    pub(crate) const fn missing(&self) -> u64 {
        self.burst_missing + self.gap_missing
    }

    /// `count` of the packets that were looked at.
    pub(crate) fn part(&self, count: u64) -> Option<f64> {
        part(count, self.expected)
    }

    /// The part of the packets in bursts that was missing.
    pub(crate) fn burst_density(&self) -> Option<f64> {
        part(self.burst_missing, self.burst_packets)
    }

    /// The part of the packets in gaps that was missing.
    pub(crate) fn gap_density(&self) -> Option<f64> {
        part(self.gap_missing, self.expected - self.burst_packets)
    }

    /// Packets of a burst, mean.
    pub(crate) fn mean_burst(&self) -> Option<f64> {
        part(self.burst_packets, self.bursts)
    }

    /// Packets of a gap, mean: there is one before each burst, and one behind the last.
    pub(crate) fn mean_gap(&self) -> Option<f64> {
        let gaps = self.expected - self.burst_packets;
        if self.expected == 0 { None } else { part(gaps, self.bursts + 1) }
    }

    /// How long runs of missing packets are, mean, by how long they would be if each packet was missing by itself with the
    /// same probability (*BurstR*, ITU-T G.107 section 7.5); never below 1.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let run = part(self.missing(), self.runs)?;
        let loss = self.part(self.missing())?;
        Some((run * (1.0 - loss)).max(1.0))
    }
}

fn part(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(packets: &str) -> Bursts {
        let mut meter = BurstMeter::default();
        packets.chars().for_each(|packet| meter.add(packet == '1'));
        meter.finish()
    }

    #[test]
    fn the_example_of_the_rfc_comes_out_as_it_says() {
        // RFC 3611 section 4.7.2, with the last packet that its text speaks of and its figure lacks: packets of 10 ms, a burst
        // of 120 ms and density 0.33, gaps of 230 and 290 ms and density 0.04.
        let found = of("11110111111111111111111X111X1011110111111111111111111X1111111111");
        assert_eq!((found.expected, found.bursts, found.mean_burst()), (64, 1, Some(12.0)));
        assert_eq!(found.mean_gap(), Some((23.0 + 29.0) / 2.0));
        assert_eq!(found.burst_density().map(|part| (part * 100.0).round()), Some(33.0));
        assert_eq!(found.gap_density().map(|part| (part * 100.0).round()), Some(4.0));
    }

    #[test]
    fn sixteen_packets_in_a_row_part_two_bursts_and_fifteen_do_not() {
        let apart = |received: usize| of(&alloc::format!("00{}00", "1".repeat(received)));
        assert_eq!((apart(15).bursts, apart(15).mean_burst()), (1, Some(19.0)));
        assert_eq!((apart(16).bursts, apart(16).mean_burst()), (2, Some(2.0)));
    }

    #[test]
    fn the_burst_ratio_is_that_of_the_lengths_of_runs() {
        // Four missing of 20, in two runs: 2 / (1 / (1 - 0.2)).
        assert_eq!(of("11110011111111100111").ratio(), Some(1.6));
        assert_eq!(of("11111111101111111111").ratio(), Some(1.0), "not below 1");
        assert_eq!(of("1111").ratio(), None);
        assert_eq!((of("").ratio(), of("").mean_gap()), (None, None));
    }
}
