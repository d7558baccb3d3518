//! What the names in an ELF file tell.

use object::{Object, ObjectSymbol};

use super::super::Sanitizer;
use super::super::elf::Elf;
use super::{Libc, TargetFacts, checks};

/// Functions by which programs speak to terminals and to nothing else.
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

/// Reads what symbols tell.
pub fn read(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.stripped = file.symbols().next().is_none();
    if let Some(linker) = &facts.linker
        && linker.contains("musl")
    {
        facts.libc = Libc::Musl;
    }
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        // In the table that strip removes, the name carries its version.
        if let Ok(name) = symbol.name()
            && let Some(name) = name.split('@').next()
        {
            one(name, facts);
        }
    }
    let alone = facts.sanitizers.is_empty() && !facts.libfuzzer;
    facts.sanitizers.extend(checks::made(file, alone));
    if facts.is_static() {
        // The C library that is linked in has them all, used or not.
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

fn one(name: &str, facts: &mut TargetFacts) {
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
