//! Which variable a mutant reads, and in place of which other one: their names, by debug
//! information and the source line. Pure.

use ddfuzz_triage::memory::Memory;
use iced_x86::{Instruction, OpKind, Register};

use super::mutant_words::IN_CODE;
use super::mutants::simple_place;
use super::mutated::dwarf_number;
use crate::crossing::parts_at;
use crate::dwarf::locations::{Context, Found, evaluate};
use crate::dwarf::{DebugInfo, Declared, Function};
use crate::types::{Shape, TypeId};

/// DWARF number of the register RBP, by which code with a frame pointer finds its local variables.
const RBP: u16 = 6;
/// Address that the frame pointer is assumed to have while local variables are located. Any address
/// would do, because only distances from the frame pointer are used.
const FRAME: u64 = 1 << 32;
/// Distance in bytes from the address in the frame pointer up to the canonical frame address: the
/// saved frame pointer and the return address lie between, with 8 bytes each.
const TO_CFA: u64 = 16;

/// Memory that cannot be read: each read gives 0 bytes.
struct Unknown;

impl Memory for Unknown {
    fn read(&mut self, _address: u64, _buffer: &mut [u8]) -> usize {
        0
    }
}

/// The context in which the locations of local variables are evaluated without a process: only the
/// frame pointer ([`FRAME`]), and what follows from it, is known.
struct FrameOnly {
    memory: Unknown,
    base: Option<u64>,
}

impl FrameOnly {
    /// Returns the context at the address `pc` in the file, in the code of `function`.
    fn new(function: &Function, pc: u64) -> FrameOnly {
        let mut context = FrameOnly {
            memory: Unknown,
            base: None,
        };
        let base = function.frame_base.at(pc);
        let base = base.and_then(|it| evaluate(it, function.encoding, None, &mut context));
        context.base = base.and_then(|it| match it {
            Found::Memory(base) | Found::Value(base) => Some(base),
            Found::Register(number) => context.register(number),
        });
        context
    }
}

impl Context for FrameOnly {
    fn register(&mut self, number: u16) -> Option<u64> {
        (number == RBP).then_some(FRAME)
    }

    fn memory(&mut self) -> &mut dyn Memory {
        &mut self.memory
    }

    fn frame_base(&mut self) -> Option<u64> {
        self.base
    }

    fn cfa(&mut self) -> Option<u64> {
        Some(FRAME + TO_CFA)
    }
}

/// Returns all words of letters, digits and `_` in the source text `source`, in their order. For
/// each word, the flag says whether it names a field, that is, follows `.` or `->`.
fn names(source: &str) -> Vec<(&str, bool)> {
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find(is_of_name) {
        let end = rest[start..].find(|it| !is_of_name(it));
        let end = end.map_or(rest.len(), |it| start + it);
        let before = rest[..start].trim_end();
        let is_field = before.ends_with('.') || before.ends_with("->");
        found.push((&rest[start..end], is_field));
        rest = &rest[end..];
    }
    found
}

/// Returns the first element of `all`, if all elements are equal; `None` if they differ, or if
/// there are none.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|it| it == first).then_some(first)
}

impl DebugInfo {
    /// Returns in words which variable, field or parameter the instruction `is` of a mutant reads
    /// in place of the one that the program's instruction `was` reads, as in
    /// ``with `tail` in place of `head` ``. `pc` is the address of both instructions in the file,
    /// and `has_frame_pointer` says whether the function uses RBP as its frame pointer. `None` if
    /// the name of what `was` reads is not known or not in the source line `source`, the words say
    /// how far away in memory the mutant reads, or from which register. `None` if that cannot be
    /// told, or if both names are the same.
    pub(super) fn other_operand(
        &self,
        (was, is): (&Instruction, &Instruction),
        (pc, has_frame_pointer): (u64, bool),
        source: &str,
    ) -> Option<String> {
        let size = was.memory_size().size() as u64;
        let of_fields = || {
            let (base, offset) = simple_place(was)?;
            let (_, to) = simple_place(is).filter(|it| it.0 == base)?;
            let is_frame = base == Register::RSP || base == Register::RBP && has_frame_pointer;
            let found = self.fields((offset, to), size, source);
            found.filter(|_| !is_frame && registers(was, is).is_none())
        };
        let both = self.both((was, is), (pc, has_frame_pointer));
        // A macro of the line may have the names.
        let is_exact = both.is_some() && registers(was, is).is_none();
        let Some([one, other]) = both.map(|it| it.map(|it| it.0)).or_else(of_fields) else {
            return elsewhere(was, is);
        };
        let last = one.rsplit(['.', '>']).next()?;
        match names(source).iter().any(|it| it.0 == last) {
            _ if one == other => None,
            in_line if in_line || is_exact => Some(format!("with `{other}` in place of `{one}`")),
            _ => elsewhere(was, is),
        }
    }

