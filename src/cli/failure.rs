//! Exit codes, and errors as users see them: what is wrong, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::results::absolute;
use crate::campaign::dictionary::DictionaryError;
use crate::campaign::{CampaignError, SeedError};
use crate::corpus::CleanError;
use crate::corpus::trim::TrimError;
use crate::exec::{ExecError, NotExecuted};
use crate::files::{FileError, folder};
use crate::minimize::log::LogError;
use crate::minimize::{CallbackError, MinimizeError, OracleError, VerifyError};
use crate::report::text::shell_word;
use crate::report::{ErrorBody, ErrorReport};
use crate::store::StoreError;

/// Exit codes of all `ddfuzz` commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Exit code for success: the command has done its work, and (for commands that look for
    /// crashes) found no crash.
    Done = 0,
    /// Exit code if crashes were found (`run`, `triage`, `revisit`, `watch`), or a check failed
    /// (`log replay`, `log verify`, `check`, the last check of `clean`).
    Found = 1,
    /// Exit code for wrong usage: an option, an input file or an output directory cannot be used.
    Usage = 2,
    /// Exit code if the baseline failed: the target does not start, or the given input does not
    /// crash it every time.
    Baseline = 3,
    /// Exit code if crashes were found, but only of groups that the user listed as known
    /// (`--known`, `--against`).
    Known = 4,
    /// Exit code for an internal error: a system call or a thread failed, or ddfuzz has a defect.
    Internal = 70,
    /// Exit code if the user interrupted the command; what was done so far is saved in the output
    /// directory or the log.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Hint for the user after an interrupted command that has saved its state: the same command with
/// `--resume` continues.
pub const CONTINUE: &str = "continue with the same command and --resume";

/// Explanation for the user of an input that fails each time when it is run alone, but not each
/// time when several workers make runs.
pub const DISTURBED: &str = "runs at the same time disturb each other (do they use a fixed port, a \
                             lock or a fixed file?)";

/// An error that ends a command: exit code, message, and optionally a path and a hint.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    report: ErrorReport,
}

impl Failure {
    /// Creates a failure without path and hint; `kind` is the error's short name in the JSON
    /// output.
    pub fn new(exit: Exit, kind: &str, message: impl ToString) -> Failure {
        let error = ErrorBody {
            kind: kind.to_owned(),
            message: message.to_string(),
            path: None,
            hint: None,
        };
        Failure {
            exit,
            report: ErrorReport { error },
        }
    }

    /// Creates a failure for wrong usage of the command line (exit code 2).
    pub fn usage(message: impl ToString) -> Failure {
        Failure::new(Exit::Usage, "usage", message)
    }

    /// Creates a failure for a file that cannot be read or written; `doing` is the attempted
    /// operation, such as "reading".
    pub fn file(path: &Path, doing: &str, error: &io::Error) -> Failure {
        Failure::new(
            Exit::Usage,
            "file",
            format!("{doing} {}: {error}", path.display()),
        )
        .path(path)
        .hint_of(path, error.kind())
    }

    /// Creates a failure for the output file at `path`, which cannot be written because of `error`.
    /// If the disk is full, the failure has the same exit code and name as for a file of an output
    /// directory.
    pub fn unwritten(path: &Path, error: FileError) -> Failure {
        match error.is_full() {
            true => Failure::from(error),
            false => Failure::new(Exit::Usage, "output", error),
        }
        .path(path)
    }

    /// Creates a failure for an output file that exists already and is not overwritten; `hint`
    /// tells the user what to do.
    pub fn exists(path: &Path, hint: &str) -> Failure {
        let message = format!("{} exists already", path.display());
        Failure::new(Exit::Usage, "exists", message)
            .path(path)
            .hint(hint)
    }

    /// Creates a failure for a command that the user has stopped (exit code 130).
    pub fn interrupted() -> Failure {
        Failure::new(Exit::Interrupted, "interrupted", "interrupted")
    }

