//! The way `snapshot`: whatever a run changes, the next run is as that of a new process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use ddfuzz::exec::{
    Channel, CoverageReporting, Ended, Executor, Freshness, Program, RefusalReason, Target,
    Traceable, Way, Written, start, two_files,
};

use crate::filters::list::{FILTERS, MORE_FILTERS};
use crate::kinds::of_all_kinds;
use crate::needs;
use crate::programs::{Compiled, compile, open_directory, patient, running, target};

/// How a run ended, and length and hash of what it wrote to stdout and stderr; `None` where a limit
/// ended it, since it wrote for as long as it was let.
type Outcome = (Ended, Option<[Written; 2]>);

fn outcome(ended: Ended, written: [Written; 2]) -> Outcome {
    let is_cut_off = matches!(ended, Ended::Timeout | Ended::OutOfMemory);
    (ended, (!is_cut_off).then_some(written))
}

/// Runs a target by one process that puts back what each run changes, and says what a run wrote.
struct Runner {
    executor: Box<dyn Executor>,
}

impl Runner {
    fn start(target: &Target) -> Runner {
        let started = start(target, Some(Way::Snapshot), Freshness::Shared);
        let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
        executor.report_output(true).unwrap();
        Runner { executor }
    }

    fn run(&mut self, input: &[u8]) -> Outcome {
        let ended = self.executor.run(input).unwrap().ended;
        outcome(ended, self.executor.written().unwrap())
    }
}

/// Runs a target by a new process.
fn by_command(target: &Traceable, input: &[u8]) -> Outcome {
    let mut run = target.start(input, false).unwrap();
    run.release().unwrap();
    let ended = run.wait().unwrap();
    let (stdout, stderr) = run.written().unwrap();
    outcome(ended, [stdout, stderr])
}

/// Kinds of changes that must be put back. The runs of all others may be refused.
const PUT_BACK: &[&str] = &[
    "static",
    "thread_local",
    "large",
    "page_of_input",
    "many_pages",
    "heap",
    "free",
    "stack",
    "break",
    "map",
    "map_file",
    "map_shared",
    "open",
    "close_stdin",
    "close_all",
    "dup",
    "close_on_exec",
    "status_flags",
    "offset",
    "stream",
    "sendfile",
    "handler",
    "mask",
    "signal_stack",
    "mode_mask",
    "moves",
    "local_service",
    "clock",
    "random",
    "errno",
    "environment",
    "locale",
    "rand",
    "tokens",
    "options",
    "at_exit",
    "quick_exit",
    "exit_now",
    "library",
    "iconv",
    "unfinished",
    "rounding",
    "exceptions",
    "vectors",
    "direction",
    "raw",
    "new_code",
];

/// Kinds of which a run is not the same in each process, or takes its time.
const OTHERS: &[&str] = &["loop", "eat", "use_up", "orphan", "library_data", "peek"];

fn changing(program: &Compiled, kind: &str) -> Target {
    let mut target = target(program);
    target.args = vec![kind.into()];
    target
}

