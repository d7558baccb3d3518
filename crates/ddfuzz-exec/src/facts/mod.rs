//! Facts of a target's program, read from its file without running it, that explain how the target
//! is run. (The facts that are needed to run it are in `elf.rs`.)

#[cfg(target_arch = "x86_64")]
mod constants;
/// A stub for processors whose instructions are not decoded: it finds no constants and no
/// references.
#[cfg(not(target_arch = "x86_64"))]
mod constants {
    use crate::{facts::words::Ranges, observe::image::Image};
    use std::collections::BTreeSet;

    #[derive(Debug, Default)]
    pub(super) struct CodeWords {
        pub(super) references: BTreeSet<u64>,
        pub(super) constants: Vec<Vec<u8>>,
    }

    impl CodeWords {
        pub(super) fn of(_: &Image, _: &Ranges) -> CodeWords {
            CodeWords::default()
        }
    }
}
mod instrumentation;
mod words;

use object::{Object, ObjectSection, read::elf::FileHeader};
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::elf::{Elf, holds};
use crate::{
    ExecError, Program, Target, elf, prepared_target::choose_identity, private_dir::PrivateDir,
    program,
};

pub use words::program_words;

/// The name, in [`TargetFacts::instrumentation`], of Rust's overflow checks and debug assertions.
pub const DEBUG_ASSERTIONS: &str = "debug-assertions";

/// Facts of a target's program, which `ddfuzz doctor` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetFacts {
    /// Name of the bundled target; `None` for other programs.
    pub bundled: Option<String>,
    /// Absolute path of the program. A bundled program is unpacked there until ddfuzz ends.
    pub program: PathBuf,
    /// Whether the program is an ELF file, a script or another file.
    pub kind: Kind,
    /// Interpreter of a script, with its argument; `None` for other programs.
    pub script_of: Option<String>,
    /// Path of the dynamic linker; `None` for a static program.
    pub linker: Option<String>,
    /// The C library whose start-up code the program contains.
    pub libc: Libc,
    /// Whether the program can be loaded at any address (is position-independent).
    pub position_independent: bool,
    /// Whether the program is set-user-id or set-group-id.
    pub setuid: bool,
    /// Whether the program has no symbol table, so that its functions have no names.
    pub stripped: bool,
    /// Whether the program has DWARF debug information, so that crashes have line numbers.
    pub debug_info: bool,
    /// Whether the program is written in Go.
    pub go: bool,
    /// Whether the program contains code that rustc has compiled.
    pub rust: bool,
    /// Sanitizers of the program, as `-fsanitize=` names them: `undefined`, or single checks of
    /// that group.
    pub sanitizers: Vec<&'static str>,
    /// Whether the program is Rust code with overflow checks or debug assertions.
    pub debug_assertions: bool,
    /// Whether the `main` of the program is libFuzzer's.
    pub libfuzzer: bool,
    /// Whether AFL++ has instrumented the program.
    pub afl: bool,
    /// Whether the program has ddfuzz's entry function, `target_main`.
    pub target_main: bool,
    /// Whether the program has an entry function and inline 8-bit coverage counters.
    pub counters: bool,
    /// Names of the C library's and ncurses' functions for terminals that the program calls.
    pub terminal_calls: Vec<&'static str>,
    /// Names of the functions that the program calls and that may start processes.
    pub process_calls: Vec<&'static str>,
    /// Names of the functions that the program calls and that may start threads.
    pub thread_calls: Vec<&'static str>,
    /// Whether the program will run as root, because the user nobody cannot reach it.
    pub as_root: bool,
}

/// Kind of a program file: ELF, script or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The file is an ELF program for this processor architecture.
    Elf,
    /// The file is a script that names its interpreter in a `#!` line.
    Script,
    /// The file is of another kind, for example a program for another processor architecture.
    #[default]
    Other,
}

/// The C library whose start-up code a program contains: the GNU C library, musl, or another or
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Libc {
    /// The program is started by the start-up code of the GNU C library.
    Glibc,
    /// The program is started by the start-up code of musl.
    Musl,
    /// The program is started by the start-up code of another library, or by its own.
    #[default]
    Other,
}

