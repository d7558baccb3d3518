//! What a search for changes is about: the two versions, the failing program or crash, and the
//! recipe, which says how versions are built and tested.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::ChangesArgs;
use super::scripts::named_scripts;
use crate::changes::{
    Commit, CrashIdentity, Recipe, Repository, TestKind, default_build, is_modified, is_shallow,
    resolve,
};
use crate::cli::export::named_group;
use crate::cli::recorded_conditions::lacks_files;
use crate::cli::target::file_sandbox;
use crate::cli::{Failure, Output};
use crate::exec::{Channel, Program, Sandbox, Target};
use crate::minimize::log::{ChangesRecord, ContentHash, OsText};
use crate::report::text::shell_word;

/// Default limit on the elapsed time of building a version; it is later adapted to the times that
/// both versions took.
pub(super) const BUILD_TIME: Duration = Duration::from_secs(3600);
const TEST_TIME: Duration = Duration::from_secs(60);

/// The two versions that a search for changes compares: revisions of a git repository, or
/// directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// Two revisions, by name, of the git repository to which `folder` belongs: `old` works, `new`
    /// fails.
    Revisions {
        folder: PathBuf,
        old: String,
        new: String,
    },
    /// Two directories: `old` has the version that works, and `new` the version that fails.
    Directories { old: PathBuf, new: PathBuf },
}

/// What a search for changes works on: the two versions, the program that crashes and its input,
/// and, with `--group`, the crash to search for.
pub(super) struct Subject {
    pub versions: Versions,
    /// Path of the file with the input of the program that crashes; `None` if the program gets no
    /// input.
    pub input: Option<PathBuf>,
    pub input_bytes: Vec<u8>,
    /// The program that crashes, and its arguments; empty with `--run`, whose command tests each
    /// version.
    pub program: Vec<OsString>,
    /// The crash of the group that `--group` names, whose cause is searched for; `None` without
    /// that option.
    pub expected: Option<CrashIdentity>,
    conditions: Conditions,
}

/// The conditions under which versions are built and tested: those on the command line, and for all
/// others those under which the crash of `--group` was found.
struct Conditions {
    /// Environment variables to set; if a name occurs twice, the later value counts.
    env: Vec<(OsString, OsString)>,
    /// Exit status of the program that counts as a crash; `None` if no status does.
    crash_exit: Option<i32>,
    /// Limit on the CPU time of a test; `None` if it is derived from tests of both versions.
    time: Option<Duration>,
    /// Limit on the memory of each process, in bytes; `None` stands for the memory of the machine.
    memory: Option<u64>,
}

impl Versions {
    /// Reads the two versions from the words of the command line. Fails if they are neither a range
    /// `A..B` nor two directories.
    fn of(args: &ChangesArgs) -> Result<Versions, Failure> {
        let folder = match &args.repo {
            Some(repo) => absolute(repo)?,
            None => absolute(Path::new("."))?,
        };
        match &args.versions[..] {
            [old, new] => Versions::directories(args, [old, new].map(Path::new)),
            [range] => {
                let text = range.to_string_lossy();
                let hint = "give the version that works and the version that fails: A..B, such as \
                            v1.0..HEAD, or two directories";
                let (old, new) = match text.split_once("..") {
                    Some((_, new)) if new.starts_with('.') => {
                        let message = format!("{text} is not a range from one version to another");
                        return Err(Failure::usage(message).hint(hint));
                    }
                    Some((old, new)) => (old, new),
                    None => {
                        return Err(
                            Failure::usage(format!("{text} names one version only")).hint(hint)
                        );
                    }
                };
                let or_head = |revision: &str| {
                    if revision.is_empty() {
                        "HEAD"
                    } else {
                        revision
                    }
                    .to_owned()
                };
                Ok(Versions::Revisions {
                    folder,
                    old: or_head(old),
                    new: or_head(new),
                })
            }
            _ => Err(Failure::usage("more than two versions are given")),
        }
    }

