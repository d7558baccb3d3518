//! Inputs that hold several bugs at once are minimized, and stay with their bug.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ddfuzz::campaign::Minimizing;
use ddfuzz::exec::{Target, TargetRecord};
use ddfuzz::store::{Campaign, Filed, Kind, Store};
use ddfuzz::triage::{Crash, Triager, Verdict};

use crate::bugs::{Planted, first_of_each_route};
use crate::builds::{Build, CRASHING, GCC_O2, OWNED, SANITIZED, Source};
use crate::pending::promise;
use crate::runs::{Canary, generous, way_of};

/// Inputs are made of this many others.
const PARTS: usize = 4;
/// The longest part: ten thousand nested brackets are another test's.
const LONGEST: usize = 100;
/// Minimizations that there are at least.
const LEAST: usize = 40;

/// Inputs of several bugs each: for each bug of the program one that begins with it. What the
/// first leaves undone the next may do, so which bug it sets off is asked, not assumed.
fn combined(source: &Source) -> Vec<Vec<u8>> {
    let mut all: Vec<Planted> = first_of_each_route(&source.planted(), 2);
    all.retain(|planted| planted.input.len() <= LONGEST);
    let mut begins: Vec<usize> = (0..all.len())
        .filter(|at| *at == 0 || all[*at].bug != all[at - 1].bug)
        .collect();
    begins.dedup();
    let part = |begin: usize, k: usize| &all[(begin + k * (k + 5)) % all.len()].input;
    begins
        .iter()
        .map(|begin| (0..PARTS).flat_map(|k| part(*begin, k)).copied().collect())
        .collect()
}

/// What became of one minimization.
struct Kept {
    bug: String,
    /// What its result sets off.
    result: BTreeSet<String>,
    /// Whether its bug is among that.
    stayed: bool,
    slips: usize,
    /// Of the slips those that the store does not hold.
    unfiled: usize,
    sizes: (usize, usize),
}

struct Bench<'a> {
    canary: &'a Canary,
    target: Target,
    triager: Triager,
    minimizing: Minimizing,
}

impl Bench<'_> {
    /// The crash of `input`, if it has one, and what the canary says. Some bugs do harm only later,
    /// or none: it may name several.
    fn crash(&mut self, input: &[u8]) -> Option<(Box<Crash>, BTreeSet<String>)> {
        self.canary.said();
        let verdict = self.triager.examine(input).expect("the target runs");
        let said = self.canary.said();
        match verdict {
            Verdict::Crash(crash) => Some((crash, said)),
            Verdict::Flaky { .. } => None,
        }
    }

    fn campaign(&self) -> Campaign {
        let way = self.minimizing.way;
        Campaign {
            id: "of one input".to_owned(),
            command_line: Vec::new(),
            settings: None,
            builds: Vec::new(),
            target: Some(TargetRecord::new(&self.target, way)),
            limits: Some(self.target.limits),
            ways: vec![way],
            seed: None,
            started: "2000-01-01T00:00:00Z".to_owned(),
            host: String::new(),
        }
    }

    /// Minimizes an input; `None` where it does not set off one bug and no other.
    fn minimize(&mut self, input: &[u8]) -> Option<Kept> {
        let (crash, said) = self.crash(input)?;
        let mut names = said.into_iter();
        let (Some(bug), None) = (names.next(), names.next()) else {
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = self.campaign();
        let out = folder.path().join("out");
        let mut store = Store::create_or_resume(&out, campaign).expect("a store");
        let filed: Filed = store.file(Kind::Crash, &crash, input).expect("it is filed");
        let store = Mutex::new(store);
        let stop = AtomicBool::new(false);
        let finished = self.minimizing.entry(&store, &filed.id, &stop);
        let minimized = finished.expect("it is minimized").minimized;
        let (_, result) = self.crash(&minimized.text).expect("its result crashes");
        let store = store.into_inner().expect("nobody panicked");
        let is_filed = |slip: &&ddfuzz::minimize::SlipKeys| {
            let entries = store
                .reader()
                .entries(Kind::Crash, &slip.major.short())
                .expect("the store is read");
            entries
                .iter()
                .any(|entry| entry.id.minor() == slip.minor.short())
        };
        let filed = minimized.slips.iter().filter(is_filed).count();
        Some(Kept {
            stayed: result.contains(&bug),
            bug,
            result,
            slips: minimized.slips.len(),
            unfiled: minimized.slips.len() - filed,
            sizes: (input.len(), minimized.text.len()),
        })
    }
}

fn minimize_all(build: &Build, source: &'static Source, all: &[Vec<u8>]) -> Vec<Kept> {
    let program = build.program(source);
    let next = AtomicUsize::new(0);
    let work = || {
        let canary = Canary::new();
        let target = canary.target(&program, generous());
        let way = way_of(&program);
        let mut bench = Bench {
            canary: &canary,
            triager: Triager::of_target(&target, way).expect("it can be started"),
            minimizing: Minimizing::of_target(target.clone(), way, "full"),
            target,
        };
        let mut done = Vec::new();
        while let Some(input) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.extend(bench.minimize(input));
        }
        done
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let done = workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"));
        done.collect()
    })
}

#[test]
fn no_minimization_of_an_input_with_several_bugs_leaves_its_bug() {
    let all = |source| minimize_all(&GCC_O2, source, &combined(source));
    let kept: Vec<Kept> = CRASHING.iter().flat_map(all).collect();
    let slipped: BTreeMap<&str, &BTreeSet<String>> = kept
        .iter()
        .filter(|one| !one.stayed)
        .map(|one| (one.bug.as_str(), &one.result))
        .collect();
    let slips: usize = kept.iter().map(|one| one.slips).sum();
    let sizes = kept.iter().fold((0, 0), |sum, one| {
        (sum.0 + one.sizes.0, sum.1 + one.sizes.1)
    });
    println!(
        "{} minimizations from {} to {} bytes: {} ended in another bug {slipped:?}; {slips} slips were filed",
        kept.len(),
        sizes.0,
        sizes.1,
        slipped.len()
    );
    assert!(kept.len() >= LEAST, "only {} minimizations", kept.len());
    assert!(slips > 0, "no candidate ran into another bug");
    let unfiled: usize = kept.iter().map(|one| one.unfiled).sum();
    assert_eq!(unfiled, 0, "slips that the store does not hold");
    promise(
        "minimizations stay with their bug",
        slipped.is_empty(),
        &format!("{slipped:?}"),
    );
}

#[test]
fn no_minimization_of_an_input_with_several_bugs_in_one_helper_leaves_its_object() {
    let source = &OWNED[0];
    let kept = minimize_all(&SANITIZED[0], source, &combined(source));
    let slips: usize = kept.iter().map(|one| one.slips).sum();
    println!("{} minimizations, {slips} slips", kept.len());
    assert!(kept.len() >= 10, "only {} minimizations", kept.len());
    assert!(slips > 0, "no candidate ran into another bug");
    for one in &kept {
        assert!(one.stayed, "{} became {:?}", one.bug, one.result);
        assert_eq!(one.unfiled, 0, "{}", one.bug);
    }
}