    /// Creates a failure for a panic of ddfuzz with the payload `panic` (exit code 70).
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> Failure {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = format!(
            "ddfuzz has panicked, by a defect of its own: {}",
            text.unwrap_or("no message")
        );
        Failure::new(Exit::Internal, "internal", message)
            .hint("what was saved so far stays: repeat the command")
    }

    /// Returns the short name of the kind of error, as printed in the JSON output.
    pub fn kind(&self) -> &str {
        &self.report.error.kind
    }

    pub fn message(&self) -> &str {
        &self.report.error.message
    }

    /// Returns the failure with `path` as the path that it is about. If the message does not
    /// contain the path, the path is put in front of the message.
    pub fn path(mut self, path: &Path) -> Failure {
        let error = &mut self.report.error;
        let shown = path.display().to_string();
        if !error.message.contains(&shown) {
            error.message = format!("{shown}: {}", error.message);
        }
        error.path = Some(absolute(path));
        self
    }

    /// Creates a failure for a minimization that cannot be resumed, because of `error` in its log
    /// at `path`.
    pub fn unresumable(error: LogError, path: &Path) -> Failure {
        let is_damage = error.is_damage();
        let failure = Failure::from(error).path(path);
        match is_damage {
            true => failure.hint("start again: omit --resume and add --force"),
            false => failure,
        }
    }

    /// Returns the failure with a hint that names the first part of `path` that does not exist, a
    /// directory or the file. Returns it unchanged if `path` exists.
    pub fn hint_where_missing(self, path: &Path) -> Failure {
        let absolute = absolute(path);
        let is_missing = |path: &&Path| matches!(path.try_exists(), Ok(false));
        let Some(missing) = absolute.ancestors().take_while(is_missing).last() else {
            return self;
        };
        match (missing.parent(), missing.file_name()) {
            (Some(folder), Some(name)) => self.hint(format!(
                "there is no {} in {}: check the path (-h shows what is expected there)",
                name.display(),
                folder.display()
            )),
            _ => self,
        }
    }

