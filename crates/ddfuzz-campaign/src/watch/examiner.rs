//! Threads that run the inputs.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam::channel::{Receiver, Sender};

use super::watching::Watching;
use crate::verdict::{Judged, judged, kind_of, may_leak};
use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::Kind;
use ddfuzz_store::foreign::Input;
use ddfuzz_triage::{Key, Triager};

/// One content to be run.
pub(super) struct Task {
    /// Its place in the order of commits, from 0.
    pub(super) at: u64,
    /// The file that has it.
    pub(super) file: Input,
    pub(super) content: ContentHash,
    pub(super) bytes: Vec<u8>,
}

/// What it came to.
pub(super) struct Answer {
    pub(super) task: Task,
    pub(super) judged: Judged,
}

/// One thread that runs inputs, with a target of its own.
pub(super) struct Examiner<'a> {
    pub(super) settings: &'a Watching,
    pub(super) stop: &'a AtomicBool,
    /// Major and minor keys of which a record is at hand. Tasks come in ascending order, so what
    /// this thread has reported is committed before what it reports behind it.
    pub(super) known: HashSet<(Key, Key)>,
    /// Size of the smallest input that this thread has reported in full, by major key, of crashes.
    pub(super) least: HashMap<Key, u64>,
    pub(super) tasks: Receiver<Task>,
    pub(super) answers: Sender<Result<Answer, ExecError>>,
}

impl Examiner<'_> {
    /// Runs what comes until nothing more does, or nobody listens.
    pub(super) fn work(mut self) {
        let mut triager = None;
        while let Ok(task) = self.tasks.recv() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let answer = self.examine(&mut triager, task);
            let failed = answer.is_err();
            if self.answers.send(answer).is_err() || failed {
                return;
            }
        }
    }

    fn examine(&mut self, triager: &mut Option<Triager>, task: Task) -> Result<Answer, ExecError> {
        let minimizing = &self.settings.minimizing;
        // Started with the first input: there may never be one.
        let triager = match triager {
            Some(triager) => triager,
            none => none.insert(Triager::of_target(&minimizing.target, minimizing.way)?),
        };
        let leaks = self.settings.leaks || may_leak(&task.file);
        let size = task.bytes.len() as u64;
        // A smaller one than all before may have to be stored.
        let is_smaller = |major| self.least.get(&major).is_some_and(|least| size < *least);
        let is_known = |major, minor| self.known.contains(&(major, minor)) && !is_smaller(major);
        let any = !self.known.is_empty();
        let judged = judged(triager, &task.bytes, leaks, any, is_known)?;
        if let Judged::New(examined) = &judged
            && let Some(crash) = &examined.crash
            && kind_of(crash) != Kind::Flaky
        {
            let major = crash.keys.major;
            self.known.insert((major, crash.keys.minor));
            if kind_of(crash) == Kind::Crash {
                let least = self.least.entry(major).or_insert(size);
                *least = size.min(*least);
            }
        }
        Ok(Answer { task, judged })
    }
}
