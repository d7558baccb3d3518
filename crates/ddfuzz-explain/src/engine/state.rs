//! The memory graph of a stopped process: its frames, the places of its variables, and its valid
//! memory.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use ddfuzz_triage::memory::{Maps, Memory};
use libc::user_regs_struct;

use crate::dwarf::frames::{Frame, MOST_FRAMES, STACK_POINTER, Saved, UnwindTable};
use crate::dwarf::locations::{Context, Found, evaluate};
use crate::dwarf::{DebugInfo, Declared, Function, Vtables, is_library_file};
use crate::engine::heap::{HeapBlocks, heap_blocks};
use crate::engine::library_data::library_data;
use crate::engine::process::{Process, by_number};
use crate::graph::{Graph, Header, Origin, Place};
use crate::types::TypeId;
use crate::unfold::{Area, State, Variable, unfold};

/// Number of bytes below the stack pointer that a function may use.
pub(super) const RED_ZONE: u64 = 128;

/// The modules (program and libraries) that are mapped in a process, with their unwind tables.
#[derive(Default)]
pub struct Modules {
    tables: HashMap<PathBuf, Option<UnwindTable>>,
    /// Executable mappings of the modules: first address, address after the last byte, load
    /// address, path.
    mapped: Vec<(u64, u64, u64, PathBuf)>,
}

impl Modules {
    /// Records which modules (program and libraries) are mapped in a process, and at which
    /// addresses.
    pub fn map(&mut self, maps: &Maps) {
        let mut first: HashMap<PathBuf, u64> = HashMap::new();
        for mapping in maps.iter().filter(|mapping| mapping.is_file()) {
            let start = mapping.start.wrapping_sub(mapping.offset);
            first.entry(mapping.file_path()).or_insert(start);
        }
        self.mapped = (maps.iter())
            .filter(|mapping| mapping.executable && mapping.is_file())
            .map(|mapping| {
                let path = mapping.file_path();
                let start = first[&path];
                (mapping.start, mapping.end, start, path)
            })
            .collect();
    }

    /// Returns the unwind table of the module at `address`, with the module's bias: the difference
    /// between addresses in the process and in the file. `None` if no module is there, or its table
    /// cannot be read.
    fn at(&mut self, address: u64) -> Option<(&mut UnwindTable, u64)> {
        let found = self
            .mapped
            .iter()
            .find(|(start, end, ..)| (*start..*end).contains(&address));
        let (_, _, start, path) = found?;
        let table = self
            .tables
            .entry(path.clone())
            .or_insert_with(|| UnwindTable::read(path).ok());
        let table = table.as_mut()?;
        let bias = start.wrapping_sub(table.base);
        Some((table, bias))
    }

    /// Returns the path of the module at `address`; `None` where none is mapped.
    pub fn path(&self, address: u64) -> Option<&PathBuf> {
        let found = self
            .mapped
            .iter()
            .find(|(start, end, ..)| (*start..*end).contains(&address));
        found.map(|(.., path)| path)
    }

    /// Returns the load address of the module at `address`; `None` where none is mapped.
    pub fn start(&self, address: u64) -> Option<u64> {
        let found = self
            .mapped
            .iter()
            .find(|(start, end, ..)| (*start..*end).contains(&address));
        found.map(|(_, _, start, _)| *start)
    }

    /// Returns the caller of a stack frame, and sets the frame's canonical frame address; `None`
    /// where the stack ends or cannot be read.
    pub fn caller(&mut self, frame: &mut Frame, memory: &mut dyn Memory) -> Option<Frame> {
        match self.at(frame.code) {
            Some((table, bias)) => frame.caller(table, bias, memory),
            None => self.behind_wild_call(frame, memory),
        }
    }

