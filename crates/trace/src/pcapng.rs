//! The packets of a run as a pcapng capture (draft-ietf-opsawg-pcapng), for Wireshark, tshark and tcptrace.
//!
//! Written by ourselves: of the crates that write pcapng, `pcap-file` has been a release candidate for 3.0 for
//! years and `pcapng` was left in 2016; a capture needs four kinds of blocks, and these two hundred lines give
//! the same bytes for the same run on every machine. Section header, interface descriptions, enhanced packets and
//! interface statistics are all that is used; name resolution, secrets and custom blocks are left out.

use std::io::{self, Write};

use careof_base::Instant;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const EPB_PACKETID: u16 = 5;

/// Raw IP, version by the first nibble.
const LINKTYPE_RAW: u16 = 101;
/// Timestamps count 10^-9 s.
const NANOSECONDS: u8 = 9;
/// What Wireshark accepts of one packet.
const LONGEST_CAPTURE: usize = 262_144;

/// An interface of the [`PcapngWriter`] that gave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Which way a packet passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It came in from the link.
    In,
    /// It went out to the link.
    Out,
}

/// A packet seen at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// Where.
    pub interface: InterfaceId,
    /// When.
    pub time: Instant,
    /// Which way.
    pub direction: Direction,
    /// The number the trace knows the datagram by; written as `epb_packetid`, which ties sightings of one datagram
    /// at several interfaces together.
    pub packet: u64,
    /// The IP datagram.
    pub bytes: &'a [u8],
    /// A remark, such as why it was dropped here.
    pub comment: Option<&'a str>,
}

#[derive(Debug)]
struct Interface {
    /// Said of this interface, waiting for a packet to go with.
    comments: Vec<String>,
}

/// A finished block that waits for its turn in time.
#[derive(Debug)]
struct Waiting {
    time: Instant,
    begin: usize,
    end: usize,
}

/// Writes a pcapng section with one interface for each end of a link.
///
/// Sightings may be handed in slightly out of order (a link that is evaluated lazily learns late what it
/// dropped). They are kept until [`flush`](Self::flush) is told up to when no more will come, and written in
/// order of time, those of one instant in the order they were handed in.
///
/// Times count from the beginning of the run, which the file calls 1970-01-01 00:00:00 UTC.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    interfaces: Vec<Interface>,
    latest: Instant,
    /// Bytes kept of a packet.
    snap_length: Option<u32>,
    waiting: Vec<Waiting>,
    /// The blocks of `waiting`.
    blocks: Vec<u8>,
    /// An interface of another capture was named; the next call that can say so does.
    misused: bool,
}

fn put_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&length.to_le_bytes());
    block.extend(value.iter().take(usize::from(length)));
    pad(block, usize::from(length));
}

/// Pads what was just written to a multiple of four bytes.
fn pad(block: &mut Vec<u8>, written: usize) {
    block.resize(block.len() + written.wrapping_neg() % 4, 0);
}

fn put_text(block: &mut Vec<u8>, code: u16, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end > 0 {
        put_option(block, code, &text.as_bytes()[..end]);
    }
}

/// Appends a block with the body that `fill` writes.
fn put_block(blocks: &mut Vec<u8>, block_type: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = blocks.len();
    blocks.extend_from_slice(&block_type.to_le_bytes());
    blocks.extend_from_slice(&[0; 4]);
    fill(blocks);
    let length = u32::try_from(blocks.len() - begin + 4).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = blocks.get_mut(begin + 4..begin + 8) {
        place.copy_from_slice(&length);
    }
    blocks.extend_from_slice(&length);
}

