//! Where values came from: those by which a run crashes, by which a condition decides, and those that
//! stay where only the passing run writes others.
#![cfg(target_arch = "x86_64")]

mod explained;
#[path = "../../../tests/needs/mod.rs"]
mod needs;

use ddfuzz_explain::report::{FrameRecord, OriginRecord};
use ddfuzz_explain::{Explanation, Pattern, explain, story};
use explained::{PLAIN, confirmed, explained, program, program_by, request, target};

fn functions(origin: Option<&OriginRecord>) -> Vec<&str> {
    let written = origin.map_or(&[][..], |it| &it.written);
    written.iter().map(|it| it.function.as_str()).collect()
}

#[test]
fn a_null_pointer_is_followed_to_who_left_it() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("notes.c", flags);
        let it = explained(&program, b"o\nc\nahi\n", Some(b"o\ne\nahi\n"));
        let text = story::text(&it);
        let written = functions(it.origin.as_ref());
        assert_eq!(written[..2], ["drop", "cancel"], "{text}");
        assert!(text.contains("The value by which it crashes is written by drop"));
        // Only the passing run resets the mark; the failing one has that of its beginning.
        let mark = it.chain.iter().find(|it| it.variable == "is_open");
        let mark = mark.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(mark.function.as_deref(), Some("end"), "{text}");
        let kept = mark.kept.as_ref().map(|it| it.function.as_str());
        assert_eq!(kept, Some("begin"), "{text}");
    }
}

#[test]
fn a_store_that_begins_a_function_of_one_line_is_that_functions() {
    for flags in [PLAIN, &["-g", "-Og"], &["-g", "-O1"]] {
        let program = program("setter.c", flags);
        let it = explained(&program, b"900000000\n", Some(b"9\n"));
        let text = story::text(&it);
        let link = it
            .chain
            .iter()
            .find(|link| link.variable.ends_with("cursor.at"));
        let link = link.or_else(|| it.chain.iter().find(|link| link.variable.ends_with("->at")));
        let link = link.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(link.function.as_deref(), Some("set"), "{flags:?} {text}");
        let written = functions(it.origin.as_ref());
        assert!(written.is_empty() || written[0] == "set", "{written:?}");
    }
}

#[test]
fn a_saved_register_is_followed_to_what_has_overwritten_it() {
    let flags = ["-g", "-Og", "-fno-stack-protector"];
    let program = program("smashed.c", &flags);
    let failing = b"ab aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";
    let it = explained(&program, failing, Some(b"ab aaaaaaaaaaaa\n"));
    let text = story::text(&it);
    let written = functions(it.origin.as_ref());
    assert_eq!(written[..2], ["labelled", "done"], "{text}");
}

#[test]
fn a_divisor_is_followed_to_who_wrote_it() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("notes.c", flags);
        let it = explained(&program, b"o\nahi\nz\nm\n", Some(b"o\nahi\ny\nm\n"));
        let text = story::text(&it);
        let written = functions(it.origin.as_ref());
        assert_eq!(written, ["forget", "main"], "{text}");
    }
}

#[test]
fn a_value_of_the_programs_data_is_written_by_nobody() {
    for flags in [PLAIN, &["-g", "-Og", "-fno-inline"]] {
        let program = program("rates.c", flags);
        let it = explained(&program, b"p4p", Some(b"p5p"));
        let text = story::text(&it);
        assert!(!text.contains("crashes is written by"), "{text}");
        assert!(!text.contains("wrote the value by which"), "{text}");
        let origin = it.origin.as_ref();
        assert!(origin.is_none_or(|it| it.selects), "{origin:?}");
        // The link that is confirmed is tested, and the first one.
        let first = &it.look_first[0];
        // It is the assignment of `tier`, or with `-Og` the condition that leads to it.
        assert!(
            [Some(15), Some(16)].contains(&first.place[0].line),
            "{text}"
        );
        assert!(first.tested, "{text}");
    }
}

#[test]
fn a_function_that_is_none_is_followed_to_who_wrote_its_address() {
    let program = program("called.c", &["-g", "-Og"]);
    for failing in [b"x", b"y"] {
        let it = explained(&program, failing, Some(b"a"));
        let written = functions(it.origin.as_ref());
        assert_eq!(written, ["damage", "main"], "{}", story::text(&it));
    }
}

