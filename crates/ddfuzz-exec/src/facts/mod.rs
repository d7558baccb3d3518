//! Facts of a target's program, read from its file without running it. They explain why the target is
//! run as it is; `elf.rs` has those that running needs.

#[cfg(target_arch = "x86_64")]
mod constants;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_constants.rs"]
mod constants;
mod instrumentation;
mod words;

use object::read::elf::FileHeader;
use object::{Object, ObjectSection};
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::elf::{Elf, holds};
use crate::private_dir::PrivateDir;
use crate::{ExecError, Program, Target, elf, identity, program};

pub use words::program_words;

/// The name, in [`TargetFacts::instrumentation`], of Rust's overflow checks and debug assertions.
pub const DEBUG_ASSERTIONS: &str = "debug-assertions";

/// The facts of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetFacts {
    /// The name of a bundled target.
    pub bundled: Option<String>,
    /// The program, by absolute path; a bundled one is there for as long as ddfuzz runs.
    pub program: PathBuf,
    /// What kind of file it is.
    pub kind: Kind,
    /// The interpreter of a script, with its argument.
    pub script_of: Option<String>,
    /// Its dynamic linker; `None` for a static program.
    pub linker: Option<String>,
    /// The C library whose start-up code it has.
    pub libc: Libc,
    /// It can be loaded at any address.
    pub position_independent: bool,
    /// It is set-user-id or set-group-id.
    pub setuid: bool,
    /// It has no symbol table, so that functions have no names.
    pub stripped: bool,
    /// It has DWARF, so that crashes have lines.
    pub debug_info: bool,
    /// It is a program of Go.
    pub go: bool,
    /// The Rust compiler made it, or a part of it.
    pub rust: bool,
    /// The sanitizers that it was compiled with, as `-fsanitize=` names them: `undefined`, or of
    /// that group single checks.
    pub sanitizers: Vec<&'static str>,
    /// It is Rust that was compiled with overflow checks or debug assertions.
    pub debug_assertions: bool,
    /// Its `main` is libFuzzer's.
    pub libfuzzer: bool,
    /// It is instrumented by AFL++.
    pub afl: bool,
    /// It has ddfuzz's entry, `target_main`.
    pub target_main: bool,
    /// It has an entry function, and inline 8-bit counters of its coverage.
    pub counters: bool,
    /// Functions by which it speaks to a terminal.
    pub terminal_calls: Vec<&'static str>,
    /// Functions by which it may start processes.
    pub process_calls: Vec<&'static str>,
    /// Functions by which it may start threads.
    pub thread_calls: Vec<&'static str>,
    /// It will run as root, because the user nobody cannot reach it.
    pub as_root: bool,
}

/// What kind of file a program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An ELF program of this machine.
    Elf,
    /// A script with its interpreter.
    Script,
    /// Anything else, for example a program of another machine.
    #[default]
    Other,
}

/// The C library whose start-up code a program has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Libc {
    /// The GNU C library's.
    Glibc,
    /// Musl's.
    Musl,
    /// Its own, or that of a library linked into it.
    #[default]
    Other,
}

impl TargetFacts {
    /// Reads the facts of a target's program; a bundled one is unpacked first.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be executed.
    pub fn of(target: &Target) -> Result<TargetFacts, ExecError> {
        let private = PrivateDir::get()?;
        let path = program::locate(&target.program, &private)?;
        let bytes = elf::read(&path).unwrap_or_default();
        let mut facts = TargetFacts {
            setuid: is_setuid(&path),
            as_root: nix::unistd::Uid::effective().is_root()
                && identity::choose(&path, target.cwd.as_deref(), target.sandbox)
                    .is_ok_and(|identity| identity.is_none()),
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
            facts.debug_assertions = known.rust && asserts(&file);
            facts.take_over(known);
            read_headers(&file, &mut facts);
            instrumentation::read(&file, &mut facts);
        }
        Ok(facts)
    }

    /// Takes over the facts that running needs.
    fn take_over(&mut self, known: elf::ElfFacts) {
        self.linker = known.interpreter;
        self.afl = known.afl;
        self.libfuzzer = known.is_fuzzer;
        self.target_main = known.entry.is_some_and(|entry| !entry.is_fuzzer());
        self.counters = known.entry.is_some_and(|entry| entry.counter_count() > 0);
    }

    /// What it was compiled with that decides which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and [`DEBUG_ASSERTIONS`]. `None` where what runs is not known: of
    /// a script that starts others.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        if self.kind != Kind::Elf {
            return None;
        }
        let assertions = self.debug_assertions.then_some(DEBUG_ASSERTIONS);
        let all = self.sanitizers.iter().copied().chain(assertions);
        Some(all.map(str::to_owned).collect())
    }

    /// Whether it is an ELF program without a dynamic linker.
    pub fn is_static(&self) -> bool {
        self.kind == Kind::Elf && self.linker.is_none()
    }
}

fn is_setuid(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0)
}

/// The section of debug information.
const DEBUG: &str = ".debug_info";
/// The section of compiler versions, and the beginning of Rust's.
const COMMENT: &str = ".comment";
const RUSTC: &[u8] = b"rustc version";
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// How the messages of failed overflow checks and debug assertions of Rust begin. Only programs that
/// were compiled with such checks contain them: the standard library is compiled without.
pub const ASSERTIONS: [&str; 7] = [
    "unsafe precondition(s) violated",
    "attempt to add with overflow",
    "attempt to subtract with overflow",
    "attempt to multiply with overflow",
    "attempt to negate with overflow",
    "attempt to shift left with overflow",
    "attempt to shift right with overflow",
];

/// Whether a Rust program was compiled with overflow checks or debug assertions.
fn asserts(file: &Elf<'_>) -> bool {
    let texts = file.section_by_name(".rodata");
    let texts = texts.and_then(|section| section.data().ok());
    let says = |text: &&str| holds(texts.unwrap_or_default(), text.as_bytes());
    ASSERTIONS.iter().any(says)
}

/// Reads the facts in headers and sections.
fn read_headers(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.position_independent = file.elf_header().e_type(file.endian()) == object::elf::ET_DYN;
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.rust = file
        .section_by_name(COMMENT)
        .and_then(|section| section.data().ok())
        .is_some_and(|text| text.windows(RUSTC.len()).any(|part| part == RUSTC));
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
