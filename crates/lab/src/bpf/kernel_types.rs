//! What the running kernel says of its own types (BTF, `Documentation/bpf/btf.rst`): numbers of structures and functions, offsets of members.

use std::collections::BTreeMap;

/// Where the kernel says it.
pub(crate) const PATH: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
/// Kinds of types that are looked at, or passed over by their size (`enum btf_kind`).
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FUNCTION: u32 = 12;
    pub(super) const FUNCTION_PROTOTYPE: u32 = 13;
    pub(super) const VARIABLE: u32 = 14;
    pub(super) const SECTION: u32 = 15;
    pub(super) const TAG: u32 = 17;
    pub(super) const ENUM64: u32 = 19;
}
/// Of these nothing is known.
const LATER: u32 = 20;
/// Structures in structures, at most.
const DEPTH: usize = 8;

/// The types could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The kernel's types.
pub(crate) struct KernelTypes {
    bytes: Vec<u8>,
    strings: usize,
    /// Where each type begins, by number; the first has number 1.
    starts: Vec<usize>,
    /// Numbers of structures and functions, by where their name is.
    named: BTreeMap<u32, Vec<u32>>,
}

/// A type without what follows it.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    members: u32,
    /// Offsets of members say how many bits they have.
    has_bit_fields: bool,
    size: u32,
    /// Where its members begin.
    rest: usize,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its place among the members of the structure asked for, if it is one of its own and not of a structure inside.
    pub(crate) index: Option<u32>,
    /// From the beginning of the structure, bits.
    pub(crate) bit: u32,
    /// How many of them, if that is no multiple of bytes.
    pub(crate) bits: Option<u32>,
}

impl Member {
    /// From the beginning of the structure, bytes.
    pub(crate) const fn offset(self) -> u32 {
        self.bit / 8
    }
}

