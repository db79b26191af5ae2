//! A congestion control of the kernel that can be told of handovers: CUBIC or Reno with what "A Cross-Layer Approach for Improving TCP
//! Performance in Mobile Environments" (Le, Fu and Hogrefe, 2008; TCP-CM) changes of a sender, as far as a kernel lets a program change it.
//!
//! It is a `tcp_congestion_ops` of BPF programs. What such a program may write of a socket is the window and the threshold; it is called when
//! an acknowledgement comes, when a loss is found and when the state of recovery changes.
//!
//! | what TCP-CM does | here |
//! |---|---|
//! | the peer has moved: threshold and window become bandwidth times the round trip of the new path (section 3.2.2) | by the first acknowledgement of something that was sent since |
//! | no acknowledgement of what went by the old path moves the window (section 3.2, 1) | but for the kernel's own recovery, until the path is measured |
//! | what is outstanding is sent again at once, without congestion control | when the kernel finds it lost, by its timer or by acknowledgements; then without congestion control: the window has room for all of it until the path is measured, and stands at least where it was set from then on, as the threshold does, until all of it is acknowledged or another timer runs out |
//! | SRTT, RTTVAR and RTO begin anew with the new path | left to the kernel, whose timer stays backed off until something is acknowledged |
//! | the own host has moved: nothing is sent and the timer stands still while there is no path (section 3.2.1) | the timer runs, and what it takes of window and threshold meanwhile is given back by the first acknowledgement of the new path |
//! | then one segment more leaves where the window leaves no room | left out: no program is called at that instant |
//!
//! The estimators are those of `careof_tcp` (`bandwidth.rs`), in bytes of data a second.
//!
//! News go through a map, by the addresses of a connection, and each connection acts on each of them once, when its programs are next called. What
//! they did comes back through a queue.

mod layout;
mod programs;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use careof_base::{DataRate, Duration, Instant};
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};

use crate::bpf::kernel_types::{self, KernelTypes};
use crate::bpf::{Link, Map, MapKind, NotLoaded, Program};
use crate::clock::Clock;
use crate::error::{BpfLack, Error};
use crate::sock_diag::NO_THRESHOLD;

use layout::{deed, fault, key, news, record};
use programs::{Lacks, Maps, Programs};

/// Connections that are remembered at a time; the one that nothing was heard of for longest makes room.
const CONNECTIONS: u32 = 8192;
/// Pairs of addresses that news are for.
const PAIRS: u32 = 4096;
/// Deeds that nobody has asked for yet.
const DEEDS: u32 = 4096;
/// Names that are tried: others on this kernel may have taken some.
const NAMES: u64 = 64;

/// The structure of the kernel's that holds the functions of a congestion control, and that by which it is registered.
const OPERATIONS: &str = "tcp_congestion_ops";
const REGISTERED: &str = "bpf_struct_ops_tcp_congestion_ops";

/// The congestion control that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Base {
    /// CUBIC.
    Cubic,
    /// Reno.
    Reno,
}

impl Base {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cubic, Self::Reno];

    /// The kernel's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

/// How the bandwidth is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Westwood+'s filter over what is acknowledged.
    Westwood,
    /// The largest delivery rate of the last ten round trips, as the kernel samples it.
    DeliveryRate,
}

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The peer has moved to another path, of which nothing is known.
    PathReplaced,
    /// There is no path: the own host has left one.
    PathLost,
    /// There is a path again.
    PathBack,
}

impl News {
    const ALL: [Self; 3] = [Self::PathReplaced, Self::PathLost, Self::PathBack];

    const fn number(self) -> i32 {
        match self {
            Self::PathReplaced => 1,
            Self::PathLost => 2,
            Self::PathBack => 3,
        }
    }
}

/// What the programs of a connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// They heard of something.
    Heard(News),
    /// They measured the path that replaced another, and set threshold and window by that; not where there was no estimate yet.
    Measured {
        /// What the path delivers, as estimated when it was replaced: data, without headers.
        bandwidth: Option<DataRate>,
        /// The new path's round trip.
        round_trip: Duration,
    },
    /// They gave back what timeouts have taken while there was no path.
    Restored,
}

/// Something that the programs did, and for which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed {
    /// When.
    pub at: Instant,
    /// The sender.
    pub local: SocketAddr,
    /// Its peer.
    pub remote: SocketAddr,
    /// What.
    pub did: Did,
    /// The congestion window behind it, segments.
    pub cwnd_segments: u32,
    /// The slow start threshold behind it, segments; `None` while there is none.
    pub ssthresh_segments: Option<u32>,
    /// Data in a segment, bytes.
    pub mss: u32,
}

