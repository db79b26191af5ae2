//! What applications do with a connection: bulk, request/response, paced, on-off; and when they send packets of voice.

use careof_base::{Duration, Instant, RandomStream};
use careof_scenario::{OnOff, Video, Workload as Traffic};

use crate::on_off::{Bursts, Step};
use crate::video::Player;

/// The end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Opened the connection: `from` in the scenario.
    Opener,
    /// Accepted it: `to`.
    Acceptor,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Opener, Self::Acceptor];

    /// 0 for the opener, 1 for the acceptor.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

/// What an application asks of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Write this many bytes; `u64::MAX` is without end. Of a voice flow: send the next packet, with so many.
    Write(Side, u64),
    /// No more will be written.
    Close(Side),
    /// The same, and what was written but not yet sent is taken back.
    Stop(Side),
}

/// The applications at both ends of one flow.
#[derive(Clone, Debug)]
pub struct Workload {
    traffic: Traffic,
    stop: Option<Instant>,
    /// Requests asked, or bytes of messages and bursts written.
    asked: u64,
    answered: u64,
    next_message: Option<Instant>,
    /// Nothing more is asked of the connection.
    stopped: bool,
    cut_short: bool,
    /// Of an on-off flow.
    bursts: Option<Bursts>,
    /// Of a film.
    player: Option<Box<Player>>,
}

impl Workload {
    /// Applications that exchange `traffic` until `stop`, and draw what is to be drawn from `random`.
    pub fn new(traffic: Traffic, stop: Option<Instant>, random: RandomStream) -> Self {
        let bursts = match traffic {
            Traffic::OnOff(on_off) => Some(Bursts::new(on_off, random)),
            _ => None,
        };
        let player = match traffic {
            Traffic::Video(video) => Some(Box::new(Player::new(video))),
            _ => None,
        };
        Self {
            traffic,
            stop,
            asked: 0,
            answered: 0,
            next_message: None,
            stopped: false,
            cut_short: false,
            bursts,
            player,
        }
    }

    /// The opener's connection is established.
    pub fn connected(&mut self, now: Instant) -> [Option<Ask>; 2] {
        match self.traffic {
            _ if self.stopped => [None, None],
            Traffic::Bulk { size: None } => [Some(Ask::Write(Side::Opener, u64::MAX)), None],
            Traffic::Bulk { size: Some(size) } => {
                [Some(Ask::Write(Side::Opener, size)), Some(Ask::Close(Side::Opener))]
            }
            Traffic::Video(video) => {
                if let Some(player) = &mut self.player {
                    player.open(now);
                }
                self.asked = 1;
                [Some(Ask::Write(Side::Opener, video.request)), None]
            }
            Traffic::RequestResponse { request, .. } => {
                self.asked = 1;
                [Some(Ask::Write(Side::Opener, request)), None]
            }
            Traffic::Command | Traffic::Probe { .. } => [None, None],
            Traffic::Paced { .. } | Traffic::OnOff(_) | Traffic::Voice(_) => {
                self.next_message = Some(now);
                [None, None]
            }
        }
    }

    /// Bytes that the applications want delivered in all, by the side that sends them, once the connection is opened:
    /// what has been written or is about to be, and the response to each request. `u64::MAX` is without end.
    #[must_use]
    pub fn wanted(&self) -> [u64; 2] {
        match self.traffic {
            Traffic::Bulk { size } => [size.unwrap_or(u64::MAX), 0],
            Traffic::RequestResponse { request, response, .. } => {
                let asked = self.asked.max(1);
                [request.saturating_mul(asked), response.saturating_mul(asked)]
            }
            Traffic::Paced { message, size, .. } => {
                [self.asked.max(size.map_or(message, |size| size.min(message))), 0]
            }
            // Bursts are known when they come.
            Traffic::OnOff(_) => [self.asked.max(1), 0],
            Traffic::Video(video) => {
                let segments = self.player.as_ref().map_or(0, |player| player.wanted());
                let first = video.segment_bytes(0);
                [video.request.saturating_mul(self.asked.max(1)), segments.max(first)]
            }
            // There is always more to be said.
            Traffic::Voice(_) => [u64::MAX, 0],
            // What a program wants is not known.
            Traffic::Command | Traffic::Probe { .. } => [0, 0],
        }
    }

