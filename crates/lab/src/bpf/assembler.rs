//! Programs of the kernel's virtual machine (RFC 9669), written instruction by instruction, with names for places to jump to.

#[cfg(all(test, target_endian = "little"))]
pub(crate) mod machine;

/// A register. [`R0`] holds results, [`R1`] to [`R5`] arguments, which calls destroy; [`R6`] to [`R9`] are the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(u8);

pub(crate) const R0: Register = Register(0);
pub(crate) const R1: Register = Register(1);
pub(crate) const R2: Register = Register(2);
pub(crate) const R3: Register = Register(3);
pub(crate) const R4: Register = Register(4);
pub(crate) const R6: Register = Register(6);
pub(crate) const R7: Register = Register(7);
pub(crate) const R8: Register = Register(8);
pub(crate) const R9: Register = Register(9);
/// The end of the stack, which grows downwards from here.
pub(crate) const FRAME: Register = Register(10);

/// How much is loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// A byte.
    Byte,
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

impl Size {
    const fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// Arithmetic of 64 bits, without signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    And,
    ShiftRight,
}

impl Operation {
    const fn code(self) -> u8 {
        match self {
            Self::Add => 0x00,
            Self::Subtract => 0x10,
            Self::Multiply => 0x20,
            Self::Divide => 0x30,
            Self::And => 0x50,
            Self::ShiftRight => 0x70,
        }
    }
}

/// When a jump is taken: how the first compares with the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Equal,
    NotEqual,
    Above,
    AtLeast,
    Below,
    AtMost,
    /// With signs, of 32 bits.
    SignedBelow32,
    /// With signs, of 32 bits.
    SignedAtMost32,
}

impl When {
    const fn code(self) -> u8 {
        match self {
            Self::Equal => JUMP | 0x10,
            Self::Above => JUMP | 0x20,
            Self::AtLeast => JUMP | 0x30,
            Self::NotEqual => JUMP | 0x50,
            Self::Below => JUMP | 0xa0,
            Self::AtMost => JUMP | 0xb0,
            Self::SignedBelow32 => JUMP_32 | 0xc0,
            Self::SignedAtMost32 => JUMP_32 | 0xd0,
        }
    }
}

// Classes, and what else makes an opcode (RFC 9669 section 3).
const LOAD: u8 = 0x61;
const STORE_NUMBER: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC: u8 = 0xc3;
const ARITHMETIC: u8 = 0x07;
const MOVE: u8 = 0xb0;
const FROM_REGISTER: u8 = 0x08;
const JUMP: u8 = 0x05;
const JUMP_32: u8 = 0x06;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_WIDE: u8 = 0x18;
/// In the second register's place: the number is that of a map, or of a function by the kernel's types.
const IS_MAP: Register = Register(1);
const IS_KERNEL_FUNCTION: Register = Register(2);

/// One instruction, or half of the one that is twice as wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    to: Register,
    from: Register,
    offset: i16,
    number: i32,
}

impl Instruction {
    /// As the kernel reads it, in the machine's own order of bytes.
    pub(crate) fn bytes(self) -> [u8; 8] {
        let registers = if cfg!(target_endian = "little") {
            self.from.0 << 4 | self.to.0
        } else {
            self.to.0 << 4 | self.from.0
        };
        let ([o0, o1], [n0, n1, n2, n3]) = (self.offset.to_ne_bytes(), self.number.to_ne_bytes());
        [self.code, registers, o0, o1, n0, n1, n2, n3]
    }
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// A program that cannot be: a jump to nowhere or too far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadJump;

/// A program as it grows.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<Instruction>,
    /// Where labels are, by number.
    places: Vec<Option<usize>>,
    /// Jumps, and where they lead.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The program.
    pub(crate) fn finish(mut self) -> Result<Vec<Instruction>, BadJump> {
        for (from, label) in &self.jumps {
            let place = self.places.get(label.0).copied().flatten().ok_or(BadJump)?;
            let offset = i64::try_from(place).map_err(|_| BadJump)? - (*from as i64 + 1);
            let jump = self.code.get_mut(*from).ok_or(BadJump)?;
            jump.offset = i16::try_from(offset).map_err(|_| BadJump)?;
        }
        Ok(self.code)
    }

