//! From which pointers a recorded run computed the addresses of its accesses: by additions of
//! constants, which choose a field, and of other numbers, which choose an element. Pure.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iced_x86::{Mnemonic, OpKind, Register};

use super::instructions::{ARGUMENTS, Executed, RESULT, Value, general, is_clobbered};
use super::library::LibraryCall;
use super::recorded::{ALL_ARGUMENTS, Recorded};
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// Number of the latest instructions that added constants to a pointer that are remembered for it.
const ADDED: usize = 4;
/// Largest number of groups ([`Written`]) of writes that are collected for a run, and of those of
/// reads.
const MOST: usize = 4_000;
/// Largest number of unchanged bytes between two changed ones that count as written, too: with the
/// value that they had before.
const SAME: u64 = 16;
/// Largest distance, in bytes, from a pointer that was passed to a library's function to a change
/// of memory behind it, for the function to count as having made the change by this pointer.
const NEAR: u64 = 512;

/// What is known of a pointer in a register or in memory: the address from which it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pointer {
    /// The address from which the pointer was computed: one that was read from memory or returned
    /// by a library's function, or the address of a variable.
    root: u64,
    /// The root plus the constants that were added to it. A constant that the same instruction adds
    /// again, as in a loop, is left out: it leads to the next element.
    base: u64,
    /// Addresses of the latest instructions that have added constants to the pointer; 0 for none.
    added: [u64; ADDED],
    /// Value of the pointer before a number other than a constant was last added to it, plus the
    /// constants that were added since; `None` if only constants were added.
    array: Option<u64>,
}

impl Pointer {
    fn new(root: u64) -> Pointer {
        Pointer {
            root,
            base: root,
            added: [0; ADDED],
            array: None,
        }
    }

    /// Returns the pointer, which had the value `value`, after a number that is not a constant was
    /// added to it.
    fn indexed(self, value: u64) -> Pointer {
        Pointer {
            array: Some(value),
            ..self
        }
    }

    /// Returns the pointer after the instruction at `pc` has added the constant `by`.
    fn with(mut self, by: u64, pc: u64) -> Pointer {
        if by != 0 && !self.added.contains(&pc) {
            self.base = self.base.wrapping_add(by);
            self.array = self.array.map(|it| it.wrapping_add(by));
            self.added.rotate_right(1);
            self.added[0] = pc;
        }
        self
    }
}

/// How the accesses of a group were made: in which order by an instruction, or by which kind of
/// library's function. The variants are described for writes, and mean the same for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// An instruction has written to successive elements, one after another.
    InTurn,
    /// An instruction has written to elements in any order.
    Anywhere,
    /// A library's function has written as many bytes as an argument says.
    Counted,
    /// A library's function has copied a text up to its terminating zero; or, for reads, has read
    /// one.
    Text,
    /// Another library's function has written: the memory that was seen to change.
    Called,
}

/// A group of writes, or of reads: memory that one instruction, or one call of a library's
/// function, has accessed by one pointer. The fields are described for writes, and mean the same
/// for reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Whether the memory was read, and not written. If a library's function has read a text,
    /// `range` has only the first byte of this text.
    pub is_read: bool,
    /// Address of the instruction that writes, or that calls the library's function.
    pub pc: u64,
    /// How the memory was written.
    pub how: How,
    /// The address from which the addresses of the writes were computed, without the constants that
    /// choose a field.
    pub root: u64,
    /// The address from which the addresses of the writes were computed, plus the constants that
    /// choose a field.
    pub base: u64,
    /// Memory address to which the first of these writes goes.
    pub first: u64,
    /// The addresses from the lowest to the highest written byte.
    pub range: Range<u64>,
    /// Size of the first write in bytes.
    pub size: u64,
    /// Values of the pointer before a number other than a constant was added to it, for the lowest
    /// and for the highest write; `None` if only constants were added.
    pub arrays: [Option<u64>; 2],
    /// Index of the first write in the recording.
    pub at: usize,
    /// Indices in the recording of the write to the lowest byte and of the write to the highest.
    pub extremes: [usize; 2],
    /// Number of writes.
    pub count: usize,
}

