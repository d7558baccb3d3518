//! Where a value came from, by the instructions that were executed: back through registers, to the
//! word of memory that was read, or to the instruction that computed it. Pure.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize,
    Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// An instruction that a run has executed, with the registers before it.
#[derive(Clone, Copy, Debug)]
pub struct Executed {
    /// The decoded instruction.
    pub instruction: Instruction,
    /// Values of the registers before the instruction, by their DWARF numbers.
    pub registers: [u64; REGISTERS],
    /// Whether the instruction calls a function of a library, which was executed as a whole.
    pub is_library_call: bool,
}

/// A place whose value is followed back: what a register or a word of memory holds before an
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The general register with this DWARF number.
    Register(usize),
    /// The memory at this address, with the number of bytes.
    Memory(u64, u64),
    /// Some bytes of a register.
    Part {
        /// DWARF number of the register: of a general one, or a vector register (that of `xmm0` is 17).
        register: usize,
        /// Offset of the first of the bytes in the register.
        offset: u64,
        /// Number of the bytes.
        size: u64,
    },
}

/// Where a value came from, in a list of executed instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An instruction read the value from memory, where none of the executed ones had written it.
    Read {
        /// Index of the instruction that read the value.
        at: usize,
        /// Address from which the instruction read the value.
        address: u64,
        /// Number of bytes that the instruction read.
        size: u64,
    },
    /// The instruction with this index computed the value, or is the call of a library that
    /// returned it.
    Computed(usize),
}

impl Executed {
    /// Decodes the instruction at the program counter; `code` are the bytes there. `None` where
    /// they are no instruction.
    pub fn new(code: &[u8], registers: [u64; REGISTERS]) -> Option<Executed> {
        let at = registers[REGISTERS - 1];
        let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(Executed {
            instruction,
            registers,
            is_library_call: false,
        })
    }

    /// Returns the address of the instruction.
    pub fn pc(&self) -> u64 {
        self.registers[REGISTERS - 1]
    }

    /// Returns true if the instruction is a conditional jump.
    pub fn is_condition(&self) -> bool {
        self.instruction.flow_control() == FlowControl::ConditionalBranch
    }

    /// Returns true if the instruction calls a function.
    pub fn is_call(&self) -> bool {
        let flow = self.instruction.flow_control();
        matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Returns the address at which a conditional jump that went to `next` would have gone on, had it
    /// been decided otherwise.
    pub fn other_way(&self, next: u64) -> u64 {
        match self.instruction.next_ip() {
            after if after == next => self.instruction.near_branch_target(),
            after => after,
        }
    }

    /// Returns true if the instruction takes a value from the stack: mostly a register that the
    /// function has saved for its caller.
    pub fn is_pop(&self) -> bool {
        self.instruction.mnemonic() == Mnemonic::Pop
    }

    /// Returns true if the instruction is a division of integers.
    pub fn is_division(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
    }

    fn address(&self, memory: &UsedMemory) -> Option<u64> {
        memory.virtual_address(0, |register, _, _| match register {
            Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
            register => Some(self.registers[number(register)?]),
        })
    }

    /// Returns address and size of the memory that the instruction accesses, for the first access
    /// of which `is_such` is true (such as a read); `None` if there is none.
    fn memory(&self, is_such: fn(OpAccess) -> bool) -> Option<(u64, u64)> {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&self.instruction);
        let found = (info.used_memory().iter()).find(|it| is_such(it.access()))?;
        Some((self.address(found)?, size(found.memory_size())))
    }

    /// Returns true if a function of a library that the instruction calls may write some memory: any but
    /// that of the frames which have led here, unless an argument points there or close before.
    fn may_write(&self, memory: Value) -> bool {
        let Value::Memory(address, size) = memory else {
            return true;
        };
        let stack = self.registers[usize::from(STACK_POINTER)];
        // rdi, rsi, rdx, rcx, r8, r9.
        let arguments = [5, 4, 1, 2, 8, 9].map(|number: usize| self.registers[number]);
        let near = address.saturating_sub(NEAR)..address + size;
        !(stack..stack + NEAR).contains(&address) || arguments.iter().any(|it| near.contains(it))
    }

