//! The utilities of a study: which ones are selected ([`Selection`]), which of these can be run on
//! this machine, and which invocations pass them their inputs, even if they are in no list.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::list::extensions::extensions;
use super::list::{List, Listed, deny, installed};
use ddfuzz_exec::{
    AbandonWhen, Channel, Ended, ExecError, Freshness, Limits, Program, Sandbox, Target, Terminal,
    facts::TargetFacts, start,
};

/// A utility: a program that a study fuzzes, with the ways to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utility {
    /// Name of the utility: the one in the list, or the one that the user wrote.
    pub name: String,
    /// Position of the utility among all selected ones, from 0.
    pub place: u64,
    /// Debian package that contains the utility, or that the list names for it; `None` if unknown.
    pub package: Option<String>,
    /// Version of the utility's installed package; `None` if unknown.
    pub version: Option<String>,
    /// Path of the utility's program; `None` if it is not installed.
    pub path: Option<PathBuf>,
    /// Why the utility is not run; `None` if it is run.
    pub skip_reason: Option<SkipReason>,
    /// Whether the utility works only at a terminal. For a utility in no list, this is false until
    /// the study has tested it.
    pub interactive_only: bool,
    /// The ways to call the utility, one for each line of the list that names it. For a utility in
    /// no list, this is empty until the study has determined them.
    pub invocations: Vec<Invocation>,
    /// Number of runs of the utility that the user asks for (`--runs`); `None` if only a time
    /// limits them.
    pub runs: Option<u64>,
}

/// The reason why a utility is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The utility's program is not installed.
    Missing,
    /// The utility's program is setuid or setgid, and would behave differently without its
    /// privileges.
    Setuid,
    /// The utility could do harm, for the reason given.
    Denied(String),
    /// The utility's program does not start, for the reason given.
    NotStarting(String),
    /// The utility has no invocation with one of the channels (such as `stdin` or `pty`) that the
    /// user has chosen.
    NoInvocation,
}

impl SkipReason {
    /// Returns the label with which reports give the reason why the utility is not run.
    pub fn label(&self) -> &'static str {
        match self {
            SkipReason::Missing => "missing",
            SkipReason::Setuid => "setuid",
            SkipReason::Denied(_) => "denied",
            SkipReason::NotStarting(_) => "does-not-start",
            SkipReason::NoInvocation => "no-channel",
        }
    }

    /// Returns why the utility is not run, as a text that is shown to the user beside the label of
    /// the reason; `None` if the label says all.
    pub fn note(&self) -> Option<String> {
        match self {
            SkipReason::Denied(why) | SkipReason::NotStarting(why) => Some(why.clone()),
            SkipReason::Missing | SkipReason::Setuid | SkipReason::NoInvocation => None,
        }
    }
}

/// One way to call a utility: the channel by which the input reaches it, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The channel by which the input reaches the utility, such as stdin, a file or a terminal.
    pub channel: Channel,
    /// Arguments with which the utility is always called. `@@` stands for the path of the input
    /// file.
    pub args: Vec<OsString>,
    /// The pool of options, each of one or more words; a random selection of the options is added
    /// to the arguments.
    pub pool: Vec<Vec<OsString>>,
    /// Index in `args` at which the options drawn from the pool are inserted.
    pub pool_at: usize,
}

impl Invocation {
    /// Returns the name of the channel by which the input reaches the utility, as in the
    /// configuration lines of the studies: `stdin`, `file`, `cp NAME`, `two_files` or `pty`.
    pub fn name(&self) -> String {
        match &self.channel {
            Channel::Plain if self.takes_file() => "file".to_owned(),
            Channel::Plain => "stdin".to_owned(),
            Channel::Named(name) => format!("cp {}", name.0.to_string_lossy()),
            Channel::TwoFiles => "two_files".to_owned(),
            Channel::Terminal(_) => "pty".to_owned(),
        }
    }

    /// Checks whether the utility runs at a terminal, so that its input consists of keystrokes.
    pub fn is_terminal(&self) -> bool {
        matches!(self.channel, Channel::Terminal(_))
    }

    fn takes_file(&self) -> bool {
        let is_file = |arg: &OsString| arg.to_string_lossy().contains("@@");
        self.args.iter().any(is_file)
    }

    /// Returns all arguments of the invocation, and then all words of the options that may be
    /// drawn.
    pub fn words(&self) -> Vec<OsString> {
        let drawn = self.pool.iter().flatten();
        self.args.iter().chain(drawn).cloned().collect()
    }