impl TargetFacts {
    /// Reads the facts of a target's program; a bundled program is unpacked first. Fails when the
    /// program does not exist or cannot be executed.
    pub fn of(target: &Target) -> Result<TargetFacts, ExecError> {
        let private = PrivateDir::get()?;
        let path = program::locate(&target.program, &private)?;
        let bytes = elf::read(&path).unwrap_or_default();
        let mut facts = TargetFacts {
            setuid: is_setuid(&path),
            as_root: nix::unistd::Uid::effective().is_root() && {
                let chosen = choose_identity(&path, target.cwd.as_deref(), target.sandbox);
                chosen.is_ok_and(|identity| identity.is_none())
            },
            bundled: match &target.program {
                Program::Bundled(name) => Some(name.clone()),
                Program::Path(_) => None,
            },
            program: path,
            ..TargetFacts::default()
        };
        if let Some(interpreter) = program::named_in(&bytes) {
            facts.kind = Kind::Script;
            facts.script_of = Some(interpreter);
        } else if let Some(file) = elf::parse(&bytes) {
            facts.kind = Kind::Elf;
            let known = elf::ElfFacts::of(&file);
            facts.debug_assertions = known.rust && has_assertion_messages(&file);
            facts.linker = known.interpreter;
            facts.afl = known.afl;
            facts.libfuzzer = known.is_fuzzer;
            facts.target_main = known.entry.is_some_and(|entry| !entry.is_fuzzer());
            facts.counters = known.entry.is_some_and(|entry| entry.counter_count() > 0);
            read_headers(&file, &mut facts);
            instrumentation::read(&file, &mut facts);
        }
        Ok(facts)
    }

    /// Returns the names of the compiler instrumentation that decides which crashes the program can
    /// show: sanitizers, as `-fsanitize=` names them, and [`DEBUG_ASSERTIONS`]. `None` if the
    /// program is not an ELF file: a script may run any program.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        if self.kind != Kind::Elf {
            return None;
        }
        let assertions = self.debug_assertions.then_some(DEBUG_ASSERTIONS);
        let all = self.sanitizers.iter().copied().chain(assertions);
        Some(all.map(str::to_owned).collect())
    }

    /// Returns true if the program is an ELF program without a dynamic linker.
    pub fn is_static(&self) -> bool {
        self.kind == Kind::Elf && self.linker.is_none()
    }
}

fn is_setuid(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0)
}

/// Name of the ELF section with debug information.
const DEBUG: &str = ".debug_info";
/// Name of the ELF section with the versions of compilers; an entry that begins with `RUSTC` is
/// Rust's.
const COMMENT: &str = ".comment";
const RUSTC: &[u8] = b"rustc version";
/// Names of two ELF sections, of which a Go program has at least one.
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// Beginnings of the messages of Rust's overflow checks and debug assertions. Only programs
/// compiled with such checks contain them: the standard library is compiled without them.
pub const ASSERTIONS: [&str; 7] = [
    "unsafe precondition(s) violated",
    "attempt to add with overflow",
    "attempt to subtract with overflow",
    "attempt to multiply with overflow",
    "attempt to negate with overflow",
    "attempt to shift left with overflow",
    "attempt to shift right with overflow",
];

/// Returns true if the read-only data of a program contains a message of [`ASSERTIONS`]. A Rust
/// program with such a message was compiled with overflow checks or debug assertions.
fn has_assertion_messages(file: &Elf<'_>) -> bool {
    let texts = file.section_by_name(".rodata");
    let texts = texts.and_then(|section| section.data().ok());
    let says = |text: &&str| holds(texts.unwrap_or_default(), text.as_bytes());
    ASSERTIONS.iter().any(says)
}

/// Fills in the facts that ELF header and sections show: load address, debug information, Rust, Go.
fn read_headers(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.position_independent = file.elf_header().e_type(file.endian()) == object::elf::ET_DYN;
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.rust = file
        .section_by_name(COMMENT)
        .and_then(|section| section.data().ok())
        .is_some_and(|text| text.windows(RUSTC.len()).any(|part| part == RUSTC));
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
