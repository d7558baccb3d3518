//! Builds and tests versions of the program in a directory, by shell commands or by running the
//! program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{
    Ended, Executor, Limits, Program, Sandbox, Target, Way, find_program, start_shell,
};
use ddfuzz_minimize::log::{CheckLine, What};
use ddfuzz_minimize::{CutOff, Process};
use ddfuzz_model::files::{shell, space};
use ddfuzz_triage::{Crash, Triager, Verdict};

use crate::ChangesError;
use crate::messages::BuildMessages;
use crate::recipe::{CrashIdentity, Recipe, TestKind};
use crate::repository::Repository;
use crate::tree::Tree;
use crate::worktree::Worktree;

/// Maximum number of bytes that are read from the end of the output of a build or test.
const MOST_OUTPUT: u64 = 4 << 20;
/// Maximum number of lines that messages show from the end of the output of a build or test.
const SHOWN_LINES: usize = 12;
/// Limit on the size of a file that a build or test writes, in bytes; so large that only faulty
/// programs reach it.
const FILE_SIZE: u64 = 1 << 40;
/// Limit on the number of processes of a build or test; so large that only faulty programs reach
/// it.
const PROCESSES: u32 = 4096;
/// Number of bytes: if fewer are free on the disk, a failed build or test is blamed on the full
/// disk.
const LEAST_SPACE: u64 = 1 << 20;
/// Extension of the name of the file, next to the version's directory, to which builds write their
/// output.
const BUILD: &str = "build";
/// Exit status by which a test command says that it cannot tell whether the version is good
/// (UNRESOLVED).
const CANNOT_TELL: i32 = 125;
/// Lowest exit status of a test command that counts as broken: it ends the search, as in `git
/// bisect run`.
const BROKEN: i32 = 128;

/// The result of building and testing a version.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The outcome of the version's test; `None` if the version does not build.
    pub outcome: Option<Outcome>,
    /// The identifiers and places that the compiler's messages name; empty if the build did not
    /// fail.
    pub messages: BuildMessages,
    /// The last lines of output: of the build, if it failed, else of the test command; empty if the
    /// test runs the program and looks at its crash.
    pub output: String,
    /// How the build or the test ended, in a few words, such as `the test ended with exit 1`.
    pub what: String,
    /// Number of builds that were run for the version, successful or not: 0 if it was already
    /// built, or if there is no build command; more than 1 if another version had to be built
    /// first, as the base of this build, or if a build did not make the program to be tested.
    pub builds: u64,
    /// Whether the build or the test was ended because it exceeded its time limit.
    pub timed_out: bool,
    /// Wall time of writing the version's files to the disk, building it and testing it.
    pub took: Duration,
    /// Wall time of writing the version's files to the disk and building it; 0 if the build failed,
    /// or none was needed.
    pub build_took: Duration,
    /// The crash of the program that the test ran; `None` if it did not crash, or the test is a
    /// shell command.
    pub failure: Option<CrashIdentity>,
    /// Whether the program that the test ran lies in the version's directory; false if the test is
    /// a shell command.
    pub is_inside: bool,
}

impl Report {
    /// Makes the log line of the check `what`, whose build and test ended as this report says.
    /// `slowest` are the wall times of the slowest build and of the slowest test so far.
    pub(crate) fn check_line(&self, what: What, slowest: Option<[Duration; 2]>) -> CheckLine {
        let micros = |time: Duration| time.as_micros().try_into().unwrap_or(u64::MAX);
        CheckLine {
            what,
            outcome: self.outcome.unwrap_or(Outcome::Unresolved),
            us: micros(self.took),
            cpu_us: None,
            read: None,
            slowest_us: slowest.map(|times| times.map(micros)),
            minor: None,
            cut_off: self.timed_out.then_some(CutOff::Time),
            process: Process::Own,
            slip: None,
            missed: 0,
            passing: false,
        }
    }
}

