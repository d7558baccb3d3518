//! Chains of small programs, as a person would tell them.
#![cfg(target_arch = "x86_64")]

mod explained;
#[path = "../../../tests/needs/mod.rs"]
mod needs;

use ddfuzz_explain::report::{LinkRecord, RoundsRecord};
use ddfuzz_explain::{Explanation, Pattern, equally_long, explain, story};
use explained::{PLAIN, confirmed, explained, program, program_by, request, target};

#[test]
fn a_list_that_loses_its_tail() {
    let it = explained(
        &program("recs.c", PLAIN),
        b"+a\n+b\n-b\n+c\n",
        Some(b"+a\n+b\n-a\n+c\n"),
    );
    let text = story::text(&it);
    let sure = confirmed(&it);
    assert_eq!(sure.first(), Some(&("line[1]", "input")), "{text}");
    assert_eq!(sure.last(), Some(&("l->tail", "drop")), "{text}");
    is_cheap(&it);
}

#[test]
fn a_value_that_only_the_passing_run_writes() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let it = explained(
            &program("records.c", flags),
            b"alpha:3\nbeta:5\ngamma:-2\ndelta:1\n",
            Some(b"alpha:3\nbeta:5\ngamma:+2\ndelta:1\n"),
        );
        let text = story::text(&it);
        let sure = confirmed(&it);
        assert!(sure.contains(&("r->count", "parse")), "{text}");
        assert_eq!(sure.last(), Some(&("r->values", "sum")), "{text}");
        let last = it.chain.last().unwrap();
        let by = serde_json::to_value(&last.writer).unwrap();
        assert_eq!((&by["line"], &by["run"]), (&30.into(), &"passing".into()));
        is_cheap(&it);
    }
}

#[test]
fn the_call_of_an_inlined_writer_is_told() {
    for compiler in ["g++", "clang++"] {
        if needs::program(compiler).is_none() {
            continue;
        }
        for level in ["-O0", "-O1"] {
            let program = program_by(compiler, "inlined.cc", &["-g", level]);
            let it = explained(&program, b"aaaaaaaaaaa", Some(b"aa"));
            let text = story::text(&it);
            let link = it.chain.iter().find(|it| it.variable == "table.size");
            let link = link.unwrap_or_else(|| panic!("{text}"));
            let calls = link.calls.iter().map(|it| (it.function.as_str(), it.line));
            assert_eq!(link.function.as_deref(), Some("resize"), "{text}");
            assert_eq!(calls.collect::<Vec<_>>(), [("main", Some(27))], "{text}");
        }
    }
}

#[test]
fn a_passing_input_without_the_last_lines_is_brought_closer() {
    let it = explained(
        &program("records.c", PLAIN),
        b"alpha:3\nbeta:5\ngamma:-2\ndelta:1\n",
        Some(b"alpha:3\nbeta:5\n"),
    );
    let text = story::text(&it);
    assert!(confirmed(&it).contains(&("r->values", "sum")), "{text}");
    let differ: usize = it
        .input
        .difference
        .iter()
        .map(|one| one.removed.0.len())
        .sum();
    assert_eq!(differ, 1, "{text}");
}

/// The most that a chain of a program of 40 to 80 lines may take.
fn is_cheap(it: &Explanation) {
    let points = it.points.used + it.points.skipped;
    assert!(
        it.tests <= 60 && points <= 25,
        "{} tests, {points} points\n{}",
        it.tests,
        story::text(it)
    );
}

#[test]
fn the_sample_of_askigor() {
    let program = program("sample.c", PLAIN);
    let both = equally_long(
        target(&program, &["9", "8", "7", "6", "5", "4"]),
        target(&program, &["11", "14"]),
    );
    let mut request = request(both.1.clone(), b"", Some(b""));
    (request.passing_target, request.failing_target) = both;
    request.wrong = Some(Pattern::new("Output: 0 ").unwrap());
    let it = explain(&request).unwrap();
    let text = story::text(&it);
    assert!(
        confirmed(&it)
            .iter()
            .any(|(_, writer)| *writer == "shell_sort"),
        "{text}"
    );
    let names: Vec<&str> = it.chain.iter().map(|link| link.variable.as_str()).collect();
    let expected = ["argc", "a[2]", "v", "j", "a[0]", "library buffer[8]"];
    assert_eq!(names, expected, "{text}");
    is_cheap(&it);
    assert_eq!(it.tests, 60, "{text}");
}