/// A congestion control that is registered with the kernel as long as this lives, at most as long as the process, and that sockets of
/// every network namespace can choose by its name with `CAP_NET_ADMIN`. Sockets that have it keep it.
#[derive(Debug)]
pub struct ToldCongestion {
    name: String,
    base: Base,
    generation: AtomicU64,
    news: Map,
    deeds: Map,
    faults: Map,
    _connections: Map,
    _functions: Map,
    _programs: Vec<Program>,
    _link: Link,
}

impl ToldCongestion {
    /// Has the kernel verify and register it, under a name of its own. With `resend` it takes losses of what was outstanding when a path was
    /// replaced for no sign of congestion, and keeps the window open until that has been sent again.
    ///
    /// # Errors
    /// [`Error::NoToldCongestion`], with what the kernel or its administrator does not give. Nothing is changed then.
    pub fn register(base: Base, estimator: Estimator, resend: bool) -> Result<Self, Error> {
        let refused = |call: &'static str| {
            move |errno: Errno| {
                let lack = if matches!(errno, Errno::EPERM | Errno::EACCES) {
                    BpfLack::Permission { call, errno }
                } else {
                    BpfLack::Refused { call, errno, reason: String::new() }
                };
                Error::NoToldCongestion { base: base.name(), lack }
            }
        };
        let lacks =
            |name: &'static str| Error::NoToldCongestion { base: base.name(), lack: BpfLack::Type { name } };
        // The first thing that takes a permission: whoever has none is to hear that, and not of what the kernel lacks.
        let map = |kind, key, value, entries| {
            Map::create(kind, key, value, entries).map_err(refused("bpf(BPF_MAP_CREATE)"))
        };
        let connections = map(MapKind::LeastRecentlyUsed, key::LEN, record::LEN, CONNECTIONS)?;
        let news = map(MapKind::Hash, key::PAIR, news::LEN, PAIRS)?;
        let deeds = map(MapKind::Queue, 0, deed::LEN, DEEDS)?;
        let faults = map(MapKind::Array, 4, 8, fault::COUNT)?;

        let types = std::fs::read(kernel_types::PATH)
            .map_err(|_| ())
            .and_then(|bytes| KernelTypes::parse(bytes).map_err(|_| ()))
            .map_err(|()| Error::NoToldCongestion { base: base.name(), lack: BpfLack::Types })?;
        let operations = types.structure(OPERATIONS).ok_or_else(|| lacks(OPERATIONS))?;
        let registered = types.structure(REGISTERED).ok_or_else(|| lacks(REGISTERED))?;
        let maps = Maps {
            connections: connections.number(),
            news: news.number(),
            deeds: deeds.number(),
            faults: faults.number(),
        };
        let found =
            Programs::new(&types, base, estimator, resend, maps).map_err(|Lacks(name)| lacks(name))?;

        let size = types.size(registered).ok_or_else(|| lacks(REGISTERED))? as usize;
        let data = types.member(registered, "data").ok_or_else(|| lacks(REGISTERED))?.offset() as usize;
        let mut value = vec![0; size];
        let mut programs = Vec::new();
        for function in found.all() {
            let member = types.member(operations, function.name).ok_or_else(|| lacks(function.name))?;
            let index = member.index.ok_or_else(|| lacks(function.name))?;
            let code = function.code.finish().map_err(|_| lacks(function.name))?;
            let program = Program::load(&code, operations, index).map_err(|NotLoaded { errno, log }| {
                let call = "bpf(BPF_PROG_LOAD)";
                let reason = format!(" ({}: {log})", function.name);
                match refused(call)(errno) {
                    // The verifier says the same where it does not let a program do something.
                    Error::NoToldCongestion { base, .. } if !log.is_empty() => {
                        Error::NoToldCongestion { base, lack: BpfLack::Refused { call, errno, reason } }
                    }
                    error => error,
                }
            })?;
            let place = data + member.offset() as usize;
            write(&mut value, place, &u64::from(program.number() as u32).to_ne_bytes())
                .ok_or_else(|| lacks(function.name))?;
            programs.push(program);
        }

