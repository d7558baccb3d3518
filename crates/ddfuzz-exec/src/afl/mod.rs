//! The method of execution `forkserver`: uses the fork server that AFL++'s compilers put into a
//! program, as `afl-fuzz` does.
//!
//! The protocol was read, not copied, from AFL++'s `instrumentation/afl-compiler-rt.o.c` (the
//! program's side), `include/types.h` and `docs/fuzzing_in_depth.md`.

mod handshake;
mod server;
mod shared_memory;

use std::{collections::HashSet, io, path::Path, time::Duration};

use crate::afl::handshake::{Handshake, HandshakeError, MAP_TOO_SMALL};
use crate::afl::server::{AflServer, AflStartError, Leftovers};
use crate::afl::shared_memory::{Coverage, Segment};
use crate::launch::{Launch, Role};
use crate::observations::{CoverageReporting, ReachedRanges, RunCoverage};
use crate::retry::{Failure, RUNS_PER_SERVER, Retriable};
use crate::server::{Answer, RequestError, startup_error};
use crate::{
    ExecError, Executor, Freshness, Limits, Run, Signature, Stuck, Target, TimeLimit, Way, elf,
    hang_detector::HangDetector, input::Input, prepared_target::PreparedTarget, retry,
    scratch::Scratch,
};

/// The longest input that is passed in shared memory, in bytes (AFL++'s `MAX_FILE`); longer ones
/// are passed in a file.
const LONGEST: usize = 1 << 20;
/// Size of the length field before an input in shared memory, in bytes.
const LENGTH: usize = 4;

/// An executor of a target with a fork server that AFL++ compiled into it.
pub(crate) struct Forkserver {
    // The first field: the server ends before its directory and control group are removed.
    server: Option<AflServer>,
    runs: u64,
    signatures: AflSignatures,
    freshness: Freshness,
    limits: Limits,
    launch: Launch,
    /// Number of environment variables at the beginning of the list in `launch` that are the
    /// target's own. The variables after them are for AFL++'s runtime, and are set anew for each
    /// fork server.
    own_variables: usize,
    coverage: Coverage,
    reporting: CoverageReporting,
    reached: ReachedRanges,
    covered: Vec<RunCoverage>,
    detector: HangDetector,
    /// Shared memory for inputs; `None` if the target reads its input elsewhere.
    shared: Option<Segment>,
    takes_shared: bool,
    /// True if the target's process is to be ended after the runs of the next call of the executor.
    last: bool,
    input: Input,
    scratch: Scratch,
}

impl Forkserver {
    /// Creates the executor of the `prepared` target and starts the target's fork server at once,
    /// so that a target without a fork server fails here. `freshness`: whether runs may share a
    /// process.
    pub(crate) fn start(
        target: &Target,
        prepared: PreparedTarget,
        freshness: Freshness,
    ) -> Result<Forkserver, ExecError> {
        let launch = prepared.launch(target, Role::Afl, None);
        let signatures = AflSignatures::of(&prepared.program);
        let memory = || -> io::Result<(Coverage, Option<Segment>)> {
            // A target with a file argument must read the file.
            let shared = (!target.takes_file())
                .then(|| Segment::create(LENGTH + LONGEST, launch.identity))
                .transpose()?;
            Ok((Coverage::create(launch.identity)?, shared))
        };
        let (coverage, shared) = memory().map_err(|error| {
            let why = format!("this system gives no System V shared memory: {error}");
            ExecError::unfit(Way::Forkserver, &prepared.program, why)
        })?;
        let mut executor = Forkserver {
            server: None,
            runs: 0,
            signatures,
            freshness: match signatures.persistent {
                true => freshness,
                false => Freshness::Fresh,
            },
            limits: target.limits,
            own_variables: launch.env.len(),
            launch,
            coverage,
            reporting: CoverageReporting::Nothing,
            reached: ReachedRanges::default(),
            covered: Vec::new(),
            detector: HangDetector::default(),
            shared,
            takes_shared: false,
            last: false,
            input: prepared.input,
            scratch: prepared.scratch,
        };
        executor.server()?;
        Ok(executor)
    }