    /// Returns the arguments of one call of the utility, including the options of the pool that
    /// have the indices `drawn`.
    pub fn args_with(&self, drawn: &[usize]) -> Vec<OsString> {
        let at = self.pool_at.min(self.args.len());
        let options = drawn.iter().filter_map(|option| self.pool.get(*option));
        let mut args = self.args[..at].to_vec();
        args.extend(options.flatten().cloned());
        args.extend_from_slice(&self.args[at..]);
        args
    }
}

/// The limits, the sandbox and the value of PATH with which all utilities of a study are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnvironment {
    /// Limits of time and memory of each run of a utility.
    pub limits: Limits,
    /// The sandbox in which the utilities of a study run; it may be none.
    pub sandbox: Sandbox,
    /// Value of the environment variable PATH in the runs of utilities.
    pub path: OsString,
    /// Whether runs that share a process also share the random numbers, the times and the process
    /// id that a utility reads before its input.
    pub freeze_start: bool,
    /// Conditions under which runs of utilities are abandoned, without a result.
    pub abandon_when: AbandonWhen,
}

impl RunEnvironment {
    /// Returns the target that runs `program` in an invocation of a utility. Its arguments include
    /// the options of the invocation's pool that have the indices `drawn`. It inherits no
    /// environment variables.
    pub fn target(&self, program: PathBuf, invocation: &Invocation, drawn: &[usize]) -> Target {
        let mut set = vec![
            ("PATH", self.path.clone()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm".into()),
        ];
        if self.sandbox.is_off() {
            // The working directory, a temporary one; a sandbox sets HOME itself.
            set.push(("HOME", ".".into()));
        }
        let env = set.into_iter().map(|(name, value)| (name.into(), value));
        Target {
            args: invocation.args_with(drawn),
            channel: invocation.channel.clone(),
            env: env.collect(),
            env_only: true,
            limits: self.limits,
            sandbox: self.sandbox,
            freeze_start: self.freeze_start,
            abandon_when: self.abandon_when.clone(),
            ..Target::new(Program::Path(program))
        }
    }
}

/// Input that is typed on stdin to test whether a program reads stdin: commands that end many
/// interactive programs.
const TYPED: &[u8] = b"q\nquit\nexit\n";

/// Chooses the ways to call a utility that no list names. Returns them, and whether a test run
/// shows that the utility works only at a terminal. If so, it is called only at a terminal;
/// otherwise, with the input on stdin, in a file, and in files with likely extensions.
pub(super) fn invocations(
    environment: &RunEnvironment,
    program: &Path,
) -> Result<(Vec<Invocation>, bool), ExecError> {
    let stdin = invocation(Channel::Plain, &[]);
    if is_interactive_only(environment, program, &stdin)? {
        let terminal = Channel::Terminal(Terminal::default());
        return Ok((vec![invocation(terminal, &[])], true));
    }
    let mut invocations = vec![stdin, invocation(Channel::Plain, &["@@"])];
    for extension in extensions(program) {
        let name = format!("input.{extension}");
        invocations.push(invocation(Channel::named(name), &["@@"]));
    }
    Ok((invocations, false))
}

fn invocation(channel: Channel, args: &[&str]) -> Invocation {
    Invocation {
        channel,
        args: args.iter().map(Into::into).collect(),
        pool: Vec::new(),
        pool_at: 0,
    }
}

/// Returns true if a program works only at a terminal: it uses terminal functions and, when run
/// with its input on stdin and without a terminal, fails without having read its input.
fn is_interactive_only(
    environment: &RunEnvironment,
    program: &Path,
    stdin: &Invocation,
) -> Result<bool, ExecError> {
    let target = environment.target(program.to_owned(), stdin, &[]);
    let facts = TargetFacts::of(&target)?;
    if facts.terminal_calls.is_empty() {
        return Ok(false);
    }
    let mut executor = start(&target, None, Freshness::Fresh)?.executor;
    let run = executor.run(TYPED)?;
    let fails = matches!(run.ended, Ended::Exit(status) if status != 0);
    Ok(fails && run.read == Some(0))
}

/// Which utilities the user asks for: by name, by package or all of a list, and which of them are
/// left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedUtilities {
    /// Names or paths of the utilities that the user selects; if both `names` and `packages` are
    /// empty, all utilities of the list are selected.
    pub names: Vec<String>,
    /// Debian packages; the user selects all programs of each.
    pub packages: Vec<String>,
    /// Whether all programs of installed packages are selected, also those in no list.
    pub unlisted: bool,
    /// Whether utilities that are not installed are left out.
    pub installed: bool,
    /// Names of utilities that the user leaves out.
    pub skip: Vec<String>,
    /// Names of utilities that are run although they could do harm.
    pub allow: Vec<String>,
}

