//! Mutants in which a place of one or two bytes keeps numbers that do not fit into it: where the
//! program reads the place, it gets the whole number that was stored.

use std::collections::{HashMap, HashSet};
use std::io;

use ddfuzz_triage::memory::Memory;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use libc::user_regs_struct;

use super::instructions::general;
use super::mutants::{Code, Mutant, MutantKind, Patch, sign_extended};
use super::process::{Process, by_number, register_mut};
use super::tests_at_point::Stand;
use super::{Engine, EngineError};

/// Largest number of stops of a mutant's run at the instructions that store or read its place; a
/// run with more stops counts as a timeout.
pub(super) const STOPS: usize = 20_000;
/// Largest number of executions of a store that are observed, to see whether the number that it
/// stores fits.
const OBSERVED: usize = 1_000;
/// Largest number of mutants that are made in which a place keeps numbers that do not fit.
const MUTANTS: usize = 8;
/// Largest distance, in instructions, from a store back to the instruction that set the stored
/// register, and from the store, in both directions, to a shift that takes a number apart.
const NEARBY: usize = 12;

/// Bits of the flags register that a comparison sets: carry, parity, auxiliary, zero, sign and
/// overflow. `SMALLER` has those that tell that the first number is smaller.
const COMPARED: u64 = 0x8d5;
const SMALLER: u64 = 0x81;

/// How instructions address a place in memory: the start of the function if the place is in its
/// frame, whether there is an index, the displacement or fixed address, and the place's size in
/// bytes.
type Key = (Option<u64>, bool, u64, usize);

/// The instructions that store and read one place in memory, of one or two bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wide {
    /// Size of the place in bytes.
    size: usize,
    /// Instructions that store a register in the place, or add to the number in it.
    stores: Vec<Instruction>,
    /// Instructions that read the place, with or without a sign, or compare it.
    reads: Vec<Instruction>,
    /// Instructions that take the lower bytes of a register, in functions that read the place: they
    /// may cut the number that was read.
    cuts: Vec<Instruction>,
}

/// The numbers that do not fit into the places where a mutant's run has stored them.
#[derive(Default)]
pub(super) struct Kept {
    /// Numbers that the places have at present, by address of the place.
    places: HashMap<u64, i64>,
    /// All numbers that the places have ever had; registers may still hold them.
    numbers: HashSet<i64>,
}

/// Returns the address of the memory that the operand `at` of an instruction accesses; `None` if it
/// accesses none.
fn address(it: &Instruction, at: u32, registers: &user_regs_struct) -> Option<u64> {
    let registers = by_number(registers);
    it.virtual_address(at, 0, |register, _, _| match register {
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        register => Some(registers[general(register)?]),
    })
}

/// Returns true for an instruction that stores the lower bytes of a register in memory.
fn is_store(it: &Instruction) -> bool {
    let source = it.op1_register();
    let is_high = [Register::AH, Register::BH, Register::CH, Register::DH].contains(&source);
    let stores = it.mnemonic() == Mnemonic::Mov && it.op0_kind() == OpKind::Memory;
    stores && it.op1_kind() == OpKind::Register && general(source).is_some() && !is_high
}

/// Returns true for an instruction that adds a constant to a number in memory.
fn is_sum(it: &Instruction) -> bool {
    let sums = [Mnemonic::Add, Mnemonic::Sub].contains(&it.mnemonic());
    it.op0_kind() == OpKind::Memory && sums && it.try_immediate(1).is_ok()
}

/// Returns true for an instruction that reads a number in memory into a wider register, or compares
/// it with a constant.
fn is_read(it: &Instruction) -> bool {
    let extends = [Mnemonic::Movzx, Mnemonic::Movsx].contains(&it.mnemonic());
    let compares = it.mnemonic() == Mnemonic::Cmp && it.try_immediate(1).is_ok();
    let into = it.op0_register();
    extends && it.op1_kind() == OpKind::Memory && (into.is_gpr32() || into.is_gpr64())
        || compares && it.op0_kind() == OpKind::Memory
}

/// Returns true for an instruction that takes the lower bytes of a register, with or without sign.
fn is_cut(it: &Instruction) -> bool {
    let extends = [Mnemonic::Movzx, Mnemonic::Movsx].contains(&it.mnemonic());
    let into = it.op0_register();
    extends && it.op1_kind() == OpKind::Register && (into.is_gpr32() || into.is_gpr64())
}

impl Code {
    /// Returns how the instruction addresses a place of one or two bytes; `None` if it addresses no
    /// such place.
    fn key(&self, it: &Instruction) -> Option<Key> {
        let size = it.memory_size().size();
        if !matches!(size, 1 | 2) {
            return None;
        }
        if it.is_ip_rel_memory_operand() {
            return Some((None, false, it.ip_rel_memory_address(), size));
        }
        let function = self.is_frame(it.memory_base()).then_some(self.start);
        let is_indexed = it.memory_index() != Register::None;
        Some((function, is_indexed, it.memory_displacement64(), size))
    }