    fn is_persistent(&self) -> bool {
        self.freshness == Freshness::Shared
    }

    fn server(&mut self) -> Result<&mut AflServer, ExecError> {
        if self.runs >= RUNS_PER_SERVER {
            self.server = None;
            self.runs = 0;
        }
        let server = match self.server.take() {
            Some(server) => server,
            None => self.start_server()?,
        };
        Ok(self.server.insert(server))
    }

    /// Starts a fork server. As long as the program needs a larger coverage map, replaces the map
    /// by a larger one and starts the server again.
    fn start_server(&mut self) -> Result<AflServer, ExecError> {
        loop {
            self.set_variables();
            let (offered, persistent) = (self.shared.is_some(), self.is_persistent());
            let stdin = self.input.stdin();
            let wanted = match AflServer::start(&self.launch, stdin, offered, persistent) {
                Ok((mut server, handshake)) if self.coverage.set_used(handshake.map_size) => {
                    server.check_descent(&self.launch)?;
                    let entered = self.scratch.enter(server.scratch.take());
                    entered.map_err(|source| self.launch.directory_error(source))?;
                    self.takes_shared = handshake.shares_input;
                    return Ok(server);
                }
                Ok((_, Handshake { map_size, .. })) => map_size,
                Err(AflStartError::Handshake(HandshakeError::Error(MAP_TOO_SMALL))) => None,
                Err(_) if self.launch.abandon_when.is_met() => return Err(ExecError::Abandoned),
                Err(AflStartError::Handshake(refused)) => return Err(self.refused(refused)),
                Err(AflStartError::Error(error)) => return Err(error),
            };
            let grown = self.coverage.grow(wanted).map_err(ExecError::system(
                "sharing memory for a larger coverage map",
            ))?;
            if !grown {
                return Err(self.refused(HandshakeError::Error(MAP_TOO_SMALL)));
            }
        }
    }

    /// Stores the coverage counters of a run that exited, so that `covered` returns them, unless
    /// the selected [`CoverageReporting`] leaves the run out.
    fn store_coverage(&mut self) {
        let counters = self.coverage.read();
        let told = match self.reporting {
            CoverageReporting::Nothing => return,
            CoverageReporting::Every => {
                self.reached.add(counters);
                true
            }
            CoverageReporting::Novel => self.reached.add_novel(counters),
        };
        if told {
            self.covered.push(RunCoverage {
                run: 0,
                counters: counters.to_vec(),
                stack_depth: None,
            });
        }
    }

    fn refused(&self, refused: HandshakeError) -> ExecError {
        match refused {
            HandshakeError::Launch(trouble) => startup_error(&self.launch, trouble),
            refused => ExecError::unfit(Way::Forkserver, &self.launch.program, refused.to_string()),
        }
    }

    /// Sets the environment variables that AFL++'s runtime reads.
    fn set_variables(&mut self) {
        let env = &mut self.launch.env;
        env.truncate(self.own_variables);
        let bound = env.iter().any(|(name, _)| name == "LD_BIND_NOW");
        let set: [(&str, Option<String>); 6] = [
            ("__AFL_SHM_ID", Some(self.coverage.id().to_string())),
            ("AFL_MAP_SIZE", Some(self.coverage.room().to_string())),
            (
                "__AFL_SHM_FUZZ_ID",
                self.shared.as_ref().map(|shared| shared.id().to_string()),
            ),
            ("__AFL_PERSISTENT", self.is_persistent().then(one)),
            ("__AFL_DEFER_FORKSRV", self.signatures.deferred.then(one)),
            // Otherwise each child looks up the same symbols again.
            ("LD_BIND_NOW", (!bound).then(one)),
        ];
        let set = set
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), value?.into())));
        self.launch.env.extend(set);
    }
}

fn one() -> String {
    "1".to_owned()
}

