//! Reads from a program's ELF file how it can be run, and where its entry function is.

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, SectionKind, elf};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Mutex, PoisonError};
use std::{fs::File, io, ops::Range, path::Path};

use crate::{Program, Sanitizer, Target, find_program};

/// Names of the functions of the C library that start processes; a program that uses one of them
/// may start processes.
const FORKING: [&str; 11] = [
    "_Fork",
    "clone",
    "daemon",
    "fork",
    "forkpty",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "vfork",
    "wordexp",
];

/// Symbols that AFL++'s runtime defines (`instrumentation/afl-compiler-rt.o.c`), by which programs
/// compiled by AFL++ are recognised.
const AFL: [&str; 2] = ["__afl_area_ptr", "__afl_manual_init"];

/// Facts read from a program's ELF file that decide how the program can be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// Path of the dynamic linker; `None` for a static program.
    pub(crate) interpreter: Option<String>,
    /// The function that takes an input as bytes in memory, if the program has one.
    pub(crate) entry: Option<EntryFunction>,
    /// Whether the program is started by the C library's `__libc_start_main`, a function that
    /// ddfuzz's preloaded library can replace to gain control before `main`.
    pub(crate) starts_by_libc: bool,
    /// Whether the program may start processes, according to its symbols.
    pub(crate) may_fork: bool,
    /// Whether AFL++ compiled the program, which then contains a fork server.
    pub(crate) afl: bool,
    /// Whether the `main` of the program is libFuzzer's, so that the program accepts libFuzzer's
    /// flags.
    pub(crate) is_fuzzer: bool,
    /// Whether libFuzzer's code is linked into the program; its `main` need not be libFuzzer's.
    pub(crate) fuzzer_main: bool,
    /// Whether the program is a harness of libfuzzer-sys, which can print the Rust value that it
    /// makes from an input.
    pub(crate) debug_text: bool,
    /// Whether the program contains the runtime of a sanitizer.
    pub sanitized: bool,
    /// Whether the program contains a sanitizer with shadow memory, which needs terabytes of
    /// address space.
    pub shadowed: bool,
    /// Whether the program can end by a Rust panic: it contains Rust's standard library, or
    /// executes programs.
    pub(crate) may_panic: bool,
    /// Whether the program contains Rust's standard library.
    pub(crate) rust: bool,
    /// Whether the program is written in Go.
    pub(crate) go: bool,
}

/// A parsed 64-bit ELF file for this processor architecture.
pub(crate) type Elf<'a> = ElfFile64<'a, Endianness>;

/// Parses the bytes of a file; `None` if it is not a 64-bit ELF file for this processor
/// architecture.
pub(crate) fn parse(bytes: &[u8]) -> Option<Elf<'_>> {
    let file = Elf::parse(bytes).ok()?;
    let ours = match cfg!(target_arch = "x86_64") {
        true => elf::EM_X86_64,
        false => elf::EM_AARCH64,
    };
    (file.elf_header().e_machine(file.endian()) == ours).then_some(file)
}

/// Reads a program file, with zeros in place of its debug information, so that large files take
/// little memory. Fails when the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_without(path, |_, is_loaded, name| {
        !is_loaded && name.starts_with(b".debug_")
    })
}

/// Reads a program file, with zeros in place of its debug information and of its code and data, but
/// for the page of its entry point: headers, symbols, relocations and unwind tables remain. Fails
/// when the file cannot be read.
pub fn read_tables(path: &Path) -> io::Result<Vec<u8>> {
    const CONTENT: [&[u8]; 5] = [b".text", b".rodata", b".data", b".data.rel.ro", b".lrodata"];
    read_without(path, |kind, is_loaded, name| match is_loaded {
        true => kind == elf::SHT_PROGBITS && CONTENT.contains(&name),
        false => name.starts_with(b".debug_"),
    })
}

/// Reads a program file, with zeros in place of its debug information, its code and its data:
/// headers, symbols and constant texts remain. Fails when the file cannot be read.
fn read_texts(path: &Path) -> io::Result<Vec<u8>> {
    read_without(path, |kind, is_loaded, name| match is_loaded {
        true => kind == elf::SHT_PROGBITS && matches!(name, b".text" | b".data"),
        false => name.starts_with(b".debug_"),
    })
}

