//! Reads from a program's symbols and code what it calls and which sanitizers it was compiled with.
//!
//! The checks of UndefinedBehaviorSanitizer are found by the calls of its handlers. The handlers
//! alone show nothing: runtimes of other sanitizers and of libFuzzer contain all of them.

use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::{BTreeSet, HashMap};

use crate::facts::{Libc, TargetFacts};
use crate::{Sanitizer, elf::Elf};

/// Names of library functions that control a terminal; a program that calls one of them may need a
/// terminal.
const TERMINAL: [&str; 8] = [
    "isatty",
    "tcgetattr",
    "tcsetattr",
    "initscr",
    "newterm",
    "setupterm",
    "tgetent",
    "ctermid",
];
const PROCESSES: [&str; 10] = [
    "fork",
    "vfork",
    "clone",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "execve",
    "execvp",
    "execv",
];
const THREADS: [&str; 2] = ["pthread_create", "thrd_create"];

/// Fills in the facts that a program's symbols and code show: whether it is stripped, its C
/// library, its sanitizers, and the library functions for terminals, processes and threads that it
/// calls. For a static program, which contains all functions of its C library, the lists of calls
/// stay empty. The facts `kind`, `linker` and `libfuzzer` must be filled in before.
pub fn read(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.stripped = file.symbols().next().is_none();
    if let Some(linker) = &facts.linker
        && linker.contains("musl")
    {
        facts.libc = Libc::Musl;
    }
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        // In the full symbol table, names contain their version.
        if let Ok(name) = symbol.name()
            && let Some(name) = name.split('@').next()
        {
            note_symbol(name, facts);
        }
    }
    let alone = facts.sanitizers.is_empty() && !facts.libfuzzer;
    facts.sanitizers.extend(checks_made(file, alone));
    if facts.is_static() {
        // A static C library contains all of these functions, used or not.
        for calls in [
            &mut facts.terminal_calls,
            &mut facts.process_calls,
            &mut facts.thread_calls,
        ] {
            calls.clear();
        }
    }
    for calls in [
        &mut facts.sanitizers,
        &mut facts.terminal_calls,
        &mut facts.process_calls,
        &mut facts.thread_calls,
    ] {
        calls.sort_unstable();
        calls.dedup();
    }
}

fn note_symbol(name: &str, facts: &mut TargetFacts) {
    match name {
        "__libc_start_main" if facts.libc != Libc::Musl => facts.libc = Libc::Glibc,
        _ => {}
    }
    let found = Sanitizer::of_symbol(name).filter(|found| *found != Sanitizer::Ubsan);
    facts.sanitizers.extend(found.map(Sanitizer::flag));
    for (known, calls) in [
        (&TERMINAL[..], &mut facts.terminal_calls),
        (&PROCESSES[..], &mut facts.process_calls),
        (&THREADS[..], &mut facts.thread_calls),
    ] {
        calls.extend(known.iter().find(|call| **call == name));
    }
}

/// Prefixes of UBSan handler names, and the checks (`-fsanitize=CHECK`) that call the handlers. A
/// program that calls one of the first two handlers is taken to be built with the whole group
/// `undefined`, because they are the most frequent ones of that group. Handlers of control flow
/// integrity are left out, because runtimes call them.
const HANDLERS: [(&str, &str); 23] = [
    ("type_mismatch", "undefined"),
    ("pointer_overflow", "undefined"),
    ("add_overflow", "signed-integer-overflow"),
    ("sub_overflow", "signed-integer-overflow"),
    ("mul_overflow", "signed-integer-overflow"),
    ("negate_overflow", "signed-integer-overflow"),
    ("divrem_overflow", "division-by-zero"),
    ("shift_out_of_bounds", "shift"),
    ("out_of_bounds", "bounds"),
    ("alignment_assumption", "alignment-assumption"),
    ("nonnull_arg", "nonnull-attribute"),
    ("nonnull_return", "returns-nonnull-attribute"),
    ("nullability", "nullability"),
    ("builtin_unreachable", "unreachable"),
    ("missing_return", "return"),
    ("vla_bound", "vla-bound"),
    ("load_invalid_value", "bool"),
    ("load_invalid_value", "enum"),
    ("float_cast_overflow", "float-cast-overflow"),
    ("function_type_mismatch", "function"),
    ("dynamic_type_cache_miss", "vptr"),
    ("invalid_builtin", "builtin"),
    ("implicit_conversion", "implicit-conversion"),
];

