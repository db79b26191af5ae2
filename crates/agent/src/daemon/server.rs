//! Serving strangers without waiting for them: a listening socket, a few clients, each with one request, a bounded
//! buffer and a deadline. Whoever is slow, silent, greedy or talks nonsense loses its connection and nobody else anything.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::{Duration, Instant};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Clients at a time. When one more comes, the one that has been here longest goes.
const MOST_CLIENTS: usize = 16;
/// How long a client may take to ask, and then to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to listen to nobody when the system has no descriptor left for another one.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes read from a client at a time.
const CHUNK: usize = 4096;
/// Clients accepted, and events handled, in one turn.
const BATCH: usize = 32;
/// The token of the listening socket; clients count from 1.
const LISTENER: u64 = 0;

/// What the bytes of a client are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<R> {
    /// The beginning of a request.
    Partial,
    /// A request.
    Request(R),
    /// No request: this is answered instead.
    Nonsense(Vec<u8>),
}

/// How clients ask.
pub(crate) trait Protocol {
    /// What they ask.
    type Request;

    /// Requests are shorter than that, bytes.
    const LONGEST_REQUEST: usize;

    /// Reads what a client has sent so far.
    fn parse(input: &[u8]) -> Parsed<Self::Request>;

    /// What is answered to a request that is too long.
    fn too_long() -> Vec<u8>;
}

/// A listening socket.
pub(crate) trait Listen: AsFd {
    /// A connection.
    type Stream: Read + Write + AsFd;

    /// The next connection, without waiting, in non-blocking mode.
    fn next(&self) -> io::Result<Self::Stream>;

    /// Says that nothing more will be written to `stream`.
    fn end(stream: &Self::Stream) -> io::Result<()>;
}

#[derive(Debug)]
struct Client<S> {
    stream: S,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// When it loses its connection.
    deadline: Instant,
    /// It has asked: what else it sends is thrown away until it closes.
    ending: bool,
}

/// A listening socket and its clients.
#[derive(Debug)]
pub(crate) struct Server<L: Listen> {
    listener: L,
    epoll: Epoll,
    /// The number grows with each client, so the first one has been here longest.
    clients: BTreeMap<u64, Client<L::Stream>>,
    last: u64,
    /// Nobody is let in before then.
    paused: Option<Instant>,
    /// How many clients lost their connection by their own fault, or were too many.
    refused: u64,
}

impl<L: Listen> AsFd for Server<L> {
    /// Readable when there is something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// Whether a client stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Stays,
    Goes,
    Refused,
}

