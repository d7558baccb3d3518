//! Counts the ends of runs.

use crate::finding::What;
use ddfuzz_exec::Ended;
use ddfuzz_store::{Kind, Tally};

/// The lowest exit status that the studies took for a failure: what shells say of commands that
/// cannot be run, or that die of a signal.
const HIGH_EXIT: i32 = 126;

/// The count of one run, which ended so, and of which that was found.
pub(super) fn tally_of(channel: &str, kind: &str, ended: Ended, what: Option<&What>) -> Tally {
    let found = what.map(kind_of);
    let is = |kind: Kind| u64::from(found == Some(kind));
    let is_high = matches!(ended, Ended::Exit(status) if status >= HIGH_EXIT);
    Tally {
        channel: channel.to_owned(),
        kind: kind.to_owned(),
        runs: 1,
        crashes: is(Kind::Crash),
        hangs: is(Kind::Hang),
        ooms: is(Kind::Oom),
        high_exits: u64::from(found.is_none() && is_high),
        slow: 0,
    }
}

/// Which kind of finding.
pub(super) fn kind_of(what: &What) -> Kind {
    match what {
        What::Crash(crash) => Kind::of_class(&crash.class),
        What::Known { kind, .. } => *kind,
        What::Flaky(_) => Kind::Flaky,
    }
}

/// Adds a count to those of its channel and kind.
pub(super) fn add(tallies: &mut Vec<Tally>, one: Tally) {
    let same = |held: &&mut Tally| held.channel == one.channel && held.kind == one.kind;
    match tallies.iter_mut().find(same) {
        Some(held) => held.add(&one),
        None => tallies.push(one),
    }
}

/// Runs that are counted.
pub(super) fn runs(tallies: &[Tally]) -> u64 {
    tallies.iter().map(|tally| tally.runs).sum()
}
