//! The kernel's TCP, looked into again and again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};

use careof_base::{Duration, Instant};
use careof_lab::{Clock, Error, Host, SockDiag, TcpInfo};
use careof_plan::Side;
use nix::errno::Errno;

use crate::books::NewConnection;
use crate::report::Report;

/// Between two looks at every connection.
const INTERVAL: Duration = Duration::from_millis(2);
/// A connection that was there and is not found for so long is over.
const GONE_AFTER: Duration = Duration::from_secs(1);
/// One that was never found is waited for: longer than a kernel tries to open it.
const NEVER_AFTER: Duration = Duration::from_secs(150);

/// One thread that looks into the connections it is told of.
pub(crate) struct Sampler {
    /// `None` only while dropping.
    targets: Option<Sender<NewConnection>>,
    thread: Option<JoinHandle<()>>,
}

struct Target {
    connection: NewConnection,
    /// Since when it is looked for.
    since: Instant,
    /// When it was last looked at.
    looked: Instant,
    /// When it was last found.
    found: Option<Instant>,
    last: Option<TcpInfo>,
}

impl Sampler {
    /// Starts the thread, with an eye in every host.
    pub(crate) fn start(
        hosts: &Arc<Vec<Host>>,
        clock: Clock,
        reports: Sender<Report>,
    ) -> Result<Self, Error> {
        let mut eyes =
            hosts.iter().map(|host| host.run(SockDiag::open)?).collect::<Result<Vec<_>, Error>>()?;
        let (targets, told) = channel();
        let thread = Builder::new()
            .name("tcp sampler".to_owned())
            .spawn(move || look(&mut eyes, clock, &told, &reports))
            .map_err(|error| Error::System {
                doing: "look into TCP".to_owned(),
                call: "clone",
                errno: error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw),
            })?;
        Ok(Self { targets: Some(targets), thread: Some(thread) })
    }

    /// Looks into a connection from now on.
    pub(crate) fn add(&self, connection: NewConnection) {
        // A sampler that ended has said so.
        if let Some(targets) = &self.targets {
            let _ = targets.send(connection);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.targets.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn look(eyes: &mut [SockDiag], clock: Clock, told: &Receiver<NewConnection>, reports: &Sender<Report>) {
    let mut targets: Vec<Target> = Vec::new();
    loop {
        let news = if targets.is_empty() {
            told.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            told.recv_timeout(INTERVAL)
        };
        match news {
            Ok(connection) => {
                let now = clock.now();
                targets.push(Target { connection, since: now, looked: now, found: None, last: None });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        targets.retain_mut(|target| target.look(eyes, clock, reports));
    }
}

impl Target {
    /// Looks once; `false` when the connection is over.
    fn look(&mut self, eyes: &mut [SockDiag], clock: Clock, reports: &Sender<Report>) -> bool {
        let NewConnection { connection, side, node, local, remote } = self.connection;
        let Some(eye) = eyes.get_mut(usize::from(node.0)) else { return false };
        let info = eye.tcp_info(local, remote);
        let now = clock.now();
        let after = std::mem::replace(&mut self.looked, now);
        match info {
            Ok(Some(info)) => {
                self.found = Some(now);
                self.tell(connection, side, after, now, info, reports);
                true
            }
            Ok(None) => now < self.found.map_or(self.since + NEVER_AFTER, |found| found + GONE_AFTER),
            Err(error) => {
                let _ = reports.send(Report::Failed(error.into()));
                false
            }
        }
    }

    fn tell(
        &mut self,
        connection: usize,
        side: Side,
        after: Instant,
        now: Instant,
        info: TcpInfo,
        reports: &Sender<Report>,
    ) {
        let before = self.last.as_ref().map_or(0, timeouts);
        let count = timeouts(&info).saturating_sub(before);
        let info_box = || Box::new(info);
        if count > 0 {
            let until = now;
            let info = info_box();
            let _ = reports.send(Report::Timeouts { connection, side, after, until, count, info });
        }
        if self.last.as_ref().is_none_or(|last| differs(last, &info)) {
            let _ = reports.send(Report::Sample { connection, side, at: now, info: info_box() });
        }
        self.last = Some(info);
    }
}

/// How often the retransmission timer ran out so far. A kernel before 6.7 does not say; then the doublings of the timer
/// since the last acknowledgement are as much as can be seen.
fn timeouts(info: &TcpInfo) -> u32 {
    info.total_rto.map_or(u32::from(info.backoff), u32::from)
}

/// Whether two looks differ in what a trace says.
fn differs(a: &TcpInfo, b: &TcpInfo) -> bool {
    let key = |info: &TcpInfo| {
        (
            (info.cwnd_segments, info.ssthresh_segments, info.mss),
            (info.srtt, info.rttvar, info.rto),
            (info.bytes_sent, info.bytes_retrans, info.bytes_acked),
        )
    };
    key(a) != key(b)
}
