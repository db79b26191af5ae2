//! Requests to a family of generic netlink that are answered by success or failure alone (`linux/genetlink.h`).
//!
//! Of `netlink-packet-generic` a header of four bytes and one question to the controller would be used. Attributes and the messages around them are
//! those of `netlink-packet-core`.

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable as _, NLM_F_ACK, NetlinkDeserializable, NetlinkHeader,
    NetlinkSerializable, NlasIterator,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use super::{DATAGRAM, Failure, answer_to, errno_of, send_request};
use crate::error::Error;

/// Bytes of `struct genlmsghdr`.
const HEADER: usize = 4;
/// The family that knows the others (`GENL_ID_CTRL`), what it is asked, and its attributes.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Of the controller.
const CONTROLLER_VERSION: u8 = 2;

/// A message of generic netlink: the header and what follows it.
#[derive(Clone, Debug)]
struct Message {
    family: u16,
    bytes: Vec<u8>,
}

impl Message {
    fn new(family: u16, (command, version): (u8, u8), attributes: &[DefaultNla]) -> Self {
        let mut bytes = vec![0; HEADER + attributes.buffer_len()];
        if let Some((header, rest)) = bytes.split_at_mut_checked(HEADER) {
            header.copy_from_slice(&[command, version, 0, 0]);
            attributes.emit(rest);
        }
        Self { family, bytes }
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        if let Some(room) = buffer.get_mut(..self.bytes.len()) {
            room.copy_from_slice(&self.bytes);
        }
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { family: header.message_type, bytes: payload.to_vec() })
    }
}

/// A conversation with one family, about the network namespace of the thread which opened it.
#[derive(Debug)]
pub(crate) struct GenericNetlink {
    socket: Socket,
    sequence: u32,
    family: u16,
    version: u8,
    buffer: Vec<u8>,
}

impl GenericNetlink {
    /// Opens a conversation with the family called `name`, in its `version`; `None` where the kernel has no such family.
    ///
    /// # Errors
    /// [`Error::System`] naming the call; [`Error::Netlink`] when the answer cannot be read.
    pub(crate) fn open(name: &str, version: u8) -> Result<Option<Self>, Error> {
        let failed =
            |call| move |error: std::io::Error| Error::system("talk to the kernel", call, errno_of(&error));
        let socket = Socket::new(NETLINK_GENERIC).map_err(failed("socket(NETLINK_GENERIC)"))?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed("connect(NETLINK_GENERIC)"))?;
        let buffer = Vec::with_capacity(DATAGRAM);
        let mut netlink = Self { socket, sequence: 0, family: CONTROLLER, version, buffer };
        // With the zero behind it.
        let named = DefaultNla::new(FAMILY_NAME, [name.as_bytes(), &[0]].concat());
        let question = Message::new(CONTROLLER, (GET_FAMILY, CONTROLLER_VERSION), &[named]);
        let doing = || format!("look up the netlink family {name}");
        match netlink.exchange(question, 0) {
            Ok(answer) => {
                netlink.family = answer.as_ref().and_then(family_in).ok_or_else(|| Error::Netlink {
                    doing: doing(),
                    problem: "the answer does not say its number".to_owned(),
                })?;
                Ok(Some(netlink))
            }
            Err(Failure::Errno(Errno::ENOENT)) => Ok(None),
            Err(failure) => Err(failure.explain("CTRL_CMD_GETFAMILY", doing)),
        }
    }

    /// Sends a command and waits for its acknowledgement.
    ///
    /// # Errors
    /// [`Error::System`] naming `call` and what the kernel answers.
    pub(crate) fn tell(
        &mut self,
        command: u8,
        attributes: &[DefaultNla],
        call: &'static str,
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let message = Message::new(self.family, (command, self.version), attributes);
        self.exchange(message, NLM_F_ACK).map(drop).map_err(|failure| failure.explain(call, doing))
    }

    fn exchange(&mut self, message: Message, flags: u16) -> Result<Option<Message>, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        send_request(&self.socket, self.sequence, message, flags)?;
        answer_to(self.sequence, &self.socket, &mut self.buffer)
    }
}

/// The number of the family that the controller tells of.
fn family_in(answer: &Message) -> Option<u16> {
    let attributes = NlasIterator::new(answer.bytes.get(HEADER..)?);
    let mut attributes = attributes.filter_map(Result::ok);
    let number = attributes.find(|attribute| attribute.kind() == FAMILY_ID)?;
    number.value().first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}
