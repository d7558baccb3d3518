//! Statements at which to look first: which of them a changed run of the failing input has tested.
#![cfg(target_arch = "x86_64")]

mod explained;

use ddfuzz_explain::report::{MutantRecord, SuspectRecord};
use ddfuzz_explain::{Explanation, Pattern, explain, story};
use explained::{PLAIN, explained, program, request, target};

/// The line of a test program that has this text.
fn line_of(program: &str, text: &str) -> u64 {
    let path = format!("{}/tests/programs/{program}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    source.lines().position(|it| it.contains(text)).unwrap() as u64 + 1
}

/// The suspect that is the statement on a line.
fn at_line(all: &[SuspectRecord], line: u64) -> Option<&SuspectRecord> {
    all.iter().find(|it| it.place[0].line == Some(line))
}

/// A mutant with `change` of the statement that has the text `statement` in a test program is among
/// those at which to look first, and tested.
fn assert_change_is_tested(it: &Explanation, program: &str, statement: &str, change: &str) {
    let text = story::text(it);
    let wrong = line_of(program, statement);
    let named = at_line(&it.look_first, wrong).unwrap_or_else(|| panic!("{text}"));
    let why = format!("with {change} the run does not fail, and");
    assert!(named.tested && named.why.starts_with(&why), "{text}");
}

/// Whether the text calls each statement at which to look first what it is: tested, or a suspicion.
fn is_told(it: &Explanation) -> bool {
    let text = story::text(it);
    let line = text.lines().nth(1).unwrap_or_default();
    let tested = it.look_first.iter().filter(|it| it.tested).count();
    let counts = [
        line.matches("(tested: ").count(),
        line.matches("(suspicion: ").count(),
    ];
    counts == [tested, it.look_first.len() - tested]
}

#[test]
fn a_wrong_condition_is_named_once_its_other_decision_averts_the_failure() {
    let program = program("memo.c", PLAIN);
    let it = explained(
        &program,
        b"p a\np b\ng a\no\ng b\n",
        Some(b"p a\np b\ng b\no\ng b\n"),
    );
    let text = story::text(&it);
    let wrong = line_of("memo.c", "if (memo == first)");
    let named = at_line(&it.look_first, wrong).unwrap_or_else(|| panic!("{text}"));
    assert!(named.tested && is_told(&it), "{text}");
    assert!(
        named.why.starts_with("with a condition after which"),
        "{text}"
    );
    let critical = it.critical.iter();
    let mut critical = critical.filter(|it| it.place[0].line == Some(wrong));
    assert!(critical.next().is_some_and(|it| it.reaches), "{text}");
    assert!(it.changed_runs > 0 && it.changed_runs <= 400, "{text}");
}

#[test]
fn a_range_that_is_too_large_is_named_by_the_number_that_it_should_not_have() {
    let mut asked = request(
        target(&program("widths.c", &["-g", "-Og"]), &[]),
        b"5\n144\n300\n100\n7\n",
        Some(b"5\n104\n300\n100\n7\n"),
    );
    asked.wrong = Some(Pattern::new("short 144").unwrap());
    let it = explain(&asked).unwrap();
    let change = "a limit that is 112 lower";
    assert_change_is_tested(&it, "widths.c", "offset <= 0xff", change);
}

#[test]
fn another_variable_of_the_same_type_is_tried_wherever_it_is_used() {
    let target = target(&program("moved_to.c", &["-g", "-Og"]), &[]);
    let mut asked = request(target, b"a b 5\n", Some(b"a a 5\n"));
    asked.wrong = Some(Pattern::new("(?m)^b 0$").unwrap());
    let it = explain(&asked).unwrap();
    assert_change_is_tested(&it, "moved_to.c", "not to", "`to` in place of `from`");
}

#[test]
fn runs_that_may_be_wrong_say_nothing_of_what_the_passing_run_does_not_execute() {
    let target = target(&program("replaced.c", &["-g", "-Og"]), &[]);
    let passing = b"a 1\nb 2\nc 7\n";
    let mut asked = request(target, b"a 1\nb 2\na 7\n", Some(passing));
    asked.wrong = Some(Pattern::new("(?m)^a 3$").unwrap());
    let it = explain(&asked).unwrap();
    let wrong = line_of("replaced.c", "not value");
    let mutant = it.mutants.iter().find(|it| it.place.line == Some(wrong));
    let mutant = mutant.unwrap_or_else(|| panic!("{}", story::text(&it)));
    // Others do not match the pattern, but are wrong as well.
    assert_eq!((mutant.passing, mutant.mended), (0, mutant.failing));
}

#[test]
fn a_statement_that_tells_failing_runs_from_others_is_named() {
    let mut asked = request(
        target(&program("merged.c", &["-g", "-Og"]), &[]),
        b"az\nnb\ncv\nxy\n",
        Some(b"az\ntb\ncv\nxy\n"),
    );
    asked.wrong = Some(Pattern::new("(?m)^13$").unwrap());
    let it = explain(&asked).unwrap();
    let text = story::text(&it);
    let telling = it.telling.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(telling.place.function, "value", "{text}");
    assert!(telling.failing > 3 && telling.passing == 0, "{text}");
    let why = format!(
        "executed with all {} inputs that fail, and with 0 of {} others",
        telling.failing, telling.others
    );
    assert!(it.look_first.iter().any(|it| it.why == why), "{text}");
}

#[test]
fn a_changed_key_is_named_first_only_where_the_run_fails_by_it() {
    let program = program("filed.c", PLAIN);
    let changes = "changes the value by which this record is filed";
    let named = |it: &Explanation| -> Vec<(Option<u64>, bool)> {
        let odd = it.observed.iter().filter(|it| it.why == changes);
        odd.map(|it| (it.place[0].line, it.tested)).collect()
    };
    let it = explained(
        &program,
        b"a 1 x\nr 1 2\nd 2\ng 1 y\n",
        Some(b"a 1 x\nr 1 5\nd 5\ng 1 y\n"),
    );
    let text = story::text(&it);
    let wrong = line_of("filed.c", "static void renumber") + 2;
    assert_eq!(named(&it), [(Some(wrong), true)], "{text}");
    assert!(is_told(&it), "{text}");
    // The number is changed within its list, and the name cleared by another statement.
    let it = explained(
        &program,
        b"a 1 x\nu 1\nw\ng 1 y\n",
        Some(b"a 1 x\nu 1\nv\ng 1 y\n"),
    );
    let text = story::text(&it);
    let innocent = line_of("filed.c", "it->id += LISTS;");
    assert!(!named(&it).contains(&(Some(innocent), true)), "{text}");
    assert_ne!(it.look_first[0].place[0].line, Some(innocent), "{text}");
}

#[test]
fn a_wrong_bound_is_named_first_where_a_mutant_changes_nothing_else() {
    let program = program("limit.c", PLAIN);
    let it = explained(&program, b"a 1\na 2\na 1\nn\n", Some(b"a 1\na 2\na 3\nn\n"));
    let text = story::text(&it);
    let wrong = line_of("limit.c", "while (at > last)");
    let first = &it.look_first[0];
    assert_eq!(first.place[0].line, Some(wrong), "{text}");
    assert!(first.tested && is_told(&it), "{text}");
    let mutant = &it.mutants[0];
    assert_eq!(mutant.change, "with `>=` in place of `>`");
    assert!(mutant.passing > 0 && mutant.failing > 0, "{text}");
    assert_eq!(
        (mutant.alike, mutant.mended),
        (mutant.passing, mutant.failing)
    );
    assert!(it.mutant_runs > 0 && it.mutant_runs <= 1_000, "{text}");
}

#[test]
fn a_statement_that_writes_an_equal_value_to_a_register_is_what_writes_it() {
    let program = program("equal.c", &["-g", "-Og"]);
    let it = explained(&program, b"b\n", Some(b"a\n"));
    let text = story::text(&it);
    let total = it.chain.iter().find(|it| it.variable == "total");
    let adds = line_of("equal.c", "total += price");
    assert_eq!(total.and_then(|it| it.line), Some(adds), "{text}");
    let innocent = ["fdopen", "int total = 0"].map(|it| line_of("equal.c", it));
    for place in it.look_first.iter().flat_map(|it| &it.place) {
        assert!(
            !innocent.contains(&place.line.unwrap_or_default()),
            "{text}"
        );
    }
}

#[test]
fn a_register_of_another_frame_says_nothing_of_what_the_writer_read() {
    let program = program("falls.c", &["-g", "-Og"]);
    let it = explained(&program, b"34*2+\n", Some(b"34+2+\n"));
    let text = story::text(&it);
    assert!(!it.chain.is_empty(), "{text}");
    for link in it.chain.iter().filter(|it| it.variable == "op") {
        assert!(link.selected.is_none() && link.returned.is_none(), "{text}");
    }
}

#[test]
fn a_mutant_is_compared_by_all_that_it_writes() {
    let program = program("unseen.c", PLAIN);
    let it = explained(&program, b"45\n", Some(b"10\n"));
    let text = story::text(&it);
    let division = [
        line_of("unseen.c", "int by"),
        line_of("unseen.c", "return 9000"),
    ];
    for mutant in &it.mutants {
        assert!(
            !division.contains(&mutant.place.line.unwrap_or_default()),
            "{text}"
        );
    }
}

#[test]
fn a_pointer_that_is_no_address_is_explained() {
    let program = program("places.c", PLAIN);
    let it = explained(&program, b"nb\n", Some(b"na\n"));
    assert!(it.refused.is_none(), "{}", story::text(&it));
}

#[test]
fn a_crash_many_calls_deep_is_no_endless_recursion() {
    let program = program("places.c", PLAIN);
    let it = explained(&program, b"db\n", Some(b"da\n"));
    assert!(it.refused.is_none(), "{}", story::text(&it));
}

#[test]
fn the_result_of_a_function_is_a_decision_as_well() {
    let program = program("ends.c", PLAIN);
    let it = explained(&program, b"bees\nto-be\nbe\n", Some(b"bees\ntoebe\nbe\n"));
    let text = story::text(&it);
    let wrong = line_of("ends.c", "return low;");
    let critical = it.critical.iter();
    let mut critical = critical.filter(|it| it.place[0].line == Some(wrong));
    let found = critical.next().unwrap_or_else(|| panic!("{text}"));
    // The dash is the eighth letter that is looked at; the line ends behind it.
    assert_eq!((found.execution, found.is_like), (8, true), "{text}");
}

/// What the mutant on a line does instead.
fn change_at(it: &Explanation, line: u64) -> Option<&str> {
    let found = it.mutants.iter().find(|it| it.place.line == Some(line));
    found.map(|it| it.change.as_str())
}

/// Explains why the output of a program matches `wrong`; the input is a file.
fn explained_output(
    program: &std::path::Path,
    failing: &[u8],
    passing: &[u8],
    wrong: &str,
) -> Explanation {
    let mut asked = request(target(program, &["@@"]), failing, Some(passing));
    asked.wrong = Some(Pattern::new(wrong).unwrap());
    explain(&asked).unwrap()
}

#[test]
fn a_changed_run_that_empties_its_input_spoils_no_other() {
    let program = program("emptied.c", PLAIN);
    let it = explained_output(&program, b"5 7\n", b"0 0\n", "-");
    let text = story::text(&it);
    let empties = line_of("emptied.c", "if (errors == 1)");
    let wrong = line_of("emptied.c", "return total - number");
    assert_eq!(
        change_at(&it, wrong),
        Some("with `+` in place of `-`"),
        "{text}"
    );
    assert_eq!(change_at(&it, empties), None, "{text}");
}

#[test]
fn a_field_that_is_not_reset_is_named() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("urgent.c", flags);
        let it = explained_output(&program, b"a!\nb\n", b"a\nb\n", "b now");
        let text = story::text(&it);
        let found = it.mutants.iter().find(|it| it.place.function == "parse");
        let change = found.map(|it| it.change.as_str());
        let reset = "with record->urgent set to zero when it begins";
        assert_eq!(change, Some(reset), "{text}");
    }
}