#[test]
fn the_fifth_push() {
    let it = explained(
        &program("stack.c", PLAIN),
        b"1 2 3 4 5 print\n",
        Some(b"1 2 3 + 5 print\n"),
    );
    let text = story::text(&it);
    is_cheap(&it);
    assert_eq!(confirmed(&it).last(), Some(&("m->emit", "push")), "{text}");
}

#[test]
fn a_bug_in_the_middle_of_a_program_is_found_at_each_level_of_optimization() {
    for flags in [&["-g", "-O0"][..], &["-g", "-Og"], &["-g", "-O1"]] {
        let it = explained(
            &program("calc.c", flags),
            b"x=4\n(x-3)*2\n(x-4)*2\n7\n",
            None,
        );
        let text = story::text(&it);
        assert!(
            confirmed(&it).contains(&("p->depth", "factor")),
            "{flags:?} {text}"
        );
        let it = explained(&program("words.c", flags), b"a bc def\n\xbf\n", None);
        let text = story::text(&it);
        let sure = confirmed(&it);
        assert!(sure.contains(&("value", "hash")), "{flags:?} {text}");
        assert!(
            sure.iter().any(|(name, _)| *name == "index"),
            "{flags:?} {text}"
        );
        let it = explained(&program("recs.c", flags), b"+a\n+b\n-b\n+c\n", None);
        let text = story::text(&it);
        assert_eq!(
            confirmed(&it).last(),
            Some(&("l->tail", "drop")),
            "{flags:?} {text}"
        );
    }
}

#[test]
fn an_exit_with_a_failing_status_and_a_block_that_is_too_short() {
    let program = program("checks.c", PLAIN);
    let mut asked = request(target(&program, &[]), b"((((\n", Some(b"(((a\n"));
    asked.failing_target.crash_exit = Some(3);
    asked.passing_target.crash_exit = Some(3);
    let it = explain(&asked).unwrap();
    let text = story::text(&it);
    assert!(confirmed(&it).contains(&("depth", "main")), "{text}");
    let it = explained(&program, b"h((((\n", Some(b"h((aa\n"));
    let text = story::text(&it);
    let last = ("chunk header behind *block", "filled");
    assert_eq!(confirmed(&it).last(), Some(&last), "{text}");
}

#[test]
fn a_heap_that_the_program_maps_itself() {
    let program = program("pool.c", PLAIN);
    let it = explained(
        &program,
        b"one\ntwo-six\nten\n",
        Some(b"one\ntwo_six\nten\n"),
    );
    let text = story::text(&it);
    assert!(confirmed(&it).contains(&("c", "store")), "{text}");
    // The texts are in the mapping, and carry the failure from there on.
    let is_text = |link: &LinkRecord| link.variable == "word->text[4]";
    assert!(it.chain.iter().any(is_text), "{text}");
}

/// The last confirmed variable of a program in another language, as the text has it, and its writer.
fn last_told(compiler: &str, name: &str, failing: &[u8], passing: &[u8]) -> Option<String> {
    needs::program(compiler)?;
    let program = program_by(compiler, name, &["-g"]);
    let it = explained(&program, failing, Some(passing));
    let text = story::text(&it);
    let link = it
        .chain
        .iter()
        .rfind(|link| link.confidence.word() == "confirmed");
    let link = link.unwrap_or_else(|| panic!("{text}"));
    Some(format!(
        "{} by {}",
        story::change(link),
        explained::writer(link)
    ))
}

#[test]
fn smart_pointers_of_cpp_and_enumerations_of_rust() {
    let told = last_told("g++", "shop.cc", b"ab xcd\n", b"ab ycd\n");
    let expected = "shop->best = NULL instead of a struct Item by add";
    assert!(told.is_none_or(|told| told == expected));
    let told = last_told("rustc", "machine.rs", b"1 2 ?\n", b"1 2 +\n");
    let is_expected = |told: String| {
        told.starts_with("machine->last.Some.__0 = NULL instead of") && told.ends_with("by run")
    };
    assert!(told.is_none_or(is_expected));
}

