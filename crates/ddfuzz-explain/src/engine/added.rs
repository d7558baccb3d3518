//! Mutants in which a function makes one assignment more: when it begins or returns, or before one
//! of its statements, it sets a field of a record that is passed to it, or a global variable.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use ddfuzz_triage::memory::Memory;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use libc::user_regs_struct;

use super::change_words::number;
use super::mutants::{Code, Mutant, MutantKind, Patch, simple_place};
use super::process::{Process, register_mut};
use super::{Engine, Point};
use crate::dwarf::{DebugInfo, Declared, Function};
use crate::suspects::MAIN;
use crate::types::{Encoding, Shape, TypeId, Types};

/// Numbers in debug information of the registers in which the first integers and pointers are
/// passed.
const PASSED: [u16; 6] = [5, 4, 1, 2, 8, 9];
/// Code of the DWARF operation that is followed by an address (`DW_OP_addr`).
const ADDRESS: u8 = 0x03;
/// Largest number of places (fields and variables) that are set by mutants of one function; each
/// mutant sets one place.
const PLACES: usize = 24;

/// The value to which a mutant's function sets a place (a field or a global variable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// The place is set to zero, or to the null pointer.
    Zero,
    /// The place is set to the value that it had before, plus this number.
    Changed(i64),
    /// The place is set to this number, which the function sets it to elsewhere.
    Constant(i64),
}

/// When a mutant's function makes its additional assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum When {
    /// When the function begins.
    Begins,
    /// When the function returns.
    Returns,
    /// Each time before the function executes the statement at this address.
    Before(u64),
}

/// The address from which a place (a field or a global variable) is counted, in a mutant whose
/// function additionally sets this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The place is counted from the address that is passed to the function in this register (DWARF
    /// number), such as that of a record.
    Passed(u16),
    /// The place is counted from the address that is passed to the function on the stack, this many
    /// bytes above the stack pointer at the function's first instruction.
    Stacked(u64),
    /// The place is counted from this fixed address, such as that of a global variable.
    Fixed(u64),
}

/// The assignment that a mutant's function makes in addition to what it does anyway: when it begins
/// or returns, it sets a field or a global variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Added {
    /// Address at which the function that makes the assignment begins.
    pub entry: u64,
    /// Return address of the calls in which the assignment is made; `None` if it is made in all
    /// calls.
    pub caller: Option<u64>,
    /// When the assignment is made.
    pub when: When,
    /// Where the address of the set place is taken from: the place has `size` bytes, and begins
    /// `offset` bytes after that address.
    pub base: Base,
    pub offset: u64,
    pub size: usize,
    pub value: Value,
    /// Name of the set place, such as `list->tail`.
    pub name: String,
}

/// Calls of the mutated function that have not returned yet. For each: its return address, the
/// stack pointer after the return, and the address of the variable or record of which a part is set
/// when it returns.
pub(super) type Pending = Vec<(u64, u64, u64)>;

impl Added {
    /// Returns in words which assignment the mutant's function makes in addition, as the end of a
    /// sentence: `with list->tail set to zero when it returns`.
    pub fn words(&self) -> String {
        let when = match self.when {
            When::Begins => "when it begins",
            When::Returns => "when it returns",
            When::Before(_) => "before this line",
        };
        let value = match self.value {
            Value::Zero => "set to zero".to_owned(),
            Value::Changed(by) if by < 0 => "one smaller".to_owned(),
            Value::Changed(_) => "one larger".to_owned(),
            Value::Constant(number) => format!("set to {number}"),
        };
        format!("with {} {value} {when}", self.name)
    }

    /// Returns the addresses at which a process has to stop for this assignment, as far as they are
    /// known when it starts: where the function returns to is known only when it is called.
    pub(super) fn stops(&self) -> impl Iterator<Item = u64> {
        let statement = match self.when {
            When::Before(statement) => Some(statement),
            When::Begins | When::Returns => None,
        };
        std::iter::once(self.entry).chain(statement)
    }

