//! The utilities of a study, and the ways by which their inputs reach them, also of those that are
//! in no list.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::list::extensions::extensions;
use ddfuzz_exec::facts::TargetFacts;
use ddfuzz_exec::{
    Channel, Ended, ExecError, Freshness, Limits, Program, Sandbox, Target, Terminal, start,
};

/// A utility to be studied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utility {
    /// What the list, or the user, calls it.
    pub name: String,
    /// Its place in the whole list, from 0.
    pub place: u64,
    /// The package that it is of.
    pub package: Option<String>,
    /// The package's version.
    pub version: Option<String>,
    /// The program; `None` where it is missing.
    pub path: Option<PathBuf>,
    /// Why it is not run, where it is not.
    pub skip_reason: Option<SkipReason>,
    /// Whether it works at a terminal only.
    pub interactive_only: bool,
    /// How its inputs reach it; none where it is in no list.
    pub invocations: Vec<Invocation>,
    /// Its runs in this count; `None` where a time bounds them.
    pub runs: Option<u64>,
}

/// Why a utility is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// There is no such program.
    Missing,
    /// It is setuid or setgid: it would not be the same program without its privileges.
    Setuid,
    /// It could do harm, for this reason.
    Denied(String),
    /// It does not start, for this reason.
    NotStarting(String),
    /// Nothing is left of it by the filters.
    NoInvocation,
}

impl SkipReason {
    /// The label in reports.
    pub fn label(&self) -> &'static str {
        match self {
            SkipReason::Missing => "missing",
            SkipReason::Setuid => "setuid",
            SkipReason::Denied(_) => "denied",
            SkipReason::NotStarting(_) => "does-not-start",
            SkipReason::NoInvocation => "no-channel",
        }
    }

    /// More about it, for people.
    pub fn note(&self) -> Option<String> {
        match self {
            SkipReason::Denied(why) | SkipReason::NotStarting(why) => Some(why.clone()),
            SkipReason::Missing | SkipReason::Setuid | SkipReason::NoInvocation => None,
        }
    }
}

/// One way in which inputs reach a utility: its channel, and the rest of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The channel.
    pub channel: Channel,
    /// Arguments that are always there; `@@` where a file goes.
    pub args: Vec<OsString>,
    /// Options, each of some words, that are drawn by chance.
    pub pool: Vec<Vec<OsString>>,
    /// Where in the arguments those drawn go.
    pub pool_at: usize,
}

impl Invocation {
    /// Its name, as the configuration lines of the studies have it.
    pub fn name(&self) -> String {
        match &self.channel {
            Channel::Plain if self.takes_file() => "file".to_owned(),
            Channel::Plain => "stdin".to_owned(),
            Channel::Named(name) => format!("cp {}", name.0.to_string_lossy()),
            Channel::TwoFiles => "two_files".to_owned(),
            Channel::Terminal(_) => "pty".to_owned(),
        }
    }

    /// Whether the input is keystrokes.
    pub fn is_terminal(&self) -> bool {
        matches!(self.channel, Channel::Terminal(_))
    }

    fn takes_file(&self) -> bool {
        let is_file = |arg: &OsString| arg.to_string_lossy().contains("@@");
        self.args.iter().any(is_file)
    }

    /// The arguments with the options of these indices.
    pub fn args_with(&self, drawn: &[usize]) -> Vec<OsString> {
        let at = self.pool_at.min(self.args.len());
        let options = drawn.iter().filter_map(|option| self.pool.get(*option));
        let mut args = self.args[..at].to_vec();
        args.extend(options.flatten().cloned());
        args.extend_from_slice(&self.args[at..]);
        args
    }
}

/// What all utilities are run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnvironment {
    /// Limits on each run.
    pub limits: Limits,
    /// Whether they are held back from the machine.
    pub sandbox: Sandbox,
    /// The variable PATH.
    pub path: OsString,
}

impl RunEnvironment {
    /// The target that `program` is by this invocation, with the options of these indices: nothing is
    /// inherited.
    pub fn target(&self, program: PathBuf, invocation: &Invocation, drawn: &[usize]) -> Target {
        let mut set = vec![
            ("PATH", self.path.clone()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm".into()),
        ];
        if self.sandbox.is_off() {
            // The scratch directory, in which it runs; in a sandbox it is that anyway, by its path.
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
            ..Target::new(Program::Path(program))
        }
    }
}

/// What somebody would type who wants to be rid of a program: one that reads its stdin reads this.
const TYPED: &[u8] = b"q\nquit\nexit\n";

/// The invocations of a utility that is in no list, and whether it works at a terminal only.
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

/// Whether a program calls what only terminals understand, and without one ends in failure, with
/// nothing read.
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
            };
            let target = environment.target("/bin/cat".into(), &invocation, &[]);
            target.env.into_iter().find(|(name, _)| name == "HOME")
        };
        assert_eq!(home(Sandbox::Off), Some(("HOME".into(), ".".into())));
        // The sandbox itself sets it there.
        assert_eq!(home(Sandbox::On), None);
    }
}
