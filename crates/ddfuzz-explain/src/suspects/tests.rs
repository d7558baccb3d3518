//! Which statements are looked at first, by explanations made by hand.

use super::*;
use crate::report::CriticalRecord;

fn frame(function: &str, file: &str, line: u64) -> FrameRecord {
    FrameRecord {
        function: function.to_owned(),
        file: Some(file.to_owned()),
        line: Some(line),
    }
}

fn own(line: u64) -> FrameRecord {
    frame("f", "main.c", line)
}

fn value(line: u64, earlier: Vec<OriginRecord>) -> OriginRecord {
    OriginRecord {
        written: vec![own(line), frame("main", "main.c", line + 1000)],
        read: None,
        unset: false,
        copies: false,
        out_of_range: false,
        in_both: false,
        freed: false,
        operand: 0,
        selects: false,
        earlier,
    }
}

fn link(line: u64, confidence: Confidence) -> LinkRecord {
    LinkRecord {
        variable: "x".to_owned(),
        confidence,
        writer: Some(WriterRecord::Statement(own(line))),
        ..LinkRecord::default()
    }
}

fn lines(it: &Explanation) -> Vec<Option<u64>> {
    suspects(it).iter().map(|it| it.place[0].line).collect()
}

#[test]
fn the_value_comes_before_the_chain_and_only_confirmed_links_are_named() {
    let mut it = Explanation {
        origin: Some(value(10, vec![value(20, Vec::new())])),
        chain: vec![
            link(30, Confidence::Confirmed),
            link(40, Confidence::OneWayOnly),
        ],
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(10), Some(30), Some(20)]);
    assert_eq!(suspects(&it)[0].place[1].function, "main");
    it.chain[0].confidence = Confidence::NotConfirmed;
    assert_eq!(lines(&it), [Some(10), Some(20)]);
}

#[test]
fn what_is_not_confirmed_is_named_where_nothing_else_is() {
    let mut it = Explanation {
        chain: vec![
            link(30, Confidence::NotConfirmed),
            link(40, Confidence::NotConfirmed),
        ],
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(40), Some(30)]);
    assert!(suspects(&it).iter().all(|it| !it.tested));
    // A copy is named behind what made its value.
    it.chain.push(link(50, Confidence::Confirmed));
    let mut made = value(50, vec![value(20, Vec::new())]);
    made.copies = true;
    it.chain[2].made_of = Some(made);
    assert_eq!(lines(&it), [Some(20), Some(50)]);
    assert!(suspects(&it)[1].tested);
}

#[test]
fn a_statement_is_called_as_sure_as_the_chain_calls_its_link() {
    let told = |it: &Explanation, line: u64| {
        let found = suspects(it).into_iter();
        let mut found = found.filter(|it| it.place[0].line == Some(line));
        found.next().map(|it| (it.why, it.tested)).unwrap()
    };
    let mut made = value(50, vec![value(40, Vec::new())]);
    made.copies = true;
    let mut it = Explanation {
        chain: vec![
            link(5, Confidence::Confirmed),
            link(40, Confidence::NotConfirmed),
            link(50, Confidence::Confirmed),
        ],
        ..Explanation::default()
    };
    it.chain[2].made_of = Some(made);
    for confidence in [
        Confidence::NotConfirmed,
        Confidence::OneWayOnly,
        Confidence::Confirmed,
    ] {
        it.chain[1].confidence = confidence;
        let (why, tested) = told(&it, 40);
        assert!(why.ends_with(&format!("({})", confidence.word())), "{why}");
        assert_eq!(tested, confidence == Confidence::Confirmed);
    }
    // Its value was copied to a confirmed variable, and no link has it.
    it.chain.remove(1);
    assert_eq!(told(&it, 40), (COPIED.to_owned(), false));
    // A confirmed write is missing, and this is executed in its place.
    it.chain[1] = link(50, Confidence::Confirmed);
    it.chain[1].writer = Some(WriterRecord::Missed(own(50)));
    it.chain[1].instead = vec![own(60)];
    assert_eq!(told(&it, 60), (IN_PLACE.to_owned(), true));
}