    /// Returns true if the instruction accesses some of this memory.
    pub fn uses(&self, memory: &Range<u64>) -> bool {
        let is_inside = |it: Option<(u64, u64)>| {
            it.is_some_and(|(at, length)| at < memory.end && memory.start < at + length)
        };
        is_inside(self.memory(is_read)) || is_inside(self.memory(is_write))
    }

    fn writes(&self, register: usize) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&self.instruction);
        let mut used = info.used_registers().iter();
        used.any(|it| is_write(it.access()) && number(it.register()) == Some(register))
    }

    /// The memory that the instruction reads: address and number of bytes.
    pub fn read(&self) -> Option<(u64, u64)> {
        self.memory(is_read)
    }

    /// Whether the instruction writes to a register or memory.
    fn is_write_to(&self, value: Value) -> bool {
        match value {
            Value::Register(register) => self.writes(register),
            Value::Memory(address, size) => {
                let written = self.memory(is_write);
                written.is_some_and(|(at, length)| at < address + size && address < at + length)
            }
            Value::Part { register, .. } if register < REGISTERS => self.writes(register),
            Value::Part { register, .. } => {
                let mut factory = InstructionInfoFactory::new();
                let info = factory.info(&self.instruction);
                let mut used = info.used_registers().iter();
                used.any(|it| is_write(it.access()) && vector(it.register()) == Some(register))
            }
        }
    }

    /// The value that an operand of the instruction has: a register or the memory that is read.
    fn operand(&self, number_of: u32) -> Option<Value> {
        let it = &self.instruction;
        match it.op_kind(number_of) {
            OpKind::Register => value_of(it.op_register(number_of)),
            _ if it.try_immediate(number_of).is_ok() => None,
            _ => self.memory(is_read).map(|it| Value::Memory(it.0, it.1)),
        }
    }

    /// The values that the instruction compares, or by which it divides.
    pub fn operands(&self) -> Vec<Value> {
        let it = &self.instruction;
        let count = if self.is_division() { 1 } else { 2 };
        let mut found: Vec<Value> = Vec::new();
        for operand in 0..it.op_count().min(count) {
            let value = self.operand(operand);
            found.extend(value.filter(|value| !found.contains(value)));
        }
        found
    }

    /// Returns the DWARF numbers of the registers by which the instruction addresses memory, the
    /// index register first.
    pub fn address_registers(&self) -> Vec<usize> {
        let registers = [
            self.instruction.memory_index(),
            self.instruction.memory_base(),
        ];
        registers.into_iter().filter_map(number).collect()
    }

    /// Returns the values from which the instruction computes the one that it writes: the operands
    /// that it reads; for `lea`, which only computes an address, the registers of that address.
    pub fn terms(&self) -> Vec<Value> {
        if self.instruction.mnemonic() == Mnemonic::Lea {
            let registers = self.address_registers().into_iter();
            return registers.map(Value::Register).collect();
        }
        if self.is_division() {
            return self.operands();
        }
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&self.instruction);
        // What makes zero of any value (`xor eax, eax`) reads nothing.
        let reads_none = info.used_registers().iter().all(|it| !is_read(it.access()));
        let count = self.instruction.op_count();
        let is_zero =
            reads_none && (0..count).all(|it| self.instruction.op_kind(it) == OpKind::Register);
        let read = (0..count).filter(|it| !is_zero && is_read(info.op_access(*it)));
        let mut found: Vec<Value> = Vec::new();
        for value in read.filter_map(|it| self.operand(it)) {
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    }

    /// Returns the value that the instruction copies to `written`, which it writes; `None` if it does
    /// more than copy, or add a constant, or sets that part of its destination to zero.
    fn copied(&self, written: Value) -> Option<Value> {
        let it = &self.instruction;
        let whole = match it.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                self.operand(1)?
            }
            Mnemonic::Push => self.operand(0)?,
            // The same number, in a wider register.
            Mnemonic::Cdqe | Mnemonic::Cwde => Value::Register(RESULT),
            Mnemonic::Pop => self.memory(is_read).map(|it| Value::Memory(it.0, it.1))?,
            // A part of what a pointer leads to.
            Mnemonic::Lea if it.memory_index() == Register::None => {
                number(it.memory_base()).map(Value::Register)?
            }
            Mnemonic::Add | Mnemonic::Sub
                if self.operand(1).is_none() && it.op_kind(0) == OpKind::Register =>
            {
                self.operand(0)?
            }
            mnemonic if MOVES.contains(&mnemonic) => self.operand(1)?,
            _ => return None,
        };
        // The part of the destination that is asked for.
        let (offset, size) = match written {
            Value::Memory(address, size) => {
                let (start, length) = self.memory(is_write)?;
                let offset = address.saturating_sub(start);
                (offset, size.min(length.saturating_sub(offset)))
            }
            Value::Part { offset, size, .. } => (offset, size),
            Value::Register(_) => (0, 8),
        };
        match whole {
            Value::Memory(address, length) => (offset < length)
                .then(|| Value::Memory(address + offset, size.min(length - offset))),
            Value::Register(_) if (offset, size) == (0, 8) => Some(whole),
            Value::Register(register) | Value::Part { register, .. } => Some(Value::Part {
                register,
                offset,
                size,
            }),
        }
    }
}