/// The names of all kinds, as the program lists them.
fn kinds(program: &Compiled) -> Vec<String> {
    let listed = std::process::Command::new(&program.path)
        .arg("list")
        .output();
    let text = String::from_utf8(listed.unwrap().stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn whatever_a_run_changes_the_next_one_is_that_of_a_new_process() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let kinds = kinds(&program);
    assert!(kinds.len() >= 100, "{}", kinds.len());
    let known: BTreeSet<&str> = kinds.iter().map(String::as_str).collect();
    assert!(PUT_BACK.iter().all(|kind| known.contains(kind)));
    for kind in kinds.iter().filter(|kind| !OTHERS.contains(&kind.as_str())) {
        let target = changing(&program, kind);
        let command = Traceable::listening(&target, Way::Command).unwrap();
        let inputs: [&[u8]; 2] = [b"abc", b"bcde"];
        let expected = inputs.map(|input| by_command(&command, input));
        let mut runner = Runner::start(&target);
        // After so many runs, pages that each one writes are known as such.
        let is_put_back = PUT_BACK.contains(&kind.as_str());
        let rounds = if is_put_back { 4 } else { 1 };
        for which in [0, 1, 1, 0, 0, 1].repeat(rounds) {
            let outcome = runner.run(inputs[which]);
            assert_eq!(outcome, expected[which], "{kind}, input {which}");
        }
        if is_put_back {
            assert_eq!(runner.executor.refusals(), [], "{kind}");
        }
    }
    assert_eq!(running(&program.path), 0);
}

#[test]
fn a_page_that_one_run_in_many_writes_is_put_back() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let target = changing(&program, "page_of_input");
    let command = Traceable::listening(&target, Way::Command).unwrap();
    let mut runner = Runner::start(&target);
    for round in 0..3 {
        for page in 0..64 {
            for by in [0, 1] {
                let input = [b'a', b'b', b'@' + page, b'@' + by];
                let outcome = runner.run(&input);
                if round == 0 && page % 16 == 0 {
                    assert_eq!(outcome, by_command(&command, &input), "{input:?}");
                }
                // Status and length: a page that was not put back is a sum other than zero.
                let written = outcome.1.expect("no limit ended it");
                assert_eq!(
                    (outcome.0, written[0].bytes),
                    (Ended::Exit(0), 9),
                    "{input:?}"
                );
            }
        }
    }
    assert_eq!(runner.executor.refusals(), []);
}

#[test]
fn writes_that_nobody_reads_return_what_they_return_in_a_new_process() {
    let program = compile("changes", &["-pthread", "-lm"]);
    for way in [Way::Command, Way::Snapshot] {
        let mut executor = begin(&program, "write_results", way);
        // The first runs are compared: their outputs lead to pipes, which read what is written.
        for _ in 0..64 {
            executor.run(b"abc").unwrap();
        }
        for _ in 0..100 {
            let ended = executor.run(b"abc").unwrap().ended;
            assert_eq!(ended, Ended::Exit(109), "{way:?}");
        }
        assert_eq!(executor.refusals(), []);
    }
}

#[test]
fn flags_of_the_outputs_are_as_new_for_each_run_by_every_way() {
    let program = compile("changes", &["-pthread", "-lm"]);
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let mut executor = begin(&program, "output_flags", way);
        for round in 0..100 {
            let input: &[u8] = if round % 10 == 3 { b"bcd" } else { b"acd" };
            let ended = executor.run(input).unwrap().ended;
            assert_eq!(ended, Ended::Exit(0), "{way:?}, round {round}");
        }
        let refusals = executor.refusals();
        let all = |(reason, _): &(RefusalReason, u64)| matches!(reason, RefusalReason::Call(_));
        assert!(refusals.iter().all(all), "{refusals:?}");
    }
}

#[test]
fn as_much_memory_can_be_had_as_in_a_new_process() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "use_up", Way::Inject);
    let expected = executor.run(b"abc").unwrap().ended;
    assert!(matches!(expected, Ended::Exit(_)), "{expected:?}");
    let mut executor = begin(&program, "use_up", Way::Snapshot);
    assert_eq!(executor.run(b"abc").unwrap().ended, expected);
    let refusals = executor.refusals();
    let [(RefusalReason::Call(call), 1)] = refusals[..] else {
        panic!("{refusals:?}");
    };
    assert!([libc::SYS_brk, libc::SYS_mmap].contains(&i64::from(call)));
}

/// A prime number, greater than any number of inputs.
const PRIME: usize = 1_000_003;

/// What is compared: by default a few inputs of each filter that every system has. With the
/// variable `DDFUZZ_TEST_INPUTS`, that many inputs of all filters that are installed, or of those
/// with the numbers in `DDFUZZ_TEST_ROWS` (`10..20`).
struct Extent {
    is_full: bool,
    inputs: u64,
    rows: std::ops::Range<usize>,
}

