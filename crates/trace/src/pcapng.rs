//! The packets of a run as a pcapng capture (draft-ietf-opsawg-pcapng), for Wireshark, tshark and tcptrace.
//!
//! Written by ourselves: of the crates that write pcapng, `pcap-file` has been a release candidate for 3.0 for
//! years and `pcapng` was left in 2016; a capture needs four kinds of blocks, and these two hundred lines give
//! the same bytes for the same run on every machine. Section header, interface descriptions, enhanced packets and
//! interface statistics are all that is used; name resolution, secrets and custom blocks are left out.
//!
//! What becomes of a packet is known after it was written. [`annotate`] then copies the finished file and adds
//! comments to packets by their numbers.

use std::io::{self, Read, Write};

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
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

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
    /// in several files together.
    pub packet: u64,
    /// The IP datagram.
    pub bytes: &'a [u8],
    /// How many of these bytes are kept at most; the file says how long the datagram was.
    pub snap_length: u32,
}

/// What a [`PcapngWriter`] did with the packets of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interface {
    /// Packets written.
    written: u64,
    /// Packets seen that were not to be written.
    left_out: u64,
}

/// Something that waits for its turn in time.
#[derive(Debug)]
struct Waiting {
    time: Instant,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A packet, its bytes from `begin` to `end` of the waiting ones.
    Packet { interface: u32, direction: Direction, packet: u64, original: u32, begin: usize, end: usize },
    /// A remark for the next packet.
    Comment(String),
}

/// Writes a pcapng section of one or more interfaces.
///
/// Sightings may be handed in slightly out of order. They are kept until [`flush`](Self::flush) is told up to when no
/// more will come, and written in order of time, those of one instant in the order they were handed in.
///
/// Times count from the beginning of the run, which the file calls 1970-01-01 00:00:00 UTC.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    interfaces: Vec<Interface>,
    latest: Instant,
    waiting: Vec<Waiting>,
    /// The bytes of the packets in `waiting`.
    bytes: Vec<u8>,
    /// Remarks that wait for a packet.
    comments: Vec<String>,
    /// The block being put together.
    block: Vec<u8>,
    /// An interface of another capture was named; the next call that can say so does.
    misused: bool,
}

/// What a packet takes in the file besides its bytes and comments.
const PACKET_OVERHEAD: u64 = 56;

/// How many bytes of the file a packet takes of which `captured` bytes are kept, without comments.
#[must_use]
pub fn packet_bytes(captured: u32) -> u64 {
    PACKET_OVERHEAD + u64::from(captured).next_multiple_of(4)
}