    /// Makes the versions from the paths of two directories. Fails if one of the paths is not a
    /// directory, or if an option is given that fits only revisions of a repository.
    fn directories(args: &ChangesArgs, directories: [&Path; 2]) -> Result<Versions, Failure> {
        let unused = [
            ("--repo", args.repo.is_some()),
            ("--no-history", args.no_history),
        ];
        for directory in directories {
            if !directory.is_dir() {
                let message = format!("{} is not a directory", directory.display());
                return Err(Failure::usage(message)
                    .path(directory)
                    .hint("give two revisions as one word, A..B, or two directories"));
            }
        }
        if let Some((option, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!("{option} does not fit two directories");
            return Err(Failure::usage(message)
                .hint("leave it out, or give two revisions as one word, A..B"));
        }
        let [old, new] = directories;
        Ok(Versions::Directories {
            old: absolute(old)?,
            new: absolute(new)?,
        })
    }

    /// Creates a private git repository in `folder` that has both versions. Returns the repository
    /// and the commit ids of the old and the new version in it. If the output directory `out` is
    /// inside a version that is a directory, the version does not include it.
    pub fn open(&self, folder: &Path, out: &Path) -> Result<(Repository, String, String), Failure> {
        let opened = match self {
            Versions::Revisions {
                folder: source,
                old,
                new,
            } => {
                let (old, new) = (resolve(source, old)?, resolve(source, new)?);
                (Repository::borrowing(source, folder)?, old, new)
            }
            Versions::Directories { old, new } => {
                let out = std::fs::canonicalize(out).ok();
                let is_out = |version: &Path| std::fs::canonicalize(version).ok() == out;
                if out.is_some() && (is_out(old) || is_out(new)) {
                    let message = "the output directory is the directory of a version";
                    return Err(Failure::usage(message).hint(
                        "give another output directory with -o; it may be inside of this one",
                    ));
                }
                let repository = Repository::empty(folder, "sha1")?;
                let old = repository.import(old, "old", out.as_deref())?;
                let new = repository.import(new, "new", out.as_deref())?;
                (repository, old, new)
            }
        };
        Ok(opened)
    }

    /// Returns the commits from the old version (itself excluded) to the new one, oldest first; of
    /// a merge only the first parent is followed. `None` if the versions are directories, or if the
    /// old version is not among the ancestors of the new one that are reached by first parents.
    pub fn line(
        &self,
        repository: &Repository,
        old: &str,
        new: &str,
    ) -> Result<Option<Vec<Commit>>, Failure> {
        match self {
            Versions::Revisions { .. } => Ok(repository.line(old, new)?),
            Versions::Directories { .. } => Ok(None),
        }
    }

    /// Returns the name of the old or of the new version for messages: the revision as typed, or
    /// the path of the directory.
    pub fn shown(&self, is_old: bool) -> String {
        match (self, is_old) {
            (Versions::Revisions { old, .. }, true) => old.clone(),
            (Versions::Revisions { new, .. }, false) => new.clone(),
            (Versions::Directories { old, .. }, true) => old.display().to_string(),
            (Versions::Directories { new, .. }, false) => new.display().to_string(),
        }
    }

    /// Returns true if the new version lacks modifications that the user has made: the new version
    /// is the commit that is checked out, and tracked files differ from it. Else false, and always
    /// for directories.
    pub fn lack_modifications(&self) -> bool {
        let Versions::Revisions { folder, new, .. } = self else {
            return false;
        };
        let commit = |revision: &str| resolve(folder, revision).ok();
        commit(new) == commit("HEAD") && is_modified(folder).unwrap_or(false)
    }

    /// Returns the path of `program` relative to the working tree (of the repository) or the
    /// compared directory that contains it. `None` if none contains it.
    fn inside(&self, program: &Path) -> Option<PathBuf> {
        let tops: Vec<&Path> = match self {
            Versions::Revisions { folder, .. } => {
                let is_top = |folder: &&Path| folder.join(".git").exists();
                folder.ancestors().find(is_top).into_iter().collect()
            }
            Versions::Directories { old, new } => vec![old, new],
        };
        let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        tops.into_iter().find_map(|top| {
            let top = std::fs::canonicalize(top).ok()?;
            program.strip_prefix(top).ok().map(Path::to_owned)
        })
    }

    /// Returns true if the repository of the versions is a shallow clone, whose history is cut off;
    /// false for directories.
    pub fn are_shallow(&self) -> bool {
        matches!(self, Versions::Revisions { folder, .. } if is_shallow(folder))
    }
}

impl Subject {
    /// Collects from the command line what a search for changes works on: the versions, the input,
    /// and the crash group of `--group`. Fails if one of these cannot be read.
    pub fn of(args: &ChangesArgs, output: &Output) -> Result<Subject, Failure> {
        let versions = Versions::of(args)?;
        let mut subject = Subject {
            versions,
            input: None,
            input_bytes: Vec::new(),
            program: args.program.clone(),
            expected: None,
            conditions: Conditions {
                env: args.env.clone(),
                crash_exit: args.crash_exit,
                time: args.timeout,
                memory: args.memory,
            },
        };
        let input = match &args.group {
            Some(group) => Some(subject.read_group(group, args, output)?),
            None => args.input.clone(),
        };
        if let Some(input) = input {
            let path = absolute(&input)?;
            let read = std::fs::read(&path);
            subject.input_bytes =
                read.map_err(|error| Failure::file(&input, "reading the input", &error))?;
            subject.input = Some(path);
        }
        Ok(subject)
    }