/// What is in the directory of a workbench when the build of a version begins, beside the version's
/// files: results of any earlier builds, nothing, or results of the build of one certain version.
#[derive(Clone, Debug)]
pub enum BuildBase {
    /// The results of earlier builds, of whatever versions.
    Any,
    /// Nothing: the directory is emptied.
    Empty,
    /// The results of the build of this version, and of no other. If there is no copy of them, this
    /// version is built first, in the emptied directory.
    Version(Arc<Tree>),
}

/// Builds and tests one version of the program after another, in its own directory, where the
/// results of a build are kept for the next version. The directory is not a git worktree; the
/// user's repository is only read.
pub struct Workbench {
    recipe: Recipe,
    worktree: Worktree,
    build: Option<Shell>,
    test: Option<Shell>,
    /// The key (hash of the files) of the version whose build is in the directory; `None` if no
    /// build succeeded since the files last changed.
    built: Option<[u8; 32]>,
}

impl Workbench {
    /// Creates a workbench that builds and tests as `recipe` says in the directory `root`, which is
    /// created with the first version.
    pub fn new(recipe: Recipe, root: PathBuf) -> Workbench {
        Workbench {
            worktree: Worktree::new(root, recipe.sandbox),
            recipe,
            build: None,
            test: None,
            built: None,
        }
    }

    /// Sets the limits for all later builds (`build`, wall time) and tests (`test`, CPU time) of
    /// this workbench.
    pub fn limit(&mut self, build: Duration, test: Duration) {
        if (self.recipe.build_time, self.recipe.test_time) != (build, test) {
            (self.recipe.build_time, self.recipe.test_time) = (build, test);
            (self.build, self.test) = (None, None);
        }
    }

    /// Writes the files of a version into the directory, builds and tests it, and returns the
    /// report. A version whose build is already in the directory is only tested, unless `base`
    /// demands another content of the directory before the build.
    ///
    /// # Errors
    ///
    /// If files cannot be written, the disk is full, a command cannot be started, or a test ends
    /// with a status or signal that ends the search.
    pub fn run(
        &mut self,
        tree: &Tree,
        key: [u8; 32],
        base: &BuildBase,
        repository: &Repository,
    ) -> Result<Report, ChangesError> {
        let begin = Instant::now();
        let mut report = Report::default();
        if let BuildBase::Empty = base {
            self.built = None;
            self.worktree.discard();
        }
        if let BuildBase::Version(on) = base {
            self.built = None;
            let is_restored = self.worktree.restore_build(on)?;
            if !is_restored && self.recipe.build.is_some() {
                let failed = self.make(on, repository, &mut report.builds)?;
                if let Some(failed) = failed {
                    return Ok(Report {
                        builds: report.builds,
                        took: begin.elapsed(),
                        ..failed
                    });
                }
            }
        }
        if self.built != Some(key) {
            self.built = None;
            if let BuildBase::Any = base {
                self.worktree.restore_nearest(tree)?;
            }
            if let Some(failed) = self.make(tree, repository, &mut report.builds)? {
                return Ok(Report {
                    builds: report.builds,
                    took: begin.elapsed(),
                    ..failed
                });
            }
            report.build_took = begin.elapsed();
            self.built = Some(key);
        }
        let tested = self.test()?;
        // A test may itself build, or write into the directory.
        self.worktree.note_build();
        if report.builds > 0 {
            self.worktree.keep_copy()?;
        }
        Ok(Report {
            builds: report.builds,
            build_took: report.build_took,
            took: begin.elapsed(),
            ..tested
        })
    }

