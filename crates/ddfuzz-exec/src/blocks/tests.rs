//! Coverage by breakpoints against the instructions that a run executes, one step at a time.

use iced_x86::{Decoder, DecoderOptions};
use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::starts::{BREAKPOINT, block_starts};
use crate::observe::image::Image;
use crate::{CoverageReporting, Ended, Executor, Freshness, Program, Target, Way, start};

/// Programs of every Debian system that execute few instructions (`grep` and `sed` take 400,000),
/// with arguments and an input.
const PROGRAMS: [(&str, &[&str], &str); 4] = [
    ("wc", &["-wl"], "one two\nthree\n"),
    ("tr", &["a-c[:space:]", "x"], "xaab\nc7\n\n"),
    ("cut", &["-d:", "-f2-"], "a:b:c\nx\n"),
    (
        "dash",
        &[],
        "for i in 1 2; do case $i in 2) echo $((i*3));; esac; done\n",
    ),
];

fn path_of(name: &str) -> PathBuf {
    crate::find_program(Path::new(name)).unwrap()
}

fn target(name: &str, args: &[&str]) -> Target {
    let mut target = Target::new(Program::Path(path_of(name)));
    target.args = args.iter().map(Into::into).collect();
    target.env = vec![("LANG".into(), "C".into())];
    target.env_only = true;
    target
}

/// Starts a target whose runs report the blocks that they reach. Panics unless all blocks of the
/// program are covered.
fn covering(name: &str, args: &[&str], way: Way) -> Box<dyn Executor> {
    let started = start(&target(name, args), Some(way), Freshness::Shared);
    let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
    let blocks = executor.cover_blocks().unwrap();
    assert_eq!(blocks, Ok(starts_of(name).len()), "{name}");
    executor
}

fn starts_of(name: &str) -> Vec<u64> {
    block_starts(&Image::read(&path_of(name)).unwrap())
}

/// Runs an input and returns the addresses of the blocks that the run reports; `None` if it reports
/// no coverage.
fn covered(
    executor: &mut dyn Executor,
    starts: &[u64],
    reporting: CoverageReporting,
    input: &[u8],
) -> Option<BTreeSet<u64>> {
    executor.report_coverage(reporting);
    executor.run(input).unwrap();
    let last = executor.covered().last()?;
    let reached = starts.iter().zip(&last.counters);
    Some(
        reached
            .filter(|(_, count)| **count > 0)
            .map(|(start, _)| *start)
            .collect(),
    )
}

/// The instructions of a program's own code that a run executes, by addresses before loading.
#[derive(Default)]
struct Steps {
    all: BTreeSet<u64>,
    /// The instructions executed up to the first read of the input.
    before_input: BTreeSet<u64>,
}