impl RequestedUtilities {
    /// Returns this request, completed with `was`, the request of an earlier call: each part that
    /// is empty in this request is taken from `was`. Names, packages and `unlisted` are one part:
    /// they are taken from `was` only if this request gives none of them.
    pub fn or(mut self, was: RequestedUtilities) -> RequestedUtilities {
        if self.names.is_empty() && self.packages.is_empty() && !self.unlisted {
            (self.names, self.packages) = (was.names, was.packages);
            self.unlisted = was.unlisted;
        }
        self.installed |= was.installed;
        if self.skip.is_empty() {
            self.skip = was.skip;
        }
        if self.allow.is_empty() {
            self.allow = was.allow;
        }
        self
    }
}

/// Which utilities the user wants to study, and how they may be called.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// List of utilities with their invocations, from which the user selects.
    pub list: List,
    /// Which utilities of the list, and which others, the user asks for.
    pub requested: RequestedUtilities,
    /// Channels by which inputs may reach a utility (`stdin`, `file`, `cp`, `two_files`, `pty`);
    /// empty means all.
    pub channels: Vec<String>,
    /// Directories in which the programs of utilities are searched before others.
    pub path: Vec<PathBuf>,
}

impl Selection {
    /// Returns the selected utilities, each once; those that are not run have the reason. Each
    /// keeps its position among all names that the user requests: the positions of utilities that
    /// are left out or not installed stay unused. So positions are the same on every machine, if
    /// the user names utilities or a list.
    pub fn utilities(&self) -> Vec<Utility> {
        let mut seen = HashSet::new();
        let mut utilities = Vec::new();
        for name in self.names() {
            let place = seen.len() as u64;
            if !seen.insert(name.clone()) || self.requested.skip.contains(&name) {
                continue;
            }
            let utility = Utility {
                place,
                ..self.utility(&name)
            };
            if utility.path.is_some() || !self.requested.installed {
                utilities.push(utility);
            }
        }
        utilities
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.requested.names.clone();
        for package in &self.requested.packages {
            let listed = self
                .lines()
                .filter(|line| line.package.as_ref() == Some(package));
            names.extend(listed.map(|line| line.utility.clone()));
            let programs = installed::programs_of(package);
            names.extend(programs.iter().filter_map(|program| file_name(program)));
        }
        if self.requested.names.is_empty() && self.requested.packages.is_empty() {
            names.extend(self.lines().map(|line| line.utility.clone()));
        }
        if self.requested.unlisted {
            let programs = installed::installed();
            let programs = programs.iter();
            names.extend(programs.filter_map(|program| file_name(&program.path)));
        }
        names
    }

    /// Returns all valid lines of the list of utilities: those that are run first, then denied
    /// ones.
    fn lines(&self) -> impl Iterator<Item = &Listed> {
        let denied = self.list.skipped.iter().filter_map(|it| it.denied.as_ref());
        self.list.entries.iter().chain(denied)
    }

    fn utility(&self, name: &str) -> Utility {
        let lines: Vec<&Listed> = self.lines().filter(|line| line.utility == name).collect();
        let path = self.find(name);
        let package = path.as_deref().and_then(installed::package_of);
        let listed_as = lines.iter().find_map(|line| line.package.clone());
        let fits = |line: &&&Listed| {
            self.denial(name, path.as_deref(), line).is_none()
                && is_by(&line.invocation.name(), &self.channels)
        };
        let invocations: Vec<Invocation> = lines
            .iter()
            .filter(fits)
            .map(|line| line.invocation.clone())
            .collect();
        let interactive_only =
            !invocations.is_empty() && invocations.iter().all(Invocation::is_terminal);
        let skip_reason = match (
            self.refusal(name, path.as_deref(), &lines, &invocations),
            &path,
        ) {
            // Whether a denied program is installed does not matter.
            (Some(refusal), _) => Some(refusal),
            (None, None) => Some(SkipReason::Missing),
            (None, Some(path)) => is_privileged(path).then_some(SkipReason::Setuid),
        };
        Utility {
            name: name.to_owned(),
            place: 0,
            version: package.as_ref().map(|package| package.version.clone()),
            package: package.map(|package| package.name).or(listed_as),
            path,
            skip_reason,
            interactive_only,
            invocations,
            runs: None,
        }
    }

