//! Mutants in which a function makes one assignment more: when it begins or returns, it sets a
//! field of a record that is passed to it, or a global variable.

use std::collections::HashSet;
use std::io;

use ddfuzz_triage::memory::Memory;
use iced_x86::{Mnemonic, OpKind};
use libc::user_regs_struct;

use super::Engine;
use super::mutants::{Code, Mutant, MutantKind, Patch, simple_place};
use super::process::{Process, register_mut};
use crate::dwarf::{Declared, Function};
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
}

/// The address from which a place (a field or a global variable) is counted, in a mutant whose
/// function additionally sets this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The place is counted from the address that is passed to the function in this register (DWARF
    /// number), such as that of a record.
    Passed(u16),
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
    /// Whether the assignment is made when the function returns, and not when it begins.
    pub at_end: bool,
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
        let when = if self.at_end {
            "it returns"
        } else {
            "it begins"
        };
        let value = match self.value {
            Value::Zero => "set to zero",
            Value::Changed(by) if by < 0 => "one smaller",
            Value::Changed(_) => "one larger",
        };
        format!("with {} {value} when {when}", self.name)
    }

    /// Makes the additional assignment at a stop of the process. At the function's first
    /// instruction, it assigns at once or, if the assignment belongs at the end, adds the call to
    /// `pending` and sets a breakpoint where it returns. There it assigns, and takes the call out
    /// of `pending`. Does nothing at other stops.
    pub(super) fn apply(
        &self,
        process: &mut Process,
        registers: &user_regs_struct,
        pending: &mut Pending,
    ) -> io::Result<()> {
        let here = (registers.rip, registers.rsp);
        if here.0 != self.entry {
            return match pending.iter().rposition(|it| (it.0, it.1) == here) {
                Some(at) => self.set(process, pending.remove(at).2),
                None => Ok(()),
            };
        }
        if self.caller.is_some() && process.word(registers.rsp) != self.caller {
            return Ok(());
        }
        let mut registers = *registers;
        let base = match self.base {
            Base::Passed(number) => register_mut(&mut registers, number).map_or(0, |it| *it),
            Base::Fixed(address) => address,
        };
        if !self.at_end {
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
        if let Value::Changed(by) = self.value {
            word[..self.size].copy_from_slice(&old);
            word = u64::from_le_bytes(word)
                .wrapping_add_signed(by)
                .to_le_bytes();
        }
        process.write(at, &word[..self.size])
    }
}

/// A place in memory with its size in bytes, named by the way in which an instruction addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// The place is at an offset (first number, in bytes) from the address in a register that does
    /// not point to the stack frame; the second number is its size in bytes.
    Behind(i64, usize),
    /// The place is at this fixed address; the second number is its size in bytes.
    At(u64, usize),
}

/// The places in memory that some code reads, and those that it writes.
#[derive(Default)]
struct Uses {
    read: HashSet<Place>,
    written: HashSet<Place>,
}