/// Reads a program file, with zeros in place of each section for which `leaves_out` returns true,
/// given the section's type, whether the section is loaded, and its name.
fn read_without(
    path: &Path,
    leaves_out: impl Fn(elf::SectionType, bool, &[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(left_out) = sections_left_out(&file, length, leaves_out) else {
        return std::fs::read(path);
    };
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let mut from = 0;
    let end = std::iter::once(length..length);
    for range in left_out.into_iter().chain(end) {
        if from < range.start {
            // Within `bytes`, whose length is a `usize`.
            file.read_exact_at(&mut bytes[from as usize..range.start as usize], from)?;
        }
        from = from.max(range.end);
    }
    Ok(bytes)
}

/// Size in bytes of the code at the entry point of a program that is read even where the rest of
/// the code is left out.
const ENTRY_CODE: u64 = 4096;

/// Finds the byte ranges that are left out when a program file of `length` bytes is read: those of
/// the sections for which `leaves_out` returns true, without the code at the entry point, in
/// ascending order. `None` if it is not a 64-bit ELF file with section headers.
fn sections_left_out(
    file: &File,
    length: u64,
    leaves_out: impl Fn(elf::SectionType, bool, &[u8]) -> bool,
) -> Option<Vec<Range<u64>>> {
    let parts = ReadCache::new(file);
    let header = elf::FileHeader64::<Endianness>::parse(&parts).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &parts).ok()?;
    let mut found: Vec<Range<u64>> = Vec::new();
    for section in sections.iter() {
        let name = sections.section_name(endian, section).unwrap_or_default();
        let is_loaded = section.sh_flags(endian).contains(elf::SHF_ALLOC);
        if !leaves_out(section.sh_type(endian), is_loaded, name) {
            continue;
        }
        let (start, size) = section.file_range(endian)?;
        let end = start.checked_add(size).filter(|end| *end <= length)?;
        let skip = header.e_entry(endian).checked_sub(section.sh_addr(endian));
        match skip.filter(|skip| is_loaded && *skip < size) {
            Some(skip) => {
                let entry = start + skip;
                found.push(start..entry);
                found.push(entry.saturating_add(ENTRY_CODE).min(end)..end);
            }
            None => found.push(start..end),
        }
    }
    found.sort_by_key(|range| range.start);
    (!sections.is_empty()).then_some(found)
}

/// Cache of the facts of the programs whose ELF files were read last, by version of the file,
/// because each start of a fork server needs these facts.
static KNOWN: Mutex<Vec<(Version, Option<ElfFacts>)>> = Mutex::new(Vec::new());
/// Maximum number of programs in the cache of ELF facts.
const MOST_KNOWN: usize = 16;

/// Identifies a version of a file: device, inode, size, and time of the last change.
type Version = (u64, u64, u64, i64, i64);

/// Reads from the ELF file at `path` how the program can be run; `None` if it is not a 64-bit ELF
/// file for this machine, for example a script.
pub fn facts(path: &Path) -> Option<ElfFacts> {
    let file = std::fs::metadata(path).ok()?;
    let version = (
        file.dev(),
        file.ino(),
        file.size(),
        file.ctime(),
        file.ctime_nsec(),
    );
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, facts)) = known.iter().find(|(known, _)| *known == version) {
        return facts.clone();
    }
    let bytes = read_texts(path).ok()?;
    let facts = parse(&bytes).map(|file| ElfFacts::of(&file));
    if known.len() == MOST_KNOWN {
        known.remove(0);
    }
    known.push((version, facts.clone()));
    facts
}

/// Returns true if the `main` of the target's program is libFuzzer's.
pub fn is_libfuzzer(target: &Target) -> bool {
    let Program::Path(path) = &target.program else {
        return false;
    };
    let path = find_program(path).ok();
    let facts = path.and_then(|path| facts(&path));
    facts.is_some_and(|facts| facts.is_fuzzer)
}

impl ElfFacts {
    pub(crate) fn of(file: &Elf<'_>) -> ElfFacts {
        let mut facts = ElfFacts {
            interpreter: interpreter(file),
            ..ElfFacts::default()
        };
        facts.read_symbols(file);
        facts.read_texts(file);
        facts
    }

