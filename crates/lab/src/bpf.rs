//! The little of bpf(2) that the lab needs: maps, programs that the kernel calls in place of functions of its own (`struct_ops`), and the link
//! that holds them in their place.
//!
//! Everything here is a file descriptor. When the last one is closed, at the latest when the process ends, the kernel takes it all back.

pub(crate) mod assembler;
pub(crate) mod kernel_types;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

use assembler::Instruction;

/// Commands of bpf(2), `enum bpf_cmd` of `linux/bpf.h`.
mod command {
    pub(super) const MAP_CREATE: libc::c_long = 0;
    pub(super) const MAP_LOOKUP: libc::c_long = 1;
    pub(super) const MAP_UPDATE: libc::c_long = 2;
    pub(super) const PROGRAM_LOAD: libc::c_long = 5;
    pub(super) const TYPES_LOAD: libc::c_long = 18;
    pub(super) const MAP_TAKE: libc::c_long = 21;
    pub(super) const LINK_CREATE: libc::c_long = 28;
}

/// `BPF_PROG_TYPE_STRUCT_OPS`, `BPF_STRUCT_OPS` (where it is attached) and `BPF_F_LINK` (a map of functions that a link puts in place).
const PROGRAM_OF_STRUCT_OPS: u32 = 27;
const ATTACHED_AS_STRUCT_OPS: u32 = 44;
const WITH_LINK: u32 = 1 << 13;

/// The kernel lets only programs that are GPL-compatible take part in congestion control. Those of careof are under the MIT licence as
/// well as under Apache's, and the former is.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";

/// How much of the verifier's reasons is asked for.
const LOG_BYTES: usize = 1 << 20;

/// Kinds of maps, `enum bpf_map_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// Values by number.
    Array,
    /// Values by key. Where it is full, who was not asked for longest makes room.
    LeastRecentlyUsed,
    /// Values by key.
    Hash,
    /// Values without keys: the first in is the first out.
    Queue,
    /// Functions of the kernel's structure of this type.
    StructOps(u32),
}

impl MapKind {
    const fn number(self) -> u32 {
        match self {
            Self::Hash => 1,
            Self::Array => 2,
            Self::LeastRecentlyUsed => 9,
            Self::Queue => 22,
            Self::StructOps(_) => 26,
        }
    }
}

/// A map.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
}

impl Map {
    /// A map of at most `entries` values.
    pub(crate) fn create(kind: MapKind, key: usize, value: usize, entries: u32) -> Result<Self, Errno> {
        let mut attributes = Attributes::new();
        attributes.u32(0, kind.number()).u32(4, key as u32).u32(8, value as u32).u32(12, entries);
        let types;
        if let MapKind::StructOps(kernel_type) = kind {
            // Whoever names a type of the kernel's has to have types, though nobody looks at them.
            types = load_types()?;
            attributes.u32(16, WITH_LINK).u32(48, types.as_raw_fd() as u32).u32(60, kernel_type);
        }
        Ok(Self { fd: open(command::MAP_CREATE, &attributes)?, key, value })
    }

