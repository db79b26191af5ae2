//! What an assistant wants done, done by the ways that packets have through this host.

use careof_assist::{Action, PathId, ReadPacket};
use careof_base::Instant;
use careof_wire::IpHeader;

use super::assists::{Assists, Heading, Stored};
use super::error_reports::SegmentReport;

/// The ways of packets through this host, as the agent has decided.
pub(super) trait Ways {
    /// Why nothing can be sent any longer.
    type Error;

    /// Sends a datagram as if it went on now, by the path `via` if one is named, and in fragments of its tunnel of at most `fragments`
    /// bytes if that is said. Whether there was a way for it.
    ///
    /// # Errors
    /// Nothing can be sent any longer, as when the tunnel device is gone.
    fn send_on(
        &mut self,
        now: Instant,
        heading: Heading,
        datagram: &[u8],
        via: Option<PathId>,
        fragments: Option<u16>,
    ) -> Result<bool, Self::Error>;

    /// The path by which a datagram with this header leaves the host at present.
    fn present_path(&mut self, header: &IpHeader) -> Option<PathId>;

    /// How many bytes are added to it there.
    fn overhead(&self, header: &IpHeader) -> u16;

    /// Sends an ICMP error, unless there have been too many.
    fn report(&mut self, now: Instant, report: SegmentReport);
}

/// Does one thing that an assistant wants done.
pub(super) fn do_for_assist<W: Ways>(
    now: Instant,
    assists: &mut Assists,
    action: Action,
    ways: &mut W,
) -> Result<(), W::Error> {
    match action {
        Action::Release { token, via, keep } => {
            let Some(stored) = assists.release(now, token) else { return Ok(()) };
            let fragments = longest_fragments(now, assists, &stored, via, ways);
            let sent = ways.send_on(now, stored.heading, &stored.datagram, via, fragments);
            if keep {
                assists.put_back(token, stored);
            }
            if !sent? {
                assists.note_not_sent(now, token);
            }
        }
        Action::Discard { token, dropped } => {
            if let Some(reason) = dropped {
                assists.note_dropped(reason);
            }
            assists.take(token);
        }
        Action::Inject { header, segment, towards } => {
            let (datagram, heading) = assists.acknowledgement(now, &header, &segment, towards);
            ways.send_on(now, heading, &datagram, None, None)?;
        }
        Action::Unreachable { quoted, ports, seq } => {
            if let Some(report) = assists.unreachable(now, &quoted, ports, seq) {
                ways.report(now, report);
            }
        }
        Action::TooBig { quoted, ports, seq, mtu } => {
            if let Some(report) = assists.too_big(&quoted, ports, seq, mtu) {
                ways.report(now, report);
            }
        }
    }
    Ok(())
}

/// The longest fragments in which a stored packet may enter its tunnel, where that swallows what is larger.
fn longest_fragments(
    now: Instant,
    assists: &Assists,
    stored: &Stored,
    via: Option<PathId>,
    ways: &mut impl Ways,
) -> Option<u16> {
    // Fragments help in the tunnel only.
    if stored.heading == Heading::In || assists.config().black_hole.is_none() {
        return None;
    }
    let header = ReadPacket::of(&stored.datagram)?.header;
    let path = via.or_else(|| ways.present_path(&header))?;
    assists.longest_fragments(now, &header, path, ways.overhead(&header))
}
