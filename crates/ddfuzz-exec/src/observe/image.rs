//! Reads from an ELF file what observing comparisons needs: code, function ranges, and callbacks of
//! `-fsanitize-coverage=trace-cmp`. The file is untrusted input.
//!
//! Functions are taken from the unwind table (`.eh_frame_hdr`, Linux Standard Base, "Exception
//! Frames"), which stripped programs have, too, and from the symbols. The callbacks are described
//! in clang's SanitizerCoverage documentation, "Tracing data flow"; gcc has the same.

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind, elf};
use std::{collections::BTreeMap, path::Path};

/// Maximum number of bytes of a program's code and read-only data that are read. Segments beyond it
/// are not observed.
const MOST_CODE: u64 = 64 << 20;

/// A loadable segment of a program: its address and its content.
pub(crate) struct Segment {
    pub(crate) address: u64,
    /// Content of the segment, as it is in the program's file.
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

/// A program as its ELF file describes it: its code, functions and comparison callbacks.
pub(crate) struct Image {
    /// Address of the program's entry point before loading.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) entry: u64,
    /// Read-only segments of the program: code and unwind tables.
    pub(crate) segments: Vec<Segment>,
    /// Address ranges of the program's functions, without those of runtimes such as sanitizers.
    pub(crate) functions: Functions,
    /// Comparison callbacks that the program defines.
    pub(crate) hooks: Vec<Hook>,
}

impl Image {
    /// Reads the program file at `path`; `None` if it is not a 64-bit ELF file.
    pub fn read(path: &Path) -> Option<Image> {
        let data = crate::elf::read(path).ok()?;
        let header = elf::FileHeader64::<Endianness>::parse(data.as_slice()).ok()?;
        let endian = header.endian().ok()?;
        let unwind_table = header
            .program_headers(endian, data.as_slice())
            .ok()?
            .iter()
            .find(|segment| segment.p_type(endian) == elf::PT_GNU_EH_FRAME)
            .map(|segment| segment.p_vaddr(endian));
        let file = object::File::parse(data.as_slice()).ok()?;
        let mut image = Image {
            entry: file.entry(),
            segments: segments(&file),
            functions: Functions::default(),
            hooks: Vec::new(),
        };
        if let Some(at) = unwind_table {
            for (start, end) in ranges_of_unwind_table(&image, at) {
                image.functions.add(start, end);
            }
        }
        image.read_symbols(&file);
        Some(image)
    }

    fn read_symbols(&mut self, file: &object::File) {
        for symbol in functions_of(file) {
            if let Some(end) = symbol.address().checked_add(symbol.size()) {
                self.functions.add(symbol.address(), end);
            }
        }
        let named = names_of(file);
        for (_, address) in named.iter().filter(|(name, _)| is_of_runtime(name)) {
            self.functions.remove(*address);
        }
        self.hooks = hooks_in(file, &named);
    }

    /// Returns the `length` bytes that the program has at `address` before loading; `None` if no
    /// segment contains them all.
    pub(crate) fn at(&self, address: u64, length: usize) -> Option<&[u8]> {
        let mut segments = self.segments.iter();
        segments.find_map(|segment| segment.part(address, length))
    }
}

/// Returns the comparison callbacks that the program file at `path` defines; empty if it is not a
/// 64-bit ELF file. Takes less time than [`Image::read`].
pub(crate) fn hooks_of(path: &Path) -> Vec<Hook> {
    let data = crate::elf::read_tables(path).unwrap_or_default();
    match object::File::parse(data.as_slice()) {
        Ok(file) if file.is_64() => hooks_in(&file, &names_of(&file)),
        _ => Vec::new(),
    }
}

/// Returns the symbols in the program file that stand for functions.
fn functions_of<'data, 'file>(
    file: &'file object::File<'data>,
) -> impl Iterator<Item = object::Symbol<'data, 'file>> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
}

/// Returns name and address of each of the program's functions that has a name.
fn names_of<'data>(file: &object::File<'data>) -> Vec<(&'data str, u64)> {
    let named = functions_of(file).map(|symbol| Some((symbol.name().ok()?, symbol.address())));
    named.flatten().collect()
}

