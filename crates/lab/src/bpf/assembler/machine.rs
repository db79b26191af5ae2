//! The virtual machine of RFC 9669, as far as the assembler knows its instructions: for tests, so that programs can be tried without a kernel.

use super::Instruction;

/// Memory by address: regions that do not touch.
#[derive(Default)]
pub(crate) struct Memory(Vec<(u64, Vec<u8>)>);

impl Memory {
    /// Lays a region of zeros at `address`, in place of one that is there.
    pub(crate) fn lay(&mut self, address: u64, len: usize) {
        self.0.retain(|(other, _)| *other != address);
        self.0.push((address, vec![0; len]));
    }

    /// The bytes at an address.
    pub(crate) fn at(&mut self, address: u64, len: usize) -> &mut [u8] {
        let holds = |(start, bytes): &&mut (u64, Vec<u8>)| {
            *start <= address && address + len as u64 <= *start + bytes.len() as u64
        };
        let (start, bytes) =
            self.0.iter_mut().find(holds).unwrap_or_else(|| panic!("nothing at {address:#x}"));
        let from = (address - *start) as usize;
        &mut bytes[from..from + len]
    }

    pub(crate) fn read(&mut self, address: u64, len: usize) -> u64 {
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(self.at(address, len));
        u64::from_le_bytes(wide)
    }

    pub(crate) fn write(&mut self, address: u64, len: usize, value: u64) {
        self.at(address, len).copy_from_slice(&value.to_le_bytes()[..len]);
    }
}

/// What a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    Helper(i32),
    Kernel(u32),
}

/// Where the stack begins.
const STACK: u64 = 0x7000_0000;
const STACK_LEN: usize = 512;
/// More instructions than any program here takes.
const LONGEST: usize = 10_000;

/// Runs a program whose argument is `context`; what it gives. Calls are answered by `call`, from the arguments.
pub(crate) fn run(
    code: &[Instruction],
    memory: &mut Memory,
    context: u64,
    mut call: impl FnMut(&mut Memory, Callee, [u64; 5]) -> u64,
) -> u64 {
    memory.lay(STACK, STACK_LEN);
    let mut registers = [0_u64; 11];
    (registers[1], registers[10]) = (context, STACK + STACK_LEN as u64);
    let mut next = 0_usize;
    for _ in 0..LONGEST {
        let Instruction { code: opcode, to, from, offset, number } = code[next];
        let (to, from) = (usize::from(to.0), usize::from(from.0));
        next += 1;
        let size = match opcode & 0x18 {
            0x00 => 4,
            0x10 => 1,
            _ => 8,
        };
        let second = if opcode & 0x08 == 0 { i64::from(number) as u64 } else { registers[from] };
        let address = |base: u64| base.wrapping_add_signed(offset.into());
        let operation = opcode & 0xf0;
        match (opcode, opcode & 0x07) {
            (0x18, _) => {
                registers[to] = number as u64;
                next += 1;
            }
            (0x85, _) => {
                let callee = if from == 2 { Callee::Kernel(number as u32) } else { Callee::Helper(number) };
                let arguments = std::array::from_fn(|index| registers[1 + index]);
                registers[0] = call(memory, callee, arguments);
                // What a call leaves in them is of no use to anybody.
                registers[1..6].fill(0xdead_dead_dead_dead);
            }
            (0x95, _) => return registers[0],
            (0xdb, _) => {
                let sum = memory.read(registers[to], 8).wrapping_add(registers[from]);
                memory.write(registers[to], 8, sum);
            }
            (_, 0x01) => registers[to] = memory.read(address(registers[from]), size),
            (_, 0x02) => memory.write(address(registers[to]), size, i64::from(number) as u64),
            (_, 0x03) => memory.write(address(registers[to]), size, registers[from]),
            (_, 0x04) => registers[to] = compute(operation, registers[to], second) & 0xffff_ffff,
            (_, 0x07) => registers[to] = compute(operation, registers[to], second),
            (_, class) => {
                if is_taken(operation, class == 0x06, registers[to], second) {
                    next = next.wrapping_add_signed(offset.into());
                }
            }
        }
    }
    panic!("the program does not end");
}

fn compute(operation: u8, first: u64, second: u64) -> u64 {
    match operation {
        0x00 => first.wrapping_add(second),
        0x10 => first.wrapping_sub(second),
        0x20 => first.wrapping_mul(second),
        // Section 4.1: division by zero gives zero.
        0x30 => first.checked_div(second).unwrap_or(0),
        0x50 => first & second,
        0x70 => first >> (second & 63),
        0xb0 => second,
        other => panic!("no operation {other:#x}"),
    }
}

fn is_taken(operation: u8, narrow: bool, first: u64, second: u64) -> bool {
    match (operation, narrow) {
        (0x00, false) => true,
        (0x10, false) => first == second,
        (0x20, false) => first > second,
        (0x30, false) => first >= second,
        (0x50, false) => first != second,
        (0xa0, false) => first < second,
        (0xb0, false) => first <= second,
        (0xc0, true) => (first as i32) < second as i32,
        (0xd0, true) => first as i32 <= second as i32,
        other => panic!("no comparison {other:?}"),
    }
}