#[test]
fn a_statement_that_is_missing_on_one_path_is_named() {
    let it = explained(
        &program("skipped.c", PLAIN),
        b"use\nopen\nuse\nskip\nx\nclose\nuse\n",
        Some(b"use\nopen\nuse\nskip\nx\nend\nuse\n"),
    );
    let wrong = line_of("skipped.c", "/* without depth-- */");
    let change = "with depth one smaller before this line";
    let mut mutants = it.mutants.iter();
    let is_it = |it: &MutantRecord| it.place.line == Some(wrong) && it.change == change;
    let found = mutants.find(|it| is_it(it));
    let found = found.unwrap_or_else(|| panic!("{}", story::text(&it)));
    assert!(
        found.passing > 0 && found.alike == found.passing,
        "{found:?}"
    );
}

#[test]
fn statements_in_the_wrong_order_are_named() {
    let program = program("bill.c", PLAIN);
    let it = explained_output(&program, b"9 1\n5 2\n", b"9 0\n5 0\n", "differs");
    let text = story::text(&it);
    let wrong = line_of("bill.c", "bill->total += price");
    let order = format!("with line {wrong} executed after line {}", wrong + 1);
    assert_eq!(change_at(&it, wrong), Some(&*order), "{text}");
}

#[test]
fn a_number_that_is_cut_is_named_where_it_is_stored() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("counter.c", flags);
        let failing = [vec![b'a'; 260], b"\n".to_vec()].concat();
        let it = explained_output(&program, &failing, b"aaaaaaaaaaaa\n", "^[0-9] letters");
        let text = story::text(&it);
        let wrong = line_of("counter.c", "counts->letters++");
        let change = "with a number that is not cut to 8 bits";
        assert_eq!(change_at(&it, wrong), Some(change), "{text}");
        assert_eq!(it.look_first[0].place[0].line, Some(wrong), "{text}");
    }
}

#[test]
fn a_missing_reset_is_named_with_the_call_that_needs_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
    let include = format!("-I{folder}");
    let buffer = format!("{folder}/words_buffer.c");
    for level in ["-O0", "-Og"] {
        let program = program("words_decoded.c", &["-g", level, &include, &buffer]);
        let failing = b"#a_b\nc_d\ne_f\n";
        let it = explained_output(&program, failing, b"#a_b\ncd\nef\n", "= .*d.*f");
        let text = story::text(&it);
        let found = it.mutants.iter().find(|it| it.place.function == "decode");
        let change = found.map(|it| it.change.as_str());
        let reset = "with to->used set to zero when it begins";
        assert_eq!(change, Some(reset), "{text}");
        let caller = found.and_then(|it| it.calls[0].line);
        let wrong = line_of("words_decoded.c", "decode(buffer, line);");
        assert_eq!(caller, Some(wrong), "{text}");
        let is_it = |it: &&ddfuzz_explain::report::SuspectRecord| {
            it.place.len() == 2 && it.place[1].line == Some(wrong)
        };
        assert!(it.look_first.iter().any(|it| is_it(&it)), "{text}");
    }
}