    /// Makes the additional assignment at a stop of the process. At the function's first
    /// instruction, it assigns at once or, if the assignment is made later, adds the call to
    /// `pending` and sets a breakpoint where it returns. There it takes the call out of `pending`
    /// and, if the assignment belongs there, assigns. At a statement, it assigns for the last call
    /// of `pending`. Does nothing at other stops.
    pub(super) fn apply(
        &self,
        process: &mut Process,
        registers: &user_regs_struct,
        pending: &mut Pending,
    ) -> io::Result<()> {
        let here = (registers.rip, registers.rsp);
        if self.when == When::Before(here.0) {
            return match pending.last() {
                Some(call) => self.set(process, call.2),
                None => Ok(()),
            };
        }
        if here.0 != self.entry {
            let returned = pending.iter().rposition(|it| (it.0, it.1) == here);
            let base = returned.map(|at| pending.remove(at).2);
            return match base.filter(|_| self.when == When::Returns) {
                Some(base) => self.set(process, base),
                None => Ok(()),
            };
        }
        if self.caller.is_some() && process.word(registers.rsp) != self.caller {
            return Ok(());
        }
        let mut registers = *registers;
        let base = match self.base {
            Base::Passed(number) => register_mut(&mut registers, number).map_or(0, |it| *it),
            Base::Stacked(offset) => {
                let at = registers.rsp.wrapping_add(offset);
                process.word(at).unwrap_or_default()
            }
            Base::Fixed(address) => address,
        };
        if self.when == When::Begins {
            return self.set(process, base);
        }
        if let Some(back) = process.word(registers.rsp) {
            process.set_breakpoint(back)?;
            pending.push((back, registers.rsp + 8, base));
        }
        Ok(())
    }

    fn set(&self, process: &mut Process, base: u64) -> io::Result<()> {
        let at = base.wrapping_add(self.offset);
        let old = process.bytes(at, self.size);
        if old.len() != self.size {
            return Ok(());
        }
        let mut word = [0; 8];
        match self.value {
            Value::Zero => {}
            Value::Changed(by) => {
                word[..self.size].copy_from_slice(&old);
                word = u64::from_le_bytes(word)
                    .wrapping_add_signed(by)
                    .to_le_bytes();
            }
            Value::Constant(number) => word = number.to_le_bytes(),
        }
        process.write(at, &word[..self.size])
    }
}

/// A place in memory with its size in bytes, named by the way in which an instruction addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The place is at an offset (first number, in bytes) from the address in a register that does
    /// not point to the stack frame; the second number is its size in bytes.
    Behind(i64, usize),
    /// The place is at this fixed address; the second number is its size in bytes.
    At(u64, usize),
}

/// The places in memory that some code reads, and those that it writes.
#[derive(Default)]
pub(super) struct Uses {
    read: HashSet<Place>,
    written: HashSet<Place>,
    /// The places that the code makes larger or smaller by one.
    pub(super) counted: HashSet<Place>,
    /// The constants to which the code sets places.
    pub(super) constants: HashMap<Place, BTreeSet<i64>>,
}