    fn read_symbols(&mut self, file: &Elf<'_>) {
        let mut functions = EntryFunctions::default();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else {
                continue;
            };
            // In the full symbol table, names contain their version.
            match name.split('@').next().unwrap_or(name) {
                "__libc_start_main" => self.starts_by_libc = true,
                name if FORKING.contains(&name) => self.may_fork = true,
                name if name.starts_with("exec") => self.may_panic = true,
                name if AFL.contains(&name) => self.afl |= symbol.address() != 0,
                name => match Sanitizer::of_symbol(name) {
                    Some(sanitizer) => {
                        self.sanitized = true;
                        self.shadowed |= sanitizer.shadows();
                        functions.has_asan |= sanitizer == Sanitizer::Asan && symbol.address() != 0;
                    }
                    None => functions.add(name, symbol.address()),
                },
            }
        }
        self.entry = functions.entry(file);
    }

    /// Adds the facts that the program's constant strings show, which stripped programs have, too:
    /// whether the program was built for AFL++, is in Rust (so may panic) or in Go, and whether it
    /// contains libFuzzer's `main` and libfuzzer-sys.
    fn read_texts(&mut self, file: &Elf<'_>) {
        let texts = file.section_by_name(".rodata");
        let says = |text: &[u8]| {
            let data = texts.as_ref().and_then(|section| section.data().ok());
            holds(data.unwrap_or_default(), text)
        };
        self.afl = self.afl || says(b"__AFL_SHM_ID\0");
        // The panic hook's message; or the name of the shared standard library.
        let libraries = file.section_by_name(".dynstr");
        let needs_std = libraries
            .and_then(|section| section.data().ok())
            .is_some_and(|names| holds(names, b"libstd-"));
        self.rust = needs_std || says(b" panicked at ");
        self.may_panic |= self.rust;
        self.go = file.section_by_name(".go.buildinfo").is_some();
        self.fuzzer_main = says(b"ERROR: libFuzzer: ");
        self.debug_text = says(b"RUST_LIBFUZZER_DEBUG_PATH");
        self.is_fuzzer = match &self.entry {
            // Other fuzzers use the same entry function, with a `main` that does not know
            // libFuzzer's flags.
            Some(entry) => entry.is_fuzzer() && self.fuzzer_main,
            None => self.fuzzer_main,
        };
    }
}

fn interpreter(file: &Elf<'_>) -> Option<String> {
    let mut segments = file.elf_program_headers().iter();
    let name = segments.find_map(|segment| {
        segment
            .interpreter(file.endian(), file.data())
            .ok()
            .flatten()
    })?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Whether the bytes `text` occur in `data`.
pub fn holds(data: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(data, text).is_some()
}

/// An entry function of a program: it takes an input as bytes in memory, such as
/// `LLVMFuzzerTestOneInput`. The type also has the addresses of other functions and of counters
/// that its runs need; all addresses are relative to the load address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryFunction {
    pub(crate) at: u64,
    kind: EntryKind,
    /// Start and end address of the program's coverage counters; `None` without counters.
    counters: Option<(u64, u64)>,
    /// Distance of libFuzzer's variable `__sancov_lowest_stack` below the thread pointer; 0 where
    /// it is missing, and where the program has counters that only libFuzzer reads.
    lowest_stack: u64,
    /// Addresses of libFuzzer's comparison callbacks, in the order of `CALLBACKS`; 0 where missing.
    /// A process that runs many inputs patches them to return at once, because libFuzzer's engine,
    /// for which they collect data, does not run.
    callbacks: [u64; CALLBACKS.len()],
    /// Address of AddressSanitizer's function that finds the module of an address; 0 where missing.
    /// A fork server calls it once, so that its forks need not list the modules when they crash.
    find_module: u64,
}

/// Name of the function in the sanitizers' common interface that finds the module (program or
/// library) of an address.
const FIND_MODULE: &str = "__sanitizer_get_module_and_offset_for_pc";

