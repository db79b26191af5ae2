//! What one read of a TUN device gives, and the datagrams it is made of.

use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;

use super::layout::{self, LeftChecksum, put, tcp, udp};
use super::vnet_header::{SegmentationKind, VnetHeader};
use super::{checksum, layout::u32_at};

/// The longest packet the kernel hands out, which is what fits an IPv4 datagram.
const LONGEST: usize = 65_535;

/// What a host sent through its TUN device at once: a datagram, or several of one flow of TCP or UDP as one
/// super-packet, to be taken out of it one by one.
///
/// It is room to be used again and again, and remembers what has not been taken yet.
pub struct Frame {
    /// The header of the device, then the packet.
    buffer: Box<[u8]>,
    /// Where the packet starts and ends.
    start: usize,
    end: usize,
    header: Option<Ipv4Header>,
    cut: Option<Cut>,
    /// How much of the payload has been taken; of a single datagram all or nothing.
    taken: usize,
    is_done: bool,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    transport: Transport,
    /// Bytes of the IP header.
    header_len: usize,
    /// Bytes of IP and transport header.
    headers_len: usize,
    /// Bytes of payload in each datagram but the last; not 0.
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
}

/// Why a frame is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("shorter than its header")]
    Truncated,
    #[error("a checksum beyond its end")]
    Checksum,
    #[error("a super-packet of a kind that was not asked for")]
    Kind,
    #[error("a super-packet that cannot be cut")]
    Headers,
}

impl Default for Frame {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Frame")
            .field("header", &self.header)
            .field("len", &self.bytes().len())
            .field("cut", &self.cut)
            .field("taken", &self.taken)
            .field("is_done", &self.is_done)
            .finish()
    }
}

