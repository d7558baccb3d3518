//! Which code of an unmodified program the runs of all workers have reached, and the record of it
//! in the output directory (`code.json`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ddfuzz_exec::{CodeFunction, CoveredCode, ExecError, Freshness, Target, Way, start};
use ddfuzz_store::{CodeCoverage, FileCoverage, UnreachedFunction};
use ddfuzz_triage::demangle;

/// Least time between two writings of `code.json`, the record of the reached code. The record is
/// long, since it names all functions that were not reached.
const SAVE_EVERY: Duration = Duration::from_secs(30);

/// The blocks of an unmodified (not instrumented) program that the workers have reported as reached
/// in this call of ddfuzz.
pub(super) struct ReachedCode {
    reached: BTreeSet<u32>,
    is_unsaved: bool,
    saved: Instant,
    /// The target's code and its functions, from which records of the reached code are made; `None`
    /// before the first record, and if runs report no blocks.
    code: Option<(CoveredCode, Vec<CodeFunction>)>,
}

impl Default for ReachedCode {
    fn default() -> ReachedCode {
        ReachedCode {
            reached: BTreeSet::new(),
            is_unsaved: false,
            saved: Instant::now(),
            code: None,
        }
    }
}

/// Converts numbers of blocks to the body of a message (`Request::Reached`): little-endian 32-bit
/// integers.
pub(super) fn to_bytes(blocks: impl Iterator<Item = usize>) -> Vec<u8> {
    let numbers = blocks.filter_map(|block| u32::try_from(block).ok());
    numbers.flat_map(u32::to_le_bytes).collect()
}

impl ReachedCode {
    /// Adds the reached blocks whose numbers are in `message`, the body of a worker's message, as
    /// little-endian 32-bit integers.
    pub(super) fn add(&mut self, message: &[u8]) {
        for number in message.chunks_exact(4) {
            let number = number.try_into().map_or(0, u32::from_le_bytes);
            self.is_unsaved |= self.reached.insert(number);
        }
    }

    /// Checks whether the next record of the reached code is due, because 30 seconds have passed
    /// since the last one.
    pub(super) fn is_due(&self) -> bool {
        self.saved.elapsed() >= SAVE_EVERY
    }

    /// Makes a record of the reached code for the campaign with the id `campaign`; `None` if no
    /// block is new since the last record, or runs report no blocks. The first call starts the
    /// target once to learn its code.
    pub(super) fn record(
        &mut self,
        target: &Target,
        way: Way,
        campaign: &str,
    ) -> Result<Option<CodeCoverage>, ExecError> {
        if !std::mem::take(&mut self.is_unsaved) {
            return Ok(None);
        }
        self.saved = Instant::now();
        if self.code.is_none() {
            // As the workers do: a frozen start ends later, and its blocks are not reported by
            // runs.
            let mut executor = start(target, Some(way), Freshness::Shared)?.executor;
            let covers = executor.cover_blocks()?.is_ok();
            let code = executor.code().filter(|_| covers);
            self.code = code.map(|code| {
                let functions = code.functions();
                (code, functions)
            });
        }
        let code = self.code.as_ref();
        Ok(code.map(|(code, functions)| self.of(code, functions, campaign)))
    }

    fn is_reached(&self, code: &CoveredCode, block: usize) -> bool {
        let number = u32::try_from(block).unwrap_or(u32::MAX);
        self.reached.contains(&number) || code.at_start().get(block) == Some(&true)
    }

    fn of(&self, code: &CoveredCode, functions: &[CodeFunction], campaign: &str) -> CodeCoverage {
        let files = code.files().map(|file| FileCoverage {
            file: file.to_string_lossy().into_owned(),
            ..FileCoverage::default()
        });
        let mut files: Vec<FileCoverage> = files.collect();
        let mut never_reached = Vec::new();
        for function in functions {
            let blocks = function.blocks.clone();
            let reached = blocks.filter(|block| self.is_reached(code, *block)).count() as u64;
            let file = &mut files[function.module];
            file.blocks += reached;
            file.blocks_of += function.blocks.len() as u64;
            file.functions += u64::from(reached > 0);
            file.functions_of += 1;
            if reached == 0 {
                never_reached.push(UnreachedFunction {
                    file: file.file.clone(),
                    address: format!("{:#x}", function.address),
                    name: function.name.as_deref().map(demangle),
                    blocks: function.blocks.len() as u64,
                });
            }
        }
        never_reached.sort_by_key(|function| std::cmp::Reverse(function.blocks));
        CodeCoverage {
            campaign: campaign.to_owned(),
            files,
            never_reached,
        }
    }
}