#[test]
fn numbers_out_of_range_come_first() {
    let mut odd = value(20, Vec::new());
    odd.out_of_range = true;
    let it = Explanation {
        origin: Some(value(10, vec![value(15, Vec::new()), odd.clone()])),
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(20), Some(10), Some(15)]);
    let block = OverflowRecord {
        bytes: 3,
        allocated: vec![own(50)],
        wrappers: 0,
        size: Some(value(60, vec![odd])),
        passes_size: false,
        extent: None,
        writer: own(70),
        reads: false,
        is_averted: true,
    };
    let it = Explanation {
        overflow: Some(block),
        ..it
    };
    assert_eq!(lines(&it), [Some(20), Some(60), Some(70)]);
}

#[test]
fn of_a_block_its_size_its_extent_and_a_tested_write_behind_it_are_named() {
    let in_writer = OriginRecord {
        written: vec![frame("fill", "main.c", 71)],
        ..value(71, vec![value(80, Vec::new())])
    };
    let block = OverflowRecord {
        bytes: 3,
        allocated: vec![own(50)],
        wrappers: 0,
        size: Some(value(60, Vec::new())),
        passes_size: false,
        extent: Some(in_writer),
        writer: frame("fill", "main.c", 70),
        reads: false,
        is_averted: true,
    };
    let it = Explanation {
        overflow: Some(block.clone()),
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(60), Some(70), Some(80)]);
    let it = Explanation {
        overflow: Some(OverflowRecord {
            size: None,
            ..block
        }),
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(80), Some(50), Some(70)]);
}

#[test]
fn a_call_that_only_passes_the_size_on_is_passed_over() {
    let size = OriginRecord {
        read: Some(own(50)),
        ..value(60, vec![value(65, Vec::new())])
    };
    let block = OverflowRecord {
        bytes: 3,
        allocated: vec![own(50)],
        wrappers: 0,
        size: Some(size),
        passes_size: true,
        extent: None,
        writer: own(70),
        reads: false,
        is_averted: true,
    };
    let it = Explanation {
        overflow: Some(block),
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(60), Some(70), Some(65)]);
}

#[test]
fn what_is_odd_comes_before_values_only_where_a_run_has_tested_it() {
    let odd = SuspectRecord {
        place: vec![own(90)],
        why: "writes to memory that was freed".to_owned(),
        tested: true,
    };
    let mut it = Explanation {
        observed: vec![odd],
        origin: Some(value(10, Vec::new())),
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(90), Some(10)]);
    it.observed[0].tested = false;
    assert_eq!(lines(&it), [Some(10), Some(90)]);
}

#[test]
fn conditions_whose_other_decision_averts_the_failure_come_after_the_first_statement() {
    let condition = |line, reaches| CriticalRecord {
        place: vec![own(line)],
        execution: 1,
        reaches,
        is_like: false,
        status: Some(0),
        decided: 0,
        values: Vec::new(),
    };
    let mut it = Explanation {
        origin: Some(value(10, vec![value(20, Vec::new())])),
        critical: vec![condition(30, true), condition(40, false)],
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(10), Some(30), Some(20)]);
    let tested = suspects(&it).into_iter().map(|it| it.tested);
    assert_eq!(tested.collect::<Vec<_>>(), [false, true, false]);
    // A statement is named once, and what a run has tested is no suspicion.
    it.critical[0] = condition(20, true);
    it.critical[0].place = it.origin.as_ref().unwrap().earlier[0].written.clone();
    assert_eq!(lines(&it), [Some(10), Some(20)]);
    assert!(suspects(&it)[1].tested);
}

