//! Instructions that a run has executed: what each reads, writes, copies and compares. Pure.

use std::ops::Range;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use super::library::LibraryCall;
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// An instruction that a run has executed, with the registers before it.
#[derive(Clone, Copy, Debug)]
pub struct Executed {
    /// The decoded instruction.
    pub instruction: Instruction,
    /// Values of the registers before the instruction, by their DWARF numbers.
    pub registers: [u64; REGISTERS],
    /// The function of a library that the instruction calls, which was executed as a whole; `None`
    /// where it calls none.
    pub library: Option<LibraryCall>,
    /// Number of parameters that the called library's function declares; 0 where that is not known.
    pub parameters: usize,
    /// The arguments that the called library's function reads as texts, up to their terminating
    /// zeros, as bits: the first argument in the lowest bit.
    pub texts: u8,
    /// For an instruction that adds to memory or subtracts from memory, the number in this memory
    /// before the instruction is executed; `None` for other instructions.
    pub before: Option<u64>,
}

/// A place whose value is followed back: what a register or a word of memory holds before an
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// The whole general register with this DWARF number.
    Register(usize),
    /// The memory at an address (first value), with its size in bytes (second value).
    Memory(u64, u64),
    /// Successive bytes of a register.
    Part {
        /// DWARF number of the register: a general register or a vector register (`xmm0` has 17).
        register: usize,
        /// Position of the first of these bytes in the register: 0 is its lowest byte.
        offset: u64,
        /// Number of the bytes of the register.
        size: u64,
    },
}

impl Executed {
    /// Decodes the first instruction in `code`, the bytes at the program counter in `registers`;
    /// `None` if they are not an instruction.
    pub fn new(code: &[u8], registers: [u64; REGISTERS]) -> Option<Executed> {
        let at = registers[REGISTERS - 1];
        let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then(|| Executed::again(instruction, registers))
    }

    /// Makes the record of one execution of `instruction`, which was decoded before, with the
    /// values `registers` of the registers.
    pub(super) fn again(instruction: Instruction, registers: [u64; REGISTERS]) -> Executed {
        Executed {
            instruction,
            registers,
            library: None,
            parameters: 0,
            texts: 0,
            before: None,
        }
    }

    /// Returns the address of the instruction.
    pub fn pc(&self) -> u64 {
        self.registers[REGISTERS - 1]
    }

    /// Returns true if the instruction calls a function of a library.
    pub fn is_library_call(&self) -> bool {
        self.library.is_some()
    }

    /// Returns true if the instruction is a conditional jump.
    pub fn is_condition(&self) -> bool {
        self.instruction.flow_control() == FlowControl::ConditionalBranch
    }

    /// Returns true if the instruction only saves or restores registers and return addresses of calls:
    /// it pushes, pops, calls or returns.
    pub fn keeps_frame(&self) -> bool {
        use Mnemonic as M;
        let it = self.instruction.mnemonic();
        [M::Push, M::Pop, M::Leave, M::Call, M::Ret].contains(&it)
    }

