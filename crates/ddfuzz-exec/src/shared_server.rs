//! One server for a search (such as minimization) and for the tracer of its crashes: it makes the
//! runs of the search, many in one process, and the traced runs, each in a process that has run
//! nothing before.

use std::io;

use crate::crash_snapshots::ServerMode;
use crate::hang_detector::HangDetector;
use crate::input::InputBatch;
use crate::launch::Launch;
use crate::protocol::flag;
use crate::retry::{Failure, RUNS_PER_SERVER, Retriable};
use crate::scratch::{LastChange, Scratch};
use crate::server::{Answer, RequestError, Server};
use crate::shared_page::RunOutcome;
use crate::trace_server::{TraceServer, gone};
use crate::{
    Ended, ExecError, Executor, Freshness, Limits, Run, Target, TimeLimit, Traceable, Way, retry,
    start,
};

/// The state of a search (such as minimization) whose runs are made by the fork server that also
/// makes a tracer's runs.
pub(crate) struct SearchLoop {
    /// The channel by which the fork server's runs get their inputs, both those of the search and
    /// the traced ones.
    pub(crate) inputs: InputBatch,
    limits: Limits,
    /// Flags of each request for a run of the search: bits of [`flag`].
    flags: u64,
    /// Whether the process that makes the runs of the search has made one and waits for more.
    lives: bool,
    /// Number of processes that have made runs of the search on the current fork server and have
    /// ended since.
    forked: u64,
    /// Whether a run in a new process has once written files in the working directory while later
    /// runs of the same request could see these files. If so, each run in a new process has a
    /// request to itself from then on.
    writes_files: bool,
    detector: HangDetector,
}

impl SearchLoop {
    /// Prepares a search on a tracer's fork server: creates the memory file for its inputs.
    /// `limits` are those of each run. Fails when the file cannot be created.
    pub(crate) fn new(limits: Limits) -> Result<SearchLoop, ExecError> {
        Ok(SearchLoop {
            inputs: new_inputs()?,
            limits,
            flags: 0,
            lives: false,
            forked: 0,
            writes_files: false,
            detector: HangDetector::default(),
        })
    }

    /// Notes that a new fork server is in use, on which no run of the search (such as a
    /// minimization) was made yet.
    pub(crate) fn begin_server(&mut self) {
        (self.lives, self.forked) = (false, 0);
    }
}

fn new_inputs() -> Result<InputBatch, ExecError> {
    InputBatch::create().map_err(ExecError::system("creating a memory file for inputs"))
}

impl TraceServer {
    /// Ends the process that makes the runs of the search, if there is one, so that the next run
    /// begins in a new process; empties the scratch directory.
    fn end_search_process(&mut self) -> Result<(), ExecError> {
        match &mut self.search {
            Some(search) if search.lives => search.lives = false,
            _ => return Ok(()),
        }
        self.server = self.server.take().and_then(Server::end_process);
        SearchRuns(self).clean()
    }

    /// Prepares a traced run on the input that was written last, in a new process: ends the process
    /// that makes the runs of the search, and writes where the input is to the shared memory.
    /// Returns the number of inputs in the request.
    pub(crate) fn put_first(&mut self) -> Result<usize, RequestError> {
        self.end_search_process().map_err(|_| gone())?;
        let server = self.server.as_ref().ok_or_else(gone)?;
        let search = self.search.as_ref().ok_or_else(gone)?;
        let put = server.page.put_inputs(&search.inputs.places);
        put.map_err(|_| gone())?;
        Ok(search.inputs.places.len())
    }
}

/// The fork server of a tracer while it makes runs of a search (such as minimization) in one
/// process.
struct SearchRuns<'a>(&'a mut TraceServer);

impl SearchRuns<'_> {
    /// Converts the fork server's answer to the results of the runs of its request. If the process
    /// that made these runs has ended, deletes the files that the process has left. If a run
    /// exceeded its memory limit, also ends the fork server.
    fn finish(&mut self, answer: Answer) -> Result<Vec<Run>, ExecError> {
        let mut runs = self.returned(answer.number)?;
        if self.0.search.as_ref().is_none_or(|search| !search.lives) {
            self.clean()?;
            if let Some(reports) = &mut self.0.reports {
                reports.clear();
            }
        }
        if answer.ended == Ended::OutOfMemory {
            // A process that could not be killed at once may still hold the inputs open.
            self.0.server = None;
            if let Some(search) = &mut self.0.search {
                search.inputs = new_inputs()?;
            }
        }
        runs.push(Run {
            ended: answer.ended,
            cpu: answer.cpu,
            read: None,
        });
        Ok(runs)
    }

    /// Returns the results of the first `count` runs of the last request. All these runs must have
    /// returned normally.
    fn returned(&self, count: usize) -> Result<Vec<Run>, ExecError> {
        let server = self.0.server.as_ref().filter(|_| count > 0);
        let Some(server) = server else {
            return Ok(Vec::new());
        };
        let outcomes = server.page.outcomes(count);
        let outcomes = outcomes.map_err(ExecError::system("reading shared memory"))?;
        let ended = |outcome: &RunOutcome| Run {
            cpu: outcome.cpu,
            ..Run::ended(Ended::from_wait_status(outcome.status))
        };
        Ok(outcomes.iter().map(ended).collect())
    }
}