impl Uses {
    fn add(&mut self, code: &Code) {
        for (it, _) in &code.all {
            let size = it.memory_size().size();
            let is_memory = (0..it.op_count()).any(|at| it.op_kind(at) == OpKind::Memory);
            let place = match simple_place(it) {
                _ if !is_memory || it.mnemonic() == Mnemonic::Lea => continue,
                _ if it.is_ip_rel_memory_operand() => Place::At(it.ip_rel_memory_address(), size),
                Some((base, offset)) if !code.is_frame(base) => Place::Behind(offset, size),
                _ => continue,
            };
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
struct Settable {
    /// Offset of the place in the variable, in bytes.
    offset: u64,
    /// Size of the place in bytes.
    size: usize,
    /// Whether the place holds a number, which mutants may also raise and lower by one.
    is_number: bool,
    /// Name of the place in the source.
    name: String,
}

/// Returns the places of a variable of type `of` that can be set: the variable itself, with the
/// name `own`; or, if it is a record, its fields, each named by `before` and the field's name.
fn places(types: &Types, of: TypeId, own: &str, before: &str) -> Vec<Settable> {
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

/// Returns the parameters of a function that point to records (structures or unions), with the
/// registers in which they are passed. If a record is returned or passed by value, the registers of
/// the parameters after it cannot be told by counting; of these parameters, only those are returned
/// whose registers the debug information names.
fn passed<'a>(types: &Types, function: &'a Function) -> Vec<(u16, TypeId, &'a Declared)> {
    let is_record = |of| matches!(types.get(of).shape, Shape::Record(_) | Shape::Union(_));
    let mut order = Some(PASSED.iter().copied());
    if function.returned.is_some_and(is_record) {
        order = None;
    }
    let mut found = Vec::new();
    for it in function.variables.iter().take(function.parameters) {
        let entry = function.ranges.first().map_or(0, |it| it.start);
        let named = it.register_at(entry);
        let next = match types.get(it.of).shape {
            Shape::Base(Encoding::Float) => continue,
            Shape::Record(_) | Shape::Union(_) => {
                order = None;
                continue;
            }
            _ => order.as_mut().and_then(Iterator::next),
        };
        if let (Some(register), Shape::Pointer(of)) = (named.or(next), &types.get(it.of).shape)
            && is_record(*of)
        {
            found.push((register, *of, it));
        }
    }
    found
}

impl Engine {
    /// Returns mutants in which a function of the program makes one assignment in addition when it
    /// begins or returns: it sets a field of a record that is passed to it, or a global variable.
    /// `executed` are the functions that the failing run has called, with their code. Only places
    /// that this code reads are set; those that the function itself writes are only set to zero,
    /// when it begins.
    pub(super) fn additions(&self, executed: &[(&Function, Vec<Code>)]) -> Vec<Mutant> {
        let is_own = |function: &Function| {
            let start = function.ranges.first().map_or(0, |it| it.start);
            self.is_user(start.wrapping_add(self.bias))
        };
        let executed = executed.iter().filter(|it| is_own(it.0));
        let functions: Vec<&Function> = executed.clone().map(|it| it.0).collect();
        let mut uses: Vec<Uses> = Vec::new();
        for (_, codes) in executed {
            let mut own = Uses::default();
            codes.iter().for_each(|code| own.add(code));
            uses.push(own);
        }
        let read: HashSet<Place> = uses.iter().flat_map(|it| &it.read).copied().collect();
        let mut found = Vec::new();
        for (function, own) in functions.iter().zip(&uses) {
            if function.name != MAIN {
                self.add_to(function, own, &read, &mut found);
            }
        }
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
        for (register, of, parameter) in passed(types, function) {
            let name = &parameter.name;
            for field in places(types, of, name, &format!("{name}->")) {
                let place = Place::Behind(field.offset as i64, field.size);
                if read.contains(&place) {
                    set.push((Base::Passed(register), field, own.written.contains(&place)));
                }
            }
        }
        for (global, _) in &self.info.globals {
            let Some([ADDRESS, address @ ..]) = global.located.at(0) else {
                continue;
            };
            let Ok(address) = address.try_into().map(u64::from_le_bytes) else {
                continue;
            };
            let address = address.wrapping_add(self.bias);
            let name = &global.name;
            for field in places(types, global.of, name, &format!("{name}.")) {
                let place = Place::At(address + field.offset, field.size);
                if own.read.contains(&place) {
                    set.push((Base::Fixed(address), field, own.written.contains(&place)));
                }
            }
        }
        set
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
            let mut values = vec![(false, Value::Zero)];
            if !is_written {
                values.push((true, Value::Zero));
            }
            if !is_written && field.is_number {
                values.extend([1, -1].map(|by| (true, Value::Changed(by))));
            }
            for (at_end, value) in values {
                let added = Added {
                    entry,
                    caller: None,
                    at_end,
                    base,
                    offset: field.offset,
                    size: field.size,
                    value,
                    name: field.name.clone(),
                };
                let (pc, kind) = (entry, MutantKind::Added);
                let patch = Patch::Addition(Box::new(added));
                found.push(Mutant { pc, kind, patch });
            }
        }
    }
}