impl Retriable for Forkserver {
    fn put_in_place(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        let input = inputs.first().copied().unwrap_or_default();
        let long = input.len() > LONGEST;
        match &mut self.shared {
            Some(shared) if self.takes_shared && !long => {
                let length = u32::try_from(input.len()).unwrap_or(u32::MAX);
                shared.write(0, &length.to_ne_bytes());
                shared.write(LENGTH, input);
                Ok(())
            }
            shared => {
                if self.takes_shared {
                    // Later inputs are passed on stdin or in the file.
                    *shared = None;
                    self.takes_shared = false;
                    self.server = None;
                }
                self.input.write(input)
            }
        }
    }

    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure> {
        let limits = self.limits;
        let stood_in_shared = self.takes_shared;
        self.server().map_err(Failure::Start)?;
        let placed = if stood_in_shared == self.takes_shared {
            Ok(())
        } else {
            self.put_in_place(&[input]) // the new server takes it elsewhere
        };
        let rewound = placed.and_then(|()| match self.takes_shared {
            true => Ok(()),
            false => self.input.rewind(),
        });
        let rewound = rewound.map_err(ExecError::system("writing the input"));
        rewound.map_err(Failure::Start)?;
        self.coverage.clear();
        self.server().map_err(Failure::Start)?;
        let Some(server) = &mut self.server else {
            return Err(Failure::Request(RequestError::Died));
        };
        let run = server.run(&limits, &mut self.detector, &self.coverage);
        let (answer, left) = run.map_err(Failure::Request)?;
        self.runs += 1;
        if left == Leftovers::TooMuch {
            self.server = None; // its supervisors end what is left
        }
        Ok(answer)
    }

    fn lasting(&self, _failure: &Failure) -> Option<ExecError> {
        None
    }

    fn stop(&mut self) {
        self.server = None;
    }

    fn launch(&self) -> &Launch {
        &self.launch
    }

    fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

impl Executor for Forkserver {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        self.covered.clear();
        let Answer { ended, cpu, .. } = retry::run(self, &[input])?;
        if ended.is_exit() {
            self.store_coverage();
        }
        let last = std::mem::take(&mut self.last);
        if last && let Some(server) = &mut self.server {
            server.end_process();
        }
        if !self.is_persistent() || last || !ended.is_exit() {
            self.clean()?;
        }
        let read = match self.takes_shared {
            true => None,
            false => self.input.read_so_far(),
        };
        Ok(Run { ended, cpu, read })
    }

    fn end_process(&mut self) {
        self.last = self.is_persistent();
    }

    fn way(&self) -> Way {
        Way::Forkserver
    }

    fn freshness(&self) -> Freshness {
        self.freshness
    }

    fn counter_count(&self) -> Option<usize> {
        Some(self.coverage.used())
    }

    fn report_coverage(&mut self, reporting: CoverageReporting) {
        self.reporting = reporting;
    }

    fn covered(&self) -> &[RunCoverage] {
        &self.covered
    }

    fn coverage(&mut self) -> Option<&[u8]> {
        Some(self.coverage.read())
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limits = time.within(self.limits);
    }

    fn recognise(&mut self, window: Duration, known: &HashSet<Signature>) {
        self.detector.recognise(window, known);
    }

    fn stuck(&mut self) -> Stuck {
        self.detector.take()
    }
}

/// Text that AFL++'s compiler puts into programs with `__AFL_LOOP` (AFL++'s `PERSIST_SIG`).
const PERSISTENT: &[u8] = b"##SIG_AFL_PERSISTENT##";
/// Text that AFL++'s compiler puts into programs with `__AFL_INIT` (AFL++'s `DEFER_SIG`).
const DEFERRED: &[u8] = b"##SIG_AFL_DEFER_FORKSRV##";

/// Features of a program, recognized by texts that AFL++'s compilers put into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AflSignatures {
    /// Whether one process of the program can run many inputs (AFL++'s persistent mode,
    /// `__AFL_LOOP`).
    pub(super) persistent: bool,
    /// True if the fork server starts where the program calls it, not before `main`.
    deferred: bool,
}

impl AflSignatures {
    /// Returns the signatures of AFL++'s compilers that are found in the program file at `path`;
    /// none if the file cannot be read.
    pub(super) fn of(path: &Path) -> AflSignatures {
        let data = std::fs::read(path).unwrap_or_default();
        AflSignatures {
            persistent: elf::holds(&data, PERSISTENT),
            deferred: elf::holds(&data, DEFERRED),
        }
    }
}