#[test]
fn the_function_that_takes_a_size_from_memory_for_its_caller_is_named() {
    let read = |function| OriginRecord {
        read: Some(frame(function, "main.c", 55)),
        ..value(60, Vec::new())
    };
    let lines_of = |size| {
        let block = OverflowRecord {
            bytes: 3,
            allocated: vec![own(50)],
            wrappers: 0,
            size: Some(size),
            passes_size: false,
            extent: None,
            writer: own(70),
            reads: false,
            is_averted: true,
        };
        lines(&Explanation {
            overflow: Some(block),
            ..Explanation::default()
        })
    };
    assert_eq!(lines_of(read("longest")), [Some(50), Some(55), Some(60)]);
    // The function that allocates reads it itself.
    assert_eq!(lines_of(read("f")), [Some(50), Some(60), Some(70)]);
}

#[test]
fn what_is_freed_and_read_is_named_for_each_caller() {
    let freed = |caller: u64| vec![own(10), frame("caller", "main.c", caller)];
    let value = OriginRecord {
        written: freed(30),
        freed: true,
        ..value(10, Vec::new())
    };
    let mut it = Explanation {
        freed_early: freed(20),
        freed_together: 1,
        used_late: vec![own(40)],
        origin: Some(value),
        ..Explanation::default()
    };
    let callers: Vec<Option<u64>> = suspects(&it)
        .iter()
        .map(|it| it.place.get(1).and_then(|it| it.line))
        .collect();
    assert_eq!(callers, [Some(20), Some(30), None]);
    assert!(suspects(&it)[0].tested);
    // Without it the run fails in another way.
    it.freed_together = 0;
    assert!(!suspects(&it)[0].tested);
}

#[test]
fn main_and_the_statement_that_fails_come_last() {
    let mut it = Explanation {
        origin: Some(value(10, vec![value(20, Vec::new())])),
        chain: vec![link(30, Confidence::Confirmed)],
        ..Explanation::default()
    };
    it.crash.file = Some("main.c".to_owned());
    it.crash.line = Some(10);
    assert_eq!(lines(&it), [Some(30), Some(20), Some(10)]);
    let in_main = |line| Some(WriterRecord::Statement(frame("main", "main.c", line)));
    it.chain[0].writer = in_main(30);
    it.chain
        .extend([21, 22].map(|line| link(line, Confidence::NotConfirmed)));
    assert_eq!(lines(&it), [Some(20), Some(30), Some(10)]);
    // Half of the chain is in `main`, but it may be what reads the input.
    it.chain[1].writer = in_main(21);
    assert_eq!(lines(&it), [Some(20), Some(30), Some(10)]);
    // It does the work itself.
    it.chain[2].writer = in_main(22);
    it.chain
        .extend([23, 24, 25].map(|line| link(line, Confidence::NotConfirmed)));
    assert_eq!(lines(&it), [Some(30), Some(20), Some(10)]);
}

#[test]
fn what_both_runs_write_alike_comes_after_what_makes_the_difference() {
    let mut it = Explanation {
        origin: Some(value(10, vec![value(20, Vec::new())])),
        chain: vec![
            link(30, Confidence::Confirmed),
            link(40, Confidence::Confirmed),
        ],
        ..Explanation::default()
    };
    assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
    it.origin.as_mut().unwrap().in_both = true;
    assert_eq!(lines(&it), [Some(40), Some(10), Some(20)]);
    // The value differs: it is in the chain, confirmed or not.
    it.chain.push(link(10, Confidence::NotConfirmed));
    assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
    // A last link that says no more than the value gives way to the one before it.
    it.chain[2].confidence = Confidence::Confirmed;
    assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
}