impl Written {
    /// Returns the index in the recording of the access that a report shows for the whole group.
    /// This is the access to the highest byte if the accesses are in any order ([`How::Anywhere`]),
    /// or if they are reads of which the first has more than one byte; else it is the first access.
    pub(super) fn told_at(&self) -> usize {
        match self.how {
            How::Anywhere => self.extremes[1],
            _ if self.is_read && self.size > 1 => self.extremes[1],
            _ => self.at,
        }
    }

    /// Adds the write to `range` by the instruction with the index `at`, which uses `pointer`.
    fn add(&mut self, range: Range<u64>, at: usize, pointer: Pointer) {
        if range.start != self.range.end {
            self.how = How::Anywhere;
        }
        if range.start < self.range.start {
            (self.extremes[0], self.arrays[0]) = (at, pointer.array);
        }
        if range.end > self.range.end {
            (self.extremes[1], self.arrays[1]) = (at, pointer.array);
        }
        self.range = self.range.start.min(range.start)..self.range.end.max(range.end);
        self.count += 1;
    }
}

/// The key of an access; only accesses with the same key are put into one group. It has the address
/// of the instruction, the stack pointer, the `base` and the `array` of the pointer by which the
/// memory is accessed, and whether the access is a read.
type Site = (u64, u64, u64, Option<u64>, bool);

/// Follows the pointers of a recorded run, in the order of time.
struct Following<'a> {
    recorded: &'a Recorded,
    /// Memory that the program may write. A value that is an address in it counts as a pointer.
    areas: &'a [Range<u64>],
    registers: [Option<Pointer>; REGISTERS],
    /// Pointers in memory, by the address at which each is stored, with their values.
    memory: HashMap<u64, (Pointer, u64)>,
    found: Vec<Written>,
    /// Number of groups in `found` that are reads.
    reads: usize,
    /// Index in `found` of the last group of writes for each instruction, stack pointer, and base
    /// and array of the pointer.
    last: HashMap<Site, usize>,
}

/// Returns the groups of accesses of the run `recorded`, in the order of their first accesses: the
/// writes of the program's own code, and the reads of those of its instructions whose addresses are
/// in `reading`. An access whose pointer is not known is left out. `areas` is the memory that the
/// program may write; `is_user` tells whether an address is in the program's own code.
pub(super) fn written(
    recorded: &Recorded,
    areas: &[Range<u64>],
    is_user: impl Fn(u64) -> bool,
    reading: &HashSet<u64>,
) -> Vec<Written> {
    let mut following = Following {
        recorded,
        areas,
        registers: [None; REGISTERS],
        memory: HashMap::new(),
        found: Vec::new(),
        reads: 0,
        last: HashMap::new(),
    };
    let mut user: HashMap<u64, bool> = HashMap::new();
    for (at, executed) in recorded.executed.iter().enumerate() {
        let pc = executed.pc();
        let is_user = *user.entry(pc).or_insert_with(|| is_user(pc));
        if is_user && following.found.len() - following.reads < MOST {
            match executed.library {
                Some(call) => following.call(at, call),
                None => following.store(at),
            }
        }
        if is_user && following.reads < MOST && reading.contains(&pc) {
            following.load(at);
        }
        if let Some(next) = recorded.executed.get(at + 1) {
            following.execute(executed, next);
        }
    }
    following.found
}

/// Returns the address after the last byte that was written without a gap from `start` on (gaps of
/// up to `SAME` bytes do not count). `changed` has the written ranges (address and size); only
/// ranges that begin in `behind` are considered.
fn end_of_change(start: u64, behind: &Range<u64>, changed: &[(u64, u64)]) -> u64 {
    let mut ranges: Vec<&(u64, u64)> = changed.iter().filter(|it| behind.contains(&it.0)).collect();
    ranges.sort_unstable();
    ranges.into_iter().fold(start, |end, (at, size)| {
        let is_next = *at <= end.saturating_add(SAME);
        if is_next {
            end.max(at.saturating_add(*size))
        } else {
            end
        }
    })
}

