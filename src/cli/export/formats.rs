//! Output formats of `ddfuzz export` (`--as FORM`), and what each needs: the cargo-fuzz project of
//! the program, and paths relative to a package.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::group::ChosenGroup;
use crate::cli::Failure;
use crate::cli::cargo::project::{fuzz_binaries, nearest_fuzz_crate};
use crate::exec::facts::{DEBUG_ASSERTIONS, TargetFacts};
use crate::exec::{Channel, Ended, Program, Target, Traceable, Way, bundled};
use crate::report::export::{
    EntryFunction, FuzzProject, Input, InputSource, LinkedHarness, ProgramCall, Reproducer, base64,
    c_array, c_entry_test, c_program_test, hexdump, interestingness_test, rust_call_test,
    rust_fuzz_test, rust_program_test,
};
use crate::store::{Reader, hash_of};
use crate::triage::{Quick, Triager};

/// Number of times that a program is run on a reproducer, to see whether the program itself ends by
/// a crash. If it never does, the crash may be that of a process that it starts.
const STATUS_RUNS: usize = 3;

/// Values of `--as`: the format in which a reproducer is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Export a #[test] in Rust that calls a function (--call), a cargo-fuzz harness, or a program
    RustTest,
    /// Export a C program that exits with 0 if the bug is fixed, with 1 if it still fails, and with
    /// 2 if that cannot be told
    CTest,
    /// Export the input as an array in C
    CArray,
    /// Export the input as a hex dump: offsets, hex and text
    Hexdump,
    /// Export the input in base64
    Base64,
    /// Export an interestingness test: a script that reads the input from its argument, a file or
    /// stdin
    Script,
    /// Export an interestingness test for creduce and cvise: a script that reads the input from a
    /// file in the current directory
    Creduce,
}

impl Form {
    /// Returns the name of the output format, as a value of `--as`.
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

    /// Returns true if a file exported in this format is a script, and therefore executable.
    pub(super) fn is_script(self) -> bool {
        matches!(self, Form::Script | Form::Creduce)
    }
}

/// A request to export the reproducer of a crash group, with the options of the output format.
pub(super) struct ExportRequest<'a> {
    pub(super) reader: &'a Reader,
    pub(super) chosen: &'a ChosenGroup,
    /// Value of `--call`: the expression that the exported Rust test evaluates; `None` if not
    /// given.
    pub(super) call: Option<&'a str>,
    /// Directory of the cargo-fuzz project (`--fuzz-dir`); `None` if it is not given.
    pub(super) fuzz_dir: Option<&'a Path>,
    /// Directory of the Cargo package that a Rust test is written into; paths in the test are
    /// relative to it. `None` if the test is not written into a package.
    pub(super) package: Option<&'a Path>,
    /// Where the exported Rust test gets its input: inline in its text, or from a second file.
    pub(super) input: Input<'a>,
    /// File name of the exported C test, for the compiler command in its comment.
    pub(super) file: &'a str,
    /// Whether the program may be run, to see whether its exit status shows the crash. If false,
    /// the recorded crash is used to decide this.
    pub(super) may_run: bool,
}