    /// Writes the files of the version `tree` into the directory, and builds it. The program that
    /// the test runs is removed before the build, so that the program of another version is never
    /// tested. If an incremental build does not make this program again, the version is built once
    /// more, in the emptied directory. Adds the number of builds to `builds`. Returns a report if
    /// the build fails; `None` if it succeeds, or there is no build command.
    fn make(
        &mut self,
        tree: &Tree,
        repository: &Repository,
        builds: &mut u64,
    ) -> Result<Option<Report>, ChangesError> {
        let is_anew = self.worktree.update(tree, repository)?;
        if self.recipe.build.is_none() {
            return Ok(None);
        }
        *builds += 1;
        let TestKind::Program {
            program, is_inside, ..
        } = &self.recipe.test
        else {
            return self.build();
        };
        let (program, is_outside) = (program.clone(), is_inside.get() == Some(&false));
        self.worktree.remove_made(&program, tree)?;
        let failed = self.build()?;
        let is_made = program_in(self.worktree.root(), &program, !is_outside).is_some();
        if is_anew || failed.is_some() || is_made {
            return Ok(failed);
        }
        self.worktree.discard();
        self.worktree.update(tree, repository)?;
        *builds += 1;
        self.build()
    }

    /// Runs the build command on the version in the workbench's directory. Returns a report if the
    /// build fails; `None` if it succeeds, or there is no build command.
    fn build(&mut self) -> Result<Option<Report>, ChangesError> {
        let Some(line) = self.recipe.build.clone() else {
            return Ok(None);
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let limits = Limits {
            cpu: self.recipe.build_time.saturating_mul(cores),
            wall: self.recipe.build_time,
            ..self.limits()
        };
        let shell = match &mut self.build {
            Some(shell) => shell,
            none => none.insert(Shell::start(
                &line,
                &self.worktree,
                BUILD,
                limits,
                &self.recipe,
            )?),
        };
        let ended = shell.run(b"")?;
        self.worktree.note_build();
        if ended == Ended::Exit(0) {
            return Ok(None);
        }
        let output = shell.output();
        self.check_space(&output)?;
        let stopped = matches!(
            ended,
            Ended::Timeout | Ended::OutOfMemory | Ended::Signal(_)
        );
        if stopped {
            // It may have left half-written files.
            self.worktree.discard();
        }
        Ok(Some(Report {
            outcome: None,
            messages: BuildMessages::parse(&output),
            output: tail(&output),
            what: format!("the build ended with {ended}"),
            timed_out: ended == Ended::Timeout,
            ..Report::default()
        }))
    }

    /// Returns an error if a build or test that printed `output` has probably failed because the
    /// disk is full, which says nothing about the version.
    fn check_space(&self, output: &[u8]) -> Result<(), ChangesError> {
        let folder = self.worktree.root();
        let is_full = space::free(folder).is_some_and(|free| free < LEAST_SPACE)
            || String::from_utf8_lossy(output).contains("No space left on device");
        match is_full {
            true => Err(ChangesError::DiskFull {
                folder: folder.to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            memory: self.recipe.memory,
            file_size: FILE_SIZE,
            processes: PROCESSES,
            ..Limits::with_cpu(self.recipe.test_time)
        }
    }

    fn test(&mut self) -> Result<Report, ChangesError> {
        match self.recipe.test.clone() {
            TestKind::Command { line, expect } => self.test_by_command(&line, expect.as_ref()),
            TestKind::Program {
                program,
                is_inside,
                args,
                expected,
                crash_exit,
            } => {
                let root = self.worktree.root().to_owned();
                let only_inside = is_inside.get() == Some(&true);
                let Some(path) = program_in(&root, &program, only_inside) else {
                    return Ok(Report {
                        outcome: Some(Outcome::Unresolved),
                        what: format!("there is no program {} after the build", program.display()),
                        ..Report::default()
                    });
                };
                let is_inside = path.starts_with(&root);
                let mut target = Target::new(Program::Path(path));
                (target.args, target.env, target.cwd) = (args, self.recipe.env.clone(), Some(root));
                (target.crash_exit, target.sandbox) = (crash_exit, self.recipe.sandbox);
                target.limits = Limits::with_cpu(self.recipe.test_time);
                target.limits.memory = self.recipe.memory;
                let verdict =
                    Triager::of_target(&target, Way::Command)?.examine(&self.recipe.input)?;
                Ok(Report {
                    is_inside,
                    ..judge_crash(verdict, expected.get())
                })
            }
        }
    }

    fn test_by_command(
        &mut self,
        line: &str,
        expect: Option<&regex::bytes::Regex>,
    ) -> Result<Report, ChangesError> {
        let limits = self.limits();
        let shell = match &mut self.test {
            Some(shell) => shell,
            none => none.insert(Shell::start(
                line,
                &self.worktree,
                "test",
                limits,
                &self.recipe,
            )?),
        };
        let ended = shell.run(&self.recipe.input)?;
        let output = shell.output();
        if ended != Ended::Exit(0) {
            self.check_space(&output)?;
        }
        let outcome = match ended {
            Ended::Exit(0) => Outcome::Pass,
            Ended::Exit(CANNOT_TELL) | Ended::Timeout | Ended::OutOfMemory => Outcome::Unresolved,
            Ended::Exit(status) if status < BROKEN => match expect {
                Some(expect) if !expect.is_match(&output) => Outcome::Unresolved,
                _ => Outcome::Fail,
            },
            Ended::Exit(_) | Ended::Signal(_) => {
                return Err(ChangesError::TestBroken {
                    ended: ended.to_string(),
                    output: tail(&output),
                });
            }
        };
        let unmatched = outcome == Outcome::Unresolved
            && matches!(ended, Ended::Exit(status) if status != CANNOT_TELL);
        let what = match unmatched {
            true => format!("the test ended with {ended}, and its output does not match --expect"),
            false => format!("the test ended with {ended}"),
        };
        Ok(Report {
            outcome: Some(outcome),
            output: tail(&output),
            what,
            timed_out: ended == Ended::Timeout,
            ..Report::default()
        })
    }
}

/// Environment variables that name the directory into which Cargo builds.
const TARGET_DIRS: [&str; 2] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"];

/// Folders in which Debian and Fedora install links with the names of compilers that run ccache.
const CCACHE: [&str; 2] = ["/usr/lib/ccache", "/usr/lib64/ccache"];

/// Returns the environment variables of a build: those of the user, preceded by variables that make
/// compilers use the caches ccache and sccache, if these are installed. In a sandbox, only those of
/// the user, as a build in it can neither write to a cache nor reach its server.
fn with_compiler_caches(recipe: &Recipe) -> Vec<(OsString, OsString)> {
    let mut all = Vec::new();
    if recipe.sandbox == Sandbox::On {
        return recipe.env.clone();
    }
    if let Some(names) = CCACHE
        .into_iter()
        .map(Path::new)
        .find(|names| names.is_dir())
    {
        let mut path = names.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        all.push(("PATH".into(), path));
    }
    if std::env::var_os("RUSTC_WRAPPER").is_none() && find_program(Path::new("sccache")).is_ok() {
        all.push(("RUSTC_WRAPPER".into(), "sccache".into()));
    }
    all.extend(recipe.env.iter().cloned());
    all
}

/// Converts the verdict on a run of the program to the report of a test. The crash `expected` is
/// FAIL, a different crash is UNRESOLVED, and no crash is PASS; if `expected` is `None`, each crash
/// is FAIL. A run that reaches a limit is UNRESOLVED, unless reaching it is the crash `expected`;
/// the report also says whether it was the time limit.
fn judge_crash(verdict: Verdict, expected: Option<&CrashIdentity>) -> Report {
    let ended = match &verdict {
        Verdict::Crash(crash) => crash.ended,
        Verdict::Flaky { ended, .. } => *ended,
    };
    let of = |outcome, what: String, failure| Report {
        outcome: Some(outcome),
        what,
        failure,
        timed_out: ended == Ended::Timeout && outcome == Outcome::Unresolved,
        ..Report::default()
    };
    let crash: Box<Crash> = match verdict {
        Verdict::Crash(crash) => crash,
        Verdict::Flaky {
            ended: ended @ (Ended::Timeout | Ended::OutOfMemory),
            ..
        } => {
            return of(
                Outcome::Unresolved,
                format!("the program ended with {ended}"),
                None,
            );
        }
        Verdict::Flaky { ended, .. } => {
            return of(
                Outcome::Pass,
                format!("the program ended with {ended}"),
                None,
            );
        }
    };
    let failure = CrashIdentity::from(crash.as_ref());
    let outcome = match expected {
        Some(expected) if !expected.is(&crash) => Outcome::Unresolved,
        _ => Outcome::Fail,
    };
    let what = match outcome {
        Outcome::Fail => format!("the program crashed ({})", crash.class),
        _ => format!("the program crashed in another way ({})", crash.class),
    };
    of(outcome, what, Some(failure))
}

/// Returns the path of the program that a test runs: `program` as a path in the version's directory
/// `root`, as an absolute path, or, unless `only_inside` is set, as a name in PATH; `None` if there
/// is no such program. A relative path that the version lacks is not looked for in the current
/// directory, where the program of another version may be.
fn program_in(root: &Path, program: &OsStr, only_inside: bool) -> Option<PathBuf> {
    let inside = root.join(program);
    let is_name = !program.as_bytes().contains(&b'/');
    match inside.is_file() {
        true => find_program(&inside).ok(),
        false if is_name && !only_inside => find_program(Path::new(program)).ok(),
        false => None,
    }
}

/// Returns the last lines of the output of a build or test, at most `SHOWN_LINES`; blank lines are
/// left out.
fn tail(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// A shell command that is run repeatedly in a version's directory, under a supervisor and with
/// limits; its output goes to a file.
struct Shell {
    executor: Box<dyn Executor>,
    output: File,
}

impl Shell {
    /// Prepares the shell command `line` to be run in the directory of `worktree`. Its output goes
    /// to a file next to this directory, with the extension `name`. If `name` is `build`, compiler
    /// caches are used.
    fn start(
        line: &str,
        worktree: &Worktree,
        name: &str,
        limits: Limits,
        recipe: &Recipe,
    ) -> Result<Shell, ChangesError> {
        let root = worktree.root();
        let path = root.with_extension(name);
        let output = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(ChangesError::at("creating", &path))?;
        let handed = output
            .try_clone()
            .map_err(ChangesError::at("opening", &path))?;
        // A command that asks git for its version must not find the repository around the output
        // directory, whose index git would refresh.
        let mut script = b"unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX".to_vec();
        // By these, Cargo would use one directory for all versions.
        let is_given = |name: &str| recipe.env.iter().any(|(given, _)| given == name);
        for name in TARGET_DIRS.into_iter().filter(|name| !is_given(name)) {
            script.push(b' ');
            script.extend(name.as_bytes());
        }
        script.extend(b"\nexport GIT_CEILING_DIRECTORIES=");
        script.extend(shell::quoted(
            root.parent().unwrap_or(root).as_os_str().as_bytes(),
        ));
        // Unless it is in a sandbox, a build may have removed its directory.
        script.extend(b"\ncd ");
        script.extend(shell::quoted(root.as_os_str().as_bytes()));
        script.extend(b" || exit 250\n");
        script.extend(line.as_bytes());
        let mut target = Target::new(Program::Path("/bin/sh".into()));
        target.args = vec!["-c".into(), OsString::from_vec(script)];
        target.cwd = Some(root.to_owned());
        target.sandbox = recipe.sandbox;
        target.limits = limits;
        target.env = match name {
            BUILD => with_compiler_caches(recipe),
            _ => recipe.env.clone(),
        };
        Ok(Shell {
            executor: start_shell(&target, handed)?,
            output,
        })
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, ChangesError> {
        // A file that cannot be emptied shows older messages, too.
        let _ = self.output.set_len(0);
        Ok(self.executor.run(input)?.ended)
    }

    /// Returns what the last run of the command printed, at most its last `MOST_OUTPUT` bytes.
    fn output(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut file = &self.output;
        let mut read = || -> std::io::Result<()> {
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(MOST_OUTPUT)))?;
            file.take(MOST_OUTPUT).read_to_end(&mut text)?;
            Ok(())
        };
        // What could be read is shown.
        let _ = read();
        text
    }
}