/// Runs a program on an input step by step from its entry point, and returns the instructions that
/// it executes.
#[expect(clippy::zombie_processes, reason = "waitpid sees its end")]
fn steps(name: &str, args: &[&str], input: &[u8]) -> Steps {
    let image = Image::read(&path_of(name)).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    let mut command = Command::new(path_of(name));
    command
        .args(args)
        .env_clear()
        .env("LANG", "C")
        .env("LD_BIND_NOW", "1");
    command
        .stdin(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    let child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    waitpid(pid, None).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let base = maps.split('-').next().unwrap();
    let base = u64::from_str_radix(base, 16).unwrap() - image.segments[0].address / 4096 * 4096;
    go_to(pid, base + image.entry);
    let code = image.segments.iter().find(|it| it.executable).unwrap();
    let mut steps = Steps::default();
    let mut has_read = false;
    loop {
        let registers = ptrace::getregs(pid).unwrap();
        let address = registers.rip.wrapping_sub(base);
        if code.place(address, 1).is_some() {
            steps.all.insert(address);
            if !has_read {
                steps.before_input.insert(address);
            }
        } else if (registers.rax, registers.rdi) == (libc::SYS_read as u64, 0) {
            let word = ptrace::read(pid, registers.rip as ptrace::AddressType).unwrap();
            has_read |= word & 0xffff == 0x050f; // syscall
        }
        ptrace::step(pid, None).unwrap();
        match waitpid(pid, None).unwrap() {
            WaitStatus::Stopped(_, _) => {}
            WaitStatus::Exited(_, _) => return steps,
            other => panic!("{other:?}"),
        }
    }
}

/// Runs a stopped process until it reaches an address.
fn go_to(pid: Pid, address: u64) {
    let at = address as ptrace::AddressType;
    let word = ptrace::read(pid, at).unwrap();
    ptrace::write(pid, at, word & !0xff | i64::from(BREAKPOINT)).unwrap();
    ptrace::cont(pid, None).unwrap();
    waitpid(pid, None).unwrap();
    ptrace::write(pid, at, word).unwrap();
    let mut registers = ptrace::getregs(pid).unwrap();
    assert_eq!(registers.rip, address + 1);
    registers.rip = address;
    ptrace::setregs(pid, registers).unwrap();
}

#[test]
fn the_blocks_reached_are_those_that_a_run_executes() {
    for (name, args, input) in PROGRAMS {
        let starts = starts_of(name);
        let steps = steps(name, args, input.as_bytes());
        is_never_inside_an_instruction(name, &starts, &steps.all);
        let blocks: BTreeSet<u64> = starts.iter().copied().collect();
        let executed: BTreeSet<u64> = blocks.intersection(&steps.all).copied().collect();
        for way in [Way::Inject, Way::Snapshot] {
            let mut executor = covering(name, args, way);
            let every = CoverageReporting::Every;
            let found = covered(&mut *executor, &starts, every, input.as_bytes()).unwrap();
            assert!(found.len() > 10, "{name} by {way}: {} blocks", found.len());
            assert!(found.is_subset(&executed), "{name} by {way}: not executed");
            // Code before the fork point is not executed by runs.
            let missing: BTreeSet<u64> = executed.difference(&found).copied().collect();
            let early = missing.is_subset(&steps.before_input);
            assert!(early, "{name} by {way}: executed and not reported");
            let code = executor.code().unwrap();
            let passed = starts.iter().zip(code.at_start());
            let passed: BTreeSet<u64> = passed.filter(|(_, is)| **is).map(|(at, _)| *at).collect();
            assert!(passed.is_subset(&steps.before_input), "{name} by {way}");
            // Of what is not reported, few blocks are of code before `main`.
            let unseen = missing.difference(&passed).count();
            let told = (passed.len(), missing.len());
            assert!(
                unseen < 20 && passed.len() > unseen,
                "{name} by {way}: {unseen}, {told:?}"
            );
        }
    }
}

fn is_never_inside_an_instruction(name: &str, starts: &[u64], executed: &BTreeSet<u64>) {
    let image = Image::read(&path_of(name)).unwrap();
    for address in executed {
        let bytes = (1..=15).rev().find_map(|length| image.at(*address, length));
        let mut decoder = Decoder::with_ip(64, bytes.unwrap(), *address, DecoderOptions::NONE);
        let next = decoder.decode().next_ip();
        let after = starts.partition_point(|start| start <= address);
        let is_clear = starts.get(after).is_none_or(|start| *start >= next);
        assert!(is_clear, "{name}: a breakpoint behind {address:#x}");
    }
}

#[test]
fn what_was_reached_before_is_not_new() {
    let (every, novel) = (CoverageReporting::Every, CoverageReporting::Novel);
    let (some, more): (&[u8], &[u8]) = (b"echo 1\n", b"echo 1; echo $((1+2))\n");
    let starts = starts_of("dash");
    for way in [Way::Inject, Way::Snapshot] {
        let mut executor = covering("dash", &[], way);
        let mut run = |reporting, input| covered(&mut *executor, &starts, reporting, input);
        let all_of_some = run(every, some).unwrap();
        assert_eq!(run(novel, some), None, "{way}");
        let new = run(novel, more).unwrap();
        assert_eq!(run(novel, more), None, "{way}");
        let all_of_more = run(every, more).unwrap();
        let difference: BTreeSet<u64> = all_of_more.difference(&all_of_some).copied().collect();
        assert_eq!(new, difference, "{way}");
        assert_eq!(run(every, some).unwrap(), all_of_some, "{way}");
        assert_eq!(run(CoverageReporting::Nothing, b"exit 3\n"), None, "{way}");
        assert!(run(novel, b"exit 3\n").is_some(), "{way}");
    }
}

#[test]
fn coverage_of_several_inputs_at_once_is_told_apart() {
    let starts = starts_of("wc");
    let mut executor = covering("wc", &["-wl"], Way::Snapshot);
    // Probation: one run at a time.
    for _ in 0..40 {
        executor.run(b"").unwrap();
    }
    executor.report_coverage(CoverageReporting::Novel);
    let inputs: [&[u8]; 4] = [b"", b"one", b"two", b"three\n\xff four"];
    let runs = executor.run_some(&inputs).unwrap();
    assert_eq!(runs.len(), inputs.len());
    let told: Vec<usize> = executor
        .covered()
        .iter()
        .map(|covered| covered.run)
        .collect();
    assert_eq!(told, [0, 1, 3]);
    let mut fresh = covering("wc", &["-wl"], Way::Inject);
    let of_one = covered(&mut *fresh, &starts, CoverageReporting::Every, b"one").unwrap();
    let new = &executor.covered()[1].counters;
    let new = starts.iter().zip(new).filter(|(_, count)| **count > 0);
    assert!(
        new.map(|(start, _)| *start)
            .all(|start| of_one.contains(&start))
    );
}

#[test]
fn a_crash_rests_on_a_run_without_breakpoints_and_is_no_coverage() {
    for way in [Way::Inject, Way::Snapshot] {
        let mut executor = covering("dash", &[], way);
        executor.report_coverage(CoverageReporting::Novel);
        let crash = b"kill -SEGV $$\n";
        for _ in 0..2 {
            let run = executor.run(crash).unwrap();
            assert_eq!(run.ended, Ended::Signal(libc::SIGSEGV), "{way}");
            assert!(executor.covered().is_empty(), "{way}");
        }
        // What the crashes have reached is new to the first run that exits.
        executor.run(b"kill -0 $$\n").unwrap();
        assert!(!executor.covered().is_empty(), "{way}");
    }
}

#[test]
fn a_program_with_its_own_idea_of_traps_ends_as_it_does_without_breakpoints() {
    for way in [Way::Inject, Way::Snapshot] {
        let mut executor = covering("dash", &[], way);
        executor.report_coverage(CoverageReporting::Novel);
        for (input, ended) in [
            ("trap '' TRAP; case 1 in 1) exit 3;; esac\n", Ended::Exit(3)),
            (
                "trap 'exit 4' TRAP; kill -TRAP $$; exit 5\n",
                Ended::Exit(4),
            ),
            ("kill -TRAP $$\n", Ended::Signal(libc::SIGTRAP)),
            ("exit 6\n", Ended::Exit(6)),
        ] {
            let run = executor.run(input.as_bytes()).unwrap();
            assert_eq!(run.ended, ended, "{way}: {input}");
        }
    }
}

/// Command lines of filters, which run with and without breakpoints to compare how the runs end and
/// what they write.
const FILTERS: [&str; 16] = [
    "awk {n+=NF;print$2,n}",
    "base64 -d",
    "cksum",
    "cut -d: -f2-",
    "dash",
    "fmt -w20",
    "grep -n [a-m]x*",
    "nl -ba",
    "od -c",
    "perl -ne print+reverse",
    "pr -2 -t",
    "rev",
    "sed -n s/[aeiou]/<&>/gp",
    "sort -k2n",
    "tsort",
    "uniq -c",
];
/// Number of random inputs for each command line of [`FILTERS`].
const INPUTS: u64 = 60;

/// Returns up to 119 bytes, always the same for the same `seed` (splitmix64), mostly printable
/// ones. Leaves out `$`, `&`, `|` and the backquote: a shell would write its process id for `$$`,
/// and start processes that race.
fn random_input(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let length = next() % 120;
    let byte = |number: u64| match number % 16 {
        0 => (number >> 8) as u8,
        1 | 2 => b"\n :(){}='\"\\"[(number >> 8) as usize % 11],
        _ => b' ' + (number >> 8) as u8 % 95,
    };
    let bytes = (0..length).map(|_| byte(next()));
    bytes.filter(|byte| !b"$&|`".contains(byte)).collect()
}

#[test]
fn runs_end_and_write_the_same_with_and_without_breakpoints() {
    for line in FILTERS {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let target = target(name, &words.collect::<Vec<_>>());
        let captured = || {
            let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
            let mut executor = started.unwrap_or_else(|error| panic!("{error}")).executor;
            executor.report_output(true).unwrap();
            executor
        };
        let (mut with, mut without) = (captured(), captured());
        assert!(with.cover_blocks().unwrap().is_ok(), "{line}");
        let mut reached = 0;
        for seed in 0..INPUTS {
            let input = random_input(seed);
            with.report_coverage(match seed % 5 {
                0 => CoverageReporting::Every,
                _ => CoverageReporting::Novel,
            });
            let outcome = |executor: &mut dyn Executor| {
                let ended = executor.run(&input).unwrap().ended;
                (ended, executor.written().unwrap())
            };
            let (one, other) = (outcome(&mut *with), outcome(&mut *without));
            assert_eq!(one, other, "{line}: {:?}", String::from_utf8_lossy(&input));
            reached += with.covered().len() as u64;
        }
        assert!(reached >= INPUTS / 5, "{line}: {reached}");
    }
}
