//! What has passed in tunnels since somebody last looked, and how many datagrams that was.

use careof_assist::PathId;

use super::decisions::Traffic;

/// What has passed by the paths of a mobile node.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed(Vec<(PathId, Traffic, Traffic)>);

impl Passed {
    /// All of it since this was last asked: by which path, so much out, so much in.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (PathId, Traffic, Traffic)> + '_ {
        self.0.drain(..)
    }

    /// Something was put into the tunnel on a path, or taken out of it.
    pub(super) fn note(&mut self, path: PathId, put_in: bool, packets: u64, bytes: u64) {
        let at = match self.0.iter().position(|(known, ..)| *known == path) {
            Some(at) => at,
            None => {
                self.0.push((path, Traffic::default(), Traffic::default()));
                self.0.len() - 1
            }
        };
        if let Some((_, sent, received)) = self.0.get_mut(at) {
            if put_in { sent } else { received }.note(packets, bytes);
        }
    }
}

/// How many datagrams the kernel has put together into one of this length, if they were as long as `mtu` lets them be.
pub(super) fn datagrams_in(len: usize, mtu: u16) -> u64 {
    /// Of IP and TCP; options of TCP make no difference that shows.
    const HEADERS: usize = 40;
    let (payload, each) = (len.saturating_sub(HEADERS), usize::from(mtu).saturating_sub(HEADERS).max(1));
    payload.div_ceil(each).max(1) as u64
}

#[cfg(test)]
mod tests {
    use careof_mobility::v4::InterfaceId;

    use super::*;

    const fn path(number: u16) -> PathId {
        PathId::Interface(InterfaceId(number))
    }

    #[test]
    fn what_was_put_together_counts_as_what_it_was_put_together_from() {
        // Segments of 1428 bytes with timestamps, of 1440 without.
        for (len, datagrams) in
            [(20, 1), (52, 1), (1480, 1), (52 + 2 * 1428, 2), (52 + 45 * 1428, 45), (40 + 44 * 1440, 44)]
        {
            assert_eq!(datagrams_in(len, 1480), datagrams, "{len}");
        }
        assert_eq!(datagrams_in(1000, 0), 960, "a nonsensical length divides by nothing");
    }

    #[test]
    fn each_path_has_its_own_sums() {
        let mut passed = Passed::default();
        passed.note(path(1), true, 1, 100);
        passed.note(path(0), false, 2, 200);
        passed.note(path(1), true, 1, 10);
        let traffic = |packets, bytes| Traffic { packets, bytes };
        let sums: Vec<_> = passed.take().collect();
        assert_eq!(
            sums,
            [(path(1), traffic(2, 110), traffic(0, 0)), (path(0), traffic(0, 0), traffic(2, 200))]
        );
        assert_eq!(passed.take().count(), 0);
    }
}
