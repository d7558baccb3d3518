//! The forms, and how each gets what it needs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::find::Chosen;
use super::fuzz_project::{self, Harness};
use super::relative::from_package;
use crate::cli::Failure;
use crate::exec::facts::{DEBUG_ASSERTIONS, TargetFacts};
use crate::exec::{Channel, Program, Target, bundled};
use crate::report::export::{
    Called, EntryFunction, FuzzProject, Input, Linked, Reproducer, Taking, base64, c_array,
    c_entry_test, c_program_test, hexdump, interestingness_test, rust_call_test, rust_fuzz_test,
    rust_program_test,
};
use crate::store::{Reader, hash_of};

/// What a reproducer becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A #[test] in Rust that calls a function (--call), a cargo-fuzz harness, or a program
    RustTest,
    /// A C program that exits with 0 if the bug is fixed, with 1 if it still fails, and with 2 if
    /// that cannot be told
    CTest,
    /// An array in C
    CArray,
    /// Offsets, hex and text
    Hexdump,
    /// Base64
    Base64,
    /// An interestingness test: a script that reads the input from its argument, a file or stdin
    Script,
    /// The same for creduce and cvise: it reads the file in the current directory
    Creduce,
}

impl Form {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Form::RustTest => "rust-test",
            Form::CTest => "c-test",
            Form::CArray => "c-array",
            Form::Hexdump => "hexdump",
            Form::Base64 => "base64",
            Form::Script => "script",
            Form::Creduce => "creduce",
        }
    }

    /// Whether it is to be executed.
    pub(super) fn is_script(self) -> bool {
        matches!(self, Form::Script | Form::Creduce)
    }
}

/// A group to be written in some form.
pub(super) struct Asked<'a> {
    /// Where it is kept.
    pub(super) reader: &'a Reader,
    /// The group.
    pub(super) chosen: &'a Chosen,
    /// The expression for a test of Rust.
    pub(super) call: Option<&'a str>,
    /// The cargo-fuzz project that the user names.
    pub(super) fuzz_dir: Option<&'a Path>,
    /// The package that a test of Rust goes to.
    pub(super) package: Option<&'a Path>,
    /// The input of a test of Rust.
    pub(super) input: Input<'a>,
    /// The name of the file that a test of C goes to.
    pub(super) file: &'a str,
}

