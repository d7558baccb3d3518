//! The instructions that the compiler has added to a program for a sanitizer: for AddressSanitizer
//! a check of the shadow memory before each access, for UndefinedBehaviorSanitizer checks of
//! numbers and pointers. They call the runtime where the check fails, and are not the program's
//! own. Pure.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind,
};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};

use super::asan::SHADOW;

/// Beginning of the names of the runtime's functions that report a bad access.
const REPORT: &str = "__asan_report_";
/// Beginning of the names of the runtime's functions that report a failed check of
/// UndefinedBehaviorSanitizer.
const CHECK: &str = "__ubsan_handle_";
/// Largest number of instructions directly before the conditional jump of a check that are taken
/// for a part of the check, as they prepare its condition.
const PREPARING: usize = 6;
/// Largest number of instructions of a check before it reads the shadow memory.
const BEFORE: usize = 6;
/// Largest number of instructions of a check from the read of shadow memory to the jump, and from
/// the jump to the report.
const BEHIND: usize = 14;
/// Sizes in bytes of entries of the tables by which a program calls libraries.
const ENTRIES: [u64; 2] = [16, 8];

/// The code of a program that was compiled with a sanitizer, in which the instructions that the
/// compiler has added are recognized. All addresses are those in the program's file.
#[derive(Default)]
pub(crate) struct Instrumented {
    /// The code: address and bytes of each section.
    sections: Vec<(u64, Vec<u8>)>,
    /// Addresses that the program calls to report a failed check: those of the reporting functions,
    /// and of their entries in the procedure linkage table.
    reports: HashSet<u64>,
    /// Addresses of the added instructions of each range of code that was looked at.
    known: RefCell<HashMap<u64, Rc<HashSet<u64>>>>,
}

impl Instrumented {
    /// Reads the code of the ELF file `image` and the addresses of its reporting functions. Both
    /// are empty if the file cannot be read, or if `has_checks` is false, as in a program without a
    /// sanitizer.
    pub fn of(image: &[u8], has_checks: bool) -> Instrumented {
        let file = object::File::parse(image).ok();
        let Some(file) = file.filter(|_| has_checks) else {
            return Instrumented::default();
        };
        let code = file.sections().filter(|it| it.kind() == SectionKind::Text);
        let code = code.filter_map(|it| Some((it.address(), it.data().ok()?.to_vec())));
        let sections: Vec<(u64, Vec<u8>)> = code.collect();
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let own = symbols.filter(|it| it.is_definition() && it.name().is_ok_and(reports));
        let mut all: HashSet<u64> = own.map(|it| it.address()).collect();
        let table = file.dynamic_symbol_table();
        let relocations = file.dynamic_relocations().into_iter().flatten();
        let slots = relocations.filter_map(|(slot, it)| {
            let RelocationTarget::Symbol(index) = it.target() else {
                return None;
            };
            let symbol = object::ObjectSymbolTable::symbol_by_index(table.as_ref()?, index).ok()?;
            symbol.name().is_ok_and(reports).then_some(slot)
        });
        let slots: HashSet<u64> = slots.collect();
        let tables = file.sections();
        let tables = tables.filter(|it| it.name().is_ok_and(|name| name.starts_with(".plt")));
        for table in tables {
            let code = table.data().unwrap_or_default();
            for it in decoded(code, table.address()) {
                let is_jump = it.flow_control() == FlowControl::IndirectBranch;
                if is_jump && slots.contains(&it.memory_displacement64()) {
                    all.extend(ENTRIES.map(|size| it.ip() / size * size));
                }
            }
        }
        Instrumented {
            sections,
            reports: all,
            known: RefCell::default(),
        }
    }

    /// Returns true if the compiler has added the instruction at `pc` for a sanitizer. `range` is
    /// the part of the code of its function that contains the instruction.
    pub fn is_added(&self, pc: u64, range: &Range<u64>) -> bool {
        let known = self.known.borrow().get(&range.start).cloned();
        let known = known.unwrap_or_else(|| {
            let code = self.code(range);
            let found = Rc::new(added(&decoded(code, range.start), |it| {
                self.reports.contains(&it)
            }));
            self.known.borrow_mut().insert(range.start, found.clone());
            found
        });
        known.contains(&pc)
    }

    fn code(&self, range: &Range<u64>) -> &[u8] {
        let inside = self.sections.iter().find_map(|(start, bytes)| {
            let from = range.start.checked_sub(*start)? as usize;
            let to = range.end.checked_sub(*start)? as usize;
            bytes.get(from..to)
        });
        inside.unwrap_or_default()
    }
}

fn reports(name: &str) -> bool {
    name.starts_with(REPORT) || name.starts_with(CHECK)
}

