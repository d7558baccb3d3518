//! Ends a search for failure-inducing changes: converts the found changes to the form in which the
//! result shows them, repeats tests, and writes the claim (such as 1-minimal).

use std::sync::Arc;

use ddfuzz_delta::{Config, Outcome};
use ddfuzz_minimize::log::What;
use ddfuzz_minimize::{Claim, ProofRef};

use crate::ChangesError;
use crate::candidate::{Candidate, Known};
use crate::find::{Found, Goal, SetResult, TIMES, search};
use crate::repository::Commit;
use crate::search::config;
use crate::session::Session;
use crate::tree::Tree;

/// Changes that are applied together, as pairs: the index of one of the sets of changes that are
/// searched, and the changes that are taken from this set.
type Kept = Vec<(usize, Config)>;

/// A version of the program that has all found changes but one, or only one of them, and whose test
/// can refute the claim about the found changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Premise {
    /// Index, among the pairs of found changes, of the pair to which the change `unit` belongs.
    pub at: usize,
    /// The found change that this version lacks or, if it has only one of the found changes, the
    /// change that it has.
    pub unit: usize,
    /// The found changes that the version has, on top of the version to which the found changes are
    /// applied.
    pub kept: Kept,
    /// The outcome by which the test of the version refutes the claim: FAIL without the change,
    /// PASS with the change alone.
    pub refuting: Outcome,
}

/// Returns the versions that must be tested to prove the claim about the found changes `kept`: for
/// each change, the version without it and, for [`Goal::Difference`], also the version with this
/// change alone.
pub fn premises(kept: &[(usize, Config)], goal: Goal) -> Vec<Premise> {
    let mut all = Vec::new();
    for (at, (set, changes)) in kept.iter().enumerate() {
        for unit in changes.ranges().flatten() {
            let one = config(&[unit]);
            if goal == Goal::Difference {
                all.push(Premise {
                    at,
                    unit,
                    kept: vec![(*set, one.clone())],
                    refuting: Outcome::Pass,
                });
            }
            let mut without = kept.to_vec();
            without[at].1 = changes.minus(&one);
            all.push(Premise {
                at,
                unit,
                kept: without,
                refuting: Outcome::Fail,
            });
        }
    }
    all
}

/// Tests once more the version that a bisection considers the last passing one (the commit `on`
/// with the changes `kept`), because a single odd run would lead to a wrong commit. Returns an
/// error if the version fails now. Does nothing if it was already tested several times, or has not
/// passed.
pub(crate) fn confirm_last_passing(
    session: &mut Session<'_>,
    on: &str,
    kept: &[(usize, Config)],
) -> Result<(), ChangesError> {
    let candidate = Candidate {
        on: on.to_owned(),
        kept: kept.to_vec(),
    };
    let known = session.proved(&candidate)?;
    let Some(known) = known.filter(|known| known.probed.outcome == Some(Outcome::Pass)) else {
        return Ok(());
    };
    match tested_again(session, &candidate, &known)? {
        Some(Outcome::Fail) => Err(ChangesError::alternating(
            on,
            &[Outcome::Pass, Outcome::Fail],
        )),
        _ => Ok(()),
    }
}

/// Tests a version once more if its outcome, in `known`, was shown by a single test, and returns
/// the new outcome. `None` if several tests have shown the outcome, the version does not build, or
/// the budget is used up.
fn tested_again(
    session: &mut Session<'_>,
    candidate: &Candidate,
    known: &Known,
) -> Result<Option<Outcome>, ChangesError> {
    let is_tested_once = matches!(known.proof, ProofRef::Test(_)) && known.probed.outcome.is_some();
    if session.is_spent() || !is_tested_once {
        return Ok(None);
    }
    match session.compose(candidate)? {
        Some(tree) => session.check(What::Vote, &tree, false),
        None => Ok(None),
    }
}

/// Removes needless changes from `kept`: leaves out each single one in turn, and removes it if the
/// old version with all other kept changes still fails. Returns how many of the remaining changes
/// cannot be left out because the version without them does not build.
pub(crate) fn leave_out_needless(
    session: &mut Session<'_>,
    kept: &mut [(usize, Config)],
) -> Result<usize, ChangesError> {
    'again: loop {
        let mut unbuildable = 0;
        for premise in premises(kept, Goal::Cause) {
            let candidate = Candidate {
                on: session.old.clone(),
                kept: premise.kept.clone(),
            };
            let known = session.probe(&candidate, "proof", &[])?;
            if known.probed.fails() {
                kept.clone_from_slice(&premise.kept);
                continue 'again;
            }
            unbuildable += usize::from(known.probed.outcome.is_none());
        }
        return Ok(unbuildable);
    }
}