fn put_time(block: &mut Vec<u8>, time: Instant) {
    let nanos = time.as_nanos();
    block.extend_from_slice(&((nanos >> 32) as u32).to_le_bytes());
    block.extend_from_slice(&(nanos as u32).to_le_bytes());
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a section written by `application`, for example `careof 0.1.0`.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn new(mut out: W, application: &str) -> io::Result<Self> {
        let mut block = Vec::new();
        put_block(&mut block, SECTION_HEADER, |block| {
            block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
            block.extend_from_slice(&1_u16.to_le_bytes());
            block.extend_from_slice(&0_u16.to_le_bytes());
            // The section's length is not told: it ends with the file.
            block.extend_from_slice(&u64::MAX.to_le_bytes());
            put_text(block, SHB_USERAPPL, application);
            put_option(block, OPT_END, &[]);
        });
        out.write_all(&block)?;
        Ok(Self {
            out,
            interfaces: Vec::new(),
            latest: Instant::ZERO,
            snap_length: None,
            waiting: Vec::new(),
            blocks: Vec::new(),
            misused: false,
        })
    }

    /// Keeps only the first `bytes` of each packet from now on; the file still says how long it was. To be set
    /// before the interfaces, which tell it to the reader.
    pub fn set_snap_length(&mut self, bytes: u32) {
        self.snap_length = Some(bytes);
    }

    /// Describes an interface; packets of it may follow. `name` is `link@node`, `description` may be empty.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn add_interface(&mut self, name: &str, description: &str) -> io::Result<InterfaceId> {
        let id = u32::try_from(self.interfaces.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many interfaces in one capture"))?;
        let mut block = Vec::new();
        put_block(&mut block, INTERFACE_DESCRIPTION, |block| {
            block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
            block.extend_from_slice(&[0; 2]);
            // 0: nothing is cut off.
            block.extend_from_slice(&self.snap_length.unwrap_or(0).to_le_bytes());
            put_text(block, IF_NAME, name);
            put_text(block, IF_DESCRIPTION, description);
            put_option(block, IF_TSRESOL, &[NANOSECONDS]);
            put_option(block, OPT_END, &[]);
        });
        self.out.write_all(&block)?;
        self.interfaces.push(Interface { comments: Vec::new() });
        Ok(InterfaceId(id))
    }

    fn interface(&mut self, id: InterfaceId) -> Option<&mut Interface> {
        let known = usize::try_from(id.0).ok().is_some_and(|index| index < self.interfaces.len());
        self.misused |= !known;
        self.interfaces.get_mut(usize::try_from(id.0).ok()?)
    }

    /// Records a packet, to be written by a later [`flush`](Self::flush).
    ///
    /// A packet at an interface that another capture gave out is not recorded, and `flush` says so.
    pub fn capture(&mut self, capture: Capture<'_>) {
        let Some(interface) = self.interface(capture.interface) else { return };
        let comments = std::mem::take(&mut interface.comments);
        let longest = self.snap_length.map_or(LONGEST_CAPTURE, |bytes| bytes as usize).min(LONGEST_CAPTURE);
        let captured = &capture.bytes[..capture.bytes.len().min(longest)];
        let begin = self.blocks.len();
        put_block(&mut self.blocks, ENHANCED_PACKET, |block| {
            block.extend_from_slice(&capture.interface.0.to_le_bytes());
            put_time(block, capture.time);
            for length in [captured.len(), capture.bytes.len()] {
                block.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
            }
            block.extend_from_slice(captured);
            pad(block, captured.len());
            for comment in &comments {
                put_text(block, OPT_COMMENT, comment);
            }
            if let Some(comment) = capture.comment {
                put_text(block, OPT_COMMENT, comment);
            }
            let direction: u32 = match capture.direction {
                Direction::In => 0b01,
                Direction::Out => 0b10,
            };
            put_option(block, EPB_FLAGS, &direction.to_le_bytes());
            put_option(block, EPB_PACKETID, &capture.packet.to_le_bytes());
            put_option(block, OPT_END, &[]);
        });
        self.latest = self.latest.max(capture.time);
        self.waiting.push(Waiting { time: capture.time, begin, end: self.blocks.len() });
    }

    /// Says something that happened `at` an instant at an interface, such as a phase of a handover.
    ///
    /// pcapng has no block for a remark without a packet that tools show, so it becomes a comment of the next packet
    /// recorded at that interface. Without one it becomes a comment of the interface's statistics at the end.
    pub fn comment_next(&mut self, interface: InterfaceId, at: Instant, text: &str) {
        let Some(interface) = self.interface(interface) else { return };
        interface.comments.push(format!("{text} (at {at})"));
        self.latest = self.latest.max(at);
    }

    /// Writes what was seen before `before`. No packet with an earlier time may be recorded afterwards.
    ///
    /// # Errors
    /// What the writer reports; `InvalidInput` when a packet or a comment was meant for another capture.
    pub fn flush(&mut self, before: Instant) -> io::Result<()> {
        if !self.waiting.is_sorted_by_key(|block| block.time) {
            self.waiting.sort_by_key(|block| block.time);
        }
        let due = self.waiting.partition_point(|block| block.time < before);
        self.write_first(due)?;
        if std::mem::take(&mut self.misused) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an interface of another capture was named",
            ));
        }
        Ok(())
    }

    fn write_first(&mut self, due: usize) -> io::Result<()> {
        for block in self.waiting.drain(..due) {
            self.out.write_all(self.blocks.get(block.begin..block.end).unwrap_or_default())?;
        }
        let mut kept = Vec::new();
        for block in &mut self.waiting {
            let begin = kept.len();
            kept.extend_from_slice(self.blocks.get(block.begin..block.end).unwrap_or_default());
            (block.begin, block.end) = (begin, kept.len());
        }
        self.blocks = kept;
        Ok(())
    }

    /// Writes everything, comments that found no packet included, and hands the writer back.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn finish(mut self) -> io::Result<W> {
        self.flush(Instant::MAX)?;
        self.write_first(self.waiting.len())?;
        for (id, interface) in (0_u32..).zip(&self.interfaces) {
            if interface.comments.is_empty() {
                continue;
            }
            let mut block = Vec::new();
            put_block(&mut block, INTERFACE_STATISTICS, |block| {
                block.extend_from_slice(&id.to_le_bytes());
                put_time(block, self.latest);
                for comment in &interface.comments {
                    put_text(block, OPT_COMMENT, comment);
                }
                put_option(block, OPT_END, &[]);
            });
            self.out.write_all(&block)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
