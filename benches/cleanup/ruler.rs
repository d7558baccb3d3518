//! The ruler: what files reach, by the same counters for all tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use ddfuzz::corpus::{Amount, Feature, Features};
use ddfuzz::exec::{CoverageReporting, Executor, Freshness, Program, Target, start};

use crate::corpora::files;
use crate::subjects::Subject;

/// What is in a folder.
pub struct Measured {
    /// Files and bytes.
    pub amount: Amount,
    /// What its files reach together.
    pub features: Features,
    /// What libFuzzer counts of it, where the program is one: the means of some counts.
    pub own: Option<Counted>,
}

/// `cov` and `ft` of libFuzzer's `-runs=0`.
#[derive(Clone, Copy)]
pub struct Counted {
    /// Places.
    pub cov: f64,
    /// Features.
    pub ft: f64,
}

/// So often libFuzzer counts: where coverage is flaky, its counts differ.
const COUNTS: u32 = 9;

/// Looks at all files of a folder, by the subject's program.
///
/// # Errors
/// Where they cannot be read, or the program cannot be run or tells no coverage.
pub fn measure(subject: &Subject, folder: &Path) -> Result<Measured, String> {
    let target = Target::new(Program::Path(subject.program.clone()));
    let started = start(&target, Some(subject.way), Freshness::Shared);
    let mut executor = started.map_err(|error| error.to_string())?.executor;
    executor.report_coverage(CoverageReporting::Every);
    if executor.counter_count().is_none() {
        return Err("the program tells no coverage".to_owned());
    }
    let mut amount = Amount::default();
    let mut features: Vec<Feature> = Vec::new();
    for (count, file) in files(folder)?.into_iter().enumerate() {
        let input = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        amount.add(input.len() as u64);
        features.extend_from_slice(reached(&mut *executor, &input)?.as_slice());
        if count % 64 == 0 {
            features.sort_unstable();
            features.dedup();
        }
    }
    Ok(Measured {
        amount,
        features: Features::from_unsorted(features),
        own: match subject.is_libfuzzer {
            true => Some(by_libfuzzer(&subject.program, folder)?),
            false => None,
        },
    })
}

/// What libFuzzer counts of a folder, in the mean.
fn by_libfuzzer(program: &Path, folder: &Path) -> Result<Counted, String> {
    let mut sum = Counted { cov: 0.0, ft: 0.0 };
    for _ in 0..COUNTS {
        let output = Command::new(program).arg("-runs=0").arg(folder).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let number = |name: &str| -> Option<f64> {
            let line = said.lines().rfind(|line| line.contains(" ft: "))?;
            let mut words = line.split_whitespace().skip_while(|word| *word != name);
            words.nth(1)?.parse().ok()
        };
        let (cov, ft) = number("cov:").zip(number("ft:")).ok_or(said.clone())?;
        sum.cov += cov;
        sum.ft += ft;
    }
    Ok(Counted {
        cov: sum.cov / f64::from(COUNTS),
        ft: sum.ft / f64::from(COUNTS),
    })
}

/// What a run reaches; nothing where it does not come back.
fn reached(executor: &mut dyn Executor, input: &[u8]) -> Result<Features, String> {
    executor.run(input).map_err(|error| error.to_string())?;
    let told = executor.covered().last();
    Ok(told.map_or_else(Features::default, |told| {
        Features::of_counters(&told.counters)
    }))
}