    /// Returns the frame of the function that has called an address without code (by a bad function
    /// pointer); `None` where the word on top of the stack is not a return address in a module.
    fn behind_wild_call(&self, frame: &mut Frame, memory: &mut dyn Memory) -> Option<Frame> {
        let Saved::Live(sp) = frame.registers[usize::from(STACK_POINTER)] else {
            return None;
        };
        let pc = memory.word(sp)?;
        self.path(pc)?;
        frame.cfa = sp + 8;
        let mut registers = frame.registers;
        registers[usize::from(STACK_POINTER)] = Saved::Value(sp + 8);
        Some(Frame {
            pc,
            code: pc - 1,
            cfa: 0,
            registers,
        })
    }

    /// Returns the frames of a stopped thread, innermost first.
    pub fn frames(&mut self, registers: &user_regs_struct, memory: &mut dyn Memory) -> Vec<Frame> {
        let mut frames = vec![Frame::innermost(&by_number(registers))];
        while frames.len() < MOST_FRAMES {
            let Some(last) = frames.last_mut() else {
                break;
            };
            match self.caller(last, memory) {
                // The stack grows downwards; anything else is damaged.
                Some(next) => {
                    let cfa = last.cfa;
                    if frames.len() > 1 && cfa <= frames[frames.len() - 2].cfa {
                        break;
                    }
                    frames.push(next);
                }
                None => break,
            }
        }
        frames
    }
}

/// Registers that may hold values of the program between two statements, by DWARF number, with
/// their names.
const NAMES: [(u16, &str); 14] = [
    (0, "rax"),
    (1, "rdx"),
    (2, "rcx"),
    (3, "rbx"),
    (4, "rsi"),
    (5, "rdi"),
    (6, "rbp"),
    (8, "r8"),
    (9, "r9"),
    (10, "r10"),
    (12, "r12"),
    (13, "r13"),
    (14, "r14"),
    (15, "r15"),
];
/// Largest number of bytes of the stack, or of a data segment, that are compared as plain words
/// because no variable describes them.
const MOST_UNDESCRIBED: u64 = 64 << 10;

/// What is needed to read the state of a stopped process: debug information, load address,
/// arguments.
pub struct Reading<'a> {
    /// Debug information of the program.
    pub info: &'a mut DebugInfo,
    /// Difference between addresses in the process and in the program's file.
    pub bias: u64,
    /// Whether only registers and words are read, and no variables.
    pub is_raw: bool,
    /// Address ranges of the program's arguments: the array `argv`, and each text.
    pub arguments: &'a [Area],
}

/// The memory graph of a stopped process, and how many of the variables in scope in the program's
/// own functions on its stack have a known value.
pub struct Captured {
    /// The memory graph of the process.
    pub graph: Graph,
    /// Number of variables of the program's own functions on the stack whose value is known.
    pub visible: usize,
    /// Number of variables in scope in the program's own functions on the stack.
    pub in_scope: usize,
}