impl Extent {
    fn of_environment() -> Extent {
        let set = |name| std::env::var(name).ok();
        let Some(inputs) = set("DDFUZZ_TEST_INPUTS") else {
            return Extent {
                is_full: false,
                inputs: 8,
                rows: 0..FILTERS.len(),
            };
        };
        let rows = set("DDFUZZ_TEST_ROWS").map_or(0..usize::MAX, |rows| {
            let (from, to) = rows.split_once("..").expect("FROM..TO");
            from.parse().unwrap()..to.parse().unwrap()
        });
        let inputs = inputs.parse().expect("a number of inputs");
        Extent {
            is_full: true,
            inputs,
            rows,
        }
    }
}

/// A run, and the files that it left in its directory, with their contents.
type WithFiles = (Outcome, BTreeMap<OsString, Vec<u8>>);

/// Returns the files in a directory, and removes them.
fn take_files(directory: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        files.insert(entry.file_name(), std::fs::read(entry.path()).unwrap());
        std::fs::remove_file(entry.path()).unwrap();
    }
    files
}

/// Runs the inputs forward, backward, and in a third order. Returns how many runs were refused.
fn compare(what: &str, target: &Target, inputs: &[Vec<u8>]) -> u64 {
    let directory = open_directory();
    let mode = Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), mode).unwrap(); // the target may be another user
    let mut target = target.clone();
    target.cwd = Some(directory.path().to_owned());
    let command = Traceable::listening(&target, Way::Command).unwrap();
    let expected = inputs.iter().map(|input| {
        let outcome = by_command(&command, input);
        (outcome, take_files(directory.path()))
    });
    let expected: Vec<WithFiles> = expected.collect();
    let mut runner = Runner::start(&target);
    let count = inputs.len();
    let shuffled = (0..count).map(|index| index * PRIME % count);
    for index in (0..count).chain((0..count).rev()).chain(shuffled) {
        let outcome = (runner.run(&inputs[index]), take_files(directory.path()));
        let input = String::from_utf8_lossy(&inputs[index]);
        assert_eq!(outcome, expected[index], "{what}, input {index} {input:?}");
    }
    let refused = runner.executor.refusals();
    refused.iter().map(|(_, count)| count).sum()
}

#[test]
fn installed_filters_end_and_write_alike_in_any_order() {
    let extent = Extent::of_environment();
    let rows = FILTERS.iter().chain(MORE_FILTERS).enumerate();
    let mut made = 0;
    for (number, (name, args)) in rows {
        if !extent.rows.contains(&number) {
            continue;
        }
        let Some(path) = needs::program(name) else {
            continue;
        };
        let mut target = patient(Program::Path(path));
        // `xxd -r` writes zeros, gigabytes of them, up to the address that an input names.
        target.limits.cpu = Duration::from_secs(if *name == "xxd" { 1 } else { 10 });
        target.args = args.iter().map(Into::into).collect();
        let inputs: Vec<_> = of_all_kinds(number as u64 * 12, extent.inputs).collect();
        let refused = compare(&format!("{name} {args:?}"), &target, &inputs);
        if extent.is_full {
            eprintln!(
                "{name} {args:?}: {} inputs alike, {refused} refused",
                inputs.len()
            );
        }
        made += u64::from(refused == 0);
    }
    let least = if extent.is_full { 0 } else { 40 };
    assert!(
        made >= least,
        "only {made} filters were run without a refusal"
    );
}

fn begin(program: &Compiled, kind: &str, way: Way) -> Box<dyn Executor> {
    let started = start(&changing(program, kind), Some(way), Freshness::Shared);
    started.unwrap_or_else(|error| panic!("{error}")).executor
}

#[test]
fn runs_over_their_limits_end_as_those_of_new_processes() {
    let program = compile("changes", &["-pthread", "-lm"]);
    for (kind, over) in [("loop", Ended::Timeout), ("eat", Ended::OutOfMemory)] {
        let mut target = changing(&program, kind);
        if over == Ended::OutOfMemory {
            // On a busy machine, 200 MiB take longer than the usual limit allows.
            target.limits.cpu = Duration::from_secs(5);
        }
        let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
        let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
        for (input, ended) in [
            (&b"abc"[..], Ended::Exit(1)),
            (b"bcde", over),
            (b"abcd", Ended::Exit(0)),
        ] {
            assert_eq!(executor.run(input).unwrap().ended, ended, "{kind}");
        }
    }
    assert_eq!(running(&program.path), 0);
}