/// Converts the found changes `kept` to changes of the old version in one set, as the result shows
/// them. A conversion is needed if they come from several commits: a line may be changed twice, or
/// a file deleted and restored by a rename. Each converted change is tested, and left out if it is
/// needless. Returns the changes, and the number of those without which the version does not build.
/// Changes of several commits are first searched as one set, since some may be needless only
/// together.
fn as_shown(
    session: &mut Session<'_>,
    mut kept: Kept,
    mut unbuildable: usize,
) -> Result<(Kept, usize), ChangesError> {
    let on = session.old.clone();
    let old = session.tree(&on)?;
    let mut of_several = kept.iter().filter(|(_, kept)| !kept.is_empty()).count() > 1;
    while !session.is_spent() {
        let Some(failing) = session.compose_on(&old, &kept)? else {
            break;
        };
        let set = session.compare_trees(&old, &failing)?;
        // Of two changes, the removal of each is tested.
        if std::mem::take(&mut of_several) && session.set(set).len() > 2 {
            let part = search(session, Goal::Cause, &on, (set, &[]), &[])?;
            unbuildable = part.minimal.map_or(0, |minimal| minimal.unbuildable);
            kept = vec![(set, part.kept)];
            continue;
        }
        let shown = vec![(set, Config::all(session.set(set).len()))];
        let [before, after] = [&kept, &shown].map(|kept| premises(kept, Goal::Cause));
        if versions(session, &old, &before)? == versions(session, &old, &after)? {
            break;
        }
        kept = shown;
        unbuildable = leave_out_needless(session, &mut kept)?;
    }
    Ok((kept, unbuildable))
}

/// Composes the version of each of `premises`, which has some of the found changes on top of
/// `base`, and returns the ids of the git trees of all these versions, sorted; `None` for a version
/// whose changes cannot be merged.
fn versions(
    session: &mut Session<'_>,
    base: &Arc<Tree>,
    premises: &[Premise],
) -> Result<Vec<Option<String>>, ChangesError> {
    let mut all = Vec::new();
    for premise in premises {
        let tree = session.compose_on(base, &premise.kept)?;
        let stored = tree.map(|tree| session.repository.store(&tree));
        all.push(stored.transpose()?);
    }
    all.sort_unstable();
    Ok(all)
}

/// The tests that prove a claim about found changes.
struct Proof {
    /// References to the lines of the log that record these tests.
    tests: Vec<ProofRef>,
    /// Whether a version on which the claim rests had different outcomes when it was tested several
    /// times.
    alternates: bool,
}

/// Returns the log lines of the tests that support the claim: one for each version in `premises`
/// that was tested and whose outcome does not refute the claim. The other versions have none, which
/// is not an error, as the caller compares the numbers. A version that was tested once is tested
/// once more; if the second outcome refutes the claim, the version has no line either, and the
/// result says that outcomes alternate. `candidate` makes the candidate of a version.
fn prove(
    session: &mut Session<'_>,
    premises: &[Premise],
    candidate: impl Fn(&Kept) -> Candidate,
) -> Result<Proof, ChangesError> {
    let mut proof = Proof {
        tests: Vec::new(),
        alternates: false,
    };
    for premise in premises {
        let candidate = candidate(&premise.kept);
        let known = session.proved(&candidate)?;
        let Some(known) = known.filter(|known| known.probed.outcome != Some(premise.refuting))
        else {
            continue;
        };
        match tested_again(session, &candidate, &known)? {
            Some(again) if again == premise.refuting => proof.alternates = true,
            _ => proof.tests.push(known.proof),
        }
    }
    Ok(proof)
}

/// Ends the log with the found minimal set of changes `kept`, and returns the result. Before that,
/// the version with these changes is built anew and tested three times, and each version without
/// one of them is tested once more. The claim is 1-minimal if tests within the time limits show for
/// each change that the version without it does not fail; else best so far.
pub(crate) fn conclude(
    session: &mut Session<'_>,
    kept: Kept,
    unbuildable: usize,
) -> Result<Found, ChangesError> {
    let (kept, unbuildable) = as_shown(session, kept, unbuildable)?;
    let on = session.old.clone();
    let with = |kept: &Kept| Candidate {
        on: on.clone(),
        kept: kept.clone(),
    };
    let passing = session.tree(&on)?;
    let failing = session
        .compose(&with(&kept))?
        .unwrap_or_else(|| Arc::clone(&passing));
    confirm(session, &failing)?;
    let premises = premises(&kept, Goal::Cause);
    let proof = prove(session, &premises, with)?;
    let claim = match proof.tests.len() == premises.len() {
        true => Claim::OneMinimal,
        false => Claim::BestSoFar,
    };
    let size = premises.len() as u64;
    let end = session.end(claim, (size, size), &failing, proof.tests)?;
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
        alternates: proof.alternates,
        end,
    })
}