/// Finds the comparison callbacks among the functions `named` of the program `file`.
fn hooks_in(file: &object::File, named: &[(&str, u64)]) -> Vec<Hook> {
    let is_code = |address: u64| {
        file.segments().any(|segment| {
            let executable = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. }
                if p_flags.contains(elf::PF_X) && !p_flags.contains(elf::PF_W));
            let length = segment.data().map_or(0, |bytes| bytes.len() as u64);
            executable
                && address
                    .checked_sub(segment.address())
                    .is_some_and(|at| at < length)
        })
    };
    let mut hooks = hooks_among(named);
    hooks.retain(|hook| is_code(hook.address));
    hooks
}

impl Segment {
    /// Returns the place of the `length` bytes at `address` in this segment, as a range of indices
    /// into its content; `None` if they are not all inside.
    pub(crate) fn place(&self, address: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(self.address)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    fn part(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.bytes.get(self.place(address, length)?)
    }
}

fn segments(file: &object::File) -> Vec<Segment> {
    let mut room = MOST_CODE;
    let mut segments = Vec::new();
    for segment in file.segments() {
        let (Ok(bytes), SegmentFlags::Elf { p_flags, .. }) = (segment.data(), segment.flags())
        else {
            continue;
        };
        if p_flags.contains(elf::PF_W) || bytes.len() as u64 > room {
            continue;
        }
        room -= bytes.len() as u64;
        segments.push(Segment {
            address: segment.address(),
            bytes: bytes.to_vec(),
            executable: p_flags.contains(elf::PF_X),
        });
    }
    segments
}

/// The kind of a comparison callback, that is, of a function that instrumented code calls to report
/// a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookKind {
    /// A callback that compares two operands of `width` bytes; `constant`: the first operand is a
    /// constant in the program.
    Compare { width: usize, constant: bool },
    /// A callback for a `switch` statement: it gets the value and the list of cases.
    Switch,
    /// A function of this name that a sanitizer calls to report a comparison by a library function,
    /// such as `memcmp`, to libFuzzer. It can be observed only by a jump that replaces its start,
    /// not by a breakpoint.
    Function(&'static str),
}

/// Names and kinds of the comparison callbacks. The index in this list is the number of the kind in
/// `enum hook_kind` of `runtime/observe.h`.
const NAMES: [(&str, HookKind); 17] = [
    ("__sanitizer_cov_trace_cmp1", compare(1, false)),
    ("__sanitizer_cov_trace_cmp2", compare(2, false)),
    ("__sanitizer_cov_trace_cmp4", compare(4, false)),
    ("__sanitizer_cov_trace_cmp8", compare(8, false)),
    ("__sanitizer_cov_trace_const_cmp1", compare(1, true)),
    ("__sanitizer_cov_trace_const_cmp2", compare(2, true)),
    ("__sanitizer_cov_trace_const_cmp4", compare(4, true)),
    ("__sanitizer_cov_trace_const_cmp8", compare(8, true)),
    ("__sanitizer_cov_trace_switch", HookKind::Switch),
    function("__sanitizer_weak_hook_memcmp"),
    function("__sanitizer_weak_hook_strncmp"),
    function("__sanitizer_weak_hook_strcmp"),
    function("__sanitizer_weak_hook_strncasecmp"),
    function("__sanitizer_weak_hook_strcasecmp"),
    function("__sanitizer_weak_hook_memmem"),
    function("__sanitizer_weak_hook_strstr"),
    function("__sanitizer_weak_hook_strcasestr"),
];

const fn function(name: &'static str) -> (&'static str, HookKind) {
    (name, HookKind::Function(name))
}

const fn compare(width: usize, constant: bool) -> HookKind {
    HookKind::Compare { width, constant }
}

/// Length of the jump that replaces the start of a function, in bytes (`JUMP` of `runtime/jump.h`).
const JUMP: u64 = 5;

/// A comparison callback (of `-fsanitize-coverage=trace-cmp` or a sanitizer) that a program
/// defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) address: u64,
    pub(crate) kind: HookKind,
    /// Number of bytes between the start of the callback's code and the next function; a jump that
    /// replaces the start must fit into them.
    room: u64,
}

impl Hook {
    /// Returns the number of the comparison callback's kind in `enum hook_kind` of
    /// `runtime/observe.h`.
    pub(crate) fn number(&self) -> u64 {
        let place = NAMES.iter().position(|(_, kind)| *kind == self.kind);
        place.unwrap_or_default() as u64
    }