impl ExportRequest<'_> {
    /// Generates the text of the exported file for the crash group in the given format.
    pub(super) fn text(&self, form: Form, group: &Reproducer) -> Result<Vec<u8>, Failure> {
        let text = match form {
            Form::RustTest => self.rust_test(group)?,
            Form::CTest => self.c_test(group)?,
            Form::CArray => c_array(group),
            Form::Hexdump => hexdump(&group.input),
            Form::Base64 => base64(&group.input),
            Form::Script => return self.script(InputSource::Anywhere),
            Form::Creduce => return self.script(InputSource::File),
        };
        Ok(text.into_bytes())
    }

    /// Generates the Rust `#[test]` for the crash group `group`. The test evaluates the expression
    /// of `--call` if one is given; else it calls the cargo-fuzz harness, if the target is one, and
    /// else it runs the program.
    pub(super) fn rust_test(&self, group: &Reproducer) -> Result<String, Failure> {
        if let Some(call) = self.call {
            return Ok(rust_call_test(group, self.input, call));
        }
        let target = self.chosen.target(self.reader)?;
        check_channel(&target)?;
        if let Some(Harness { dir, name }) = self.harness(&target)? {
            check_harness_call(&target)?;
            let project = FuzzProject {
                dir: &from_package(&dir, self.package),
                harness: &name,
            };
            return Ok(rust_fuzz_test(group, self.input, project, &target));
        }
        let (program, facts) = self.program(&target)?;
        self.check_status(&target, group)?;
        let called = ProgramCall {
            program: &from_package(&program, self.package),
            target: &target.with_main_arguments(),
            sanitizers: &self.sanitizers(&facts),
        };
        Ok(rust_program_test(group, self.input, &called))
    }

    /// Generates a C program that calls the harness's entry function if C code can be linked with
    /// the harness, and else runs the program.
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
                let linked = LinkedHarness {
                    function,
                    target: &target,
                    sanitizers: &self.sanitizers(&facts),
                    file: self.file,
                };
                return Ok(c_entry_test(group, linked));
            }
        }
        let (program, facts) = self.program(&target)?;
        self.check_status(&target, group)?;
        let called = ProgramCall {
            program: &program,
            target: &target.with_main_arguments(),
            sanitizers: &self.sanitizers(&facts),
        };
        Ok(c_program_test(group, &called, self.file))
    }

    fn script(&self, source: InputSource) -> Result<Vec<u8>, Failure> {
        let target = self.chosen.target(self.reader)?;
        let file = self.chosen.entry().reproducer();
        let name = file.file_name().unwrap_or(OsStr::new("input"));
        let ddfuzz = std::env::current_exe().unwrap_or_else(|_| "ddfuzz".into());
        let way = self.chosen.entry().crash.way;
        Ok(interestingness_test(
            source,
            name,
            &self.chosen.entry().crash,
            (&target, way),
            &ddfuzz,
        ))
    }

    /// Returns the cargo-fuzz harness from which the target was built; `None` if it was not built
    /// from one. Unless `--fuzz-dir` names the project, the program must contain libFuzzer, because
    /// another program may have the same name. Fails if the named project has no harness of this
    /// name.
    fn harness(&self, target: &Target) -> Result<Option<Harness>, Failure> {
        let facts = TargetFacts::of(target);
        if self.fuzz_dir.is_none() && facts.is_ok_and(|facts| !facts.libfuzzer) {
            return Ok(None);
        }
        match &target.program {
            Program::Path(path) => harness_of(path, self.fuzz_dir),
            Program::Bundled(name) => match self.fuzz_dir {
                Some(dir) => harness_of(Path::new(name), Some(dir)),
                None => Ok(None),
            },
        }
    }

    /// Returns the names of the sanitizers in the target program: those recorded with the crash,
    /// else those that `now`, facts about the present program file, shows.
    fn sanitizers(&self, now: &TargetFacts) -> Vec<String> {
        let known = &self.chosen.entry().crash.details.instrumentation;
        let known = known.clone().or_else(|| now.instrumentation());
        let mut sanitizers = known.unwrap_or_default();
        sanitizers.retain(|name| name != DEBUG_ASSERTIONS);
        sanitizers
    }

    /// Fails if the exported test would pass although the bug is still there: a process that the
    /// program starts crashes, but the program itself does not end by that crash, and the test
    /// looks at the program's own end.
    fn check_status(&self, target: &Target, group: &Reproducer) -> Result<(), Failure> {
        if !matches!(self.chosen.entry().crash.ended, Ended::Signal(_)) {
            return Ok(());
        }
        let unseen = || {
            Failure::usage(
                "a process that the program starts crashes, and the program does not end by that \
                 crash: an exported test would not see it",
            )
            .hint("`ddfuzz check` with the output directory sees it")
        };
        if !self.may_run {
            return match self.chosen.entry().crash.details.of_descendant {
                true => Err(unseen()),
                false => Ok(()),
            };
        }
        for _ in 0..STATUS_RUNS {
            let ended = Traceable::status_of(target, &group.input)?;
            if ended.is_crash(target.crash_exit) {
                return Ok(());
            }
        }
        let mut triager = Triager::of_target(target, Way::Command)?;
        match triager.key(&group.input)? {
            Quick::Crash { .. } => Err(unseen()),
            Quick::Ended(_) => Ok(()),
        }
    }

    /// Returns the path of the program of the target, and facts read from the program file. Fails
    /// if the program does not exist.
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

/// Fails unless the target gets its input on stdin or in a file of any name, since exported tests
/// cannot pass the input in other ways.
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

/// Fails unless cargo can call the cargo-fuzz harness as the target was called: with an environment
/// that is inherited, and with no arguments except flags of libFuzzer and the input.
fn check_harness_call(target: &Target) -> Result<(), Failure> {
    let is_flag = |arg: &OsString| {
        let arg = arg.to_str();
        arg.is_some_and(|arg| arg == "@@" || arg.starts_with('-') && arg.contains('='))
    };
    let what = if target.env_only {
        "an environment without inherited variables".to_owned()
    } else if let Some(arg) = target.args.iter().find(|arg| !is_flag(arg)) {
        format!("the argument {}", arg.display())
    } else {
        return Ok(());
    };
    let message = format!("an exported test cannot give the cargo-fuzz harness {what}");
    Err(Failure::usage(message).hint("use --as script, or the reproduce.sh of the group"))
}