impl Uses {
    fn add(&mut self, code: &Code) {
        for (at, (it, _)) in code.all.iter().enumerate() {
            let Some(place) = place_of(code, it) else {
                continue;
            };
            if counts(code, at, place) {
                self.counted.insert(place);
            }
            if it.mnemonic() == Mnemonic::Mov
                && let Some((constant, _)) = number(it)
            {
                self.constants.entry(place).or_default().insert(constant);
            }
            let is_stored = it.op0_kind() == OpKind::Memory;
            let is_compared = matches!(it.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
            if is_stored && !is_compared {
                self.written.insert(place);
            }
            if !is_stored || it.mnemonic() != Mnemonic::Mov {
                self.read.insert(place);
            }
        }
    }
}

/// Returns the place in memory, outside of the stack frame, that the instruction `it` of `code`
/// accesses; `None` if it accesses none, or one that depends on an index.
fn place_of(code: &Code, it: &Instruction) -> Option<Place> {
    let size = it.memory_size().size();
    let is_memory = (0..it.op_count()).any(|at| it.op_kind(at) == OpKind::Memory);
    match simple_place(it) {
        _ if !is_memory || it.mnemonic() == Mnemonic::Lea => None,
        _ if it.is_ip_rel_memory_operand() => Some(Place::At(it.ip_rel_memory_address(), size)),
        Some((base, offset)) if !code.is_frame(base) => Some(Place::Behind(offset, size)),
        _ => None,
    }
}

/// Largest number of instructions from one that reads a place to the one that writes it with a
/// number that is larger or smaller by one.
const COUNTING: usize = 6;

/// Returns true if the instruction of `code` with the index `at` makes `place` larger or smaller by
/// one: itself, or together with instructions before it that have read the place.
fn counts(code: &Code, at: usize, place: Place) -> bool {
    let is_step = |it: &Instruction| match it.mnemonic() {
        Mnemonic::Inc | Mnemonic::Dec => true,
        Mnemonic::Add | Mnemonic::Sub => number(it).is_some_and(|it| it.0.abs() == 1),
        Mnemonic::Lea => {
            it.memory_index() == Register::None && it.memory_displacement64().wrapping_add(1) <= 2
        }
        _ => false,
    };
    let it = &code.all[at].0;
    let before = &code.all[at.saturating_sub(COUNTING)..at];
    let reads =
        |it: &Instruction| it.op0_kind() == OpKind::Register && place_of(code, it) == Some(place);
    let is_stored = it.mnemonic() == Mnemonic::Mov
        && it.op0_kind() == OpKind::Memory
        && it.op1_kind() == OpKind::Register;
    let is_changed = it.op0_kind() == OpKind::Memory && is_step(it);
    let read = before.iter().position(|it| reads(&it.0));
    is_changed
        || is_stored
            && read.is_some_and(|from| {
                before[from..]
                    .iter()
                    .any(|it| is_step(&it.0) && it.0.op0_kind() == OpKind::Register)
            })
}

/// Returns the size, in bytes, of a value of type `of`, and true if it is an integer of more than
/// one byte, which mutants also raise and lower by one. `None` if mutants set no values of this
/// type.
fn settable(types: &Types, of: TypeId) -> Option<(usize, bool)> {
    let it = types.get(of);
    let is_number = match &it.shape {
        Shape::Base(Encoding::Signed | Encoding::Unsigned) => it.size > 1,
        Shape::Base(Encoding::Bool | Encoding::Char) | Shape::Enum(_) | Shape::Pointer(_) => false,
        _ => return None,
    };
    let size = usize::try_from(it.size).ok()?;
    matches!(size, 1 | 2 | 4 | 8).then_some((size, is_number))
}

/// A place in a variable that a mutant can set: the variable as a whole or one of its fields.
#[derive(Clone)]
pub(super) struct Settable {
    /// Offset of the place in the variable, in bytes.
    pub(super) offset: u64,
    /// Size of the place in bytes.
    pub(super) size: usize,
    /// Whether the place holds a number, which mutants may also raise and lower by one.
    pub(super) is_number: bool,
    /// Name of the place in the source.
    pub(super) name: String,
}

/// Returns the places of a variable of type `of` that can be set: the variable itself, with the
/// name `own`; or, if it is a record, its fields, each named by `before` and the field's name.
pub(super) fn places(types: &Types, of: TypeId, own: &str, before: &str) -> Vec<Settable> {
    let place = |of, offset, name| {
        let (size, is_number) = settable(types, of)?;
        Some(Settable {
            offset,
            size,
            is_number,
            name,
        })
    };
    if let Some(whole) = place(of, 0, own.to_owned()) {
        return vec![whole];
    }
    let Shape::Record(fields) = &types.get(of).shape else {
        return Vec::new();
    };
    let fields = fields.iter().filter(|it| it.bits.is_none());
    let set = fields.filter_map(|it| place(it.of, it.offset, format!("{before}{}", it.name)));
    set.collect()
}

/// Returns true for the type of a structure or a union.
fn is_record(types: &Types, of: TypeId) -> bool {
    matches!(types.get(of).shape, Shape::Record(_) | Shape::Union(_))
}

/// Returns the parameters of a function that are pointers, with the types that they lead to and with
/// where they are passed. If a record is returned or passed by value, the registers of the parameters
/// after it cannot be told by counting; of these parameters, only those are returned whose places
/// the debug information `info` names.
pub(super) fn passed<'a>(
    info: &DebugInfo,
    function: &'a Function,
) -> Vec<(Base, TypeId, &'a Declared)> {
    let types = &info.types;
    let mut order = Some(PASSED.iter().copied());
    if function.returned.is_some_and(|it| is_record(types, it)) {
        order = None;
    }
    let mut found = Vec::new();
    for it in function.variables.iter().take(function.parameters) {
        let entry = function.ranges.first().map_or(0, |it| it.start);
        let next = match types.get(it.of).shape {
            Shape::Base(Encoding::Float) => continue,
            Shape::Record(_) | Shape::Union(_) => {
                order = None;
                continue;
            }
            _ => order.as_mut().and_then(Iterator::next),
        };
        let stacked = info.passed_on_stack(function, it).map(Base::Stacked);
        let register = it.register_at(entry).or(next.filter(|_| stacked.is_none()));
        let base = register.map(Base::Passed).or(stacked);
        if let (Some(base), Shape::Pointer(of)) = (base, &types.get(it.of).shape) {
            found.push((base, *of, it));
        }
    }
    found
}

