//! A link's rate by UDP packets that keep its queue filled.

use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::thread::Builder;

use careof_base::{DataRate, Duration};
use careof_lab::{Error, Host};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use crate::echo::{pause, wall_clock};

#[expect(clippy::disallowed_types, reason = "a measurement of the real world")]
type Udp = std::net::UdpSocket;

const PORT: u16 = 7007;
const HEADERS: u64 = 20 + 8;
/// Packets that are given to the link beyond what it has sent: they keep the queue filled, and fit in.
const AHEAD: f64 = 0.75 * crate::QUEUE as f64;

/// What came out of the link.
pub(crate) struct Arrival {
    pub(crate) packets: u64,
    pub(crate) packet_bytes: u64,
    /// From the first packet's arrival to the last one's.
    pub(crate) span: Duration,
}

/// Sends `packets` packets of `bytes` bytes of IP through a link of that rate.
pub(crate) fn blast(
    from: &Host,
    source: Ipv4Addr,
    to: &Host,
    destination: Ipv4Addr,
    rate: DataRate,
    bytes: u64,
    packets: u64,
) -> Result<Arrival, Error> {
    let sender = open(from, source, destination)?;
    let receiver = open(to, destination, source)?;
    let set = failed("setsockopt");
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true).map_err(&set)?;
    setsockopt(&receiver, sockopt::RcvBuf, &(4 << 20)).map_err(&set)?;
    let patience = std::time::Duration::from_secs(3);
    receiver.set_read_timeout(Some(patience)).map_err(|_| set(Errno::EINVAL))?;
    let send = move || send_all(&sender, rate, bytes, packets);
    let thread = Builder::new().spawn(send).map_err(|_| failed("clone")(Errno::EAGAIN))?;

    let (mut count, mut first, mut last) = (0, None, Duration::ZERO);
    while count < packets {
        match receive(&receiver) {
            Ok(arrived) => {
                count += 1;
                first.get_or_insert(arrived);
                last = arrived;
            }
            Err(Errno::EAGAIN) => break,
            Err(errno) => return Err(failed("recvmsg")(errno)),
        }
    }
    // It has sent all it will send; what it could not send is missing among the arrivals.
    let _ = thread.join();
    let span = last.saturating_sub(first.unwrap_or(last));
    Ok(Arrival { packets: count, packet_bytes: bytes, span })
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "measure the rate".to_owned(), call, errno }
}

fn open(host: &Host, here: Ipv4Addr, there: Ipv4Addr) -> Result<Udp, Error> {
    let bound = host.run(move || {
        let socket = Udp::bind((here, PORT))?;
        socket.connect((there, PORT))?;
        Ok::<_, std::io::Error>(socket)
    })?;
    bound.map_err(|error| failed("bind")(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))
}

/// Keeps about [`AHEAD`] packets in front of the link, however irregularly this thread gets to run.
fn send_all(socket: &Udp, rate: DataRate, bytes: u64, packets: u64) {
    let payload = vec![0; (bytes - HEADERS) as usize];
    let packets_per_second = rate.bits_per_second() as f64 / (bytes * 8) as f64;
    let start = wall_clock();
    let mut sent = 0;
    while sent < packets {
        let elapsed = wall_clock().saturating_sub(start).as_secs_f64();
        let due = (elapsed * packets_per_second + AHEAD) as u64;
        while sent < due.min(packets) {
            // A packet that cannot be sent is missing among the arrivals.
            let _ = socket.send(&payload);
            sent += 1;
        }
        pause(Duration::from_micros(500));
    }
}

fn receive(socket: &Udp) -> Result<Duration, Errno> {
    let mut buffer = [0; 2048];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let arrived = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    Ok(arrived.unwrap_or_else(wall_clock))
}