/// Runs all inputs, as many at once as the executor takes; returns how they end, and how many
/// requests that took.
fn run_all(executor: &mut dyn Executor, inputs: &[&[u8]]) -> (Vec<Ended>, usize) {
    let (mut ends, mut requests) = (Vec::new(), 0);
    while ends.len() < inputs.len() {
        let runs = executor.run_some(&inputs[ends.len()..]).unwrap();
        ends.extend(runs.iter().map(|run| run.ended));
        requests += 1;
    }
    (ends, requests)
}

#[test]
fn many_inputs_at_once_end_as_each_of_them_alone() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "crash_half", Way::Snapshot);
    let cases: [(&[u8], Ended); 5] = [
        (b"a", Ended::Exit(1)),
        (b"", Ended::Exit(0)),
        (b"abcd", Ended::Exit(0)),
        (b"acd", Ended::Exit(1)),
        (b"b", Ended::Signal(libc::SIGSEGV)),
    ];
    // Eight runs end well, and one crashes.
    let some: Vec<_> = [0, 1, 2, 3, 2, 1, 0, 0, 4].map(|case| cases[case]).into();
    let all = some.iter().cycle().take(450);
    let inputs: Vec<&[u8]> = all.clone().map(|(input, _)| *input).collect();
    let (ends, requests) = run_all(executor.as_mut(), &inputs);
    assert!(ends.iter().eq(all.map(|(_, ended)| ended)));
    assert!(requests < 150, "{requests} requests");
    assert_eq!(executor.freshness(), Freshness::Shared);
}

#[test]
fn many_inputs_at_once_are_split_into_two_files_each() {
    let program = compile("two_files", &[]);
    let mut target = target(&program);
    target.channel = Channel::TwoFiles;
    target.args = vec!["@@".into(), "@@".into()];
    let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
    let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
    let cases: [&[u8]; 7] = [
        b"abc\x1cdefgh",
        b"",
        b"abcd",
        b"\x1cabc",
        b"ab\x1c\x1cc",
        b"abcdefg\x1c",
        b"a\x1cb",
    ];
    let inputs: Vec<&[u8]> = cases.iter().copied().cycle().take(350).collect();
    let (ends, requests) = run_all(executor.as_mut(), &inputs);
    for (input, ended) in inputs.iter().zip(ends) {
        let (first, second) = two_files(input);
        let status = 16 * first.len() + second.len();
        assert_eq!(ended, Ended::Exit(status as i32), "{input:?}");
    }
    assert!(requests < 60, "{requests} requests");
    assert_eq!(executor.refusals(), []);
}

#[test]
fn a_process_that_refuses_most_runs_is_given_up() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "create", Way::Snapshot);
    for _ in 0..140 {
        assert_eq!(executor.run(b"abc").unwrap().ended, Ended::Exit(1));
    }
    let refusals = executor.refusals();
    let (reason, count) = refusals.first().unwrap();
    assert_eq!(reason.to_string(), "open of a file to write");
    assert!((128..140).contains(count), "{count}");
}

#[test]
fn a_difference_ends_the_trust_and_corrects_earlier_runs() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "peek", Way::Snapshot);
    // At first there is nothing to see.
    while executor.run_some(&[b"a", b"a"]).unwrap().len() < 2 {}
    let wrong = executor.run(b"bc").unwrap().ended;
    assert_eq!(wrong, Ended::Exit(7), "the program sees no difference");
    let inputs = vec![&b"b"[..]; 1200];
    let (ends, _) = run_all(executor.as_mut(), &inputs);
    assert_eq!(ends.last(), Some(&Ended::Exit(8)));
    let corrected = executor.corrected();
    let first = corrected
        .first()
        .map(|(input, run)| (&input[..], run.ended));
    assert_eq!(first, Some((&b"bc"[..], Ended::Exit(8))));
    let count = |ended| ends.iter().filter(|end| **end == ended).count();
    assert_eq!(corrected.len(), count(Ended::Exit(7)) + 1);
    assert_eq!(executor.corrected(), []);
}