#[test]
fn what_decides_whether_is_not_told_as_what_decides_how_much() {
    let program = program("called.c", PLAIN);
    let it = explained(&program, b"s", Some(b"a"));
    let text = story::text(&it);
    let block = it.overflow.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(block.writer.function, "copy", "{text}");
    assert!(block.extent.is_none(), "{text}");
}

#[test]
fn a_condition_is_followed_to_the_function_whose_value_decides() {
    let program = program("priority.c", &["-g", "-Og"]);
    let mut asked = request(
        target(&program, &[]),
        b"1+2\n2+7%4\n",
        Some(b"1+2\n2+7*4\n"),
    );
    asked.wrong = Some(Pattern::new("(?m)^1$").unwrap());
    let it = explain(&asked).unwrap();
    let mut decided = it.chain.iter().map(|link| functions(link.decided.as_ref()));
    assert!(
        decided.any(|it| it.first() == Some(&"priority")),
        "{}",
        story::text(&it)
    );
}

#[test]
fn a_panic_of_rust_with_a_hash_table_is_steady() {
    if needs::program("rustc").is_none() {
        return;
    }
    for flags in [&["-g"][..], &["-g", "-Copt-level=1"]] {
        let program = program_by("rustc", "bank.rs", flags);
        let failing = b"open ann\nin ann 50\nout ann 50\n";
        let it = explained(
            &program,
            failing,
            Some(b"open ann\nin ann 50\nout ann 40\n"),
        );
        let text = story::text(&it);
        assert!(it.refused.is_none(), "{text}");
        let sure = confirmed(&it);
        let is_balance = |it: &&(&str, &str)| it.0.ends_with("balance") && it.1 == "withdraw";
        assert!(sure.iter().any(|it| is_balance(&it)), "{flags:?} {text}");
        let in_library = |file: &String| file.contains("/library/");
        let files = it.chain.iter().filter_map(|link| link.file.as_ref());
        assert_eq!(files.filter(|it| in_library(it)).count(), 0, "{text}");
    }
}

#[test]
fn a_value_that_is_the_same_in_both_runs_is_followed_from_where_it_is_selected() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("cells.c", flags);
        let it = explained(&program, b"lab\nz123\n", Some(b"lab\nw123\n"));
        let text = story::text(&it);
        let mut selected = it
            .chain
            .iter()
            .map(|link| functions(link.selected.as_ref()));
        assert!(selected.any(|it| it.first() == Some(&"prepare")), "{text}");
        assert!(
            text.contains("from what prepare at cells.c:21 wrote"),
            "{text}"
        );
    }
}

#[test]
fn a_program_that_catches_panics_is_explained_to_the_last_one() {
    if needs::program("rustc").is_none() {
        return;
    }
    let program = program_by("rustc", "caught.rs", &["-g"]);
    let it = explained(&program, b"1\n7\n2\n", Some(b"1\n7\n3\n"));
    let text = story::text(&it);
    assert_eq!(confirmed(&it).last(), Some(&("sum", "main")), "{text}");
}

#[test]
fn the_call_that_passes_a_value_is_named() {
    let program = program("grid.c", &["-g", "-Og", "-fno-inline"]);
    let it = explained(&program, b"s 5 2\n", Some(b"s 2 2\n"));
    let text = story::text(&it);
    let places: Vec<_> = it
        .chain
        .iter()
        .map(|link| (link.line, link.confidence))
        .collect();
    let decided = functions(it.decided.as_ref());
    assert!(
        decided.starts_with(&["set_part", "main"]),
        "{places:?} {text}"
    );
}

#[test]
fn a_condition_that_averts_the_failure_is_followed_to_who_wrote_its_value() {
    let program = program("grid.c", PLAIN);
    let it = explained(&program, b"n 900000000\n", Some(b"n 2\n"));
    let text = story::text(&it);
    let first = it.switched.first().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(first.condition.function, "worth", "{text}");
    // The value is copied twice.
    let by = first.by.as_ref().unwrap_or_else(|| panic!("{text}"));
    let earlier = by.earlier.iter().flat_map(|it| &it.written);
    let mut written = by.written.iter().chain(earlier);
    let is_kind = |it: &FrameRecord| (&*it.function, it.line) == ("parsed", Some(47));
    assert!(written.any(is_kind), "{by:?}");
    assert!(text.contains("With the other decision of worth at grid.c:"));
}

