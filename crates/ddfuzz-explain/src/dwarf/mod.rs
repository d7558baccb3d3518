//! Debug information of a program, read by `gimli`: functions with their variables, types, lines.

mod classes;
mod declared;
pub mod frames;
mod inlined;
mod line_zero;
mod lines;
pub mod locations;
mod optimization;
mod read_types;
mod symbols;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianArcSlice, LittleEndian, Unit,
    UnitOffset,
};
use object::{Object, ObjectSection};

use ddfuzz_triage::separate_debug_file;

use crate::types::{TypeId, Types};
use classes::Classes;
pub use classes::Vtables;
use declared::definitions;
pub use inlined::{Inlined, Place, is_library_file};
pub use lines::{Line, Lines};
use read_types::TypeReader;
use symbols::{code_symbols, symbols, tls_size};

/// The type with which the DWARF reader reads bytes of the program's file.
pub(crate) type Bytes = EndianArcSlice<LittleEndian>;
type Entry = DebuggingInformationEntry<Bytes>;

/// Largest number of entries that are followed, from an entry of the debug information that takes
/// its attributes from another one (its origin) to that one's origin, and so on.
const MOST_ORIGINS: usize = 64;

/// Error: debug information that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DebugInfoError {
    /// The program's file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The program's file is not an ELF file.
    #[error("{0}")]
    Elf(#[from] object::Error),
    /// The debug information is damaged.
    #[error("its debug information is damaged: {0}")]
    Dwarf(#[from] gimli::Error),
}

/// Where a variable is stored, as the debug information says.
#[derive(Clone, Debug, Default)]
pub struct Located {
    /// DWARF location expressions of the variable, with the code addresses at which each holds; an
    /// empty range means all addresses.
    pub by_address: Vec<(Range<u64>, Arc<[u8]>)>,
}

impl Located {
    /// Returns the location expression that holds at `pc`, an address in the file; `None` where
    /// none does.
    pub fn at(&self, pc: u64) -> Option<&[u8]> {
        let holds = |range: &Range<u64>| range.is_empty() || range.contains(&pc);
        let found = self.by_address.iter().find(|(range, _)| holds(range));
        found.map(|(_, expression)| &**expression)
    }
}

/// A variable that is declared in the source: a parameter, or a local, global or static variable.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Name of the variable in the source.
    pub name: String,
    /// Offset of the variable's declaration in the debug information.
    pub id: u64,
    /// Type of the variable.
    pub of: TypeId,
    /// Where the variable is stored.
    pub located: Located,
    /// Addresses of the block in which the variable is visible; empty for the whole function.
    pub scope: Vec<Range<u64>>,
    /// Source line of the variable's declaration; 0 where it is unknown.
    pub line: u64,
    /// Function around the variable, which may be inlined; empty for a global variable.
    pub function: String,
}

/// A call in the code of a function, with what debug information says of the values that the caller
/// passes.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// Address of the instruction after the call, in the file.
    pub return_pc: u64,
    /// Registers (DWARF numbers) in which parameters are passed, and expressions for their values
    /// at the call.
    pub values: Vec<(u16, Arc<[u8]>)>,
}

/// A function as the debug information describes it: its addresses, variables and calls.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of the function in the source.
    pub name: String,
    /// Ranges of the function's code addresses in the file.
    pub ranges: Vec<Range<u64>>,
    /// DWARF expression for the function's frame base, the address from which local variables are
    /// located.
    pub frame_base: Located,
    /// Parameters and local variables, also of inlined functions; outer blocks first.
    pub variables: Vec<Declared>,
    /// Functions that are inlined in this one, with their addresses and calls; outer ones first.
    pub inlined: Vec<Inlined>,
    /// Calls in the function for which the debug information describes the parameters.
    pub calls: Vec<CallSite>,
    /// Address size, format and DWARF version of the function's expressions.
    pub encoding: gimli::Encoding,
    /// Number of parameters that the function declares.
    pub parameters: usize,
    /// Type of the value that the function returns; `None` if it returns nothing.
    pub returned: Option<TypeId>,
}