impl Reading<'_> {
    /// Reads the memory graph of a stopped process: its variables, and all that their pointers lead
    /// to. `frames` are the frames of its stack.
    pub fn capture(
        &mut self,
        frames: &[Frame],
        registers: &user_regs_struct,
        process: &mut Process,
    ) -> Captured {
        let mut variables = Vec::new();
        let (mut visible, mut in_scope) = (0, 0);
        let described = if self.is_raw { 0 } else { frames.len() };
        // What the program's own functions call by a name is not called by that of a library's.
        let (of_libraries, of_program): (Vec<usize>, Vec<usize>) =
            (0..described).partition(|index| self.is_of_library(&frames[*index]));
        let own = of_program.len();
        for (nth, index) in of_program.into_iter().chain(of_libraries).enumerate() {
            self.locals(frames, index, registers, process, &mut |found| {
                in_scope += usize::from(nth < own);
                visible += usize::from(nth < own && found.is_some());
                variables.extend(found.flatten());
            });
        }
        if !self.is_raw {
            self.globals(registers, process, &mut variables);
        }
        let maps = Maps::of(process.pid);
        let heap = heap_blocks(&maps, process);
        let mut state = ProcessState {
            registers,
            by_start: (heap.blocks.iter())
                .map(|block| (block.start, *block))
                .collect(),
            heap,
            maps: &maps,
            arguments: self.arguments,
            vtables: &self.info.vtables,
            bias: self.bias,
            undescribed: match (self.is_raw, self.info.is_optimized()) {
                (true, _) => self.raw(frames, registers, &maps, process),
                (_, true) => self.undescribed(frames, registers),
                // Between two statements all values are in variables.
                (_, false) => Vec::new(),
            },
            process,
        };
        let graph = unfold(Arc::make_mut(&mut self.info.types), &variables, &mut state);
        Captured {
            graph,
            visible,
            in_scope,
        }
    }

    /// Returns true if the function of a frame is defined in a file of a library
    /// ([`is_library_file`]).
    fn is_of_library(&self, frame: &Frame) -> bool {
        let function = self.info.function(frame.code.wrapping_sub(self.bias));
        let place = function.and_then(|function| self.info.lines.place(function.ranges[0].start));
        place.is_some_and(|(file, _)| is_library_file(file))
    }

    /// Returns the place (memory or register) of a variable of the innermost frame, and the 8 bytes
    /// at this place; `None` if the variable has no place that could be changed.
    pub fn value(
        &self,
        frames: &[Frame],
        registers: &user_regs_struct,
        variable: Origin,
        process: &mut Process,
    ) -> Option<(Place, Vec<u8>)> {
        let mut found = None;
        self.locals(frames, 0, registers, process, &mut |it| {
            found = found.or(it
                .flatten()
                .filter(|it| it.origin == variable)
                .map(|it| it.place));
        });
        let value = match found? {
            Place::Memory(address) => process.bytes(address, 8),
            Place::Register(number) => {
                let values = by_number(registers);
                values.get(usize::from(number))?.to_le_bytes().to_vec()
            }
        };
        found.map(|place| (place, value))
    }

    /// Calls `found` for each variable that is in scope in the frame with the index `index`, with
    /// the variable and its place; with `Some(None)` if the variable has a value, but no place that
    /// could be changed; and with `None` if its value is unknown.
    pub(super) fn locals(
        &self,
        frames: &[Frame],
        index: usize,
        registers: &user_regs_struct,
        process: &mut Process,
        found: &mut dyn FnMut(Option<Option<Variable>>),
    ) {
        let code = frames[index].code.wrapping_sub(self.bias);
        let Some(function) = self.info.function(code) else {
            return;
        };
        let visible = |scope: &[std::ops::Range<u64>]| {
            scope.is_empty() || scope.iter().any(|it| it.contains(&code))
        };
        for declared in function
            .variables
            .iter()
            .rev()
            .filter(|it| visible(&it.scope))
        {
            let place = declared.located.at(code).and_then(|expression| {
                self.evaluate(expression, function, frames, index, registers, process)
            });
            let (frame, variable) = (frames.len() - 1 - index, declared.id);
            found(place.map(|place| {
                Some(Variable {
                    origin: Origin::Local { frame, variable },
                    name: declared.name.clone(),
                    function: declared.function.clone(),
                    place: in_frame(place, &frames[index])?,
                    of: declared.of,
                })
            }));
        }
    }

    fn evaluate(
        &self,
        expression: &[u8],
        function: &Function,
        frames: &[Frame],
        index: usize,
        registers: &user_regs_struct,
        process: &mut Process,
    ) -> Option<Found> {
        let base = function
            .frame_base
            .at(frames[index].code.wrapping_sub(self.bias));
        let mut context = InFrame {
            reading: self,
            frames,
            index,
            registers,
            process,
            frame_base: None,
        };
        let base = base.and_then(|base| evaluate(base, function.encoding, None, &mut context));
        context.frame_base = match base {
            Some(Found::Memory(address) | Found::Value(address)) => Some(address),
            Some(Found::Register(number)) => context.register(number),
            None => None,
        };
        evaluate(expression, function.encoding, None, &mut context)
    }

    /// Returns the places of values that no variable describes, with names: registers, and the
    /// words of the stack from the red zone up to the outermost frame of the program.
    fn undescribed(&self, frames: &[Frame], registers: &user_regs_struct) -> Vec<(Place, String)> {
        let own = |frame: &&Frame| {
            let code = frame.code.wrapping_sub(self.bias);
            self.info.name_at(code).is_some()
        };
        let mut found: Vec<(Place, String)> = NAMES
            .iter()
            .map(|(number, name)| (Place::Register(*number), format!("register {name}")))
            .collect();
        let Some(last) = frames.iter().rfind(own) else {
            return found;
        };
        let start = registers.rsp.saturating_sub(RED_ZONE) & !7;
        let end = last.cfa.min(start + MOST_UNDESCRIBED);
        let words = (start..end).step_by(8);
        found.extend(words.map(|address| (Place::Memory(address), "word on the stack".to_owned())));
        found
    }

    /// Returns the places that are compared when no variables are read, each with a name: the
    /// registers and words of [`undescribed`](Reading::undescribed), with words named by their
    /// positions in a stack frame, and the words of the program's data segments.
    fn raw(
        &self,
        frames: &[Frame],
        registers: &user_regs_struct,
        maps: &Maps,
        process: &Process,
    ) -> Vec<(Place, String)> {
        let mut found = self.undescribed(frames, registers);
        for (place, name) in &mut found {
            let Place::Memory(address) = *place else {
                continue;
            };
            let around = frames.iter().find(|frame| address < frame.cfa);
            *name = match around {
                Some(frame) if address >= registers.rsp => {
                    let code = frame.code.wrapping_sub(self.bias);
                    let function = self.info.name_at(code).unwrap_or("the C library");
                    format!("stack of {function}[cfa-{:#x}]", frame.cfa - address)
                }
                _ => format!(
                    "stack below rsp[-{:#x}]",
                    registers.rsp.saturating_sub(address)
                ),
            };
        }
        let exe = std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default();
        let own = maps.iter().filter(|mapping| mapping.file_path() == exe);
        let end = own.map(|mapping| mapping.end).max().unwrap_or(0);
        // The data segment, and what is zero at first, which follows without a file.
        let data = maps.iter().filter(|mapping| {
            mapping.writable
                && (mapping.file_path() == exe || mapping.start == end && !mapping.is_file())
        });
        let data: Vec<_> = data.filter(|it| it.base_name() != "[heap]").collect();
        for mapping in data {
            let words = (mapping.start..mapping.end).step_by(8);
            let words = words.take((MOST_UNDESCRIBED / 8) as usize);
            found.extend(words.map(|address| {
                let offset = address.wrapping_sub(self.bias);
                (Place::Memory(address), format!("data[{offset:#x}]"))
            }));
        }
        found
    }

    fn globals(
        &self,
        registers: &user_regs_struct,
        process: &mut Process,
        variables: &mut Vec<Variable>,
    ) {
        for (declared, encoding) in &self.info.globals {
            let Some(expression) = declared.located.at(0) else {
                continue;
            };
            let mut context = InFrame {
                reading: self,
                frames: &[],
                index: 0,
                registers,
                process,
                frame_base: None,
            };
            if let Some(Found::Memory(address)) =
                evaluate(expression, *encoding, None, &mut context)
            {
                variables.push(global(declared, address));
            }
        }
        // Variables of libraries that the linker has copied into the program, such as `stdin`.
        for declared in &self.info.declared {
            if let Some(address) = self.info.symbols.get(&declared.name) {
                variables.push(global(declared, address.wrapping_add(self.bias)));
            }
        }
    }
}