/// How many bytes of the file a comment takes.
#[must_use]
pub fn comment_bytes(text: &str) -> u64 {
    4 + (text.len() as u64).next_multiple_of(4)
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
            waiting: Vec::new(),
            bytes: Vec::new(),
            comments: Vec::new(),
            block,
            misused: false,
        })
    }

    /// Describes an interface; packets of it may follow. `name` is `link@node`, `description` may be empty.
    /// `snap_length` is what the file says is kept of each packet at most; `None` says that nothing is cut off.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn add_interface(
        &mut self,
        name: &str,
        description: &str,
        snap_length: Option<u32>,
    ) -> io::Result<InterfaceId> {
        let id = u32::try_from(self.interfaces.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many interfaces in one capture"))?;
        let mut block = Vec::new();
        put_block(&mut block, INTERFACE_DESCRIPTION, |block| {
            block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
            block.extend_from_slice(&[0; 2]);
            // 0: nothing is cut off.
            block.extend_from_slice(&snap_length.unwrap_or(0).to_le_bytes());
            put_text(block, IF_NAME, name);
            put_text(block, IF_DESCRIPTION, description);
            put_option(block, IF_TSRESOL, &[NANOSECONDS]);
            put_option(block, OPT_END, &[]);
        });
        self.out.write_all(&block)?;
        self.interfaces.push(Interface::default());
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
        interface.written += 1;
        let longest = LONGEST_CAPTURE.min(capture.snap_length as usize);
        let captured = &capture.bytes[..capture.bytes.len().min(longest)];
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(captured);
        self.wait(
            capture.time,
            What::Packet {
                interface: capture.interface.0,
                direction: capture.direction,
                packet: capture.packet,
                original: u32::try_from(capture.bytes.len()).unwrap_or(u32::MAX),
                begin,
                end: self.bytes.len(),
            },
        );
    }

    /// Counts a packet that was seen at an interface and is not to be in the file.
    pub fn leave_out(&mut self, interface: InterfaceId, time: Instant) {
        let Some(interface) = self.interface(interface) else { return };
        interface.left_out += 1;
        self.latest = self.latest.max(time);
    }

    /// Says something that happened `at` an instant, such as a phase of a handover.
    ///
    /// pcapng has no block for a remark without a packet that tools show, so it becomes a comment of the first packet
    /// seen at that instant or later, whatever its interface. Without one it becomes a comment of the statistics at
    /// the end.
    pub fn comment(&mut self, at: Instant, text: &str) {
        self.wait(at, What::Comment(format!("{text} (at {at})")));
    }

    /// Says something at the end of the file, in the statistics of the first interface.
    pub fn comment_at_end(&mut self, text: &str) {
        self.comments.push(text.to_owned());
    }

    fn wait(&mut self, time: Instant, what: What) {
        self.latest = self.latest.max(time);
        self.waiting.push(Waiting { time, what });
    }

    /// Writes what was seen before `before`. No packet with an earlier time may be recorded afterwards.
    ///
    /// # Errors
    /// What the writer reports; `InvalidInput` when a packet was meant for another capture.
    pub fn flush(&mut self, before: Instant) -> io::Result<()> {
        if !self.waiting.is_sorted_by_key(|waiting| waiting.time) {
            self.waiting.sort_by_key(|waiting| waiting.time);
        }
        let due = self.waiting.partition_point(|waiting| waiting.time < before);
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
        for Waiting { time, what } in self.waiting.drain(..due) {
            let (interface, direction, packet, original, begin, end) = match what {
                What::Comment(text) => {
                    self.comments.push(text);
                    continue;
                }
                What::Packet { interface, direction, packet, original, begin, end } => {
                    (interface, direction, packet, original, begin, end)
                }
            };
            let captured = self.bytes.get(begin..end).unwrap_or_default();
            let comments = &self.comments;
            self.block.clear();
            put_block(&mut self.block, ENHANCED_PACKET, |block| {
                block.extend_from_slice(&interface.to_le_bytes());
                put_time(block, time);
                block.extend_from_slice(&u32::try_from(captured.len()).unwrap_or(u32::MAX).to_le_bytes());
                block.extend_from_slice(&original.to_le_bytes());
                block.extend_from_slice(captured);
                pad(block, captured.len());
                for comment in comments {
                    put_text(block, OPT_COMMENT, comment);
                }
                let direction: u32 = match direction {
                    Direction::In => 0b01,
                    Direction::Out => 0b10,
                };
                put_option(block, EPB_FLAGS, &direction.to_le_bytes());
                put_option(block, EPB_PACKETID, &packet.to_le_bytes());
                put_option(block, OPT_END, &[]);
            });
            self.comments.clear();
            self.out.write_all(&self.block)?;
        }
        // The bytes of packets that still wait move to the front.
        let mut kept = 0;
        for waiting in &mut self.waiting {
            if let What::Packet { begin, end, .. } = &mut waiting.what {
                let length = *end - *begin;
                self.bytes.copy_within(*begin..*end, kept);
                (*begin, *end) = (kept, kept + length);
                kept += length;
            }
        }
        self.bytes.truncate(kept);
        Ok(())
    }

    /// Writes everything and then, for each interface, how many packets were seen and how many of them are not in the
    /// file; hands the writer back.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn finish(mut self) -> io::Result<W> {
        self.flush(Instant::MAX)?;
        self.write_first(self.waiting.len())?;
        let mut comments = std::mem::take(&mut self.comments);
        for (id, interface) in (0_u32..).zip(&self.interfaces) {
            let mut block = Vec::new();
            put_block(&mut block, INTERFACE_STATISTICS, |block| {
                block.extend_from_slice(&id.to_le_bytes());
                put_time(block, self.latest);
                for comment in comments.drain(..) {
                    put_text(block, OPT_COMMENT, &comment);
                }
                put_option(block, ISB_IFRECV, &(interface.written + interface.left_out).to_le_bytes());
                put_option(block, ISB_IFDROP, &interface.left_out.to_le_bytes());
                put_option(block, OPT_END, &[]);
            });
            self.out.write_all(&block)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Copies a capture of a [`PcapngWriter`] and adds comments to packets: `comments` is asked for each packet of the file, by
/// its number and in order, and appends what there is to say to the list.
///
/// # Errors
/// What `from` and `to` report; `InvalidData` when `from` is no such capture.
pub fn annotate(
    mut from: impl Read,
    mut to: impl Write,
    mut comments: impl FnMut(u64, &mut Vec<String>),
) -> io::Result<()> {
    let (mut block, mut longer) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    let mut head = [0; 8];
    loop {
        match from.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        let [kind, length] =
            [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        block.clear();
        block.extend_from_slice(&head);
        let rest = u64::from(length).checked_sub(8).ok_or_else(not_ours)?;
        if (&mut from).take(rest).read_to_end(&mut block)? as u64 != rest {
            return Err(not_ours());
        }
        if kind == ENHANCED_PACKET {
            let (options, packet) = find_packet_id(&block).ok_or_else(not_ours)?;
            comments(packet, &mut found);
            if !found.is_empty() {
                longer.clear();
                put_block(&mut longer, kind, |longer| {
                    longer.extend_from_slice(&block[8..options]);
                    for comment in found.drain(..) {
                        put_text(longer, OPT_COMMENT, &comment);
                    }
                    longer.extend_from_slice(&block[options..block.len() - 4]);
                });
                std::mem::swap(&mut block, &mut longer);
            }
        }
        to.write_all(&block)?;
    }
    to.flush()
}

fn not_ours() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the capture is not as it was written")
}

/// Where the options of a packet's block begin, and the number of the packet.
fn find_packet_id(block: &[u8]) -> Option<(usize, u64)> {
    let captured = u32::from_le_bytes(block.get(20..24)?.try_into().ok()?) as usize;
    let options = 28 + captured.next_multiple_of(4);
    let mut at = options;
    loop {
        let option = block.get(at..at + 4)?;
        let length = usize::from(u16::from_le_bytes([option[2], option[3]]));
        match u16::from_le_bytes([option[0], option[1]]) {
            EPB_PACKETID => {
                let value = block.get(at + 4..at + 12)?.try_into().ok()?;
                return Some((options, u64::from_le_bytes(value)));
            }
            OPT_END => return None,
            _ => at += 4 + length.next_multiple_of(4),
        }
    }
}
