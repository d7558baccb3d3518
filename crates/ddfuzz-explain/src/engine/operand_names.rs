//! Which variable a mutant reads, and in place of which other one: their names, by debug
//! information and the source line. Pure.

use ddfuzz_triage::memory::Memory;
use iced_x86::{Instruction, OpKind, Register};

use super::mutants::simple_place;
use super::mutated::dwarf_number;
use crate::crossing::parts_at;
use crate::dwarf::locations::{Context, Found, evaluate};
use crate::dwarf::{DebugInfo, Declared, Function};
use crate::types::{Shape, TypeId};

/// DWARF number of the register RBP, by which code with a frame pointer finds its local variables.
const RBP: u16 = 6;
/// Address to which the frame pointer is taken to point when local variables are located; only
/// distances from it count.
const FRAME: u64 = 1 << 32;
/// Distance in bytes from what the frame pointer points to up to the canonical frame address: the
/// saved frame pointer, and the return address.
const TO_CFA: u64 = 16;

/// Memory of which nothing is known.
struct Unknown;

impl Memory for Unknown {
    fn read(&mut self, _address: u64, _buffer: &mut [u8]) -> usize {
        0
    }
}

/// A frame of which only the frame pointer is known, [`FRAME`].
struct FrameOnly {
    memory: Unknown,
    base: Option<u64>,
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

/// Returns the names in the source text `source`: identifiers, each with whether it names a field
/// (it stands behind `.` or `->`).
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

/// Returns the only one of `all`; `None` if there are none, or several that differ.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|it| it == first).then_some(first)
}

impl DebugInfo {
    /// Returns in words which variable, field or parameter the instruction `is` reads in place of
    /// the one that `was` reads, as in ``with `tail` in place of `head` ``; both instructions are
    /// at the address `pc` in the file. `source` is the source line, which has the name of what
    /// `was` reads; `has_frame_pointer` says whether the code finds its local variables by the
    /// register RBP. `None` if one of the two names is not known.
    pub(super) fn other_operand(
        &self,
        (was, is): (&Instruction, &Instruction),
        (pc, has_frame_pointer): (u64, bool),
        source: &str,
    ) -> Option<String> {
        let size = was.memory_size().size() as u64;
        let [one, other] = match self.both((was, is), (pc, has_frame_pointer)) {
            Some(both) => both.map(|it| it.0),
            None if registers(was, is).is_some() => return None,
            None => {
                let (base, offset) = simple_place(was)?;
                let (_, to) = simple_place(is).filter(|it| it.0 == base)?;
                let is_frame = base == Register::RSP || base == Register::RBP && has_frame_pointer;
                self.fields((offset, to), size, source)
                    .filter(|_| !is_frame)?
            }
        };
        let last = one.rsplit(['.', '>']).next()?;
        let is_named = names(source).iter().any(|it| it.0 == last);
        (is_named && one != other).then(|| format!("with `{other}` in place of `{one}`"))
    }

    /// Returns the variable that the instruction `was` reads and the one that `is` reads in its
    /// place, with the types of both, if they are in registers or in the frame; else `None`.
    fn both(
        &self,
        (was, is): (&Instruction, &Instruction),
        (pc, has_frame_pointer): (u64, bool),
    ) -> Option<[(String, TypeId); 2]> {
        let function = self.function(pc)?;
        if let Some([one, other]) = registers(was, is) {
            return Some([
                in_register(function, one, pc)?,
                in_register(function, other, pc)?,
            ]);
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

    /// Returns true if the instruction `is` reads a variable in place of another one that `was`
    /// reads, and a compiler would not take the one for the other: one of them is no pointer, or
    /// points to another type. Both instructions are at the address `pc` in the file;
    /// `has_frame_pointer` is that of [`other_operand`](DebugInfo::other_operand).
    pub(super) fn is_of_other_type(
        &self,
        both: (&Instruction, &Instruction),
        at: (u64, bool),
    ) -> bool {
        let Some([(_, one), (_, other)]) = self.both(both, at) else {
            return false;
        };
        match (&self.types.get(one).shape, &self.types.get(other).shape) {
            (Shape::Pointer(one), Shape::Pointer(other)) => one != other,
            (one, other) => matches!(one, Shape::Pointer(_)) != matches!(other, Shape::Pointer(_)),
        }
    }

    /// Returns the name and the type of the local variable of `function`, or of its part, that
    /// begins `offset` bytes behind what the frame pointer points to; `None` if there is none, or
    /// several.
    fn in_frame(&self, function: &Function, offset: i64, pc: u64) -> Option<(String, TypeId)> {
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

    /// Returns the names of the fields of `size` bytes at the two offsets of a record, of which the
    /// first field is one that the source line `source` names; `None` if no record has both, or if
    /// several have them with different names.
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

/// Returns the name and the type of the variable of `function` that is in `register` at the address
/// `pc`; `None` if there is none, or several.
fn in_register(function: &Function, register: Register, pc: u64) -> Option<(String, TypeId)> {
    let number = dwarf_number(register.full_register());
    let all = visible(function, pc).filter(|it| it.register_at(pc) == Some(number));
    only(all.map(|it| (it.name.clone(), it.of)))
}

/// Returns the variables of `function` that are visible at the address `pc`.
fn visible(function: &Function, pc: u64) -> impl Iterator<Item = &Declared> {
    let all = function.variables.iter();
    all.filter(move |it| it.scope.is_empty() || it.scope.iter().any(|range| range.contains(&pc)))
}

/// Returns the register that the instruction `was` names where `is` names another one, and that
/// other one; `None` if they differ in something else, or not at all.
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
    }
}