pub(super) struct Harness {
    /// Absolute path of the directory with the `Cargo.toml` of the harness's cargo-fuzz project.
    pub(super) dir: PathBuf,
    pub(super) name: OsString,
}

/// What a directory's `Cargo.toml` says: whether it is that of a cargo-fuzz project, and if so,
/// whether the project has the harness that is looked for.
enum Manifest {
    WithBinary,
    Without,
    /// The directory has no `Cargo.toml` of a cargo-fuzz project.
    Other,
}

fn read_manifest(dir: &Path, name: &str) -> Manifest {
    match fuzz_binaries(dir) {
        None => Manifest::Other,
        Some(names) if names.iter().any(|known| known == name) => Manifest::WithBinary,
        Some(_) => Manifest::Without,
    }
}

/// Finds the cargo-fuzz harness from which `program` was built, by its name, and returns it. Looks
/// in the project at `asked` (`--fuzz-dir`) if that is given. Otherwise looks in a project above
/// the program, and, if cargo-fuzz seems to have built the program, in one at or above the working
/// directory. `None` if there is no such harness; fails if the project at `asked` has none.
pub(super) fn harness_of(program: &Path, asked: Option<&Path>) -> Result<Option<Harness>, Failure> {
    let Some(name) = program.file_name() else {
        return Ok(None);
    };
    let text = name.to_string_lossy();
    let of = |dir: &Path| Harness {
        dir: dir.to_owned(),
        name: name.to_owned(),
    };
    if let Some(asked) = asked {
        let dir = std::path::absolute(asked);
        let dir = dir.map_err(|error| Failure::file(asked, "finding", &error))?;
        let message = match read_manifest(&dir, &text) {
            Manifest::WithBinary => return Ok(Some(of(&dir))),
            Manifest::Without => format!("its Cargo.toml has no [[bin]] {text:?}"),
            Manifest::Other => "it has no Cargo.toml of a cargo-fuzz project".to_owned(),
        };
        return Err(Failure::usage(message)
            .path(asked)
            .hint("give the directory of the manifest that cargo-fuzz uses, often fuzz/"));
    }
    // <fuzz>/target/<triple>/release/NAME, or the same below the workspace that fuzz/ is in.
    let folders = program.ancestors().skip(1).take(6);
    for folder in folders {
        for dir in [folder.to_owned(), folder.join("fuzz")] {
            if let Manifest::WithBinary = read_manifest(&dir, &text) {
                return Ok(Some(of(&dir)));
            }
        }
    }
    // The target directory may be anywhere. Then it is the user who stands in the project.
    let here = std::env::current_dir().unwrap_or_default();
    let near = nearest_fuzz_crate(&here).filter(|_| is_of_cargo_fuzz(program));
    Ok(near
        .filter(|dir| matches!(read_manifest(dir, &text), Manifest::WithBinary))
        .map(|dir| of(&dir)))
}

/// Returns true if the path of a program ends with `<triple>/<profile>/NAME`, as those of programs
/// built by cargo-fuzz do; else false.
fn is_of_cargo_fuzz(program: &Path) -> bool {
    let mut above = program.ancestors().skip(1).filter_map(Path::file_name);
    let profile = above
        .next()
        .is_some_and(|name| name == "release" || name == "debug");
    profile
        && above
            .next()
            .is_some_and(|triple| triple.to_string_lossy().contains("-linux-"))
}

/// Returns the directory of the Cargo package that contains `folder`; `None` if there is none.
/// `folder` itself need not exist.
pub(super) fn package_of(folder: &Path) -> Option<PathBuf> {
    let folder = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|folder| folder.is_dir())?;
    let there = std::fs::canonicalize(there).ok()?;
    let is_package = |folder: &&Path| folder.join("Cargo.toml").is_file();
    there.ancestors().find(is_package).map(Path::to_owned)
}

/// Returns `path` relative to the directory `package`, if both are in one project: a directory
/// above both has a `Cargo.toml` or `.git`. Else returns `path` unchanged.
pub(super) fn from_package(path: &Path, package: Option<&Path>) -> PathBuf {
    let relative = package.and_then(|package| {
        // The last name is kept if it is a link: some programs do what it says.
        let folder = std::fs::canonicalize(crate::files::folder::parent(path)).ok()?;
        let whole = folder.join(path.file_name()?);
        let common = package
            .ancestors()
            .find(|folder| whole.starts_with(folder))?;
        let is_project =
            |folder: &Path| folder.join("Cargo.toml").is_file() || folder.join(".git").exists();
        // The project's root may lie above what both have in common.
        common.ancestors().find(|folder| is_project(folder))?;
        let up = package.strip_prefix(common).ok()?.components().count();
        let mut relative: PathBuf = std::iter::repeat_n("..", up).collect();
        relative.push(whole.strip_prefix(common).ok()?);
        Some(relative)
    });
    relative.unwrap_or_else(|| path.to_owned())
}
