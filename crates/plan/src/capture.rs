//! The capture of a run: what was seen at both ends of every link.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use careof_base::Instant;
use careof_trace::{Capture, Direction, InterfaceId, PcapngWriter};

use crate::topology::OneWayId;

/// A capture in the making: one interface a link end.
pub struct LinkCapture {
    writer: PcapngWriter<Box<dyn Write + Send>>,
    interfaces: Vec<InterfaceId>,
    /// By one-way link: where what it lost on the way is noted. Made when the first packet is lost.
    lost: BTreeMap<u32, InterfaceId>,
    /// The first failure to write; the run goes on, the end reports it.
    error: Option<io::Error>,
}

impl fmt::Debug for LinkCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkCapture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

impl LinkCapture {
    /// Begins a capture with an interface for every link end, `names` in the order of link and end
    /// ([`link_ends`](crate::link_ends)).
    ///
    /// # Errors
    /// What `out` reports.
    pub fn new(out: Box<dyn Write + Send>, snap_length: Option<u32>, names: &[String]) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(out, concat!("careof ", env!("CARGO_PKG_VERSION")))?;
        if let Some(bytes) = snap_length {
            writer.set_snap_length(bytes);
        }
        let interfaces =
            names.iter().map(|name| writer.add_interface(name, "")).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { writer, interfaces, lost: BTreeMap::new(), error: None })
    }

    /// The interface at the sending (`false`) or receiving (`true`) end of a one-way link.
    fn interface(&self, way: OneWayId, receiving: bool) -> Option<InterfaceId> {
        let link = way.0 as usize & !1;
        self.interfaces.get(link + (usize::from(receiving) ^ (way.0 as usize & 1))).copied()
    }

    /// Notes a packet at an end of a one-way link: `packet` is the number the trace knows it by.
    pub fn packet(
        &mut self,
        at: Instant,
        way: OneWayId,
        receiving: bool,
        (packet, bytes): (u64, &[u8]),
        comment: Option<&str>,
    ) {
        let Some(interface) = self.interface(way, receiving) else { return };
        let direction = if receiving { Direction::In } else { Direction::Out };
        self.writer.capture(Capture { interface, time: at, direction, packet, bytes, comment });
    }

    /// Notes a packet that a one-way link called `name` had accepted and then lost.
    pub fn lost_packet(
        &mut self,
        at: Instant,
        way: OneWayId,
        name: &str,
        (packet, bytes): (u64, &[u8]),
        comment: &str,
    ) {
        let interface = match self.lost.get(&way.0) {
            Some(interface) => *interface,
            None => match self.writer.add_interface(&format!("lost on {name}"), "packets that never arrived")
            {
                Ok(interface) => *self.lost.entry(way.0).or_insert(interface),
                Err(error) => {
                    self.error.get_or_insert(error);
                    return;
                }
            },
        };
        self.writer.capture(Capture {
            interface,
            time: at,
            direction: Direction::Out,
            packet,
            bytes,
            comment: Some(comment),
        });
    }

    /// Says something that happened at the entrance of a one-way link.
    pub fn comment(&mut self, at: Instant, way: OneWayId, text: &str) {
        if let Some(interface) = self.interface(way, false) {
            self.writer.comment_next(interface, at, text);
        }
    }

    /// Writes what lies before `before`; nothing earlier may be noted afterwards.
    pub fn flush(&mut self, before: Instant) {
        if let Err(error) = self.writer.flush(before) {
            self.error.get_or_insert(error);
        }
    }

    /// Writes everything.
    ///
    /// # Errors
    /// The first failure there was.
    pub fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.finish()?.flush(),
        }
    }
}
