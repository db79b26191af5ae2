//! Serving strangers without waiting for them: a listening socket, a few clients, each with one request, a bounded
//! buffer and a deadline. Whoever is slow, silent, greedy or talks nonsense loses its connection and nobody else anything.
//!
//! When there are too many, a peer with many connections loses one before a peer with few does, and one that says nothing
//! before one that has asked.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::{Duration, Instant};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Clients at a time. When one more comes, [one goes](Server::let_go).
const MOST_CLIENTS: usize = 64;
/// How long a client may take to ask, and then to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to listen to nobody when the system has no descriptor left for another one.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes read from a client at a time.
const CHUNK: usize = 4096;
/// Events handled in one turn.
const BATCH: usize = 32;
/// Bytes of answers that wait to be taken, of all clients. When there are more, one goes, unless it is the only one.
const MOST_WAITING: usize = 64 << 20;
/// Clients accepted in one turn: enough to keep up with who connects and says nothing.
const MOST_ACCEPTED: usize = 256;
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
    /// Whose connections are counted together.
    type Peer: Copy + Ord;

    /// The next connection, without waiting, in non-blocking mode, and whose it is.
    fn next(&self) -> io::Result<(Self::Stream, Self::Peer)>;

    /// Says that nothing more will be written to `stream`.
    fn end(stream: &Self::Stream) -> io::Result<()>;
}

