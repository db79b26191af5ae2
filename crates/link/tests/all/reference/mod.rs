//! A drop-tail link the slow way: a clock that ticks each nanosecond, and a packet that loses bits at each tick.

use std::collections::VecDeque;

use careof_base::Instant;
use careof_link::{Config, DropCause, Fate, Output, QueueLimit, UNLIMITED_RATE};

const NANOBITS: u128 = 1_000_000_000;

/// No jitter, no loss, drop-tail; everything else as the link has it, without its code.
pub(crate) struct Reference {
    config: Config,
    /// Rows of a trace that repeats: for how many nanoseconds, bit/s, nanoseconds of delay. Empty for none.
    rows: Vec<(u64, u64, u64)>,
    now: u64,
    queue: VecDeque<(u32, u32)>,
    /// The packet being sent and its nanobits to go.
    sending: Option<(u32, u128)>,
    /// A fraction of a nanosecond's work left by the packet that ended at this very nanosecond.
    owed: u128,
    /// Packets on the wire and the nanoseconds they have to go.
    wire: VecDeque<(u32, u64)>,
    down: Option<Fate>,
    /// Whether a transmission ended at this very nanosecond.
    ended: bool,
    /// Sizes of packets that left the queue at this very nanosecond for it.
    freed: Vec<u32>,
}

impl Reference {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            rows: Vec::new(),
            now: 0,
            queue: VecDeque::new(),
            ended: false,
            freed: Vec::new(),
            sending: None,
            owed: 0,
            wire: VecDeque::new(),
            down: None,
        }
    }

    pub(crate) fn with_trace(config: Config, rows: Vec<(u64, u64, u64)>) -> Self {
        Self { rows, ..Self::new(config) }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Rate and delay of now.
    fn row(&self) -> (u64, u64) {
        let period: u64 = self.rows.iter().map(|row| row.0).sum();
        let mut within = self.now.checked_rem(period).unwrap_or(0);
        for (length, rate, delay) in &self.rows {
            if within < *length {
                return (*rate, *delay);
            }
            within -= length;
        }
        (self.config.rate.bits_per_second(), self.config.delay.as_nanos() as u64)
    }

    fn rate(&self) -> u128 {
        if self.down.is_some() { 0 } else { u128::from(self.row().0) }
    }

    /// Whether packets leave the queue: by a trace also while its rate is zero.
    fn is_running(&self) -> bool {
        self.rate() > 0 || (self.down.is_none() && self.rows.iter().any(|row| row.1 > 0))
    }

    /// Ticks until `until`, and does what is due there.
    pub(crate) fn step_to(&mut self, until: u64, outputs: &mut Vec<Output<u32>>) {
        loop {
            self.settle(outputs);
            if self.now >= until {
                return;
            }
            let rate = self.rate();
            if let Some((_, left)) = &mut self.sending {
                *left -= rate;
            }
            if self.down.is_none() {
                self.wire.iter_mut().for_each(|p| p.1 -= 1);
            }
            self.owed = 0;
            self.now += 1;
            self.freed.clear();
            self.ended = false;
        }
    }

    /// Does everything that is due at this nanosecond.
    fn settle(&mut self, outputs: &mut Vec<Output<u32>>) {
        loop {
            let left = self.load();
            if self.ended {
                self.freed.extend(left);
            }
            let rate = self.rate();
            match self.sending {
                // What is left does not fill a nanosecond: the packet ends in this one.
                Some((packet, left)) if self.is_running() && (left < rate || left == 0) => {
                    let unlimited = self.config.rate == UNLIMITED_RATE;
                    self.owed = if unlimited { 0 } else { left };
                    self.sending = None;
                    self.ended = !unlimited;
                    let own = self.row().1;
                    let before = self.wire.back().map_or(0, |p| p.1);
                    self.wire.push_back((packet, own.max(before)));
                }
                _ => break,
            }
        }
        while let Some((packet, 0)) = self.wire.front().copied() {
            self.wire.pop_front();
            outputs.push(Output::Delivered { packet, at: Instant::from_nanos(self.now), marked: false });
        }
    }

    /// Takes a packet into an idle serialiser; returns its size.
    fn load(&mut self) -> Option<u32> {
        if self.sending.is_none()
            && self.is_running()
            && let Some((packet, size)) = self.queue.pop_front()
        {
            let framing = self.config.framing;
            let bits =
                u128::from(size + u32::from(framing.overhead_bytes)) * u128::from(framing.bits_per_byte);
            self.sending = Some((packet, bits * NANOBITS + self.owed));
            return Some(size);
        }
        None
    }

    pub(crate) fn enqueue(&mut self, packet: u32, size: u32) -> Result<(), DropCause> {
        if self.down == Some(Fate::Drop) {
            return Err(DropCause::LinkDown);
        }
        if size > u32::from(self.config.mtu) {
            return Err(DropCause::MtuExceeded);
        }
        // What is offered at an instant does not know yet of what left in it.
        let is_idle = self.sending.is_none() && self.is_running();
        self.queue.push_back((packet, size));
        if !is_idle && self.exceeds(&self.freed) {
            self.queue.pop_back();
            return Err(DropCause::QueueFull);
        }
        let left = self.load();
        if self.ended {
            self.freed.extend(left);
        }
        Ok(())
    }

    /// Whether what is in the queue and packets of the sizes `freed` together exceed the limit.
    fn exceeds(&self, freed: &[u32]) -> bool {
        match self.config.queue.limit {
            QueueLimit::Packets(limit) => self.queue.len() + freed.len() > limit as usize,
            QueueLimit::Bytes(limit) => {
                self.queue
                    .iter()
                    .map(|p| u64::from(p.1))
                    .chain(freed.iter().map(|size| u64::from(*size)))
                    .sum::<u64>()
                    > limit
            }
        }
    }

    fn dropped(&self, packet: u32, cause: DropCause) -> Output<u32> {
        Output::Dropped { packet, at: Instant::from_nanos(self.now), cause }
    }

    pub(crate) fn reconfigure(&mut self, config: Config, outputs: &mut Vec<Output<u32>>) {
        self.config = config;
        while self.exceeds(&[]) {
            let Some((packet, _)) = self.queue.pop_back() else { break };
            outputs.push(self.dropped(packet, DropCause::QueueFull));
        }
    }

    pub(crate) fn set_down(&mut self, queued: Fate, in_flight: Fate, outputs: &mut Vec<Output<u32>>) {
        self.down = Some(queued);
        if in_flight == Fate::Drop {
            let mut lost: Vec<u32> = self.wire.drain(..).map(|p| p.0).collect();
            if let Some((packet, _)) = self.sending.take() {
                lost.push(packet);
                self.owed = 0;
            }
            outputs.extend(lost.into_iter().map(|packet| self.dropped(packet, DropCause::LinkDown)));
        }
        if queued == Fate::Drop {
            let lost = self.drain();
            outputs.extend(lost.into_iter().map(|packet| self.dropped(packet, DropCause::LinkDown)));
        }
    }

    pub(crate) fn set_up(&mut self) {
        self.down = None;
    }

    pub(crate) fn drain(&mut self) -> Vec<u32> {
        self.queue.drain(..).map(|p| p.0).collect()
    }
}