/// Instructions that copy several bytes from one place to another: vectors, and strings.
const MOVES: [Mnemonic; 24] = [
    Mnemonic::Movsb,
    Mnemonic::Movsw,
    Mnemonic::Movsd,
    Mnemonic::Movsq,
    Mnemonic::Movss,
    Mnemonic::Movd,
    Mnemonic::Movq,
    Mnemonic::Movups,
    Mnemonic::Movaps,
    Mnemonic::Movupd,
    Mnemonic::Movapd,
    Mnemonic::Movdqu,
    Mnemonic::Movdqa,
    Mnemonic::Vmovss,
    Mnemonic::Vmovsd,
    Mnemonic::Vmovd,
    Mnemonic::Vmovq,
    Mnemonic::Vmovups,
    Mnemonic::Vmovaps,
    Mnemonic::Vmovupd,
    Mnemonic::Vmovapd,
    Mnemonic::Vmovdqu,
    Mnemonic::Vmovdqa,
    Mnemonic::Movntdq,
];

/// Finds where a value that the instruction `at` uses came from, by the executed instructions
/// before it; `None` where these do not say. Values in memory are followed back to the start of the
/// statement that reads them: `statement` returns its index for that of an instruction.
pub fn source(
    executed: &[Executed],
    at: usize,
    value: Value,
    statement: impl Fn(usize) -> usize,
) -> Option<Source> {
    let (mut value, mut before) = (value, at);
    loop {
        let by = match value {
            Value::Memory(address, size) => {
                let range = statement(before)..before;
                let Some(by) = written_in(executed, range, value)? else {
                    return Some(Source::Read {
                        at: before,
                        address,
                        size,
                    });
                };
                by
            }
            Value::Register(register) | Value::Part { register, .. } => {
                let by = (0..before).rev().find(|at| {
                    let it = &executed[*at];
                    it.is_write_to(value) || it.is_library_call && is_clobbered(register)
                })?;
                if executed[by].is_library_call {
                    return (register == RESULT).then_some(Source::Computed(by));
                }
                by
            }
        };
        before = by;
        match executed[by].copied(value) {
            Some(next) => value = next,
            None => return Some(Source::Computed(by)),
        }
    }
}

