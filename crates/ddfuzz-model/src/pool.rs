//! A pool of worker threads, which take tasks in order and report to the calling thread.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Default number of reports for each worker thread that may wait to be received by the calling
/// thread; while more would wait, the worker threads block.
const BACKLOG: usize = 4;
/// Longest time between two calls of the function that receives reports, in pools made by
/// [`TaskPool::new`].
const TICK: Duration = Duration::from_millis(100);

/// A pool of worker threads. Each worker takes tasks one after another until none is left,
/// `goes_on` returns false, or a worker or the function that receives reports fails. The calling
/// thread receives the workers' reports.
pub struct TaskPool<'a> {
    /// Number of worker threads; 0 means 1.
    pub jobs: usize,
    /// Number of reports that may wait to be received by the calling thread; a worker thread that
    /// would send one more blocks.
    pub backlog: usize,
    /// Longest time between two calls of the function that receives reports; it is called with
    /// `None` when no report has come for this long.
    pub tick: Duration,
    /// Function that each worker calls before it takes a task; once it returns false, no more tasks
    /// are taken. It may block, to pause the workers.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> TaskPool<'a> {
    /// Creates the settings of a pool of `jobs` worker threads that take tasks while `goes_on`
    /// returns true. The calling thread calls its function for reports at least ten times a second;
    /// four reports for each worker may wait to be received.
    pub fn new(jobs: usize, goes_on: &'a (dyn Fn() -> bool + Sync)) -> TaskPool<'a> {
        TaskPool {
            jobs,
            backlog: jobs.max(1) * BACKLOG,
            tick: TICK,
            goes_on,
        }
    }

    /// Starts the worker threads and calls `work` once in each; `work` takes tasks and reports
    /// their results by its [`Worker`]. Calls `receive` in the calling thread: with each report in
    /// the order in which they arrive, with the error of a worker, and with `None` when nothing has
    /// arrived for the time `tick`. Returns when all threads have ended. The first error of a
    /// worker or of `receive` makes all workers end after their current tasks.
    ///
    /// # Errors
    /// The error of `receive`; further reports are dropped then.
    ///
    /// # Panics
    /// If a worker panics, with its panic, after all other workers have ended.
    pub fn run<T, R: Send, F: Send, E>(
        &self,
        tasks: impl Iterator<Item = T> + Send,
        work: impl Fn(&Worker<'_, T, R, F>) -> Result<(), F> + Sync,
        mut receive: impl FnMut(Option<Result<R, F>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (over, tasks) = (AtomicBool::new(false), Mutex::new(tasks));
        std::thread::scope(|scope| {
            let (sender, reports) = sync_channel(self.backlog);
            let spawn = |_| {
                let worker = Worker {
                    goes_on: self.goes_on,
                    over: &over,
                    tasks: &tasks,
                    reports: sender.clone(),
                };
                let work = &work;
                scope.spawn(move || {
                    if let Err(error) = work(&worker) {
                        worker.over.store(true, Ordering::Relaxed);
                        worker.send(Err(error));
                    }
                })
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(spawn).collect();
            drop(sender);
            let received = loop {
                let done = match reports.recv_timeout(self.tick) {
                    Ok(report) => receive(Some(report)),
                    Err(RecvTimeoutError::Timeout) => receive(None),
                    Err(RecvTimeoutError::Disconnected) => break Ok(()),
                };
                if done.is_err() {
                    break done;
                }
            };
            over.store(true, Ordering::Relaxed);
            // Workers may be blocked on a full channel.
            while reports.recv().is_ok() {}
            for worker in workers {
                worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            received
        })
    }
}

/// The connection of one worker thread to its pool, by which the worker takes tasks and reports
/// results.
pub struct Worker<'a, T, R, F> {
    goes_on: &'a (dyn Fn() -> bool + Sync),
    /// Whether all workers of the pool must end, because a worker or the function that receives
    /// reports has failed.
    over: &'a AtomicBool,
    tasks: &'a Mutex<dyn Iterator<Item = T> + Send + 'a>,
    reports: SyncSender<Result<R, F>>,
}

impl<T, R, F> Worker<'_, T, R, F> {
    /// Takes the next task of the pool; `None` if there is none, or the worker has to end. May wait
    /// while the workers are paused.
    pub fn next_task(&self) -> Option<T> {
        self.goes_on().then(|| lock(self.tasks).next()).flatten()
    }

    /// Returns true if this worker may continue its task, and false if it has to end; to be called
    /// within long tasks. May wait while the workers of the pool are paused.
    pub fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed) && (self.goes_on)()
    }

    /// Sends a report of this worker to the pool's calling thread; waits while too many reports are
    /// not received yet.
    pub fn report(&self, report: R) {
        self.send(Ok(report));
    }

    fn send(&self, report: Result<R, F>) {
        // The receiver is gone only if the calling thread panics.
        if self.reports.send(report).is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

/// Locks a mutex and returns the guard, even if a thread that held it has panicked, because the
/// data is consistent at any time.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Takes tasks of the pool and reports each task's number; for the task `bad`, returns its
    /// number as an error.
    fn echo(worker: &Worker<'_, u64, u64, u64>, bad: Option<u64>) -> Result<(), u64> {
        while let Some(task) = worker.next_task() {
            match bad == Some(task) {
                true => return Err(task),
                false => worker.report(task),
            }
        }
        Ok(())
    }

    /// Runs the tasks 0 to 99 with [`echo`] on `jobs` workers, for tests; the task `bad`, if given,
    /// fails. Returns the result of the pool, and the sum of all reports.
    fn sum(jobs: usize, bad: Option<u64>) -> (Result<(), u64>, u64) {
        let mut sum = 0;
        let pool = TaskPool::new(jobs, &|| true);
        let done = pool.run(
            0..100,
            |worker| echo(worker, bad),
            |report| {
                sum += report.transpose()?.unwrap_or(0);
                Ok(())
            },
        );
        (done, sum)
    }

    #[test]
    fn all_tasks_are_done_once_and_an_error_comes_after_what_was_done() {
        for jobs in [0, 1, 4] {
            assert_eq!(sum(jobs, None), (Ok(()), 4950), "{jobs} jobs");
        }
        assert_eq!(sum(1, Some(10)), (Err(10), 45));
        assert_eq!(sum(4, Some(10)).0, Err(10));
    }

    #[test]
    fn an_error_of_the_receiver_ends_workers_that_wait_for_it() {
        let mut pool = TaskPool::new(3, &|| true);
        pool.backlog = 1;
        let done = pool.run(0.., |worker| echo(worker, None), |_| Err("full"));
        assert_eq!(done, Err("full"));
    }

    #[test]
    fn a_stopped_pool_takes_no_task() {
        let pool = TaskPool::new(2, &|| false);
        let done = pool.run(0..9, |worker| echo(worker, Some(0)), |_| Err("a report"));
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn the_panic_of_a_worker_is_passed_on() {
        let pool = TaskPool::new(2, &|| true);
        let work = |_: &Worker<'_, u64, (), ()>| std::panic::panic_any("bad");
        let run = || pool.run(0..9, work, |_| Ok::<_, ()>(()));
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"bad"));
    }
}