    /// Returns true if the callback's code has room for the jump that replaces its start.
    pub(crate) fn takes_jump(&self) -> bool {
        self.room >= JUMP
    }

    /// Returns true if a breakpoint at the start of this comparison callback shows what is
    /// compared; false for a sanitizer's hook of a function such as `memcmp`, which only a jump can
    /// observe.
    pub(crate) fn takes_breakpoint(&self) -> bool {
        !matches!(self.kind, HookKind::Function(_))
    }
}

/// Finds the comparison callbacks among the functions (name and address) of a program. Callbacks at
/// the same address are left out: a linker has folded them, so that their calls cannot be
/// distinguished.
fn hooks_among<'a>(functions: &[(&'a str, u64)]) -> Vec<Hook> {
    let kind_of = |name: &str| NAMES.iter().find(|(known, _)| *known == name);
    let mut found: Vec<(&'a str, Hook)> = Vec::new();
    let mut starts: Vec<u64> = functions.iter().map(|(_, address)| *address).collect();
    starts.sort_unstable();
    for (name, address) in functions {
        let Some((_, kind)) = kind_of(name) else {
            continue;
        };
        if found.iter().any(|(known, _)| known == name) {
            continue;
        }
        let next = starts.partition_point(|start| start <= address);
        let hook = Hook {
            address: *address,
            kind: *kind,
            room: starts.get(next).map_or(u64::MAX, |next| next - address),
        };
        found.push((name, hook));
    }
    let all: Vec<Hook> = found.into_iter().map(|(_, hook)| hook).collect();
    let folded = |hook: &&Hook| {
        let same = all.iter().filter(|other| other.address == hook.address);
        same.count() > 1
    };
    all.iter().filter(|hook| !folded(hook)).copied().collect()
}

/// Maximum number of functions that are read from a program's unwind table.
const MOST: u32 = 1 << 20;
/// Encoding, in the unwind table of a linked program, of the field with the number of entries: 4
/// bytes.
const COUNT: u8 = 0x03;
/// Code, in the header of a program's unwind table, for the usual encoding of the table's entries:
/// pairs of 4-byte offsets from the start of the section.
const TABLE: u8 = 0x3b;
/// Encoding, in the unwind table of a linked program, of the pointer to the call frames: a 4-byte
/// offset from the pointer's own address.
const POINTER: u8 = 0x1b;

/// Address ranges of a program's functions before loading, without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Functions(BTreeMap<u64, u64>);

impl Functions {
    /// Adds the address range of a function, from `start` to `end`, unless it overlaps the range of
    /// a known function.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let before = self.0.range(..end).next_back();
        if start < end && before.is_none_or(|(_, known_end)| *known_end <= start) {
            self.0.insert(start, end);
        }
    }

    pub(crate) fn remove(&mut self, start: u64) {
        self.0.remove(&start);
    }

    /// Returns the start and end address of each function, in ascending order.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }
}

/// Reads the address ranges of functions, before loading, from the unwind table (`.eh_frame_hdr`)
/// at address `header`. Invalid entries are left out; empty if the table has another encoding than
/// linkers usually write.
fn ranges_of_unwind_table(image: &Image, header: u64) -> Vec<(u64, u64)> {
    let usual = image.at(header, 12).is_some_and(|bytes| {
        let forms: [u8; 4] = [bytes[0], bytes[1], bytes[2], bytes[3]];
        forms == [1, POINTER, COUNT, TABLE]
    });
    let Some(count) = word(image, header.wrapping_add(8)).filter(|_| usual) else {
        return Vec::new();
    };
    let entries =
        (0..u64::from(count.min(MOST))).map_while(|index| header.checked_add(12 + 8 * index));
    entries.filter_map(|at| range(image, header, at)).collect()
}

/// Reads the address range of one function from the entry at address `at` of the unwind table at
/// `header`; `None` if the entry is invalid.
fn range(image: &Image, header: u64, at: u64) -> Option<(u64, u64)> {
    let start = relative(image, header, at)?;
    let description = relative(image, header, at.checked_add(4)?)?;
    // Length, pointer to the common part, start, length of the function.
    let length = word(image, description)?;
    let start_at = description.checked_add(8)?;
    let told = relative(image, start_at, start_at)?;
    if length == 0 || length == u32::MAX || told != start {
        return None;
    }
    let size = word(image, start_at.checked_add(4)?)?;
    Some((start, start.checked_add(u64::from(size))?))
}