    /// Returns the reason not to run the utility `name` if no call of it may be run (`invocations`
    /// is empty): one of its calls in the lines `lines` of the list could do harm; or all of them
    /// use channels that the user has not chosen; or no line names the utility and it could do harm
    /// without arguments. `None` in all other cases. Does not check whether it is installed.
    fn refusal(
        &self,
        name: &str,
        path: Option<&Path>,
        lines: &[&Listed],
        invocations: &[Invocation],
    ) -> Option<SkipReason> {
        if !invocations.is_empty() {
            return None;
        }
        let denials = lines
            .iter()
            .filter_map(|line| self.denial(name, path, line));
        let bare = || self.denial_of(name, path, &[]);
        match denials.into_iter().next() {
            Some(why) => Some(SkipReason::Denied(why.to_owned())),
            None if !lines.is_empty() => Some(SkipReason::NoInvocation),
            None => bare().map(|why| SkipReason::Denied(why.to_owned())),
        }
    }

    fn denial(&self, name: &str, path: Option<&Path>, line: &Listed) -> Option<&'static str> {
        self.denial_of(name, path, &line.invocation.words())
    }

    /// Returns the reason why the utility `name` could do harm when it is called with the arguments
    /// `words`, judged by its name and by the name of the program that its `path` links to. `None`
    /// if it could do no harm, or if the user allows it.
    fn denial_of(
        &self,
        name: &str,
        path: Option<&Path>,
        words: &[OsString],
    ) -> Option<&'static str> {
        if self.requested.allow.iter().any(|allowed| allowed == name) {
            return None;
        }
        deny::reason(name, words).or_else(|| {
            let program = path?.canonicalize().ok()?;
            deny::reason_of_program(name, &file_name(&program)?, words)
        })
    }

    /// Finds the program of a utility by its name and returns its path; like a shell, searches
    /// directories in order, those of [`Selection::path`] first. `None` if it is not installed.
    fn find(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            let found = installed::find(name)?;
            return std::path::absolute(found).ok();
        }
        let mut folders = self.path.iter();
        folders
            .find_map(|folder| installed::find(folder.join(name).to_str()?))
            .or_else(|| installed::find(name))
    }
}

/// Returns true if the first word of `channel`, written as in lists (like `cp t.c`), is one of the
/// `requested` channels, or if no channels are requested; otherwise false.
pub(super) fn is_by(channel: &str, requested: &[String]) -> bool {
    let word = channel.split(' ').next().unwrap_or_default();
    requested.is_empty() || requested.iter().any(|requested| requested == word)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Checks whether a program is setuid or setgid.
fn is_privileged(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let facts = path.metadata();
    facts.is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_store::REFUSALS;

    #[test]
    fn the_labels_of_what_is_not_run_are_those_that_the_store_knows() {
        let all = [
            SkipReason::Missing,
            SkipReason::Setuid,
            SkipReason::Denied(String::new()),
            SkipReason::NotStarting(String::new()),
            SkipReason::NoInvocation,
        ];
        assert_eq!(all.map(|skip_reason| skip_reason.label()), REFUSALS);
    }

    #[test]
    fn the_position_of_a_utility_does_not_depend_on_others_that_are_left_out() {
        let names = ["no-such-utility", "ls", "no-such-utility", "sh"];
        let selection = Selection {
            requested: RequestedUtilities {
                names: names.map(str::to_owned).to_vec(),
                installed: true,
                skip: vec!["ls".to_owned()],
                ..RequestedUtilities::default()
            },
            path: vec!["/bin".into()],
            ..Selection::default()
        };
        let utilities = selection.utilities();
        let places: Vec<_> = utilities
            .iter()
            .map(|one| (&*one.name, one.place))
            .collect();
        assert_eq!(places, [("sh", 2)]);
    }

    #[test]
    fn a_utility_has_a_home_in_a_sandbox_and_outside() {
        let invocation = Invocation {
            channel: Channel::Plain,
            args: Vec::new(),
            pool: Vec::new(),
            pool_at: 0,
        };
        let home = |sandbox| {
            let environment = RunEnvironment {
                limits: Limits::default(),
                sandbox,
                path: "/bin".into(),
                freeze_start: false,
                abandon_when: AbandonWhen::default(),
            };
            let target = environment.target("/bin/cat".into(), &invocation, &[]);
            target.env.into_iter().find(|(name, _)| name == "HOME")
        };
        assert_eq!(home(Sandbox::Off), Some(("HOME".into(), ".".into())));
        // The sandbox itself sets it there.
        assert_eq!(home(Sandbox::On), None);
    }
}
