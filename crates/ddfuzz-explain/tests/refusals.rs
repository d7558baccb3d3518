//! What cannot be explained is refused, with the reason and what would help; what is certain is
//! shown. No process stays behind.
#![cfg(target_arch = "x86_64")]

mod explained;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz_exec::{Channel, Ended, Terminal};
use ddfuzz_explain::dwarf::DebugInfo;
use ddfuzz_explain::types::Shape;
use ddfuzz_explain::{ExplainError, Explanation, Request, SliceGoal, explain, story};
use explained::{PLAIN, confirmed, explained, program, request, target};

fn refused() -> PathBuf {
    program("refused.c", PLAIN)
}

/// Reason and hint with which an input is refused; the text shows both.
fn refusal(it: &Explanation) -> (&str, &str) {
    let refusal = it.refused.as_ref().expect("it is refused");
    assert!(it.chain.is_empty());
    let text = story::text(it);
    assert!(
        text.contains(&format!("Not explained: {}.", refusal.reason)),
        "{text}"
    );
    assert!(
        text.contains(&format!("What would help: {}.", refusal.hint)),
        "{text}"
    );
    (&refusal.reason, &refusal.hint)
}

fn reason(failing: &[u8], passing: &[u8]) -> String {
    let it = explained(&refused(), failing, Some(passing));
    refusal(&it).0.to_owned()
}

#[test]
fn threads_processes_and_sockets() {
    assert_eq!(reason(b"tx\n", b"ty\n"), "the program starts threads");
    assert_eq!(
        reason(b"fx\n", b"fy\n"),
        "the program starts other processes"
    );
    assert_eq!(
        reason(b"ex\n", b"ey\n"),
        "the program executes another program"
    );
    assert_eq!(reason(b"sx\n", b"sy\n"), "the program uses sockets");
}

#[test]
fn programs_that_avoid_tracers() {
    let it = explained(&program("watched.c", PLAIN), b"x\n", Some(b"y\n"));
    let reason = "the program avoids tracers: it fails only where none watches it";
    assert_eq!(refusal(&it).0, reason);
    assert_eq!(it.crash.class.as_deref(), Some("abrt"));
}

#[test]
fn memory_that_is_shared_with_forks() {
    assert_eq!(
        reason(b"mx\n", b"my\n"),
        "the program shares memory that it writes with other processes"
    );
}

#[test]
fn a_program_that_kills_itself_does_not_hang() {
    let killed = explain(&request(target(&refused(), &[]), b"9x\n", Some(b"ay\n")));
    let Err(ExplainError::NotFailing(ended, _)) = killed else {
        panic!("no crash, and no hang");
    };
    assert_eq!(ended, Ended::Signal(libc::SIGKILL));
}

#[test]
fn threads_of_a_program_whose_exit_status_is_the_failure() {
    let mut exits = target(&refused(), &[]);
    exits.crash_exit = Some(3);
    let it = explain(&request(exits, b"tx\n", Some(b"ty\n"))).unwrap();
    assert_eq!(refusal(&it).0, "the program starts threads");
}

#[test]
fn runs_that_differ_from_each_other() {
    assert_eq!(
        reason(b"rx\n", b"ry\n"),
        "the program does not behave the same in each run"
    );
}

#[test]
fn runs_that_differ_in_what_they_print_are_explained() {
    let it = explained(&refused(), b"px\n", Some(b"py\n"));
    assert_eq!(it.refused, None);
    assert!(!it.chain.is_empty(), "{}", story::text(&it));
}

#[test]
fn what_matters_is_not_in_memory() {
    let it = explained(&refused(), b"kx\n", Some(b"kxy\n"));
    let (reason, hint) = refusal(&it);
    assert!(
        reason.ends_with("what matters is not in its memory"),
        "{reason}"
    );
    assert_eq!(
        hint,
        "look at files, the time, and what the kernel knows of the process"
    );
}

#[test]
fn a_stack_that_overflows() {
    let mut asked = request(target(&refused(), &[]), b"dx\n", Some(b"dy\n"));
    asked.budget = Duration::from_secs(16);
    let it = explain(&asked).unwrap();
    let text = story::text(&it);
    let found = it.recursion.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(found.round[0].function, "deep", "{text}");
    let depth = found.values.iter().find(|it| it.name == "depth");
    assert_eq!(depth.and_then(|it| it.step), Some(1), "{text}");
}

#[test]
fn runs_that_have_little_in_common() {
    let it = explained(&refused(), b"ox\n", Some(b"oy\n"));
    let (reason, hint) = refusal(&it);
    assert!(
        reason.starts_with("only ")
            && reason.ends_with("points of the failing run are in the passing one"),
        "{reason}"
    );
    assert_eq!(
        hint,
        "give a passing input that is closer to the failing one"
    );
    assert_eq!(it.only_failing, ["only_failing"]);
}