    /// Whether what is received changes what is said next.
    pub fn is_dialogue(&self) -> bool {
        match &self.bursts {
            Some(bursts) => bursts.wait_for_arrival(),
            None => matches!(self.traffic, Traffic::RequestResponse { .. } | Traffic::Video(_)),
        }
    }

    /// `side` has received `total` bytes in order since the beginning.
    pub fn received(&mut self, now: Instant, side: Side, total: u64) -> Option<Ask> {
        if let Some(bursts) = &mut self.bursts {
            if side == Side::Acceptor && self.next_message.is_none() && !self.stopped && total >= self.asked {
                let Some(pause) = bursts.arrived(self.asked) else {
                    self.stopped = true;
                    return Some(Ask::Close(Side::Opener));
                };
                self.next_message = Some(now + pause);
            }
            return None;
        }
        if let Traffic::Video(video) = self.traffic {
            return self.received_video(now, side, total, video.request);
        }
        let Traffic::RequestResponse { request, response, think, count } = self.traffic else { return None };
        match side {
            Side::Acceptor if total >= request.saturating_mul(self.answered + 1) => {
                self.answered += 1;
                Some(Ask::Write(Side::Acceptor, response))
            }
            Side::Opener if self.asked > 0 && total >= response.saturating_mul(self.asked) => {
                if count.is_some_and(|count| self.asked >= count) {
                    self.stopped = true;
                    return Some(Ask::Close(Side::Opener));
                }
                if self.next_message.is_none() {
                    self.next_message = Some(now + think);
                }
                None
            }
            _ => None,
        }
    }

    /// The same of a film.
    fn received_video(&mut self, now: Instant, side: Side, total: u64, request: u64) -> Option<Ask> {
        let player = self.player.as_mut()?;
        if side == Side::Acceptor {
            let is_asked = self.answered < self.asked && total >= request.saturating_mul(self.asked);
            return is_asked.then(|| {
                self.answered = self.asked;
                Ask::Write(Side::Acceptor, player.asked_bytes())
            });
        }
        if self.stopped {
            return None;
        }
        if player.received(now, total) {
            self.asked += 1;
            return Some(Ask::Write(Side::Opener, request));
        }
        if player.has_everything() {
            self.stopped = true;
            return Some(Ask::Close(Side::Opener));
        }
        None
    }

    /// The player of a film.
    #[must_use]
    pub fn player(&self) -> Option<&Player> {
        self.player.as_deref()
    }

    /// Whether it is to have stopped by `now`.
    pub fn is_past(&self, now: Instant) -> bool {
        self.stop.is_some_and(|stop| stop <= now)
    }

    /// Whether only the scenario's stop or the end of the run ends it.
    pub fn is_endless(&self) -> bool {
        matches!(
            self.traffic,
            Traffic::Bulk { size: None }
                | Traffic::RequestResponse { count: None, .. }
                | Traffic::Paced { size: None, .. }
                | Traffic::OnOff(OnOff { size: None, .. })
                | Traffic::Voice(_)
                | Traffic::Video(Video { segments: None, .. })
        )
    }

