//! Which utilities a study is of, and which of them can be run here.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::list::{List, Listed, ListedChannel, deny, installed};
use super::utility::{Invocation, SkipReason, Utility};
use ddfuzz_exec::{Channel, Terminal};
use ddfuzz_model::files::Base64;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The list.
    pub list: List,
    /// Utilities by name or path; without these and `packages` all of the list.
    pub names: Vec<String>,
    /// Packages all of whose programs are asked for.
    pub packages: Vec<String>,
    /// All programs of installed packages besides.
    pub unlisted: bool,
    /// Not those that are missing here.
    pub installed: bool,
    /// Not those of these names.
    pub skip: Vec<String>,
    /// Those of these names although they are denied.
    pub allow: Vec<String>,
    /// By these channels only (`stdin`, `file`, `cp`, `two_files`, `pty`); by all where empty.
    pub channels: Vec<String>,
    /// Where utilities are looked for that are not named by path.
    pub path: Vec<PathBuf>,
}

impl Selection {
    /// The utilities, each with its place.
    pub fn utilities(&self) -> Vec<Utility> {
        let mut seen = HashSet::new();
        let mut utilities = Vec::new();
        for name in self.wanted() {
            if self.skip.contains(&name) || !seen.insert(name.clone()) {
                continue;
            }
            let utility = self.utility(&name);
            if utility.path.is_some() || !self.installed {
                utilities.push(utility);
            }
        }
        for (place, utility) in utilities.iter_mut().enumerate() {
            utility.place = place as u64;
        }
        utilities
    }

    fn wanted(&self) -> Vec<String> {
        let mut wanted = self.names.clone();
        for package in &self.packages {
            let listed = self
                .lines()
                .filter(|line| line.package.as_ref() == Some(package));
            wanted.extend(listed.map(|line| line.utility.clone()));
            let programs = installed::programs_of(package);
            wanted.extend(programs.iter().filter_map(|program| file_name(program)));
        }
        if self.names.is_empty() && self.packages.is_empty() {
            wanted.extend(self.lines().map(|line| line.utility.clone()));
        }
        if self.unlisted {
            let programs = installed::installed();
            let names = programs
                .iter()
                .filter_map(|program| file_name(&program.path));
            wanted.extend(names);
        }
        wanted
    }

    /// All lines of the list that are understood, those that are denied included.
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
                && is_by(&line.channel.name(), &self.channels)
        };
        let invocations: Vec<Invocation> = lines
            .iter()
            .filter(fits)
            .map(|line| invocation(line))
            .collect();
        let interactive_only =
            !invocations.is_empty() && invocations.iter().all(Invocation::is_terminal);
        let skip_reason = match (
            self.refusal(name, path.as_deref(), &lines, &invocations),
            &path,
        ) {
            // Of what would not be run anyway, it does not matter whether it is there.
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

    /// Why nothing of the utility is run, wherever it is.
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
        self.denial_of(name, path, &line.words())
    }

    /// By its name, and by that of the program that it stands for: alternatives, and links of the
    /// user's own, may have another one.
    fn denial_of(
        &self,
        name: &str,
        path: Option<&Path>,
        words: &[OsString],
    ) -> Option<&'static str> {
        if self.allow.iter().any(|allowed| allowed == name) {
            return None;
        }
        deny::reason(name, words).or_else(|| {
            let program = path?.canonicalize().ok()?;
            deny::reason_of_program(name, &file_name(&program)?, words)
        })
    }

    /// The program of a name: in the given folders first, as a shell would have it.
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

/// Whether a channel, as lists have it, is one of those asked for; all are where there are none.
pub(super) fn is_by(channel: &str, wanted: &[String]) -> bool {
    let word = channel.split(' ').next().unwrap_or_default();
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == word)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Whether a program runs with more rights than who starts it.
fn is_privileged(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let facts = path.metadata();
    facts.is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0)
}

fn invocation(line: &Listed) -> Invocation {
    Invocation {
        channel: match &line.channel {
            ListedChannel::Stdin | ListedChannel::File => Channel::Plain,
            ListedChannel::Copied(name) => Channel::named(name),
            ListedChannel::TwoFiles => Channel::TwoFiles,
            ListedChannel::Terminal { ending } => Channel::Terminal(Terminal {
                ending: Base64(ending.clone()),
                ..Terminal::default()
            }),
        },
        args: line.args.clone(),
        pool: line.pool.clone(),
        pool_at: line.pool_at,
    }
}