/// Returns the UBSan checks that a program makes, as `-fsanitize=` names them: those whose handlers
/// it calls. Returns `undefined` alone if the most frequent handlers are among them, or if no call
/// is found and UBSan's whole runtime is linked. `alone`: no other runtime that contains UBSan's
/// handlers is linked, so that a handler in the program belongs to UBSan's runtime.
fn checks_made(file: &Elf<'_>, alone: bool) -> BTreeSet<&'static str> {
    let (mut defined, mut called) = (HashMap::new(), BTreeSet::new());
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let name = symbol.name().unwrap_or_default();
        let handler = name.strip_prefix(Sanitizer::Ubsan.symbol());
        if let Some(handler) = handler.filter(|handler| !goes_on(handler)) {
            match symbol.is_undefined() {
                true => drop(called.insert(handler)),
                false => drop(defined.insert(symbol.address(), handler)),
            }
        }
    }
    called.extend(calls(file, &defined));
    let is_whole = defined
        .values()
        .any(|handler| !handler.contains("_minimal"));
    let is_linked = alone && is_whole || needs_library(file);
    let mut checks = BTreeSet::new();
    for (start, check) in HANDLERS {
        if called.iter().any(|handler| handler.starts_with(start)) {
            checks.insert(check);
        }
    }
    if checks.contains("undefined") || checks.is_empty() && is_linked {
        return BTreeSet::from(["undefined"]);
    }
    checks
}

/// Returns true if `handler` is a function of UBSan's minimal runtime that returns to the program
/// after a failed check. Such a run does not show the failure, and no option makes the program end
/// there.
fn goes_on(handler: &str) -> bool {
    let never_returns = ["builtin_unreachable", "missing_return"];
    let minimal = handler.strip_suffix("_minimal");
    minimal.is_some_and(|check| !never_returns.contains(&check))
}

/// Returns true if the program is linked with gcc's UBSan library.
fn needs_library(file: &Elf<'_>) -> bool {
    let names = file.section_by_name(".dynstr");
    let names = names.and_then(|section| section.data().ok());
    crate::elf::holds(names.unwrap_or_default(), b"libubsan.so")
}

/// Returns the names of the functions among `known` (by address) that the program's code calls or
/// jumps to.
fn calls<'a>(file: &Elf<'_>, known: &HashMap<u64, &'a str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    if known.is_empty() {
        return found;
    }
    for section in file
        .sections()
        .filter(|one| one.kind() == SectionKind::Text)
    {
        let code = section.data().unwrap_or_default();
        for (at, distance) in branches(code) {
            let from = section.address().wrapping_add(at as u64);
            let target = from.wrapping_add_signed(distance);
            found.extend(known.get(&target));
        }
    }
    found
}

/// Returns, for each place in x86-64 code that could be a relative call or jump, its offset and the
/// distance to its target, in bytes. Some of these places are not instructions; their target is
/// hardly ever a function that is searched for.
#[cfg(target_arch = "x86_64")]
fn branches(code: &[u8]) -> impl Iterator<Item = (usize, i64)> {
    let places = code.windows(5).enumerate();
    places.filter_map(|(at, bytes)| match bytes {
        // The distance counts from the end of the instruction.
        &[0xe8 | 0xe9, a, b, c, d] => Some((at, i64::from(i32::from_le_bytes([a, b, c, d])) + 5)),
        _ => None,
    })
}

/// Returns, for each instruction `bl` or `b` in AArch64 code, its offset and the distance to its
/// target, in bytes.
#[cfg(target_arch = "aarch64")]
fn branches(code: &[u8]) -> impl Iterator<Item = (usize, i64)> {
    let places = code.chunks_exact(4).enumerate();
    places.filter_map(|(at, bytes)| {
        let word = u32::from_le_bytes(bytes.try_into().ok()?);
        // The lower 26 bits count instructions of four bytes.
        let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
        (word & 0x7c00_0000 == 0x1400_0000).then_some((at * 4, distance))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn calls_and_jumps_are_found_wherever_they_stand() {
        let code = [0x90, 0xe8, 0x10, 0, 0, 0, 0xe9, 0xf0, 0xff, 0xff, 0xff];
        let found: Vec<(usize, i64)> = branches(&code).collect();
        assert_eq!(found, [(1, 0x15), (6, -11)]);
        assert_eq!(branches(&[0xe8, 0, 0]).count(), 0);
    }
}