/// Names of the comparison callbacks: functions that code compiled with
/// `-fsanitize-coverage=trace-cmp` calls and that libFuzzer defines.
const CALLBACKS: [&str; 9] = [
    "__sanitizer_cov_trace_cmp1",
    "__sanitizer_cov_trace_cmp2",
    "__sanitizer_cov_trace_cmp4",
    "__sanitizer_cov_trace_cmp8",
    "__sanitizer_cov_trace_const_cmp1",
    "__sanitizer_cov_trace_const_cmp2",
    "__sanitizer_cov_trace_const_cmp4",
    "__sanitizer_cov_trace_const_cmp8",
    "__sanitizer_cov_trace_switch",
];

/// The kind of an entry function, that is, of a function that takes an input; it decides how the
/// function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    /// The entry function is `target_main`, as in ddfuzz's targets; it returns an exit status.
    Target,
    /// The entry function is `LLVMFuzzerTestOneInput`. Its result says whether libFuzzer may keep
    /// the input, and is not an exit status.
    LibFuzzer {
        /// Address of `LLVMFuzzerInitialize`, which is called once before the first input.
        initialize: Option<u64>,
    },
}

/// Name of the ELF section that holds the counters of `-fsanitize-coverage=inline-8bit-counters`;
/// it stays when a program is stripped.
const COUNTERS: &str = "__sancov_cntrs";

/// Maximum number of coverage counters that a program's section of counters may have; a section
/// with more is damaged and not used, since each run would need tables of that size.
const MOST_COUNTERS: u64 = 1 << 24;

/// Name of the ELF section that holds counters of the harness itself, which libFuzzer reads, too.
const EXTRA_COUNTERS: &str = "__libfuzzer_extra_counters";

/// Addresses of the functions that take an input, and of what else their runs need, collected from
/// the symbols of a program in any order.
#[derive(Default)]
struct EntryFunctions {
    target_main: Option<u64>,
    test_one_input: Option<u64>,
    initialize: Option<u64>,
    callbacks: [u64; CALLBACKS.len()],
    find_module: Option<u64>,
    /// Offset of `__sancov_lowest_stack` in the program's thread-local variables.
    lowest_stack: Option<u64>,
    /// Whether the program contains AddressSanitizer.
    pub(crate) has_asan: bool,
}

impl EntryFunctions {
    /// Notes the address of the symbol `name` if it is one that this type collects; other symbols
    /// are ignored. A function with the address 0 is imported and counts as missing.
    pub(crate) fn add(&mut self, name: &str, address: u64) {
        if let Some(number) = CALLBACKS.iter().position(|known| *known == name) {
            self.callbacks[number] = address;
            return;
        }
        if name == "__sancov_lowest_stack" {
            // An offset, which may be 0.
            self.lowest_stack.get_or_insert(address);
            return;
        }
        let place = match name {
            "target_main" => &mut self.target_main,
            "LLVMFuzzerTestOneInput" => &mut self.test_one_input,
            "LLVMFuzzerInitialize" => &mut self.initialize,
            FIND_MODULE => &mut self.find_module,
            _ => return,
        };
        if address != 0 {
            place.get_or_insert(address);
        }
    }

    /// Returns the program's entry function, which is called with an input, if `add` has collected
    /// one, with what its runs need to know about the program `file`; `None` if there is no entry
    /// function.
    pub(crate) fn entry<'data>(self, file: &impl Object<'data>) -> Option<EntryFunction> {
        // A libFuzzer harness may call a function `target_main`; its `main` is still libFuzzer's.
        let (at, kind) = match (self.test_one_input, self.target_main) {
            (Some(at), _) => {
                let initialize = self.initialize;
                (at, EntryKind::LibFuzzer { initialize })
            }
            (None, Some(at)) => (at, EntryKind::Target),
            (None, None) => return None,
        };
        let counters = file.section_by_name(COUNTERS).and_then(|section| {
            let end = section.address().checked_add(section.size())?;
            let is_plausible = (1..=MOST_COUNTERS).contains(&section.size());
            is_plausible.then_some((section.address(), end))
        });
        let callbacks = match kind {
            EntryKind::LibFuzzer { .. } => self.callbacks,
            EntryKind::Target => Default::default(),
        };
        Some(EntryFunction {
            at,
            kind,
            counters,
            lowest_stack: self
                .lowest_stack
                .filter(|_| file.section_by_name(EXTRA_COUNTERS).is_none())
                .and_then(|offset| below_thread_pointer(file, offset))
                .unwrap_or(0),
            callbacks,
            find_module: self.find_module.filter(|_| self.has_asan).unwrap_or(0),
        })
    }
}