impl Retriable for SearchRuns<'_> {
    fn put_in_place(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        let search = self.0.search.as_mut();
        search.map_or(Ok(()), |search| search.inputs.write(inputs))
    }

    fn attempt(&mut self, _input: &[u8]) -> Result<Answer, Failure> {
        let died = || Failure::Request(RequestError::Died);
        let spent = |search: &SearchLoop| search.forked >= RUNS_PER_SERVER;
        if self.0.server.is_none() || self.0.search.as_ref().is_some_and(spent) {
            self.0.server = None;
            let started = self.0.start_server(ServerMode::Forking);
            started.map_err(Failure::Start)?;
        }
        let server = self.0.server.as_mut().ok_or_else(died)?;
        let search = self.0.search.as_mut().ok_or_else(died)?;
        search.detector.begin();
        let flags = search.flags | flag::QUIET;
        let places = &search.inputs.places;
        let answer = server.run_all(places, flags, &search.limits, &mut search.detector);
        let answer = answer.map_err(Failure::Request)?;
        search.lives = answer.ended.is_exit() && flags & flag::LAST == 0;
        search.forked += match flags & flag::EACH {
            0 => u64::from(!search.lives),
            _ => answer.number as u64 + 1,
        };
        Ok(answer)
    }

    fn lasting(&self, _failure: &Failure) -> Option<ExecError> {
        None
    }

    fn stop(&mut self) {
        self.0.server = None;
    }

    fn launch(&self) -> &Launch {
        self.0.forking.as_ref().unwrap_or(&self.0.launch)
    }

    fn scratch(&mut self) -> &mut Scratch {
        &mut self.0.scratch
    }
}

/// An executor that runs the inputs of a search, many in one process, on the fork server that a
/// [`Traceable`] also uses for traced runs.
pub(crate) struct SharedServerExecutor {
    of: Traceable,
    target: Target,
    limits: Limits,
    /// An executor with a separate fork server, used once the tracer's server does not fork runs
    /// any more. (Where the system refuses to trace, the tracer's server executes the program anew
    /// for each run.)
    own: Option<Box<dyn Executor>>,
}

impl SharedServerExecutor {
    pub(crate) fn new(of: Traceable, target: &Target) -> SharedServerExecutor {
        SharedServerExecutor {
            of,
            target: target.clone(),
            limits: target.limits,
            own: None,
        }
    }

    /// Runs the target on the first of `inputs`, and on as many of the next ones as
    /// [`Executor::run_some`] says, on the fork server that also makes the tracer's runs; returns
    /// the runs. `flags`: flags of the request (bits of [`flag`]). Makes no run and returns `None`
    /// if this server does not fork the loaded program, or if the search has a fork server of its
    /// own by now.
    fn run_shared(&mut self, inputs: &[&[u8]], flags: u64) -> Result<Option<Vec<Run>>, ExecError> {
        let mut server = self.of.lock();
        if self.own.is_some() || server.server.is_some() && server.mode != ServerMode::Forking {
            return Ok(None);
        }
        if flags & flag::LAST != 0 {
            server.end_search_process()?;
        }
        if let Some(search) = &mut server.search {
            (search.limits, search.flags) = (self.limits, flags);
        }
        let mut runs = SearchRuns(&mut server);
        let answer = retry::run(&mut runs, inputs)?;
        runs.finish(answer).map(Some)
    }

    /// Returns the time of the last change of the working directory before a request for `count`
    /// runs, each in a new process. If another time is found after the request, a run has written
    /// files that later runs may have seen. `None` if each run must have a request to itself.
    fn change_before(&self, count: usize) -> Option<LastChange> {
        let server = self.of.lock();
        let writes_files = server.search.as_ref().is_none_or(|it| it.writes_files);
        let change = server.scratch.last_change();
        change.filter(|change| count > 1 && !writes_files && change.is_past())
    }

    fn own(&mut self) -> Result<&mut Box<dyn Executor>, ExecError> {
        match &mut self.own {
            Some(own) => Ok(own),
            none => {
                let started = start(&self.target, Some(Way::Harness), Freshness::Shared)?;
                let own = none.insert(started.executor);
                own.limit_time(TimeLimit::from(self.limits));
                Ok(own)
            }
        }
    }
}

impl Executor for SharedServerExecutor {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        match self
            .run_shared(&[input], 0)?
            .and_then(|runs| runs.last().copied())
        {
            Some(run) => Ok(run),
            None => self.own()?.run(input),
        }
    }

    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        match self.run_shared(inputs, 0)? {
            Some(runs) => Ok(runs),
            None => self.own()?.run_some(inputs),
        }
    }

    fn run_fresh_some(&mut self, inputs: &[&[u8]]) -> Result<Option<Vec<Run>>, ExecError> {
        if inputs.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let before = self.change_before(inputs.len());
        let runs = match before {
            Some(_) => self.run_shared(inputs, flag::LAST | flag::EACH)?,
            None => self.run_shared(&inputs[..1], flag::LAST)?,
        };
        let Some(mut runs) = runs else {
            return self.own()?.run_fresh_some(inputs);
        };
        if before.is_some() && self.of.lock().scratch.last_change() != before {
            // Later runs may have seen the files of the first.
            runs.truncate(1);
            if let Some(search) = &mut self.of.lock().search {
                search.writes_files = true;
            }
        }
        Ok(Some(runs))
    }

    fn way(&self) -> Way {
        Way::Harness
    }

    fn freshness(&self) -> Freshness {
        Freshness::Shared
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limits = time.within(self.limits);
        if let Some(own) = &mut self.own {
            own.limit_time(time);
        }
    }
}
