//! The search for failure-inducing changes: searches the git history first, then the changes of one
//! commit, then the earlier changes that these need; or, without a history, all changes at once.

use std::sync::Arc;

use ddfuzz_delta::{Config, Outcome};
use ddfuzz_minimize::log::{EndLine, What};

use crate::ChangesError;
use crate::candidate::Candidate;
use crate::conclude::{conclude, conclude_difference, confirm_last_passing, leave_out_needless};
use crate::places::{Around, around};
use crate::repository::Commit;
use crate::search::{Minimal, Probed, Prober, bisect, isolate, minimize};
use crate::session::Session;
use crate::tree::Tree;
use crate::workbench::Report;

/// Number of times that the old and the new version are tested before the search, and the version
/// with the found changes after it; all tests of a version must have the same outcome.
pub(crate) const TIMES: usize = 3;

/// What the search for failure-inducing changes shall find: a minimal set of changes with which the
/// old version fails, or a minimal difference between a version that passes and one that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Find a minimal set of changes with which the old version fails.
    Cause,
    /// Find a minimal difference between a version that passes and one that fails. The passing
    /// version may have some of the changes; the difference consists of further changes that make
    /// it fail.
    Difference,
}

/// The result of a search for failure-inducing changes.
#[derive(Clone, Debug)]
pub struct Found {
    /// The changes that were found, in the order in which they are applied: to the old version, or
    /// for [`Goal::Difference`] to `passing`. Each pair is the index of a set of changes in the
    /// session, and the found changes of that set.
    pub kept: Vec<(usize, Config)>,
    /// All files of the old version of the program, which passes.
    pub old: Arc<Tree>,
    /// The files of the version to which the found changes are applied: the old version or, for
    /// [`Goal::Difference`], a passing version that may already have other changes.
    pub passing: Arc<Tree>,
    /// The files of the failing version that has the changes found by the search.
    pub failing: Arc<Tree>,
    /// Two versions of the program as (passing, failing): the last version of the git history that
    /// passes, and the same version with the changes that were found in the commit after it. `None`
    /// if the history was not searched, for [`Goal::Difference`], and if the changes cannot be
    /// merged.
    pub in_history: Option<(Arc<Tree>, Arc<Tree>)>,
    /// The commits from which the found changes come; empty if the history was not searched.
    pub commits: Vec<Commit>,
    /// Number of commits that could not be tested, so that the found changes may come from one of
    /// them instead of the commit known to fail; 0 if the budget was used up.
    pub unbuildable_commits: usize,
    /// Whether the failure needs changes of several commits together (*interference* in delta
    /// debugging); false if the budget was used up.
    pub interference: bool,
    /// Number of found changes that cannot be left out because the version with all others does not
    /// build; 0 for [`Goal::Difference`].
    pub unbuildable: usize,
    /// Whether the version without one of the found changes passed in one test and failed in
    /// another, so that no minimality is claimed.
    pub alternates: bool,
    /// The last line of the search's log: what is claimed of the result (such as 1-minimal), and
    /// the tests that prove it.
    pub end: EndLine,
}

/// Searches the changes that make the new version of `session` fail, and ends the log of the
/// search. `line` has the commits from the old to the new version, oldest first; `None` if there is
/// no history, or it shall not be used.
///
/// # Errors
///
/// If both versions have the same files; if a test of the old version does not pass, or a test of
/// the new version does not fail; if the result no longer fails when it is built again; and those
/// of [`Session::probe`].
pub fn find(
    session: &mut Session<'_>,
    goal: Goal,
    line: Option<&[Commit]>,
) -> Result<Found, ChangesError> {
    let (old, new) = (
        session.tree(&session.old.clone())?,
        session.tree(&session.new.clone())?,
    );
    if old == new {
        return Err(ChangesError::NoChange);
    }
    check(session, What::Axiom, &old, Outcome::Pass)?;
    check(session, What::Baseline, &new, Outcome::Fail)?;
    if let Some(workers) = &mut session.workers {
        workers.learn_limits();
    }
    match line {
        Some(line) if line.len() > 1 => by_history(session, goal, line),
        _ => all_at_once(session, goal, line.unwrap_or_default()),
    }
}