/// The reads of memory from which a value was computed, by the indices of the instructions that read,
/// with address and size: those of the last instruction of a range that wrote it, and of what computed
/// its operands.
pub fn reads(
    executed: &[Executed],
    range: Range<usize>,
    value: Value,
    statement: impl Fn(usize) -> usize,
) -> Vec<(usize, u64, u64)> {
    let mut found = Vec::new();
    let Some(by) = range.rev().find(|at| executed[*at].is_write_to(value)) else {
        return found;
    };
    let mut rest: Vec<(usize, Value, usize)> = (inputs(&executed[by], value).into_iter())
        .map(|value| (by, value, 0))
        .collect();
    while let Some((at, value, depth)) = rest.pop() {
        let source = match value {
            Value::Memory(address, size) if executed[at].read() == Some((address, size)) => {
                Some(Source::Read { at, address, size })
            }
            value => source(executed, at, value, &statement),
        };
        match source {
            Some(Source::Read { at, address, size }) => found.push((at, address, size)),
            Some(Source::Computed(by)) if depth < COMPUTED && !executed[by].is_library_call => {
                let next = executed[by].terms().into_iter();
                rest.extend(next.map(|value| (by, value, depth + 1)));
            }
            _ => {}
        }
    }
    found
}

/// The values from which an instruction makes the one that it writes to `written`: the value that it
/// copies, else those that it computes with.
pub fn inputs(it: &Executed, written: Value) -> Vec<Value> {
    match it.copied(written) {
        Some(copied) => vec![copied],
        None => it.terms(),
    }
}

/// Returns the index of the last instruction in a range that writes some memory itself, not by a call of
/// a library; `None` where there is none.
pub fn last_write(executed: &[Executed], range: Range<usize>, memory: Value) -> Option<usize> {
    range.rev().find(|at| executed[*at].is_write_to(memory))
}

/// The last instruction in a range that writes some memory; `None` in place of it where a library may
/// have written it.
fn written_in(executed: &[Executed], range: Range<usize>, memory: Value) -> Option<Option<usize>> {
    for at in range.rev() {
        let it = &executed[at];
        if it.is_library_call && it.may_write(memory) {
            return None;
        }
        if it.is_write_to(memory) {
            return Some(Some(at));
        }
    }
    Some(None)
}

/// Returns the jumps after which two runs go different ways, as indices in both lists: those first
/// after which most was executed before both runs come to the same instruction of the same frame
/// again.
pub fn decisions(failing: &[Executed], passing: &[Executed]) -> Vec<(usize, usize)> {
    let place = |it: &Executed| (it.pc(), it.registers[usize::from(STACK_POINTER)]);
    let mut found = Vec::new();
    let (mut one, mut other) = (0, 0);
    while one < failing.len() && other < passing.len() {
        let both = failing[one..].iter().zip(&passing[other..]);
        let same = both.take_while(|it| place(it.0) == place(it.1)).count();
        (one, other) = (one + same, other + same);
        if same == 0 || one >= failing.len() || other >= passing.len() {
            break;
        }
        let mut places: HashMap<(u64, u64), usize> = HashMap::new();
        for (index, it) in passing.iter().enumerate().skip(other) {
            places.entry(place(it)).or_insert(index);
        }
        let mut rest = failing.iter().enumerate().skip(one);
        let again = rest.find_map(|(index, it)| Some((index, *places.get(&place(it))?)));
        let next = again.unwrap_or((failing.len(), passing.len()));
        let length = (next.0 - one).max(next.1 - other);
        found.push((length, one - 1, other - 1));
        (one, other) = next;
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.0));
    found
        .into_iter()
        .map(|(_, one, other)| (one, other))
        .collect()
}

/// Returns the index of the last instruction before `at` that sets the flags which the conditional
/// jump `at` reads; `None` where it is not close.
pub fn comparison(executed: &[Executed], at: usize) -> Option<usize> {
    let read = executed[at].instruction.rflags_read();
    (0..at)
        .rev()
        .take(16)
        .find(|before| executed[*before].instruction.rflags_modified() & read != 0)
}