impl Following<'_> {
    /// Returns true if `value` is an address of memory that the program may write.
    fn is_address(&self, value: u64) -> bool {
        self.areas.iter().any(|area| area.contains(&value))
    }

    /// Returns what is known of the pointer in a register; `None` if the register holds no pointer.
    fn pointer(&self, executed: &Executed, register: Register) -> Option<Pointer> {
        let number = general(register).filter(|_| register.size() == 8)?;
        let value = executed.registers[number];
        let is_frame = executed.is_of_frame(Value::Register(number));
        let known = self.registers[number].filter(|_| !is_frame);
        known.or_else(|| self.is_address(value).then(|| Pointer::new(value)))
    }

    /// Returns the pointer from which the memory operand of an instruction is computed, and the
    /// address of the operand; `None` if the pointer is not known, or if two pointers are added.
    fn operand(&self, executed: &Executed) -> Option<(Pointer, u64)> {
        let it = &executed.instruction;
        let (base, index) = (it.memory_base(), it.memory_index());
        let constant = it.memory_displacement64();
        if it.segment_prefix() == Register::FS || it.segment_prefix() == Register::GS {
            return None;
        }
        if base == Register::RIP {
            return Some((Pointer::new(constant), constant));
        }
        let value = |register: Register| general(register).map_or(0, |it| executed.registers[it]);
        let by_index = value(index).wrapping_mul(u64::from(it.memory_index_scale()));
        let address = value(base).wrapping_add(by_index).wrapping_add(constant);
        let number = general(base).map(Value::Register);
        if number.is_some_and(|it| executed.is_of_frame(it)) {
            let variable = value(base).wrapping_add(constant);
            let pointer = Pointer::new(variable);
            return Some((Self::at_index(pointer, variable, index), address));
        }
        let one = self.pointer(executed, base);
        let other = self.pointer(executed, index);
        let other = other.filter(|_| it.memory_index_scale() == 1);
        match (one, other) {
            (Some(pointer), None) => {
                let pointer = Self::at_index(pointer, value(base), index);
                Some((pointer.with(constant, it.ip()), address))
            }
            (None, Some(pointer)) => {
                let pointer = Self::at_index(pointer, value(index), base);
                Some((pointer.with(constant, it.ip()), address))
            }
            (None, None) if self.is_address(constant) => Some((Pointer::new(constant), address)),
            _ => None,
        }
    }

    /// Returns `pointer`, whose value is `value`, after the number in the register `index` was
    /// added to it; unchanged if `index` is no register.
    fn at_index(pointer: Pointer, value: u64, index: Register) -> Pointer {
        match index {
            Register::None => pointer,
            _ => pointer.indexed(value),
        }
    }

    /// Records what the instruction with the index `at` writes to memory, if the pointer that it
    /// uses is known. Calls are left out.
    fn store(&mut self, at: usize) {
        let executed = &self.recorded.executed[at];
        let it = &executed.instruction;
        if it.op_count() == 0 || it.op0_kind() != OpKind::Memory || executed.is_call() {
            return;
        }
        let Some((address, size)) = executed.written() else {
            return;
        };
        let Some((pointer, _)) = self.operand(executed).filter(|it| it.1 == address) else {
            return;
        };
        let range = address..address.saturating_add(size);
        self.add(at, (pointer, How::InTurn), range, false);
    }

    /// Records what the instruction with the index `at` reads from memory; nothing if the pointer
    /// by which it reads is not known. For a call of a library's function, records the texts that
    /// the function reads.
    fn load(&mut self, at: usize) {
        let executed = &self.recorded.executed[at];
        if executed.is_library_call() && !executed.calls_by_memory() {
            for (bit, number) in ALL_ARGUMENTS.iter().enumerate() {
                let value = executed.registers[*number];
                if executed.texts & 1 << bit != 0 {
                    let pointer = self.registers[*number].unwrap_or(Pointer::new(value));
                    self.begin(
                        at,
                        (pointer, How::Text),
                        value..value.saturating_add(1),
                        true,
                    );
                }
            }
            return;
        }
        let is_direct = executed.is_call() && !executed.calls_by_memory();
        let Some((address, size)) = executed.read().filter(|_| !is_direct) else {
            return;
        };
        if let Some((pointer, _)) = self.operand(executed).filter(|it| it.1 == address) {
            let range = address..address.saturating_add(size);
            self.add(at, (pointer, How::InTurn), range, true);
        }
    }

    /// Adds a write by an instruction to the earlier writes of the same instruction, pointer and
    /// function call; if there are none, begins a new group of writes.
    fn add(&mut self, at: usize, (pointer, how): (Pointer, How), range: Range<u64>, is_read: bool) {
        let executed = &self.recorded.executed[at];
        let stack = executed.registers[usize::from(STACK_POINTER)];
        let site = (executed.pc(), stack, pointer.base, pointer.array, is_read);
        let known = self.last.get(&site).map(|known| &mut self.found[*known]);
        // Texts are told apart by where they begin.
        let is_other = is_read && range.end - range.start == 1;
        let known = known.filter(|it| !is_other || it.range.end == range.start);
        // Another call of the function begins anew.
        match known.filter(|it| it.count == 1 || it.first != range.start) {
            Some(known) => known.add(range, at, pointer),
            None => {
                self.last.insert(site, self.found.len());
                self.begin(at, (pointer, how), range, is_read);
            }
        }
    }

    /// Begins a new group, of which only one access is known so far: that of the instruction with
    /// the index `at` in the recording to the addresses `range`, by `pointer`.
    fn begin(
        &mut self,
        at: usize,
        (pointer, how): (Pointer, How),
        range: Range<u64>,
        is_read: bool,
    ) {
        self.reads += usize::from(is_read);
        self.found.push(Written {
            is_read,
            pc: self.recorded.executed[at].pc(),
            how,
            root: pointer.root,
            base: pointer.base,
            first: range.start,
            size: range.end - range.start,
            range,
            arrays: [pointer.array; 2],
            at,
            extremes: [at; 2],
            count: 1,
        });
    }

    /// Records what the call of a library's function at the index `at` writes.
    fn call(&mut self, at: usize, call: LibraryCall) {
        let executed = &self.recorded.executed[at];
        let changed = self.recorded.changed.get(&at);
        let (how, numbers): (How, &[usize]) = match call {
            LibraryCall::Copy | LibraryCall::Fill => (How::Counted, &ARGUMENTS[..1]),
            LibraryCall::CopyText => (How::Text, &ARGUMENTS[..1]),
            LibraryCall::Other => (How::Called, &ARGUMENTS),
            LibraryCall::Free
            | LibraryCall::Allocate
            | LibraryCall::Report
            | LibraryCall::Check(_)
            | LibraryCall::Nothing => return,
        };
        let values: Vec<u64> = numbers.iter().map(|it| executed.registers[*it]).collect();
        for (number, value) in numbers.iter().zip(&values) {
            let end = match how {
                How::Counted => value.checked_add(executed.registers[ARGUMENTS[2]]),
                _ => {
                    // What is behind another argument belongs to that one.
                    let next = values.iter().filter(|it| **it > *value).min();
                    let behind = *value
                        ..next
                            .map_or(u64::MAX, |it| *it)
                            .min(value.saturating_add(NEAR));
                    changed.map(|all| end_of_change(*value, &behind, all))
                }
            };
            let pointer = self.registers[*number].unwrap_or(Pointer::new(*value));
            let Some(end) = end.filter(|end| *end > *value && self.is_address(*value)) else {
                continue;
            };
            self.begin(at, (pointer, how), *value..end, false);
        }
    }

    /// Follows the pointers through the instruction `executed`; `next` is the one executed after
    /// it.
    fn execute(&mut self, executed: &Executed, next: &Executed) {
        let it = &executed.instruction;
        if executed.is_library_call() {
            for number in (0..REGISTERS).filter(|it| is_clobbered(*it)) {
                self.registers[number] = None;
            }
            let result = next.registers[RESULT];
            self.registers[RESULT] = self.is_address(result).then(|| Pointer::new(result));
            return;
        }
        let made = self.made(executed, next);
        if it.op_count() > 0 && it.op0_kind() == OpKind::Memory {
            let value = self.copied(executed, 1);
            if let Some((address, 8)) = executed.written()
                && let Some((pointer, value)) = value.filter(|_| it.mnemonic() == Mnemonic::Mov)
            {
                self.memory.insert(address, (pointer, value));
            } else if let Some((address, 8)) = executed.summed()
                && let Some((pointer, value)) = self.memory.get(&address).copied()
            {
                let is_less = matches!(it.mnemonic(), Mnemonic::Sub | Mnemonic::Dec);
                let by = executed.summand().unwrap_or(0);
                let by = if is_less { by.wrapping_neg() } else { by };
                let is_constant = it.op_count() < 2 || it.op1_kind() != OpKind::Register;
                let pointer = match is_constant {
                    true => pointer.with(by, it.ip()),
                    false => pointer.indexed(value),
                };
                self.memory
                    .insert(address, (pointer, value.wrapping_add(by)));
            }
        } else if executed.is_push() {
            let stack = next.registers[usize::from(STACK_POINTER)];
            if let Some(pushed) = self.copied(executed, 0) {
                self.memory.insert(stack, pushed);
            }
        }
        let written = general(it.op0_register()).filter(|_| it.op0_kind() == OpKind::Register);
        for number in 0..REGISTERS {
            let is_changed = executed.registers[number] != next.registers[number];
            if Some(number) == written && made.is_some() {
                self.registers[number] = made;
            } else if is_changed {
                self.registers[number] = None;
            }
        }
    }

    /// Returns what is known of the pointer in the operand with the number `operand`, and the
    /// pointer's value; `None` if the operand is not a register with a pointer.
    fn copied(&self, executed: &Executed, operand: u32) -> Option<(Pointer, u64)> {
        let it = &executed.instruction;
        if it.op_count() <= operand || it.op_kind(operand) != OpKind::Register {
            return None;
        }
        let register = it.op_register(operand);
        let pointer = self.pointer(executed, register)?;
        Some((pointer, executed.registers[general(register)?]))
    }

    /// Returns what is known of the pointer that an instruction puts into its first operand, a
    /// register; `None` if it puts no pointer there, or an unknown one.
    fn made(&self, executed: &Executed, next: &Executed) -> Option<Pointer> {
        let it = &executed.instruction;
        if it.op_count() == 0 || it.op0_kind() != OpKind::Register || it.op0_register().size() != 8
        {
            return None;
        }
        let own = || self.pointer(executed, it.op0_register());
        let pc = it.ip();
        match it.mnemonic() {
            Mnemonic::Lea => self.operand(executed).map(|it| it.0),
            Mnemonic::Mov if it.op1_kind() == OpKind::Register => {
                self.pointer(executed, it.op1_register())
            }
            Mnemonic::Mov | Mnemonic::Pop => {
                let (pointer, value) = self.loaded(executed)?;
                let number = general(it.op0_register())?;
                (next.registers[number] == value).then_some(pointer)
            }
            Mnemonic::Inc => own().map(|it| it.with(1, pc)),
            Mnemonic::Dec => own().map(|it| it.with(u64::MAX, pc)),
            Mnemonic::Add | Mnemonic::Sub => {
                let is_sum = it.mnemonic() == Mnemonic::Add;
                if let Ok(by) = it.try_immediate(1) {
                    let by = if is_sum { by } else { by.wrapping_neg() };
                    return own().map(|it| it.with(by, pc));
                }
                let other = match it.op1_kind() {
                    OpKind::Register => self.pointer(executed, it.op1_register()),
                    _ => self.loaded(executed).map(|it| it.0),
                };
                let value = |it: Register| general(it).map_or(0, |it| executed.registers[it]);
                match (own(), other) {
                    (Some(pointer), None) => Some(pointer.indexed(value(it.op0_register()))),
                    (None, Some(pointer)) if is_sum => {
                        Some(pointer.indexed(value(it.op1_register())))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns what is known of the pointer that was last stored in the memory that an instruction
    /// reads, and the pointer's value; `None` if no pointer is known to have been stored there.
    fn loaded(&self, executed: &Executed) -> Option<(Pointer, u64)> {
        match executed.read()? {
            (address, 8) => self.memory.get(&address).copied(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction: its address, its bytes, and the values that some registers have before it.
    type Instruction<'a> = (u64, &'a [u8], &'a [(usize, u64)]);

    /// Returns a recording of the instructions `code`, each with the values that some registers
    /// have before it; a register keeps its value until another one is given.
    fn recorded(code: &[Instruction<'_>]) -> Recorded {
        let mut registers = [0; REGISTERS];
        registers[usize::from(STACK_POINTER)] = 0x9000;
        let all = code.iter().map(|(pc, bytes, values)| {
            for (number, value) in *values {
                registers[*number] = *value;
            }
            registers[REGISTERS - 1] = *pc;
            Executed::new(bytes, registers).unwrap()
        });
        Recorded {
            executed: all.collect(),
            ..Recorded::default()
        }
    }

    fn found(code: &[Instruction<'_>]) -> Vec<Written> {
        let areas = [0x5000..0x6000, 0x8000..0xa000];
        written(&recorded(code), &areas, |_| true, &HashSet::new())
    }

    /// DWARF numbers of rax, rcx and rbx.
    const RAX: usize = 0;
    const RCX: usize = 2;
    const RBX: usize = 3;

    /// mov [rbx+rcx*8+16], rax
    const ELEMENT: &[u8] = &[0x48, 0x89, 0x44, 0xcb, 0x10];
    /// mov [rax], cl
    const BYTE: &[u8] = &[0x88, 0x08];
    /// add rax, 1
    const NEXT: &[u8] = &[0x48, 0x83, 0xc0, 1];

    #[test]
    fn an_element_is_told_from_the_field_by_the_index() {
        let all = found(&[
            (0x100, ELEMENT, &[(RBX, 0x5000), (RCX, 1)]),
            (0x100, ELEMENT, &[(RCX, 4)]),
        ]);
        assert_eq!(all.len(), 1);
        let it = &all[0];
        assert_eq!((it.root, it.base), (0x5000, 0x5010));
        assert_eq!((it.first, it.range.clone()), (0x5018, 0x5018..0x5038));
        assert_eq!((it.how, it.arrays), (How::Anywhere, [Some(0x5010); 2]));
        // No pointer: a number that is no address of writable memory.
        assert!(found(&[(0x100, ELEMENT, &[(RBX, 0x77), (RCX, 1)])]).is_empty());
        // Two pointers: which one leads to the array is not known.
        let lea: &[u8] = &[0x88, 0x04, 0x0b]; // mov [rbx+rcx], al
        assert!(found(&[(0x100, lea, &[(RBX, 0x5000), (RCX, 0x5100)])]).is_empty());
    }

    #[test]
    fn a_pointer_that_is_moved_by_a_loop_leads_to_the_same_array() {
        let mut code: Vec<Instruction<'_>> = Vec::new();
        let values: [[(usize, u64); 1]; 4] = [0x5000, 0x5001, 0x5002, 0x5003].map(|it| [(RAX, it)]);
        for at in &values {
            code.push((0x100, BYTE, at));
            code.push((0x102, NEXT, &[]));
        }
        let all = found(&code);
        // The first constant may lead to a field.
        let bases: Vec<u64> = all.iter().map(|it| it.base).collect();
        assert_eq!(bases, [0x5000, 0x5001]);
        assert_eq!(
            (all[1].how, all[1].range.clone()),
            (How::InTurn, 0x5001..0x5004)
        );
        assert_eq!(all[1].count, 3);
    }

    #[test]
    fn what_changed_is_what_was_written_up_to_the_first_long_gap() {
        let changed = [(0x5020, 4), (0x5000, 8), (0x500a, 6), (0x5100, 8)];
        assert_eq!(end_of_change(0x5000, &(0x5000..0x5200), &changed), 0x5024);
        assert_eq!(end_of_change(0x5000, &(0x5000..0x5009), &changed), 0x5008);
        assert_eq!(end_of_change(0x4000, &(0x4000..0x4100), &changed), 0x4000);
    }
}
