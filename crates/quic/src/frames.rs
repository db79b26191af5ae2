//! What a datagram of [`Connection`](crate::Connection) carries, read from its bytes: they are in the clear.

/// Bytes of the connection identifiers that our ends choose.
pub(crate) const CID_LEN: usize = 8;

/// Consecutive bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// The first.
    pub start: u64,
    /// One after the last.
    pub end: u64,
}

/// A packet of data, that is one with a short header (RFC 9000 section 17.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The low 32 bits of its number, or as many as it carries.
    pub number: u32,
    /// How many bytes of it, 1 to 4.
    pub number_len: u8,
    /// The data of the flow in it: several pieces where some is sent again.
    pub data: Vec<StreamRange>,
    /// Whether it asks to be acknowledged (RFC 9002 section 2).
    pub elicits_ack: bool,
    /// The largest packet number that it acknowledges.
    pub largest_acknowledged: Option<u64>,
}

/// Reads from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// A variable-length integer (RFC 9000 section 16).
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        Some(more.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    fn skip_numbers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn skip(&mut self) -> Option<()> {
        let len = usize::try_from(self.number()?).ok()?;
        self.take(len).map(drop)
    }
}

/// The packet of data in a datagram that an end of this crate made; `None` if it has none, or is not such a datagram.
#[must_use]
pub fn packet_of_data(datagram: &[u8]) -> Option<Packet> {
    let mut reader = Reader(datagram);
    // Packets of the handshake come first, and say how long they are (RFC 9000 section 17.2).
    loop {
        let first = reader.byte()?;
        if first & 0x80 == 0 {
            reader.take(CID_LEN)?;
            let number_len = (first & 3) + 1;
            let number = reader.take(number_len.into())?;
            let number = number.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            let payload = reader.0.len().checked_sub(crate::keys::TAG_LEN)?;
            return frames(
                &mut Reader(&reader.0[..payload]),
                Packet { number, number_len, ..Packet::default() },
            );
        }
        reader.take(4)?;
        for _ in 0..2 {
            let len = reader.byte()?;
            reader.take(len.into())?;
        }
        // An Initial packet has a token in front of its length.
        if first & 0x30 == 0 {
            reader.skip()?;
        }
        reader.skip()?;
    }
}

fn frames(reader: &mut Reader<'_>, mut packet: Packet) -> Option<Packet> {
    while !reader.0.is_empty() {
        let kind = reader.number()?;
        packet.elicits_ack |= !matches!(kind, 0 | 2 | 3 | 0x1c | 0x1d);
        match kind {
            // PADDING, PING, HANDSHAKE_DONE
            0x00 | 0x01 | 0x1e => {}
            // ACK
            0x02 | 0x03 => {
                packet.largest_acknowledged = Some(reader.number()?);
                reader.skip_numbers(1)?;
                let ranges = reader.number()?;
                reader.skip_numbers(1 + 2 * ranges)?;
                reader.skip_numbers(if kind == 0x03 { 3 } else { 0 })?;
            }
            // RESET_STREAM
            0x04 => reader.skip_numbers(3)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
            0x05 | 0x11 | 0x15 => reader.skip_numbers(2)?,
            // CRYPTO
            0x06 => {
                reader.number()?;
                reader.skip()?;
            }
            // NEW_TOKEN
            0x07 => reader.skip()?,
            // STREAM: there is one only, so that its identifier says nothing.
            0x08..=0x0f => {
                reader.number()?;
                let start = if kind & 0x04 == 0 { 0 } else { reader.number()? };
                let len = if kind & 0x02 == 0 { reader.0.len() as u64 } else { reader.number()? };
                reader.take(usize::try_from(len).ok()?)?;
                let end = start.checked_add(len)?;
                // The end of a stream can come without data.
                if end > start {
                    packet.data.push(StreamRange { start, end });
                }
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => reader.skip_numbers(1)?,
            // NEW_CONNECTION_ID
            0x18 => {
                reader.skip_numbers(2)?;
                let len = reader.byte()?;
                reader.take(usize::from(len) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE
            0x1a | 0x1b => drop(reader.take(8)?),
            // CONNECTION_CLOSE
            0x1c => {
                reader.skip_numbers(2)?;
                reader.skip()?;
            }
            0x1d => {
                reader.number()?;
                reader.skip()?;
            }
            // IMMEDIATE_ACK and ACK_FREQUENCY, which no end of ours sends, and whatever else there may be.
            _ => return None,
        }
    }
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(frames: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x41];
        packet.extend([7; CID_LEN]);
        packet.extend([0x01, 0x02]);
        packet.extend(frames);
        packet.extend([0; 16]);
        packet
    }

    #[test]
    fn integers_of_rfc_9000_appendix_a_are_read() {
        let cases: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(Reader(bytes).number(), Some(value));
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).number(), None);
        }
    }

    #[test]
    fn data_is_found_behind_other_frames() {
        // PING; ACK of 9, delay 0, one more range; STREAM 0 at 1000 with a length of 3 and FIN.
        let frames = [0x01, 0x02, 9, 0, 1, 0, 1, 0, 0x0f, 0, 0x43, 0xe8, 3, b'a', b'b', b'c'];
        let packet = packet_of_data(&short(&frames)).unwrap();
        assert_eq!(packet.number, 0x0102);
        assert_eq!(packet.data, [StreamRange { start: 1000, end: 1003 }]);
        assert_eq!(packet.largest_acknowledged, Some(9));
        assert!(packet.elicits_ack);
    }

    #[test]
    fn a_cut_datagram_is_no_packet_and_no_panic() {
        let whole = short(&[0x0f, 0, 0x43, 0xe8, 3, b'a', b'b', b'c']);
        for len in 0..whole.len() - 16 {
            assert!(packet_of_data(&whole[..len]).is_none_or(|packet| packet.data.is_empty()), "{len} bytes");
        }
    }
}