/// Tests the version `tree` up to three times before the search, and returns an error unless each
/// outcome is `expected`. `what` says which version it is: the old one (`Axiom`) or the new one
/// (`Baseline`). If the first outcome is not `expected`, there is no further test.
fn check(
    session: &mut Session<'_>,
    what: What,
    tree: &Arc<Tree>,
    expected: Outcome,
) -> Result<(), ChangesError> {
    let mut outcomes = Vec::new();
    for _ in 0..TIMES {
        outcomes.extend(session.check(what, tree, false)?);
        if outcomes.len() == 1 && outcomes[0] != expected {
            break;
        }
    }
    if outcomes.iter().all(|outcome| *outcome == expected) {
        return Ok(());
    }
    let shown = match what {
        What::Baseline => session.new.clone(),
        _ => session.old.clone(),
    };
    if outcomes.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(ChangesError::alternating(&shown, &outcomes));
    }
    if what == What::Baseline
        && let Some(workers) = &mut session.workers
    {
        let is_failing = |report: &Report| report.outcome == Some(Outcome::Fail);
        workers.check_not_stale(tree, &shown, is_failing)?;
    }
    let (what_was, output) = match session.workers {
        Some(_) => (session.last.what.clone(), session.last.output.clone()),
        None => (format!("its test gave {}", outcomes[0]), String::new()),
    };
    Err(match what {
        What::Baseline => ChangesError::NewNotFailing {
            shown,
            what: what_was,
            output,
        },
        _ => ChangesError::OldNotPassing {
            shown,
            what: what_was,
            output,
        },
    })
}

/// The tests of a search in one set of changes (`set`). Each test is of the commit `on` with some
/// changes of the set and, on top of them, the changes `later` of other sets.
struct SetProber<'s, 'a> {
    session: &'s mut Session<'a>,
    on: String,
    set: usize,
    later: Vec<(usize, Config)>,
}

impl SetProber<'_, '_> {
    fn candidate(&self, kept: &Config) -> Candidate {
        let first = std::iter::once((self.set, kept.clone()));
        Candidate {
            on: self.on.clone(),
            kept: first.chain(self.later.clone()).collect(),
        }
    }
}

impl Prober for SetProber<'_, '_> {
    type Error = ChangesError;

    fn probe(
        &mut self,
        kept: &Config,
        rule: &'static str,
        ahead: &[Config],
    ) -> Result<Probed, ChangesError> {
        let ahead: Vec<Candidate> = ahead.iter().map(|kept| self.candidate(kept)).collect();
        let known = self.session.probe(&self.candidate(kept), rule, &ahead)?;
        let around = match known.probed.outcome {
            None => around(&self.session.set(self.set), kept, &known.at),
            Some(_) => Around::default(),
        };
        Ok(Probed {
            around,
            ..known.probed
        })
    }

    fn predict(&mut self, kept: &Config) -> Result<(), ChangesError> {
        let candidate = self.candidate(kept);
        self.session.predict(&candidate)
    }

    fn learn(&mut self, user: usize, needed: usize) {
        self.session.learn(self.set, user, needed);
    }

    fn is_spent(&self) -> bool {
        self.session.is_spent()
    }

    fn look_ahead(&self) -> usize {
        self.session
            .workers
            .as_ref()
            .map_or(0, |workers| workers.most_ahead())
    }
}

/// The result of searching one set of changes: the found changes (`kept`), the result of the
/// minimization for [`Goal::Cause`] (`minimal`), and, for [`Goal::Difference`], the changes with
/// which the version still passes (`passing`).
pub(crate) struct SetResult {
    pub kept: Config,
    pub minimal: Option<Minimal>,
    pub passing: Config,
}

/// Searches the changes of `set` that cause the failure, and returns the result. The changes are
/// applied to the commit `on`, and the changes `later` of other sets after them. For
/// [`Goal::Cause`], minimizes the set; for [`Goal::Difference`], isolates a minimal difference in
/// it. `commit_of` has the commit of each change, or is empty where there are no commits.
pub(crate) fn search(
    session: &mut Session<'_>,
    goal: Goal,
    on: &str,
    (set, commit_of): (usize, &[Option<String>]),
    later: &[(usize, Config)],
) -> Result<SetResult, ChangesError> {
    let repository = Arc::clone(&session.repository);
    let facts = session.set(set).facts(&repository, commit_of)?;
    let mut prober = SetProber {
        session,
        on: on.to_owned(),
        set,
        later: later.to_vec(),
    };
    match goal {
        Goal::Cause => {
            let minimal = minimize(&facts, &mut prober)?;
            Ok(SetResult {
                kept: minimal.kept.clone(),
                minimal: Some(minimal),
                passing: Config::empty(),
            })
        }
        Goal::Difference => {
            let isolation = isolate(&facts, None, &mut prober)?;
            Ok(SetResult {
                kept: isolation.difference(),
                minimal: None,
                passing: isolation.passing,
            })
        }
    }
}

