//! The objective that knows groups.

use std::sync::{Arc, Mutex};

use ddfuzz::campaign::{
    FailedRun, FailedRunSlot, GroupMetadata, GroupObjective, GroupRegistry, Passed,
};
use ddfuzz::exec::{Ended, Program, Target, Way};
use ddfuzz::store::{Kind, Reader};
use libafl::HasMetadata;
use libafl::corpus::{Corpus, Testcase};
use libafl::events::NopEventManager;
use libafl::executors::ExitKind;
use libafl::feedbacks::Feedback;
use libafl::inputs::BytesInput;
use libafl::state::HasSolutions;

use super::state::{State, crashes, find, finish, reproducers, state, three_bugs, with_bug};
use crate::ddfuzz::Desk;

struct Fuzzer {
    state: State,
    desk: Arc<Mutex<GroupRegistry>>,
    objective: GroupObjective<GroupRegistry>,
}

impl Fuzzer {
    fn new(desk: &Desk, target: &Target) -> Fuzzer {
        let opened = GroupRegistry::open(&desk.file("out"), target, Way::Command).unwrap();
        let opened = Arc::new(Mutex::new(opened));
        Fuzzer {
            state: state(),
            objective: GroupObjective::new(Arc::clone(&opened), target, Way::Command).unwrap(),
            desk: opened,
        }
    }

    /// Evaluates a run that ended so, as LibAFL does; gives whether it is a solution.
    fn evaluate(&mut self, input: &[u8], exit_kind: ExitKind) -> bool {
        let mut manager: NopEventManager = NopEventManager::new();
        let input = BytesInput::new(input.to_vec());
        let (state, objective) = (&mut self.state, &mut self.objective);
        let interesting = objective
            .is_interesting(state, &mut manager, &input, &(), &exit_kind)
            .unwrap();
        if interesting {
            let mut testcase = Testcase::new(input);
            objective
                .append_metadata(state, &mut manager, &(), &mut testcase)
                .unwrap();
            state.solutions_mut().add(testcase).unwrap();
        }
        interesting
    }

    fn seen(&self, kind: Kind) -> Vec<u64> {
        self.desk.lock().unwrap().flush().unwrap();
        let reader = self.desk.lock().unwrap();
        let reader = ddfuzz::campaign::StoreWriter::reader(&*reader);
        let groups = reader.groups(kind).unwrap();
        groups.iter().map(|group| group.runs_seen()).collect()
    }
}

#[test]
fn only_new_ways_and_smaller_inputs_are_solutions() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let mut fuzzer = Fuzzer::new(&desk, &target);
    assert!(!fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Ok));
    assert!(fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Crash));
    assert!(!fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Crash));
    assert!(!fuzzer.evaluate(&with_bug(90, "<"), ExitKind::Crash));
    assert!(fuzzer.evaluate(&with_bug(40, "<"), ExitKind::Crash));
    assert!(!fuzzer.evaluate(&with_bug(50, "<"), ExitKind::Crash));
    assert!(fuzzer.evaluate(&with_bug(60, "##"), ExitKind::Crash));
    let mut seen = fuzzer.seen(Kind::Crash);
    seen.sort_unstable();
    assert_eq!(seen, [1, 5]);
    let solutions = fuzzer.state.solutions();
    let filed: Vec<_> = solutions
        .ids()
        .map(|id| {
            let testcase = solutions.get(id).unwrap().borrow();
            testcase.metadata::<GroupMetadata>().unwrap().id.clone()
        })
        .collect();
    let entries = crashes(&desk.file("out"));
    assert_eq!(filed.len(), entries.len());
    assert!(entries.iter().all(|entry| filed.contains(&entry.id)));

    // Another process knows what this one knew, and goes on counting.
    drop(fuzzer);
    let mut fuzzer = Fuzzer::new(&desk, &target);
    assert!(!fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Crash));
    let mut seen = fuzzer.seen(Kind::Crash);
    seen.sort_unstable();
    assert_eq!(seen, [1, 6]);
}

