//! The executed instructions on which each instruction of a recorded run depends: instructions that
//! made the values that it uses or the addresses of the memory that it accesses, and the
//! conditional jump that decided that it was executed. Pure.

use std::collections::HashMap;
use std::rc::Rc;

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpKind, UsedMemory};

use super::instructions::{
    ARGUMENTS, Executed, RESULT, general, is_clobbered, is_read, is_write, size,
};
use super::library::LibraryCall;
use super::recorded::Recorded;
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// Stands for "unknown" where the index of an instruction in the recording is stored.
const NONE: u32 = u32::MAX;
/// Number of registers that are followed: the general ones, 32 of vectors, and the flags.
const FOLLOWED: usize = REGISTERS + 33;
/// Index of the processor's flags among the registers whose dependences are followed.
const FLAGS: usize = REGISTERS + 32;
/// Number of bytes at the beginning of one memory access for which dependences are recorded;
/// further bytes of a larger access (such as a copy by one instruction) are ignored.
const WIDEST: u64 = 4096;
/// Number of bytes at each of its pointer arguments on which the result of a library's function is
/// taken to depend.
const SEEN: u64 = 8;
/// DWARF number of the frame pointer.
const FRAME_POINTER: usize = 6;

/// How an instruction depends on an earlier one: by a value that it uses, by the address at which
/// it accesses memory, or because a jump or call led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependence {
    /// The instruction uses a value that the earlier one has made.
    Value,
    /// The earlier instruction has made a part of the address at which the instruction accesses
    /// memory.
    Address,
    /// The earlier instruction is the conditional jump, or the call, that led to the instruction.
    Control,
}

/// On which earlier instructions each instruction of a recorded run depends: for a value that it
/// uses, for an address, or because a jump led to it. Instructions are given by their indices.
#[derive(Default)]
pub struct Dependences {
    /// For each instruction, the index in `edges` after its last dependence.
    ends: Vec<u32>,
    /// The dependences of all instructions in turn: the index of an earlier instruction, and how
    /// the instruction depends on it.
    edges: Vec<(u32, Dependence)>,
}

impl Dependences {
    /// Finds, for each instruction of a recording, the earlier instructions on which it depends.
    pub fn of(recorded: &Recorded) -> Dependences {
        let mut pass = Pass::default();
        for at in 0..recorded.executed.len() {
            pass.execute(recorded, at);
        }
        pass.found
    }

    /// Returns the earlier instructions on which the instruction with the index `at` depends
    /// directly, by their indices, and how it depends on each.
    pub fn from(&self, at: usize) -> &[(u32, Dependence)] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.edges[start as usize..self.ends[at] as usize]
    }
}

/// The registers and the memory that an instruction uses and changes, whatever their values.
struct Shape {
    /// Registers whose values the instruction uses.
    values: Vec<usize>,
    /// Registers from which the instruction makes the addresses that it accesses.
    addresses: Vec<usize>,
    /// Registers that the instruction changes.
    written: Vec<usize>,
    memory: Vec<UsedMemory>,
}

impl Shape {
    fn of(executed: &Executed) -> Shape {
        let it = &executed.instruction;
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(it);
        let memory: Vec<UsedMemory> = info.used_memory().to_vec();
        let number = |register| {
            general(register)
                .or_else(|| super::instructions::vector(register))
                .filter(|it| *it < FLAGS)
        };
        let is_stack = |it: &usize| *it == usize::from(STACK_POINTER) || *it == REGISTERS - 1;
        let mut addresses: Vec<usize> = (memory.iter())
            .flat_map(|it| [it.base(), it.index()])
            .filter_map(number)
            .filter(|it| !is_stack(it))
            .collect();
        addresses.dedup();
        let used = info.used_registers();
        let operands = (0..it.op_count()).filter(|at| it.op_kind(*at) == OpKind::Register);
        let direct: Vec<usize> = operands
            .filter_map(|at| number(it.op_register(at)))
            .collect();
        let mut values: Vec<usize> = (used.iter().filter(|it| is_read(it.access())))
            .filter_map(|it| number(it.register()))
            .filter(|it| !is_stack(it) && (!addresses.contains(it) || direct.contains(it)))
            .collect();
        if it.rflags_read() != 0 {
            values.push(FLAGS);
        }
        let mut written: Vec<usize> = (used.iter().filter(|it| is_write(it.access())))
            .filter_map(|it| number(it.register()))
            .filter(|it| !is_stack(it))
            .collect();
        if it.rflags_modified() != 0 {
            written.push(FLAGS);
        }
        values.dedup();
        Shape {
            values,
            addresses,
            written,
            memory,
        }
    }
}

/// A function call that is being executed, with the jumps on which the current instruction may
/// depend.
struct Frame {
    call: u32,
    /// Index of each jump, with the first address of the code that the jump decides on, and the
    /// address after this code.
    jumps: Vec<(u32, u64, u64)>,
}

/// The state of one walk over the recorded instructions, in the order of time, that finds
/// dependences.
struct Pass {
    found: Dependences,
    shapes: HashMap<u64, Rc<Shape>>,
    registers: [u32; FOLLOWED],
    /// For each word of eight bytes of memory, the instruction that last wrote each of its bytes.
    memory: HashMap<u64, [u32; 8]>,
    frames: Vec<Frame>,
}

