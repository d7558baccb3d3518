//! Frames of a stopped thread, with their registers, found by the unwind tables of its modules.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ddfuzz_triage::memory::Memory;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, FrameDescriptionEntry, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};

use super::locations::{Context, Found, evaluate};
use super::{Bytes, DebugInfoError};

/// Number of registers that a frame records: the general registers of x86-64 and the return
/// address.
pub const REGISTERS: usize = 17;
/// DWARF number of the stack pointer.
pub const STACK_POINTER: u16 = 7;
/// DWARF number of the frame pointer.
pub const FRAME_POINTER: u16 = 6;
/// DWARF number of the return address, which stands for the program counter.
const RETURN_ADDRESS: u16 = 16;
/// DWARF numbers of the registers that a function must preserve: rbx, rbp, r12…r15.
const PRESERVED: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// Largest number of frames that are read of a stack.
pub const MOST_FRAMES: usize = 4096;

/// The unwind table of one module, which tells how callers of its functions are found on the stack.
pub struct UnwindTable {
    section: EhFrame<Bytes>,
    bases: BaseAddresses,
    entries: Vec<(Range<u64>, FrameDescriptionEntry<Bytes>)>,
    rows: HashMap<u64, Option<Arc<Row>>>,
    /// Address at which the first byte of the module's file is loaded if the module is loaded
    /// without a bias.
    pub base: u64,
}

/// A row of the unwind table: how the caller's frame and registers are found at one code address.
#[derive(Clone, Debug)]
struct Row {
    cfa: Rule,
    registers: Vec<(u16, Rule)>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The value (of a caller's register, or of the frame's address) is the value of this register
    /// plus an offset.
    Register(u16, i64),
    /// The caller's register is saved in memory, at this offset from the canonical frame address.
    Saved(i64),
    /// The value of the caller's register is the canonical frame address plus this offset.
    Value(i64),
    /// A DWARF expression gives the value of a caller's register or of the frame's address: with
    /// `true` the address where it is saved, with `false` the value itself.
    Expression(Vec<u8>, bool),
    Same,
    Undefined,
}

impl UnwindTable {
    /// Reads the unwind table of the ELF file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<UnwindTable, DebugInfoError> {
        let image = std::fs::read(path)?;
        let file = object::File::parse(&*image)?;
        let address = |name| {
            file.section_by_name(name)
                .map_or(0, |section| section.address())
        };
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let data = file
            .section_by_name(".eh_frame")
            .and_then(|section| section.uncompressed_data().ok());
        let data: Arc<[u8]> =
            data.map_or_else(|| Arc::from([]), |data| Arc::from(data.into_owned()));
        let section = EhFrame::from(Bytes::new(data, LittleEndian));
        let mut entries = Vec::new();
        let mut all = section.entries(&bases);
        while let Some(entry) = all.next()? {
            if let CieOrFde::Fde(partial) = entry {
                let entry = partial.parse(EhFrame::cie_from_offset)?;
                let start = entry.initial_address();
                entries.push((start..start.saturating_add(entry.len()), entry));
            }
        }
        entries.sort_by_key(|(range, _)| range.start);
        Ok(UnwindTable {
            section,
            bases,
            entries,
            rows: HashMap::new(),
            base: base(&file),
        })
    }

    fn row(&mut self, pc: u64) -> Option<Arc<Row>> {
        if let Some(known) = self.rows.get(&pc) {
            return known.clone();
        }
        let row = self.compute(pc).map(Arc::new);
        self.rows.insert(pc, row.clone());
        row
    }

    fn compute(&self, pc: u64) -> Option<Row> {
        let behind = self.entries.partition_point(|(range, _)| range.start <= pc);
        let (range, entry) = self.entries.get(behind.checked_sub(1)?)?;
        if !range.contains(&pc) {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&self.section, &self.bases, &mut context, pc)
            .ok()?;
        let bytes = |expression: &gimli::UnwindExpression<usize>| {
            expression
                .get(&self.section)
                .ok()
                .map(|it| it.0.bytes().to_vec())
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Rule::Register(register.0, *offset),
            CfaRule::Expression(expression) => Rule::Expression(bytes(expression)?, false),
        };
        let mut registers = Vec::new();
        for (register, rule) in row.registers() {
            let rule = match rule {
                RegisterRule::Undefined | RegisterRule::Architectural => Rule::Undefined,
                RegisterRule::SameValue => Rule::Same,
                RegisterRule::Offset(offset) => Rule::Saved(*offset),
                RegisterRule::ValOffset(offset) => Rule::Value(*offset),
                RegisterRule::Register(other) => Rule::Register(other.0, 0),
                RegisterRule::Expression(expression) => Rule::Expression(bytes(expression)?, true),
                RegisterRule::ValExpression(expression) => {
                    Rule::Expression(bytes(expression)?, false)
                }
                _ => Rule::Undefined,
            };
            registers.push((register.0, rule));
        }
        Some(Row { cfa, registers })
    }
}