/// Largest size in bytes of what an argument points to, and of the frames on the stack that are told from
/// other memory.
const NEAR: u64 = 4096;
/// The value that a function of the C library, of this name, copies to the memory `written` when it is
/// called; `None` for other functions.
pub fn copied_by(name: &str, call: &Executed, written: Value) -> Option<Value> {
    let [to, from] = [ARGUMENTS[0], ARGUMENTS[1]].map(|number| call.registers[number]);
    let is_like = |names: &[&str]| names.iter().any(|it| name.contains(it));
    match written {
        Value::Memory(address, size)
            if is_like(&[
                "memcpy", "memmove", "mempcpy", "strcpy", "strncpy", "stpcpy",
            ]) =>
        {
            let offset = address.checked_sub(to)?;
            Some(Value::Memory(from.wrapping_add(offset), size))
        }
        Value::Memory(..) if name.contains("memset") => Some(Value::Register(ARGUMENTS[1])),
        _ => None,
    }
}

/// Returns the conditional jumps that decided that the instruction `last` was executed, the latest
/// ones first: jumps of its function, and of the functions that called it, in the program's own
/// code.
pub fn guards(executed: &[Executed], last: usize, is_user: impl Fn(u64) -> bool) -> Vec<usize> {
    let stack = |at: usize| executed[at].registers[usize::from(STACK_POINTER)];
    let (mut level, mut highest) = (stack(last), stack(last));
    let mut found = Vec::new();
    for at in (0..last).rev() {
        let it = &executed[at];
        // The call that has led here: what was called before has ended.
        if stack(at) > highest && it.is_call() {
            level = stack(at);
        }
        highest = highest.max(stack(at));
        if stack(at) >= level && it.is_condition() && is_user(it.pc()) {
            found.push(at);
        }
    }
    found
}

/// DWARF numbers of the registers of the first arguments: rdi, rsi, rdx, rcx.
pub const ARGUMENTS: [usize; 4] = [5, 4, 1, 2];
/// Number of computations through which reads are followed.
const COMPUTED: usize = 2;
/// DWARF number of the register in which functions return their result.
const RESULT: usize = 0;

/// Returns true if a called function may change the register with this DWARF number.
fn is_clobbered(register: usize) -> bool {
    // rax, rdx, rcx, rsi, rdi, r8 to r11, vectors.
    [0, 1, 2, 4, 5, 8, 9, 10, 11].contains(&register) || register >= REGISTERS
}

