//! What a mutant changes in its statement, in words.

use std::ops::Range;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

use super::Engine;
use super::change_words::{Change, compared, decoded};
use super::mutants::{Mutant, MutantKind, Patch};
use super::source_text::has_hidden_constant;
use crate::dwarf::Function;
use crate::places::{source_line, source_text};

/// Maximum number of bytes of code that are read to describe a mutant: the changed instruction and
/// the next one, which may be the conditional jump that uses its result.
const CODE: usize = 32;
/// End of the words for changes of the machine code that cannot be told in terms of the source.
pub(super) const IN_CODE: &str = " in its code";
/// Words for the arguments of a call, by their numbers from 0.
const ARGUMENTS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
/// Largest number of instructions between a comparison and the conditional jump that uses it.
const BETWEEN: usize = 6;

impl Engine {
    /// Returns in words how the statement of `mutant` is changed, as the end of a sentence: `with a
    /// shift by 7 instead of 8`. If the change itself cannot be described, returns the words for
    /// all mutants of its kind.
    pub(crate) fn change_of(&self, mutant: &Mutant) -> String {
        let source = self.source_line_of(mutant).unwrap_or_default();
        let told = self.described(mutant, &source);
        told.unwrap_or_else(|| mutant.words())
    }

    /// Returns true if the change of `mutant` can be described as a change of its source line, or if
    /// its source file cannot be read. Other changes of registers and numbers may make states of the
    /// program that no change of the source can make.
    pub(super) fn is_describable(&self, mutant: &Mutant) -> bool {
        let source = self.source_line_of(mutant);
        let file = self.place(mutant.pc).map(|it| it.0);
        if source.is_none() && file.and_then(source_text).is_none() {
            return true;
        }
        let source = source.unwrap_or_default();
        let is_constant = matches!(mutant.kind, MutantKind::Constant | MutantKind::Bound);
        let is_hidden = is_constant && has_hidden_constant(&source);
        let told = self.described(mutant, &source);
        told.is_some_and(|told| is_hidden || !told.ends_with(IN_CODE))
    }

    /// Returns the text of the source line of `mutant`; `None` if it is unknown.
    fn source_line_of(&self, mutant: &Mutant) -> Option<String> {
        let (file, line) = self.place(mutant.pc)?;
        source_line(file, line)
    }

    /// Returns in words how the statement of `mutant`, with the source text `source`, is changed;
    /// `None` if only the kind of the change is known.
    fn described(&self, mutant: &Mutant, source: &str) -> Option<String> {
        let is_exact = matches!(
            mutant.kind,
            MutantKind::Negated
                | MutantKind::Original
                | MutantKind::Fields
                | MutantKind::Break
                | MutantKind::Added
        );
        let words = || mutant.words();
        match &mutant.patch {
            Patch::Code(..) if is_exact => Some(words()),
            Patch::Code(at, bytes) => {
                let code = self.code_in_file(*at..at + CODE as u64)?;
                self.change_in_code(mutant, &code, bytes, source)
            }
            Patch::Exchange(at, pair) => {
                let object = usize::from(self.calls_method(*at));
                let named = pair.map(|it| {
                    let at = number_of(it).and_then(|at| at.checked_sub(object));
                    at.and_then(|at| ARGUMENTS.get(at)).copied()
                });
                let [Some(one), Some(other)] = named else {
                    return Some(words());
                };
                Some(format!("with the {one} and the {other} argument exchanged"))
            }
            Patch::Add(_, _, by) => Some(match *by > 0 {
                true => "with a stored number that is one larger".to_owned(),
                false => "with a stored number that is one smaller".to_owned(),
            }),
            _ => Some(words()),
        }
    }