/// Searches all changes between the old and the new version as one set, without bisecting the git
/// history; ends the log and returns the result. `line` has the commits that the result names as
/// the origin of the changes; it may be empty.
fn all_at_once(
    session: &mut Session<'_>,
    goal: Goal,
    line: &[Commit],
) -> Result<Found, ChangesError> {
    let (old, new) = (session.old.clone(), session.new.clone());
    let set = session.compare(&old, &new)?;
    let commit_of = session
        .set(set)
        .commits(&session.repository, (&old, &new))?;
    let part = search(session, goal, &old, (set, &commit_of), &[])?;
    let before = Candidate {
        on: old.clone(),
        kept: vec![(set, part.passing.clone())],
    };
    let kept = vec![(set, part.kept.clone())];
    match goal {
        Goal::Cause => {
            let unbuildable = part.minimal.map_or(0, |minimal| minimal.unbuildable);
            let mut found = conclude(session, kept, unbuildable)?;
            found.commits = line.to_vec();
            Ok(found)
        }
        Goal::Difference => conclude_difference(session, before, set, part, line.to_vec(), 0),
    }
}

/// A linear git history to be bisected: version 0 is the commit `first`, which passes; the versions
/// after it are the commits `line`, of which the last fails.
struct History<'l> {
    first: String,
    line: &'l [Commit],
    /// For each version of the history but the last, the number of changes (hunks and binary files)
    /// between it and the next version, plus 1.
    weights: Vec<u64>,
}

impl<'l> History<'l> {
    fn of(
        session: &Session<'_>,
        first: &str,
        line: &'l [Commit],
    ) -> Result<History<'l>, ChangesError> {
        Ok(History {
            first: first.to_owned(),
            weights: session.repository.weights(first, line)?,
            line,
        })
    }

    /// Returns the commit id of the history's version with the number `index`: 0 is the version
    /// before the commits `line`, 1 the first of these commits, and so on.
    fn version(&self, index: usize) -> &str {
        match index {
            0 => &self.first,
            _ => &self.line[index - 1].id,
        }
    }

    /// Bisects the versions from 0 to `last`, each with the changes `kept` applied; version `last`
    /// with them is known to fail. Returns the numbers of the last version known not to fail, and
    /// of the first after it known to fail. `rule` names the step in the log.
    fn bisect(
        &self,
        session: &mut Session<'_>,
        last: usize,
        kept: &[(usize, Config)],
        rule: &'static str,
    ) -> Result<(usize, usize), ChangesError> {
        let candidate = |version: &usize| Candidate {
            on: self.version(*version).to_owned(),
            kept: kept.to_vec(),
        };
        let found = bisect(&self.weights[..last], |version, ahead| {
            let ahead: Vec<Candidate> = ahead.iter().map(candidate).collect();
            let known = session.probe(&candidate(&version), rule, &ahead)?;
            Ok::<_, ChangesError>(known.probed.outcome.unwrap_or(Outcome::Unresolved))
        })?;
        Ok((found.passing, found.failing))
    }
}