fn global(declared: &Declared, address: u64) -> Variable {
    Variable {
        origin: Origin::Global(declared.id),
        name: declared.name.clone(),
        function: declared.function.clone(),
        place: Place::Memory(address),
        of: declared.of,
    }
}

/// Returns the place (register or memory) at which a variable of `frame` can be changed. `found` is
/// its place as the debug information says it. If this is a register that a called function has
/// saved, the variable is where the register was saved in memory. `None` if the variable has no
/// place, or if its register was overwritten.
fn in_frame(found: Found, frame: &Frame) -> Option<Place> {
    match found {
        Found::Memory(address) => Some(Place::Memory(address)),
        Found::Value(_) => None,
        // Vector registers are not saved by called functions.
        Found::Register(number @ 17..=32) => Some(Place::Register(number)),
        Found::Register(number) => match frame.registers.get(usize::from(number))? {
            Saved::Live(_) => Some(Place::Register(number)),
            Saved::Memory(address) => Some(Place::Memory(*address)),
            Saved::Value(_) | Saved::Lost => None,
        },
    }
}

/// A frame of a stopped process, for the evaluation of DWARF expressions in it.
struct InFrame<'a> {
    reading: &'a Reading<'a>,
    frames: &'a [Frame],
    index: usize,
    registers: &'a user_regs_struct,
    process: &'a mut Process,
    frame_base: Option<u64>,
}

