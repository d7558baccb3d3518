//! The stage alone: it walks what a fuzzer has found, groups it, and minimizes each group.

use std::time::Duration;

use ddfuzz::campaign::{CampaignError, DdminStage, GroupRegistry, SolutionCursor, StageSettings};
use ddfuzz::store::StoreError;
use libafl::HasMetadata;
use libafl::corpus::{Corpus, InMemoryCorpus, OnDiskCorpus};
use libafl::inputs::BytesInput;
use libafl::state::{HasSolutions, StdState};
use libafl_bolts::rands::StdRand;

use super::state::{
    State, crashes, find, finish, open, perform, reproducers, state, three_bugs, with_bug,
};
use crate::ddfuzz::Desk;

fn patient() -> StageSettings {
    StageSettings {
        budget_time: None,
        ..StageSettings::default()
    }
}

#[test]
fn solutions_become_groups_with_minimal_reproducers() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let mut state = state();
    for length in [90, 60, 70, 80] {
        find(&mut state, &with_bug(length, "<"));
        find(&mut state, &with_bug(length, "##"));
    }
    let mut stage = open(&out, &target, patient());
    finish(&mut stage, &mut state);
    assert_eq!(stage.minimized(), 2);
    // A crash that was found later; the cursor stands before it.
    find(&mut state, &with_bug(50, "{"));
    finish(&mut stage, &mut state);
    drop(stage);
    let found = reproducers(&out);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!((&found[0][..], &found[2][..]), ("##", "<"));
    assert!(found[1].contains('{') && found[1].len() == 21, "{found:?}");
    // Of the four of a group the first was filed, and the smaller one behind it.
    assert_eq!(crashes(&out).len(), 5);
    for entry in crashes(&out)
        .iter()
        .filter(|entry| entry.minimized.is_some())
    {
        let words = format!("log replay {}", entry.log().display());
        desk.call(&words).exits(0);
        let words = format!("log verify {}", entry.log().display());
        desk.call(&words).exits(0);
        assert_eq!(entry.minimized.as_ref().unwrap().claim, "1-minimal");
    }
    desk.is_left_clean();
}

#[test]
fn an_easy_group_takes_one_round_and_a_hard_one_gives_way() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let mut state = state();
    let mut stage = open(&out, &target, patient());
    find(&mut state, &with_bug(4000, "{"));
    perform(&mut stage, &mut state);
    let (spent, _) = stage.used();
    assert!(spent > Duration::ZERO);
    // Whatever becomes of that, the next one is begun in the round that it is found in.
    find(&mut state, &with_bug(30, "<"));
    perform(&mut stage, &mut state);
    let begun = crashes(&out)
        .iter()
        .filter(|entry| entry.log().exists())
        .count();
    assert_eq!(begun, 2);
}

#[test]
fn a_share_of_nothing_groups_and_does_not_minimize() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let mut state = state();
    find(&mut state, &with_bug(60, "<"));
    let mut stage = open(
        &out,
        &target,
        StageSettings {
            share_percent: 0,
            ..StageSettings::default()
        },
    );
    for _ in 0..20 {
        perform(&mut stage, &mut state);
    }
    drop(stage);
    let entries = crashes(&out);
    assert_eq!(entries.len(), 1);
    assert!(!entries[0].log().exists());
}