#[test]
fn a_failed_assertion_is_followed_to_all_statements_that_made_its_value() {
    for flags in [PLAIN, &["-g", "-Og", "-fno-inline"]] {
        let program = program("grid.c", flags);
        let it = explained(&program, b"a 40\na 70\n", Some(b"a 40\na 20\n"));
        let text = story::text(&it);
        let origin = it.origin.as_ref().unwrap_or_else(|| panic!("{text}"));
        let line = |it: &OriginRecord| it.written[0].line;
        let lines: Vec<_> = std::iter::once(origin)
            .chain(&origin.earlier)
            .map(line)
            .collect();
        assert_eq!(origin.written[0].function, "add", "{flags:?} {text}");
        assert!(
            lines.contains(&Some(62)) && lines.contains(&Some(63)),
            "{flags:?} {lines:?}"
        );
    }
}

#[test]
fn the_use_of_a_pointer_to_where_a_block_was_is_named() {
    for flags in [PLAIN, &["-g", "-Og", "-fno-inline"]] {
        let program = program("grown.c", flags);
        let it = explained(&program, b"abcde\n", Some(b"abc\n"));
        let text = story::text(&it);
        let moved = it.moved_early.first().map(|it| &*it.function);
        assert_eq!(moved, Some("fresh"), "{flags:?} {text}");
        let used = it.used_late.first().map(|it| (&*it.function, it.line));
        assert_eq!(used, Some(("follow", Some(28))), "{flags:?} {text}");
        assert!(
            text.contains("is used after that by follow at grown.c:28"),
            "{text}"
        );
    }
}

/// Explains a run of `slips.c`; returns the result and its text.
fn slip(flags: &[&str], failing: &[u8], passing: &[u8]) -> (Explanation, String) {
    let it = explained(&program("slips.c", flags), failing, Some(passing));
    let text = story::text(&it);
    (it, text)
}

const BOTH: [&[&str]; 2] = [PLAIN, &["-g", "-Og", "-fno-stack-protector"]];

#[test]
fn memory_that_nobody_sets_is_told_by_where_its_life_begins() {
    for flags in BOTH {
        let (it, text) = slip(flags, b"u 7\n", b"u 2\n");
        let origin = it.origin.unwrap_or_else(|| panic!("{text}"));
        let mut all = std::iter::once(&origin).chain(&origin.earlier);
        let unset = all.find(|it| it.unset).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(functions(Some(unset))[..2], ["fresh", "unset_block"]);
        assert!(text.contains("nothing has set since fresh at slips.c:18"));
        // The bytes were set by a function that has returned.
        let (it, text) = slip(flags, b"k 7\n", b"k 2\n");
        let origin = it.origin.unwrap_or_else(|| panic!("{text}"));
        assert!(origin.unset, "{text}");
        assert_eq!(functions(Some(&origin)), ["pick", "main"], "{text}");
        assert!(
            text.contains("is read at slips.c:52 before anything sets it: since pick at"),
            "{text}"
        );
    }
}

#[test]
fn a_value_is_told_by_the_statement_that_computed_it_and_not_by_the_end_of_its_function() {
    for flags in BOTH {
        let (it, text) = slip(flags, b"t 7\n", b"t 3\n");
        let returned = it.chain.iter().find_map(|it| it.returned.as_ref());
        let origin = it.origin.iter().flat_map(|it| &it.written);
        let mut told = returned.into_iter().chain(origin);
        assert!(told.any(|it| it.line == Some(58)), "{flags:?} {text}");
    }
}

#[test]
fn what_the_failing_run_executes_instead_of_a_write_is_told() {
    for flags in BOTH {
        let (it, text) = slip(flags, b"m 7\n", b"m 2\n");
        let mut instead = it.chain.iter().map(|it| &it.instead);
        let lines = |it: &Vec<FrameRecord>| it.iter().map(|it| it.line).collect::<Vec<_>>();
        let is_branch = |it: &Vec<FrameRecord>| lines(it).ends_with(&[Some(74), Some(73)]);
        assert!(instead.any(is_branch), "{flags:?} {text}");
        assert!(text.contains("and the failing one executes slips.c:74, 73"));
    }
}