#[test]
fn a_check_that_is_asked_for_corrects_what_was_wrong_until_then() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "peek", Way::Snapshot);
    while executor.run_some(&[b"a", b"a"]).unwrap().len() < 2 {}
    executor.check_now().unwrap();
    assert_eq!(executor.corrected(), [], "nothing was wrong");
    let wrong = executor.run(b"bc").unwrap().ended;
    assert_eq!(wrong, Ended::Exit(7), "the program sees no difference");
    executor.check_now().unwrap();
    let corrected = executor.corrected();
    let [(input, run)] = &corrected[..] else {
        panic!("{corrected:?}");
    };
    assert_eq!((&input[..], run.ended), (&b"bc"[..], Ended::Exit(8)));
    assert_eq!(executor.run(b"bc").unwrap().ended, Ended::Exit(8));
}

#[test]
fn a_run_that_finds_a_difference_has_its_own_coverage() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let mut executor = begin(&program, "peek", Way::Snapshot);
    executor.cover_blocks().unwrap().unwrap();
    executor.report_coverage(CoverageReporting::Every);
    for _ in 0..400 {
        executor.run(b"a").unwrap();
    }
    let mut covered = |input: &[u8]| {
        executor.run(input).unwrap();
        let [of_run] = executor.covered() else {
            panic!("coverage of one run");
        };
        let counters = of_run.counters.clone();
        (counters, !executor.corrected().is_empty())
    };
    // A difference is found on `b`; the runs that are made again then end with one on `a`.
    let finding = (0..2000).find_map(|_| {
        covered(b"a");
        let (counters, has_corrected) = covered(b"b");
        has_corrected.then_some(counters)
    });
    let (looking, _) = covered(b"b");
    assert_eq!(finding, Some(looking.clone()));
    assert_ne!(covered(b"a").0, looking);
}

#[test]
fn a_kernel_that_cannot_watch_calls_is_a_named_error() {
    let program = compile("changes", &["-pthread", "-lm"]);
    let at_main = compile("at_main", &["-shared", "-fPIC"]);
    let mut target = changing(&program, "static");
    target.env = vec![
        ("LD_PRELOAD".into(), at_main.path.clone().into()),
        ("AT_MAIN".into(), "1".into()),
    ];
    let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
    let error = started.err().unwrap().to_string();
    assert!(error.contains("cannot be stopped"), "{error}");
}

#[test]
fn inputs_about_as_long_as_one_that_took_too_long_are_run_by_forks_at_once() {
    let Some(path) = needs::program("od") else {
        return;
    };
    let mut target = patient(Program::Path(path));
    target.args = vec!["-v".into(), "-tfF".into()];
    target.limits.cpu = Duration::from_secs(10);
    let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
    let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
    for _ in 0..50 {
        executor.run(b"abc").unwrap();
    }
    let refused = |executor: &dyn Executor, reason| {
        let refusals = executor.refusals();
        let mut counts = refusals.iter().filter(|(of, _)| *of == reason);
        counts.next().map_or(0, |(_, count)| *count)
    };
    // More than the 100 ms that a run may take in the process that makes many.
    let long = vec![b'7'; 2 << 20];
    assert_eq!(executor.run(&long).unwrap().ended, Ended::Exit(0));
    assert_eq!(refused(&*executor, RefusalReason::Died), 1);
    let short = &long[..16 << 10];
    let half = &long[..1 << 20];
    let (ends, _) = run_all(&mut *executor, &[short, half, short, short, half]);
    assert_eq!(ends, [Ended::Exit(0); 5]);
    assert_eq!(refused(&*executor, RefusalReason::Long), 2);
    assert_eq!(refused(&*executor, RefusalReason::Died), 1);
}
