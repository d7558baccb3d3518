//! Records what `ddfuzz check` has found of each group, with the commit of the program's repository,
//! and recognizes groups that come back: they were fixed in an earlier check and fail again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::subject::other_conditions;
use crate::changes::{is_ancestor, is_modified, resolve};
use crate::cli::Output;
use crate::exec::{Program, Target};
use crate::files::{Journal, OsText};
use crate::report::text::shell_word;
use crate::report::{CameBack, CheckResult, Status};
use crate::store::{Checked, Kind, LastCheck, rfc3339};

/// Appends to `checks.jsonl` of the output directory `out` the result of each group in `result`
/// that differs from the group's last recorded result, with the commit that is checked out. Sets
/// `came_back` of each group that fails now and that an earlier check found fixed in an ancestor of
/// this commit. No commit is recorded if there is no `target`, if its program is not below a git
/// repository, or if tracked files of the repository differ from the commit, so that the program
/// may be of other source.
pub fn note_check(out: &Path, target: Option<&Target>, result: &mut CheckResult, output: &Output) {
    if result.groups.is_empty() {
        return;
    }
    let commit = target.and_then(|target| Commit::of(target, output));
    let mut last: HashMap<(Kind, String), Checked> = HashMap::new();
    let mut fixes = Fixes::default();
    let journal = Journal::open(&Checked::journal(out), |_, checked: Checked| {
        if let Some(commit) = &commit {
            fixes.add(&checked, commit);
        }
        last.insert((checked.kind, checked.major.clone()), checked);
    });
    let mut journal = match journal {
        Ok(journal) => journal,
        Err(error) => return output.detail(&format!("the check is not noted: {error}")),
    };
    let at = rfc3339(SystemTime::now());
    for group in &mut result.groups {
        if let Some(commit) = commit.as_ref().filter(|_| group.status == Status::Same) {
            let fixed = fixes.0.get(&group.major);
            group.came_back = fixed
                .filter(|fixed| **fixed != commit.id)
                .and_then(|fixed| commit.came_back(out, (group.kind, &group.major), fixed));
        }
        let checked = Checked {
            kind: group.kind,
            major: group.major.clone(),
            result: LastCheck {
                status: group.status,
                at: at.clone(),
                commit: commit.as_ref().map(|commit| commit.id.clone()),
            },
            repository: commit.as_ref().map(|commit| OsText::from(&*commit.top)),
        };
        let before = last.get(&(group.kind, group.major.clone()));
        if before.is_none_or(|before| !before.is_as(&checked))
            && let Err(error) = journal.add(&checked)
        {
            output.detail(&format!("the check is not noted: {error}"));
        }
    }
}

/// For each group, given by its major key (12 hex digits of the hash that identifies the bug), the
/// commit at which earlier checks of one repository have found it fixed. A group that came back
/// keeps this commit until a check finds it fixed again, so that all checks in between report the
/// same range of commits.
#[derive(Default)]
struct Fixes(HashMap<String, String>);

impl Fixes {
    /// Updates the record of fixed groups by `checked`, an earlier check's result for one group: if
    /// the group was fixed, records the commit of the check; if it failed at the recorded commit,
    /// removes it from the record. Ignores results without a commit, and results of another
    /// repository than that of `now`, the present commit.
    fn add(&mut self, checked: &Checked, now: &Commit<'_>) {
        let repository = checked.repository.as_ref();
        let (true, Some(commit)) = (
            repository == Some(&OsText::from(&*now.top)),
            &checked.result.commit,
        ) else {
            return;
        };
        match checked.result.status {
            Status::Fixed => {
                self.0.insert(checked.major.clone(), commit.clone());
            }
            Status::Same if self.0.get(&checked.major) == Some(commit) => {
                self.0.remove(&checked.major);
            }
            _ => {}
        }
    }
}

/// Returns the id of the commit that is checked out in the repository at `top`. Returns `None` if
/// there is none, or if tracked files differ from the commit, so that the program was probably not
/// built from it.
fn checked_out(top: &Path, output: &Output) -> Option<String> {
    let now = resolve(top, "HEAD").ok()?;
    let is_modified = is_modified(top).unwrap_or(true);
    if is_modified {
        output
            .detail("the commit of the check is not noted: the repository has uncommitted changes");
    }
    (!is_modified).then_some(now)
}

/// The commit that is checked out in the repository of a target's program, with the parts of the
/// `ddfuzz changes` command that is suggested to the user.
struct Commit<'a> {
    /// Id of the commit that is checked out.
    id: String,
    /// Top folder of the git repository that contains the program.
    top: PathBuf,
    /// Absolute path of the target's program.
    program: PathBuf,
    target: &'a Target,
}

impl<'a> Commit<'a> {
    /// Returns the commit of the program of `target`; `None` if the program is not below a git
    /// repository, or tracked files of the repository differ from the commit.
    fn of(target: &'a Target, output: &Output) -> Option<Commit<'a>> {
        let Program::Path(program) = &target.program else {
            return None;
        };
        let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.clone());
        let mut above = program.ancestors().skip(1);
        let top = above
            .find(|folder| folder.join(".git").exists())?
            .to_owned();
        Some(Commit {
            id: checked_out(&top, output)?,
            top,
            program,
            target,
        })
    }

    /// Makes the record of a group (given by kind of failure and major key, the hash that
    /// identifies the bug) that was fixed in the commit `fixed` and fails again in this commit. The
    /// record suggests a `ddfuzz changes` command that searches the commits after `fixed` for the
    /// change that made the group fail; its output directory below `out` is used for this group
    /// only. Returns `None` if this commit does not descend from `fixed`: it may be older than the
    /// fix, or on another branch.
    fn came_back(&self, out: &Path, group: (Kind, &str), fixed: &str) -> Option<CameBack> {
        let ((kind, major), now) = (group, &self.id);
        if !is_ancestor(&self.top, fixed, now) {
            return None;
        }
        let inside = self
            .program
            .strip_prefix(&self.top)
            .unwrap_or(&self.program);
        let program = Path::new(".").join(inside).into_os_string();
        let words = std::iter::once(program).chain(self.target.args.clone());
        let words: Vec<String> = words.map(|word| shell_word(Path::new(&word))).collect();
        Some(CameBack {
            fixed: fixed.to_owned(),
            now: now.clone(),
            command: other_conditions(self.target).is_none().then(|| {
                format!(
                    "ddfuzz changes {fixed}..{now} --repo {} --group {} -o {} -- {}",
                    shell_word(&self.top),
                    shell_word(&out.join(kind.folder()).join(major)),
                    shell_word(&out.join("changes").join(major)),
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