impl Asked<'_> {
    /// The text.
    pub(super) fn text(&self, form: Form, group: &Reproducer) -> Result<Vec<u8>, Failure> {
        let text = match form {
            Form::RustTest => self.rust_test(group)?,
            Form::CTest => self.c_test(group)?,
            Form::CArray => c_array(group),
            Form::Hexdump => hexdump(&group.input),
            Form::Base64 => base64(&group.input),
            Form::Script => return self.script(Taking::Anywhere),
            Form::Creduce => return self.script(Taking::File),
        };
        Ok(text.into_bytes())
    }

    /// A `#[test]`: by the expression that is asked for, by the harness that the program is, else
    /// by the program.
    pub(super) fn rust_test(&self, group: &Reproducer) -> Result<String, Failure> {
        if let Some(call) = self.call {
            return Ok(rust_call_test(group, self.input, call));
        }
        let target = self.chosen.target(self.reader)?;
        check_channel(&target)?;
        if let Some(Harness { dir, name }) = self.harness(&target)? {
            let project = FuzzProject {
                dir: &from_package(&dir, self.package),
                harness: &name,
            };
            return Ok(rust_fuzz_test(group, self.input, project));
        }
        let (program, facts) = self.program(&target)?;
        let called = Called {
            program: &from_package(&program, self.package),
            target: &target.by_main(),
            sanitizers: &self.sanitizers(&facts),
        };
        Ok(rust_program_test(group, self.input, &called))
    }

    /// A program of C: by the entry function of a harness that C can be linked with, else by the
    /// program.
    fn c_test(&self, group: &Reproducer) -> Result<String, Failure> {
        let target = self.chosen.target(self.reader)?;
        check_channel(&target)?;
        let is_rust = self.harness(&target)?.is_some();
        let facts = TargetFacts::of(&target).unwrap_or_default();
        if !is_rust && facts.bundled.is_none() && !target.takes_file() {
            let function = match (facts.libfuzzer, facts.target_main) {
                (true, _) => Some(EntryFunction::LibFuzzer),
                (false, true) => Some(EntryFunction::TargetMain),
                (false, false) => None,
            };
            if let Some(function) = function {
                let linked = Linked {
                    function,
                    target: &target,
                    sanitizers: &self.sanitizers(&facts),
                    file: self.file,
                };
                return Ok(c_entry_test(group, linked));
            }
        }
        let (program, facts) = self.program(&target)?;
        let called = Called {
            program: &program,
            target: &target.by_main(),
            sanitizers: &self.sanitizers(&facts),
        };
        Ok(c_program_test(group, &called, self.file))
    }

    fn script(&self, taking: Taking) -> Result<Vec<u8>, Failure> {
        let target = self.chosen.target(self.reader)?;
        let file = self.chosen.entry().reproducer();
        let name = file.file_name().unwrap_or(OsStr::new("input"));
        let ddfuzz = std::env::current_exe().unwrap_or_else(|_| "ddfuzz".into());
        let way = self.chosen.entry().crash.way;
        Ok(interestingness_test(
            taking,
            name,
            &self.chosen.entry().crash,
            (&target, way),
            &ddfuzz,
        ))
    }

    /// The harness that the target is. A program of another package may have the same name: unless
    /// the project is named, it has to be libFuzzer's.
    fn harness(&self, target: &Target) -> Result<Option<Harness>, Failure> {
        let facts = TargetFacts::of(target);
        if self.fuzz_dir.is_none() && facts.is_ok_and(|facts| !facts.libfuzzer) {
            return Ok(None);
        }
        match &target.program {
            Program::Path(path) => fuzz_project::harness(path, self.fuzz_dir),
            Program::Bundled(name) => match self.fuzz_dir {
                Some(dir) => fuzz_project::harness(Path::new(name), Some(dir)),
                None => Ok(None),
            },
        }
    }

    /// The sanitizers of the program that crashed, as far as the record tells; else those of the
    /// program as it is now.
    fn sanitizers(&self, now: &TargetFacts) -> Vec<String> {
        let known = &self.chosen.entry().crash.details.instrumentation;
        let known = known.clone().or_else(|| now.instrumentation());
        let mut sanitizers = known.unwrap_or_default();
        sanitizers.retain(|name| name != DEBUG_ASSERTIONS);
        sanitizers
    }

    /// The program's file, which must be there, and its facts.
    fn program(&self, target: &Target) -> Result<(PathBuf, TargetFacts), Failure> {
        let path = match &target.program {
            Program::Path(path) => path.clone(),
            Program::Bundled(name) => {
                let bytes = bundled::program(name).unwrap_or_default();
                let root = std::path::absolute(self.reader.root());
                let root = root.unwrap_or_else(|_| self.reader.root().to_owned());
                root.join("bin").join(hash_of(bytes)).join(name)
            }
        };
        if !path.is_file() {
            let message = format!("the program {} no longer exists", path.display());
            return Err(Failure::usage(message).path(&path).hint(
                "build it again at that place; other forms (c-array, base64) do not need it",
            ));
        }
        Ok((path, TargetFacts::of(target).unwrap_or_default()))
    }
}

/// Tests that are exported give a program its input on stdin or in one file of any name.
fn check_channel(target: &Target) -> Result<(), Failure> {
    let channel = match &target.channel {
        Channel::Plain => return Ok(()),
        Channel::Named(_) => "in a file with a certain name",
        Channel::TwoFiles => "in two files",
        Channel::Terminal(_) => "at a terminal",
    };
    let message = format!("an exported test cannot pass the input {channel}");
    Err(Failure::usage(message).hint("use --as script, or the reproduce.sh of the group"))
}