#[derive(Debug)]
struct Client<S, P> {
    stream: S,
    peer: P,
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
    clients: BTreeMap<u64, Client<L::Stream, L::Peer>>,
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
                LISTENER => self.accept::<P>(now, answer),
                id => self.serve::<P>(now, id, answer),
            }
        }
    }

    fn serve<P: Protocol>(&mut self, now: Instant, id: u64, answer: &mut dyn FnMut(P::Request) -> Vec<u8>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        match client.turn::<L, P>(now, answer) {
            Verdict::Stays => self.watch(id),
            gone => self.remove(id, gone),
        }
        let waiting = |client: &Client<L::Stream, L::Peer>| client.output.len() - client.written;
        while self.clients.values().map(waiting).sum::<usize>() > MOST_WAITING {
            let taking = |client: &Client<L::Stream, L::Peer>| waiting(client) > 0;
            if self.clients.values().filter(|client| taking(client)).count() < 2 {
                break;
            }
            self.let_go(None, taking);
        }
    }

    fn accept<P: Protocol>(&mut self, now: Instant, answer: &mut dyn FnMut(P::Request) -> Vec<u8>) {
        for _ in 0..MOST_ACCEPTED {
            let (stream, peer) = match self.listener.next() {
                Ok(next) => next,
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
            if self.clients.len() >= MOST_CLIENTS {
                self.let_go(Some(peer), |_| true);
            }
            self.last += 1;
            if self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, self.last)).is_err() {
                self.refused += 1;
                continue;
            }
            let client = Client {
                stream,
                peer,
                input: Vec::new(),
                output: Vec::new(),
                written: 0,
                deadline: now + PATIENCE,
                ending: false,
            };
            self.clients.insert(self.last, client);
            // What it asks has often come along with it: then it does not depend on how many come behind it.
            self.serve::<P>(now, self.last, answer);
        }
    }

    /// Lets one go of those that `may` go: of the peer that has most clients, with `newcomer` if there is one; first who has
    /// not asked; and of these who has been here longest.
    fn let_go(&mut self, newcomer: Option<L::Peer>, may: impl Fn(&Client<L::Stream, L::Peer>) -> bool) {
        let mut shares = BTreeMap::<L::Peer, usize>::new();
        for peer in self.clients.values().map(|client| client.peer).chain(newcomer) {
            *shares.entry(peer).or_default() += 1;
        }
        let share =
            |client: &Client<L::Stream, L::Peer>| shares.get(&client.peer).copied().unwrap_or_default();
        let candidates = self.clients.iter().filter(|(_, client)| may(client));
        let least = candidates.min_by_key(|(id, client)| (Reverse(share(client)), client.ending, **id));
        if let Some((&id, _)) = least {
            self.remove(id, Verdict::Refused);
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

impl<S: Read + Write + AsFd, A> Client<S, A> {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Connections that are there already.
    struct Door {
        waiting: RefCell<VecDeque<(UnixStream, u8)>>,
        /// Always readable.
        bell: (UnixStream, UnixStream),
    }

    impl AsFd for Door {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.bell.0.as_fd()
        }
    }

    impl Listen for Door {
        type Stream = UnixStream;
        type Peer = u8;

        fn next(&self) -> io::Result<(UnixStream, u8)> {
            self.waiting.borrow_mut().pop_front().ok_or_else(|| ErrorKind::WouldBlock.into())
        }

        fn end(stream: &UnixStream) -> io::Result<()> {
            stream.shutdown(Shutdown::Write)
        }
    }

    /// A question is a line.
    struct Lines;

    impl Protocol for Lines {
        type Request = ();

        const LONGEST_REQUEST: usize = 10;

        fn parse(input: &[u8]) -> Parsed<()> {
            if input.ends_with(b"\n") { Parsed::Request(()) } else { Parsed::Partial }
        }

        fn too_long() -> Vec<u8> {
            b"too long".to_vec()
        }
    }

    struct House {
        server: Server<Door>,
        now: Instant,
    }

    impl House {
        fn new() -> Self {
            let bell = UnixStream::pair().unwrap();
            (&bell.1).write_all(b"!").unwrap();
            let server = Server::new(Door { waiting: RefCell::default(), bell }).unwrap();
            Self { server, now: Instant::from_secs(1) }
        }

        /// Somebody connects, and says `words` at once.
        fn connect(&self, peer: u8, words: &[u8]) -> UnixStream {
            let (here, there) = UnixStream::pair().unwrap();
            there.set_nonblocking(true).unwrap();
            (&here).write_all(words).unwrap();
            here.set_nonblocking(true).unwrap();
            self.server.listener().waiting.borrow_mut().push_back((there, peer));
            here
        }

        fn turn(&mut self) {
            self.server.turn::<Lines>(self.now, &mut |()| b"answer".to_vec());
        }
    }

    fn heard(mut client: &UnixStream) -> String {
        let mut heard = String::new();
        let _ = client.read_to_string(&mut heard);
        heard
    }

    #[test]
    fn who_asks_at_once_is_answered_however_many_come_behind() {
        let mut house = House::new();
        let asking = house.connect(1, b"?\n");
        let _storm: Vec<_> = (0..200).map(|_| house.connect(1, b"")).collect();
        house.turn();
        assert_eq!(heard(&asking), "answer");
        assert_eq!(house.server.clients.len(), MOST_CLIENTS);
    }

    #[test]
    fn a_storm_of_one_peer_takes_no_place_from_another() {
        let mut house = House::new();
        let slow = house.connect(2, b"");
        let mut storm = Vec::new();
        for _ in 0..10 {
            storm.extend((0..200).map(|_| house.connect(1, b"")));
            house.turn();
        }
        (&slow).write_all(b"?\n").unwrap();
        house.turn();
        assert_eq!(heard(&slow), "answer");
        let refused = house.server.refused();
        assert!(refused >= 10 * 200 - MOST_CLIENTS as u64, "{refused}");
    }

    #[test]
    fn answers_that_nobody_takes_fill_no_memory() {
        let mut house = House::new();
        let greedy: Vec<_> = (0..10).map(|_| house.connect(1, b"?\n")).collect();
        let modest = house.connect(2, b"?\n");
        house.server.turn::<Lines>(house.now, &mut |()| vec![b'x'; MOST_WAITING / 4]);
        let kept: usize = house.server.clients.values().map(|client| client.output.len()).sum();
        assert!(kept <= MOST_WAITING + MOST_WAITING / 4, "{kept}");
        let still: Vec<u8> = house.server.clients.values().map(|client| client.peer).collect();
        assert!(still.contains(&2) && still.contains(&1), "{still:?}");
        drop((greedy, modest));
    }

    #[test]
    fn among_equals_who_has_asked_stays_longest_and_then_the_newest() {
        let mut house = House::new();
        let asked = house.connect(1, b"?\n");
        let old = house.connect(1, b"");
        let rest: Vec<_> = (0..MOST_CLIENTS - 2).map(|_| house.connect(1, b"")).collect();
        house.turn();
        let newest = house.connect(1, b"");
        house.turn();
        assert_eq!(heard(&asked), "answer");
        // It has lost its connection, the others have not.
        let ended = |mut client: &UnixStream| matches!(client.read(&mut [0]), Ok(0));
        assert!(ended(&old) && !rest.iter().any(ended) && !ended(&newest));
    }
}