/// Returns the mutant in which the function that begins at `entry` sets `field`, a place counted from
/// `base`, to `value` in addition, at the time `when`, in all calls.
pub(super) fn mutant(
    entry: u64,
    (base, field): (Base, &Settable),
    (when, value): (When, Value),
) -> Mutant {
    let added = Added {
        entry,
        caller: None,
        when,
        base,
        offset: field.offset,
        size: field.size,
        value,
        name: field.name.clone(),
    };
    let patch = Patch::Addition(Box::new(added));
    Mutant {
        pc: patch.begins(),
        kind: MutantKind::Added,
        patch,
    }
}

impl Engine {
    /// Returns mutants in which a function of the program makes one assignment in addition when it
    /// begins or returns: it sets a field of a record that is passed to it, or a global variable.
    /// `executed` are the functions that the failing run has called, with their code, and `points`
    /// its points. Only places that this code reads are set; those that the function itself writes
    /// are only set to zero, when it begins. Then the mutants of
    /// [`additions_on_paths`](Self::additions_on_paths).
    pub(super) fn additions(
        &self,
        executed: &[(&Function, Vec<Code>)],
        points: &[Point],
    ) -> Vec<Mutant> {
        let is_own = |function: &Function| {
            let start = function.ranges.first().map_or(0, |it| it.start);
            self.is_user(start.wrapping_add(self.bias))
        };
        let executed = executed.iter().filter(|it| is_own(it.0));
        let mut all: Vec<(&Function, Uses)> = Vec::new();
        for (function, codes) in executed {
            let mut own = Uses::default();
            codes.iter().for_each(|code| own.add(code));
            all.push((function, own));
        }
        let read: HashSet<Place> = all.iter().flat_map(|it| &it.1.read).copied().collect();
        let mut found = Vec::new();
        all.retain(|it| it.0.name != MAIN);
        for (function, own) in &all {
            self.add_to(function, own, &read, &mut found);
        }
        found.extend(self.additions_on_paths(&all, points));
        found
    }

    /// Returns the places that mutants of `function` may set by an added statement: first fields of
    /// records passed to it, if the executed code reads them (they are in `read`); then global
    /// variables and their fields, if the function reads them (`own` has what it reads and writes).
    /// For each place: where the record or variable begins, the field, and whether the function
    /// writes the place itself.
    fn settable_places(
        &self,
        function: &Function,
        own: &Uses,
        read: &HashSet<Place>,
    ) -> Vec<(Base, Settable, bool)> {
        let types = &self.info.types;
        let mut set = Vec::new();
        let mut passed = passed(&self.info, function);
        passed.retain(|it| is_record(types, it.1));
        for (base, of, parameter) in passed {
            let name = &parameter.name;
            for field in places(types, of, name, &format!("{name}->")) {
                let place = Place::Behind(field.offset as i64, field.size);
                if read.contains(&place) {
                    set.push((base, field, own.written.contains(&place)));
                }
            }
        }
        for (address, field) in self.settable_globals() {
            let place = Place::At(address + field.offset, field.size);
            if own.read.contains(&place) {
                set.push((Base::Fixed(address), field, own.written.contains(&place)));
            }
        }
        set
    }