impl Context for InFrame<'_> {
    fn register(&mut self, number: u16) -> Option<u64> {
        self.frames.get(self.index)?.value(number, self.process)
    }

    fn memory(&mut self) -> &mut dyn Memory {
        self.process
    }

    fn frame_base(&mut self) -> Option<u64> {
        self.frame_base
    }

    fn cfa(&mut self) -> Option<u64> {
        self.frames
            .get(self.index)
            .map(|frame| frame.cfa)
            .filter(|cfa| *cfa != 0)
    }

    fn thread_local(&mut self, offset: u64) -> Option<u64> {
        let size = self.reading.info.tls_size;
        Some(
            self.registers
                .fs_base
                .wrapping_sub(size)
                .wrapping_add(offset),
        )
    }

    fn relocate(&mut self, address: u64) -> u64 {
        address.wrapping_add(self.reading.bias)
    }

    fn at_entry(&mut self, expression: &[u8]) -> Option<u64> {
        // DW_OP_reg0…DW_OP_reg31: the register when the function was entered.
        let [operation @ 0x50..=0x6f] = expression else {
            return None;
        };
        let caller = self.frames.get(self.index + 1)?;
        let code = caller.pc.wrapping_sub(self.reading.bias);
        let function = self.reading.info.function(code.wrapping_sub(1))?;
        let call = function.calls.iter().find(|call| call.return_pc == code)?;
        let register = u16::from(operation - 0x50);
        let (_, value) = call.values.iter().find(|(it, _)| *it == register)?;
        let (frames, index) = (self.frames, self.index + 1);
        match self
            .reading
            .evaluate(value, function, frames, index, self.registers, self.process)?
        {
            Found::Memory(value) | Found::Value(value) => Some(value),
            Found::Register(_) => None,
        }
    }
}

/// The state of a stopped process from which its memory graph is unfolded.
struct ProcessState<'a> {
    registers: &'a user_regs_struct,
    heap: HeapBlocks,
    by_start: BTreeMap<u64, Area>,
    maps: &'a Maps,
    arguments: &'a [Area],
    undescribed: Vec<(Place, String)>,
    vtables: &'a Vtables,
    bias: u64,
    process: &'a mut Process,
}

impl ProcessState<'_> {
    /// Returns the pointer at `address` if it points to a vtable, and the class to whose objects
    /// the vtable belongs; `None` if it does not.
    fn vtable_pointer(&mut self, address: u64) -> Option<(u64, TypeId)> {
        let pointer = self.process.word(address)?;
        let of = self.vtables.class(pointer.wrapping_sub(self.bias))?;
        Some((pointer, of))
    }
}