impl Default for Pass {
    fn default() -> Pass {
        Pass {
            found: Dependences::default(),
            shapes: HashMap::new(),
            registers: [NONE; FOLLOWED],
            memory: HashMap::new(),
            frames: vec![Frame {
                call: NONE,
                jumps: Vec::new(),
            }],
        }
    }
}

impl Pass {
    fn depend(&mut self, on: u32, how: Dependence) {
        let start = self.found.ends.last().copied().unwrap_or(0) as usize;
        if on != NONE && !self.found.edges[start..].contains(&(on, how)) {
            self.found.edges.push((on, how));
        }
    }

    /// Makes the current instruction depend on those that last wrote the `size` bytes of memory at
    /// `address`.
    fn read(&mut self, address: u64, size: u64) {
        let mut last = NONE;
        for at in address..address.saturating_add(size.min(WIDEST)) {
            let word = self.memory.get(&(at >> 3));
            let by = word.map_or(NONE, |word| word[(at & 7) as usize]);
            if by != last {
                self.depend(by, Dependence::Value);
                last = by;
            }
        }
    }

    fn write(&mut self, address: u64, size: u64, by: u32) {
        for at in address..address.saturating_add(size.min(WIDEST)) {
            self.memory.entry(at >> 3).or_insert([NONE; 8])[(at & 7) as usize] = by;
        }
    }

    /// Adds the dependences of the instruction `at`, and records what it writes.
    fn execute(&mut self, recorded: &Recorded, at: usize) {
        let executed = &recorded.executed[at];
        let by = at as u32;
        let shape = match self.shapes.get(&executed.pc()) {
            Some(known) => known.clone(),
            None => {
                let shape = Rc::new(Shape::of(executed));
                self.shapes.insert(executed.pc(), shape.clone());
                shape
            }
        };
        self.control(executed);
        let stack = executed.registers[usize::from(STACK_POINTER)];
        let is_frame = |it: usize| {
            it == FRAME_POINTER && (stack..stack + (1 << 20)).contains(&executed.registers[it])
        };
        if let Some(call) = executed.library {
            self.call(recorded, at, call);
            self.found.ends.push(self.found.edges.len() as u32);
            return;
        }
        for register in shape.values.iter().filter(|it| !is_frame(**it)) {
            self.depend(self.registers[*register], Dependence::Value);
        }
        let accessed = |it: &UsedMemory| Some((executed.address(it)?, size(it.memory_size())));
        for it in shape.memory.iter().filter(|it| is_read(it.access())) {
            if let Some((address, size)) = accessed(it) {
                self.read(address, size);
            }
        }
        for register in shape.addresses.iter().filter(|it| !is_frame(**it)) {
            self.depend(self.registers[*register], Dependence::Address);
        }
        self.found.ends.push(self.found.edges.len() as u32);
        for it in shape.memory.iter().filter(|it| is_write(it.access())) {
            if let Some((address, size)) = accessed(it) {
                self.write(address, size, by);
            }
        }
        for register in &shape.written {
            self.registers[*register] = by;
        }
        self.enter_or_leave(executed, at, recorded);
    }

    /// Records that the current instruction depends on the conditional jump that decided that it is
    /// executed or, if there is none, on the call of its function.
    fn control(&mut self, executed: &Executed) {
        let pc = executed.pc();
        let frame = self.frames.last_mut();
        let by = frame.map_or(NONE, |frame| {
            frame
                .jumps
                .retain(|(_, from, to)| (*from..*to).contains(&pc));
            frame.jumps.last().map_or(frame.call, |it| it.0)
        });
        self.depend(by, Dependence::Control);
    }