#[test]
fn a_run_that_hangs() {
    let request = Request {
        budget: Duration::from_secs(120),
        ..request(target(&refused(), &[]), b"lx\n", Some(b"ly\n"))
    };
    let it = explain(&request).unwrap();
    let (reason, _) = refusal(&it);
    assert!(
        reason.starts_with("the failing run does not end within its time limit"),
        "{reason}"
    );
}

#[test]
fn a_program_without_debug_information() {
    let built = program("refused.c", &["-O0", "-fno-stack-protector"]);
    let it = explained(&built, b"?x\n", Some(b"?y\n"));
    let (reason, hint) = refusal(&it);
    assert_eq!(reason, "the program has no debug information");
    assert_eq!(hint, "compile it with -g, and do not strip it");
    // A stripped program may be one of a distribution.
    let stripped = program("refused.c", &["-O0", "-fno-stack-protector", "-s"]);
    let without = explained(&stripped, b"?x\n", Some(b"?y\n"));
    let (_, hint) = refusal(&without);
    assert!(hint.contains("install its debug information"), "{hint}");
    assert_eq!(it.input.difference.len(), 1);
    assert!(story::text(&it).contains("differ in 1 byte"));
}

#[test]
fn a_program_whose_debug_information_is_in_other_files() {
    let built = program("refused.c", &["-g", "-gsplit-dwarf", "-O0"]);
    let it = explained(&built, b"?x\n", Some(b"?y\n"));
    let (reason, hint) = refusal(&it);
    let files = "the program's debug information is in files of its own (.dwo)";
    assert_eq!(reason, files);
    assert!(
        hint.starts_with("compile it without -gsplit-dwarf"),
        "{hint}"
    );
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("stripped");
    let objcopy = |args: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new("objcopy");
        let command = command.args(args).arg(from).arg(to);
        assert!(command.current_dir(&folder).status().unwrap().success());
    };
    let built = program("refused.c", PLAIN);
    let debug = folder.path().join("refused.debug");
    objcopy(&["--only-keep-debug"], &built, &debug);
    let link = ["--strip-debug", "--add-gnu-debuglink=refused.debug"];
    objcopy(&link, &built, &stripped);
    // Where it is found, it is read.
    let found = explained(&stripped, b"?x\n", Some(b"?y\n"));
    let whole = explained(&built, b"?x\n", Some(b"?y\n"));
    let chain =
        |it: &Explanation| -> Vec<_> { it.chain.iter().map(|it| it.variable.clone()).collect() };
    assert!(
        found.refused.is_none() && !found.chain.is_empty(),
        "{found:?}"
    );
    assert_eq!(chain(&found), chain(&whole));
    std::fs::remove_file(&debug).unwrap();
    let it = explained(&stripped, b"?x\n", Some(b"?y\n"));
    let (reason, hint) = refusal(&it);
    let file =
        "the program's debug information is in another file, refused.debug, which is neither";
    assert!(reason.starts_with(file), "{reason}");
    assert!(
        hint.ends_with("`eu-unstrip PROGRAM refused.debug -o JOINED`"),
        "{hint}"
    );
}

#[test]
fn a_program_whose_variables_are_optimized_out() {
    let flags = ["-g", "-O2"];
    let it = explained(&program("hidden.c", &flags), b"x\n", Some(b"y\n"));
    let (reason, hint) = refusal(&it);
    assert!(
        reason.starts_with("the program is optimized so far that only ")
            && reason.ends_with(" variables on the stack are visible"),
        "{reason}"
    );
    let command =
        "compile it with -Og -g, or compare registers and words by --raw, such as by `gcc -g -Og";
    assert!(hint.starts_with(command), "{hint}");
    // Optimized for debuggers, it is explained.
    let it = explained(&program("hidden.c", &["-g", "-Og"]), b"x\n", Some(b"y\n"));
    assert_eq!(it.refused, None);
}

#[test]
fn a_build_with_a_sanitizer() {
    let program = program("refused.c", &["-g", "-O0", "-fsanitize=thread"]);
    let it = explained(&program, b"?x\n", Some(b"?y\n"));
    let (reason, hint) = refusal(&it);
    assert!(
        reason.starts_with("the program is compiled with -fsanitize=thread"),
        "{reason}"
    );
    let report = it.crash.class.as_deref().unwrap_or_default();
    assert!(!report.is_empty(), "{report}");
    let plain =
        "give the plain build: the same, compiled without sanitizers, such as by `gcc -g -Og ";
    assert!(hint.starts_with(plain), "{hint}");
    assert!(hint.contains("refused.c -o refused"), "{hint}");
}