    /// Returns the failure with a hint about what to do after the system has refused an operation
    /// on `path` with an error of the kind `kind`. Returns the failure unchanged if there is no
    /// hint for this kind.
    pub fn hint_of(self, path: &Path, kind: io::ErrorKind) -> Failure {
        match kind {
            io::ErrorKind::NotFound => self.hint_where_missing(path),
            io::ErrorKind::PermissionDenied => {
                let seen = |path: &Path| path.symlink_metadata().map(drop);
                self.hint(hint_where_refused(path, &seen))
            }
            io::ErrorKind::IsADirectory => self.hint("give a file in it"),
            io::ErrorKind::NotADirectory => {
                self.hint("a part of the path is a file, not a directory: check the path")
            }
            io::ErrorKind::InvalidFilename => self.hint("give a shorter name"),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                self.hint(FileError::FREE_SPACE)
            }
            _ => self,
        }
    }

    /// Returns the failure with a hint: a sentence about what the user can do, which is printed
    /// after the message.
    pub fn hint(mut self, hint: impl ToString) -> Failure {
        self.report.error.hint = Some(hint.to_string());
        self
    }

    /// Returns the failure, with `hint` as its hint if it has none yet.
    pub fn or_hint(self, hint: &str) -> Failure {
        match self.report.error.hint {
            Some(_) => self,
            None => self.hint(hint),
        }
    }

    /// Returns the failure with `advice` put in front of its hint, or as its hint if it has none.
    /// Returns the failure unchanged if `advice` is `None`.
    pub fn advise_first(self, advice: Option<String>) -> Failure {
        match (&self.report.error.hint, advice) {
            (_, None) => self,
            (None, Some(advice)) => self.hint(advice),
            (Some(hint), Some(advice)) => {
                let hint = format!("{advice}; else {hint}");
                self.hint(hint)
            }
        }
    }

    /// Adapts the failure of a command that has the option `--resume`, and returns it: if its hint
    /// is to repeat the command, `with --resume` is appended.
    pub fn of_resumable(self) -> Failure {
        match &self.report.error.hint {
            Some(hint) if hint.ends_with("repeat the command") => {
                let hint = format!("{hint} with --resume");
                self.hint(hint)
            }
            _ => self,
        }
    }

    /// Adapts the failure of a command that is not continued with `--resume`, and returns it: if
    /// its hint is to continue with `--resume`, that advice is replaced by `how`.
    pub fn continued_by(self, how: &str) -> Failure {
        match &self.report.error.hint {
            Some(hint) if hint.contains(CONTINUE) => {
                let hint = hint.replace(CONTINUE, how);
                self.hint(hint)
            }
            _ => self,
        }
    }

    /// Returns the error report that is printed as JSON with `--json`.
    pub fn report(&self) -> &ErrorReport {
        &self.report
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = &self.report.error;
        write!(f, "error: {}", error.message)?;
        match &error.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Returns the path of the program that an execution error is about; `None` if the error names no
/// program.
fn program_of(error: &ExecError) -> Option<PathBuf> {
    match error {
        ExecError::Missing { path }
        | ExecError::NotExecutable { path, .. }
        | ExecError::RootOnly { path, .. }
        | ExecError::WayUnfit { path, .. }
        | ExecError::Server { path, .. } => Some(path.clone()),
        ExecError::UnknownBundled { .. } | ExecError::Abandoned | ExecError::System { .. } => None,
    }
}

/// Returns the hint for an operation on `path` that the system does not allow this user. `seen`
/// looks at a path (`lstat`); it fails if nothing is there, or if this user may not enter one of
/// the directories above.
fn hint_where_refused(path: &Path, seen: &dyn Fn(&Path) -> io::Result<()>) -> String {
    let is_closed = |path: &Path| {
        let error = seen(path).err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    if seen(path).is_ok() {
        return format!(
            "this user may not do that: give another path, or change the permissions (`ls -ld {}` \
             shows them)",
            shell_word(path)
        );
    }
    let mut folder = folder::parent(path);
    if !is_closed(path) {
        return format!(
            "this user may not write to {}: give another place (-o, if the command has it), or \
             change the permissions",
            folder.display()
        );
    }
    while is_closed(folder) && folder::parent(folder) != folder {
        folder = folder::parent(folder);
    }
    format!(
        "this user may not enter the directory {}: give another path, or change the permissions (`ls \
         -ld {}` shows them)",
        folder.display(),
        shell_word(folder)
    )
}

/// Returns the hint for a program that cannot be executed for the reason `why`.
fn hint_of_not_executable(why: &NotExecuted) -> &'static str {
    match why {
        NotExecuted::Library(_) => {
            "install the library, or name its directory: --env LD_LIBRARY_PATH=DIRECTORY"
        }
        NotExecuted::CarriageReturn(_) => {
            "remove the carriage returns from the script: sed -i 's/\\r$//' FILE"
        }
        NotExecuted::RelativeInterpreter(_) => {
            "write its absolute path in that line, or give the directory by --cwd"
        }
        NotExecuted::Other(_) => "give an executable program",
    }
}

/// Hint where a bundled target is unknown.
const LISTED: &str = "`ddfuzz run` without a program lists them";

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Failure {
        let baseline = |kind, hint| (Exit::Baseline, kind, hint);
        let (exit, kind, hint) = match &error {
            ExecError::Missing { .. } => baseline(
                "program-missing",
                "check the name, or give the program after `--`",
            ),
            ExecError::NotExecutable { why, .. } => {
                baseline("program-not-executable", hint_of_not_executable(why))
            }
            ExecError::Abandoned => return Failure::interrupted().hint(CONTINUE),
            ExecError::UnknownBundled { .. } => (Exit::Usage, "unknown-target", LISTED),
            ExecError::RootOnly { is_cwd: true, .. } => baseline(
                "root-only",
                "give --cwd another directory, which everybody can enter, such as a copy below \
                 /var/tmp, or do not run ddfuzz as root",
            ),
            ExecError::RootOnly { .. } => baseline(
                "root-only",
                "give everybody access (chmod o+rx for the program, o+x for its directories), copy it \
                 to a place like /usr/local/bin, or do not run ddfuzz as root",
            ),
            ExecError::WayUnfit { .. } => {
                baseline("way-unfit", "omit --exec, or use --exec command")
            }
            ExecError::Server { .. } => baseline(
                "server",
                "a program that kills its parent process or its process group (kill, killpg) ends the \
                 server, which is no crash: leave such calls out of the build that is tested, or try \
                 another way with --exec",
            ),
            ExecError::System { .. } => (
                Exit::Internal,
                "system",
                "check the permissions and limits that the system error names",
            ),
        };
        let failure = Failure::new(exit, kind, &error).hint(hint);
        // A name without a slash is looked for in PATH only.
        if let ExecError::Missing { path } = &error
            && path.components().count() == 1
        {
            let name = path.display();
            return match path.is_file() {
                true => failure.path(path).hint(format!(
                    "to run the program in this directory, write ./{name}"
                )),
                false => failure.hint(format!(
                    "no directory of PATH has it; a program elsewhere is named by its path, like \
                     ./{name}"
                )),
            };
        }
        match program_of(&error) {
            Some(path) => failure.path(&path),
            None => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let failure = Failure::new(Exit::Usage, error.kind(), &error).path(error.path());
        match (error.hint(), &error) {
            (Some(hint), _) => failure.hint(hint),
            (None, StoreError::File(file)) => failure.hint_of(file.path(), file.io().kind()),
            (None, _) => failure.hint_where_missing(error.path()),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        Failure::from(StoreError::from(error))
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        match &error {
            LogError::Disagrees { .. } => Failure::new(Exit::Found, "log", &error),
            LogError::Io { path, source, .. } => match source.kind() {
                kind @ (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                    Failure::new(Exit::Usage, "disk-full", &error).hint_of(path, kind)
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    Failure::new(Exit::Usage, "read-only", &error).hint("give a writable place")
                }
                kind => Failure::new(Exit::Usage, "log", &error).hint_of(path, kind),
            }
            .path(path),
            LogError::Mismatch { what } => {
                let again = "start again: omit --resume and add --force";
                Failure::new(Exit::Usage, "log", &error).hint(match *what {
                    "build of the program" => format!("to minimize with the new build, {again}"),
                    "structure" => format!("omit --grammar, or {again}"),
                    _ => format!("give the input and options of the earlier command, or {again}"),
                })
            }
            _ => Failure::new(Exit::Usage, "log", &error).hint(
                "give a log.jsonl of an output directory, or the INPUT.min.log.jsonl of ddfuzz min",
            ),
        }
    }
}

impl From<MinimizeError> for Failure {
    fn from(error: MinimizeError) -> Failure {
        match error {
            MinimizeError::NotFailing { .. } => Failure::new(Exit::Baseline, "not-failing", &error)
                .hint(
                    "give an input that crashes the target every time, also without randomized addresses \
                     (`setarch -R PROGRAM`); a build with -fsanitize=address shows more of the crashes that \
                     depend on addresses",
                ),
            MinimizeError::Alternating { .. } => {
                Failure::new(Exit::Baseline, "not-reproducible", &error).hint(
                    "make the test give the same outcome for the same input, independent of earlier calls",
                )
            }
            MinimizeError::NotPassing { .. } => {
                Failure::new(Exit::Baseline, "not-passing", &error).hint(
                    "`ddfuzz diff PASSING FAILING` starts from a passing input that you give; --invert \
                     searches for what prevents the failure",
                )
            }
            MinimizeError::Interrupted { .. } => {
                Failure::new(Exit::Interrupted, "interrupted", &error).hint(CONTINUE)
            }
            MinimizeError::UnknownSearch(_) | MinimizeError::UnknownStructure(_) => {
                Failure::usage(&error)
            }
            MinimizeError::Log(error) => error.into(),
            MinimizeError::Oracle(error) => error.into(),
            MinimizeError::Callback { what, source } => not_kept(what, source),
        }
    }
}

impl From<TrimError> for Failure {
    fn from(error: TrimError) -> Failure {
        match error {
            TrimError::Exec(error) => Failure::from(error),
            TrimError::Minimize(error) => Failure::from(error),
            TrimError::File(error) => Failure::from(error),
            TrimError::NoCoverage { .. } => Failure::new(Exit::Baseline, "coverage", &error)
                .hint("build it with coverage, or use another --exec"),
            TrimError::Interrupted => Failure::new(Exit::Interrupted, "interrupted", &error),
            TrimError::Callback(source) => not_kept("a trimmed file", source),
        }
    }
}

impl From<OracleError> for Failure {
    fn from(error: OracleError) -> Failure {
        let message = error.to_string();
        match error {
            OracleError::Exec(error) => error.into(),
            OracleError::Failed { .. } => Failure::new(Exit::Baseline, "oracle", message),
            OracleError::TestChanged { path } | OracleError::TestGone { path } => {
                Failure::new(Exit::Baseline, "test-changed", message)
                    .path(&path)
                    .hint(format!("restore it, and {CONTINUE}"))
            }
        }
    }
}

/// Converts the error of a callback, which was to store a file during a minimization, to a failure,
/// with a hint if the disk is full. `what`: what the file holds, in words.
fn not_kept(what: &str, source: CallbackError) -> Failure {
    let source = match source.downcast::<StoreError>() {
        Ok(error) => return Failure::from(*error),
        Err(source) => source,
    };
    match source.downcast::<FileError>() {
        Ok(error) => Failure::from(*error),
        Err(source) => Failure::new(
            Exit::Usage,
            "output",
            format!("{what} could not be stored: {source}"),
        )
        .hint("free some space, or give another output directory, and repeat the command"),
    }
}

impl Failure {
    /// Converts an error of `ddfuzz log verify` to a failure; `log` is the path of the minimization
    /// log.
    pub fn of_verifying(error: VerifyError, log: &Path) -> Failure {
        match error {
            VerifyError::Replay(error) => Failure::from(error).path(log),
            VerifyError::Unfinished => Failure::new(Exit::Found, "unfinished", &error).path(log),
            VerifyError::Oracle(error) => error.into(),
        }
    }
}

impl From<SeedError> for Failure {
    fn from(error: SeedError) -> Failure {
        Failure::usage(&error)
            .path(&error.path)
            .hint_where_missing(&error.path)
    }
}

impl From<DictionaryError> for Failure {
    fn from(error: DictionaryError) -> Failure {
        let (DictionaryError::Unread { path, .. } | DictionaryError::Line { path, .. }) = &error;
        Failure::usage(&error).path(path).hint_where_missing(path)
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Failure {
        match error {
            CampaignError::Exec(error) => error.into(),
            CampaignError::Store(error) => error.into(),
            CampaignError::Minimize(error) => error.into(),
            CampaignError::OtherTarget { .. } => Failure::usage(&error),
            CampaignError::NoThread { .. } | CampaignError::Broken => {
                Failure::new(Exit::Internal, "minimization", &error)
            }
            CampaignError::MissingSeeds { .. } => Failure::usage(&error)
                .hint("give the seeds of its start with --seeds, or omit --resume to start a new campaign"),
            CampaignError::OtherSeeds => Failure::usage(&error)
                .hint("give the same --seeds, or omit --resume to start a new campaign"),
            CampaignError::NoWatch => Failure::usage(&error).hint(
                "continue it with `ddfuzz run --resume`, or, of a cargo-fuzz project, with `cargo \
                 ddfuzz run TARGET --engine libafl --resume`; omit --resume to start a new campaign \
                 there",
            ),
            CampaignError::NoRun => Failure::usage(&error).hint(
                "continue it with `ddfuzz watch --resume`, or, of a cargo-fuzz project, with `cargo \
                 ddfuzz run TARGET --engine libfuzzer --resume`; omit --resume to start a new \
                 campaign there",
            ),
            CampaignError::OtherDictionary => Failure::usage(&error)
                .hint("give the same --dict, or omit --resume to start a new campaign"),
            CampaignError::OtherLengths { was, .. } => {
                Failure::usage(&error).hint(format!("resume it with --max-len {was}"))
            }
            CampaignError::NotJoined { .. } => Failure::new(Exit::Usage, "network", error).hint(
                "start a campaign there with --broker; give the address of this end of the tunnel \
                 (ssh -L PORT:127.0.0.1:PORT HOST)",
            ),
            CampaignError::System { ref source, .. }
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                Failure::new(Exit::Usage, "network", error)
                    .hint("give another port, or stop the program that listens there")
            }
            CampaignError::System { .. } | CampaignError::Network(_) => {
                Failure::new(Exit::Internal, "system", error)
            }
            CampaignError::Fuzzer { hint, .. } => {
                Failure::new(Exit::Baseline, "fuzzer", error).hint(hint)
            }
            CampaignError::Worker(_) => Failure::new(Exit::Baseline, "worker", error)
                .hint("`ddfuzz doctor -- PROGRAM` checks the machine and the program"),
        }
    }
}

impl From<CleanError> for Failure {
    fn from(error: CleanError) -> Failure {
        match error {
            CleanError::Exec(error) => error.into(),
            CleanError::Store(error) => error.into(),
            CleanError::Campaign(error) => error.into(),
            CleanError::Trim(error) => of_trimming(error),
            CleanError::NotListed(ref listed) => Failure::new(Exit::Usage, "file", &error)
                .path(&listed.path)
                .hint_where_missing(&listed.path),
            CleanError::Journal { .. } => {
                Failure::new(Exit::Usage, "journal", &error).hint("continue with the same command")
            }
            CleanError::Empty { .. } => Failure::new(Exit::Found, "empty", &error)
                .hint("the corpus is unchanged; -v shows how its inputs are run"),
            CleanError::Changed { ref path } => Failure::new(Exit::Usage, "changed", &error)
                .path(path)
                .hint("run the same command again"),
            // Such a cleanup is repeated, so that this is no end of one.
            CleanError::LacksCoverage(_) => Failure::new(Exit::Internal, "coverage", &error),
            CleanError::Occupied { ref path } => Failure::new(Exit::Usage, "exists", &error)
                .path(path)
                .hint("give another output directory with -o"),
            CleanError::Interrupted => {
                Failure::interrupted().hint("continue with the same command")
            }
        }
    }
}

fn of_trimming(error: TrimError) -> Failure {
    match error {
        TrimError::NoCoverage { .. } => {
            Failure::new(Exit::Baseline, "no-coverage", &error).hint("use --trim off")
        }
        TrimError::Interrupted => Failure::new(Exit::Interrupted, "interrupted", &error)
            .hint("continue with the same command"),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_entered_is_told_apart_from_what_may_not_be_written() {
        let seen = |path: &Path| {
            let closed = path.starts_with("a/closed") && path != Path::new("a/closed");
            Err(match closed {
                true => io::ErrorKind::PermissionDenied.into(),
                false if path == Path::new("a/file") => return Ok(()),
                false => io::ErrorKind::NotFound.into(),
            })
        };
        let hint = |path: &str| hint_where_refused(Path::new(path), &seen);
        assert!(hint("a/closed/b/file").contains("may not enter the directory a/closed:"));
        assert!(hint("a/new").contains("may not write to a:"));
        assert!(hint("a/file").contains("may not do that"));
    }
}
