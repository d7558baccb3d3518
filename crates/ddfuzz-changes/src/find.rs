//! The search for failure-inducing changes: the history first, then the changes of one commit, then
//! the partners that these changes need; or, without a history, all changes at once.

use std::sync::Arc;

use ddfuzz_delta::{Config, Outcome};
use ddfuzz_minimize::log::{EndLine, What};
use ddfuzz_minimize::{Claim, ProofRef};

use crate::ChangesError;
use crate::candidate::Candidate;
use crate::places::{Around, around};
use crate::repository::Commit;
use crate::search::{Minimal, Probed, Prober, bisect, config, isolate, minimize};
use crate::session::Session;
use crate::tree::Tree;

/// Number of tests of each version before the search, and of the result after it.
const TIMES: usize = 3;

/// What a search shall find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A minimal set of changes that fails on top of the old version.
    Cause,
    /// A change that makes the failure come once others are applied.
    Difference,
}

/// The result of a search for failure-inducing changes.
#[derive(Clone, Debug)]
pub struct Found {
    /// The changes that were found, in the order in which they are applied to the old version, or
    /// for [`Goal::Difference`] to `passing`: the index of a set in the session, and its changes.
    pub kept: Vec<(usize, Config)>,
    /// The files of the old version.
    pub old: Arc<Tree>,
    /// The version before the found changes: the old version, or for [`Goal::Difference`] one with
    /// further changes.
    pub passing: Arc<Tree>,
    /// The version with the found changes, which fails.
    pub failing: Arc<Tree>,
    /// The last version of the history that passes, and the same version with the changes that were
    /// found in the commit after it. `None` without a history, for [`Goal::Difference`], and if the
    /// changes cannot be merged.
    pub in_history: Option<(Arc<Tree>, Arc<Tree>)>,
    /// The commits among which the changes are; empty without a history.
    pub commits: Vec<Commit>,
    /// Number of commits beside the failing one that could not be tested, so that the changes may
    /// be theirs; 0 if the budget was used up.
    pub unbuildable_commits: usize,
    /// Whether changes of several commits are needed together; false if the budget was used up.
    pub interference: bool,
    /// Number of found changes without which the others do not build; 0 for [`Goal::Difference`].
    pub unbuildable: usize,
    /// The last line of the log: what is claimed of the result, and the tests that prove it.
    pub end: EndLine,
}

/// Finds the changes by which the new version of `session` fails, and ends the log. `line` has the
/// commits from the old to the new version, oldest first; `None` if there is no history, or it
/// shall not be used.
///
/// # Errors
///
/// If both versions have the same files, the tests of the old version do not all pass or those of
/// the new one do not all fail, or the result no longer fails when it is built again; and those of
/// [`Session::probe`].
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

/// Tests the old version (`Axiom`) or the new one (`Baseline`) three times, or only once if the
/// first outcome is not `expected`. Fails unless all outcomes are `expected`.
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
        let outcomes: Vec<&str> = outcomes.iter().map(|outcome| outcome.name()).collect();
        let outcomes = outcomes.join(", ");
        return Err(ChangesError::Alternating { shown, outcomes });
    }
    let (what_was, output) = (session.last.what.clone(), session.last.output.clone());
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

/// Tests changes of the set `set` on top of the commit `on`, with the changes `later` of other sets
/// applied after them.
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
            .map_or(0, |workers| workers.spare())
    }
}

/// The result of searching one set of changes: those that are needed, the minimal set for
/// [`Goal::Cause`], and those applied before them for [`Goal::Difference`].
struct SetResult {
    kept: Config,
    minimal: Option<Minimal>,
    passing: Config,
}