    /// Returns true if the instruction calls a function.
    pub fn is_call(&self) -> bool {
        let flow = self.instruction.flow_control();
        matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Returns true if the instruction is a call that reads the address of the called function from
    /// memory, such as `call [rax+8]`.
    pub(super) fn calls_by_memory(&self) -> bool {
        self.is_call() && self.instruction.op0_kind() == OpKind::Memory
    }

    /// Returns the address at which a conditional jump that went on at `next` would have gone on
    /// with the other decision.
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

    /// Returns true if the instruction puts a value onto the stack.
    pub(super) fn is_push(&self) -> bool {
        self.instruction.mnemonic() == Mnemonic::Push
    }

    /// Returns true if the instruction is a division of integers.
    pub fn is_division(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
    }

    /// Returns address and size in bytes of the memory that the instruction adds to or subtracts
    /// from; `None` for other instructions.
    pub(super) fn summed(&self) -> Option<(u64, u64)> {
        let is_sum = matches!(
            self.instruction.mnemonic(),
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec
        );
        let is_memory = self.instruction.op0_kind() == OpKind::Memory;
        match is_sum && is_memory {
            true => self.memory(is_write),
            false => None,
        }
    }

    /// Returns the number that the instruction adds or subtracts; `None` if that number is in
    /// memory.
    pub(super) fn summand(&self) -> Option<u64> {
        let it = &self.instruction;
        if it.op_count() < 2 {
            return Some(1);
        }
        match it.op1_kind() {
            OpKind::Register => Some(self.registers[general(it.op1_register())?]),
            _ => it.try_immediate(1).ok(),
        }
    }

    /// Returns the size of a division's divisor in bytes.
    pub(super) fn division_size(&self) -> usize {
        match self.instruction.op0_kind() {
            OpKind::Register => self.instruction.op0_register().size(),
            _ => self.instruction.memory_size().size(),
        }
    }

    pub(super) fn address(&self, memory: &UsedMemory) -> Option<u64> {
        memory.virtual_address(0, |register, _, _| match register {
            Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
            register => Some(self.registers[general(register)?]),
        })
    }

    /// Returns the address and the size in bytes of the instruction's first memory access of a kind
    /// (such as a read) for which `is_such` returns true. `None` if there is no such access.
    fn memory(&self, is_such: fn(OpAccess) -> bool) -> Option<(u64, u64)> {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&self.instruction);
        let found = (info.used_memory().iter()).find(|it| is_such(it.access()))?;
        Some((self.address(found)?, size(found.memory_size())))
    }

    /// Returns true if the instruction calls a library's function that writes to `memory`, false if
    /// it calls none that does. `None` if that is not known. An unknown function is taken not to
    /// write to the stack frames of its callers, unless an argument points to `memory` or to a
    /// place shortly before it.
    pub(super) fn library_writes(&self, memory: Value) -> Option<bool> {
        let Some(call) = self.library else {
            return Some(false);
        };
        let Value::Memory(address, size) = memory else {
            return None;
        };
        if let Some(known) = call.writes(&self.registers, (address, size)) {
            return Some(known);
        }
        let stack = self.registers[usize::from(STACK_POINTER)];
        // rdi, rsi, rdx, rcx, r8, r9.
        let arguments = [5, 4, 1, 2, 8, 9].map(|number: usize| self.registers[number]);
        let near = address.saturating_sub(NEAR)..address + size;
        let is_told = arguments.iter().any(|it| near.contains(it));
        ((stack..stack + NEAR).contains(&address) && !is_told).then_some(false)
    }

    /// Returns true if the instruction calls a library's function that writes as many bytes as its
    /// third argument says.
    pub fn library_writes_counted(&self) -> bool {
        matches!(self.library, Some(LibraryCall::Copy | LibraryCall::Fill))
    }

