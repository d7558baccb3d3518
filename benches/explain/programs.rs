//! Explanations of whole programs: the three small ones, the published critical slices, and the
//! bundled targets' historic bugs. Each line has the figure and its goal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Program, Target};
use ddfuzz::explain::chain::Confidence;
use ddfuzz::explain::report::WriterRecord;
use ddfuzz::explain::{Explanation, Pattern, Request, SliceGoal, equally_long, explain};

use crate::cost::measure;
use crate::reproducers;
use crate::verdict;

/// Flags with which each variable has a place, and nothing guards the stack.
const PLAIN: [&str; 3] = ["-g", "-O0", "-fno-stack-protector"];
/// Flags of the bundled targets, but optimized for debuggers.
const FOR_DEBUGGERS: [&str; 4] = ["-g", "-Og", "-fno-stack-protector", "-U_FORTIFY_SOURCE"];
/// Longest time of an explanation.
const BUDGET: Duration = Duration::from_secs(600);

/// Compiles C sources to a program of this name.
fn compiled(folder: &Path, name: &str, flags: &[&str], sources: &[PathBuf]) -> PathBuf {
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    let done = compiler
        .args(flags)
        .args(sources)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(
        done.is_ok_and(|it| it.success()),
        "a C compiler is needed for {name}"
    );
    program
}

fn request(program: &Path, failing: &[u8], passing: Option<&[u8]>) -> Request {
    let target = Target::new(Program::Path(program.to_owned()));
    Request {
        passing_target: target.clone(),
        failing_target: target,
        failing: failing.to_vec(),
        passing: passing.map(<[u8]>::to_vec),
        others: Vec::new(),
        wrong: None,
        slice: None,
        raw: false,
        budget: BUDGET,
    }
}

fn example(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new("crates/ddfuzz-explain/tests/programs").join(format!("{name}.c"));
    compiled(folder, name, &PLAIN, &[source])
}

/// The chains of the three small programs.
pub fn small(folder: &Path) {
    let recs = request(
        &example(folder, "recs"),
        b"+a\n+b\n-b\n+c\n",
        Some(b"+a\n+b\n-a\n+c\n"),
    );
    let stack = request(
        &example(folder, "stack"),
        b"1 2 3 4 5 print\n",
        Some(b"1 2 3 + 5 print\n"),
    );
    let mut sample = request(&example(folder, "sample"), b"", Some(b""));
    let with = |args: &[&str]| {
        let mut target = sample.passing_target.clone();
        target.args = args.iter().map(Into::into).collect();
        target
    };
    let passing = with(&["9", "8", "7", "6", "5", "4"]);
    (sample.passing_target, sample.failing_target) = equally_long(passing, with(&["11", "14"]));
    sample.wrong = Some(Pattern::new("Output: 0 ").expect("a pattern"));
    for (name, request, writer) in [
        ("recs", recs, "drop"),
        ("sample", sample, "shell_sort"),
        ("stack", stack, "push"),
    ] {
        let (it, cost) = measure(|| explain(&request).expect("an explanation"));
        let points = it.points.used + it.points.skipped;
        let is_named = writers(&it).iter().any(|it| it == writer);
        println!(
            "{name}: {} tests (goal 60: {}), {points} points (goal 25: {}), {:.2} s, {:.2} s of CPU time \
             (goal 1 s: {}), {writer} named as a writer: {}",
            it.tests,
            verdict(it.tests <= 60),
            verdict(points <= 25),
            cost.wall.as_secs_f64(),
            cost.cpu.as_secs_f64(),
            verdict(cost.wall <= Duration::from_secs(1)),
            verdict(is_named),
        );
    }
}

/// The functions whose statements are confirmed writers.
fn writers(it: &Explanation) -> Vec<String> {
    let sure = it
        .chain
        .iter()
        .filter(|link| link.confidence == Confidence::Confirmed);
    let names = sure.filter_map(|link| match &link.writer {
        Some(WriterRecord::Statement(place)) => Some(place.function.clone()),
        _ => None,
    });
    names.collect()
}

/// The critical slices of the program of STRIPE, by each criterion.
pub fn slices(folder: &Path) {
    let program = example(folder, "stripe");
    let lines = |text| SliceGoal::Lines(Pattern::new(text).expect("a pattern"));
    for (name, goal, most, events) in [
        ("the whole output", SliceGoal::Run, 163, 12),
        ("sum", lines("sum"), 173, 11),
        ("mul", lines("mul"), 10, 1),
    ] {
        let mut request = request(&program, b"", None);
        request.slice = Some(goal);
        let (it, cost) = measure(|| explain(&request).expect("an explanation"));
        let slice = it.slice.expect("a slice");
        println!(
            "critical slice, {name}: {} tests (goal {most}: {}), {} events (goal {events}: {}), {:.2} s, \
             {:.2} s of CPU time (goal 0.3 s: {})",
            slice.tests,
            verdict(slice.tests <= most),
            slice.kept.len(),
            verdict(slice.kept.len() == events),
            cost.wall.as_secs_f64(),
            cost.cpu.as_secs_f64(),
            verdict(cost.cpu <= Duration::from_millis(300)),
        );
    }
}

/// The historic bugs of the bundled targets, compiled for debuggers, without a passing input.
pub fn bundled(folder: &Path) {
    for bug in reproducers::all() {
        let name = bug.target;
        let shared = ["main.c", "guarded.c", "complain.c"];
        let root = Path::new("targets");
        let mut sources: Vec<PathBuf> = shared.iter().map(|file| root.join(file)).collect();
        let own = std::fs::read_dir(root.join(name)).expect("each target has a folder");
        let own = own.map(|entry| entry.expect("a readable folder").path());
        sources.extend(own.filter(|path| path.extension().is_some_and(|it| it == "c")));
        let program = compiled(folder, name, &FOR_DEBUGGERS, &sources);
        let request = request(&program, &bug.reproducer, None);
        let (it, cost) = measure(|| explain(&request).expect("an explanation"));
        let links: Vec<String> = (it.chain.iter())
            .map(|link| format!("{} [{}]", link.variable, link.confidence.word()))
            .collect();
        let end = match &it.refused {
            Some(refusal) => format!("refused: {}", refusal.reason),
            None => links.join(" -> "),
        };
        println!(
            "{name}, {}: {} tests, {:.2} s of CPU time (a chain or a refusal: {}): {end}",
            bug.function,
            it.tests,
            cost.cpu.as_secs_f64(),
            verdict(it.refused.is_some() || !it.chain.is_empty()),
        );
    }
}
