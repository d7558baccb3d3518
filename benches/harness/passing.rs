//! Passing runs: ours tell which of them reach something new, as libFuzzer finds out of its own.

use std::process::{Command, Stdio};

use ddfuzz::exec::{CoverageReporting, Ended, Executor, Freshness, Program, Target, Way, start};

use crate::Plan;
use crate::build::Binary;
use crate::cost::{Cost, measure, median};

/// Bytes of the longest input, on both sides.
const LONGEST: usize = 64;
/// What is promised: so much of libFuzzer's rate.
const PROMISED: f64 = 0.9;

/// Measures, and prints the table.
pub fn table(plan: &Plan, binaries: &[Binary]) -> Result<(), String> {
    let (runs, rounds) = (plan.passing, plan.rounds);
    println!("passing runs: {runs} a round of up to {LONGEST} bytes, median of {rounds} rounds");
    println!(
        "{:<18}{:<12}{:>12}{:>14}{:>10}  promised",
        "binary", "by", "runs/s", "CPU ns a run", "ratio"
    );
    let inputs = inputs(runs);
    for binary in binaries {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            theirs.push(by_libfuzzer(binary, runs)?);
            ours.push(by_harness(binary, &inputs)?);
        }
        let (theirs, ours) = (median(&theirs), median(&ours));
        print(binary.name, "libFuzzer", theirs, None);
        print(binary.name, "harness", ours, Some(theirs));
    }
    println!();
    Ok(())
}

fn print(binary: &str, by: &str, cost: Cost, peer: Option<Cost>) {
    let ratio = peer.map(|peer| peer.cpu.as_secs_f64() / cost.cpu.as_secs_f64());
    let verdict = match ratio {
        Some(ratio) if ratio >= PROMISED => format!("{ratio:>9.2}x  >= {PROMISED}: kept"),
        Some(ratio) => format!("{ratio:>9.2}x  >= {PROMISED}: not kept"),
        None => String::new(),
    };
    println!(
        "{binary:<18}{by:<12}{:>12.0}{:>14.0}{verdict}",
        1.0 / cost.wall.as_secs_f64(),
        cost.cpu.as_secs_f64() * 1e9,
    );
}

fn by_libfuzzer(binary: &Binary, runs: usize) -> Result<Cost, String> {
    let (ended, cost) = measure(|| {
        Command::new(&binary.fixed)
            .arg(format!("-runs={runs}"))
            .arg(format!("-max_len={LONGEST}"))
            .args(["-len_control=0", "-seed=1"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    match ended {
        Ok(status) if status.success() => Ok(cost.per(runs)),
        other => Err(format!("{}: {other:?}", binary.fixed.display())),
    }
}

fn by_harness(binary: &Binary, inputs: &[Vec<u8>]) -> Result<Cost, String> {
    let target = Target::new(Program::Path(binary.fixed.clone()));
    let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let (done, cost) = measure(|| -> Result<(), String> {
        let started = start(&target, Some(Way::Harness), Freshness::Shared);
        let mut executor = started.map_err(|error| error.to_string())?.executor;
        executor.report_coverage(CoverageReporting::Novel);
        run_all(executor.as_mut(), &slices)
    });
    done?;
    Ok(cost.per(inputs.len()))
}

fn run_all(executor: &mut dyn Executor, mut inputs: &[&[u8]]) -> Result<(), String> {
    while !inputs.is_empty() {
        let runs = executor.run_some(inputs);
        let runs = runs.map_err(|error| error.to_string())?;
        if let Some(run) = runs.iter().find(|run| run.ended != Ended::Exit(0)) {
            return Err(format!("a run ended with {}", run.ended));
        }
        inputs = &inputs[runs.len()..];
    }
    Ok(())
}

/// Random inputs of all lengths; a small generator of numbers is enough.
fn inputs(count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            let length = next() as usize % (LONGEST + 1);
            (0..length).map(|_| (next() >> 32) as u8).collect()
        })
        .collect()
}