/// The debug information of a program: its types, functions, variables and source lines.
pub struct DebugInfo {
    /// All types of the program.
    pub types: Arc<Types>,
    /// All functions of the program, ascending by their first address.
    pub functions: Vec<Function>,
    /// Global and static variables with a location.
    pub globals: Vec<(Declared, gimli::Encoding)>,
    /// Global variables that are only declared, such as `stdin`, with their names and types.
    pub declared: Vec<Declared>,
    /// Source lines of the program's code.
    pub lines: Lines,
    /// Number of parameters of each function that is only declared, by name.
    pub prototypes: HashMap<String, usize>,
    /// Addresses of the program's symbols, by name.
    pub symbols: HashMap<String, u64>,
    /// Address ranges and names of the functions in the symbol table, in the order of addresses.
    pub code_symbols: Vec<(Range<u64>, String)>,
    /// Vtables of the program's C++ classes.
    pub vtables: Vtables,
    /// Size of the thread-local memory of the program, rounded up to its alignment, in bytes.
    pub tls_size: u64,
    /// Producers of the compilation units: compiler and options with which each was compiled.
    pub producers: Vec<String>,
    /// Source files of the compilation units, as far as they still exist, with the names that were
    /// given to the compiler.
    pub sources: Vec<String>,
    /// Whether the debug information of compilation units is in separate files (`-gsplit-dwarf`),
    /// which are not read.
    pub is_split: bool,
    /// Name of the file into which the debug information was moved when the program was stripped, as
    /// the program names it; `None` if it names none.
    pub stripped_to: Option<String>,
    by_address: Vec<(Range<u64>, usize)>,
}

impl DebugInfo {
    /// Reads the debug information of the ELF file at `path`, or of the separately installed debug
    /// file to which a stripped program refers. Without debug information, the result has no
    /// functions.
    ///
    /// # Errors
    /// When the file cannot be read, is not an ELF file, or is damaged.
    pub fn read(path: &Path) -> Result<DebugInfo, DebugInfoError> {
        let image = std::fs::read(path)?;
        let file = object::File::parse(&*image)?;
        let debug = separate_debug_file(path).map(std::fs::read).transpose()?;
        let debug = debug.as_ref().map(|it| object::File::parse(&**it));
        let debug = debug.transpose()?;
        let described = debug.as_ref().unwrap_or(&file);
        let load = |id: gimli::SectionId| -> Result<Bytes, gimli::Error> {
            let section = described.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            let data = data.map_or_else(|| Arc::from([]), |data| Arc::from(data.into_owned()));
            Ok(Bytes::new(data, LittleEndian))
        };
        let dwarf = Dwarf::load(load)?;
        let mut reading = Reading {
            dwarf: &dwarf,
            units: Vec::new(),
            types: TypeReader::default(),
            classes: Classes::default(),
            functions: Vec::new(),
            globals: Vec::new(),
            declared: Vec::new(),
            prototypes: HashMap::new(),
            lines: Lines::default(),
            files: 0,
            producers: Vec::new(),
            sources: Vec::new(),
            is_split: false,
        };
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            (reading.units).extend(Some(dwarf.unit(header)?).filter(|it| !inlined::is_runtime(it)));
        }
        reading.types.definitions = definitions(&dwarf, &reading.units)?;
        for index in 0..reading.units.len() {
            reading.unit(index)?;
        }
        reading.finish(&file, described)
    }

    /// Returns the function that contains `pc`, an address in the file; `None` if none does.
    pub fn function(&self, pc: u64) -> Option<&Function> {
        let behind = self
            .by_address
            .partition_point(|(range, _)| range.start <= pc);
        let (range, index) = self.by_address.get(behind.checked_sub(1)?)?;
        range.contains(&pc).then(|| &self.functions[*index])
    }

    /// Returns true if the program has source lines, but neither local nor global variables.
    pub fn has_lines_only(&self) -> bool {
        let has_none = |it: &Function| it.variables.is_empty();
        !self.lines.rows.is_empty()
            && self.globals.is_empty()
            && self.functions.iter().all(has_none)
    }

    /// Returns true if the program has no debug information of functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