#[test]
fn a_write_that_is_missing_is_looked_for_where_other_fields_of_its_record_are_written() {
    for flags in BOTH {
        let (it, text) = slip(flags, b"s 7\n", b"s 2\n");
        let instead = it.chain.iter().find_map(|it| it.instead.first());
        let instead = instead.unwrap_or_else(|| panic!("{flags:?} {text}"));
        assert_eq!(instead.function, "settle", "{flags:?} {text}");
        let first = it.look_first.iter().map(|it| it.place[0].line);
        let place = Some(instead.line);
        assert!(first.into_iter().any(|it| Some(it) == place), "{text}");
    }
}

#[test]
fn what_nobody_wrote_is_told_by_the_index_that_leads_there() {
    for flags in BOTH {
        let (it, text) = slip(flags, b"o 9\n", b"o 8\n");
        let origin = it.origin.unwrap_or_else(|| panic!("{text}"));
        let all = std::iter::once(&origin).chain(&origin.earlier);
        let mut written = all.flat_map(|it| &it.written);
        assert!(written.any(|it| it.line == Some(90)), "{flags:?} {text}");
    }
}

#[test]
fn a_panic_that_aborts_is_told_by_its_message_and_its_index() {
    if needs::program("rustc").is_none() {
        return;
    }
    for flags in [
        &["-g", "-Cpanic=abort"][..],
        &["-g", "-Copt-level=1", "-Cpanic=abort"],
    ] {
        let program = program_by("rustc", "index.rs", flags);
        let it = explained(&program, b"abc\n", Some(b"ab\n"));
        let text = story::text(&it);
        assert!(
            text.contains(": rustpanic in index::pick, index.rs:9"),
            "{text}"
        );
        assert!(text.contains("the len is 3 but the index is 3"), "{text}");
        assert!(text.contains("index.rs:15"), "{flags:?} {text}");
    }
}

/// Explains a program that reads one of two files, chosen by its input; `more` are its further
/// arguments.
fn chosen_by_the_input(more: &[&str]) -> Explanation {
    let folder = tempfile::tempdir().unwrap();
    let allow = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), allow).unwrap();
    let files = [("one", "bad"), ("two", "good")].map(|(name, text)| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let program = program("choice.c", PLAIN);
    let target = target(&program, &[&[&*files[0], &*files[1]][..], more].concat());
    explain(&request(target, b"XY\n", Some(b"aY\n"))).unwrap()
}

#[test]
fn what_is_read_from_another_file_is_not_said_to_be_the_input() {
    let it = chosen_by_the_input(&[]);
    let text = story::text(&it);
    let writer = |name: &str| {
        let mut links = it.chain.iter();
        let link = links.find(|link| link.variable.starts_with(name));
        explained::writer(link.unwrap_or_else(|| panic!("{text}")))
    };
    assert_eq!(
        (writer("line"), writer("mode")),
        ("input", "main"),
        "{text}"
    );
}

#[test]
fn a_trap_that_the_program_handles_is_not_its_crash() {
    let it = chosen_by_the_input(&["trap"]);
    assert!(it.refused.is_none(), "{}", story::text(&it));
    assert_eq!(it.crash.class.as_deref(), Some("abrt"));
}

/// The statements at which to look first, each as function and text of its source line, then the call
/// that led there.
fn looked_at(it: &Explanation) -> Vec<Vec<(String, String)>> {
    let place = |it: &FrameRecord| {
        let text = std::fs::read_to_string(it.file.as_ref().unwrap()).unwrap();
        let line = text.lines().nth(it.line.unwrap() as usize - 1).unwrap();
        (it.function.clone(), line.trim().to_owned())
    };
    let suspects = it.look_first.iter();
    let places = suspects.map(|suspect| suspect.place.iter().map(place).collect());
    places.collect()
}

#[test]
fn a_statement_that_made_a_value_is_looked_at_before_those_that_use_it() {
    let own = |function: &str, line: &str| (function.to_owned(), line.to_owned());
    for flags in [PLAIN, &["-g", "-Og", "-fno-stack-protector"]] {
        let program = program("suspects.c", flags);
        // A sum of eight bits: the block is too short.
        let it = explained(&program, b"f 200 90", Some(b"f 100 90"));
        let found = looked_at(&it);
        assert_eq!(
            found[0][0],
            own("widen", "row->width += by;"),
            "{}",
            story::text(&it)
        );
        // A remainder below zero.
        let it = explained(&program, b"d 2 3", Some(b"d 3 2"));
        let found = looked_at(&it);
        let made = own("opponent", "int left = (round - team) % 7;");
        assert_eq!(found[0][0], made, "{}", story::text(&it));
        // Swapped arguments, and a copy of them: the call.
        let it = explained(&program, b"r 1 90000000", Some(b"r 1 2"));
        let named: Vec<_> = looked_at(&it).concat();
        let call = own("freight", "stop_at(car, load, level);");
        assert!(named.contains(&call), "{}", story::text(&it));
        let line = story::text(&it).lines().nth(1).unwrap().to_owned();
        assert!(line.starts_with("Look here first: "), "{line}");
    }
}