        let name_at = types.member(operations, "name").ok_or_else(|| lacks(OPERATIONS))?.offset() as usize;
        for number in 0..NAMES {
            let name = name(base, number);
            let mut value = value.clone();
            write(&mut value, data + name_at, name.as_bytes()).ok_or_else(|| lacks(OPERATIONS))?;
            let functions = map(MapKind::StructOps(registered), 4, size, 1)?;
            functions.put(&[0; 4], &value).map_err(refused("bpf(BPF_MAP_UPDATE_ELEM)"))?;
            let link = match Link::create(&functions) {
                Ok(link) => link,
                Err(Errno::EEXIST) => continue,
                Err(errno) => return Err(refused("bpf(BPF_LINK_CREATE)")(errno)),
            };
            return Ok(Self {
                name,
                base,
                generation: AtomicU64::new(0),
                news,
                deeds,
                faults,
                _connections: connections,
                _functions: functions,
                _programs: programs,
                _link: link,
            });
        }
        Err(refused("bpf(BPF_LINK_CREATE)")(Errno::EEXIST))
    }

    /// What sockets choose it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is beside that it can be told.
    #[must_use]
    pub const fn base(&self) -> Base {
        self.base
    }

    /// Tells all connections from `local` to `remote` what holds since `at`. Those of IPv4 hear nothing.
    ///
    /// # Errors
    /// [`Error::System`] when there are too many pairs of addresses.
    pub fn tell(
        &self,
        local: Ipv6Addr,
        remote: Ipv6Addr,
        what: News,
        at: Instant,
        clock: Clock,
    ) -> Result<(), Error> {
        let mut key = [0; key::PAIR];
        key[key::LOCAL..key::LOCAL + 16].copy_from_slice(&local.octets());
        key[key::REMOTE..key::REMOTE + 16].copy_from_slice(&remote.octets());
        // The first is 1: a connection that has heard of nothing has heard of 0.
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let since = monotonic().saturating_sub(clock.now().saturating_duration_since(at));
        let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        let mut value = [0; news::LEN];
        for (place, number) in
            [(news::GENERATION, generation), (news::KIND, what.number() as u64), (news::SINCE, since)]
        {
            let place = place as usize;
            value[place..place + 8].copy_from_slice(&number.to_ne_bytes());
        }
        let put = self.news.put(&key, &value);
        put.map_err(|errno| Error::system("tell TCP of a handover", "bpf(BPF_MAP_UPDATE_ELEM)", errno))
    }

    /// What the programs did since the last call.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel does not answer.
    pub fn take_deeds(&self, clock: Clock) -> Result<Vec<Deed>, Error> {
        let failed =
            |errno| Error::system("ask TCP about a handover", "bpf(BPF_MAP_LOOKUP_AND_DELETE_ELEM)", errno);
        // One comparison of the clocks for all, so that what was done at once is told in its order.
        let (now, kernels_now) = (clock.now(), monotonic());
        let mut deeds = Vec::new();
        while let Some(bytes) = self.deeds.take().map_err(failed)? {
            // The kernel's time may be a little later by now.
            let at = |kernels: Duration| match kernels.checked_sub(kernels_now) {
                Some(later) => now + later,
                None => now.saturating_sub(kernels_now - kernels),
            };
            // Another kind than the programs send cannot be.
            deeds.extend(parse_deed(&bytes, at));
        }
        Ok(deeds)
    }

    /// Deeds that could not be told, and connections that could not be remembered.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel does not answer.
    pub fn faults(&self) -> Result<u64, Error> {
        let mut sum = 0;
        for number in [fault::UNTOLD, fault::UNKNOWN] {
            let found = self.faults.get(&number.to_ne_bytes());
            let found = found.map_err(|errno| {
                Error::system("ask TCP about a handover", "bpf(BPF_MAP_LOOKUP_ELEM)", errno)
            })?;
            sum += found.as_deref().and_then(|value| number_at(value, 0)).unwrap_or(0);
        }
        Ok(sum)
    }
}

/// A name that is this process's own, unless another one has taken it. The kernel takes letters, digits, `_` and `.`, 15 of them.
fn name(base: Base, number: u64) -> String {
    let base = base.name().get(..1).unwrap_or_default();
    format!("cm{base}{:x}_{number:x}", process::id() & 0x00ff_ffff)
}

/// What the kernel's TCP counts its time by; in a time namespace, which is not looked at, that differs by its offset.
fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

fn write(value: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    value.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
    Some(())
}

fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// `at` is the run's time at one of the kernel's.
fn parse_deed(bytes: &[u8], at: impl Fn(Duration) -> Instant) -> Option<Deed> {
    let number = |at| number_at(bytes, at);
    let segments = |at| number(at).map(|segments| u32::try_from(segments).unwrap_or(u32::MAX));
    let key = bytes.get(deed::KEY..)?;
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = key.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let port = |at: usize| -> Option<[u8; 2]> { key.get(at..at + 2)?.try_into().ok() };
    let end = |address, port| match address {
        IpAddr::V6(address) => SocketAddrV6::new(address, port, 0, 0).into(),
        other @ IpAddr::V4(_) => SocketAddr::new(other, port),
    };
    let kind = i32::try_from(number(deed::KIND)?).ok()?;
    let did = match kind {
        deed::MEASURED => {
            let bytes = number(deed::BANDWIDTH)?;
            let bandwidth = (bytes > 0).then(|| DataRate::from_bits_per_second(bytes.saturating_mul(8)));
            Did::Measured { bandwidth, round_trip: Duration::from_micros(number(deed::ROUND_TRIP)?) }
        }
        deed::RESTORED => Did::Restored,
        _ => Did::Heard(News::ALL.into_iter().find(|news| news.number() == kind)?),
    };
    Some(Deed {
        at: at(Duration::from_micros(number(deed::AT)?)),
        local: end(address(key::LOCAL)?, u16::from_ne_bytes(port(key::PORTS + 2)?)),
        remote: end(address(key::REMOTE)?, u16::from_be_bytes(port(key::PORTS)?)),
        did,
        cwnd_segments: segments(deed::WINDOW)?,
        ssthresh_segments: Some(segments(deed::THRESHOLD)?).filter(|segments| *segments < NO_THRESHOLD),
        mss: segments(deed::MSS)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_the_kernel_takes() {
        for base in Base::ALL {
            for number in [0, NAMES - 1] {
                let name = name(base, number);
                let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
                assert!(name.len() <= 15 && name.bytes().all(is_taken), "{name}");
            }
        }
        assert_ne!(name(Base::Cubic, 0), name(Base::Reno, 0));
        assert_ne!(name(Base::Cubic, 0), name(Base::Cubic, 1));
    }

    #[test]
    fn a_deed_is_read_as_it_is_laid_out() {
        let at = |kernels: Duration| Instant::ZERO + kernels;
        let mut bytes = vec![0; deed::LEN];
        let numbers = [
            (deed::KIND, deed::MEASURED as u64),
            (deed::AT, 9_000_000),
            (deed::BANDWIDTH, 125_000),
            (deed::ROUND_TRIP, 40_000),
            (deed::WINDOW, 3),
            (deed::THRESHOLD, 3),
            (deed::MSS, 1_428),
        ];
        for (at, number) in numbers {
            write(&mut bytes, at, &number.to_ne_bytes()).unwrap();
        }
        let (local, remote) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7));
        write(&mut bytes, deed::KEY + key::LOCAL, &local.octets()).unwrap();
        write(&mut bytes, deed::KEY + key::REMOTE, &remote.octets()).unwrap();
        write(&mut bytes, deed::KEY + key::PORTS, &443_u16.to_be_bytes()).unwrap();
        write(&mut bytes, deed::KEY + key::PORTS + 2, &5_000_u16.to_ne_bytes()).unwrap();
        let found = parse_deed(&bytes, at).unwrap();
        assert_eq!(found.at, Instant::ZERO + Duration::from_secs(9));
        assert_eq!((found.local, found.remote), ((local, 5_000).into(), (remote, 443).into()));
        let bandwidth = Some(DataRate::from_bits_per_second(1_000_000));
        assert_eq!(found.did, Did::Measured { bandwidth, round_trip: Duration::from_millis(40) });
        assert_eq!((found.cwnd_segments, found.ssthresh_segments, found.mss), (3, Some(3), 1_428));
        write(&mut bytes, deed::BANDWIDTH, &0_u64.to_ne_bytes()).unwrap();
        let found = parse_deed(&bytes, at).unwrap();
        assert_eq!(found.did, Did::Measured { bandwidth: None, round_trip: Duration::from_millis(40) });
        for (kind, did) in
            [(deed::RESTORED, Did::Restored), (News::PathLost.number(), Did::Heard(News::PathLost))]
        {
            write(&mut bytes, deed::KIND, &(kind as u64).to_ne_bytes()).unwrap();
            assert_eq!(parse_deed(&bytes, at).unwrap().did, did);
        }
        write(&mut bytes, deed::KIND, &99_u64.to_ne_bytes()).unwrap();
        assert_eq!(parse_deed(&bytes, at), None);
        for len in 0..deed::LEN {
            assert_eq!(parse_deed(&bytes[..len], at), None);
        }
    }
}
