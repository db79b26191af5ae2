//! The window this end advertises (RFC 9293 section 3.8.6.2.2, RFC 1122 section 4.2.3.3, RFC 7323 section 2).
//!
//! Its right edge never moves back, and not forward by less than the smaller of half the buffer and one
//! segment. A receiver of today's Linux that does not scale offers whole segments (`__tcp_select_window` and
//! `tcp_select_initial_window` in net/ipv4/tcp_output.c): 16 KiB are 11 segments of 1,428 bytes, 15,708.

use careof_wire::SeqNumber;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    buffer: u32,
    mss: u32,
    shift: u8,
    /// Whether a window that is not scaled is a whole number of segments.
    in_segments: bool,
    /// Where it is: the window last offered, bytes; 0 before the first.
    offer: u32,
    /// One past the last byte the peer may send.
    edge: SeqNumber,
    /// What was last said with nothing unread, and when everything before this had arrived: to say it again is to say the
    /// same.
    said: Option<(SeqNumber, u16)>,
}

impl ReceiveWindow {
    /// Of a receiver with so large a buffer, bytes, whose own segments are of `mss` bytes; with `in_segments` it offers whole
    /// ones.
    pub(crate) fn new(buffer: u32, mss: u32, in_segments: bool) -> Self {
        Self { buffer, mss, shift: 0, in_segments, offer: 0, edge: SeqNumber(0), said: None }
    }

    /// The shift that lets the window field express a buffer of `bytes`.
    pub(crate) fn shift_for(bytes: u32) -> u8 {
        (0..14).find(|&shift| bytes >> shift <= 0xffff).unwrap_or(14)
    }

    /// The peer's sequence numbers and the size of its segments are known.
    pub(crate) fn begin(&mut self, nxt: SeqNumber, shift: u8, mss: u32) {
        self.mss = mss;
        self.shift = shift;
        self.edge = nxt;
        self.said = None;
    }

    pub(crate) fn edge(&self) -> SeqNumber {
        self.edge
    }

    /// Before the SYN: what this end's path takes at a time is less than was thought.
    pub(crate) fn limit_segments(&mut self, mss: u32) {
        self.mss = self.mss.min(mss);
    }

    fn least_step(&self) -> u32 {
        (self.buffer / 2).min(self.mss)
    }

    /// Chooses the window field for a segment that acknowledges `nxt` while `unread` bytes wait.
    #[inline]
    pub(crate) fn advertise(&mut self, nxt: SeqNumber, unread: u64, in_syn: bool) -> u16 {
        let said = self.said.filter(|said| said.0 == nxt);
        match said {
            Some((_, field)) if unread == 0 && !in_syn => field,
            _ => self.choose(nxt, unread, in_syn),
        }
    }

    fn choose(&mut self, nxt: SeqNumber, unread: u64, in_syn: bool) -> u16 {
        if self.in_segments && self.is_unscaled(in_syn) {
            return self.choose_segments(nxt, unread, in_syn);
        }
        let shift = if in_syn { 0 } else { self.shift };
        let room = self.buffer.saturating_sub(u32::try_from(unread).unwrap_or(u32::MAX));
        let offered = self.edge.bytes_since(nxt);
        let wanted = nxt.plus(room);
        let window = if room.saturating_sub(offered) >= self.least_step() && wanted.is_after(self.edge) {
            room >> shift
        } else {
            // Rounded up, or the edge would creep back; but not into room that unread data take.
            let up = offered.div_ceil(1 << shift);
            if unread == 0 || up << shift <= room { up } else { offered >> shift }
        };
        let field = u16::try_from(window).unwrap_or(u16::MAX);
        self.edge = self.edge.later(nxt.plus(u32::from(field) << shift));
        self.said = (unread == 0 && !in_syn).then_some((nxt, field));
        field
    }

    /// Whether the window is said as it is. Who offers to scale has a buffer that needs it.
    const fn is_unscaled(&self, in_syn: bool) -> bool {
        if in_syn { self.buffer <= 65_535 } else { self.shift == 0 }
    }

    /// A window of whole segments, for as long as that is within a segment of what there is room for.
    fn choose_segments(&mut self, nxt: SeqNumber, unread: u64, in_syn: bool) -> u16 {
        let buffer = self.buffer.min(65_535);
        let mss = self.mss.min(buffer);
        let room = buffer.saturating_sub(u32::try_from(unread).unwrap_or(u32::MAX));
        let offered = self.edge.bytes_since(nxt);
        let wanted = if room < buffer / 2 && (room < buffer / 16 || room < mss) {
            0
        } else if self.offer == 0 || self.offer + mss <= room || self.offer > room {
            room - room % mss
        } else if mss == buffer && room > self.offer + buffer / 2 {
            room
        } else {
            self.offer
        };
        self.offer = if in_syn { wanted } else { wanted.max(offered) };
        self.edge = self.edge.later(nxt.plus(self.offer));
        self.said = (unread == 0 && !in_syn).then_some((nxt, self.offer as u16));
        self.offer as u16
    }