    /// Records what the executed instruction, if it is a call, a return or a jump of the program's
    /// own code, means for later ones: which function they belong to, and whether they run because
    /// of a jump. `at` is the index of the instruction in the recording.
    fn enter_or_leave(&mut self, executed: &Executed, at: usize, recorded: &Recorded) {
        let it = &executed.instruction;
        match it.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => self.frames.push(Frame {
                call: at as u32,
                jumps: Vec::new(),
            }),
            FlowControl::Return if self.frames.len() > 1 => drop(self.frames.pop()),
            FlowControl::ConditionalBranch => {
                let target = it.near_branch_target();
                let range = match target > it.ip() {
                    // With the other branch, where the code that is jumped over ends by a jump behind it.
                    true => {
                        let end = recorded.branches.get(&target);
                        (it.next_ip(), end.copied().unwrap_or(target))
                    }
                    // The rounds of a loop.
                    false => (target, it.next_ip()),
                };
                self.decide(at as u32, range);
            }
            FlowControl::IndirectBranch => {
                // A `switch`: all that is behind it up to the end of the function.
                let next = recorded.executed.get(at + 1).map_or(0, Executed::pc);
                self.decide(at as u32, (next, next.saturating_add(1)));
            }
            _ => {}
        }
    }

    fn decide(&mut self, at: u32, (from, to): (u64, u64)) {
        if let Some(frame) = self.frames.last_mut() {
            // A later decision on the same code replaces an earlier one.
            frame.jumps.retain(|it| (it.1, it.2) != (from, to));
            frame.jumps.push((at, from, to));
        }
    }

    /// Adds the dependences of the call of a library's function at the index `at`: on the registers
    /// of its arguments and on the memory to which they point, as `call`, the kind of function,
    /// says. Records the memory that the function writes.
    fn call(&mut self, recorded: &Recorded, at: usize, call: LibraryCall) {
        let executed = &recorded.executed[at];
        let by = at as u32;
        let count = match executed.parameters {
            0 => 3,
            known => known.min(ARGUMENTS.len()),
        };
        for register in &ARGUMENTS[..count] {
            self.depend(self.registers[*register], Dependence::Value);
        }
        let [to, from, length] = [0, 1, 2].map(|it| executed.registers[ARGUMENTS[it]]);
        match call {
            LibraryCall::Copy => {
                self.read(from, length);
                self.write(to, length, by);
            }
            LibraryCall::Fill => self.write(to, length, by),
            LibraryCall::Free | LibraryCall::Allocate => {}
            LibraryCall::CopyText
            | LibraryCall::Report
            | LibraryCall::Check(_)
            | LibraryCall::Nothing
            | LibraryCall::Other => {
                for register in &ARGUMENTS[..count] {
                    self.read(executed.registers[*register], SEEN);
                }
            }
        }
        for (address, size) in recorded.changed.get(&at).into_iter().flatten() {
            self.write(*address, *size, by);
        }
        for register in 0..REGISTERS {
            if is_clobbered(register) {
                self.registers[register] = if register == RESULT { by } else { NONE };
            }
        }
        self.registers[REGISTERS] = by;
    }
}

/// Returns true if an instruction only copies a value.
pub fn is_copy(executed: &Executed) -> bool {
    use Mnemonic as M;
    let it = executed.instruction.mnemonic();
    let copies = [
        M::Mov,
        M::Movzx,
        M::Movsx,
        M::Movsxd,
        M::Push,
        M::Pop,
        M::Cdqe,
        M::Cwde,
        M::Movaps,
        M::Movups,
        M::Movdqa,
        M::Movdqu,
        M::Movq,
        M::Movd,
        M::Movss,
        M::Movsd,
        M::Call,
        M::Ret,
    ];
    copies.contains(&it)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test helper: makes the recording of a run that executes the instructions `code` (address and
    /// machine code of each), all with the same values in the registers.
    fn recorded(code: &[(u64, &[u8])]) -> Recorded {
        let one = |(pc, bytes): &(u64, &[u8])| {
            let mut registers = [0x5000; REGISTERS];
            registers[usize::from(STACK_POINTER)] = 0x9000;
            registers[REGISTERS - 1] = *pc;
            Executed::new(bytes, registers).unwrap()
        };
        Recorded {
            executed: code.iter().map(one).collect(),
            ..Recorded::default()
        }
    }

    fn of(found: &Dependences, at: usize, how: Dependence) -> Vec<u32> {
        let all = found.from(at).iter().filter(|it| it.1 == how);
        all.map(|it| it.0).collect()
    }

    const ZERO: &[u8] = &[0x31, 0xc0]; // xor eax, eax
    const STORE: &[u8] = &[0x89, 0x43, 0x08]; // mov [rbx+8], eax
    const LOAD: &[u8] = &[0x8b, 0x53, 0x08]; // mov edx, [rbx+8]
    const BASE: &[u8] = &[0x48, 0x89, 0xf3]; // mov rbx, rsi

    #[test]
    fn values_come_through_memory_and_addresses_from_registers() {
        let code = [(0x100, BASE), (0x103, ZERO), (0x105, STORE), (0x108, LOAD)];
        let found = Dependences::of(&recorded(&code));
        assert!(of(&found, 1, Dependence::Value).is_empty());
        assert_eq!(of(&found, 2, Dependence::Value), [1]);
        assert_eq!(of(&found, 2, Dependence::Address), [0]);
        assert_eq!(of(&found, 3, Dependence::Value), [2]);
        assert_eq!(of(&found, 3, Dependence::Address), [0]);
    }

    #[test]
    fn a_jump_decides_on_both_branches_and_on_nothing_behind_them() {
        let jump: &[u8] = &[0x74, 0x04]; // je 0x106
        let over: &[u8] = &[0xeb, 0x02]; // jmp 0x108
        let then = [(0x100, jump), (0x102, ZERO), (0x104, over), (0x108, ZERO)];
        let found = Dependences::of(&recorded(&then));
        assert_eq!(of(&found, 1, Dependence::Control), [0]);
        assert!(of(&found, 3, Dependence::Control).is_empty());
        let mut other = recorded(&[then[0], (0x106, ZERO), then[3]]);
        other.branches.insert(0x106, 0x108);
        let found = Dependences::of(&other);
        assert_eq!(of(&found, 1, Dependence::Control), [0]);
        assert!(of(&found, 2, Dependence::Control).is_empty());
    }
}