/// Minimizes or isolates the changes of a set on top of the commit `on`. `commit_of` has the commit
/// that each change comes from; empty without a history.
fn search(
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

/// Searches all changes between both versions as one set, without bisecting the history, and ends
/// the log.
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

/// A linear history that is searched: version 0 is `first`, which passes; the following versions
/// are the commits `line`, of which the last fails.
struct History<'l> {
    first: String,
    line: &'l [Commit],
    /// Number of changes from each version to the next.
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

    /// Returns the id of the commit of a version; 0 is the version before the first commit of the
    /// line.
    fn version(&self, index: usize) -> &str {
        match index {
            0 => &self.first,
            _ => &self.line[index - 1].id,
        }
    }

    /// Bisects the versions up to `last`, which fails with the changes `kept` applied. Returns the
    /// numbers of the last version known not to fail with them, and of the first after it known to
    /// fail.
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

/// Bisects the history, searches the changes of the commit that the bisection finds, then the
/// earlier changes that these need on top of the old version; ends the log.
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

/// Searches the line of the second parent of the merge that a bisection has led to. Returns the
/// last version there that passes and the first commit that fails. `None` if `commits` is not a
/// single merge of two parents, the line does not begin with a version that passes and end with one
/// that fails, or the search leaves more than one commit.
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
    let Some(base) = session.repository.merge_base(first, second) else {
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

/// Makes changes that were found in a commit fail on top of the old version: searches the earlier
/// commits for the changes that they need (*interference*), until all together fail there. Then
/// leaves out needless ones and ends the log.
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
        let set = session.compare(&on, history.version(failing))?;
        let part = search(session, Goal::Cause, &on, (set, &[]), &kept)?;
        kept.insert(0, (set, part.kept));
        commits.splice(0..0, history.line[passing..failing].to_vec());
        last = passing;
    }
    let mut unbuildable = leave_out_needless(session, &mut kept)?;
    if kept.len() > 1 && !session.is_spent() {
        kept = on_top_of_old(session, &kept)?;
        unbuildable = leave_out_needless(session, &mut kept)?;
    }
    let size: usize = kept.iter().map(|(_, changes)| changes.len()).sum();
    Ok(Found {
        interference: interference && size > 1 && !session.is_spent(),
        ..conclude(session, kept, unbuildable)?
    })
}

/// Expresses found changes of several commits as changes of the old version, in one set: a line
/// that one commit changed and a later one changed again is one change there, which can be left
/// out. Returns `kept` as it is if that is not possible.
fn on_top_of_old(
    session: &mut Session<'_>,
    kept: &[(usize, Config)],
) -> Result<Vec<(usize, Config)>, ChangesError> {
    let old = session.tree(&session.old.clone())?;
    let Some(failing) = session.compose_on(&old, kept)? else {
        return Ok(kept.to_vec());
    };
    let set = session.compare_trees(&old, &failing)?;
    let all = Config::all(session.set(set).len());
    let Some(made) = session.compose_on(&old, &[(set, all.clone())])? else {
        return Ok(kept.to_vec());
    };
    let repository = &session.repository;
    Ok(
        match repository.store(&made)? == repository.store(&failing)? {
            true => vec![(set, all)],
            false => kept.to_vec(),
        },
    )
}

/// Tests the removal of each change on top of the old version, and removes those from `kept` that
/// are not needed there. Returns how many of the remaining removals do not build.
fn leave_out_needless(
    session: &mut Session<'_>,
    kept: &mut [(usize, Config)],
) -> Result<usize, ChangesError> {
    'again: loop {
        let mut unbuildable = 0;
        for at in 0..kept.len() {
            for unit in kept[at].1.clone().ranges().flatten() {
                let mut without = kept.to_vec();
                without[at].1 = without[at].1.minus(&config(&[unit]));
                let candidate = Candidate {
                    on: session.old.clone(),
                    kept: without.clone(),
                };
                let known = session.probe(&candidate, "proof", &[])?;
                if known.probed.fails() {
                    kept.clone_from_slice(&without);
                    continue 'again;
                }
                unbuildable += usize::from(known.probed.outcome.is_none());
            }
        }
        return Ok(unbuildable);
    }
}