impl Frame {
    /// An empty frame with room for any.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: vec![0; VnetHeader::LEN + LONGEST].into(),
            start: 0,
            end: 0,
            header: None,
            cut: None,
            taken: 0,
            is_done: true,
        }
    }

    /// The IP header that its datagrams have but for lengths and identifications, `None` for what is no IPv4.
    /// Who it is from and to, and DF, decide for all of them.
    #[must_use]
    pub const fn header(&self) -> Option<Ipv4Header> {
        self.header
    }

    /// The packet as it was read; in a super-packet, checksums and lengths are those of no datagram.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Bytes of the longest datagram in it.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.len_behind(0)
    }

    /// Whether every datagram has been taken, as in a frame that nothing has been read into.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Bytes of the datagrams that have not been taken, each with its headers.
    #[must_use]
    pub fn bytes_left(&self) -> usize {
        let len = self.bytes().len();
        match (self.is_done, self.cut) {
            (true, _) => 0,
            (false, None) => len,
            (false, Some(cut)) => {
                let payload = len.saturating_sub(cut.headers_len + self.taken);
                payload + payload.div_ceil(cut.size) * cut.headers_len
            }
        }
    }

    /// Gives up what has not been taken; returns the number of datagrams that were left.
    pub fn discard(&mut self) -> usize {
        let left = match (self.is_done, self.cut) {
            (true, _) => 0,
            (false, None) => 1,
            (false, Some(cut)) => {
                self.bytes().len().saturating_sub(cut.headers_len + self.taken).div_ceil(cut.size)
            }
        };
        self.is_done = true;
        left
    }

    /// Bytes of the datagram that is next to be taken.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        (!self.is_done).then(|| self.len_behind(self.taken))
    }

    /// Bytes of the datagram whose payload starts at `taken`.
    fn len_behind(&self, taken: usize) -> usize {
        let len = self.bytes().len();
        match self.cut {
            None => len,
            Some(cut) => cut.headers_len + len.saturating_sub(cut.headers_len + taken).min(cut.size),
        }
    }

    /// Takes the next datagram, with every length and checksum made right, into the start of `place`; returns
    /// its bytes. `None`, and nothing taken, when there is none or no room for it.
    pub fn take(&mut self, place: &mut [u8]) -> Option<usize> {
        let len = self.next_len()?;
        let place = place.get_mut(..len)?;
        self.write(self.taken, place);
        match self.cut {
            None => self.is_done = true,
            Some(cut) => {
                self.taken += cut.size;
                self.is_done = cut.headers_len + self.taken >= self.bytes().len();
            }
        }
        Some(len)
    }

    /// The first datagram as [`take`](Self::take) makes it, whatever has been taken: to be quoted to its sender.
    #[must_use]
    pub fn first_datagram(&self) -> Vec<u8> {
        let mut datagram = vec![0; self.len_behind(0)];
        self.write(0, &mut datagram);
        datagram
    }

    /// Writes the datagram whose payload starts at `taken`; `place` has its length.
    fn write(&self, taken: usize, place: &mut [u8]) {
        let bytes = self.bytes();
        let Some(cut) = self.cut else {
            place.copy_from_slice(bytes);
            return;
        };
        let Cut { transport, header_len, headers_len, size } = cut;
        let Some((headers, payload)) = place.split_at_mut_checked(headers_len) else { return };
        headers.copy_from_slice(bytes.get(..headers_len).unwrap_or_default());
        let from = headers_len + taken;
        payload.copy_from_slice(bytes.get(from..from + payload.len()).unwrap_or_default());
        let is_last = from + payload.len() >= bytes.len();

        // As from one datagram to the next of a sender that counts them.
        let number = (taken / size) as u16;
        let identification = self.header.map_or(0, |header| header.identification);
        put(headers, layout::IDENTIFICATION, identification.wrapping_add(number).to_be_bytes());
        let (protocol, checksum_at) = match transport {
            Transport::Tcp => {
                let sequence = u32_at(bytes, header_len + tcp::SEQUENCE).unwrap_or(0);
                let sequence = sequence.wrapping_add(taken as u32);
                put(headers, header_len + tcp::SEQUENCE, sequence.to_be_bytes());
                // The receiver is to see each of these once: the end of the data, and that the window was reduced.
                if let Some(flags) = headers.get_mut(header_len + tcp::FLAGS) {
                    if !is_last {
                        *flags &= !(tcp::FIN | tcp::PSH);
                    }
                    if taken > 0 {
                        *flags &= !tcp::CWR;
                    }
                }
                (protocol::TCP, header_len + tcp::CHECKSUM)
            }
            Transport::Udp => {
                let len = (udp::LEN + payload.len()) as u16;
                put(headers, header_len + udp::LENGTH, len.to_be_bytes());
                (protocol::UDP, header_len + udp::CHECKSUM)
            }
        };
        layout::finish_ipv4(place, header_len);
        put(place, checksum_at, [0; 2]);
        let sum = layout::pseudo_header(place, header_len, protocol)
            + checksum::sum(place.get(header_len..).unwrap_or_default());
        let mut sum = checksum::complete(sum);
        if transport == Transport::Udp && sum == [0; 2] {
            // Zero would say that there is none.
            sum = [0xff; 2];
        }
        put(place, checksum_at, sum);
    }

    /// Holds a datagram that came out of a tunnel and goes on by another, without passing a device, if something is
    /// left to do about it: its checksum, or to cut what the kernel has put together to datagrams of at most `mtu`
    /// bytes. `false`, and the frame is done, for a datagram that can go on as it is.
    #[must_use]
    pub fn hold_unfinished(&mut self, datagram: &[u8], mtu: u16) -> bool {
        self.is_done = true;
        let Some(left) = LeftChecksum::of(datagram) else { return false };
        self.hold(&left.vnet_header(datagram.len(), usize::from(mtu)), datagram).is_ok()
    }

    /// Holds `datagram` as if a device had handed it over with this header.
    pub(super) fn hold(&mut self, vnet: &VnetHeader, datagram: &[u8]) -> Result<(), Malformed> {
        let len = VnetHeader::LEN + datagram.len();
        let (header, packet) =
            self.room().split_at_mut_checked(VnetHeader::LEN).ok_or(Malformed::Truncated)?;
        header.copy_from_slice(&vnet.bytes());
        packet.get_mut(..datagram.len()).ok_or(Malformed::Truncated)?.copy_from_slice(datagram);
        self.load(len, true)
    }

    /// Where a device reads into: its header, if it has one, and the packet.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.is_done = true;
        &mut self.buffer
    }

    /// Looks at `len` bytes that were read into the [room](Self::room).
    ///
    /// # Errors
    /// [`Malformed`]; the frame is empty then.
    pub(super) fn load(&mut self, len: usize, has_vnet_header: bool) -> Result<(), Malformed> {
        self.is_done = true;
        self.taken = 0;
        self.cut = None;
        self.header = None;
        (self.start, self.end) = (0, 0);
        let mut vnet = VnetHeader::default();
        let mut start = 0;
        if has_vnet_header {
            let read = self.buffer.get(..len).ok_or(Malformed::Truncated)?;
            vnet = VnetHeader::parse(read.first_chunk().ok_or(Malformed::Truncated)?);
            start = VnetHeader::LEN;
        }
        let packet = self.buffer.get_mut(start..len).ok_or(Malformed::Truncated)?;
        let header = layout::ipv4(packet);
        let cut = match vnet.segmentation {
            None => None,
            Some(segmentation) => {
                let transport = match segmentation.kind {
                    SegmentationKind::Tcp => Transport::Tcp,
                    SegmentationKind::Udp => Transport::Udp,
                    SegmentationKind::Other(_) => return Err(Malformed::Kind),
                };
                match header {
                    Some((header, len)) => {
                        let size = usize::from(segmentation.size);
                        Cut::of(packet, &header, len, transport, size).ok_or(Malformed::Headers)?
                    }
                    // Not of IPv4: nobody will take it apart.
                    None => None,
                }
            }
        };
        let end = match (cut, header) {
            // What is no super-packet ends where its header says.
            (None, Some((header, header_len))) => {
                let end = header_len + usize::from(header.payload_len);
                if end > packet.len() {
                    return Err(Malformed::Truncated);
                }
                end
            }
            _ => packet.len(),
        };
        if let (None, Some((from, offset))) = (cut, vnet.checksum) {
            complete_checksum(packet, usize::from(from), usize::from(offset)).ok_or(Malformed::Checksum)?;
        }
        (self.start, self.end) = (start, start + end);
        self.header = header.map(|(header, _)| header);
        self.cut = cut;
        self.is_done = false;
        Ok(())
    }
}

