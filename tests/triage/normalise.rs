//! Which frames name a bug.

use ddfuzz::triage::Entry;
use ddfuzz::triage::normalise::normalise;
use ddfuzz::triage::snapshot::{Control, End};

use crate::made_up::{entry, own, runtime, snapshot};

#[test]
fn frames_of_the_runtime_are_dropped_wherever_they_are() {
    let made_up = snapshot(vec![runtime("raise"), own(1), runtime("qsort"), own(101)]);
    assert_eq!(normalise(&made_up).own, [1, 3]);
}

#[test]
fn via_is_the_outermost_runtime_frame_on_top() {
    let made_up = snapshot(vec![
        runtime("raise"),
        runtime("abort"),
        own(1),
        runtime("qsort"),
    ]);
    assert_eq!(normalise(&made_up).via.as_deref(), Some("abort"));
    assert_eq!(
        normalise(&snapshot(vec![own(1), runtime("qsort")])).via,
        None
    );
}

#[test]
fn the_entry_and_what_is_below_it_are_cut() {
    let made_up = snapshot(vec![own(1), own(101), entry(201, Entry::Main), own(301)]);
    assert_eq!(normalise(&made_up).own, [0, 1]);
}

#[test]
fn the_last_own_frame_is_never_cut() {
    let made_up = snapshot(vec![entry(201, Entry::Main), own(301)]);
    assert_eq!(normalise(&made_up).own, [0]);
}

#[test]
fn nothing_is_cut_when_the_walk_did_not_end_cleanly() {
    let mut made_up = snapshot(vec![own(1), entry(201, Entry::Main), own(301)]);
    made_up.end = End::Untrusted;
    assert_eq!(normalise(&made_up).own, [0, 1, 2]);
}

#[test]
fn the_entry_of_a_harness_comes_before_main() {
    let frames = vec![
        own(1),
        entry(101, Entry::Harness),
        own(201),
        entry(301, Entry::Main),
    ];
    assert_eq!(normalise(&snapshot(frames)).own, [0]);
}

#[test]
fn a_recursive_main_is_cut_at_the_outermost() {
    let frames = vec![
        own(1),
        entry(201, Entry::Main),
        own(101),
        entry(202, Entry::Main),
    ];
    assert_eq!(normalise(&snapshot(frames)).own, [0, 1, 2]);
}

#[test]
fn recursion_is_folded() {
    let frames = vec![
        own(1),
        own(101),
        own(201),
        own(101),
        own(201),
        own(101),
        own(201),
        own(301),
    ];
    assert_eq!(normalise(&snapshot(frames)).own, [0, 1, 2, 7]);
}

#[test]
fn a_smashed_stack_keeps_one_own_frame() {
    let guarded = snapshot(vec![
        runtime("abort"),
        runtime("__stack_chk_fail"),
        own(1),
        own(101),
    ]);
    assert_eq!(normalise(&guarded).own, [2]);
    let mut returned = snapshot(vec![own(1), own(101)]);
    returned.control = Control::Smashed;
    assert_eq!(normalise(&returned).own, [0]);
}

#[test]
fn without_own_frames_the_innermost_of_the_runtime_stands_in() {
    let normalised = normalise(&snapshot(vec![runtime("raise"), runtime("exit")]));
    assert_eq!(normalised.own, [0]);
    assert!(normalised.runtime_only);
    assert!(normalise(&snapshot(Vec::new())).own.is_empty());
}
