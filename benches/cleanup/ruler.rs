//! The ruler: what files reach, by the same counters for all tools.

use std::fs;
use std::path::Path;

use ddfuzz::corpus::{Amount, Feature, Features};
use ddfuzz::exec::{Executor, Freshness, Program, Target, Telling, start};

use crate::corpora::files;
use crate::subjects::Subject;

/// What is in a folder.
pub struct Measured {
    /// Files and bytes.
    pub amount: Amount,
    /// What its files reach together.
    pub features: Features,
}

/// Looks at all files of a folder, by the subject's program.
///
/// # Errors
/// Where they cannot be read, or the program cannot be run or tells no coverage.
pub fn measure(subject: &Subject, folder: &Path) -> Result<Measured, String> {
    let target = Target::new(Program::Path(subject.program.clone()));
    let started = start(&target, Some(subject.way), Freshness::Shared);
    let mut executor = started.map_err(|error| error.to_string())?.executor;
    executor.tell_coverage(Telling::Every);
    if executor.places().is_none() {
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