impl Cut {
    /// How `packet` is cut; `Some(None)` where one datagram is enough.
    fn of(
        packet: &[u8],
        header: &Ipv4Header,
        header_len: usize,
        transport: Transport,
        size: usize,
    ) -> Option<Option<Self>> {
        let (expected, transport_len) = match transport {
            Transport::Tcp => {
                let len = usize::from(packet.get(header_len + tcp::DATA_OFFSET)? >> 4) * 4;
                (protocol::TCP, Some(len).filter(|&len| len >= tcp::LEN)?)
            }
            Transport::Udp => (protocol::UDP, udp::LEN),
        };
        let headers_len = header_len + transport_len;
        let payload_len = packet.len().checked_sub(headers_len)?;
        if header.protocol != expected || header.is_fragment() || size == 0 {
            return None;
        }
        let cut = Self { transport, header_len, headers_len, size };
        Some((payload_len > size).then_some(cut))
    }
}

/// Sums from `from` on and puts the checksum `offset` behind that, where the sum of the pseudo header is.
fn complete_checksum(packet: &mut [u8], from: usize, offset: usize) -> Option<()> {
    let summed = packet.get_mut(from..)?;
    let mut sum = checksum::complete(checksum::sum(summed));
    if sum == [0; 2] && offset == udp::CHECKSUM {
        sum = [0xff; 2];
    }
    *summed.get_mut(offset..)?.first_chunk_mut()? = sum;
    Some(())
}
