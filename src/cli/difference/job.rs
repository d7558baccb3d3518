//! Runs the search and puts its results where they belong.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Judge, SearchArgs, Sought, baseline};
use crate::campaign::Minimizing;
use crate::cli::results::{Place, ResultArgs, forget, text_of, with_ending};
use crate::cli::run::campaign_of;
use crate::cli::script::no_group;
use crate::cli::slips::{find_in_store, keep_slip, slip_on_file};
use crate::cli::target::install_bundled;
use crate::cli::{Exit, Failure};
use crate::files::atomic;
use crate::minimize::isolate::{DifferenceResult, Isolated, Side, Subject, isolate};
use crate::minimize::log::{ContentHash, DifferenceRecord, Goal, PassingRecord, StartLine};
use crate::minimize::{Inverted, Journal, MinimizeError, OnSlip, Options, Oracle};
use crate::store::{Kind, Store, hash_of};

pub(super) struct Job<'a> {
    pub sought: &'a Sought,
    pub args: &'a SearchArgs,
    pub judge: &'a Judge,
    pub stop: &'a AtomicBool,
}

/// The result, and its record without slips.
type Done = (Isolated, DifferenceResult);

impl Job<'_> {
    pub fn to_files(&self, results: &[PathBuf], log: &Path) -> Result<Done, Failure> {
        let result = &results[0];
        let slips = RefCell::new(Vec::new());
        let on_slip: OnSlip<'_> = Box::new(|slip, _| {
            let kept = keep_slip(result, &slip.input, &slip.keys)?;
            slips.borrow_mut().push(kept);
            Ok(())
        });
        let (isolated, mut record) = self.search(results, log, on_slip)?;
        for slip in &mut record.slips {
            *slip = slip_on_file(result, slip, &slips.borrow());
        }
        Ok((isolated, record))
    }

    pub fn to_directory(&self, out: &Path) -> Result<Done, Failure> {
        let Judge::Crash { minimizing, crash } = self.judge else {
            return Err(no_group());
        };
        let Minimizing { target, way, .. } = minimizing.as_ref();
        let mut store = Store::create_or_resume(out, campaign_of(target, *way, None))?;
        install_bundled(&mut store, target)?;
        let (passing, failing) = (self.sought.passing_bytes(), &*self.sought.failing.bytes);
        let (crashing, other) = match self.args.invert {
            true => (passing, failing),
            false => (failing, passing),
        };
        let id = store.file(Kind::Crash, crash, crashing)?.id;
        let result = id.folder(store.reader().root()).join(self.name(other));
        let place = self.files(&result)?;
        let Place::File { results, log } = &place else {
            return Err(
                Failure::usage("a directory has the name of the result file").path(&result),
            );
        };
        let store = Mutex::new(store);
        let done = self.search(results, log, Minimizing::file_slips(&store, &id, None));
        let (isolated, mut record) = done?;
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        find_in_store(&store, &mut record.slips)?;
        Ok((isolated, record))
    }

    /// The name of the result in the folder of the crash: what is searched for, and between what.
    fn name(&self, other: &[u8]) -> String {
        let goal = match self.sought.goal {
            Goal::Maximize => "max",
            Goal::Isolate => "diff",
        };
        match other {
            [] => goal.to_owned(),
            _ => format!("{goal}-{}", hash_of(other)),
        }
    }

    /// The files of a result in an output directory. The same call again goes on with its log.
    fn files(&self, result: &Path) -> Result<Place, Failure> {
        let results = &self.args.results;
        let log = results.log.clone();
        let log = log.unwrap_or_else(|| with_ending(result, ".log.jsonl"));
        let there = ResultArgs {
            out: Some(result.to_owned()),
            resume: !results.force && (results.resume || log.exists()),
            log: Some(log),
            ..results.clone()
        };
        let inputs = self.sought.paths();
        let place = Place::choose(&there, &inputs, result, self.sought.endings())?;
        if results.force {
            place.clear()?;
        }
        Ok(place)
    }

    fn start_line(&self, subject: &Subject) -> StartLine {
        let Sought { failing, units, .. } = self.sought;
        let start = self.judge.start_line(&failing.bytes, &self.args.results);
        let passing = self.sought.passing.as_ref().map(|input| PassingRecord {
            blake3: ContentHash::of(&input.bytes),
            size: input.bytes.len() as u64,
            path: text_of(&input.path),
        });
        StartLine {
            input: text_of(&failing.path),
            difference: Some(DifferenceRecord {
                goal: self.sought.goal,
                units: *units,
                deltas: subject.deltas() as u64,
                passing,
                inverted: self.args.invert,
                monotone: self.args.monotone,
                ordered: self.args.order,
            }),
            ..start
        }
    }

    fn search(
        &self,
        results: &[PathBuf],
        log: &Path,
        on_slip: OnSlip<'_>,
    ) -> Result<Done, Failure> {
        let began = Instant::now();
        let begun = log.exists();
        let asked = &self.args.results;
        let (passing, failing) = (self.sought.passing_bytes(), &self.sought.failing.bytes);
        let subject = Subject::new(self.sought.units, passing, failing);
        let journal = Journal::resume(log, self.start_line(&subject));
        let mut journal = journal.map_err(|error| {
            Failure::from(error)
                .path(log)
                .hint("start again with --force, or give another log with --log")
        })?;
        let start = journal.start().clone();
        let oracle = self.judge.oracle()?;
        let mut oracle: Box<dyn Oracle> = match self.args.invert {
            true => Box::new(Inverted(oracle)),
            false => oracle,
        };
        let mut options = Options {
            budget_tests: asked.budget_tests,
            budget_time: asked.budget_time,
            log_inputs: asked.log_inputs,
            stop: Some(self.stop),
            on_slip,
            ..Options::default()
        };
        let on_side = Box::new(|side, text: &[u8]| {
            if let Some(file) = self.file_of(side, results) {
                atomic::write(file, text)?;
            }
            Ok(())
        });
        let isolated = isolate(
            &subject,
            oracle.as_mut(),
            &mut journal,
            &mut options,
            on_side,
        );
        let isolated = isolated.map_err(|error| self.failure(error, log, begun))?;
        self.write_ends(&isolated, results)?;
        let input = Some(self.sought.failing.path.as_path());
        let path = |side| self.file_of(side, results).or(input).and_then(text_of);
        let record = DifferenceResult {
            passing: path(Side::Passing),
            failing: path(Side::Failing),
            output: text_of(&results[0]),
            log: text_of(log),
            ..DifferenceResult::new(&isolated, &start, began.elapsed())
        };
        Ok((isolated, record))
    }

    fn write_ends(&self, isolated: &Isolated, results: &[PathBuf]) -> Result<(), Failure> {
        for (side, text) in [
            (Side::Passing, &isolated.passing),
            (Side::Failing, &isolated.failing),
        ] {
            if let Some(file) = self.file_of(side, results) {
                atomic::write(file, text)
                    .map_err(|error| Failure::new(Exit::Usage, "output", error).path(file))?;
            }
        }
        Ok(())
    }

    /// Where an end goes; maximizing, the failing one is the input.
    fn file_of<'r>(&self, side: Side, results: &'r [PathBuf]) -> Option<&'r Path> {
        let file = match (self.sought.goal, side) {
            (Goal::Maximize, Side::Passing) | (Goal::Isolate, Side::Failing) => results.first(),
            (Goal::Isolate, Side::Passing) => results.get(1),
            (Goal::Maximize, Side::Failing) => None,
        };
        file.map(PathBuf::as_path)
    }

    fn failure(&self, error: MinimizeError, log: &Path, begun: bool) -> Failure {
        if !begun {
            forget(log, &error);
        }
        baseline::axiom(error, self.sought, self.args.invert)
    }
}