/// Where the value that a register has in a stack frame is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The value, which is still in the thread's register of the same number.
    Live(u64),
    /// Address in memory at which the value is saved.
    Memory(u64),
    /// The value, computed by the unwind rules; it is not stored in a register or in memory.
    Value(u64),
    /// The value is unknown, since the register was overwritten.
    Lost,
}

/// A frame on the stack of a stopped thread: a function call that is being executed.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Program counter of the frame; in a caller, the return address.
    pub pc: u64,
    /// Address in the code that the frame executes: the program counter, or the return address − 1.
    pub code: u64,
    /// Canonical frame address: the stack pointer before the call; 0 until `caller` computes it.
    pub cfa: u64,
    /// For each register, by DWARF number, where its value in this frame is found.
    pub registers: [Saved; REGISTERS],
}

impl Frame {
    /// Returns the innermost frame of a thread with these registers (DWARF numbers, `rip` last).
    pub fn innermost(registers: &[u64; REGISTERS]) -> Frame {
        Frame {
            pc: registers[RETURN_ADDRESS as usize],
            code: registers[RETURN_ADDRESS as usize],
            cfa: 0,
            registers: registers.map(Saved::Live),
        }
    }

    /// Returns the value of a register in the frame, read from `memory` if it was saved; `None` if
    /// the value is lost.
    pub fn value(&self, register: u16, memory: &mut dyn Memory) -> Option<u64> {
        match *self.registers.get(usize::from(register))? {
            Saved::Live(value) | Saved::Value(value) => Some(value),
            Saved::Memory(address) => memory.word(address),
            Saved::Lost => None,
        }
    }

    /// Computes the frame's canonical frame address, and returns the caller's frame; `None` where
    /// the stack ends.
    pub fn caller(
        &mut self,
        table: &mut UnwindTable,
        bias: u64,
        memory: &mut dyn Memory,
    ) -> Option<Frame> {
        let row = table.row(self.code.wrapping_sub(bias))?;
        let cfa = match &row.cfa {
            Rule::Register(register, offset) => {
                self.value(*register, memory)?.wrapping_add(*offset as u64)
            }
            Rule::Expression(expression, _) => self.expression(expression, 0, memory)?,
            _ => return None,
        };
        self.cfa = cfa;
        let mut registers = [Saved::Lost; REGISTERS];
        for number in PRESERVED {
            registers[usize::from(number)] = self.registers[usize::from(number)];
        }
        registers[usize::from(STACK_POINTER)] = Saved::Value(cfa);
        for (number, rule) in &row.registers {
            let Some(place) = registers.get_mut(usize::from(*number)) else {
                continue;
            };
            *place = match rule {
                Rule::Saved(offset) => Saved::Memory(cfa.wrapping_add(*offset as u64)),
                Rule::Value(offset) => Saved::Value(cfa.wrapping_add(*offset as u64)),
                Rule::Register(other, _) => *self.registers.get(usize::from(*other))?,
                Rule::Same => self.registers[usize::from(*number)],
                Rule::Undefined => Saved::Lost,
                Rule::Expression(expression, is_saved) => {
                    match (self.expression(expression, cfa, memory), is_saved) {
                        (Some(address), true) => Saved::Memory(address),
                        (Some(value), false) => Saved::Value(value),
                        (None, _) => Saved::Lost,
                    }
                }
            };
        }
        let next = Frame {
            pc: 0,
            code: 0,
            cfa: 0,
            registers,
        };
        let pc = next.value(RETURN_ADDRESS, memory).filter(|pc| *pc > 4096)?;
        Some(Frame {
            pc,
            code: pc - 1,
            ..next
        })
    }

    fn expression(&self, expression: &[u8], start: u64, memory: &mut dyn Memory) -> Option<u64> {
        struct Registers<'a>(&'a Frame, &'a mut dyn Memory);
        impl Context for Registers<'_> {
            fn register(&mut self, number: u16) -> Option<u64> {
                self.0.value(number, self.1)
            }
            fn memory(&mut self) -> &mut dyn Memory {
                self.1
            }
        }
        let encoding = gimli::Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 4,
        };
        match evaluate(
            expression,
            encoding,
            Some(start),
            &mut Registers(self, memory),
        )? {
            Found::Memory(value) | Found::Value(value) => Some(value),
            Found::Register(_) => None,
        }
    }
}

/// Returns the address at which the first byte of an ELF file is loaded in memory without a bias.
pub fn base(file: &object::File<'_>) -> u64 {
    use object::ObjectSegment;
    let first = file.segments().min_by_key(|segment| segment.address());
    first.map_or(0, |segment| {
        segment.address().wrapping_sub(segment.file_range().0) & !0xfff
    })
}