/// Returns how many bytes below the thread pointer a program's thread-local variable is, given its
/// `offset` in the block of these variables: on x86-64 the block ends at the thread pointer, its
/// size rounded up to its alignment. `None` on other processors, and where the block does not begin
/// at a multiple of its alignment.
fn below_thread_pointer<'data>(file: &impl Object<'data>, offset: u64) -> Option<u64> {
    let is_local = |kind| matches!(kind, SectionKind::Tls | SectionKind::UninitializedTls);
    let sections = file.sections().filter(|section| is_local(section.kind()));
    let (mut start, mut end, mut align) = (u64::MAX, 0, 1);
    for section in sections {
        start = start.min(section.address());
        end = end.max(section.address().checked_add(section.size())?);
        align = align.max(section.align());
    }
    let size = end.checked_sub(start)?.checked_next_multiple_of(align)?;
    let is_known = cfg!(target_arch = "x86_64") && start.is_multiple_of(align);
    size.checked_sub(offset).filter(|_| is_known)
}

impl EntryFunction {
    /// Encodes the entry function (such as `LLVMFuzzerTestOneInput`) as text, which the preloaded
    /// library in the target's process decodes (`entry_from` of `runtime/entry.h`).
    pub(crate) fn words(&self) -> String {
        let (kind, initialize) = match self.kind {
            EntryKind::Target => ('t', 0),
            EntryKind::LibFuzzer { initialize } => ('f', initialize.unwrap_or(0)),
        };
        let (start, end) = self.counters.unwrap_or((0, 0));
        let (at, find_module, lowest_stack) = (self.at, self.find_module, self.lowest_stack);
        let mut words = format!(
            "{kind},{at:x},{initialize:x},{find_module:x},{start:x},{end:x},{lowest_stack:x}"
        );
        for callback in self.callbacks.iter().filter(|callback| **callback != 0) {
            words.push_str(&format!(",{callback:x}"));
        }
        words
    }

    /// Whether this entry function is libFuzzer's `LLVMFuzzerTestOneInput`.
    pub(crate) fn is_fuzzer(&self) -> bool {
        matches!(self.kind, EntryKind::LibFuzzer { .. })
    }

    /// Returns the number of coverage counters in words for users: `with 12 coverage counters`.
    pub(crate) fn coverage(&self) -> String {
        match self.counter_count() {
            0 => "without coverage counters".to_owned(),
            count => format!("with {count} coverage counters"),
        }
    }

    pub(crate) fn counter_count(&self) -> usize {
        let (start, end) = self.counters.unwrap_or((0, 0));
        usize::try_from(end.saturating_sub(start)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_without_its_debug_information() {
        let all = crate::bundled::program("nroff").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("nroff");
        std::fs::write(&program, all).unwrap();
        let some = read(&program).unwrap();
        assert_eq!(all.len(), some.len());
        let (all, some) = (parse(all).unwrap(), parse(&some).unwrap());
        let mut left_out = 0;
        for (one, other) in all.sections().zip(some.sections()) {
            let (one_data, other_data) = (one.data().unwrap(), other.data().unwrap());
            // Scripts for gdb are loaded.
            let name = one.name().unwrap();
            if name.starts_with(".debug_") && name != ".debug_gdb_scripts" {
                left_out += other_data.len();
                assert!(other_data.iter().all(|byte| *byte == 0));
            } else {
                assert!(one_data == other_data, "{name}");
            }
        }
        assert!(left_out > 10_000, "{left_out}");
        assert_eq!(ElfFacts::of(&all), ElfFacts::of(&some));
    }

    #[test]
    fn what_is_no_program_is_read_in_full() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        for text in ["", "#!/bin/sh\n", "\x7fELF"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), text.as_bytes());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn a_text_is_found_wherever_it_stands() {
        assert!(holds(b"##SIG##", b"##SIG##"));
        assert!(holds(b"x####SIG##", b"##SIG##"));
        assert!(!holds(b"##SIG#", b"##SIG##"));
        assert!(holds(b"", b""));
    }
}
