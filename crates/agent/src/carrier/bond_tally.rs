//! What all tunnels over several paths of an agent have counted, also those that have ended.

use careof_mobility::multipath::{Bond, BondDrop};

use super::AgentCounters;

/// Sums over tunnels. With those that have ended in them they never fall, whatever mobile nodes a configuration leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BondTally {
    offered: u64,
    stranded: u64,
    arrived: u64,
    released: u64,
    duplicates: u64,
    /// Packets that waited for earlier ones when their tunnel ended.
    abandoned: u64,
    messages_dropped: [u64; BondDrop::ALL.len()],
}

impl BondTally {
    /// Adds what a tunnel has counted so far.
    pub(super) fn add<P: Clone>(&mut self, bond: &Bond<P>) {
        let (sent, came) = (bond.counters(), bond.resequencer().counters());
        let sums = [
            (&mut self.offered, sent.offered),
            (&mut self.stranded, sent.stranded),
            (&mut self.arrived, came.arrived),
            (&mut self.released, came.released),
            (&mut self.duplicates, came.duplicates),
        ];
        let messages = self.messages_dropped.iter_mut().zip(BondDrop::ALL.map(|reason| sent.dropped(reason)));
        for (sum, count) in sums.into_iter().chain(messages) {
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds what a tunnel has counted that ends. What waits in it goes nowhere.
    pub(super) fn end<P: Clone>(&mut self, bond: &Bond<P>) {
        self.add(bond);
        self.abandoned = self.abandoned.saturating_add(bond.resequencer().holds().0 as u64);
    }

    /// Tells the sums under their names.
    pub(super) fn count(&self, counters: &mut AgentCounters) {
        let packets = [
            ("offered", self.offered),
            ("stranded", self.stranded),
            ("arrived", self.arrived),
            ("released", self.released),
            ("duplicate", self.duplicates),
            ("abandoned", self.abandoned),
        ];
        counters.extend(packets.map(|(what, count)| (format!("multipath-packets-{what}"), count)));
        let messages = BondDrop::ALL.into_iter().zip(self.messages_dropped);
        counters
            .extend(messages.map(|(reason, count)| (format!("dropped-multipath-{}", reason.name()), count)));
    }
}

#[cfg(test)]
mod tests {
    use careof_base::{Instant, RandomStream};
    use careof_mobility::multipath::alliance::ClusterKey;
    use careof_mobility::multipath::{BondConfig, PathConfig, PathId};
    use careof_wire::mip4::Spi;
    use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

    use super::*;

    /// An end at which two packets of a flow have come, the second of them before one that is missing.
    fn waiting() -> Bond<u8> {
        let key = ClusterKey { spi: Spi(256), key: b"sixteen bytes ok".to_vec() };
        let mut bond = Bond::new(BondConfig::new(key), RandomStream::new(1, 0, "end"));
        let path = PathId::new(0).unwrap();
        let other = PathId::new(1).unwrap();
        for path in [path, other] {
            bond.set_path(Instant::ZERO, path, PathConfig::default());
        }
        for sequence in [1, 3] {
            let header = MultipathHeader {
                flow: 7,
                sequence,
                split: true,
                path: path.number(),
                path_sequence: sequence,
                sent_at: sequence,
                payload: MultipathPayload::Ipv4,
            };
            assert!(bond.receive(Instant::from_millis(1), &header, 100, sequence as u8).is_none());
        }
        assert!(bond.handle_message(Instant::from_millis(1), Some(path), b"no message").is_err());
        bond
    }

    #[test]
    fn what_ended_tunnels_have_counted_stays() {
        let (first, second) = (waiting(), waiting());
        let held = first.resequencer().holds().0 as u64;
        let mut tally = BondTally::default();
        tally.end(&first);
        let mut counters = AgentCounters::new();
        tally.count(&mut counters);
        assert_eq!(
            (counters["multipath-packets-arrived"], counters["multipath-packets-abandoned"]),
            (2, held)
        );
        assert_eq!(counters["dropped-multipath-malformed"], 1);
        // Another tunnel goes on.
        tally.add(&second);
        tally.count(&mut counters);
        let packets = |what: &str| counters[&format!("multipath-packets-{what}")];
        assert_eq!((packets("arrived"), packets("abandoned")), (4, held));
        assert_eq!(packets("released") + packets("duplicate") + 2 * held, 4);
        assert_eq!(counters["dropped-multipath-malformed"], 2);
    }
}