    /// Returns in words what `mutant` changes: it has the code `bytes` where the program has
    /// `code`. `source` is the text of the source line. `None` if the change itself cannot be
    /// described.
    fn change_in_code(
        &self,
        mutant: &Mutant,
        code: &[u8],
        bytes: &[u8],
        source: &str,
    ) -> Option<String> {
        let start = mutant.patch.begins();
        let [was, next] = decoded(code, start);
        let [is] = decoded(bytes, start);
        let pc = start.wrapping_sub(self.bias);
        let added_to = match was.mnemonic() {
            Mnemonic::Lea => was.memory_base(),
            _ => was.op0_register(),
        };
        let change = Change {
            was,
            is,
            next,
            compared: self.number_compared(start),
            added_to: self.info.in_register(added_to, pc),
            source,
        };
        match mutant.kind {
            MutantKind::Constant | MutantKind::Bound => {
                let told = change.number().or_else(|| change.displaced());
                told.or_else(|| change.code_number())
            }
            MutantKind::Order => self.order(mutant, code, bytes.len()),
            MutantKind::Operator => change.operator(),
            MutantKind::Width => change.width(),
            MutantKind::Boundary => Some(change.boundary()),
            MutantKind::Connective => Some(change.connective().to_owned()),
            MutantKind::Operand => {
                let at = (pc, self.has_frame_pointer(start));
                self.info.other_operand((&was, &is), at, source)
            }
            MutantKind::Fixed => self.always(&was, &is),
            MutantKind::LeftOut => Some(match was.flow_control() {
                FlowControl::Call => self.without_call(&was),
                FlowControl::IndirectCall => "without this call".to_owned(),
                _ => "without what is written here".to_owned(),
            }),
            _ => None,
        }
    }

    /// Returns the constant with which a value is compared for the condition of the instruction at the
    /// address `pc` in the process, and the size of both in bytes; `None` if two values are compared,
    /// or if the comparison is not found.
    fn number_compared(&self, pc: u64) -> Option<(i64, usize)> {
        let all = self.instructions_around(pc);
        let before = all
            .iter()
            .rev()
            .skip_while(|it| it.ip() >= pc)
            .take(BETWEEN);
        let mut before = before.take_while(|it| it.flow_control() == FlowControl::Next);
        compared(before.find(|it| it.rflags_modified() != 0)?)
    }

    /// Returns in words that `mutant` executes a line before or after others: those that have the
    /// first `size` bytes of `code`, the program's code where the mutant begins. `None` if a line
    /// is unknown, or if they are in several files.
    fn order(&self, mutant: &Mutant, code: &[u8], size: usize) -> Option<String> {
        let start = mutant.patch.begins();
        let all = self.code_in_file(start..start + size as u64);
        let code = all.as_deref().unwrap_or(code);
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let lines: Option<Vec<_>> = decoder.iter().map(|it| self.line(it.ip())).collect();
        let mut lines = lines?;
        lines.dedup();
        let is_one_file = lines.iter().all(|it| it.0 == lines[0].0);
        let mut lines: Vec<String> = lines.iter().map(|it| it.1.to_string()).collect();
        if !is_one_file || lines.len() < 2 {
            return None;
        }
        let (moved, how) = match mutant.pc == start {
            true => (lines.remove(0), "after"),
            false => (lines.pop()?, "before"),
        };
        let plural = if lines.len() == 1 { "" } else { "s" };
        let lines = lines.join(" and ");
        Some(format!(
            "with line {moved} executed {how} line{plural} {lines}"
        ))
    }

    /// Returns true if `mutant` reads a variable, or passes an argument, which a compiler would not
    /// accept in place of the one of the program: only one of the two is a pointer, or they are
    /// pointers to different types. Returns false if the types are not known, or if `mutant` is of
    /// another kind than `Operand` and `Exchanged`.
    pub(super) fn mixes_types(&self, mutant: &Mutant) -> bool {
        if let Patch::Exchange(at, pair) = &mutant.patch {
            let types = self
                .called(*at)
                .zip(number_of(pair[0]).zip(number_of(pair[1])));
            return types.is_some_and(|(called, (one, other))| {
                let parameters = called.variables.iter().take(called.parameters);
                let of = |at: usize| parameters.clone().nth(at).map(|it| it.of);
                let both = of(one).zip(of(other));
                both.is_some_and(|both| self.info.differ_as_pointers(both))
            });
        }
        let (MutantKind::Operand, Patch::Code(at, bytes)) = (mutant.kind, &mutant.patch) else {
            return false;
        };
        let code = self.code_in_file(*at..*at + CODE as u64);
        code.is_some_and(|code| {
            let ([was], [is]) = (decoded(&code, *at), decoded(bytes, *at));
            let place = (at.wrapping_sub(self.bias), self.has_frame_pointer(*at));
            self.info.is_of_other_type((&was, &is), place)
        })
    }

    /// Returns true if the instruction at the address `pc` in the process calls a method of C++,
    /// that is, a function whose first variable is named `this`.
    fn calls_method(&self, pc: u64) -> bool {
        let called = self.called(pc);
        called.is_some_and(|it| it.variables.first().is_some_and(|it| it.name == "this"))
    }