/// Returns `base` plus the signed 4-byte offset that the program has at address `at`; `None` if no
/// segment has four bytes there, or the sum overflows.
fn relative(image: &Image, base: u64, at: u64) -> Option<u64> {
    let distance = word(image, at)?.cast_signed();
    base.checked_add_signed(i64::from(distance))
}

fn word(image: &Image, at: u64) -> Option<u32> {
    let bytes = image.at(at, 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Beginnings of the names of functions in runtimes (sanitizers, libFuzzer, AFL++), for C++ without
/// `_ZN`. No breakpoints are set in them, because at start-up these functions compare more than
/// most programs do.
const PREFIXES: [&str; 21] = [
    "__afl_",
    "11__sanitizer",
    "14__interception",
    "6__asan",
    "6__lsan",
    "6__msan",
    "6__tsan",
    "7__ubsan",
    "8__hwasan",
    "8__sancov",
    "6fuzzer",
    "St8__Fuzzer",
    "__asan_",
    "__interceptor_",
    "___interceptor_",
    "__lsan_",
    "__msan_",
    "__sanitizer_",
    "__sancov_",
    "__tsan_",
    "__ubsan_",
];

/// Returns true if a function with the symbol `name` belongs to a runtime: sanitizer, libFuzzer or
/// AFL++.
fn is_of_runtime(name: &str) -> bool {
    let plain = ["_ZNK", "_ZN", "_ZThn"]
        .iter()
        .find_map(|mark| name.strip_prefix(mark));
    let begins = |prefix: &str| match plain {
        Some(plain) => plain.starts_with(prefix),
        None => prefix.starts_with('_') && name.starts_with(prefix),
    };
    PREFIXES.iter().any(|prefix| begins(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_found_with_the_room_for_a_jump() {
        let functions = [
            ("main", 0x40),
            ("__sanitizer_cov_trace_cmp4", 0x10),
            ("__sanitizer_cov_trace_switch", 0x14),
            ("__sanitizer_cov_trace_pc", 0x30),
        ];
        let found = hooks_among(&functions);
        let told: Vec<_> = found
            .iter()
            .map(|hook| (hook.address, hook.number(), hook.takes_jump()))
            .collect();
        assert_eq!(told, [(0x10, 2, false), (0x14, 8, true)]);
    }

    #[test]
    fn callbacks_that_were_folded_into_one_are_left_out() {
        let functions = [
            ("__sanitizer_cov_trace_cmp1", 0x10),
            ("__sanitizer_cov_trace_cmp2", 0x10),
            ("__sanitizer_cov_trace_cmp8", 0x20),
            ("__sanitizer_cov_trace_cmp8", 0x20),
        ];
        let found: Vec<u64> = hooks_among(&functions).iter().map(Hook::number).collect();
        assert_eq!(found, [3]);
    }

    #[test]
    fn the_first_to_claim_a_place_keeps_it() {
        let mut functions = Functions::default();
        for (start, end) in [
            (10, 20),
            (15, 25),
            (5, 11),
            (20, 30),
            (3, 3),
            (0, 10),
            (9, 8),
        ] {
            functions.add(start, end);
        }
        let all: Vec<_> = functions.iter().collect();
        assert_eq!(all, [(0, 10), (10, 20), (20, 30)]);
    }

    #[test]
    fn the_functions_of_a_real_program_are_found() {
        let image = Image::read(&std::env::current_exe().unwrap()).unwrap();
        let all: Vec<_> = image.functions.iter().collect();
        assert!(all.len() > 1000, "{}", all.len());
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    fn runtimes_are_told_from_programs() {
        for name in [
            "_ZN11__sanitizer10ExtractIntEPKcS1_Pi",
            "_ZNK6fuzzer5Fuzzer3runEv",
            "_ZNSt8__Fuzzer6vectorIhE4sizeEv",
            "__interceptor_strcmp",
            "__afl_auto_init",
            "__asan_report_load1",
        ] {
            assert!(is_of_runtime(name), "{name}");
        }
        for name in [
            "main",
            "parse",
            "_ZN3png6decodeEv",
            "6fuzzer",
            "sanitizer",
            "_Z6fuzzerv",
        ] {
            assert!(!is_of_runtime(name), "{name}");
        }
    }
}
