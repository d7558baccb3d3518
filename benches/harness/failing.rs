//! Failing runs: each ends its process, so none is cheaper than a fork of that process.

use ddfuzz::exec::{Ended, Freshness, Program, Target, Way, start};

use crate::Plan;
use crate::build::Binary;
use crate::cost::{Cost, measure, median};

const FAILING: &[u8] = b"((((abc!";
/// What is promised: no more than so many forks.
const PROMISED: f64 = 1.5;

/// Measures, and prints the table. The floor is the same server forking for each run, of an input
/// that passes: nothing of what it does can be left away.
pub fn table(plan: &Plan, binaries: &[Binary]) -> Result<(), String> {
    let (runs, rounds) = (plan.failing, plan.rounds);
    println!("failing runs: {runs} a round, median of {rounds} rounds");
    println!(
        "{:<18}{:<22}{:>12}{:>14}{:>10}  promised",
        "binary", "run", "wall µs", "CPU µs a run", "ratio"
    );
    for binary in binaries {
        let (mut forks, mut fails) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            forks.push(cost(binary, Freshness::Fresh, b"", Ended::Exit(0), runs)?);
            let aborted = Ended::Signal(libc::SIGABRT);
            fails.push(cost(binary, Freshness::Shared, FAILING, aborted, runs)?);
        }
        let (forks, fails) = (median(&forks), median(&fails));
        let ratio = fails.cpu.as_secs_f64() / forks.cpu.as_secs_f64();
        let verdict = if ratio <= PROMISED {
            "kept"
        } else {
            "not kept"
        };
        print(binary.name, "a fork that passes", forks);
        println!();
        print(binary.name, "one that fails", fails);
        println!("{ratio:>9.2}x  <= {PROMISED}: {verdict}");
    }
    println!();
    Ok(())
}

fn print(binary: &str, run: &str, cost: Cost) {
    print!(
        "{binary:<18}{run:<22}{:>12.0}{:>14.0}",
        cost.wall.as_secs_f64() * 1e6,
        cost.cpu.as_secs_f64() * 1e6,
    );
}

fn cost(
    binary: &Binary,
    freshness: Freshness,
    input: &[u8],
    expected: Ended,
    runs: usize,
) -> Result<Cost, String> {
    let target = Target::new(Program::Path(binary.faulty.clone()));
    let (done, cost) = measure(|| -> Result<(), String> {
        let started = start(&target, Some(Way::Harness), freshness);
        let mut executor = started.map_err(|error| error.to_string())?.executor;
        for _ in 0..runs {
            let run = executor.run(input).map_err(|error| error.to_string())?;
            if run.ended != expected {
                return Err(format!("a run ended with {}", run.ended));
            }
        }
        Ok(())
    });
    done?;
    Ok(cost.per(runs))
}