    /// The scenario stopped it while there was more to exchange.
    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }

    /// Whether the scenario stopped it before it had exchanged everything.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short
    }

    /// When [`Workload::handle_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.stopped {
            // Everything has come; who watches it may leave before its end.
            return self.stop.filter(|_| self.player.as_ref().is_some_and(|player| !player.is_over()));
        }
        let of_player = self.player.as_ref().and_then(|player| player.next_timeout());
        match (self.next_message.or(of_player), self.stop) {
            (Some(message), Some(stop)) => Some(message.min(stop)),
            (message, stop) => message.or(stop),
        }
    }

    /// The next message is due, or the flow stops.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Ask> {
        if self.is_past(now) {
            if let Some(player) = &mut self.player {
                player.stop(now);
            }
            let was_stopped = core::mem::replace(&mut self.stopped, true);
            return (!was_stopped).then_some(Ask::Stop(Side::Opener));
        }
        if self.stopped {
            return None;
        }
        if let (Some(player), Traffic::Video(video)) = (&mut self.player, self.traffic) {
            let is_due = player.next_timeout().is_some_and(|due| due <= now);
            if !is_due || !player.handle_timeout(now) {
                return None;
            }
            self.asked += 1;
            return Some(Ask::Write(Side::Opener, video.request));
        }
        let due = self.next_message.filter(|due| *due <= now)?;
        if let Some(bursts) = &mut self.bursts {
            let Step { bytes, next } = bursts.step(due, self.asked);
            self.next_message = next;
            let bytes = bytes?;
            if bytes == 0 {
                self.stopped = true;
                return Some(Ask::Close(Side::Opener));
            }
            self.asked += bytes;
            return Some(Ask::Write(Side::Opener, bytes));
        }
        match self.traffic {
            Traffic::Paced { rate, message, size } => {
                let left = size.map_or(u64::MAX, |size| size.saturating_sub(self.asked));
                if left == 0 {
                    self.stopped = true;
                    return Some(Ask::Close(Side::Opener));
                }
                let message = message.min(left);
                self.asked += message;
                self.next_message = rate.time_for_bits(message * 8).map(|interval: Duration| due + interval);
                Some(Ask::Write(Side::Opener, message))
            }
            Traffic::RequestResponse { request, .. } => {
                self.next_message = None;
                self.asked += 1;
                Some(Ask::Write(Side::Opener, request))
            }
            Traffic::Voice(voice) => {
                let payload = u64::from(voice.payload);
                self.asked += payload;
                self.next_message = Some(due + voice.interval);
                Some(Ask::Write(Side::Opener, payload))
            }
            Traffic::Bulk { .. }
            | Traffic::OnOff(_)
            | Traffic::Video(_)
            | Traffic::Command
            | Traffic::Probe { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::DataRate;
    use careof_scenario::{Burst, Law};

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn random() -> RandomStream {
        RandomStream::new(1, 0, "flow.x.workload")
    }

    #[test]
    fn a_response_answers_each_request_and_thinking_separates_them() {
        let traffic = Traffic::RequestResponse {
            request: 100,
            response: 1000,
            think: Duration::from_millis(50),
            count: Some(2),
        };
        let mut work = Workload::new(traffic, None, random());
        assert_eq!(work.wanted(), [100, 1000]);
        assert_eq!(work.connected(at(0)), [Some(Ask::Write(Side::Opener, 100)), None]);
        assert_eq!(work.received(at(5), Side::Acceptor, 99), None);
        assert_eq!(work.received(at(6), Side::Acceptor, 100), Some(Ask::Write(Side::Acceptor, 1000)));
        assert_eq!(work.received(at(7), Side::Acceptor, 100), None, "a request is answered once");
        assert_eq!(work.received(at(9), Side::Opener, 1000), None);
        assert_eq!(work.next_timeout(), Some(at(59)));
        assert_eq!(work.wanted(), [100, 1000], "thinking wants nothing");
        assert_eq!(work.handle_timeout(at(59)), Some(Ask::Write(Side::Opener, 100)));
        assert_eq!(work.wanted(), [200, 2000]);
        assert_eq!(work.next_timeout(), None);
        assert_eq!(work.received(at(70), Side::Opener, 2000), Some(Ask::Close(Side::Opener)));
    }

    #[test]
    fn paced_messages_keep_their_beat_and_stop() {
        let traffic =
            Traffic::Paced { rate: DataRate::from_kilobits_per_second(64), message: 160, size: None };
        let mut work = Workload::new(traffic, Some(at(50)), random());
        assert_eq!(work.connected(at(3)), [None, None]);
        for (number, due) in [(1, 3), (2, 23), (3, 43)] {
            assert_eq!(work.next_timeout(), Some(at(due)));
            assert_eq!(work.handle_timeout(at(due)), Some(Ask::Write(Side::Opener, 160)));
            assert_eq!(work.wanted(), [160 * number, 0]);
        }
        assert_eq!(work.next_timeout(), Some(at(50)));
        assert_eq!(work.handle_timeout(at(50)), Some(Ask::Stop(Side::Opener)));
        assert!(work.is_endless() && work.is_past(at(50)));
        assert_eq!(work.next_timeout(), None);
    }

    fn on_off(burst: Burst, size: Option<u64>) -> Traffic {
        let pause = Duration::from_millis(300);
        Traffic::OnOff(OnOff { burst, burst_law: Law::Fixed, pause, pause_law: Law::Fixed, size })
    }

    #[test]
    fn a_pause_begins_when_a_burst_of_bytes_has_arrived() {
        let mut work = Workload::new(on_off(Burst::Bytes(1000), Some(1500)), None, random());
        assert_eq!(work.connected(at(10)), [None, None]);
        assert_eq!(work.handle_timeout(at(10)), Some(Ask::Write(Side::Opener, 1000)));
        assert_eq!((work.next_timeout(), work.wanted()), (None, [1000, 0]));
        assert!(work.is_dialogue() && !work.is_endless());
        assert_eq!(work.received(at(50), Side::Acceptor, 999), None);
        assert_eq!(work.next_timeout(), None);
        assert_eq!(work.received(at(60), Side::Acceptor, 1000), None);
        assert_eq!(work.next_timeout(), Some(at(360)));
        assert_eq!(work.handle_timeout(at(360)), Some(Ask::Write(Side::Opener, 500)), "what is left");
        assert_eq!(work.received(at(400), Side::Acceptor, 1500), Some(Ask::Close(Side::Opener)));
        assert_eq!(work.next_timeout(), None);
    }

    #[test]
    fn a_burst_of_some_time_writes_messages_at_its_rate_and_pauses_whatever_arrives() {
        let burst = Burst::Time {
            span: Duration::from_millis(50),
            rate: DataRate::from_kilobits_per_second(64),
            message: 160,
        };
        let mut work = Workload::new(on_off(burst, Some(800)), None, random());
        assert_eq!(work.connected(at(0)), [None, None]);
        assert!(!work.is_dialogue());
        // One each 20 ms for 50 ms, then nothing until 50 + 300 ms; of the third 10 ms lie in the second burst.
        let mut written = Vec::new();
        while let Some(due) = work.next_timeout() {
            match work.handle_timeout(due) {
                Some(Ask::Write(Side::Opener, 160)) => written.push(due),
                Some(ask) => assert_eq!((ask, written.len()), (Ask::Close(Side::Opener), 5)),
                None => assert_eq!(due, at(350)),
            }
        }
        assert_eq!(written, [0, 20, 40, 360, 380].map(at));
    }

    #[test]
    fn bursts_of_some_time_keep_their_rate_however_short_they_are() {
        let rate = DataRate::from_kilobits_per_second(64);
        for (law, span) in [(Law::Fixed, 50), (Law::Fixed, 7), (Law::Exponential, 30), (Law::Pareto(1.5), 15)]
        {
            let burst = Burst::Time { span: Duration::from_millis(span), rate, message: 160 };
            let pause = Duration::from_millis(100);
            let on_off = OnOff { burst, burst_law: law, pause, pause_law: Law::Fixed, size: None };
            let mut work = Workload::new(Traffic::OnOff(on_off), None, random());
            work.connected(at(0));
            let (mut pauses, mut bytes, mut last) = (0_u32, 0, at(0));
            while let Some(due) = work.next_timeout().filter(|due| *due < at(600_000)) {
                pauses += u32::from(due - last >= pause);
                last = due;
                if let Some(Ask::Write(_, size)) = work.handle_timeout(due) {
                    bytes += size;
                }
            }
            assert!(pauses > 100, "{law:?}: {pauses}");
            // A message takes 20 ms, and is written when the one before it has had them.
            let on = (last - at(0)) - pause * pauses;
            let carried = Duration::from_millis(bytes / 160 * 20);
            let range = on..=on + Duration::from_millis(20);
            assert!(range.contains(&carried), "{law:?} {span}: {carried:?} in {on:?}");
        }
    }

    #[test]
    fn a_viewer_leaves_a_film_that_is_all_there() {
        let second = Duration::from_secs(1);
        let video = Video {
            segment: second,
            ladder: careof_scenario::Ladder::new(&[DataRate::from_megabits_per_second(1)]).unwrap(),
            buffer: second * 8,
            startup: second,
            adaptation: careof_scenario::Adaptation::Throughput,
            segments: Some(6),
            request: 400,
        };
        let fetched = |stop: u64| {
            let mut work = Workload::new(Traffic::Video(video), Some(at(stop)), random());
            work.connected(at(0));
            for number in 1..6_u64 {
                let ask = work.received(at(100), Side::Opener, number * 125_000);
                assert_eq!(ask, Some(Ask::Write(Side::Opener, 400)));
            }
            assert_eq!(work.received(at(100), Side::Opener, 750_000), Some(Ask::Close(Side::Opener)));
            work
        };
        let mut work = fetched(4_000);
        assert_eq!(work.next_timeout(), Some(at(4_000)));
        assert_eq!(work.handle_timeout(at(4_000)), None, "the connection is closed already");
        assert_eq!((work.next_timeout(), work.was_cut_short()), (None, false));
        let seen = work.player().unwrap().summary("film", at(60_000));
        assert_eq!(
            (seen.played, seen.buffered),
            (Duration::from_millis(3_900), Duration::from_millis(2_100))
        );
        // Whoever stays sees it to its end.
        let mut work = fetched(9_000);
        assert_eq!((work.handle_timeout(at(9_000)), work.next_timeout()), (None, None));
        assert_eq!(work.player().unwrap().summary("film", at(60_000)).played, second * 6);
    }

    #[test]
    fn drawn_bursts_have_their_mean_and_repeat_with_their_seed() {
        let draw = |law: Law, run: u64| {
            let traffic = Traffic::OnOff(OnOff {
                burst: Burst::Bytes(10_000),
                burst_law: law,
                pause: Duration::from_secs(1),
                pause_law: law,
                size: None,
            });
            let mut work = Workload::new(traffic, None, RandomStream::new(1, run, "flow.x.workload"));
            let (mut now, mut bursts, mut paused) = (at(0), Vec::new(), Duration::ZERO);
            work.connected(now);
            for _ in 0..20_000 {
                let Some(Ask::Write(Side::Opener, bytes)) = work.handle_timeout(now) else { panic!() };
                bursts.push(bytes);
                work.received(now, Side::Acceptor, work.wanted()[0]);
                let next = work.next_timeout().unwrap();
                paused += next - now;
                now = next;
            }
            let mean = bursts.iter().sum::<u64>() as f64 / bursts.len() as f64;
            (mean, paused.as_secs_f64() / bursts.len() as f64, bursts)
        };
        // The deviation of the mean of 20,000 is 0.7 % of it (exponential), and 0.4 % (Pareto of shape 3, whose deviation
        // is its mean over the root of 3): five of them.
        for law in [Law::Exponential, Law::Pareto(3.0)] {
            let (bytes, pause, first) = draw(law, 0);
            assert!((bytes / 10_000.0 - 1.0).abs() < 0.035, "{law:?}: {bytes}");
            assert!((pause - 1.0).abs() < 0.035, "{law:?}: {pause}");
            assert_eq!(first, draw(law, 0).2);
            assert_ne!(first, draw(law, 1).2);
        }
        // A Pareto distribution of shape 3 and mean 1 has nothing below 2/3.
        assert!(draw(Law::Pareto(3.0), 0).2.into_iter().all(|bytes| bytes >= 6_666));
    }
}