#[test]
fn of_a_block_both_its_size_and_what_is_written_behind_it_are_looked_at() {
    let own = |function: &str, line: &str| (function.to_owned(), line.to_owned());
    for flags in [PLAIN, &["-g", "-Og", "-fno-stack-protector"]] {
        let program = program("blocks.c", flags);
        // The address was computed from the pointer to the block.
        let it = explained(&program, b"p 700 900", Some(b"p 70 900"));
        let text = story::text(&it);
        let block = it.overflow.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(!block.reads && !block.is_averted, "{text}");
        assert_eq!(block.bytes, 700 * 900 % 65536, "{text}");
        let product = own("setup", "bytes = it->width * it->height;");
        assert_eq!(looked_at(&it)[0][0], product, "{text}");
        // A loop that goes on for too long.
        let it = explained(&program, b"l 24 9", Some(b"l 24 0"));
        let text = story::text(&it);
        let named: Vec<_> = looked_at(&it).concat();
        let length = own("duplicate", "it->length = of->total;");
        assert!(named.contains(&length), "{text}");
        // A pointer that two variables have.
        let it = explained(&program, b"t 1 30", Some(b"t 0 30"));
        let text = story::text(&it);
        let named: Vec<_> = looked_at(&it).concat();
        let shared = own("share", "it->second = it->first;");
        assert!(named.contains(&shared), "{text}");
    }
}

#[test]
fn what_a_standard_library_throws_for_is_followed_back() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program_by("g++", "range.cc", flags);
        let it = explained(&program, b"3 2\n", Some(b"2 2\n"));
        let text = story::text(&it);
        let named: Vec<_> = looked_at(&it).concat();
        let line = "return row * rows + column;".to_owned();
        assert!(named.contains(&("locate".to_owned(), line)), "{text}");
    }
}

#[test]
fn what_is_odd_in_the_failing_run_is_told() {
    let program = program("odd.c", PLAIN);
    let of = |failing: &[u8], passing: &[u8]| explained(&program, failing, Some(passing));
    let lines = |it: &Explanation| -> Vec<u64> {
        let first = it.look_first.iter().map(|it| it.place[0].line.unwrap());
        first.collect()
    };
    // A key is changed before its entry is taken out. It must be changed at last, so that no run
    // without the change ends well.
    let changed = of(b"a1\na2\nm3\nd\ns\n", b"a1\na2\nm9\nd\ns\n");
    let mut odd = changed.observed.iter();
    assert!(odd.any(|it| it.place[0].line == Some(50) && !it.tested));
    // The loop that gives owners ends too early.
    let not_set = of(b"a1\na2\na3\no2\ni\n", b"a1\na2\na3\no3\ni\n");
    let mut tested = not_set.look_first.iter().filter(|it| it.tested);
    assert!(tested.any(|it| it.place[0].line == Some(67)));
    // The block has moved before it is written to.
    let freed = of(b"n1\nn2\nn3\nn4\nc10\n", b"n1\nn2\nn3\nc6\nc6\n");
    assert_eq!(lines(&freed)[0], 110);
}

#[test]
fn a_length_that_reaches_past_memory_is_followed_in_place_of_the_pointer() {
    let program = program("lengths.c", PLAIN);
    let it = explained(&program, b"n abcdefghijk\nc\n", Some(b"n abcdefg\nc\n"));
    let text = story::text(&it);
    let written = functions(it.origin.as_ref());
    assert_eq!(written.first(), Some(&"name_it"), "{text}");
}

#[test]
fn a_crash_in_a_statement_that_is_executed_often_is_followed_back() {
    for flags in [PLAIN, &["-g", "-Og"]] {
        let program = program("hot.c", flags);
        let it = explained(&program, b"b", Some(b"a"));
        let text = story::text(&it);
        assert_eq!(functions(it.origin.as_ref())[0], "fill", "{text}");
    }
}