fn is_write(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn is_read(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

fn size(size: MemorySize) -> u64 {
    (size.size() as u64).clamp(1, 64)
}

/// The value that is all of a register: a general one, or the first eight bytes of a vector; `None`
/// for other registers.
fn value_of(register: Register) -> Option<Value> {
    let whole = |register| Value::Part {
        register,
        offset: 0,
        size: 8,
    };
    number(register)
        .map(Value::Register)
        .or_else(|| vector(register).map(whole))
}

/// Returns the DWARF number of a vector register, also for a part of one; `None` for other registers.
fn vector(register: Register) -> Option<usize> {
    (register.is_vector_register()).then(|| REGISTERS + register.number())
}

/// Returns the DWARF number of a general register, also for a part of one; `None` for other
/// registers.
fn number(register: Register) -> Option<usize> {
    use Register as R;
    const ALL: [Register; REGISTERS] = [
        R::RAX,
        R::RDX,
        R::RCX,
        R::RBX,
        R::RSI,
        R::RDI,
        R::RBP,
        R::RSP,
        R::R8,
        R::R9,
        R::R10,
        R::R11,
        R::R12,
        R::R13,
        R::R14,
        R::R15,
        R::RIP,
    ];
    ALL.iter().position(|it| *it == register.full_register())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a sequence of instructions at address 0x100, executed with the same registers.
    fn executed(code: &[&[u8]]) -> Vec<Executed> {
        let mut pc = 0x100;
        let one = |code: &&[u8]| {
            let mut registers = [0x5000; REGISTERS];
            registers[REGISTERS - 1] = pc;
            pc += code.len() as u64;
            Executed::new(code, registers).unwrap()
        };
        code.iter().map(one).collect()
    }

    fn found(code: &[&[u8]], value: Value) -> Option<Source> {
        let all = executed(code);
        source(&all, all.len(), value, |_| 0)
    }

    #[test]
    fn values_are_followed_through_copies() {
        let load: &[u8] = &[0x48, 0x8b, 0x43, 0x08]; // mov rax, [rbx+8]
        let copy: &[u8] = &[0x48, 0x89, 0xc7]; // mov rdi, rax
        let other: &[u8] = &[0x48, 0x31, 0xf6]; // xor rsi, rsi
        let from = Source::Read {
            at: 0,
            address: 0x5008,
            size: 8,
        };
        assert_eq!(found(&[load, copy, other], Value::Register(5)), Some(from));
        let zero = Some(Source::Computed(2));
        assert_eq!(found(&[load, copy, other], Value::Register(4)), zero);
        assert_eq!(found(&[load, copy, other], Value::Register(12)), None);
        // mov [rbx+8], rsi
        let store: &[u8] = &[0x48, 0x89, 0x73, 0x08];
        assert_eq!(
            found(&[other, store, load], Value::Register(0)),
            Some(Source::Computed(0))
        );
    }

    #[test]
    fn a_library_may_have_written_anything() {
        let load: &[u8] = &[0x48, 0x8b, 0x43, 0x08];
        let mut all = executed(&[&[0xe8, 0, 0, 0, 0], load, &[0x48, 0x89, 0xc7]]);
        all[0].is_library_call = true;
        assert_eq!(source(&all, 3, Value::Register(5), |_| 0), None);
        assert_eq!(source(&all, 1, Value::Register(5), |_| 0), None);
        let result = source(&all, 1, Value::Register(0), |_| 0);
        assert_eq!(result, Some(Source::Computed(0)));
    }

    #[test]
    fn what_was_computed_is_followed_to_the_memory_that_was_read() {
        let load: &[u8] = &[0x8b, 0x43, 0x08]; // mov eax, [rbx+8]
        let subtract: &[u8] = &[0x29, 0xf0]; // sub eax, esi
        let store: &[u8] = &[0x89, 0x43, 0x10]; // mov [rbx+16], eax
        let all = executed(&[load, subtract, store]);
        let written = Value::Memory(0x5010, 4);
        assert_eq!(reads(&all, 0..3, written, |_| 0), [(0, 0x5008, 4)]);
        assert_eq!(reads(&all, 0..3, Value::Memory(0x6000, 4), |_| 0), []);
    }

    #[test]
    fn the_jump_that_leads_farthest_comes_first() {
        let at = |pc: u64| {
            let mut registers = [0; REGISTERS];
            registers[REGISTERS - 1] = pc;
            Executed::new(&[0x74, 0x02], registers).unwrap()
        };
        let run = |pcs: &[u64]| pcs.iter().copied().map(at).collect::<Vec<_>>();
        // They part at 1 for one instruction, and at 5 for three.
        let (failing, passing) = (run(&[1, 2, 5, 7, 8, 9, 10]), run(&[1, 3, 5, 10]));
        assert_eq!(decisions(&failing, &passing), [(2, 2), (0, 0)]);
        assert_eq!(decisions(&passing, &passing), []);
        assert_eq!(decisions(&run(&[1]), &run(&[2])), []);
    }

    #[test]
    fn conditions_have_the_operands_that_were_compared() {
        // cmp eax, [rbx+8]; mov rdi, rax; jl
        let all = executed(&[&[0x3b, 0x43, 0x08], &[0x48, 0x89, 0xc7], &[0x7c, 0x02]]);
        assert!(all[2].is_condition());
        let compared = comparison(&all, 2);
        assert_eq!(compared, Some(0));
        let operands = [Value::Register(0), Value::Memory(0x5008, 4)];
        assert_eq!(all[0].operands(), operands);
    }
}