    /// Returns true if the instruction reads or writes any byte of `memory`.
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
        used.any(|it| is_write(it.access()) && general(it.register()) == Some(register))
    }

    /// Returns address and size in bytes of the memory that the instruction reads; `None` if it
    /// reads none.
    pub fn read(&self) -> Option<(u64, u64)> {
        self.memory(is_read)
    }

    /// Returns address and size in bytes of the memory that the instruction writes; `None` if it
    /// writes none.
    pub(super) fn written(&self) -> Option<(u64, u64)> {
        self.memory(is_write)
    }

    /// Returns address and size in bytes of the memory that the instruction writes; `None` if it
    /// pushes, calls, or addresses the memory as a local variable of its function.
    pub(super) fn written_elsewhere(&self) -> Option<(u64, u64)> {
        let base = general(self.instruction.memory_base()).map(Value::Register);
        match base {
            Some(base) if self.is_of_frame(base) => None,
            _ if self.is_call() => None,
            _ => self.written().filter(|_| !self.is_push()),
        }
    }

    /// Returns true if the instruction writes to the place `value`: a register or memory.
    pub(super) fn is_write_to(&self, value: Value) -> bool {
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

    /// Returns the place (register or memory) from which the instruction reads its operand with the
    /// number `number_of`; `None` for a constant.
    fn operand(&self, number_of: u32) -> Option<Value> {
        let it = &self.instruction;
        match it.op_kind(number_of) {
            OpKind::Register => value_of(it.op_register(number_of)),
            _ if it.try_immediate(number_of).is_ok() => None,
            _ => self.memory(is_read).map(|it| Value::Memory(it.0, it.1)),
        }
    }

    /// Returns true if `value` is the stack pointer, or the frame pointer while it leads to the
    /// stack: such a register holds an address of a frame and no value of the program.
    pub fn is_of_frame(&self, value: Value) -> bool {
        let stack = self.registers[usize::from(STACK_POINTER)];
        match value {
            Value::Register(number) if number == usize::from(STACK_POINTER) => true,
            Value::Register(FRAME_POINTER) => {
                (stack..stack + LARGEST_FRAME).contains(&self.registers[FRAME_POINTER])
            }
            _ => false,
        }
    }

    /// Returns the places of the values that the instruction compares, or of the divisor of a
    /// division.
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

    /// Returns the address in a register that the instruction calls or jumps to; `None` if its
    /// operand is not a register.
    pub fn target(&self) -> Option<u64> {
        let is_register = self.instruction.op_kind(0) == OpKind::Register;
        let register = is_register.then(|| self.instruction.op_register(0));
        Some(self.registers[general(register?)?])
    }

    /// Returns the address to which the instruction adds an index in a register, to get the address
    /// of the memory that it accesses; `None` for an instruction without an index.
    pub(super) fn element_base(&self) -> Option<u64> {
        let it = &self.instruction;
        let index = self.registers[general(it.memory_index())?];
        let value = general(it.memory_base()).map_or(0, |base| self.registers[base]);
        // Where the index is the pointer.
        let (base, index) = match it.memory_index_scale() == 1 && index > value {
            true => (index, value),
            false => (value, index),
        };
        let is_pointer = base >= index || it.memory_base() == Register::None;
        is_pointer.then(|| base.wrapping_add(it.memory_displacement64()))
    }

    /// Returns the DWARF numbers of the registers with which the instruction addresses memory, the
    /// index register first.
    pub fn address_registers(&self) -> Vec<usize> {
        let registers = [
            self.instruction.memory_index(),
            self.instruction.memory_base(),
        ];
        registers.into_iter().filter_map(general).collect()
    }

    /// Returns the places (registers and memory) whose values the instruction uses to compute what
    /// it writes: the operands that it reads or, of `lea`, the registers of the address that it
    /// computes.
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

    /// Returns true if the instruction adds or subtracts.
    pub fn is_sum(&self) -> bool {
        let mnemonic = self.instruction.mnemonic();
        matches!(mnemonic, Mnemonic::Add | Mnemonic::Sub | Mnemonic::Lea)
    }

    /// Returns the register (DWARF number) to which the instruction adds a constant, or from which
    /// it subtracts one, as a loop's counter; `None` for other instructions.
    pub fn counter(&self) -> Option<usize> {
        let it = &self.instruction;
        let register = it.op0_register();
        let counts = match it.mnemonic() {
            Mnemonic::Inc | Mnemonic::Dec => true,
            Mnemonic::Add | Mnemonic::Sub => it.try_immediate(1).is_ok(),
            Mnemonic::Lea => it.memory_base() == register && it.memory_index() == Register::None,
            _ => false,
        };
        general(register).filter(|_| counts && it.op0_kind() == OpKind::Register)
    }

    /// Returns true if the instruction computes the value that it writes to a register, and does
    /// not copy it.
    pub fn computes(&self) -> bool {
        let written = value_of(self.instruction.op0_register());
        self.instruction.op0_kind() == OpKind::Register
            && written.is_some_and(|it| self.is_write_to(it) && self.copied(it).is_none())
    }

    /// Returns the places that the instruction reads to compute the value that it writes, like
    /// [`terms`](Executed::terms). For a conditional move, returns only the operand that it took,
    /// if the registers before the `next` instruction show which one.
    pub fn selected_terms(&self, next: Option<&Executed>) -> Vec<Value> {
        let terms = self.terms();
        let number = general(self.instruction.op0_register());
        let (Some(next), Some(number), &[own, other]) = (next, number, terms.as_slice()) else {
            return terms;
        };
        // Only conditional moves have a condition and two operands.
        if self.instruction.condition_code() == ConditionCode::None {
            return terms;
        }
        let (before, after) = (self.registers[number], next.registers[number]);
        match other {
            Value::Register(from) if before != self.registers[from] => {
                vec![if after == before { own } else { other }]
            }
            Value::Memory(..) if after != before => vec![other],
            _ => terms,
        }
    }

    /// Returns the place from which the instruction copies the value of the place `written`. `None`
    /// if the instruction does not copy: it computes the value, or fills these bytes of its
    /// destination with zeros or the sign.
    pub(super) fn copied(&self, written: Value) -> Option<Value> {
        let it = &self.instruction;
        if let Some(call) = self.library {
            return match written {
                Value::Memory(address, size) => call.copied(&self.registers, (address, size)),
                Value::Register(_) | Value::Part { .. } => None,
            };
        }
        let whole = match it.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                self.operand(1)?
            }
            Mnemonic::Push => self.operand(0)?,
            // The same number, in a wider register.
            Mnemonic::Cdqe | Mnemonic::Cwde => Value::Register(RESULT),
            Mnemonic::Pop => self.memory(is_read).map(|it| Value::Memory(it.0, it.1))?,
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

/// Instructions that copy several bytes from one place to another: vector moves and string moves.
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

/// DWARF numbers of the registers of the first arguments: rdi, rsi, rdx, rcx.
pub const ARGUMENTS: [usize; 4] = [5, 4, 1, 2];
/// An argument counts as a pointer to memory that begins at most this many bytes after its value.
/// Addresses at most this many bytes above the stack pointer count as the frames of callers.
const NEAR: u64 = 4096;
/// DWARF number of the register (rbp) that points to the frame in most code without optimization.
const FRAME_POINTER: usize = 6;
/// Largest size in bytes of a stack frame.
const LARGEST_FRAME: u64 = 1 << 20;
/// DWARF number of the register in which functions return their result (`rax`).
pub const RESULT: usize = 0;

/// Returns true if a called function may change the register with this DWARF number.
pub(super) fn is_clobbered(register: usize) -> bool {
    // rax, rdx, rcx, rsi, rdi, r8 to r11, vectors.
    [0, 1, 2, 4, 5, 8, 9, 10, 11].contains(&register) || register >= REGISTERS
}

pub(super) fn is_write(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

pub(super) fn is_read(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

pub(super) fn size(size: MemorySize) -> u64 {
    (size.size() as u64).clamp(1, 64)
}

/// Returns the value that an access to `register` reads or writes: the whole of a general register,
/// the first eight bytes of a vector register; `None` for other registers.
fn value_of(register: Register) -> Option<Value> {
    let whole = |register| Value::Part {
        register,
        offset: 0,
        size: 8,
    };
    general(register)
        .map(Value::Register)
        .or_else(|| vector(register).map(whole))
}

/// Returns the DWARF number of the vector register of which `register` is all or a part; `None` for
/// other registers.
pub(super) fn vector(register: Register) -> Option<usize> {
    (register.is_vector_register()).then(|| REGISTERS + register.number())
}

/// Returns the DWARF number of the general register of which `register` is all or a part; `None`
/// for other registers.
pub(super) fn general(register: Register) -> Option<usize> {
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
