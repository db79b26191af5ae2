//! The TCP header as a plain value.

use core::fmt;

use crate::SeqNumber;

/// TCP control bits (RFC 9293 section 3.1, RFC 3168).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

crate::bits::set_of_bits!(Flags);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether they are those of a segment within a connection: ACK, and neither SYN nor RST.
    #[must_use]
    pub const fn are_of_a_stream(self) -> bool {
        self.0 & (Self::ACK.0 | Self::SYN.0 | Self::RST.0) == Self::ACK.0
    }
}

impl fmt::Display for Flags {
    /// As tcpdump prints them: `S`, `S.`, `.`, `P.`, `F.`, `R`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Self::SYN, "S"),
            (Self::FIN, "F"),
            (Self::RST, "R"),
            (Self::PSH, "P"),
            (Self::URG, "U"),
            (Self::ECE, "E"),
            (Self::CWR, "W"),
            (Self::ACK, "."),
        ] {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// The timestamps option (RFC 7323 section 3.2), in ticks of the sender's timestamp clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// `TSval`: the sender's clock when the segment left.
    pub value: u32,
    /// `TSecr`: the peer's clock, echoed; 0 when the ACK bit is not set.
    pub echo: u32,
}

/// Up to four blocks of the SACK option (RFC 2018 section 3), most recent first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    len: u8,
    blocks: [(SeqNumber, SeqNumber); 4],
}

impl SackBlocks {
    /// The most blocks that fit a header without timestamps.
    pub const CAPACITY: usize = 4;
    /// No block: the option is absent.
    pub const EMPTY: Self = Self { len: 0, blocks: [(SeqNumber(0), SeqNumber(0)); 4] };

    /// Adds the block `[left, right)`; returns `false` when the option is full.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = (left, right);
        self.len += 1;
        true
    }

    /// The blocks as `(left, right)`, `right` exclusive.
    #[must_use]
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether the option is absent.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// A TCP segment: its header, and how many bytes of data follow it.
///
/// The models work with lengths; whoever needs the bytes (a capture, the real network) brings or makes
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first byte of data (of the SYN, where it is set).
    pub seq: SeqNumber,
    /// Next sequence number expected from the peer; meaningful with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field as it stands in the header, not yet scaled.
    pub window: u16,
    /// Maximum segment size option, bytes; only in a SYN.
    pub mss: Option<u16>,
    /// Window scale option, shift count; only in a SYN.
    pub window_scale: Option<u8>,
    /// SACK-permitted option; only in a SYN.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// Bytes of data.
    pub payload_len: u16,
}

impl Segment {
    /// Bytes of a header without options.
    pub const HEADER_LEN: u16 = 20;
    /// The most bytes of options the Data Offset can tell.
    const MAX_OPTIONS_LEN: u16 = 40;

    /// Bytes of the options other than SACK, padded to a multiple of four.
    const fn options_len_without_sack(&self) -> u16 {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if self.timestamps.is_some() {
            len += 12;
        } else if self.sack_permitted {
            len += 4;
        }
        len
    }

    /// The first blocks of [`Segment::sack`], as many as the other options leave room for: three beside
    /// timestamps.
    #[must_use]
    pub fn sack_blocks_that_fit(&self) -> &[(SeqNumber, SeqNumber)] {
        let room = Self::MAX_OPTIONS_LEN - self.options_len_without_sack();
        let blocks = self.sack.as_slice();
        &blocks[..blocks.len().min(usize::from(room.saturating_sub(4) / 8))]
    }

    /// Bytes of the header with its options, padded to a multiple of four; 60 at most.
    ///
    /// The layout is that of Linux: maximum segment size 4, SACK-permitted and timestamps together 12,
    /// timestamps alone 12, SACK-permitted alone 4, window scale 4, and 4 + 8 n for n SACK blocks. SACK
    /// blocks that find no room beside the other options are left out.
    #[must_use]
    pub fn header_len(&self) -> u16 {
        if self.sack.is_empty() {
            return Self::HEADER_LEN + self.options_len_without_sack();
        }
        let sack = match self.sack_blocks_that_fit().len() as u16 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        Self::HEADER_LEN + self.options_len_without_sack() + sack
    }

    /// Sequence space the segment occupies: its data, and one each for SYN and FIN.
    #[must_use]
    pub const fn seq_len(&self) -> u32 {
        self.payload_len as u32
            + self.flags.contains(Flags::SYN) as u32
            + self.flags.contains(Flags::FIN) as u32
    }

    /// The sequence number after the segment.
    #[must_use]
    pub const fn end_seq(&self) -> SeqNumber {
        self.seq.plus(self.seq_len())
    }
}
