//! What one end of a path says to the other of what has come by it: probe, answer and report in one.
//!
//! The body of a message of kind 5 ([`super::ShakeMessage`]):
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     Path      |A|E|H|  zero   |   Time of sending, upper 16   |
//! |             Time of sending, microseconds, lower 32           |
//! |                     Echo: time of sending                     |
//! |               Echo: held for so many microseconds             |
//! |                 Echo: transit, microseconds                   |
//! |          Mean variation of the transit, microseconds          |
//! |            Highest sequence number within the path            |
//! |                       Packets received                        |
//! |                      Bytes received (64)                      |
//! |                         Packets late                          |
//! |                  Incarnation of the sender                    |
//! |         Incarnation of the receiver; 0 while unknown          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A: it answers one, and is not answered itself. E: something has come by this path, and the four fields from *Echo* on tell of
//! the latest, packet or message. H: the highest sequence number is known. *Transit* is the time of arrival, by the clock of
//! whoever sends this message, less the time of sending that the packet told, modulo 2^32: clocks need not agree, for only
//! differences mean something. An *incarnation* is a number that an end of a tunnel draws when it begins: after a restart its clock and
//! its counts begin anew, and what the other end knows of the paths means nothing any more. *Packets late* are those of all paths that came after later ones of their flow were passed on. A
//! field that is not known is zero.

use crate::Error;
use crate::fixed::Fixed;

const ANSWER: u8 = 0x80;
const ECHO: u8 = 0x40;
const HIGHEST_KNOWN: u8 = 0x20;

mod at {
    pub(super) const PATH: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const SENT_AT_HIGH: usize = 2;
    pub(super) const SENT_AT: usize = 4;
    pub(super) const ECHO: usize = 8;
    pub(super) const HELD: usize = 12;
    pub(super) const TRANSIT: usize = 16;
    pub(super) const VARIATION: usize = 20;
    pub(super) const HIGHEST: usize = 24;
    pub(super) const PACKETS: usize = 28;
    pub(super) const BYTES: usize = 32;
    pub(super) const LATE: usize = 40;
    pub(super) const SENDER: usize = 44;
    pub(super) const RECEIVER: usize = 48;
    pub(super) const LEN: usize = 52;
}

/// The latest that has come by a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathEcho {
    /// The time of sending that it told, microseconds of its sender's clock.
    pub sent_at: u32,
    /// How long ago it came, microseconds.
    pub held: u32,
    /// Its time of arrival less its time of sending, microseconds, modulo 2^32.
    pub transit: u32,
    /// How far transits of successive packets are apart in the mean (RFC 3550 section 6.4.1), microseconds.
    pub variation: u32,
}

/// A probe of a path, or the answer to one, with what has come by the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathFeedback {
    /// The path, as both ends call it.
    pub path: u8,
    /// Whether it answers, and is not to be answered.
    pub answer: bool,
    /// When it was sent, microseconds of the sender's clock; wraps.
    pub sent_at: u32,
    /// The 16 bits above those: with them it does not wrap for nine years, so that an old message is told from a new one.
    pub sent_at_high: u16,
    /// The latest that has come; `None` when nothing has.
    pub echo: Option<PathEcho>,
    /// The highest sequence number within the path that has come; `None` when no packet has.
    pub highest: Option<u32>,
    /// Packets that have come; wraps.
    pub packets: u32,
    /// Bytes of these, without the tunnel's headers.
    pub bytes: u64,
    /// Packets of all paths that came after later ones of their flow were passed on; wraps.
    pub late: u32,
    /// The sender's incarnation; not 0.
    pub sender: u32,
    /// The receiver's, as the sender last heard; 0: it has not.
    pub receiver: u32,
}

impl PathFeedback {
    /// Bytes of the body.
    pub const LEN: usize = at::LEN;

    pub(super) fn emit(&self, bytes: &mut impl Extend<u8>) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.answer, ANSWER)
            | flag(self.echo.is_some(), ECHO)
            | flag(self.highest.is_some(), HIGHEST_KNOWN);
        let echo = self.echo.unwrap_or_default();
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::PATH }, 1>([self.path]);
        fixed.put::<{ at::FLAGS }, 1>([flags]);
        fixed.put::<{ at::SENT_AT_HIGH }, 2>(self.sent_at_high.to_be_bytes());
        fixed.put::<{ at::SENT_AT }, 4>(self.sent_at.to_be_bytes());
        fixed.put::<{ at::ECHO }, 4>(echo.sent_at.to_be_bytes());
        fixed.put::<{ at::HELD }, 4>(echo.held.to_be_bytes());
        fixed.put::<{ at::TRANSIT }, 4>(echo.transit.to_be_bytes());
        fixed.put::<{ at::VARIATION }, 4>(echo.variation.to_be_bytes());
        fixed.put::<{ at::HIGHEST }, 4>(self.highest.unwrap_or_default().to_be_bytes());
        fixed.put::<{ at::PACKETS }, 4>(self.packets.to_be_bytes());
        fixed.put::<{ at::BYTES }, 8>(self.bytes.to_be_bytes());
        fixed.put::<{ at::LATE }, 4>(self.late.to_be_bytes());
        fixed.put::<{ at::SENDER }, 4>(self.sender.to_be_bytes());
        fixed.put::<{ at::RECEIVER }, 4>(self.receiver.to_be_bytes());
        bytes.extend(fixed.bytes().iter().copied());
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        let (fixed, _) = Fixed::<{ at::LEN }>::split(body, "path feedback")?;
        let flags = fixed.u8::<{ at::FLAGS }>();
        let echo = PathEcho {
            sent_at: fixed.u32::<{ at::ECHO }>(),
            held: fixed.u32::<{ at::HELD }>(),
            transit: fixed.u32::<{ at::TRANSIT }>(),
            variation: fixed.u32::<{ at::VARIATION }>(),
        };
        Ok(Self {
            path: fixed.u8::<{ at::PATH }>(),
            answer: flags & ANSWER != 0,
            sent_at: fixed.u32::<{ at::SENT_AT }>(),
            sent_at_high: fixed.u16::<{ at::SENT_AT_HIGH }>(),
            echo: (flags & ECHO != 0).then_some(echo),
            highest: (flags & HIGHEST_KNOWN != 0).then(|| fixed.u32::<{ at::HIGHEST }>()),
            packets: fixed.u32::<{ at::PACKETS }>(),
            bytes: fixed.u64::<{ at::BYTES }>(),
            late: fixed.u32::<{ at::LATE }>(),
            sender: fixed.u32::<{ at::SENDER }>(),
            receiver: fixed.u32::<{ at::RECEIVER }>(),
        })
    }
}
