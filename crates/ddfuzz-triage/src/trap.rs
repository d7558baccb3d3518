//! Trap instructions by which a compiler's check, or the program itself, ends a program.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use crate::Crash;
use crate::observable::Unobservable;
use crate::symbols::demangled::demangle;
use ddfuzz_exec::{holds_bytes, read_program};

/// An instruction of x86-64 at which a program stops by an invalid opcode: `ud1`, by which a failed
/// check ends the program, or `ud2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The instruction `ud1` with a number as its operand. With `-fsanitize-trap`, clang generates
    /// it for a check of UndefinedBehaviorSanitizer, and a program runs into it if the check fails.
    Check,
    /// The instruction `ud2`. Compilers generate it for `__builtin_trap`, for gcc's checks with
    /// `-fsanitize-undefined-trap-on-error`, and for places that they take as unreachable.
    Plain,
}

impl Trap {
    /// Returns the bytes with which the machine code of this trap instruction begins.
    pub fn code(self) -> &'static [u8] {
        match self {
            Trap::Check => &[0x67, 0x0f, 0xb9],
            Trap::Plain => &[0x0f, 0x0b],
        }
    }

    /// Returns the compiler options, for advice to users, without which a program may lack this
    /// trap instruction; the text follows `compile the program as it was, with`.
    pub fn flag(self) -> &'static str {
        match self {
            Trap::Check => "-fsanitize=undefined -fsanitize-trap=undefined",
            Trap::Plain => "the checks with which it failed (-fsanitize-trap=undefined)",
        }
    }

    /// Checks whether the program at `path` contains this trap instruction. [`Trap::Check`] may be
    /// anywhere in its code, since compilers generate it only for sanitizers; [`Trap::Plain`] must
    /// be in the function named `function`. False if the program cannot be read.
    fn is_in(self, path: &Path, function: Option<&str>) -> bool {
        let Ok(bytes) = read_program(path) else {
            return false;
        };
        let Ok(file) = object::File::parse(&*bytes) else {
            return false;
        };
        let has = |code: &[u8]| holds_bytes(code, self.code());
        let sections = file.sections();
        let mut text = sections.filter(|section| section.kind() == SectionKind::Text);
        if self == Trap::Check {
            return text.any(|section| section.data().is_ok_and(has));
        }
        let named = file.symbols().find(|symbol| {
            let name = symbol.name().ok().filter(|_| symbol.size() > 0);
            function.is_some() && name.map(demangle).as_deref() == function
        });
        named.is_some_and(|symbol| {
            text.any(|section| {
                let code = section.data_range(symbol.address(), symbol.size());
                code.ok().flatten().is_some_and(has)
            })
        })
    }
}

impl Crash {
    /// Returns the trap instruction at which the program stopped; `None` for a crash by anything
    /// else.
    pub fn trap(&self) -> Option<Trap> {
        let starts = |trap: &Trap| {
            let code = trap.code().iter().map(|byte| format!("{byte:02x}"));
            self.details.code.starts_with(&code.collect::<String>())
        };
        let mut all = [Trap::Check, Trap::Plain].into_iter();
        all.find(|trap| self.class.0 == "ill" && starts(trap))
    }
}

/// Returns the reason why a passing run of the program at `path` does not show that a crash is
/// fixed, if the crash happened at a trap instruction (by which a check ends the program), and the
/// program lacks this instruction, or ddfuzz cannot see whether it has it: it may be compiled
/// without the check. `None` if the program has the instruction, and for any other crash.
pub(crate) fn untrapped(crash: &Crash, path: Option<&Path>) -> Option<Unobservable> {
    let trap = crash.trap()?;
    let frame = crash.innermost_own();
    let function = frame.and_then(|frame| frame.levels().last()?.name);
    if path.is_some_and(|path| trap.is_in(path, function)) {
        return None;
    }
    let why = match path {
        None => "a trap instruction ended the program, and ddfuzz cannot see whether the program \
                 that is run has it"
            .to_owned(),
        Some(_) => format!(
            "a trap instruction ended the program, as by a compiler's check, and this one has \
             none{}: it is compiled without the check, or the fix has removed it",
            match (trap, function) {
                (Trap::Plain, Some(function)) => format!(" in {function}"),
                _ => String::new(),
            }
        ),
    };
    let hint = format!("compile the program as it was, with {}", trap.flag());
    Some(Unobservable { why, hint })
}