    /// What programs name it by.
    pub(crate) fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Puts a value in, in place of one of the same key.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        if key.len() != self.key || value.len() != self.value {
            return Err(Errno::EINVAL);
        }
        call(command::MAP_UPDATE, &self.element(key.as_ptr(), value.as_ptr())).map(drop)
    }

    /// Reads a value; `None` where there is none.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        if key.len() != self.key {
            return Err(Errno::EINVAL);
        }
        self.fill(command::MAP_LOOKUP, key.as_ptr())
    }

    /// Takes the first value out of a queue; `None` where it is empty.
    pub(crate) fn take(&self) -> Result<Option<Vec<u8>>, Errno> {
        if self.key != 0 {
            return Err(Errno::EINVAL);
        }
        self.fill(command::MAP_TAKE, std::ptr::null())
    }

    fn fill(&self, what: libc::c_long, key: *const u8) -> Result<Option<Vec<u8>>, Errno> {
        let mut value = vec![0; self.value];
        match call(what, &self.element(key, value.as_mut_ptr())) {
            Ok(_) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn element(&self, key: *const u8, value: *const u8) -> Attributes {
        let mut attributes = Attributes::new();
        attributes.u32(0, self.fd.as_raw_fd() as u32).pointer(8, key).pointer(16, value);
        attributes
    }
}

/// A program that the kernel has verified and compiled.
#[derive(Debug)]
pub(crate) struct Program {
    fd: OwnedFd,
}

/// Why a program was not loaded.
#[derive(Debug)]
pub(crate) struct NotLoaded {
    pub(crate) errno: Errno,
    /// The end of what the verifier says.
    pub(crate) log: String,
}

impl Program {
    /// Loads a program that stands for the `member`th function of the kernel's structure of type `structure`.
    pub(crate) fn load(code: &[Instruction], structure: u32, member: u32) -> Result<Self, NotLoaded> {
        let bytes: Vec<u8> = code.iter().flat_map(|instruction| instruction.bytes()).collect();
        let mut attributes = Attributes::new();
        attributes.u32(0, PROGRAM_OF_STRUCT_OPS).u32(4, code.len() as u32);
        attributes.pointer(8, bytes.as_ptr()).pointer(16, LICENSE.as_ptr());
        attributes.u32(68, member).u32(108, structure);
        let refused = match open(command::PROGRAM_LOAD, &attributes) {
            Ok(fd) => return Ok(Self { fd }),
            Err(errno) => errno,
        };
        // Once more, for the reasons.
        let mut log = vec![0; LOG_BYTES];
        attributes.u32(24, 1).u32(28, LOG_BYTES as u32).pointer(32, log.as_mut_ptr());
        match open(command::PROGRAM_LOAD, &attributes) {
            Ok(fd) => Ok(Self { fd }),
            Err(_) => Err(NotLoaded { errno: refused, log: end_of(&log) }),
        }
    }

    /// What a map of functions names it by.
    pub(crate) fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The last lines of a verifier's log.
fn end_of(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

/// Functions in their place in the kernel, until this is dropped and nobody uses them any more.
#[derive(Debug)]
pub(crate) struct Link {
    _fd: OwnedFd,
}

impl Link {
    /// Puts the functions of a map into their place.
    pub(crate) fn create(functions: &Map) -> Result<Self, Errno> {
        let mut attributes = Attributes::new();
        attributes.u32(0, functions.fd.as_raw_fd() as u32).u32(8, ATTACHED_AS_STRUCT_OPS);
        Ok(Self { _fd: open(command::LINK_CREATE, &attributes)? })
    }
}

/// The least that the kernel takes for a program's types: a number of 32 bits.
fn load_types() -> Result<OwnedFd, Errno> {
    const STRINGS: &[u8] = b"\0int\0";
    // Magic, version and length of the header; where types and strings are and how long; name, kind, size and bits of the one type.
    const HEADER: u32 = 24;
    const TYPE: u32 = 16;
    let first = u32::from_ne_bytes(if cfg!(target_endian = "little") {
        [0x9f, 0xeb, 1, 0]
    } else {
        [0xeb, 0x9f, 1, 0]
    });
    let words = [first, HEADER, 0, TYPE, TYPE, STRINGS.len() as u32, 1, 1 << 24, 4, 32];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    bytes.extend_from_slice(STRINGS);
    let mut attributes = Attributes::new();
    attributes.pointer(0, bytes.as_ptr()).u32(16, bytes.len() as u32);
    open(command::TYPES_LOAD, &attributes)
}

/// `union bpf_attr`, by offsets; what is not set is zero.
struct Attributes([u8; 128]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 128])
    }

    fn u32(&mut self, offset: usize, value: u32) -> &mut Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn pointer<T>(&mut self, offset: usize, pointer: *const T) -> &mut Self {
        let address = pointer.addr() as u64;
        self.0[offset..offset + 8].copy_from_slice(&address.to_ne_bytes());
        self
    }
}

fn call(command: libc::c_long, attributes: &Attributes) -> Result<libc::c_long, Errno> {
    // SAFETY: the kernel reads the attributes, of the size that is said. What they point to lives in the caller: keys and values are as
    // long as the map was made for (`put`, `get` and `take` see to it); code, licence and types are read; the log is as long as is said.
    #[expect(unsafe_code, reason = "no safe binding among our crates")]
    let done = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.0.as_ptr(), attributes.0.len() as libc::c_uint)
    };
    Errno::result(done)
}

/// A call whose answer is a new descriptor, which other programs do not inherit.
fn open(command: libc::c_long, attributes: &Attributes) -> Result<OwnedFd, Errno> {
    let fd = call(command, attributes)?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    #[expect(unsafe_code, reason = "a descriptor comes out of the kernel as a number")]
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