#[test]
fn a_terminal_and_a_script() {
    let mut at_terminal = target(&refused(), &[]);
    at_terminal.channel = Channel::Terminal(Terminal::default());
    let it = explain(&request(at_terminal, b"?x\n", Some(b"?y\n"))).unwrap();
    assert_eq!(refusal(&it).0, "the program runs at a terminal");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nkill -SEGV $$\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let it = explain(&request(target(&script, &[]), b"x", Some(b"y"))).unwrap();
    assert_eq!(refusal(&it).0, "the program is a script");
}

#[test]
fn the_time_is_over() {
    // Before the first run, while one is made, and between runs.
    for budget in [0, 1, 2, 3, 5, 8] {
        let request = Request {
            budget: Duration::from_millis(budget),
            ..request(target(&refused(), &[]), b"?x\n", Some(b"?y\n"))
        };
        let it = explain(&request).unwrap();
        assert_eq!(refusal(&it).0, "the time for the explanation is over");
        let left = "Not tried, or not to the end, for want of time: ";
        let text = story::text(&it);
        assert!(text.contains(left), "{text}");
        let chain = "variables between the input and the failure";
        assert_eq!(it.untried.last().map(String::as_str), Some(chain), "{text}");
    }
}

#[test]
fn a_program_that_fails_on_each_input_that_is_not_longer() {
    let it = explained(&program("header.c", PLAIN), b"a", None);
    assert!(it.refused.is_none(), "{:?}", it.refused);
    let passing = it.input.passing.expect("a longer input passes").0;
    assert!(
        passing.starts_with(b"a") && passing.len() >= 8,
        "{passing:?}"
    );
}

#[test]
fn a_program_that_fails_on_each_input() {
    let it = explained(&program("always.c", PLAIN), b"x\n", None);
    let (reason, hint) = refusal(&it);
    assert_eq!(
        reason,
        "no input close to the failing one passes, be it shorter, equally long or longer"
    );
    assert_eq!(
        hint,
        "give a passing one, on which the program ends by itself: ddfuzz explain FAILING PASSING -- \
         PROGRAM"
    );
}

#[test]
fn a_run_that_is_too_long_for_a_critical_slice() {
    let mut asked = request(target(&program("always.c", PLAIN), &[]), b"x\n", None);
    asked.slice = Some(SliceGoal::Run);
    let it = explain(&asked).unwrap();
    let (reason, hint) = refusal(&it);
    let count = reason
        .strip_prefix("the run executes ")
        .and_then(|rest| rest.strip_suffix(" statements, too many for a critical slice"));
    assert!(
        count.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 2000)),
        "{reason}"
    );
    assert_eq!(hint, "give a smaller input, or leave out --slice");
}

#[test]
fn a_run_that_its_statements_do_not_reproduce() {
    let mut asked = request(target(&program("forked.c", PLAIN), &[]), b"", None);
    asked.slice = Some(SliceGoal::Run);
    let it = explain(&asked).unwrap();
    let (reason, hint) = refusal(&it);
    assert_eq!(
        reason,
        "executing the statements one by one does not reproduce the run"
    );
    assert_eq!(hint, "compile it with -O0 or -Og, or leave out --slice");
}

/// Number of processes that execute a program.
fn processes_of(program: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let executed = all.filter_map(|it| std::fs::read_link(it.path().join("exe")).ok());
    executed.filter(|exe| exe == program).count()
}

#[test]
fn hostile_programs_are_explained_or_refused_in_time_and_leave_no_process() {
    // A program of its own: other tests run the same one at the same time.
    let folder = tempfile::tempdir().unwrap();
    let allow = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), allow).unwrap();
    let program = folder.path().canonicalize().unwrap().join("hostile");
    std::fs::copy(refused(), &program).unwrap();
    // Threads, other processes, another program, blocked signals, unmapped memory, a heap that was
    // corrupted before.
    for first in [&b"t"[..], b"f", b"e", b"b", b"u", b"h", b"?"] {
        let input = |second: &[u8]| [first, second, b"\n"].concat();
        let it = explained(&program, &input(b"x"), Some(&input(b"y")));
        let text = story::text(&it);
        assert!(
            it.refused.is_some() || confirmed(&it).last() == Some(&("fails", "main")),
            "{text}"
        );
        // The kernel takes a moment to end what was traced.
        let is_gone = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            processes_of(&program) == 0
        });
        assert!(is_gone, "{text}");
    }
}