#[test]
fn copies_are_followed_to_what_was_copied() {
    let mut copied = value(30, vec![value(20, Vec::new())]);
    copied.copies = true;
    let mut it = Explanation {
        chain: vec![link(30, Confidence::Confirmed)],
        ..Explanation::default()
    };
    it.chain[0].made_of = Some(copied);
    it.chain.insert(0, link(5, Confidence::Confirmed));
    assert_eq!(lines(&it), [Some(20), Some(5), Some(30)]);
    // The statement that made the value is named for another reason.
    it.origin = Some(value(20, Vec::new()));
    assert_eq!(lines(&it), [Some(20), Some(30), Some(5)]);
    it.origin = None;
    // Where the failing value was copied, the statement that made it comes first.
    let mut failing = value(40, vec![value(50, Vec::new())]);
    failing.copies = true;
    let mut of_copy = it.clone();
    of_copy.origin = Some(failing);
    assert_eq!(lines(&of_copy), [Some(50), Some(40), Some(20)]);
    assert_eq!(suspects(&of_copy)[1].why, COPIES);
    // What was copied is what was read.
    it.chain.insert(0, link(20, Confidence::Confirmed));
    assert_eq!(lines(&it), [Some(30), Some(5), Some(20)]);
}

#[test]
fn nothing_but_the_program_itself_is_named() {
    let foreign = [
        "/usr/include/c++/14/bits/stl_list.h",
        "/rustc/0123/library/core/src/option.rs",
        "/home/me/.cargo/registry/src/index/regex-1.0.0/src/lib.rs",
        "/home/me/ddfuzz/crates/ddfuzz-target/src/lib.rs",
    ];
    for file in foreign {
        let mut it = Explanation {
            origin: Some(value(10, Vec::new())),
            ..Explanation::default()
        };
        it.origin.as_mut().unwrap().written = vec![frame("g", file, 1), own(7)];
        assert_eq!(lines(&it), [Some(7)], "{file}");
        it.origin.as_mut().unwrap().written.truncate(1);
        assert_eq!(lines(&it), [], "{file}");
    }
}

#[test]
fn a_write_out_of_its_variable_comes_first() {
    let mut it = Explanation {
        overrun: Some(OverrunRecord {
            place: vec![own(50), frame("main", "main.c", 1050)],
            variable: "r->name".to_owned(),
            bytes: 8,
            element: None,
            elements: 8,
            written: 12,
            beyond: 4,
            into: vec!["r->id".to_owned()],
            return_of: None,
            next: Vec::new(),
            is_averted: true,
            is_unusual: true,
        }),
        origin: Some(value(10, Vec::new())),
        chain: vec![link(30, Confidence::Confirmed)],
        ..Explanation::default()
    };
    let first = |it: &Explanation| {
        let first = suspects(it).swap_remove(0);
        (first.place[0].line, first.why, first.tested)
    };
    let why = "writes past the end of r->name".to_owned();
    assert_eq!(first(&it), (Some(50), why.clone(), true));
    // Two fields may be set at once, as is meant; or the run fails in another way without it.
    for change in [(true, false), (false, true)] {
        if let Some(overrun) = &mut it.overrun {
            (overrun.is_averted, overrun.is_unusual) = change;
        }
        assert_eq!(first(&it), (Some(50), why.clone(), false));
    }
    if let Some(overrun) = &mut it.overrun {
        overrun.element = Some(-1);
    }
    let why = "writes to element -1 of r->name, which has 8".to_owned();
    assert_eq!(first(&it), (Some(50), why, false));
}

#[test]
fn a_function_that_only_returns_a_new_block_is_not_named() {
    let allocates = frame("xmalloc", "main.c", 9);
    let size = OriginRecord {
        read: Some(allocates.clone()),
        ..value(60, vec![value(65, Vec::new())])
    };
    let block = |passes_size| OverflowRecord {
        bytes: 3,
        allocated: vec![allocates.clone(), own(50)],
        wrappers: 1,
        size: Some(size.clone()),
        passes_size,
        extent: None,
        writer: own(70),
        reads: false,
        is_averted: true,
    };
    let of = |passes_size| {
        lines(&Explanation {
            overflow: Some(block(passes_size)),
            ..Explanation::default()
        })
    };
    assert_eq!(of(true), [Some(60), Some(70), Some(65)]);
    // It computes the size itself.
    assert_eq!(of(false)[0], Some(9));
}