struct Reading<'a> {
    dwarf: &'a Dwarf<Bytes>,
    units: Vec<Unit<Bytes>>,
    types: TypeReader,
    classes: Classes,
    functions: Vec<Function>,
    globals: Vec<(Declared, gimli::Encoding)>,
    declared: Vec<Declared>,
    prototypes: HashMap<String, usize>,
    lines: Lines,
    /// Index in [`Lines::files`] of the first source file of the compilation unit that is being
    /// read.
    files: usize,
    producers: Vec<String>,
    sources: Vec<String>,
    is_split: bool,
}

/// What is around an entry of the debug information: function, block, and namespace or class.
#[derive(Clone)]
struct Around {
    depth: isize,
    function: Option<usize>,
    /// Name of the function around the entry, even if it has no code of its own.
    name: String,
    scope: Vec<Range<u64>>,
    /// Qualified name of the namespace or class around the entry; empty outside of all.
    class: String,
    /// Whether the function around the entry is only declared, and has no code.
    is_prototype: bool,
}

impl Reading<'_> {
    fn unit(&mut self, index: usize) -> Result<(), gimli::Error> {
        let unit = &self.units[index];
        self.is_split |= unit.dwo_name()?.is_some();
        self.files = self.lines.files.len();
        self.lines.read(self.dwarf, unit)?;
        let mut entries = unit.header.entries(&unit.abbreviations);
        let mut all = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            all.push(entry.clone());
        }
        let mut stack: Vec<Around> = Vec::new();
        for entry in &all {
            stack.truncate(
                stack
                    .iter()
                    .take_while(|around| around.depth < entry.depth())
                    .count(),
            );
            let mut around = stack.last().cloned().unwrap_or(Around {
                depth: 0,
                function: None,
                name: String::new(),
                scope: Vec::new(),
                class: String::new(),
                is_prototype: false,
            });
            self.entry(index, entry, &mut around)?;
            around.depth = entry.depth();
            stack.push(around);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        unit: usize,
        entry: &Entry,
        around: &mut Around,
    ) -> Result<(), gimli::Error> {
        match entry.tag() {
            gimli::DW_TAG_compile_unit => {
                self.compiled_from(unit, entry)?;
            }
            gimli::DW_TAG_subprogram => {
                self.subprogram(unit, entry, around)?;
            }
            gimli::DW_TAG_namespace | gimli::DW_TAG_class_type | gimli::DW_TAG_structure_type => {
                self.class(unit, entry, around)?;
            }
            gimli::DW_TAG_inheritance if entry.attr(gimli::DW_AT_virtuality).is_some() => {
                self.classes.add_virtual_base(&around.class);
            }
            gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                let ranges = self.ranges(unit, entry)?;
                // An abstract block of an inlined function has none.
                if ranges.is_empty() {
                    return Ok(());
                }
                if entry.tag() == gimli::DW_TAG_inlined_subroutine
                    && let (Some(function), Some(name)) = (around.function, self.name(unit, entry)?)
                {
                    around.name.clone_from(&name);
                    let (call, ranges) = (self.call_of(entry), ranges.clone());
                    let inlined = Inlined { ranges, name, call };
                    self.functions[function].inlined.push(inlined);
                }
                around.scope = ranges;
            }
            gimli::DW_TAG_formal_parameter if around.is_prototype => {
                if let Some(parameters) = self.prototypes.get_mut(&around.name) {
                    *parameters += 1;
                }
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                self.variable(unit, entry, around)?;
            }
            gimli::DW_TAG_call_site | gimli::DW_TAG_GNU_call_site => {
                self.call_site(unit, entry, around)?;
            }
            gimli::DW_TAG_call_site_parameter | gimli::DW_TAG_GNU_call_site_parameter => {
                self.call_parameter(entry, around);
            }
            _ => {}
        }
        Ok(())
    }

    /// Records the function of a debug entry, if it has code or is only declared, and enters it in
    /// `around` as the function around the entries inside.
    fn subprogram(
        &mut self,
        unit: usize,
        entry: &Entry,
        around: &mut Around,
    ) -> Result<(), gimli::Error> {
        let ranges = self.ranges(unit, entry)?;
        around.function = (!ranges.is_empty()).then_some(self.functions.len());
        around.name = self.name(unit, entry)?.unwrap_or_default();
        around.scope = Vec::new();
        around.is_prototype = entry.attr(gimli::DW_AT_declaration).is_some();
        if around.is_prototype {
            self.prototypes.insert(around.name.clone(), 0);
        }
        if !ranges.is_empty() {
            let function = self.function(unit, entry, ranges)?;
            self.functions.push(function);
        }
        Ok(())
    }

    /// Records the compiler and options of a compilation unit, and its source file if that exists.
    fn compiled_from(&mut self, unit: usize, entry: &Entry) -> Result<(), gimli::Error> {
        let producer = self.text(unit, entry.attr_value(gimli::DW_AT_producer));
        self.producers.extend(producer);
        // Parts of the compiler's own libraries were compiled elsewhere.
        let folder = self.text(unit, entry.attr_value(gimli::DW_AT_comp_dir));
        let folder = folder.unwrap_or_default();
        let name = self.name(unit, entry)?;
        let is_here = |name: &String| Path::new(&folder).join(name).is_file();
        self.sources.extend(name.filter(is_here));
        Ok(())
    }

    /// Returns the source file (its index) and the line of the call that an inlined function
    /// replaces; `None` where they are unknown.
    fn call_of(&self, entry: &Entry) -> Option<(usize, u64)> {
        let file = match entry.attr_value(gimli::DW_AT_call_file)? {
            AttributeValue::FileIndex(file) => file,
            other => other.udata_value()?,
        };
        let line = entry.attr_value(gimli::DW_AT_call_line)?.udata_value()?;
        Some((self.files + file as usize, line))
    }

    /// Records a call in a function, without the values of its parameters, which are read later.
    fn call_site(
        &mut self,
        unit: usize,
        entry: &Entry,
        around: &Around,
    ) -> Result<(), gimli::Error> {
        let at = entry.attr_value(gimli::DW_AT_call_return_pc);
        let at = at.or_else(|| entry.attr_value(gimli::DW_AT_low_pc));
        let at = at.map(|at| self.dwarf.attr_address(&self.units[unit], at));
        if let (Some(function), Some(Some(return_pc))) = (around.function, at.transpose()?) {
            let values = Vec::new();
            let calls = &mut self.functions[function].calls;
            calls.push(CallSite { return_pc, values });
        }
        Ok(())
    }

    fn call_parameter(&mut self, entry: &Entry, around: &Around) {
        let value = entry.attr_value(gimli::DW_AT_call_value);
        let value = value.or_else(|| entry.attr_value(gimli::DW_AT_GNU_call_site_value));
        let (Some(AttributeValue::Exprloc(register)), Some(AttributeValue::Exprloc(value))) =
            (entry.attr_value(gimli::DW_AT_location), value)
        else {
            return;
        };
        let register = match register.0.bytes() {
            // DW_OP_reg0…DW_OP_reg31
            [operation @ 0x50..=0x6f] => u16::from(*operation - 0x50),
            _ => return,
        };
        let Some(function) = around.function else {
            return;
        };
        if let Some(call) = self.functions[function].calls.last_mut() {
            call.values.push((register, Arc::from(value.0.bytes())));
        }
    }

    fn function(
        &mut self,
        unit: usize,
        entry: &Entry,
        ranges: Vec<Range<u64>>,
    ) -> Result<Function, gimli::Error> {
        let returned = match self.type_of(unit, entry)? {
            Some((type_unit, at)) => {
                Some(self.types.read(self.dwarf, &self.units, type_unit, at)?)
            }
            None => None,
        };
        Ok(Function {
            name: self.name(unit, entry)?.unwrap_or_else(|| "?".to_owned()),
            ranges,
            frame_base: self.located(unit, entry, gimli::DW_AT_frame_base)?,
            variables: Vec::new(),
            inlined: Vec::new(),
            calls: Vec::new(),
            encoding: self.units[unit].encoding(),
            parameters: 0,
            returned,
        })
    }

    fn variable(
        &mut self,
        unit: usize,
        entry: &Entry,
        around: &Around,
    ) -> Result<(), gimli::Error> {
        let located = self.located(unit, entry, gimli::DW_AT_location)?;
        let is_declared = entry.attr(gimli::DW_AT_declaration).is_some();
        let is_external = is_declared && entry.attr(gimli::DW_AT_external).is_some();
        if located.by_address.is_empty() && around.function.is_none() && !is_external {
            return Ok(());
        }
        let (Some(name), Some((type_unit, at))) =
            (self.name(unit, entry)?, self.type_of(unit, entry)?)
        else {
            return Ok(());
        };
        let line = self.inherited(unit, entry, gimli::DW_AT_decl_line)?;
        let id = entry
            .offset()
            .to_debug_info_offset(&self.units[unit].header);
        let declared = Declared {
            name,
            id: id.map_or(0, |id| id.0 as u64),
            of: self.types.read(self.dwarf, &self.units, type_unit, at)?,
            scope: around.scope.clone(),
            line: line.and_then(|line| line.udata_value()).unwrap_or(0),
            function: around.name.clone(),
            located,
        };
        let is_static = |located: &Located| match located.by_address.first() {
            // DW_OP_addr: a static variable of a function lives as long as a global.
            Some((_, expression)) => expression.first() == Some(&0x03),
            None => false,
        };
        match around.function {
            Some(function) if !is_static(&declared.located) => {
                if entry.tag() == gimli::DW_TAG_formal_parameter && around.scope.is_empty() {
                    self.functions[function].parameters += 1;
                }
                self.functions[function].variables.push(declared);
            }
            _ if is_external && declared.located.by_address.is_empty() => {
                self.declared.push(declared);
            }
            _ => {
                let encoding = self.units[unit].encoding();
                self.globals.push((declared, encoding));
            }
        }
        Ok(())
    }

    fn ranges(&self, unit: usize, entry: &Entry) -> Result<Vec<Range<u64>>, gimli::Error> {
        let mut found = Vec::new();
        let mut ranges = self.dwarf.die_ranges(&self.units[unit], entry)?;
        while let Some(range) = ranges.next()? {
            // Functions that the linker has dropped begin at 0.
            if range.begin != 0 && range.begin < range.end {
                found.push(range.begin..range.end);
            }
        }
        Ok(found)
    }

    fn located(
        &self,
        unit: usize,
        entry: &Entry,
        name: gimli::DwAt,
    ) -> Result<Located, gimli::Error> {
        let unit = &self.units[unit];
        let mut located = Located::default();
        let Some(value) = entry.attr_value(name) else {
            return Ok(located);
        };
        if let AttributeValue::Exprloc(expression) = &value {
            let expression = self.with_addresses(unit, expression.0.bytes());
            located.by_address.push((0..0, expression));
        } else if let Some(mut list) = self.dwarf.attr_locations(unit, value)? {
            while let Some(entry) = list.next()? {
                let range = entry.range.begin..entry.range.end;
                if !range.is_empty() {
                    located
                        .by_address
                        .push((range, Arc::from(entry.data.0.bytes())));
                }
            }
        }
        Ok(located)
    }

    /// Rewrites a DWARF expression whose first operation refers by an index to the table of
    /// addresses (`DW_OP_addrx`, `DW_OP_constx`): puts the address or constant itself in its place.
    /// Other expressions, and those with an unknown index, are returned unchanged.
    fn with_addresses(&self, unit: &Unit<Bytes>, expression: &[u8]) -> Arc<[u8]> {
        // DW_OP_addrx becomes DW_OP_addr, DW_OP_constx becomes DW_OP_const8u.
        let operation = match expression.first() {
            Some(0xa1) => 0x03,
            Some(0xa2) => 0x0e,
            _ => return Arc::from(expression),
        };
        let mut rest = &expression[1..];
        let Ok(index) =
            gimli::leb128::read::unsigned(&mut gimli::EndianSlice::new(rest, LittleEndian))
        else {
            return Arc::from(expression);
        };
        let length = rest.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
        rest = rest.get(length..).unwrap_or_default();
        match self
            .dwarf
            .address(unit, gimli::DebugAddrIndex(index as usize))
        {
            Ok(address) => [&[operation], &address.to_le_bytes()[..], rest]
                .concat()
                .into(),
            Err(_) => Arc::from(expression),
        }
    }

    fn text(&self, unit: usize, value: Option<AttributeValue<Bytes>>) -> Option<String> {
        let text = self.dwarf.attr_string(&self.units[unit], value?).ok()?;
        Some(String::from_utf8_lossy(text.bytes()).into_owned())
    }

    fn name(&self, unit: usize, entry: &Entry) -> Result<Option<String>, gimli::Error> {
        let name = self.inherited_of(unit, entry, gimli::DW_AT_name)?;
        Ok(name.and_then(|(unit, name)| self.text(unit, Some(name))))
    }

    fn inherited(
        &self,
        unit: usize,
        entry: &Entry,
        name: gimli::DwAt,
    ) -> Result<Option<AttributeValue<Bytes>>, gimli::Error> {
        let found = self.inherited_of(unit, entry, name)?;
        Ok(found.map(|(_, value)| value))
    }

    fn type_of(
        &self,
        unit: usize,
        entry: &Entry,
    ) -> Result<Option<(usize, UnitOffset)>, gimli::Error> {
        let found = self.inherited_of(unit, entry, gimli::DW_AT_type)?;
        Ok(found.and_then(|(unit, value)| read_types::reference(&self.units, unit, &value)))
    }

    /// Returns the attribute `name` of `entry`, or of the nearest of its origins that has it, with
    /// the index of the unit in which it is found. `None` if none of the first 64 entries has it:
    /// damaged debug information may lead in a circle. `unit` is the index of the entry's unit.
    fn inherited_of(
        &self,
        unit: usize,
        entry: &Entry,
        name: gimli::DwAt,
    ) -> Result<Option<(usize, AttributeValue<Bytes>)>, gimli::Error> {
        let mut at = (unit, entry.clone());
        for _ in 0..MOST_ORIGINS {
            if let Some(value) = at.1.attr_value(name) {
                return Ok(Some((at.0, value)));
            }
            match self.origin(at.0, &at.1)? {
                Some(origin) => at = origin,
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns the entry from which an inlined, cloned or out-of-line entry takes its name and
    /// type, with the index of its unit; `None` if there is none.
    fn origin(&self, unit: usize, entry: &Entry) -> Result<Option<(usize, Entry)>, gimli::Error> {
        let value = entry.attr_value(gimli::DW_AT_abstract_origin);
        let value = value.or_else(|| entry.attr_value(gimli::DW_AT_specification));
        let Some((unit, at)) =
            value.and_then(|value| read_types::reference(&self.units, unit, &value))
        else {
            return Ok(None);
        };
        let origin = self.units[unit].entry(at)?;
        Ok((origin.offset() != entry.offset()).then_some((unit, origin)))
    }

    /// Returns what was read, completed by symbols, vtables and the size of the thread-local memory.
    /// These come from the program's file `file` and from `described`, the file with its debug
    /// information, which may be the same file.
    fn finish(
        mut self,
        file: &object::File<'_>,
        described: &object::File<'_>,
    ) -> Result<DebugInfo, DebugInfoError> {
        self.functions
            .sort_by_key(|function| function.ranges[0].start);
        let mut by_address = Vec::new();
        for (index, function) in self.functions.iter().enumerate() {
            by_address.extend(function.ranges.iter().map(|range| (range.clone(), index)));
        }
        by_address.sort_by_key(|(range, _)| range.start);
        self.lines.finish();
        line_zero::inherit(&mut self.lines, file, by_address.iter().map(|it| &it.0));
        Ok(DebugInfo {
            code_symbols: code_symbols(described),
            vtables: self.classes.vtables(described, &self.types.types),
            types: Arc::new(self.types.types),
            functions: self.functions,
            globals: self.globals,
            declared: self.declared,
            prototypes: self.prototypes,
            lines: self.lines,
            symbols: symbols(described.symbols().chain(file.dynamic_symbols())),
            tls_size: tls_size(file),
            producers: self.producers,
            sources: self.sources,
            is_split: self.is_split,
            stripped_to: (file.gnu_debuglink().ok().flatten())
                .map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
            by_address,
        })
    }
}
