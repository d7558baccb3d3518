//! Workers that run inputs, each with a triager of its own.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::inputs::why_unread;
use crate::campaign::{Examined, Judged, judged, kind_of, may_leak};
use crate::cli::Failure;
use crate::exec::{Target, Way};
use crate::files::regular;
use crate::minimize::log::ContentHash;
use crate::store::Kind;
use crate::store::foreign::Input;
use crate::triage::{Key, Triager};

/// Answers that may wait for each worker: no more inputs than these are held in memory.
const BACKLOG: usize = 4;
/// How often the one who listens looks around while there is no answer.
const TICK: Duration = Duration::from_millis(100);

/// What became of one file.
pub enum Answer {
    /// It could not be read.
    Refused(String),
    /// Its content was run before, or another worker runs it.
    Same(ContentHash),
    /// It crashed as others did before.
    Again {
        /// Its content.
        input: ContentHash,
        /// Its length, in bytes.
        size: u64,
        /// The major and minor key.
        route: (Key, Key),
    },
    /// It was run and all that can be known of it is.
    New {
        /// Its content.
        input: ContentHash,
        /// Its bytes, where it crashed.
        bytes: Vec<u8>,
        /// Its length, in bytes.
        size: u64,
        /// How it ended.
        examined: Examined,
    },
}

impl Answer {
    /// The major and minor key of a crash of which this is the record, and that came each time.
    fn steady_route(&self) -> Option<(Key, Key)> {
        let Answer::New { examined, .. } = self else {
            return None;
        };
        let crash = examined.crash.as_deref();
        let crash = crash.filter(|crash| kind_of(crash) != Kind::Flaky)?;
        Some((crash.keys.major, crash.keys.minor))
    }
}

/// What workers share with the one who listens.
pub struct Crew<'a> {
    /// What is run.
    pub target: &'a Target,
    /// How.
    pub way: Way,
    /// The files.
    pub files: &'a [Input],
    /// Longest input, in bytes.
    pub max_len: u64,
    /// Look for leaks in all inputs that do not crash.
    pub leaks: bool,
    /// Nothing more is begun when it is true.
    pub stop: &'a AtomicBool,
    /// Contents that somebody has taken.
    pub taken: Mutex<HashSet<ContentHash>>,
    /// Major and minor keys of which a record is at hand: further ones need no names and lines.
    pub routes: Mutex<HashSet<(Key, Key)>>,
}

/// The set, whatever became of a thread that held it.
fn locked<T>(set: &Mutex<HashSet<T>>) -> MutexGuard<'_, HashSet<T>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew<'_> {
    /// Has all files run by `jobs` workers. `hear` is told the answers as they come, with the
    /// index of the file, and between them, with `None`, that time passes.
    ///
    /// # Errors
    /// The first failure of a worker, or of `hear`.
    pub fn run(
        &self,
        jobs: usize,
        mut hear: impl FnMut(Option<(usize, Answer)>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let next = AtomicUsize::new(0);
        let broken = AtomicBool::new(false);
        let jobs = jobs.min(self.files.len()).max(1);
        std::thread::scope(|scope| {
            let (send, answers) = sync_channel(jobs * BACKLOG);
            let workers: Vec<_> = (0..jobs)
                .map(|_| {
                    let (send, next, broken) = (send.clone(), &next, &broken);
                    scope.spawn(move || self.work(next, broken, &send))
                })
                .collect();
            drop(send);
            let heard = listen(answers, &mut hear);
            broken.store(true, Ordering::Relaxed);
            let mut failed = heard.err();
            for worker in workers {
                let answer = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
                failed = failed.or(answer.err());
            }
            failed.map_or(Ok(()), Err)
        })
    }

    fn work(
        &self,
        next: &AtomicUsize,
        broken: &AtomicBool,
        send: &SyncSender<(usize, Answer)>,
    ) -> Result<(), Failure> {
        let done = || self.stop.load(Ordering::Relaxed) || broken.load(Ordering::Relaxed);
        let fail = |_: &_| broken.store(true, Ordering::Relaxed);
        let mut triager = Triager::of_target(self.target, self.way).inspect_err(fail)?;
        while !done() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.files.get(at) else {
                break;
            };
            let answer = self.answer(&mut triager, file);
            broken.fetch_or(answer.is_err(), Ordering::Relaxed);
            let answer = answer?;
            let route = answer.steady_route();
            if send.send((at, answer)).is_err() {
                break;
            }
            // Once the record is under way, so that nobody's `Again` overtakes it; and before the
            // next input, so that what is done with that hangs on no one's speed.
            locked(&self.routes).extend(route);
        }
        Ok(())
    }

    fn answer(&self, triager: &mut Triager, file: &Input) -> Result<Answer, Failure> {
        let bytes = match regular::read(&file.path, self.max_len) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Answer::Refused(why_unread(&error))),
        };
        let input = ContentHash::of(&bytes);
        if !locked(&self.taken).insert(input) {
            return Ok(Answer::Same(input));
        }
        let size = bytes.len() as u64;
        let any = !locked(&self.routes).is_empty();
        let is_known = |major, minor| locked(&self.routes).contains(&(major, minor));
        let leaks = self.leaks || may_leak(file);
        let examined = match judged(triager, &bytes, leaks, any, is_known)? {
            Judged::Again(major, minor) => {
                let route = (major, minor);
                return Ok(Answer::Again { input, size, route });
            }
            Judged::New(examined) => examined,
        };
        Ok(Answer::New {
            input,
            bytes: match examined.crash {
                Some(_) => bytes,
                None => Vec::new(),
            },
            size,
            examined,
        })
    }
}

fn listen(
    answers: Receiver<(usize, Answer)>,
    hear: &mut impl FnMut(Option<(usize, Answer)>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        match answers.recv_timeout(TICK) {
            Ok(answer) => hear(Some(answer))?,
            Err(RecvTimeoutError::Timeout) => hear(None)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