    /// Returns the program's function that the instruction at the address `pc` in the process calls
    /// directly; `None` if there is none.
    fn called(&self, pc: u64) -> Option<&Function> {
        let code = self.code_in_file(pc..pc + CODE as u64)?;
        let target = decoded::<1>(&code, pc)[0].near_branch_target();
        self.info.function(target.wrapping_sub(self.bias))
    }

    /// Returns true if the function at the address `pc` in the process uses the register RBP as its
    /// frame pointer: it copies RSP to RBP within its first [`CODE`] bytes.
    fn has_frame_pointer(&self, pc: u64) -> bool {
        let function = self.info.function(pc.wrapping_sub(self.bias));
        let start = function.and_then(|it| Some(it.ranges.first()?.start + self.bias));
        let code = start.and_then(|it| self.code_in_file(it..it + CODE as u64));
        let copies: [u8; 3] = [0x48, 0x89, 0xe5];
        code.is_some_and(|it| it.windows(3).any(|it| it == copies))
    }

    /// Returns in words at which line the mutant always goes on where the program has the
    /// conditional jump `was`: the mutant has the instruction `is` in its place, which always jumps
    /// or never does. `None` if the line is unknown, in another file, or the same as that of the
    /// jump.
    fn always(&self, was: &Instruction, is: &Instruction) -> Option<String> {
        let own = self.line(was.ip())?;
        let to = match is.flow_control() {
            FlowControl::UnconditionalBranch => was.near_branch_target(),
            _ => was.next_ip(),
        };
        let there = self.line(to).filter(|it| it.0 == own.0 && it.1 != own.1)?;
        Some(format!(
            "with a condition after which it always goes on at line {}",
            there.1
        ))
    }

    /// Returns in words that the mutant leaves out the call instruction `it`; they name the called
    /// function if it is known.
    fn without_call(&self, it: &Instruction) -> String {
        let own = self.function(it.near_branch_target());
        match own {
            Some(name) => format!(
                "without the call of {}",
                ddfuzz_triage::short_function(name)
            ),
            None => "without this call".to_owned(),
        }
    }

    /// Returns the instructions of the function with the address `pc` in the process, from the
    /// program's file, ascending by their addresses in the process; none if the function is not
    /// known.
    pub(super) fn instructions_around(&self, pc: u64) -> Vec<Instruction> {
        let at = pc.wrapping_sub(self.bias);
        let function = self.info.function(at);
        let mut ranges = function.into_iter().flat_map(|it| &it.ranges);
        let Some(range) = ranges.find(|it| it.contains(&at)) else {
            return Vec::new();
        };
        let [start, end] = [range.start, range.end].map(|it| it.wrapping_add(self.bias));
        let code = self.code_in_file(start..end).unwrap_or_default();
        let decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
        decoder.into_iter().collect()
    }

    /// Returns the bytes of code that the program's file has for `range`, addresses in the process;
    /// fewer if the file's section of code ends inside of `range`. `None` if the file has no code
    /// at its beginning.
    pub(super) fn code_in_file(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let start = range.start.wrapping_sub(self.bias);
        let size = (range.end - range.start) as usize;
        let sections = self
            .code
            .sections
            .get_or_init(|| code_sections(&self.program));
        sections.iter().find_map(|(address, code)| {
            let from = usize::try_from(start.checked_sub(*address)?).ok()?;
            let bytes = code.get(from..)?;
            (!bytes.is_empty()).then(|| bytes[..bytes.len().min(size)].to_vec())
        })
    }
}

/// Returns the number, from 0, of the argument of a call that `register` holds; `None` if it holds
/// none.
fn number_of(register: Register) -> Option<usize> {
    let mut registers = super::mutants::ARGUMENTS.iter();
    registers.position(|it| *it == register)
}

/// Returns the sections with code of the ELF file at `path`, each with its address in the file;
/// none if the file cannot be read.
fn code_sections(path: &Path) -> Vec<(u64, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let image = std::fs::read(path).unwrap_or_default();
    let Ok(file) = object::File::parse(&*image) else {
        return Vec::new();
    };
    let code = file
        .sections()
        .filter(|it| it.kind() == object::SectionKind::Text);
    code.filter_map(|it| Some((it.address(), it.data().ok()?.to_vec())))
        .collect()
}