impl Memory for ProcessState<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.process.read(address, buffer)
    }
}

impl State for ProcessState<'_> {
    fn area(&self, address: u64) -> Option<Area> {
        let contains = |area: &Area| (area.start..area.end).contains(&address);
        let block = self
            .by_start
            .range(..=address)
            .next_back()
            .map(|(_, block)| *block);
        if let Some(block) = block.filter(contains) {
            return Some(block);
        }
        if let Some(argument) = self.arguments.iter().copied().find(contains) {
            return Some(argument);
        }
        let mapping = self.maps.find(address)?;
        let name = mapping.path.to_string_lossy();
        // Between the blocks of the heap there is no valid memory.
        if !mapping.writable || name == "[heap]" || self.heap.is_of_asan(address) {
            return None;
        }
        let start = match name == "[stack]" {
            true => self.registers.rsp,
            false => mapping.start,
        };
        let end = mapping.end;
        (start..end).contains(&address).then_some(Area {
            start,
            end,
            is_block: false,
        })
    }

    fn blocks(&self) -> Vec<Area> {
        self.heap.blocks.clone()
    }

    fn headers(&self) -> Vec<Header> {
        self.heap.headers.clone()
    }

    fn mapped(&self) -> Vec<Area> {
        let mut before = (0, false);
        let mut found = Vec::new();
        for mapping in self.maps.iter() {
            // What is zero at first follows the data of a library.
            let of_library = before == (mapping.start, true);
            before = (mapping.end, mapping.is_file());
            let is_anonymous = !mapping.is_file() && mapping.path.as_os_str().is_empty();
            // The kernel joins neighbours: the program's memory ends where the thread's begins.
            let thread = self.registers.fs_base & !0xfff;
            let end = match (mapping.start..mapping.end).contains(&thread) {
                true => thread,
                false => mapping.end,
            };
            let is_large = || self.by_start.range(mapping.start..end).next().is_some();
            let is_own = mapping.writable && is_anonymous && !self.heap.is_of_asan(mapping.start);
            if is_own && !of_library && mapping.start < end && !is_large() {
                found.push(Area {
                    start: mapping.start,
                    end,
                    is_block: false,
                });
            }
        }
        found
    }

    fn library_data(&self) -> Vec<Area> {
        library_data(self.maps, self.process.pid, self.registers.fs_base)
    }

    fn undescribed(&self) -> Vec<(Place, String)> {
        self.undescribed.clone()
    }

    fn whole_object(&mut self, address: u64) -> Option<(u64, TypeId)> {
        let (pointer, of) = self.vtable_pointer(address)?;
        // The vtable of a part says where in the object the part is.
        let to_start = self.process.word(pointer.wrapping_sub(16))?;
        let start = address.wrapping_add(to_start);
        let (_, first) = self.vtable_pointer(start)?;
        (first == of).then_some((start, of))
    }

    fn register(&self, number: u16) -> Option<u64> {
        match number {
            0..=16 => Some(by_number(self.registers)[usize::from(number)]),
            17..=32 => self.process.vector(number - 17),
            _ => None,
        }
    }
}

/// Returns the address ranges of a program's arguments (the array `argv`, and each text up to 4
/// KiB), read from the stack at the program's first instruction.
pub fn arguments(stack_pointer: u64, process: &mut Process) -> Vec<Area> {
    let count = process.word(stack_pointer).unwrap_or(0).min(4096);
    let start = stack_pointer + 8;
    let mut areas = vec![Area {
        start,
        end: start + 8 * (count + 1),
        is_block: true,
    }];
    for index in 0..count {
        let Some(text) = process.word(start + 8 * index) else {
            break;
        };
        let bytes = process.bytes(text, 4096);
        let length = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        areas.push(Area {
            start: text,
            end: text + length as u64 + 1,
            is_block: true,
        });
    }
    areas
}