#[test]
fn a_stage_dropped_in_the_midst_goes_on_by_its_log() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let mut calm = state();
    find(&mut calm, &with_bug(700, "{"));
    let mut stage = open(&desk.file("calm"), &target, patient());
    finish(&mut stage, &mut calm);
    drop(stage);
    let expected = crate::outcome::log(&crashes(&desk.file("calm"))[0].log());

    let mut state = state();
    find(&mut state, &with_bug(700, "{"));
    let mut stages = 0;
    while reproducers_of(&out).is_empty() {
        stages += 1;
        assert!(stages < 200, "it never ends");
        // One slice each: a second at most.
        let mut stage = open(&out, &target, patient());
        perform(&mut stage, &mut state);
        drop(stage);
        let entry = &crashes(&out)[0];
        let text = std::fs::read_to_string(entry.log()).unwrap();
        assert_eq!(text.matches(r#""kind":"start""#).count(), 1);
    }
    assert_eq!(crate::outcome::log(&crashes(&out)[0].log()), expected);
    desk.is_left_clean();
}

/// As [`reproducers`], of a directory that may not be there yet.
fn reproducers_of(out: &std::path::Path) -> Vec<String> {
    if out.exists() {
        reproducers(out)
    } else {
        Vec::new()
    }
}

#[test]
fn the_cursor_survives_with_the_state() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let mut state = state();
    find(&mut state, &with_bug(60, "<"));
    find(&mut state, &with_bug(60, "##"));
    let mut stage = open(&out, &target, patient());
    finish(&mut stage, &mut state);
    drop(stage);
    // As LibAFL's restarting managers keep it.
    let kept = serde_json::to_vec(&state).unwrap();
    let mut state: State = serde_json::from_slice(&kept).unwrap();
    let cursor = state.metadata::<SolutionCursor>().unwrap();
    assert_eq!(cursor.next(state.solutions()), None);
    // What is behind it is not run again, so the directory of a second stage stays empty.
    let other = desk.file("other");
    let mut stage = open(&other, &target, patient());
    finish(&mut stage, &mut state);
    drop(stage);
    assert!(crashes(&other).is_empty());
    // Removed solutions do not stop it.
    let last = state.solutions().last().unwrap();
    find(&mut state, &with_bug(40, "{"));
    state.solutions_mut().remove(last).unwrap();
    let mut stage = open(&other, &target, patient());
    finish(&mut stage, &mut state);
    drop(stage);
    assert_eq!(reproducers(&other).len(), 1);
}

#[test]
fn a_solution_that_cannot_be_read_now_is_read_later() {
    let desk = Desk::new();
    let (target, out) = (three_bugs(&desk), desk.file("out"));
    let corpus = || InMemoryCorpus::new();
    let found = OnDiskCorpus::<BytesInput>::new(desk.file("found")).unwrap();
    let rand = StdRand::with_seed(1);
    let mut state: State<_> = StdState::new(rand, corpus(), found, &mut (), &mut ()).unwrap();
    let id = find(&mut state, &with_bug(60, "<"));
    let path = state
        .solutions()
        .get(id)
        .unwrap()
        .borrow()
        .file_path()
        .clone()
        .unwrap();
    std::fs::rename(&path, desk.file("aside")).unwrap();
    std::fs::create_dir(&path).unwrap();
    let mut stage = open(&out, &target, patient());
    finish(&mut stage, &mut state);
    assert!(crashes(&out).is_empty());
    // It delays no other one.
    find(&mut state, &with_bug(50, "{"));
    finish(&mut stage, &mut state);
    assert_eq!(reproducers(&out).len(), 1);
    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(desk.file("aside"), &path).unwrap();
    finish(&mut stage, &mut state);
    assert_eq!(reproducers(&out).len(), 2);
    // One whose file is gone does not stop it.
    let id = find(&mut state, &with_bug(40, "{"));
    let path = state
        .solutions()
        .get(id)
        .unwrap()
        .borrow()
        .file_path()
        .clone()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    find(&mut state, &with_bug(60, "##"));
    finish(&mut stage, &mut state);
    drop(stage);
    assert_eq!(reproducers(&out).len(), 3);
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let desk = Desk::new();
    let target = three_bugs(&desk);
    let refused = |out: &str| {
        let opened = DdminStage::<GroupRegistry, BytesInput>::open(desk.file(out), target.clone());
        opened.err().expect("it is refused")
    };
    std::fs::create_dir(desk.file("foreign")).unwrap();
    desk.write("foreign/letter", "Dear");
    let error = refused("foreign");
    let foreign = matches!(error, CampaignError::Store(StoreError::NotOurs { .. }));
    assert!(foreign, "{error}");

    let mut other = target.clone();
    other.args = vec!["-x".into()];
    drop(open(&desk.file("theirs"), &other, patient()));
    let error = refused("theirs");
    assert!(
        matches!(error, CampaignError::OtherTarget { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("theirs"), "{error}");

    let held = open(&desk.file("held"), &target, patient());
    let error = refused("held");
    let held_now = matches!(error, CampaignError::Store(StoreError::InUse { .. }));
    assert!(held_now, "{error}");
    drop(held);
    drop(open(&desk.file("held"), &target, patient()));
}
