//! Logs of `ddfuzz changes` for `ddfuzz log`: rebuilds the result without any build of the program,
//! and builds and tests again the versions on which the result's claim (minimality) rests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::subject::Versions;
use crate::changes::{
    BuildBase, ChangesError, CrashIdentity, Found, Goal, Recipe, Repository, Session, TestKind,
    Workers, find, premises,
};
use crate::cli::log::write_rebuilt;
use crate::cli::{Exit, Failure, Output};
use crate::delta::Outcome;
use crate::files::OsText;
use crate::minimize::log::{ChangesRecord, ContentHash, Log, StartLine};
use crate::minimize::{Claim, Counts, Proved};
use crate::report::size;

/// The replay of a log of `ddfuzz changes`, made without builds: the result to which its lines
/// lead, and the repository that contains both versions.
struct Replay {
    session: Session<'static>,
    found: Result<Found, ChangesError>,
    repository: Arc<Repository>,
    work: tempfile::TempDir,
}

/// Opens the two versions that a log of `ddfuzz changes` names, and repeats the search with the
/// outcomes in its lines instead of builds. Fails if the versions are two directories that have
/// changed since.
fn replay(path: &Path, log: &Log, record: &ChangesRecord) -> Result<Replay, Failure> {
    let system = |error| Failure::new(Exit::Internal, "system", error);
    let work = tempfile::tempdir().map_err(system)?;
    let versions = match (&record.repository, &record.directories) {
        (Some(folder), _) => Versions::Revisions {
            folder: PathBuf::from(&folder.0),
            old: record.old.clone(),
            new: record.new.clone(),
        },
        (None, Some((old, new))) => Versions::Directories {
            old: PathBuf::from(&old.0),
            new: PathBuf::from(&new.0),
        },
        (None, None) => {
            return Err(
                Failure::usage("the log does not record where its versions are").path(path),
            );
        }
    };
    // The log is `changes/log.jsonl` in the output directory.
    let out = std::fs::canonicalize(path).unwrap_or_default();
    let out = out.ancestors().nth(2).unwrap_or(path);
    let (repository, old, new) = versions.open(&work.path().join("repository"), out)?;
    if (&old, &new) != (&record.old, &record.new) {
        let message = "the directories are not as they were when the log was written";
        return Err(Failure::new(Exit::Found, "input", message).path(path));
    }
    let repository = Arc::new(repository);
    let line = match record.history {
        true => versions.line(&repository, &old, &new)?,
        false => None,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = Session::new(
        Arc::clone(&repository),
        (old, new),
        log.lines.clone(),
        None,
        None,
        stop,
    );
    let goal = if record.difference {
        Goal::Difference
    } else {
        Goal::Cause
    };
    let found = find(&mut session, goal, line.as_deref());
    Ok(Replay {
        session,
        found,
        repository,
        work,
    })
}

/// Converts an error of a replay to a failure. If the lines of the log lead to no result, the
/// failure says that the search had no result or that the log was changed, and gives no advice
/// about the test.
fn of_replay(error: ChangesError, path: &Path) -> Failure {
    let failure = match &error {
        ChangesError::Alternating { .. }
        | ChangesError::OldNotPassing { .. }
        | ChangesError::NewNotFailing { .. }
        | ChangesError::StaleBuild { .. } => {
            let message = format!("the log leads to no result: {error}");
            let hint = "repeat the search: the same command begins anew where it had no result";
            Failure::new(Exit::Found, "log", message).hint(hint)
        }
        _ => Failure::from(error),
    };
    failure.path(path)
}

#[derive(Serialize)]
struct Rebuilt {
    holds: bool,
    size: Option<u64>,
    blake3: Option<ContentHash>,
    claim: Option<Claim>,
    proved: Option<Proved>,
    tests: Counts,
}

/// Computes the result of a log of `ddfuzz changes` again, without any build, and prints it; writes
/// its patch to `out`, if `out` is given and the search was finished.
pub fn rebuild(
    path: &Path,
    log: &Log,
    record: &ChangesRecord,
    out: Option<&Path>,
    output: &Output,
) -> Result<Exit, Failure> {
    let replay = replay(path, log, record)?;
    let found = match replay.found {
        Ok(found) => Some(found),
        Err(ChangesError::Unfinished) => None,
        Err(error) => return Err(of_replay(error, path)),
    };
    if let (Some(out), Some(found)) = (out, &found) {
        write_rebuilt(
            out,
            &replay.repository.patch(&found.passing, &found.failing)?,
        )?;
    }
    let end = found.as_ref().map(|found| &found.end);
    let rebuilt = Rebuilt {
        holds: true,
        size: end.map(|end| end.size),
        blake3: end.map(|end| end.blake3),
        claim: end.map(|end| end.claim),
        proved: end.map(|end| end.proved),
        tests: replay.session.counts,
    };
    let tests = size::counted(rebuilt.tests.executed, "test");
    let text = match end {
        Some(end) => {
            let count = size::counted(end.size, "change");
            format!(
                "the log is consistent: {tests}, result {count}, {}",
                end.claim
            )
        }
        None => format!("the log is consistent: {tests}, unfinished"),
    };
    output.result(&text, &rebuilt);
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Proven {
    holds: bool,
    claim: Claim,
    result: Option<Outcome>,
    proved: Proved,
}

/// Builds and tests the version with all changes in the result of a log of `ddfuzz changes`, and
/// the versions on which the result's claim (minimality) rests. Prints whether the claim holds, and
/// returns the exit code that says so.
pub fn verify(
    path: &Path,
    log: &Log,
    start: &StartLine,
    record: &ChangesRecord,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut replay = replay(path, log, record)?;
    let found = replay.found.map_err(|error| of_replay(error, path))?;
    let recipe = recipe_of(path, start, record)?;
    let stop = crate::cli::signals::stop_flag()?;
    let work = replay.work.path();
    let mut workers = Workers::start(1, &recipe, &replay.repository, work, &stop)?;
    // The directory of the worker is still empty.
    let result = workers
        .run(&found.failing, &BuildBase::Any, Vec::new())?
        .outcome;
    let claim = found.end.claim;
    let tested = match claim {
        Claim::BestSoFar => Tested::default(),
        _ => Tested::by(&mut replay.session, &mut workers, &found, record.difference)?,
    };
    let proved = tested.proved;
    let holds =
        result == Some(Outcome::Fail) && tested.refuted.is_none() && proved.done == proved.of;
    let proven = Proven {
        holds,
        claim,
        result,
        proved,
    };
    output.result(&verdict(&proven, tested.refuted), &proven);
    Ok(if holds { Exit::Done } else { Exit::Found })
}

/// What running the tests of a claim again has shown.
#[derive(Default)]
struct Tested {
    /// Number of changes that were tested within the time limits without refuting the claim, and
    /// number of changes that the claim is about.
    proved: Proved,
    /// What refutes the claim, in words; `None` if nothing does.
    refuted: Option<String>,
}

impl Tested {
    /// Tests the versions again that must behave as the log's claim says (that its result is
    /// minimal): for each change in `found`, the version with all other changes; for a
    /// `difference`, also the passing version, alone and with each single one of the changes.
    /// Returns how much is proved, and what refutes the claim.
    fn by(
        session: &mut Session<'_>,
        workers: &mut Workers,
        found: &Found,
        difference: bool,
    ) -> Result<Tested, Failure> {
        let mut tested = Tested::default();
        if difference {
            let passing = workers.run(&found.passing, &BuildBase::Any, Vec::new())?;
            if passing.outcome != Some(Outcome::Pass) {
                let without = "the version without the changes does not pass";
                tested.refuted = Some(without.to_owned());
            }
        }
        let goal = match difference {
            true => Goal::Difference,
            false => Goal::Cause,
        };
        let mut in_time: BTreeMap<(usize, usize), bool> = BTreeMap::new();
        for premise in premises(&found.kept, goal) {
            let change = (premise.at, premise.unit);
            let is_in_time = in_time.entry(change).or_insert(true);
            let Some(tree) = session.compose_on(&found.passing, &premise.kept)? else {
                continue;
            };
            let report = workers.run(&tree, &BuildBase::Any, Vec::new())?;
            *is_in_time &= !report.timed_out;
            if report.outcome == Some(premise.refuting) {
                *is_in_time = false;
                let unit = premise.unit;
                let still = match premise.refuting {
                    Outcome::Pass => format!("with change {unit} alone it still passes"),
                    _ => format!("without change {unit} it still fails"),
                };
                tested.refuted = tested.refuted.or(Some(still));
            }
        }
        tested.proved.of = in_time.len() as u64;
        tested.proved.done = in_time.values().filter(|is_in_time| **is_in_time).count() as u64;
        Ok(tested)
    }
}

/// Formats the verdict of `ddfuzz log verify` on a log of `ddfuzz changes`. `refuted` says in words
/// what refutes the claim; it is `None` if nothing does.
fn verdict(proven: &Proven, refuted: Option<String>) -> String {
    let Proven { claim, proved, .. } = proven;
    match (proven.holds, refuted, proven.result) {
        (true, ..) if *claim == Claim::BestSoFar => {
            "best-so-far is verified: the result fails".to_owned()
        }
        (true, ..) => format!(
            "{claim} is verified: the result fails, and without any single change it does not ({} of {} tested)",
            proved.done, proved.of
        ),
        (false, Some(why), _) => format!("{claim} is refuted: {why}"),
        (false, None, Some(Outcome::Fail)) => format!(
            "{claim} is not verified: the result fails, but only {} of {} changes were tested in time",
            proved.done, proved.of
        ),
        (false, None, Some(outcome)) => format!("{claim} is refuted: the result gives {outcome}"),
        (false, None, None) => format!("{claim} is not verified: the result does not build"),
    }
}

/// Reads the program's input from the file that a log of `ddfuzz changes` names; returns an empty
/// input if it names none. Fails if the content of the file is not the one recorded in the log.
fn read_input(start: &StartLine, record: &ChangesRecord) -> Result<Vec<u8>, Failure> {
    let Some(OsText(input)) = &start.input else {
        return Ok(Vec::new());
    };
    let input = Path::new(input);
    let bytes =
        std::fs::read(input).map_err(|error| Failure::file(input, "reading the input", &error))?;
    if record
        .given
        .as_ref()
        .is_some_and(|hash| *hash != ContentHash::of(&bytes))
    {
        let message = format!("{} is not the input of this log", input.display());
        return Err(Failure::new(Exit::Found, "input", message).path(input));
    }
    Ok(bytes)
}

/// Makes the recipe, which says how versions are built and tested, from the record in a log of
/// `ddfuzz changes`.
fn recipe_of(path: &Path, start: &StartLine, record: &ChangesRecord) -> Result<Recipe, Failure> {
    let target = &start.target;
    let test = match &record.run {
        Some(run) => TestKind::Command {
            line: run.clone(),
            expect: record
                .expect
                .as_deref()
                .map(TestKind::pattern)
                .transpose()?,
        },
        None => {
            let key = start
                .key
                .as_ref()
                .ok_or_else(|| Failure::usage("the log holds no crash").path(path))?;
            let expected = CrashIdentity {
                class: key.class.to_string(),
                major: key.major,
                minor: key.minor,
                stable: record.stable.as_ref().and_then(|key| key.parse().ok()),
            };
            TestKind::Program {
                program: target
                    .program
                    .clone()
                    .map(|program| program.0)
                    .unwrap_or_default(),
                // A program of the version's directory is recorded with a slash.
                is_inside: Arc::new(OnceLock::from(false)),
                args: target.args.iter().map(|arg| arg.0.clone()).collect(),
                expected: Arc::new(OnceLock::from(expected)),
                crash_exit: target.crash_exit,
            }
        }
    };
    Ok(Recipe {
        build: record.build.clone(),
        test,
        input: read_input(start, record)?,
        sandbox: target.sandbox,
        env: target
            .env
            .iter()
            .map(|(name, value)| (name.0.clone(), value.0.clone()))
            .collect(),
        build_time: super::subject::BUILD_TIME,
        test_time: start.limits.cpu,
        keep_build_time: true,
        keep_test_time: true,
        memory: start.limits.memory,
    })
}