    /// Returns a hint if the program is given by an absolute path to a file of the working tree, or
    /// of a directory that is compared, so that all versions would run the same program; else
    /// `None`.
    pub fn same_program_hint(&self) -> Option<String> {
        let program = self.program.first().map(Path::new)?;
        let inside = self.versions.inside(program)?;
        program.is_absolute().then(|| {
            format!(
                "{} is the same program for each version: give it by its path in the version after \
                 the build, {}",
                shell_word(program),
                shell_word(&Path::new(".").join(inside))
            )
        })
    }

    /// Takes over the conditions of a group's crash, found on the target `found`: environment, the
    /// exit status that counts as a crash, and for a hang or an out-of-memory failure the limit
    /// that it exceeds. Options on the command line take precedence. Fails if a search cannot run
    /// the program under some other condition of the crash, such as a terminal.
    fn take_conditions(
        &mut self,
        found: &Target,
        crash: &crate::triage::Crash,
    ) -> Result<(), Failure> {
        if let Some(what) = other_conditions(found) {
            let message =
                format!("the group was found with {what}, which no version can be run with");
            return Err(Failure::usage(message)
                .hint("give a command with --run that runs the program so, in place of --group"));
        }
        if let [program, args @ ..] = &self.program[..] {
            let mut now = Target::new(Program::Path(program.into()));
            now.args = args.to_vec();
            if lacks_files(found, &now) {
                let message = "the input of the group was given in a file (@@), and is not now";
                return Err(Failure::usage(message).hint("put @@ where the file is to stand"));
            }
        }
        let conditions = &mut self.conditions;
        conditions.env = [&found.env[..], &conditions.env].concat();
        conditions.crash_exit = conditions.crash_exit.or(found.crash_exit);
        match crash.class.0.as_str() {
            "hang" => conditions.time = conditions.time.or(Some(crash.limits.cpu)),
            "oom" => conditions.memory = conditions.memory.or(Some(crash.limits.memory)),
            _ => {}
        }
        Ok(())
    }

    /// Sets the crash of the group that `--group` names as the failure to search for, under the
    /// conditions in which it was found. If no program is given, also sets the program that the
    /// group records, and fails if this program is outside the repository. Returns the path of the
    /// group's reproducer.
    fn read_group(
        &mut self,
        group: &Path,
        args: &ChangesArgs,
        output: &Output,
    ) -> Result<PathBuf, Failure> {
        let (entry, target) = named_group(group, &args.out)?;
        self.expected = Some(CrashIdentity::from(&entry.crash));
        if self
            .expected
            .as_ref()
            .is_some_and(|expected| expected.stable.is_none())
        {
            output.say("warning: the crash of the group has no names of functions: each crash of its class counts");
        }
        if let Some(found) = &target {
            self.take_conditions(found, &entry.crash)?;
        }
        if self.program.is_empty() {
            let target = target.ok_or_else(|| no_program(None))?;
            let Program::Path(program) = &target.program else {
                return Err(no_program(None));
            };
            let inside = self.versions.inside(program);
            let inside = inside.ok_or_else(|| no_program(Some(program)))?;
            let program = Path::new(".").join(inside).into_os_string();
            output.say(&format!(
                "program: {}, as the group records it",
                shell_word(Path::new(&program))
            ));
            self.program = std::iter::once(program)
                .chain(target.args.clone())
                .collect();
        }
        Ok(entry.reproducer())
    }