/// Confirms a minimal set of changes, and ends the log with the claim that its tests prove:
/// 1-minimal if each removal is known not to fail, else best so far.
fn conclude(
    session: &mut Session<'_>,
    kept: Vec<(usize, Config)>,
    unbuildable: usize,
) -> Result<Found, ChangesError> {
    let whole = Candidate {
        on: session.old.clone(),
        kept: kept.clone(),
    };
    let passing = session.tree(&session.old.clone())?;
    let failing = session
        .compose(&whole)?
        .unwrap_or_else(|| Arc::clone(&passing));
    confirm(session, &failing)?;
    let mut proof: Vec<ProofRef> = Vec::new();
    let mut size = 0;
    for (at, (_, changes)) in kept.iter().enumerate() {
        for unit in changes.ranges().flatten() {
            let mut without = kept.clone();
            without[at].1 = changes.minus(&config(&[unit]));
            let candidate = Candidate {
                on: session.old.clone(),
                kept: without,
            };
            proof.extend(session.proof(&candidate)?);
            size += 1;
        }
    }
    let claim = match proof.len() == size {
        true => Claim::OneMinimal,
        false => Claim::BestSoFar,
    };
    let end = session.end(claim, size as u64, &failing, proof)?;
    Ok(Found {
        kept: kept
            .into_iter()
            .filter(|(_, kept)| !kept.is_empty())
            .collect(),
        old: Arc::clone(&passing),
        passing,
        failing,
        in_history: None,
        commits: Vec::new(),
        unbuildable_commits: 0,
        interference: false,
        unbuildable,
        end,
    })
}

/// Confirms a difference, and ends the log with the claim that its tests prove.
fn conclude_difference(
    session: &mut Session<'_>,
    base: Candidate,
    set: usize,
    part: SetResult,
    commits: Vec<Commit>,
    unbuildable_commits: usize,
) -> Result<Found, ChangesError> {
    let whole = Candidate {
        on: base.on.clone(),
        kept: vec![(set, part.passing.union(&part.kept))],
    };
    let passing = session.compose(&base)?;
    let failing = session.compose(&whole)?;
    let (Some(passing), Some(failing)) = (passing, failing) else {
        return Err(ChangesError::NoChange);
    };
    confirm(session, &failing)?;
    let mut proof = Vec::new();
    for unit in part.kept.ranges().flatten() {
        for kept in [
            part.passing.union(&config(&[unit])),
            part.passing.union(&part.kept).minus(&config(&[unit])),
        ] {
            let candidate = Candidate {
                on: base.on.clone(),
                kept: vec![(set, kept)],
            };
            proof.extend(session.difference_proof(&candidate)?);
        }
    }
    let claim = match proof.len() == 2 * part.kept.len() || part.kept.len() == 1 {
        true => Claim::OneMinimalDifference,
        false => Claim::BestSoFar,
    };
    let end = session.end(claim, part.kept.len() as u64, &failing, proof)?;
    Ok(Found {
        kept: vec![(set, part.kept)],
        old: session.tree(&session.old.clone())?,
        passing,
        failing,
        in_history: None,
        commits,
        unbuildable_commits,
        interference: false,
        unbuildable: 0,
        end,
    })
}

/// Builds the result on the first build of the old version alone, and tests it three times. Fails
/// unless it fails each time: then the builds of the search have missed changes.
fn confirm(session: &mut Session<'_>, tree: &Arc<Tree>) -> Result<(), ChangesError> {
    for time in 0..TIMES {
        let outcome = session.check(What::Confirm, tree, time == 0)?;
        if outcome != Some(Outcome::Fail) {
            return Err(ChangesError::StaleBuild {
                outcome: outcome.map_or("it does not build".to_owned(), |outcome| {
                    outcome.to_string()
                }),
            });
        }
    }
    Ok(())
}