    /// A place that will be named by [`Assembler::here`].
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label is here.
    pub(crate) fn here(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = Some(self.code.len());
        }
    }

    fn push(&mut self, code: u8, [to, from]: [Register; 2], offset: i16, number: i32) -> &mut Self {
        self.code.push(Instruction { code, to, from, offset, number });
        self
    }

    /// `to` = what is at `from` + `offset`.
    pub(crate) fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) -> &mut Self {
        self.push(LOAD | size.code(), [to, from], offset, 0)
    }

    /// At `to` + `offset` is now `from`.
    pub(crate) fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(STORE | size.code(), [to, from], offset, 0)
    }

    /// At `to` + `offset` is now `number`.
    pub(crate) fn store_number(&mut self, size: Size, to: Register, offset: i16, number: i32) -> &mut Self {
        self.push(STORE_NUMBER | size.code(), [to, R0], offset, number)
    }

    /// The 64 bits at `to` are more by `from`, whoever else adds.
    pub(crate) fn add_atomically(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(ATOMIC | Size::Double.code(), [to, from], 0, 0)
    }

    /// `to` = `from`.
    pub(crate) fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(ARITHMETIC | MOVE | FROM_REGISTER, [to, from], 0, 0)
    }

    /// `to` = `number`.
    pub(crate) fn set(&mut self, to: Register, number: i32) -> &mut Self {
        self.push(ARITHMETIC | MOVE, [to, R0], 0, number)
    }

    /// `to` = `to` and `from`, computed.
    pub(crate) fn compute(&mut self, operation: Operation, to: Register, from: Register) -> &mut Self {
        self.push(ARITHMETIC | operation.code() | FROM_REGISTER, [to, from], 0, 0)
    }

    /// `to` = `to` and `number`, computed.
    pub(crate) fn compute_number(&mut self, operation: Operation, to: Register, number: i32) -> &mut Self {
        self.push(ARITHMETIC | operation.code(), [to, R0], 0, number)
    }

    /// `to` = `to` - `from`, as numbers of 32 bits that wrap around.
    pub(crate) fn subtract_32(&mut self, to: Register, from: Register) -> &mut Self {
        const ARITHMETIC_32: u8 = 0x04;
        self.push(ARITHMETIC_32 | Operation::Subtract.code() | FROM_REGISTER, [to, from], 0, 0)
    }

    /// `to` = a map, by its descriptor.
    pub(crate) fn map(&mut self, to: Register, map: i32) -> &mut Self {
        self.push(LOAD_WIDE, [to, IS_MAP], 0, map).push(0, [R0, R0], 0, 0)
    }

    /// [`R0`] = what a helper of this number gives.
    pub(crate) fn call(&mut self, helper: i32) -> &mut Self {
        self.push(CALL, [R0, R0], 0, helper)
    }

    /// [`R0`] = what a function of the kernel gives, which has this number among its types.
    pub(crate) fn call_kernel(&mut self, function: u32) -> &mut Self {
        self.push(CALL, [R0, IS_KERNEL_FUNCTION], 0, function as i32)
    }

    /// Goes on at `label`.
    pub(crate) fn jump(&mut self, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP, [R0, R0], 0, 0)
    }

    /// Goes on at `label` where `first` compares so with `second`.
    pub(crate) fn jump_when(
        &mut self,
        first: Register,
        when: When,
        second: Register,
        label: Label,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(when.code() | FROM_REGISTER, [first, second], 0, 0)
    }

    /// Goes on at `label` where `first` compares so with `number`.
    pub(crate) fn jump_when_number(
        &mut self,
        first: Register,
        when: When,
        number: i32,
        label: Label,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(when.code(), [first, R0], 0, number)
    }

    /// The end, with [`R0`] for a result.
    pub(crate) fn exit(&mut self) -> &mut Self {
        self.push(EXIT, [R0, R0], 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(assembler: Assembler) -> Vec<[u8; 8]> {
        assembler.finish().unwrap().into_iter().map(Instruction::bytes).collect()
    }

    /// The encodings of RFC 9669, as `llvm-mc -triple=bpfel` prints them too.
    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_rfc_9669_has_them() {
        let mut asm = Assembler::new();
        asm.copy(R6, R1).set(R0, -1).load(Size::Double, R2, R1, 8).load(Size::Byte, R3, R6, -2);
        asm.store(Size::Word, FRAME, -4, R2).store_number(Size::Double, FRAME, -16, 7);
        asm.compute(Operation::Divide, R2, R3).compute_number(Operation::ShiftRight, R2, 3);
        asm.subtract_32(R2, R3).add_atomically(R0, R1).call(87).call_kernel(0x1234).map(R1, 5).exit();
        assert_eq!(
            bytes(asm),
            [
                [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
                [0xb7, 0x00, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0x79, 0x12, 8, 0, 0, 0, 0, 0],
                [0x71, 0x63, 0xfe, 0xff, 0, 0, 0, 0],
                [0x63, 0x2a, 0xfc, 0xff, 0, 0, 0, 0],
                [0x7a, 0x0a, 0xf0, 0xff, 7, 0, 0, 0],
                [0x3f, 0x32, 0, 0, 0, 0, 0, 0],
                [0x77, 0x02, 0, 0, 3, 0, 0, 0],
                [0x1c, 0x32, 0, 0, 0, 0, 0, 0],
                [0xdb, 0x10, 0, 0, 0, 0, 0, 0],
                [0x85, 0x00, 0, 0, 87, 0, 0, 0],
                [0x85, 0x20, 0, 0, 0x34, 0x12, 0, 0],
                [0x18, 0x11, 0, 0, 5, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0],
                [0x95, 0, 0, 0, 0, 0, 0, 0],
            ]
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn jumps_lead_to_their_labels_forwards_and_backwards() {
        let mut asm = Assembler::new();
        let (begin, end) = (asm.label(), asm.label());
        asm.here(begin);
        asm.jump_when_number(R1, When::Equal, 3, end).jump_when(R1, When::SignedBelow32, R2, begin);
        asm.jump(begin);
        asm.here(end);
        asm.exit();
        let offsets: Vec<[u8; 4]> =
            bytes(asm).iter().map(|code| [code[0], code[1], code[2], code[3]]).collect();
        assert_eq!(
            offsets,
            [[0x15, 0x01, 2, 0], [0xce, 0x21, 0xfe, 0xff], [0x05, 0, 0xfd, 0xff], [0x95, 0, 0, 0]]
        );
    }

    #[test]
    fn a_jump_to_nowhere_or_too_far_is_refused() {
        let mut asm = Assembler::new();
        let nowhere = asm.label();
        asm.jump(nowhere).exit();
        assert_eq!(asm.finish(), Err(BadJump));
        let mut asm = Assembler::new();
        let far = asm.label();
        asm.jump(far);
        for _ in 0..40_000 {
            asm.set(R0, 0);
        }
        asm.here(far);
        asm.exit();
        assert_eq!(asm.finish(), Err(BadJump));
    }
}