/// Returns two facts about the program with the ELF file `image`: whether it is compiled with
/// AddressSanitizer, and whether it has checks of AddressSanitizer or UndefinedBehaviorSanitizer.
pub(super) fn of_sanitizers(image: &[u8]) -> [bool; 2] {
    let has_asan = super::asan::is_in(image);
    let file = object::File::parse(image);
    let mut names = file.iter().flat_map(|file| {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        symbols.filter_map(|it| it.name_bytes().ok())
    });
    [
        has_asan,
        has_asan || names.any(|it| it.starts_with(CHECK.as_bytes())),
    ]
}

fn decoded(code: &[u8], start: u64) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    decoder.into_iter().collect()
}

/// Returns true if an instruction has the beginning of the shadow memory as a number, or in the
/// address of a memory operand.
fn names_shadow(it: &Instruction) -> bool {
    let is_number = |operand| {
        matches!(
            it.op_kind(operand),
            OpKind::Immediate32 | OpKind::Immediate32to64
        ) && it.immediate(operand) == SHADOW.start
    };
    let has_memory = (0..it.op_count()).any(|operand| it.op_kind(operand) == OpKind::Memory);
    let is_address = has_memory && it.memory_displacement64() == SHADOW.start;
    is_address || (0..it.op_count()).any(is_number)
}

/// Returns true if an instruction stores to the shadow memory, as where a function marks the space
/// around its variables.
fn stores_shadow(it: &Instruction) -> bool {
    it.mnemonic() == Mnemonic::Mov && it.op0_kind() == OpKind::Memory
}

/// Returns true if the instruction `it` only prepares a condition for a later jump: it compares
/// numbers, or it sets or combines truth values in registers.
fn prepares(it: &Instruction) -> bool {
    let is_register = it.op0_kind() == OpKind::Register;
    match it.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test => true,
        Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => is_register,
        Mnemonic::Movzx => it.op1_kind() == OpKind::Register,
        _ => it.condition_code() != ConditionCode::None && !is_condition(it),
    }
}

fn is_condition(it: &Instruction) -> bool {
    it.flow_control() == FlowControl::ConditionalBranch
}

/// The decoded code of a function.
struct Listing<'a> {
    all: &'a [Instruction],
    at: HashMap<u64, usize>,
}

impl Listing<'_> {
    /// Returns the indices of the instructions that are executed from the index `from` on, up to a
    /// conditional jump or an instruction that leaves the function, both included.
    fn path(&self, from: Option<usize>) -> Vec<usize> {
        let (mut found, mut next) = (Vec::new(), from);
        while let Some(index) = next.filter(|_| found.len() < BEHIND) {
            let it = &self.all[index];
            found.push(index);
            next = match it.flow_control() {
                FlowControl::Next => Some(index + 1).filter(|it| *it < self.all.len()),
                FlowControl::UnconditionalBranch => self.at.get(&it.near_branch_target()).copied(),
                _ => None,
            };
        }
        found
    }

    /// Returns the paths to both sides of the conditional jump with the index `jump`.
    fn sides(&self, jump: usize) -> [Vec<usize>; 2] {
        let target = self.at.get(&self.all[jump].near_branch_target());
        let next = Some(jump + 1).filter(|it| *it < self.all.len());
        [next, target.copied()].map(|it| self.path(it))
    }

    /// Returns true if the last instruction of the control-flow path `path` (indices into the
    /// listing) calls a function that reports a failed check of a sanitizer, as `reports` tells
    /// from the function's address.
    fn is_reporting(&self, path: &[usize], reports: &impl Fn(u64) -> bool) -> bool {
        let last = path.last().map(|it| &self.all[*it]);
        last.is_some_and(|it| {
            it.flow_control() == FlowControl::Call && reports(it.near_branch_target())
        })
    }
}

/// Returns the addresses of the instructions of a function's code that were added for a sanitizer,
/// with the calls that report a failed check. `reports` tells whether the function at an address
/// reports one.
fn added(all: &[Instruction], reports: impl Fn(u64) -> bool) -> HashSet<u64> {
    let at = all.iter().enumerate().map(|(index, it)| (it.ip(), index));
    let listing = Listing {
        all,
        at: at.collect(),
    };
    let mut found: HashSet<usize> = HashSet::new();
    for (index, it) in all.iter().enumerate() {
        let sides = match is_condition(it) {
            true => listing.sides(index),
            false => Default::default(),
        };
        for side in sides
            .into_iter()
            .filter(|it| listing.is_reporting(it, &reports))
        {
            found.insert(index);
            found.extend(side);
            let before = (0..index).rev();
            found.extend(before.take(PREPARING).take_while(|it| prepares(&all[*it])));
        }
        if !names_shadow(it) {
            continue;
        }
        found.insert(index);
        if stores_shadow(it) {
            continue;
        }
        let path = listing.path(Some(index));
        let jump = path.last().copied().filter(|it| is_condition(&all[*it]));
        let Some(jump) = jump else {
            continue;
        };
        found.extend(first_of_check(all, index)..index);
        found.extend(path);
        for side in listing.sides(jump) {
            let second = side.last().filter(|it| is_condition(&all[**it]));
            let is_check = second.is_some_and(|second| {
                let sides = listing.sides(*second);
                sides.iter().any(|it| listing.is_reporting(it, &reports))
            });
            // What the jump leads to may be a check of its own, behind instructions of the program.
            let is_other = side.iter().any(|it| names_shadow(&all[*it]));
            if is_check && !is_other {
                found.extend(side);
            }
        }
    }
    found.into_iter().map(|it| all[it].ip()).collect()
}