/// Vectors of different elements have fields of the same names, also those of the types inside of
/// them.
#[test]
fn the_elements_of_one_vector_are_not_those_of_another() {
    for compiler in ["g++", "clang++"] {
        if needs::program(compiler).is_none() {
            continue;
        }
        let program = program_by(compiler, "jobs.cc", &["-g", "-O0"]);
        let text = |want: &str| format!("n 5 0\nn 6 0\nn 7 0\nl 0 1\nl 1 2\nc 0 {want}\n");
        let it = explained(&program, text("3").as_bytes(), Some(text("2").as_bytes()));
        let names: Vec<&str> = it.chain.iter().map(|link| link.variable.as_str()).collect();
        // The only pointers to nodes are in the first vector, and no node is an owner.
        let is_wrong = |name: &&str| name.contains("owner") || name.contains("buffer");
        assert!(!names.iter().any(is_wrong), "{compiler} {names:?}");
        // `Count` writes one word, however it is called.
        let by_count = it
            .chain
            .iter()
            .filter(|link| explained::writer(link) == "Count");
        let by_count: Vec<&str> = by_count.map(|link| link.variable.as_str()).collect();
        let is_once = by_count.len() == 1 && by_count[0].ends_with("->want");
        assert!(is_once, "{compiler} {by_count:?} of {names:?}");
    }
}

#[test]
fn the_elements_of_a_vector_of_rust() {
    if needs::program("rustc").is_none() {
        return;
    }
    let program = program_by("rustc", "machine.rs", &["-g"]);
    let it = explained(&program, b"5 0 /\n", Some(b"5 1 /\n"));
    let changes: Vec<String> = it.chain.iter().map(story::change).collect();
    let element = "machine->stack[1] = 0 instead of 1".to_owned();
    assert!(changes.contains(&element), "{changes:?}");
}

#[test]
fn a_record_of_the_name_of_its_own_part_is_no_part_of_itself() {
    if needs::program("rustc").is_none() {
        return;
    }
    let program = program_by("rustc", "parked.rs", &["-g"]);
    let it = explained(&program, b"a\n", Some(b"abc\n"));
    let told = story::text(&it);
    assert!(told.contains("inner.inner = 0"), "{told}");
}

/// The states of the runs are not compared in libFuzzer's functions.
#[test]
fn no_point_is_in_libfuzzer() {
    let program = program("driven.c", PLAIN);
    let it = explained(&program, b"9\n", Some(b"1\n"));
    let text = story::text(&it);
    let examined = it.examined.iter();
    let points: Vec<&str> = examined
        .filter_map(|it| it.point.function.as_deref())
        .collect();
    assert!(!points.is_empty(), "{text}");
    assert!(points.iter().all(|it| *it == "one"), "{points:?} {text}");
    assert_eq!(confirmed(&it).last(), Some(&("at", "one")), "{text}");
}

#[test]
fn a_block_behind_the_same_pointer_is_told_by_its_free_and_its_allocation() {
    let program = program("chosen.c", PLAIN);
    let input = |dropped: &str| {
        let calls = format!("+zzz\n+one\n+two\n.one\n-{dropped}\n#abcdefghijklmnopqrstuv\n>\n");
        calls.into_bytes()
    };
    let it = explained(&program, &input("one"), Some(&input("two")));
    let behind = it.chain.iter().find(|it| !it.allocated.is_empty());
    let behind = behind.unwrap_or_else(|| panic!("{:?}", it.chain));
    let functions = [&behind.allocated, &behind.freed].map(|it| it[0].function.as_str());
    assert_eq!(functions, ["note", "drop"]);
    assert_eq!(
        (&behind.writer, behind.type_name.as_str()),
        (&None, "struct item *")
    );
    assert_eq!(behind.function.as_deref(), Some("note"));
    let text = story::text(&it);
    assert!(
        text.contains("allocated here, where drop at chosen.c:"),
        "{text}"
    );
}

#[test]
fn values_of_other_rounds_are_said_to_be_that() {
    let program = program("placed.c", PLAIN);
    let input = |word: &str| format!("0 abc\n4 {word}\n1 xyz\n").into_bytes();
    let it = explained(&program, &input("abcdefghij"), Some(&input("abcd")));
    let at = it.chain.iter().filter(|it| it.variable == "at");
    let rounds: Vec<_> = at.filter_map(|it| it.rounds.as_ref()).collect();
    let told = |it: &&RoundsRecord| (it.failing, it.passing) == (2, 3) && it.at.line == Some(14);
    assert!(rounds.iter().any(told), "{:?}", it.chain);
    let text = story::text(&it);
    let words = "in round 2 of the loop at placed.c:14, in the passing run in round 3";
    assert!(text.contains(words), "{text}");
}
