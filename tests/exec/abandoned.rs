//! Runs that are abandoned, because the call of ddfuzz ends: at once, whatever their limits are,
//! and without a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ddfuzz::exec::{AbandonWhen, ExecError, Freshness, Limits, Program, Target, Way, start};
use ddfuzz::triage::Triager;

/// The limits of the runs, which none reaches; a test that takes so long has waited for a run.
const OUT_OF_REACH: Duration = Duration::from_secs(900);
const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

/// A program that never ends: one that sleeps, and one that computes.
fn endless(name: &str) -> Target {
    let mut target = Target::new(Program::Path(name.into()));
    target.args = match name {
        "sleep" => vec!["100000".into()],
        _ => Vec::new(),
    };
    target.limits = Limits {
        cpu: OUT_OF_REACH,
        wall: OUT_OF_REACH,
        ..Limits::default()
    };
    target
}

/// A condition that is met when it has been checked `checks` times, and the number of its checks.
fn after(checks: u32) -> (AbandonWhen, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let when = move || count.fetch_add(1, Ordering::Relaxed) >= checks;
    (AbandonWhen::default().or(when), made)
}

#[test]
fn a_run_is_abandoned_by_every_way_while_it_sleeps_or_computes() {
    for name in ["sleep", "yes"] {
        for way in WAYS {
            let began = Instant::now();
            let mut target = endless(name);
            let (when, made) = after(20);
            target.abandon_when = when;
            let mut executor = start(&target, Some(way), Freshness::Shared)
                .unwrap()
                .executor;
            let run = executor.run(b"");
            assert!(
                matches!(run, Err(ExecError::Abandoned)),
                "{name} {way}: {run:?}"
            );
            assert!(made.load(Ordering::Relaxed) > 20, "{name} {way}");
            // A run that is to be abandoned is not begun.
            let again = executor.run(b"");
            assert!(
                matches!(again, Err(ExecError::Abandoned)),
                "{name} {way}: {again:?}"
            );
            assert!(began.elapsed() < OUT_OF_REACH / 10, "{name} {way}");
        }
    }
}

#[test]
fn what_is_to_be_abandoned_is_not_started_by_another_way() {
    for way in [None, Some(Way::Inject), Some(Way::Snapshot)] {
        let mut target = endless("sleep");
        target.abandon_when = AbandonWhen::default().or(|| true);
        let started = start(&target, way, Freshness::Shared);
        let error = started.map(|started| started.why).unwrap_err();
        assert!(matches!(error, ExecError::Abandoned), "{way:?}: {error}");
    }
}

#[test]
fn an_examination_is_abandoned_without_a_verdict() {
    for name in ["sleep", "yes"] {
        let began = Instant::now();
        let mut target = endless(name);
        let (when, _) = after(20);
        target.abandon_when = when;
        let mut triager = Triager::of_target(&target, Way::Inject).unwrap();
        let verdict = triager.examine(b"");
        assert!(
            matches!(verdict, Err(ExecError::Abandoned)),
            "{name}: {verdict:?}"
        );
        assert!(began.elapsed() < OUT_OF_REACH / 10, "{name}");
    }
}

#[test]
fn the_search_for_the_place_of_a_hang_is_abandoned_too() {
    let began = Instant::now();
    let mut target = endless("sleep");
    target.limits.wall = Duration::from_millis(50);
    let all = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&all);
    target.abandon_when = AbandonWhen::default().or(move || {
        count.fetch_add(1, Ordering::Relaxed);
        began.elapsed() > Duration::from_millis(100)
    });
    let mut triager = Triager::of_target(&target, Way::Command).unwrap();
    let runs = (0..1000).map(|_| triager.examine(b""));
    let abandoned = runs.filter_map(Result::err).next();
    assert!(
        matches!(abandoned, Some(ExecError::Abandoned)),
        "{abandoned:?}"
    );
    assert!(all.load(Ordering::Relaxed) > 0);
}