/// Returns the index of the first instruction of the check that names the shadow memory in the
/// instruction `index`: the one that copies the address, or else that divides it by eight.
fn first_of_check(all: &[Instruction], index: usize) -> usize {
    let first = index.saturating_sub(BEFORE);
    let is_shift = |it: &usize| {
        all[*it].mnemonic() == Mnemonic::Shr
            && all[*it].op1_kind() == OpKind::Immediate8
            && all[*it].immediate8() == 3
    };
    let Some(shift) = (first..index).rev().find(is_shift) else {
        return index;
    };
    let is_copy = |it: &Instruction| {
        it.mnemonic() == Mnemonic::Mov
            && it.op1_kind() == OpKind::Register
            && it.op0_register() == all[shift].op0_register()
    };
    shift - usize::from(shift > 0 && is_copy(&all[shift - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the indices of the added instructions of `code`, which begins at 0x1000; its calls
    /// of 0x2000 report.
    fn indices(code: &[&[u8]]) -> Vec<usize> {
        let bytes = code.concat();
        let all = decoded(&bytes, 0x1000);
        assert_eq!(all.len(), code.len());
        let found = added(&all, |it| it == 0x2000);
        (0..all.len())
            .filter(|it| found.contains(&all[*it].ip()))
            .collect()
    }

    /// Returns the call of 0x2000 by an instruction at 0x1000 + `at`.
    fn report(at: u32) -> [u8; 5] {
        let [a, b, c, d] = (0x1000 - at - 5).to_le_bytes();
        [0xe8, a, b, c, d]
    }

    #[test]
    fn what_a_check_of_a_number_compares_is_no_condition_of_the_program() {
        // mov eax, [rbp-4]; cmp rax, 32; jb +10; mov esi, eax; call 0x2000; mov [rax], ecx
        let code: [&[u8]; 6] = [
            &[0x8b, 0x45, 0xfc],
            &[0x48, 0x83, 0xf8, 0x20],
            &[0x72, 7],
            &[0x89, 0xc6],
            &[0xe8, 0xf0, 0x0f, 0, 0],
            &[0x89, 0x08],
        ];
        assert_eq!(indices(&code), [1, 2, 3, 4]);
        // imul edx, eax; jno +7: the multiplication is the program's own.
        let code: [&[u8]; 5] = [
            &[0x0f, 0xaf, 0xd0],
            &[0x71, 7],
            &[0x89, 0xc6],
            &[0xe8, 0xf4, 0x0f, 0, 0],
            &[0x89, 0x08],
        ];
        assert_eq!(indices(&code), [1, 2, 3]);
    }

    #[test]
    fn a_check_is_told_from_the_condition_before_it_and_the_access_behind_it() {
        let found = indices(&[
            &[0x85, 0xf6],                            // test esi, esi
            &[0x74, 0x22],                            // je behind the access
            &[0x48, 0x8b, 0x45, 0xe8],                // mov rax, [rbp-0x18]
            &[0x48, 0x89, 0xc2],                      // mov rdx, rax
            &[0x48, 0xc1, 0xea, 3],                   // shr rdx, 3
            &[0x48, 0x81, 0xc2, 0, 0x80, 0xff, 0x7f], // add rdx, 0x7fff8000
            &[0x0f, 0xb6, 0x12],                      // movzx edx, byte [rdx]
            &[0x84, 0xd2],                            // test dl, dl
            &[0x74, 0x05],                            // je over the report
            &report(0x1d),                            // call
            &[0x48, 0x8b, 0x10],                      // mov rdx, [rax]
            &[0xc3],                                  // ret
        ]);
        assert_eq!(found, [3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_check_of_a_part_of_eight_bytes_has_two_conditions() {
        let found = indices(&[
            &[0x48, 0x89, 0xf8],                // mov rax, rdi
            &[0x48, 0xc1, 0xe8, 3],             // shr rax, 3
            &[0x8a, 0x80, 0, 0x80, 0xff, 0x7f], // mov al, [rax+0x7fff8000]
            &[0x84, 0xc0],                      // test al, al
            &[0x75, 0x03],                      // jne to the second one
            &[0x8a, 0x07],                      // mov al, [rdi]
            &[0xc3],                            // ret
            &[0x89, 0xf9],                      // mov ecx, edi
            &[0x83, 0xe1, 7],                   // and ecx, 7
            &[0x38, 0xc1],                      // cmp cl, al
            &[0x7c, 0xf4],                      // jl back to the access
            &report(0x1d),                      // call
        ]);
        assert_eq!(found, [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]);
    }
}