    /// Returns the places in global variables that mutants can set, each with the address of its
    /// variable.
    pub(super) fn settable_globals(&self) -> impl Iterator<Item = (u64, Settable)> {
        self.info.globals.iter().flat_map(|(global, _)| {
            let address = match global.located.at(0) {
                Some([ADDRESS, address @ ..]) => address.try_into().map(u64::from_le_bytes).ok(),
                _ => None,
            };
            let address = address.map(|it| it.wrapping_add(self.bias));
            let name = &global.name;
            let all = address.map(|address| {
                let all = places(&self.info.types, global.of, name, &format!("{name}."));
                all.into_iter().map(move |field| (address, field))
            });
            all.into_iter().flatten()
        })
    }

    /// Adds to `found` the mutants of `function` that set a field of a record passed to it, or a
    /// global variable. `own` has the places that the function reads and writes, `read` the places
    /// that the executed code reads; only places that are read are set.
    fn add_to(
        &self,
        function: &Function,
        own: &Uses,
        read: &HashSet<Place>,
        found: &mut Vec<Mutant>,
    ) {
        let Some(entry) = function.ranges.first().map(|it| it.start) else {
            return;
        };
        let entry = entry.wrapping_add(self.bias);
        let mut set = self.settable_places(function, own, read);
        set.truncate(PLACES);
        for (base, field, is_written) in set {
            // What the function writes itself is only reset before.
            let mut values = vec![(When::Begins, Value::Zero)];
            if !is_written {
                values.push((When::Returns, Value::Zero));
            }
            if !is_written && field.is_number {
                values.extend([1, -1].map(|by| (When::Returns, Value::Changed(by))));
            }
            let all = values.into_iter();
            found.extend(all.map(|how| mutant(entry, (base, &field), how)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(code: &[u8]) -> Uses {
        let mut uses = Uses::default();
        uses.add(&Code::new(code.to_vec(), 0x1000));
        uses
    }

    #[test]
    fn places_are_counted_by_one_instruction_or_by_several() {
        let place = Place::Behind(8, 4);
        let all: [&[u8]; 4] = [
            &[0x83, 0x47, 0x08, 0x01], // add dword [rdi+8], 1
            &[0xff, 0x4f, 0x08],       // dec dword [rdi+8]
            // mov eax, [rdi+8]; sub eax, 1; mov [rdi+8], eax
            &[0x8b, 0x47, 0x08, 0x83, 0xe8, 0x01, 0x89, 0x47, 0x08],
            // mov eax, [rdi+8]; lea edx, [rax+1]; mov [rdi+8], edx
            &[0x8b, 0x47, 0x08, 0x8d, 0x50, 0x01, 0x89, 0x57, 0x08],
        ];
        for code in all {
            assert_eq!(uses(code).counted, HashSet::from([place]), "{code:x?}");
        }
        let others: [&[u8]; 4] = [
            &[0x83, 0x47, 0x08, 0x02], // add dword [rdi+8], 2
            &[0x83, 0x7f, 0x08, 0x01], // cmp dword [rdi+8], 1
            // mov eax, [rdi+8]; add eax, 2; mov [rdi+8], eax
            &[0x8b, 0x47, 0x08, 0x83, 0xc0, 0x02, 0x89, 0x47, 0x08],
            // add eax, 1; mov [rdi+8], eax
            &[0x83, 0xc0, 0x01, 0x89, 0x47, 0x08],
        ];
        for code in others {
            assert_eq!(uses(code).counted, HashSet::new(), "{code:x?}");
        }
    }

    #[test]
    fn constants_that_places_are_set_to_are_found() {
        // mov word [rdi+8], 64; mov word [rdi+8], -1; mov word [rdi+8], ax
        let code = [
            0x66, 0xc7, 0x47, 0x08, 64, 0, 0x66, 0xc7, 0x47, 0x08, 0xff, 0xff, 0x66, 0x89, 0x47,
            0x08,
        ];
        let place = Place::Behind(8, 2);
        let expected = HashMap::from([(place, BTreeSet::from([-1, 64]))]);
        assert_eq!(uses(&code).constants, expected);
    }
}