/// Debug information with types and functions that lead to themselves, and variables of them. Of the
/// chain, each pointer type leads to the next one.
fn circles(chain: usize) -> String {
    let mut text = r#"
    .section .debug_abbrev,"",@progbits
    .byte 1, 0x11, 1, 3, 8, 0, 0
    .byte 2, 0x16, 0, 3, 8, 0x49, 0x13, 0, 0
    .byte 3, 0x26, 0, 0x49, 0x13, 0, 0
    .byte 4, 0x0f, 0, 0x49, 0x13, 0, 0
    .byte 5, 0x34, 0, 3, 8, 0x49, 0x13, 2, 0x18, 0, 0
    .byte 6, 0x2e, 0, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0
    .byte 7, 0x34, 0, 3, 8, 0x31, 0x13, 2, 0x18, 0, 0
    .byte 8, 0x24, 0, 3, 8, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
    .byte 0
    .section .debug_info,"",@progbits
start:
    .long end - first
first:
    .value 4
    .long 0
    .byte 8, 1
    .asciz "circles.c"
again: .byte 2
    .asciz "again"
    .long again - start
one: .byte 3
    .long two - start
two: .byte 3
    .long one - start
f: .byte 6
    .long g - start
    .quad 0x1000, 16
g: .byte 6
    .long f - start
    .quad 0x2000, 16
h: .byte 7
    .asciz "inherits"
    .long i - start
    .byte 9, 3
    .quad 0x3000
i: .byte 7
    .asciz "inherited"
    .long h - start
    .byte 9, 3
    .quad 0x3000
"#
    .to_owned();
    for (name, of) in [("a", "again"), ("b", "one"), ("c", "chain0")] {
        text +=
            &format!(".byte 5\n.asciz \"{name}\"\n.long {of} - start\n.byte 9, 3\n.quad 0x4000\n");
    }
    for number in 0..chain {
        text += &format!(
            "chain{number}: .byte 4\n.long chain{} - start\n",
            number + 1
        );
    }
    text + &format!("chain{chain}: .byte 8\n.asciz \"int\"\n.byte 4, 5\n.byte 0\nend:\n")
}

#[test]
fn debug_information_that_leads_in_circles_is_read() {
    const CHAIN: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let [source, object] = ["circles.s", "circles.o"].map(|name| folder.path().join(name));
    std::fs::write(&source, circles(CHAIN)).unwrap();
    let mut compiler = std::process::Command::new("gcc");
    let compiled = compiler.arg("-c").arg(&source).arg("-o").arg(&object);
    assert!(compiled.status().unwrap().success());
    let info = DebugInfo::read(&object).unwrap();
    let names: Vec<&str> = info.globals.iter().map(|it| &*it.0.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let functions: Vec<&str> = info.functions.iter().map(|it| &*it.name).collect();
    assert_eq!(functions, ["?", "?"]);
    for (variable, _) in &info.globals[..2] {
        assert_eq!(info.types.get(variable.of).shape, Shape::Void);
    }
    // However long it is, the chain of pointers is read to its end.
    let (mut of, mut pointers) = (info.globals[2].0.of, 0);
    while let Shape::Pointer(to) = info.types.get(of).shape {
        (of, pointers) = (to, pointers + 1);
    }
    assert_eq!(pointers, CHAIN);
    assert_eq!(info.types.get(of).name, "int");
}

#[test]
fn nothing_is_said_of_memory_where_no_variable_was_tested() {
    let told = |flags| {
        let it = explained(&program("single.c", flags), b"b\n", Some(b"a\n"));
        refusal(&it).0.to_owned()
    };
    let one = told(PLAIN);
    assert!(
        one.starts_with("the runs share ") && one.ends_with("could be tested at it"),
        "{one}"
    );
    assert_eq!(
        told(&["-g1", "-O0"]),
        "the program's debug information has lines, but no variables, as by -g1 or -gline-tables-only"
    );
}

#[test]
fn what_is_certain_is_shown_of_a_program_that_starts_threads() {
    let it = explained(&refused(), b"tx\n", Some(b"ty\n"));
    let text = story::text(&it);
    assert!(
        !text.contains("not examined") && it.crash.class.is_some(),
        "{text}"
    );
    assert!(text.contains("differ in 1 byte"), "{text}");
}

#[test]
fn an_output_that_is_not_wrong_is_shown() {
    let program = program("unseen.c", PLAIN);
    let wrong = |pattern: &str| {
        let target = target(&program, &[]);
        let wrong = Some(ddfuzz_explain::Pattern::new(pattern).unwrap());
        let error = explain(&Request {
            wrong,
            ..request(target, b"10\n", Some(b"11\n"))
        });
        error.unwrap_err().to_string()
    };
    let expected = "the failing run does not fail: its stdout does not match /zzz/; it was \"\", and the run ended \
                    with exit 0";
    assert_eq!(wrong("zzz"), expected);
    let expected = "the passing run does not pass: its stdout matches /^/ as well; it was \"\"";
    assert_eq!(wrong("^"), expected);
}
