//! Recognizes groups of crashes that come back: `ddfuzz check` stores for each group the commit of
//! the program's repository in which it was fixed or failed, and reports a group that was fixed in
//! an earlier check and fails again.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::subject::other_conditions;
use crate::changes::{is_ancestor, is_modified, resolve};
use crate::cli::Output;
use crate::exec::{Program, Target};
use crate::files::{Journal, OsText};
use crate::report::text::shell_word;
use crate::report::{CameBack, CheckResult, Status};
use crate::store::Kind;

/// Name of the file in the output directory that lists the results of earlier calls of `ddfuzz
/// check`.
const CHECKS: &str = "checks.jsonl";

/// A line of `checks.jsonl`: whether `ddfuzz check` found a crash group fixed in a certain commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Checked {
    /// First 12 hex digits of the major key, which identifies the checked crash group.
    major: String,
    /// Whether the check found the crash group fixed; false if it still failed in the same way.
    fixed: bool,
    /// Absolute path of the git repository that contains the checked program.
    repository: OsText,
    /// Id of the commit that was checked out in the program's git repository during the check.
    commit: String,
}

/// Records in `checks.jsonl` of the output directory `out` which groups were fixed and which failed
/// in the same way in the current commit. Sets `came_back` of the groups that an earlier check
/// found fixed in an ancestor of this commit and that fail again. Does nothing without a target, if
/// its program is not below a git repository, if tracked files there differ from the commit, so
/// that the program is not that of the commit, or if the file cannot be written.
pub fn note_check(out: &Path, target: Option<&Target>, result: &mut CheckResult, output: &Output) {
    let Some((target, Program::Path(program))) = target.map(|target| (target, &target.program))
    else {
        return;
    };
    let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.clone());
    let Some(top) = program
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists())
    else {
        return;
    };
    let Some(now) = checked_out(top, output) else {
        return;
    };
    let repository = OsText::from(top);
    let mut last: HashMap<String, Checked> = HashMap::new();
    let journal = Journal::open(&out.join(CHECKS), |_, checked: Checked| {
        if checked.repository == repository {
            last.insert(checked.major.clone(), checked);
        }
    });
    let mut journal = match journal {
        Ok(journal) => journal,
        Err(error) => return output.detail(&format!("the check is not noted: {error}")),
    };
    let place = Place {
        out,
        top,
        program: &program,
        target,
    };
    for group in &mut result.groups {
        let fixed = match group.status {
            Status::Fixed => true,
            Status::Same => false,
            _ => continue,
        };
        let before = last.get(&group.major);
        if let Some(before) = before.filter(|before| before.fixed && !fixed && before.commit != now)
        {
            // The range stays as it is until the group is fixed again.
            group.came_back = place.came_back((group.kind, &group.major), &before.commit, &now);
            continue;
        }
        if before.is_some_and(|before| before.fixed == fixed && before.commit == now) {
            continue;
        }
        let checked = Checked {
            major: group.major.clone(),
            fixed,
            repository: repository.clone(),
            commit: now.clone(),
        };
        if let Err(error) = journal.add(&checked) {
            output.detail(&format!("the check is not noted: {error}"));
        }
    }
}

/// Returns the id of the commit that is checked out in the repository at `top`; `None` if there is
/// none, or if tracked files differ from it, so that the program is probably another one.
fn checked_out(top: &Path, output: &Output) -> Option<String> {
    let now = resolve(top, "HEAD").ok()?;
    let is_modified = is_modified(top).unwrap_or(true);
    if is_modified {
        output.detail("the check is not noted: the repository has uncommitted changes");
    }
    (!is_modified).then_some(now)
}

/// What the suggested command `ddfuzz changes` is built from, for a crash group that was fixed and
/// fails again: paths and the target.
struct Place<'a> {
    /// Output directory that contains the crash group that fails again.
    out: &'a Path,
    /// Top folder of the git repository that contains the program.
    top: &'a Path,
    /// Absolute path of the program that is the target of the crash group.
    program: &'a Path,
    target: &'a Target,
}

impl Place<'_> {
    /// Makes the record of the crash group of the kind `kind` with the key `major`, which was fixed in
    /// commit `fixed` and fails again in commit `now`, with a `ddfuzz changes` command that finds the
    /// change between the commits that made it fail. Each group has an output directory of its own
    /// for that, so that the commands of several groups can be run. `None` if `now` does not
    /// descend from `fixed`: a commit from before the fix, or of another branch, says nothing about
    /// the crash group.
    fn came_back(&self, (kind, major): (Kind, &str), fixed: &str, now: &str) -> Option<CameBack> {
        if !is_ancestor(self.top, fixed, now) {
            return None;
        }
        let inside = self.program.strip_prefix(self.top).unwrap_or(self.program);
        let program = Path::new(".").join(inside).into_os_string();
        let words = std::iter::once(program).chain(self.target.args.clone());
        let words: Vec<String> = words.map(|word| shell_word(Path::new(&word))).collect();
        Some(CameBack {
            fixed: fixed.to_owned(),
            now: now.to_owned(),
            command: other_conditions(self.target).is_none().then(|| {
                format!(
                    "ddfuzz changes {fixed}..{now} --repo {} --group {} -o {} -- {}",
                    shell_word(self.top),
                    shell_word(&self.out.join(kind.folder()).join(major)),
                    shell_word(&self.out.join("changes").join(major)),
                    words.join(" ")
                )
            }),
        })
    }
}

/// Prints, for each crash group of a check that was fixed before and fails again, the two commits
/// and the `ddfuzz changes` command that finds the change between them.
pub fn tell(result: &CheckResult, output: &Output) {
    for (group, came_back) in result
        .groups
        .iter()
        .filter_map(|group| Some((group, group.came_back.as_ref()?)))
    {
        let digits = |id: &str| id[..id.len().min(12)].to_owned();
        output.say(&format!(
            "the group {} came back: it was fixed in {} and fails again in {}",
            group.major,
            digits(&came_back.fixed),
            digits(&came_back.now)
        ));
        match &came_back.command {
            Some(command) => output.suggest(command),
            None => output.say(
                "a search for the change needs a command (`ddfuzz changes --run`) that runs the \
                 program as the group's failure was found",
            ),
        }
    }
}