    /// Whether reading has opened the window so far that the peer must be told.
    pub(crate) fn wants_update(&self, nxt: SeqNumber, unread: u64) -> bool {
        let room = self.buffer.saturating_sub(u32::try_from(unread).unwrap_or(u32::MAX));
        let offered = self.edge.bytes_since(nxt);
        let gain = room.saturating_sub(offered);
        let step = if offered < self.mss { self.least_step() } else { (self.buffer / 2).min(2 * self.mss) };
        gain > 0 && gain >= step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NXT: SeqNumber = SeqNumber(1_000);

    fn window(buffer: u32) -> ReceiveWindow {
        let mut window = ReceiveWindow::new(buffer, 1_460, false);
        window.begin(NXT, ReceiveWindow::shift_for(buffer), 1_460);
        window
    }

    /// Of a Linux host whose segments have timestamps, behind a tunnel.
    fn window_of_linux(buffer: u32, shift: u8) -> ReceiveWindow {
        let mut window = ReceiveWindow::new(buffer, 1_440, true);
        window.begin(NXT, shift, 1_428);
        window
    }

    #[test]
    fn linux_offers_whole_segments_where_it_does_not_scale() {
        let mut window = window_of_linux(16_384, 0);
        assert_eq!(window.advertise(NXT, 0, true), 15_708, "in a SYN-ACK");
        assert_eq!(window.advertise(NXT, 0, false), 15_708);
        let nxt = NXT.plus(1_428);
        assert_eq!(window.advertise(nxt, 0, false), 15_708, "once it is read");
        let nxt = nxt.plus(1_428);
        assert_eq!(window.advertise(nxt, 1_428, false), 14_280);
        // Who opens does not know yet that there will be timestamps.
        let mut opener = ReceiveWindow::new(16_384, 1_460, true);
        assert_eq!(opener.advertise(SeqNumber(0), 0, true), 16_060);
        opener.begin(NXT, 0, 1_428);
        assert_eq!(opener.advertise(NXT, 0, false), 16_060);
        // And a window that is scaled does not line up with segments anyway.
        let buffer = 1 << 20;
        let mut scaled = window_of_linux(buffer, ReceiveWindow::shift_for(buffer));
        assert_eq!(u32::from(scaled.advertise(NXT, 0, false)) << 5, buffer);
    }

    #[test]
    fn a_window_in_segments_closes_with_a_full_buffer_and_never_moves_back() {
        let mut window = window_of_linux(16_384, 0);
        window.advertise(NXT, 0, true);
        let mut taken = 0;
        while window.edge().is_after(NXT.plus(taken)) {
            let before = window.edge();
            taken += 1_428.min(before.bytes_since(NXT.plus(taken)));
            window.advertise(NXT.plus(taken), u64::from(taken), false);
            assert!(window.edge().is_at_or_after(before));
            assert!(window.edge().bytes_since(NXT) <= 16_384);
        }
        assert_eq!(window.advertise(NXT.plus(taken), u64::from(taken), false), 0);
        assert_eq!(window.advertise(NXT.plus(taken), 0, false), 15_708);
    }

    #[test]
    fn the_edge_rests_until_a_segment_fits() {
        let mut window = window(16_384);
        assert_eq!(window.advertise(NXT, 0, false), 16_384);
        // 4000 bytes arrive; 1000 of them are read: the edge would move by 1000 only.
        let nxt = NXT.plus(4_000);
        assert_eq!(window.advertise(nxt, 3_000, false), 12_384);
        assert!(!window.wants_update(nxt, 3_000));
        assert_eq!(window.advertise(nxt, 2_540, false), 13_844);
    }

    #[test]
    fn a_small_buffer_moves_by_its_half() {
        let mut window = window(2_000);
        window.advertise(NXT, 0, false);
        let nxt = NXT.plus(2_000);
        assert_eq!(window.advertise(nxt, 2_000, false), 0);
        assert!(!window.wants_update(nxt, 1_001));
        assert!(window.wants_update(nxt, 1_000));
        assert_eq!(window.advertise(nxt, 1_000, false), 1_000);
    }

    #[test]
    fn a_window_in_a_syn_is_never_scaled() {
        let mut window = window(32_896 << 7);
        assert_eq!(window.shift, 7);
        assert_eq!(window.advertise(NXT, 0, true), 65_535);
        let nxt = NXT;
        let field = window.advertise(nxt, 0, false);
        assert_eq!(u32::from(field) << 7, 32_896 << 7);
    }

    #[test]
    fn rounding_by_the_scale_never_takes_back_what_was_offered() {
        let mut window = window(100_001);
        window.advertise(NXT, 0, false);
        for read in 0..500 {
            let before = window.edge();
            window.advertise(NXT.plus(read), u64::from(read), false);
            assert!(window.edge().is_at_or_after(before));
        }
    }

    #[test]
    fn rounding_by_the_scale_never_promises_room_that_unread_data_take() {
        let buffer = 1 << 20;
        let mut window = window(buffer);
        window.advertise(NXT, 0, false);
        let mut taken = 0;
        // Nobody reads, and the peer sends small segments as long as there is a window.
        while window.edge().is_after(NXT.plus(taken)) && taken < 2 * buffer {
            taken += 7.min(window.edge().bytes_since(NXT.plus(taken)));
            let field = window.advertise(NXT.plus(taken), u64::from(taken), false);
            assert!(taken + (u32::from(field) << window.shift) <= buffer);
        }
        assert_eq!(taken, buffer);
    }

    #[test]
    fn the_shift_is_the_least_that_serves() {
        for (bytes, shift) in [(1, 0), (65_535, 0), (65_536, 1), (1 << 20, 5), (65_535 << 14, 14)] {
            assert_eq!(ReceiveWindow::shift_for(bytes), shift, "{bytes}");
        }
    }
}