/// Ends the log of a search that has found a difference, and returns the result with the claim that
/// the tests prove. `part` is the difference: a passing and a larger failing set of the changes of
/// `set`. `base` is the passing version; `commits` are the commits from which the changes come.
/// Before the log ends, the failing version is built anew and tested three times, and each version
/// on which the claim rests is tested once more.
pub(crate) fn conclude_difference(
    session: &mut Session<'_>,
    base: Candidate,
    set: usize,
    part: SetResult,
    commits: Vec<Commit>,
    unbuildable_commits: usize,
) -> Result<Found, ChangesError> {
    let with = |kept: &Kept| {
        let kept = kept.iter().map(|(_, kept)| kept);
        let all = Config::union_of(kept.chain([&part.passing]));
        Candidate {
            on: base.on.clone(),
            kept: vec![(set, all)],
        }
    };
    let kept = vec![(set, part.kept.clone())];
    let passing = session.compose(&base)?;
    let failing = session.compose(&with(&kept))?;
    let (Some(passing), Some(failing)) = (passing, failing) else {
        return Err(ChangesError::NoChange);
    };
    confirm(session, &failing)?;
    let premises = premises(&kept, Goal::Difference);
    let proof = prove(session, &premises, with)?;
    // A single change needs no proof that it makes the difference.
    let is_proved = proof.tests.len() == premises.len() || part.kept.len() == 1;
    let shown = session.compare_trees(&passing, &failing)?;
    let is_as_shown = session.set(shown).len() == part.kept.len();
    let claim = match is_proved && is_as_shown && !proof.alternates {
        true => Claim::OneMinimalDifference,
        false => Claim::BestSoFar,
    };
    let (size, needed) = (part.kept.len() as u64, premises.len() as u64);
    let end = session.end(claim, (size, needed), &failing, proof.tests)?;
    Ok(Found {
        kept,
        old: session.tree(&session.old.clone())?,
        passing,
        failing,
        in_history: None,
        commits,
        unbuildable_commits,
        interference: false,
        unbuildable: 0,
        alternates: proof.alternates,
        end,
    })
}

/// Maximum number of pairs of further tests of a version that failed in the search, but not when it
/// was tested again. Once two outcomes differ, the test is reported as alternating. If all agree,
/// leftovers of earlier builds are given as the reason.
const PAIRS_IN_DOUBT: usize = 9;

/// Checks whether `outcomes`, the outcomes of several tests of one version, differ.
fn alternate(outcomes: &[Outcome]) -> bool {
    outcomes.windows(2).any(|pair| pair[0] != pair[1])
}

/// Confirms that the version `tree`, with the found changes, fails: builds it in the directory as
/// the build of the old version left it, and tests it three times. If one of these tests does not
/// fail, returns an error: that the test alternates, if further tests of the same build have
/// different outcomes; else that incremental builds in the search may have missed changes.
fn confirm(session: &mut Session<'_>, tree: &Arc<Tree>) -> Result<(), ChangesError> {
    let mut outcomes = Vec::new();
    for time in 0..TIMES {
        let outcome = session.check(What::Confirm, tree, time == 0)?;
        outcomes.extend(outcome);
        if outcome != Some(Outcome::Fail) {
            break;
        }
    }
    if outcomes.iter().all(|outcome| *outcome == Outcome::Fail) {
        return Ok(());
    }
    // A version that does not build is not tested.
    if session.last.outcome.is_some()
        && let Some(workers) = &mut session.workers
    {
        for _ in 0..PAIRS_IN_DOUBT {
            if !alternate(&outcomes) {
                let again = workers.test_again(tree)?;
                outcomes.extend(again.iter().filter_map(|report| report.outcome));
            }
        }
    }
    if alternate(&outcomes) {
        let shown = "the version with the found changes";
        return Err(ChangesError::alternating(shown, &outcomes));
    }
    let workers = session.workers.as_ref();
    let outcome = outcomes.last().map_or("", |outcome| outcome.name());
    Err(ChangesError::StaleBuild {
        what: format!(
            "the result has failed in the search, but not built on the old version alone ({outcome})"
        ),
        has_build: workers.is_none_or(|workers| workers.has_build),
    })
}