    /// Makes the recipe, which says how versions are built and tested. If no build command is
    /// given, chooses one by the files of the version `new` and prints it; fails if no command
    /// fits.
    pub fn recipe(
        &self,
        args: &ChangesArgs,
        repository: &Repository,
        new: &str,
        output: &Output,
    ) -> Result<Recipe, Failure> {
        let sandbox = match args.sandbox {
            true => {
                file_sandbox(output, "builds that write to files", "omit --sandbox")?;
                Sandbox::On
            }
            false => Sandbox::Off,
        };
        let build = match (&args.build, &args.run) {
            (Some(build), _) => Some(build.clone()),
            (None, Some(_)) => None,
            (None, None) => match default_build(&repository.tree(new)?) {
                Some(build) => {
                    output.say(&format!("build: {build}"));
                    Some(build.to_owned())
                }
                None => {
                    let message = "no file of the version says how the program is built";
                    return Err(Failure::usage(message).hint(
                        "give the command with --build; --build true if nothing has to be built",
                    ));
                }
            },
        };
        let expected = self.expected.clone();
        let test = match &args.run {
            Some(run) => TestKind::Command {
                line: run.clone(),
                expect: args.expect.as_deref().map(TestKind::pattern).transpose()?,
            },
            None => TestKind::Program {
                program: self.program[0].clone(),
                is_inside: Arc::new(OnceLock::new()),
                args: self.program[1..].to_vec(),
                expected: Arc::new(expected.map_or_else(OnceLock::new, OnceLock::from)),
                crash_exit: self.conditions.crash_exit,
            },
        };
        let conditions = &self.conditions;
        Ok(Recipe {
            build,
            test,
            input: self.input_bytes.clone(),
            sandbox,
            env: conditions.env.clone(),
            build_time: args.build_timeout.unwrap_or(BUILD_TIME),
            test_time: conditions.time.unwrap_or(TEST_TIME),
            keep_build_time: args.build_timeout.is_some(),
            keep_test_time: conditions.time.is_some(),
            memory: (conditions.memory).unwrap_or_else(crate::changes::machine_memory),
        })
    }

    /// Makes the record of the search for changes for the first line of its log: repository or
    /// directories, the commit ids `old` and `new` of the two versions, and how they are built and
    /// tested. `history`: whether the search begins with whole commits.
    pub fn record(
        &self,
        args: &ChangesArgs,
        recipe: &Recipe,
        old: &str,
        new: &str,
        history: bool,
    ) -> ChangesRecord {
        let (repository, directories) = match &self.versions {
            Versions::Revisions { folder, .. } => (Some(OsText::from(folder)), None),
            Versions::Directories { old, new } => {
                (None, Some((OsText::from(old), OsText::from(new))))
            }
        };
        let stable = match &recipe.test {
            TestKind::Program { expected, .. } => {
                expected.get().and_then(|expected| expected.stable)
            }
            TestKind::Command { .. } => None,
        };
        ChangesRecord {
            difference: args.difference,
            repository,
            directories,
            old: old.to_owned(),
            new: new.to_owned(),
            history,
            build: recipe.build.clone(),
            run: args.run.clone(),
            expect: args.expect.clone(),
            stable: stable.map(|key| key.to_string()),
            given: self
                .input
                .as_ref()
                .map(|_| ContentHash::of(&self.input_bytes)),
            scripts: named_scripts(
                [&recipe.build, &args.run]
                    .into_iter()
                    .flatten()
                    .map(String::as_str),
            ),
        }
    }
}

/// Returns, in words, the first condition of the target `found` that a search for changes cannot
/// give to a program, such as a terminal or a working directory; `None` if there is none.
pub(super) fn other_conditions(found: &Target) -> Option<&'static str> {
    match &found.channel {
        Channel::Terminal(_) => return Some("a terminal (--terminal)"),
        Channel::Named(_) => return Some("a file of a certain name (--file-name)"),
        Channel::TwoFiles => return Some("two files (--two-files)"),
        Channel::Plain => {}
    }
    match (&found.cwd, found.env_only) {
        (Some(_), _) => Some("a working directory (--cwd)"),
        (None, true) => Some("an empty environment"),
        (None, false) => None,
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::file(path, "finding", &error))
}

fn no_program(program: Option<&Path>) -> Failure {
    let message = match program {
        Some(program) => format!(
            "the recorded program {} is in no version of the repository",
            program.display()
        ),
        None => "the group does not record a program that can be built".to_owned(),
    };
    Failure::usage(message)
        .hint("give the program after `--`, by its path in the version after the build")
}

/// Returns true if `expect`, the value of `--expect`, names this crash: by its class, or by at
/// least four first hex digits of its stable key (hash of function names) or major key (hash of
/// stack frames).
pub(super) fn is_expected(expect: &str, failure: &CrashIdentity) -> bool {
    let digits = expect
        .strip_prefix("stable:")
        .unwrap_or(expect)
        .to_ascii_lowercase();
    let begins = |key: String| digits.len() >= 4 && key.starts_with(&digits);
    failure.class == expect
        || failure.stable.is_some_and(|key| begins(key.to_string()))
        || begins(failure.major.to_string())
}