#[test]
fn what_does_not_come_again_is_flaky_and_told_as_it_was_seen() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let failed_run = FailedRunSlot::default();
    let mut fuzzer = Fuzzer::new(&desk, &target);
    fuzzer.objective = fuzzer.objective.reading(failed_run.clone());
    failed_run.put(FailedRun {
        ended: Some(Ended::Signal(7)),
        ..FailedRun::default()
    });
    assert!(fuzzer.evaluate(b"harmless", ExitKind::Crash));
    assert!(fuzzer.evaluate(b"slow once", ExitKind::Timeout));
    assert!(!fuzzer.evaluate(b"slow once", ExitKind::Timeout));
    // A status that only may be a crash, and is none by what the run said.
    let exit = || FailedRun {
        ended: Some(Ended::Exit(101)),
        ..FailedRun::default()
    };
    failed_run.put(exit());
    assert!(!fuzzer.evaluate(b"harmless too", ExitKind::Ok));
    failed_run.put(exit());
    assert!(!fuzzer.evaluate(b"harmless too", ExitKind::Crash));
    // An end that LibAFL does not tell.
    failed_run.put(FailedRun {
        ended: Some(Ended::Signal(11)),
        ..FailedRun::default()
    });
    assert!(fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Ok));
    drop(fuzzer);
    let reader = Reader::open(&desk.file("out")).unwrap();
    let flaky = reader.groups(Kind::Flaky).unwrap();
    let mut classes: Vec<String> = (flaky.iter())
        .map(|group| group.record.class.to_string())
        .collect();
    classes.sort();
    assert_eq!(classes, ["bus", "hang"]);
}

#[test]
fn the_stage_goes_by_what_the_objective_has_handed_in() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let mut fuzzer = Fuzzer::new(&desk, &target);
    assert!(fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Crash));
    // One that another objective has found.
    find(&mut fuzzer.state, &with_bug(60, "##"));
    let minimizing = ddfuzz::campaign::Minimizing::of_target(target.clone(), Way::Command, "full");
    let shared = Arc::clone(&fuzzer.desk);
    let mut stage = ddfuzz::campaign::DdminStage::new(shared, minimizing, 20).unwrap();
    finish(&mut stage, &mut fuzzer.state);
    let mut seen = fuzzer.seen(Kind::Crash);
    seen.sort_unstable();
    assert_eq!(seen, [1, 1]);
    assert_eq!(reproducers(&desk.file("out")), ["##", "<"]);
}

#[test]
fn what_cannot_be_filed_stays_a_solution_until_it_can() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let mut fuzzer = Fuzzer::new(&desk, &target);
    // Nothing can be filed there.
    let blocked = desk.write("out/crashes", "");
    assert!(fuzzer.evaluate(&with_bug(60, "<"), ExitKind::Crash));
    std::fs::remove_file(blocked).unwrap();
    let minimizing = ddfuzz::campaign::Minimizing::of_target(target, Way::Command, "full");
    let shared = Arc::clone(&fuzzer.desk);
    let mut stage = ddfuzz::campaign::DdminStage::new(shared, minimizing, 20).unwrap();
    finish(&mut stage, &mut fuzzer.state);
    assert_eq!(reproducers(&desk.file("out")), ["<"]);
}

#[test]
fn what_cannot_be_named_is_filed_as_seen_once_where_no_stage_comes_back() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let failed_run = FailedRunSlot::default();
    let mut fuzzer = Fuzzer::new(&desk, &target);
    fuzzer.objective = fuzzer
        .objective
        .reading(failed_run.clone())
        .storing_unclassified();
    // It is being built.
    let Program::Path(program) = &target.program else {
        panic!("it is no file");
    };
    std::fs::remove_file(program).unwrap();
    failed_run.put(FailedRun {
        ended: Some(Ended::Signal(11)),
        ..FailedRun::default()
    });
    let input = with_bug(60, "<");
    assert!(fuzzer.evaluate(&input, ExitKind::Crash));
    drop(fuzzer);
    let reader = Reader::open(&desk.file("out")).unwrap();
    let flaky = reader.groups(Kind::Flaky).unwrap();
    assert_eq!(flaky.len(), 1);
    let major = flaky[0].record.major.short();
    let entries = reader.entries(Kind::Flaky, &major).unwrap();
    assert_eq!(entries[0].original_bytes().unwrap(), input);
}

#[test]
fn what_did_not_pass_stays_out_of_the_corpus() {
    let mut manager: NopEventManager = NopEventManager::new();
    let input = BytesInput::new(b"x".to_vec());
    let mut asked = |kind: ExitKind| {
        let mut state = state();
        Passed
            .is_interesting(&mut state, &mut manager, &input, &(), &kind)
            .unwrap()
    };
    assert!(asked(ExitKind::Ok));
    assert!(!asked(ExitKind::Crash));
    assert!(!asked(ExitKind::Timeout));
}