    /// Returns true if the whole register that the store with the index `at` stores was set shortly
    /// before, and no shift nearby takes a number apart.
    fn stores_number(&self, at: usize) -> bool {
        let near = at.saturating_sub(NEARBY)..self.all.len().min(at + NEARBY);
        let shifts = [Mnemonic::Shr, Mnemonic::Sar, Mnemonic::Ror, Mnemonic::Rol];
        if (self.all[near.clone()].iter()).any(|it| shifts.contains(&it.0.mnemonic())) {
            return false;
        }
        let stored = general(self.all[at].0.op1_register());
        let sets = |it: &Instruction| {
            it.op0_kind() == OpKind::Register
                && general(it.op0_register()) == stored
                && !matches!(it.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
        };
        let before = self.all[near.start..at].iter().rev();
        let last = before.map(|it| &it.0).find(|it| sets(it));
        last.is_none_or(|it| it.op0_register().size() > 2)
    }
}

impl Wide {
    fn of_size(size: usize) -> Wide {
        let (stores, reads, cuts) = (Vec::new(), Vec::new(), Vec::new());
        Wide {
            size,
            stores,
            reads,
            cuts,
        }
    }

    /// Returns true if a number fits into the place, as all instructions that read it take it.
    fn has_room(&self, number: i64) -> bool {
        let half = 1 << (8 * self.size - 1);
        let reads = |how| self.reads.iter().any(|it| it.mnemonic() == how);
        let (signed, unsigned) = (reads(Mnemonic::Movsx), reads(Mnemonic::Movzx));
        let from = if unsigned && !signed { 0 } else { -half };
        let to = if signed && !unsigned { half } else { 2 * half };
        (from..to).contains(&number)
    }

    /// Returns the address of the place to which `it`, the next instruction of the process, stores,
    /// and the number that the place would have afterwards if all numbers fitted. `kept` has the
    /// numbers that did not fit so far. `None` if the number is not known.
    fn stored(
        &self,
        it: &Instruction,
        process: &mut Process,
        registers: &user_regs_struct,
        kept: &Kept,
    ) -> Option<(u64, i64)> {
        let at = address(it, 0, registers)?;
        if is_store(it) {
            let number = by_number(registers)[general(it.op1_register())?];
            return Some((at, sign_extended(number, 4)));
        }
        let by = sign_extended(it.try_immediate(1).ok()?, self.size);
        let before = self.read(at, process, kept)?;
        let is_added = it.mnemonic() == Mnemonic::Add;
        Some((at, if is_added { before + by } else { before - by }))
    }

    /// Returns the number in the place at the address `at`: the whole number, if one that does not
    /// fit was stored there and nothing else was written since. `None` if the memory cannot be
    /// read.
    fn read(&self, at: u64, process: &mut Process, kept: &Kept) -> Option<i64> {
        let mut word = [0; 8];
        let bytes = process.bytes(at, self.size);
        word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let narrow = u64::from_le_bytes(word);
        let mask = (1 << (8 * self.size)) - 1;
        let wide = kept
            .places
            .get(&at)
            .filter(|it| **it as u64 & mask == narrow);
        let is_signed = self.reads.iter().all(|it| it.mnemonic() == Mnemonic::Movsx);
        let own = if is_signed {
            sign_extended(narrow, self.size)
        } else {
            narrow as i64
        };
        Some(wide.copied().unwrap_or(own))
    }

    /// Returns the addresses of all instructions that store or read the place, or may cut its
    /// number.
    pub(super) fn places(&self) -> impl Iterator<Item = u64> {
        let all = self.stores.iter().chain(&self.reads).chain(&self.cuts);
        all.map(Instruction::ip)
    }

    /// Returns the address of the first instruction that stores to the place; 0 if there is none.
    pub(super) fn first(&self) -> u64 {
        self.stores.first().map_or(0, Instruction::ip)
    }

    /// Returns in words what the mutant does, as the end of a sentence: `with a number that is not
    /// cut to 8 bits`.
    pub(super) fn words(&self) -> String {
        format!("with a number that is not cut to {} bits", 8 * self.size)
    }

    /// Returns the number that `it`, the next instruction of the process, reads from the place or
    /// has in a register, if the number did not fit into the place; `None` otherwise.
    fn wide(
        &self,
        it: &Instruction,
        process: &mut Process,
        registers: &user_regs_struct,
        kept: &Kept,
    ) -> Option<i64> {
        if is_cut(it) {
            let number = by_number(registers)[general(it.op1_register())?];
            let number = sign_extended(number, 4);
            return kept.numbers.get(&number).copied();
        }
        let operand = u32::from(it.mnemonic() != Mnemonic::Cmp);
        let at = address(it, operand, registers)?;
        let is_known = kept.places.contains_key(&at);
        is_known.then(|| self.read(at, process, kept))?
    }

