//! One link's packets as Mahimahi's `mm-link --uplink-log` writes them, for the tools that read such logs.
//!
//! A line is a time in milliseconds and one of: `# bytes` (the link could have carried so much), `+ bytes` (a
//! packet arrived at the queue) and `- bytes delay` (a packet left the link, `delay` ms after it arrived).
//! Mahimahi's link has no propagation delay of its own (`mm-delay` does that); here `delay` includes it. Drops are
//! comments, because the programs that draw such logs give up at a line of a fourth kind.

use std::collections::BTreeMap;
use std::io::{self, Write};

use careof_base::{DataRate, Duration, Instant};

use crate::event::{Body, Event, EventKind, LinkId};

/// Bytes of one opportunity to deliver: an Ethernet frame, as Mahimahi counts it.
const OPPORTUNITY_BYTES: u64 = 1504;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// The log of one one-way link, fed with the events of the run.
///
/// Memory grows with the packets inside the link.
#[derive(Debug)]
pub struct MahimahiLog<W> {
    out: W,
    link: LinkId,
    rate: DataRate,
    /// When the last opportunity passed, or the rate was last changed.
    opportunity: Instant,
    arrived: BTreeMap<u64, Instant>,
}

impl<W: Write> MahimahiLog<W> {
    /// A log of `link`, which is called `name` and has the capacity `rate` from the beginning of the run.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn new(mut out: W, link: LinkId, name: &str, rate: DataRate) -> io::Result<Self> {
        let name = name.replace(['\n', '\r'], " ");
        writeln!(out, "# mahimahi mm-link ({name})")?;
        writeln!(out, "# queue: careof")?;
        writeln!(out, "# base timestamp: 0")?;
        Ok(Self { out, link, rate, opportunity: Instant::ZERO, arrived: BTreeMap::new() })
    }

    /// The link's capacity is `rate` from `now` on.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn set_rate(&mut self, now: Instant, rate: DataRate) -> io::Result<()> {
        self.opportunities(now)?;
        self.rate = rate;
        self.opportunity = self.opportunity.max(now);
        Ok(())
    }

    /// Writes an event if it is a packet of this link.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn record(&mut self, event: &Event) -> io::Result<()> {
        let (Body::Packet(packet) | Body::Dropped { packet, .. }) = event.body else { return Ok(()) };
        if event.link != self.link.0 {
            return Ok(());
        }
        self.opportunities(event.time)?;
        let now = millis(event.time);
        match event.kind {
            EventKind::PacketEnqueued => {
                self.arrived.insert(packet.packet, event.time);
                writeln!(self.out, "{now} + {}", packet.size_bytes)
            }
            EventKind::PacketDelivered => {
                let arrived = self.arrived.remove(&packet.packet).unwrap_or(event.time);
                writeln!(self.out, "{now} - {} {}", packet.size_bytes, now - millis(arrived).min(now))
            }
            _ => {
                self.arrived.remove(&packet.packet);
                writeln!(self.out, "# dropped at {now}: {} bytes", packet.size_bytes)
            }
        }
    }

    /// Accounts for the capacity up to the end of the run and hands the writer back.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn finish(mut self, now: Instant) -> io::Result<W> {
        self.opportunities(now)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn opportunities(&mut self, now: Instant) -> io::Result<()> {
        // Anything faster than one opportunity a nanosecond has no capacity worth logging.
        let Some(gap) = self.rate.time_for_bits(OPPORTUNITY_BYTES * 8).filter(|gap| *gap > Duration::ZERO)
        else {
            return Ok(());
        };
        while self.opportunity + gap <= now && self.opportunity < Instant::MAX {
            self.opportunity += gap;
            writeln!(self.out, "{} # {OPPORTUNITY_BYTES}", millis(self.opportunity))?;
        }
        Ok(())
    }
}

const fn millis(time: Instant) -> u64 {
    time.as_nanos() / NANOS_PER_MILLI
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PacketRecord;

    fn packet(packet: u64, size_bytes: u32) -> PacketRecord {
        PacketRecord { packet, size_bytes, ..PacketRecord::default() }
    }

    fn lines(log: Vec<u8>) -> Vec<String> {
        String::from_utf8(log)
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(String::from)
            .collect()
    }

    #[test]
    fn logs_arrivals_departures_with_their_delay_and_drops() {
        let mut log = MahimahiLog::new(Vec::new(), LinkId(1), "gsm.down", DataRate::ZERO).unwrap();
        for event in [
            Event::packet_enqueued(Instant::from_millis(3), LinkId(1), None, packet(7, 1500)),
            Event::packet_enqueued(Instant::from_millis(4), LinkId(0), None, packet(8, 1500)),
            Event::packet_dropped(Instant::from_millis(5), LinkId(1), None, packet(9, 40), "queue-full"),
            Event::packet_delivered(Instant::from_millis(10), LinkId(1), None, packet(7, 1500)),
            Event::flow_end(
                Instant::from_millis(11),
                crate::NodeId(0),
                crate::FlowId(0),
                crate::Detail::NONE,
            ),
        ] {
            log.record(&event).unwrap();
        }
        assert!(log.arrived.is_empty());
        let log = log.finish(Instant::from_millis(20)).unwrap();
        assert!(str::from_utf8(&log).unwrap().contains("\n# dropped at 5: 40 bytes\n"));
        assert_eq!(lines(log), ["3 + 1500", "10 - 1500 7"]);
    }

    #[test]
    fn opportunities_add_up_to_the_rate() {
        let rate = DataRate::from_bits_per_second(1504 * 8 * 100);
        let mut log = MahimahiLog::new(Vec::new(), LinkId(0), "a.up", rate).unwrap();
        log.set_rate(Instant::from_secs(1), DataRate::ZERO).unwrap();
        log.set_rate(Instant::from_secs(2), rate).unwrap();
        let lines = lines(log.finish(Instant::from_secs(3)).unwrap());
        assert_eq!(lines.len(), 200);
        assert_eq!(lines.first().unwrap(), "10 # 1504");
        assert_eq!(lines.last().unwrap(), "3000 # 1504");
    }
}