    /// Returns the name of the variable in `register` at the address `pc` in the file; `None` if
    /// there is no such variable, or if there are several.
    pub(super) fn in_register(&self, register: Register, pc: u64) -> Option<&str> {
        let function = self.function(pc).filter(|_| register.is_gpr())?;
        in_register(function, register, pc).map(|it| it.0)
    }

    /// Returns the names and types of two variables: the one that the program's instruction `was`
    /// reads, and the one that the mutant's instruction `is` reads in its place. Finds variables in
    /// registers and, if `has_frame_pointer` is true, at fixed distances from RBP; returns `None`
    /// for others. `pc` is the address of both instructions in the file.
    fn both(
        &self,
        (was, is): (&Instruction, &Instruction),
        (pc, has_frame_pointer): (u64, bool),
    ) -> Option<[(String, TypeId); 2]> {
        let function = self.function(pc)?;
        if let Some([one, other]) = registers(was, is) {
            let [one, other] = [one, other].map(|it| in_register(function, it, pc));
            return Some([one?, other?].map(|(name, of)| (name.to_owned(), of)));
        }
        let (base, one) = simple_place(was)?;
        let (_, other) = simple_place(is).filter(|it| it.0 == base)?;
        if base != Register::RBP || !has_frame_pointer {
            return None;
        }
        Some([
            self.in_frame(function, one, pc)?,
            self.in_frame(function, other, pc)?,
        ])
    }

    /// Returns how many bytes above the stack pointer at the first instruction of `function` its
    /// parameter `it` is passed; `None` if it is not passed on the stack.
    pub(super) fn passed_on_stack(&self, function: &Function, it: &Declared) -> Option<u64> {
        let entry = function.ranges.first()?.start;
        let mut context = FrameOnly::new(function, entry);
        let found = evaluate(it.located.at(entry)?, function.encoding, None, &mut context)?;
        let Found::Memory(at) = found else {
            return None;
        };
        // The return address is below the frame address, and the stack pointer leads to it.
        at.checked_sub(FRAME + TO_CFA).map(|it| it + 8)
    }

    /// Returns true if the variables that the two instructions `both` read have types of which a
    /// compiler does not accept one in place of the other: only one of them is a pointer, or they
    /// are pointers to different types. The first instruction is that of the program, the second
    /// one that of the mutant. `at` is their address in the file, and whether the function uses RBP
    /// as its frame pointer. Returns false if one of the variables is not known.
    pub(super) fn is_of_other_type(
        &self,
        both: (&Instruction, &Instruction),
        at: (u64, bool),
    ) -> bool {
        let Some([(_, one), (_, other)]) = self.both(both, at) else {
            return false;
        };
        self.differ_as_pointers((one, other))
    }

    /// Returns true if exactly one of the two types is that of a pointer, or if both are and lead
    /// to different types.
    pub(super) fn differ_as_pointers(&self, (one, other): (TypeId, TypeId)) -> bool {
        match (&self.types.get(one).shape, &self.types.get(other).shape) {
            (Shape::Pointer(one), Shape::Pointer(other)) => one != other,
            (one, other) => matches!(one, Shape::Pointer(_)) != matches!(other, Shape::Pointer(_)),
        }
    }

    /// Returns the name and the type of the local variable of `function`, or of the smallest part
    /// of one (such as a field), that begins `offset` bytes above the address in the frame pointer
    /// at the address `pc` in the file; `offset` may be negative. `None` if nothing begins there,
    /// or if several variables or parts do.
    fn in_frame(&self, function: &Function, offset: i64, pc: u64) -> Option<(String, TypeId)> {
        let mut context = FrameOnly::new(function, pc);
        let address = FRAME.wrapping_add_signed(offset);
        let all = visible(function, pc).filter_map(|it| {
            let expression = it.located.at(pc)?;
            let found = evaluate(expression, function.encoding, None, &mut context)?;
            let Found::Memory(start) = found else {
                return None;
            };
            let size = self.types.get(it.of).size;
            let within = address.checked_sub(start).filter(|it| *it < size)?;
            let part = parts_at(&self.types, (it.of, size), within).pop()?;
            (part.range.start == within).then(|| (format!("{}{}", it.name, part.path), part.of))
        });
        only(all)
    }