impl KernelTypes {
    /// Reads what the file [`PATH`] holds.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let magic = bytes.get(..2).and_then(|magic| magic.try_into().ok()).map(u16::from_ne_bytes);
        if magic != Some(MAGIC) {
            return Err(Malformed);
        }
        let header = word(&bytes, 4)? as usize;
        let section = |at: usize| -> Result<(usize, usize), Malformed> {
            let start = header.checked_add(word(&bytes, at)? as usize).ok_or(Malformed)?;
            let end = start.checked_add(word(&bytes, at + 4)? as usize).ok_or(Malformed)?;
            if end > bytes.len() { Err(Malformed) } else { Ok((start, end)) }
        };
        let (types, end) = section(8)?;
        let (strings, _) = section(16)?;
        let (mut starts, mut named) = (Vec::new(), BTreeMap::<u32, Vec<u32>>::new());
        let mut at = types;
        while at < end {
            let one = read(&bytes, at)?;
            starts.push(at);
            if one.kind == kind::STRUCT || one.kind == kind::FUNCTION {
                named.entry(one.name).or_default().push(starts.len() as u32);
            }
            at = one.rest.checked_add(behind(one)?).ok_or(Malformed)?;
        }
        Ok(Self { bytes, strings, starts, named })
    }

    /// The number of a structure.
    pub(crate) fn structure(&self, name: &str) -> Option<u32> {
        self.find(name, kind::STRUCT)
    }

    /// The number of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.find(name, kind::FUNCTION)
    }

    /// Bytes of a structure.
    pub(crate) fn size(&self, structure: u32) -> Option<u32> {
        self.get(structure).map(|one| one.size)
    }

    /// A member of a structure, be it one of a structure or union without a name inside.
    pub(crate) fn member(&self, structure: u32, name: &str) -> Option<Member> {
        self.member_of(structure, name, DEPTH)
    }

    fn member_of(&self, structure: u32, name: &str, depth: usize) -> Option<Member> {
        let one = self.get(structure).filter(|one| matches!(one.kind, kind::STRUCT | kind::UNION))?;
        for index in 0..one.members {
            let at = one.rest + 12 * index as usize;
            let [called, of, place] = [0, 4, 8].map(|offset| word(&self.bytes, at + offset).ok());
            let (called, of, place) = (called?, of?, place?);
            let (bit, bits) = if one.has_bit_fields {
                (place & 0x00ff_ffff, Some(place >> 24).filter(|bits| *bits > 0))
            } else {
                (place, None)
            };
            if called != 0 && self.text(called) == name.as_bytes() {
                return Some(Member { index: Some(index), bit, bits });
            }
            if called == 0
                && depth > 0
                && let Some(inside) = self.member_of(of, name, depth - 1)
            {
                return Some(Member { index: None, bit: bit.checked_add(inside.bit)?, bits: inside.bits });
            }
        }
        None
    }

    fn get(&self, number: u32) -> Option<Type> {
        let at = self.starts.get((number as usize).checked_sub(1)?)?;
        read(&self.bytes, *at).ok()
    }

    fn find(&self, name: &str, kind: u32) -> Option<u32> {
        let found = self.named.iter().find(|(offset, _)| self.text(**offset) == name.as_bytes());
        let mut numbers = found.into_iter().flat_map(|(_, numbers)| numbers);
        numbers.find(|number| self.get(**number).is_some_and(|one| one.kind == kind)).copied()
    }

    fn text(&self, offset: u32) -> &[u8] {
        let rest = self.bytes.get(self.strings.saturating_add(offset as usize)..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let word = at.checked_add(4).and_then(|end| bytes.get(at..end)).and_then(|word| word.try_into().ok());
    word.map(u32::from_ne_bytes).ok_or(Malformed)
}

fn read(bytes: &[u8], at: usize) -> Result<Type, Malformed> {
    let (name, info, size) = (word(bytes, at)?, word(bytes, at + 4)?, word(bytes, at + 8)?);
    let (kind, members, has_bit_fields) = (info >> 24 & 0x1f, info & 0xffff, info >> 31 == 1);
    Ok(Type { name, kind, members, has_bit_fields, size, rest: at + 12 })
}

/// How many bytes follow a type.
fn behind(one: Type) -> Result<usize, Malformed> {
    let each = match one.kind {
        kind::STRUCT | kind::UNION | kind::SECTION | kind::ENUM64 => 12,
        kind::ENUM | kind::FUNCTION_PROTOTYPE => 8,
        kind::ARRAY => return Ok(12),
        kind::INT | kind::VARIABLE | kind::TAG => return Ok(4),
        // A kind of a later kernel may be of any length.
        0 | LATER.. => return Err(Malformed),
        _ => return Ok(0),
    };
    Ok(each * one.members as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types as the kernel's documentation lays them out.
    struct Written {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Written {
        fn new() -> Self {
            Self { types: Vec::new(), strings: vec![0] }
        }

        fn name(&mut self, text: &str) -> u32 {
            if text.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend_from_slice(text.as_bytes());
            self.strings.push(0);
            at
        }

        fn words(&mut self, words: &[u32]) {
            self.types.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        }

        /// A structure (4) or a union (5), of members with a name, a type and an offset.
        fn structure(&mut self, kind: u32, name: &str, size: u32, bits: bool, members: &[(&str, u32, u32)]) {
            let name = self.name(name);
            self.words(&[name, kind << 24 | u32::from(bits) << 31 | members.len() as u32, size]);
            for (called, of, place) in members {
                let called = self.name(called);
                self.words(&[called, *of, *place]);
            }
        }

        fn file(&self) -> Vec<u8> {
            let mut bytes = MAGIC.to_ne_bytes().to_vec();
            bytes.extend([1, 0]);
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            bytes.extend([24, 0, types, types, strings].iter().flat_map(|word: &u32| word.to_ne_bytes()));
            bytes.extend_from_slice(&self.types);
            bytes.extend_from_slice(&self.strings);
            bytes
        }
    }

    fn written() -> Vec<u8> {
        let mut written = Written::new();
        // 1: int; 2: array; 3: a union without a name; 4: outer, with one bit field; 5: a prototype; 6: a function of it.
        let int = written.name("int");
        written.words(&[int, kind::INT << 24, 4, 32]);
        written.words(&[0, kind::ARRAY << 24, 0, 1, 1, 4]);
        written.structure(kind::UNION, "", 8, false, &[("whole", 1, 0), ("upper", 1, 32)]);
        let members = [("first", 1, 0), ("", 3, 64), ("flag", 1, 132 | 3 << 24)];
        written.structure(kind::STRUCT, "outer", 24, true, &members);
        written.words(&[0, kind::FUNCTION_PROTOTYPE << 24 | 1, 0, int, 1]);
        let function = written.name("function_of_kernel");
        written.words(&[function, kind::FUNCTION << 24, 5]);
        written.file()
    }

    #[test]
    fn members_are_found_by_their_names_through_what_has_none() {
        let types = KernelTypes::parse(written()).unwrap();
        let outer = types.structure("outer").unwrap();
        assert_eq!((outer, types.size(outer)), (4, Some(24)));
        assert_eq!(types.member(outer, "first"), Some(Member { index: Some(0), bit: 0, bits: None }));
        assert_eq!(types.member(outer, "upper"), Some(Member { index: None, bit: 96, bits: None }));
        let flag = types.member(outer, "flag").unwrap();
        assert_eq!(flag, Member { index: Some(2), bit: 132, bits: Some(3) });
        assert_eq!(flag.offset(), 16);
        assert_eq!(types.function("function_of_kernel"), Some(6));
        assert_eq!((types.function("outer"), types.structure("inner")), (None, None));
        assert_eq!(types.member(outer, "missing"), None);
    }

    #[test]
    fn what_is_cut_short_or_changed_is_refused_or_read_and_nothing_worse() {
        let whole = written();
        for len in 0..whole.len() {
            assert!(KernelTypes::parse(whole[..len].to_vec()).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for value in [0, 0xff, whole[at] ^ 0x10] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(types) = KernelTypes::parse(changed) {
                    let outer = types.structure("outer").unwrap_or(4);
                    let _ = (types.member(outer, "upper"), types.size(outer), types.function("outer"));
                }
            }
        }
    }

    #[test]
    fn a_kernel_that_describes_itself_can_be_read() {
        let Ok(bytes) = std::fs::read(PATH) else { return };
        let types = KernelTypes::parse(bytes).unwrap();
        let tcp = types.structure("tcp_sock").unwrap();
        // A TCP socket is an inet_connection_sock, is an inet_sock, is a sock, is a sock_common.
        let common = types.structure("sock_common").unwrap();
        assert_eq!(types.member(tcp, "inet_conn").map(Member::offset), Some(0));
        let port = types.member(common, "skc_num").unwrap().offset();
        assert_eq!(types.member(common, "skc_portpair").map(Member::offset), Some(port - 2));
        assert!(types.size(tcp) > types.size(common));
        assert!(types.function("tcp_reno_cong_avoid").is_some());
    }
}
