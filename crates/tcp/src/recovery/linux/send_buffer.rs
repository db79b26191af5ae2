//! How far an application has written ahead: the send buffer, which grows with the window (Linux 6.1, `tcp_sndbuf_expand`).
//!
//! What waits and what is not acknowledged count alike, with the memory that packets take beside their data. It matters where
//! the path narrows or the peer's window grows: what is in the buffer stays packed by the old size, what is written later is packed
//! by the new one. Left out: that a writer sleeps until a third of the buffer is free, and that a slow one lets the queue run dry.

/// Bytes that a packet takes beside its data (`truesize` of an empty one).
const PACKET_OVERHEAD: u64 = 1_280;
/// What is reckoned for a segment beside its data (`MAX_TCP_HEADER`, `struct skb_shared_info`), before it is rounded up to a
/// power of two, and after (`struct sk_buff`), bytes.
const SEGMENT_OVERHEAD: u32 = 640;
const HEAD: u64 = 256;
/// Segments that the buffer is made for at least (`TCP_INIT_CWND`).
const LEAST_SEGMENTS: u32 = 10;
/// The largest buffer, bytes (`tcp_wmem`).
const LARGEST: u64 = 4 << 20;

/// Bytes in the buffer of a sender with a window of so many segments of `mss` bytes: twice the window fits.
pub(super) fn size(segments: u32, mss: u32) -> u64 {
    let segment = u64::from((mss + SEGMENT_OVERHEAD).next_power_of_two()) + HEAD;
    (2 * u64::from(segments.max(LEAST_SEGMENTS)) * segment).min(LARGEST)
}

/// Memory that `bytes` bytes take in so many packets.
pub(super) fn used(bytes: u32, packets: usize) -> u64 {
    u64::from(bytes) + packets as u64 * PACKET_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_begins_with_87040_bytes_and_grows_to_twice_the_window() {
        assert_eq!(size(1, 1_460), 87_040);
        assert_eq!(size(20, 1_460), 174_080);
        assert_eq!(size(100_000, 1_460), 4_194_304);
        assert_eq!(used(2_896, 1), 4_176);
    }
}