    /// Executes the instruction at which the process has stopped with these registers, which stores
    /// or reads the place or may cut its number, as if all numbers fitted into the place.
    pub(super) fn step(
        &self,
        process: &mut Process,
        registers: &user_regs_struct,
        kept: &mut Kept,
    ) -> io::Result<()> {
        let pc = registers.rip;
        if let Some(store) = self.stores.iter().find(|it| it.ip() == pc) {
            if let Some((at, number)) = self.stored(store, process, registers, kept) {
                match self.has_room(number) {
                    true => drop(kept.places.remove(&at)),
                    false => {
                        kept.places.insert(at, number);
                        kept.numbers.insert(number);
                    }
                }
            }
            return process.step_over(pc).map(drop);
        }
        let all = self.reads.iter().chain(&self.cuts);
        let read = all.into_iter().find(|it| it.ip() == pc);
        let wide = read.and_then(|it| self.wide(it, process, registers, kept));
        process.step_over(pc)?;
        let (Some(read), Some(wide)) = (read, wide.filter(|it| !self.has_room(*it))) else {
            return Ok(());
        };
        let mut after = process.registers()?;
        if read.mnemonic() == Mnemonic::Cmp {
            let is_smaller = wide < 0;
            after.eflags = after.eflags & !COMPARED | if is_smaller { SMALLER } else { 0 };
        } else if let Some(number) = general(read.op0_register())
            && let Some(into) = register_mut(&mut after, number as u16)
        {
            let is_whole = read.op0_register().is_gpr64();
            *into = if is_whole {
                wide as u64
            } else {
                u64::from(wide as u32)
            };
        }
        process.set_registers(after)
    }
}

/// Returns the places of one or two bytes that the code `all` stores and reads.
pub(super) fn places<'a>(all: impl Iterator<Item = &'a Code>) -> Vec<Wide> {
    let mut found: HashMap<Key, Wide> = HashMap::new();
    for code in all {
        let mut read: HashSet<Key> = HashSet::new();
        for (at, (it, _)) in code.all.iter().enumerate() {
            let Some(key) = code.key(it) else {
                continue;
            };
            let place = found.entry(key).or_insert_with(|| Wide::of_size(key.3));
            if is_sum(it) || is_store(it) && code.stores_number(at) {
                place.stores.push(*it);
            } else if is_read(it) {
                place.reads.push(*it);
                read.insert(key);
            }
        }
        for key in read {
            if let Some(place) = found.get_mut(&key) {
                let own = code.all.iter().map(|it| it.0);
                let own = own.filter(|it| is_cut(it) && it.op1_register().size() == key.3);
                place.cuts.extend(own);
            }
        }
    }
    let mut found: Vec<Wide> = found.into_values().collect();
    found.retain(|it| !it.stores.is_empty() && !it.reads.is_empty());
    found.sort_by_key(Wide::first);
    found
}

impl Engine {
    /// Returns the mutants in which a place of one or two bytes keeps numbers that do not fit into
    /// it, for places in which the failing run stores such a number. `all` are the places that the
    /// executed code uses, `stand` is the stopped run from which forks are made.
    pub(super) fn wide_mutants(
        &mut self,
        stand: &mut Stand,
        all: &[Wide],
    ) -> Result<Vec<Mutant>, EngineError> {
        let mut stores: HashMap<u64, (usize, Instruction, usize)> = HashMap::new();
        for (index, place) in all.iter().enumerate() {
            let own = place.stores.iter().filter(|it| self.is_user(it.ip()));
            stores.extend(own.map(|it| (it.ip(), (index, *it, 0))));
        }
        let addresses: HashSet<u64> = stores.keys().copied().collect();
        let mut cut: Vec<(usize, u64)> = Vec::new();
        self.stopped_at(stand, &addresses, |process, registers| {
            let pc = registers.rip;
            let Some((index, store, seen)) = stores.get_mut(&pc) else {
                return Ok(process.remove_breakpoint(pc)?);
            };
            *seen += 1;
            let place = &all[*index];
            let number = place.stored(store, process, registers, &Kept::default());
            let is_cut = number.is_some_and(|it| !place.has_room(it.1));
            if is_cut && cut.iter().all(|it| it.0 != *index) {
                cut.push((*index, pc));
            }
            match is_cut || *seen >= OBSERVED {
                true => process.remove_breakpoint(pc)?,
                false => drop(process.step_over(pc)?),
            }
            Ok(())
        })?;
        let mutant = |(index, pc): (usize, u64)| {
            let patch = Patch::Wide(Box::new(all[index].clone()));
            let kind = MutantKind::Width;
            Mutant { pc, kind, patch }
        };
        Ok(cut.into_iter().take(MUTANTS).map(mutant).collect())
    }
}