    /// Returns the names of the two fields of `size` bytes that a record (`struct`) has at the
    /// offsets `one` and `other`, in bytes. All records of the program are searched; one counts
    /// only if the source line `source` names its field at `one`. `None` if no record counts, or if
    /// several count and their fields have different names.
    fn fields(&self, (one, other): (i64, i64), size: u64, source: &str) -> Option<[String; 2]> {
        let named = names(source);
        let all = self.types.iter().filter_map(|it| {
            let Shape::Record(fields) = &it.shape else {
                return None;
            };
            let at = |offset: i64| {
                let is_it = |offset: u64| {
                    fields.iter().find(|it| {
                        it.offset == offset
                            && it.bits.is_none()
                            && self.types.get(it.of).size == size
                    })
                };
                is_it(u64::try_from(offset).ok()?)
            };
            let first = at(one)?;
            let is_named = named.contains(&(first.name.as_str(), true));
            let second = at(other).filter(|_| is_named)?;
            Some([first.name.clone(), second.name.clone()])
        });
        only(all)
    }
}

/// Returns the name and the type of the variable of `function` whose value is in `register` at the
/// address `pc` in the file; `None` if there is no such variable, or if there are several.
fn in_register(function: &Function, register: Register, pc: u64) -> Option<(&str, TypeId)> {
    let number = dwarf_number(register.full_register());
    let all = visible(function, pc).filter(|it| it.register_at(pc) == Some(number));
    only(all.map(|it| (it.name.as_str(), it.of)))
}

/// Returns in words from where the instruction `is` of a mutant reads in place of where the
/// program's instruction `was` does: from another register, or from memory some bytes away. `None`
/// if they differ in something else.
fn elsewhere(was: &Instruction, is: &Instruction) -> Option<String> {
    if let Some(both) = registers(was, is) {
        let [one, other] = both.map(|it| format!("{:?}", it.full_register()).to_lowercase());
        return Some(format!("with register {other} in place of {one}{IN_CODE}"));
    }
    let [one, other] = [was, is].map(|it| it.memory_displacement64() as i64);
    let by = other.wrapping_sub(one);
    let is_place = was.memory_base() == is.memory_base() && by != 0;
    let way = if by < 0 { "back" } else { "on" };
    let plural = if by.unsigned_abs() == 1 { "" } else { "s" };
    let told = || {
        let by = by.unsigned_abs();
        format!("with the memory {by} byte{plural} further {way} read instead")
    };
    is_place.then(told)
}

/// Returns the variables of `function` whose scope contains the address `pc` in the file. A
/// variable without a scope is in the whole function.
fn visible(function: &Function, pc: u64) -> impl Iterator<Item = &Declared> {
    let all = function.variables.iter();
    all.filter(move |it| it.scope.is_empty() || it.scope.iter().any(|range| range.contains(&pc)))
}

/// Returns the two registers in which the instructions `was` and `is` differ: that of `was`, then
/// that of `is`. `None` if they differ in no register or in several, or if they differ in the
/// opcode, or in the displacement or the scale of an address.
fn registers(was: &Instruction, is: &Instruction) -> Option<[Register; 2]> {
    let all = |it: &Instruction| {
        let operands = (0..it.op_count()).map(|at| match it.op_kind(at) {
            OpKind::Register => it.op_register(at),
            _ => Register::None,
        });
        let mut all: Vec<Register> = operands.collect();
        all.extend([it.memory_base(), it.memory_index()]);
        all
    };
    let is_alike = was.code() == is.code()
        && was.memory_displacement64() == is.memory_displacement64()
        && was.memory_index_scale() == is.memory_index_scale();
    let (one, other) = (all(was), all(is));
    let differ = one.iter().zip(&other).filter(|(one, other)| one != other);
    let mut differ = differ
        .filter(|_| is_alike)
        .map(|(one, other)| [*one, *other]);
    let first = differ.next()?;
    let are_registers = first.iter().all(|it| *it != Register::None);
    (differ.next().is_none() && are_registers).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn names_of_a_line_are_told_from_fields() {
        let found = names("if (it->head.next == n2)");
        let fields = [
            ("if", false),
            ("it", false),
            ("head", true),
            ("next", true),
            ("n2", false),
        ];
        assert_eq!(found, fields);
    }

    #[test]
    fn instructions_differ_in_one_register() {
        let decoded = |code: &[u8]| Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
        // mov eax, [rbx+8]; mov eax, [rcx+8]; mov eax, [rbx+16]; mov ecx, [rbx+8]
        let was = decoded(&[0x8b, 0x43, 8]);
        let found = registers(&was, &decoded(&[0x8b, 0x41, 8]));
        assert_eq!(found, Some([Register::RBX, Register::RCX]));
        assert_eq!(registers(&was, &decoded(&[0x8b, 0x43, 16])), None);
        assert_eq!(registers(&was, &was), None);
        let told = |is: &[u8]| elsewhere(&was, &decoded(is));
        let register = "with register rcx in place of rbx in its code";
        assert_eq!(told(&[0x8b, 0x41, 8]).unwrap(), register);
        let memory = "with the memory 8 bytes further on read instead";
        assert_eq!(told(&[0x8b, 0x43, 16]).unwrap(), memory);
        assert_eq!(told(&[0x8b, 0x43, 8]), None);
    }
}