impl<L: Listen> Server<L> {
    /// Serves the clients of `listener`, which is in non-blocking mode.
    pub(crate) fn new(listener: L) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        Ok(Self { listener, epoll, clients: BTreeMap::new(), last: LISTENER, paused: None, refused: 0 })
    }

    /// The listening socket.
    pub(crate) const fn listener(&self) -> &L {
        &self.listener
    }

    /// How many clients lost their connection by their own fault, or were too many.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// When [`Server::turn`] wants to be called although the descriptor is not readable.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.clients.values().map(|client| client.deadline).chain(self.paused).min()
    }

    /// Does what there is to do now, a bounded amount of it. `answer` makes the bytes for a request.
    pub(crate) fn turn<P: Protocol>(&mut self, now: Instant, answer: &mut dyn FnMut(P::Request) -> Vec<u8>) {
        let late: Vec<u64> =
            self.clients.iter().filter(|(_, client)| client.deadline <= now).map(|(id, _)| *id).collect();
        for id in late {
            // One that has its answer and does not close is nobody's fault.
            let verdict = match self.clients.get(&id) {
                Some(client) if client.ending => Verdict::Goes,
                _ => Verdict::Refused,
            };
            self.remove(id, verdict);
        }
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
            self.listen(EpollFlags::EPOLLIN);
        }
        let mut events = [EpollEvent::empty(); BATCH];
        // An interrupted call is repeated by the caller, whose descriptor is still readable.
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in events.iter().take(count) {
            match event.data() {
                LISTENER => self.accept(now),
                id => {
                    let verdict = match self.clients.get_mut(&id) {
                        Some(client) => client.turn::<L, P>(now, answer),
                        None => continue,
                    };
                    match verdict {
                        Verdict::Stays => self.watch(id),
                        gone => self.remove(id, gone),
                    }
                }
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let stream = match self.listener.next() {
                Ok(stream) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client went before it came in.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(_) => {
                    // No descriptors left, most likely. Trying again at once would be a loop.
                    self.refused += 1;
                    self.paused = Some(now + PAUSE);
                    return self.listen(EpollFlags::empty());
                }
            };
            while self.clients.len() >= MOST_CLIENTS {
                let Some(&oldest) = self.clients.keys().next() else { break };
                self.remove(oldest, Verdict::Refused);
            }
            self.last += 1;
            if self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, self.last)).is_err() {
                self.refused += 1;
                continue;
            }
            let client = Client {
                stream,
                input: Vec::new(),
                output: Vec::new(),
                written: 0,
                deadline: now + PATIENCE,
                ending: false,
            };
            self.clients.insert(self.last, client);
        }
    }

    fn listen(&mut self, flags: EpollFlags) {
        // The listening socket is there since the beginning; this cannot fail.
        let _ = self.epoll.modify(&self.listener, &mut EpollEvent::new(flags, LISTENER));
    }

    /// Waits for what the client can do next.
    fn watch(&mut self, id: u64) {
        let Some(client) = self.clients.get(&id) else { return };
        let flags =
            if client.written < client.output.len() { EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
        if self.epoll.modify(&client.stream, &mut EpollEvent::new(flags, id)).is_err() {
            self.remove(id, Verdict::Refused);
        }
    }

    fn remove(&mut self, id: u64, verdict: Verdict) {
        if let Some(client) = self.clients.remove(&id) {
            // Closing it would take it out as well; like this it does not matter who else has it.
            let _ = self.epoll.delete(&client.stream);
            if verdict == Verdict::Refused {
                self.refused += 1;
            }
        }
    }
}

impl<S: Read + Write + AsFd> Client<S> {
    fn turn<L, P>(&mut self, now: Instant, answer: &mut dyn FnMut(P::Request) -> Vec<u8>) -> Verdict
    where
        L: Listen<Stream = S>,
        P: Protocol,
    {
        if self.written == self.output.len()
            && let Some(verdict) = self.read::<P>(now, answer)
        {
            return verdict;
        }
        self.write::<L>(now)
    }

    /// Takes in what came. `None`: there may be something to write.
    fn read<P: Protocol>(
        &mut self,
        now: Instant,
        answer: &mut dyn FnMut(P::Request) -> Vec<u8>,
    ) -> Option<Verdict> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) if self.ending || self.input.is_empty() => return Some(Verdict::Goes),
            Ok(0) => return Some(Verdict::Refused),
            Ok(_) if self.ending => return Some(Verdict::Stays),
            Ok(count) => self.input.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Some(Verdict::Stays);
            }
            Err(_) => return Some(Verdict::Refused),
        }
        self.parse::<P>(now, answer);
        None
    }

    fn parse<P: Protocol>(&mut self, now: Instant, answer: &mut dyn FnMut(P::Request) -> Vec<u8>) {
        let parsed = match P::parse(&self.input) {
            Parsed::Partial if self.input.len() >= P::LONGEST_REQUEST => Parsed::Nonsense(P::too_long()),
            parsed => parsed,
        };
        match parsed {
            Parsed::Partial => return,
            Parsed::Request(request) => self.output = answer(request),
            Parsed::Nonsense(complaint) => self.output = complaint,
        }
        self.input = Vec::new();
        self.ending = true;
        self.deadline = now + PATIENCE;
    }

    fn write<L: Listen<Stream = S>>(&mut self, now: Instant) -> Verdict {
        let Some(rest) = self.output.get(self.written..).filter(|rest| !rest.is_empty()) else {
            return Verdict::Stays;
        };
        match self.stream.write(rest) {
            Ok(0) => return Verdict::Refused,
            Ok(count) => self.written += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Verdict::Stays;
            }
            Err(_) => return Verdict::Refused,
        }
        if self.written < self.output.len() {
            return Verdict::Stays;
        }
        self.output = Vec::new();
        self.written = 0;
        // Until the client has closed, too, or its answer could be lost to what it still sends.
        self.deadline = now + PAUSE;
        if L::end(&self.stream).is_ok() { Verdict::Stays } else { Verdict::Goes }
    }
}