/// Searches the failure-inducing changes with the git history `line` (commits from the old to the
/// new version): bisects it, searches the changes of the commit that the bisection finds, then the
/// earlier changes without which these do not make the old version fail. Ends the log and returns
/// the result.
fn by_history(
    session: &mut Session<'_>,
    goal: Goal,
    line: &[Commit],
) -> Result<Found, ChangesError> {
    let old = session.old.clone();
    let history = History::of(session, &old, line)?;
    let (passing, failing) = history.bisect(session, line.len(), &[], "commit")?;
    let mut commits = line[passing..failing].to_vec();
    let mut on = history.version(passing).to_owned();
    let mut fails = history.version(failing).to_owned();
    if let Some((before, culprit)) = inside_merge(session, &commits)? {
        on = before;
        fails = culprit.id.clone();
        commits = vec![culprit];
    }
    confirm_last_passing(session, &on, &[])?;
    let set = session.compare(&on, &fails)?;
    let part = search(session, goal, &on, (set, &[]), &[])?;
    let unknown = match session.is_spent() {
        true => 0,
        false => commits.len() - 1,
    };
    let base = Candidate {
        on: on.clone(),
        kept: vec![(set, part.passing.clone())],
    };
    if goal == Goal::Difference {
        return conclude_difference(session, base, set, part, commits, unknown);
    }
    let kept = vec![(set, part.kept.clone())];
    let with = Candidate {
        on: on.clone(),
        kept: kept.clone(),
    };
    let in_history = session.compose(&base)?.zip(session.compose(&with)?);
    let found = match on == session.old {
        true => conclude(
            session,
            kept,
            part.minimal.map_or(0, |minimal| minimal.unbuildable),
        )?,
        false => {
            // Inside of a merge, the first-parent line fails from the merge on.
            let last = if on == history.version(passing) {
                passing
            } else {
                failing
            };
            with_partners(session, &history, last, kept, &mut commits)?
        }
    };
    Ok(Found {
        in_history,
        commits,
        unbuildable_commits: unknown,
        ..found
    })
}

/// Searches inside of a merge, if `commits`, to which a bisection has led, is a single merge of two
/// parents: bisects the first-parent line of its second parent. Returns the id of the last commit
/// of this line that passes, and the commit after it, which fails. `None` if there is no such
/// merge; if the line does not begin with a version that passes and end with one that fails; or if
/// several commits remain, because some cannot be tested.
fn inside_merge(
    session: &mut Session<'_>,
    commits: &[Commit],
) -> Result<Option<(String, Commit)>, ChangesError> {
    let [merge] = commits else {
        return Ok(None);
    };
    let [first, second] = &merge.parents[..] else {
        return Ok(None);
    };
    let Some(base) = session.repository.merge_base(first, second)? else {
        return Ok(None);
    };
    let Some(line) = session.repository.line(&base, second)? else {
        return Ok(None);
    };
    for (commit, expected) in [(second, Outcome::Fail), (&base, Outcome::Pass)] {
        let candidate = Candidate {
            on: commit.clone(),
            kept: Vec::new(),
        };
        if session.probe(&candidate, "merge", &[])?.probed.outcome != Some(expected) {
            return Ok(None);
        }
    }
    let history = History::of(session, &base, &line)?;
    let (passing, failing) = history.bisect(session, line.len(), &[], "merge")?;
    let culprits = &line[passing..failing];
    if let Some(found) = inside_merge(session, culprits)? {
        return Ok(Some(found));
    }
    match culprits {
        [culprit] => Ok(Some((history.version(passing).to_owned(), culprit.clone()))),
        _ => Ok(None),
    }
}

/// Searches the earlier changes that the changes `kept` of one commit need to make the old version
/// fail (*interference*). As long as the old version does not fail with all changes found so far,
/// bisects the history before version `last` and searches the changes of the commit found by this.
/// Then leaves out changes that are not needed, ends the log, and returns the result.
fn with_partners(
    session: &mut Session<'_>,
    history: &History<'_>,
    mut last: usize,
    mut kept: Vec<(usize, Config)>,
    commits: &mut Vec<Commit>,
) -> Result<Found, ChangesError> {
    let mut interference = false;
    while last > 0 {
        let alone = Candidate {
            on: session.old.clone(),
            kept: kept.clone(),
        };
        if session.probe(&alone, "alone", &[])?.probed.fails() {
            break;
        }
        interference = true;
        let (passing, failing) = history.bisect(session, last, &kept, "partner")?;
        let on = history.version(passing).to_owned();
        confirm_last_passing(session, &on, &kept)?;
        let set = session.compare(&on, history.version(failing))?;
        let part = search(session, Goal::Cause, &on, (set, &[]), &kept)?;
        kept.insert(0, (set, part.kept));
        commits.splice(0..0, history.line[passing..failing].to_vec());
        last = passing;
    }
    let unbuildable = leave_out_needless(session, &mut kept)?;
    let found = conclude(session, kept, unbuildable)?;
    Ok(Found {
        interference: interference && found.end.size > 1 && !session.is_spent(),
        ..found
    })
}
