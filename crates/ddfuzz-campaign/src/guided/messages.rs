//! The messages between the main process and its workers, and a worker's end of the connection:
//! [`MainProcess`], a crash sink that sends requests, and [`HeartbeatTimer`]. A message is a frame
//! of a JSON head and a body of bytes.

use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{CrashSink, KnownKey, Report, StoreWriter, lock};
use ddfuzz_exec::{Signature, Target};
use ddfuzz_model::files::FileError;
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, StoreError};
use ddfuzz_triage::{Crash, Key};

/// Greatest length of the head, and of the body, of a valid message between a worker and the main
/// process, in bytes.
const MAX_LEN: u32 = 1 << 30;

/// A request of a worker, or of its supervisor (which starts it and restarts it after a crash), to
/// the main process. The body of the message is the input or the reproducer, if the request has
/// one.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// First message of a supervisor process: the number, from 1, of the worker that it starts and
    /// restarts. The main process sends no answer.
    Supervisor { worker: usize },
    /// First message of a worker: its number, from 1. The main process sends no answer.
    Worker { worker: usize },
    /// Asks the main process for the keys of stored inputs ([`CrashSink::known`]).
    Known,
    /// Submits a classified crash, with the input as the body, to be stored or counted
    /// ([`CrashSink::submit`]).
    Submit {
        kind: Kind,
        crash: Box<Crash>,
        run: u64,
        name: String,
    },
    /// Counts runs of the worker that ended in a known group ([`CrashSink::count`]).
    Count { kind: Kind, major: Key, runs: u64 },
    /// Stores a crash that a minimization has met by chance, with the input as the body
    /// ([`StoreWriter::file`]).
    File { kind: Kind, crash: Box<Crash> },
    /// Replaces the reproducer (minimized input) of an entry by the body
    /// ([`StoreWriter::write_minimized`]).
    WriteMinimized { id: EntryId },
    /// Writes the script that reproduces the crash of an entry ([`StoreWriter::write_reproduce`]).
    WriteReproduce { id: EntryId },
    /// Records the outcome of the minimization of an entry ([`StoreWriter::write_outcome`]).
    WriteOutcome { id: EntryId, outcome: Minimized },
    /// Asks the main process for the next entry to minimize ([`CrashSink::claim`]).
    Claim,
    /// Releases an entry that the worker had claimed to minimize it ([`CrashSink::release`]).
    Release {
        id: EntryId,
        ended: bool,
        spent_us: u64,
    },
    /// Counts runs that were stopped at a hang, given by its signatures (hashes of the code in
    /// which it loops), whose group the worker does not know yet.
    CountUnclassified {
        signatures: Vec<Signature>,
        runs: u64,
    },
    /// Stores the body, an input, in the corpus of the output directory. The main process sends no
    /// answer.
    AddToCorpus,
    /// Reports blocks of an unmodified program that the worker's runs have reached; the body has
    /// their numbers, as little-endian 32-bit integers. The main process sends no answer.
    Reached,
    /// Submits an input (the body) whose run took too long, to be examined whether it hangs. The
    /// main process sends no answer; the verdict comes with a [`HeartbeatAnswer`].
    Hang {
        /// Number that the worker gives this submission of a suspected hang.
        number: u64,
        /// Whether the hang is new to the worker: none of its signatures (hashes of the code in
        /// which it loops) belongs to a hang that the worker knows.
        first: bool,
        signatures: Vec<Signature>,
        run: u64,
        name: String,
    },
    /// Reports the status of the worker, and asks the main process for a [`HeartbeatAnswer`]
    /// (granted runs, verdicts).
    Heartbeat(Heartbeat),
    /// Shows a text to the user. The main process sends no answer.
    Note(String),
    /// Reports why the worker cannot continue, which ends the campaign. The main process sends no
    /// answer.
    Failed(String),
}

/// The status that a worker reports to the main process several times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Heartbeat {
    /// Number of runs that the worker has made since its last heartbeat.
    pub(super) runs: u64,
    /// Number of inputs in the worker's corpus.
    pub(super) corpus: u64,
    /// Number of the target's edges that the worker's runs have covered.
    pub(super) edges: u64,
    /// Number of all edges of the target.
    pub(super) edges_of: u64,
    /// Number of covered edges whose counts change when an input is run again.
    pub(super) unstable: u64,
    /// Time in microseconds that the worker has spent on minimization since its last heartbeat.
    pub(super) minimized_us: u64,
}

/// The answer of the main process to a heartbeat of a worker: whether the worker must end, how many
/// runs it may make, and verdicts about suspected hangs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeartbeatAnswer {
    /// Whether the worker that gets this answer must end.
    pub(super) stop: bool,
    /// Number of runs that the worker may make until its next heartbeat.
    pub(super) runs: u64,
    /// Verdicts about suspected hangs, submitted by any worker, that the main process has reached
    /// since the last heartbeat of the worker that gets this answer.
    pub(super) judged: Vec<JudgedHang>,
}

/// The verdict of the main process about an input that a worker submitted as a suspected hang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JudgedHang {
    /// Number of the worker that submitted the input, and the number that this worker gave the
    /// submission.
    pub(super) from: (usize, u64),
    pub(super) signatures: Vec<Signature>,
    /// Size in bytes of the input that was submitted as a suspected hang.
    pub(super) size: usize,
    pub(super) verdict: HangVerdict,
}

/// Whether an input that was submitted as a suspected hang does hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HangVerdict {
    /// The input hangs, or fails in another way, and belongs to the group with this kind and major
    /// key (hash that identifies a bug).
    Of(Kind, Key),
    /// The run of the input ends by itself within the full time limit.
    Ends,
    /// Whether the input hangs is unknown, because the target could not be run.
    Unknown,
}

/// An answer of the main process to a request of a worker; some requests have none.
#[derive(Serialize, Deserialize)]
pub(super) enum Reply {
    Done,
    Known(Vec<KnownKey>),
    Entry(Option<EntryId>),
    Filed {
        id: EntryId,
        new_major: bool,
        new_minor: bool,
        already: bool,
    },
    Order(HeartbeatAnswer),
    Failed {
        path: PathBuf,
        why: String,
        /// Whether the disk was full until the time for fuzzing was over, so that the request could
        /// not be carried out.
        is_full: bool,
    },
}

/// Sends a message over a socket: the lengths of head and body in 4 bytes each, the head `head` as
/// JSON, and the bytes `body`.
pub(super) fn send(stream: &mut UnixStream, head: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| ErrorKind::InvalidInput);
    let mut frame = Vec::with_capacity(8 + head.len() + body.len());
    frame.extend(length(&head)?.to_le_bytes());
    frame.extend(length(body)?.to_le_bytes());
    frame.extend(head);
    frame.extend(body);
    stream.write_all(&frame)
}

/// Waits for a message on a socket, and returns its parsed head and its body. Fails if the
/// connection ends before the message does, a part is longer than [`MAX_LEN`], or the head cannot
/// be parsed.
pub(super) fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<(T, Vec<u8>)> {
    let mut lengths = [0; 8];
    stream.read_exact(&mut lengths)?;
    let [head, body] = [0, 4].map(|at| {
        let mut word = [0; 4];
        word.copy_from_slice(&lengths[at..at + 4]);
        u32::from_le_bytes(word)
    });
    if head.max(body) > MAX_LEN {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; head as usize];
    stream.read_exact(&mut text)?;
    let mut bytes = vec![0; body as usize];
    stream.read_exact(&mut bytes)?;
    Ok((serde_json::from_slice(&text)?, bytes))
}

/// A worker's connection to the main process, through which the worker stores crashes and reports
/// its status. Clones share the connection.
#[derive(Clone)]
pub(super) struct MainProcess {
    reader: Reader,
    stream: Arc<Mutex<UnixStream>>,
    /// Number of the worker that has this connection, from 1.
    worker: usize,
    /// Number of the worker's runs since the last heartbeat that ended in each known group, by kind
    /// and major key (hash that identifies a bug); the next heartbeat reports these numbers.
    counts: Arc<Mutex<HashMap<(Kind, Key), u64>>>,
}

impl MainProcess {
    /// Connects to the main process at the socket `socket` as worker number `worker`, sends this
    /// number, and returns the connection. `root` is the output directory, which the worker only
    /// reads.
    pub(super) fn connect(
        socket: &Path,
        root: &Path,
        worker: usize,
    ) -> Result<MainProcess, StoreError> {
        let reader = Reader::open(root)?;
        let stream = UnixStream::connect(socket).map_err(|error| lost(&reader, &error))?;
        let main_process = MainProcess {
            reader,
            stream: Arc::new(Mutex::new(stream)),
            worker,
            counts: Arc::default(),
        };
        main_process.tell(&Request::Worker { worker }, &[])?;
        Ok(main_process)
    }

    /// Returns `number`, which a worker gave to an input that it submitted as a suspected hang, if
    /// `worker` is this worker; otherwise `None`.
    pub(super) fn own_number(&self, (worker, number): (usize, u64)) -> Option<u64> {
        (worker == self.worker).then_some(number)
    }

    /// Sends `request` with `body` to the main process; only for requests that the main process
    /// does not answer.
    pub(super) fn tell(&self, request: &Request, body: &[u8]) -> Result<(), StoreError> {
        send(&mut lock(&self.stream), request, body).map_err(|error| lost(&self.reader, &error))
    }

    /// Sends a request to the main process, waits for its answer, and returns it; [`Reply::Failed`]
    /// becomes an error.
    fn ask(&self, request: &Request, body: &[u8]) -> Result<Reply, StoreError> {
        let mut line = lock(&self.stream);
        let answer = send(&mut line, request, body).and_then(|()| receive(&mut line));
        match answer.map_err(|error| lost(&self.reader, &error))? {
            (Reply::Failed { path, is_full, .. }, _) if is_full => {
                let full = io::ErrorKind::StorageFull.into();
                Err(FileError::at("write", &path)(full).into())
            }
            (Reply::Failed { path, why, .. }, _) => Err(StoreError::Unwritable { path, why }),
            (reply, _) => Ok(reply),
        }
    }

    /// Sends a request to the main process and waits for the answer [`Reply::Done`]; any other
    /// answer is an error.
    pub(super) fn ask_done(&self, request: &Request, body: &[u8]) -> Result<(), StoreError> {
        match self.ask(request, body)? {
            Reply::Done => Ok(()),
            _ => Err(self.wrong_answer()),
        }
    }

    /// Returns the error for an answer of the main process that does not fit the request.
    fn wrong_answer(&self) -> StoreError {
        lost(&self.reader, &io::ErrorKind::InvalidData.into())
    }

    /// Sends the main process the counts of runs in known groups, and then the worker's status
    /// `heartbeat`; returns its answer to the status.
    pub(super) fn send_heartbeat(
        &self,
        heartbeat: Heartbeat,
    ) -> Result<HeartbeatAnswer, StoreError> {
        for ((kind, major), runs) in std::mem::take(&mut *lock(&self.counts)) {
            self.ask_done(&Request::Count { kind, major, runs }, &[])?;
        }
        match self.ask(&Request::Heartbeat(heartbeat), &[])? {
            Reply::Order(order) => Ok(order),
            _ => Err(self.wrong_answer()),
        }
    }
}

/// Returns the error for a lost connection to the main process: the output directory at `reader`,
/// which only the main process writes, cannot be written any more, because of `error`.
fn lost(reader: &Reader, error: &io::Error) -> StoreError {
    StoreError::Unwritable {
        path: reader.root().to_owned(),
        why: format!("the process that writes it cannot be reached: {error}"),
    }
}

impl StoreWriter for MainProcess {
    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        let crash = Box::new(crash.clone());
        match self.ask(&Request::File { kind, crash }, input)? {
            Reply::Filed {
                id,
                new_major,
                new_minor,
                already,
            } => Ok(Filed {
                path: id.folder(self.reader.root()),
                id,
                new_major,
                new_minor,
                already,
            }),
            _ => Err(self.wrong_answer()),
        }
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        self.ask_done(&Request::WriteMinimized { id: id.clone() }, bytes)
    }

    /// Asks the main process to write the script that reproduces the crash of an entry. `_target`
    /// is not sent, since the main process knows the target of the campaign.
    fn write_reproduce(&mut self, id: &EntryId, _target: &Target) -> Result<(), StoreError> {
        self.ask_done(&Request::WriteReproduce { id: id.clone() }, &[])
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        let (id, outcome) = (id.clone(), outcome.clone());
        self.ask_done(&Request::WriteOutcome { id, outcome }, &[])
    }
}

impl CrashSink for MainProcess {
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError> {
        match self.ask(&Request::Known, &[])? {
            Reply::Known(known) => Ok(known),
            _ => Err(self.wrong_answer()),
        }
    }

    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
        let request = Request::Submit {
            kind: report.kind,
            crash: Box::new(report.crash.clone()),
            run: report.run,
            name: report.name.to_owned(),
        };
        match self.ask(&request, report.input)? {
            Reply::Entry(entry) => Ok(entry),
            _ => Err(self.wrong_answer()),
        }
    }

    /// Adds runs of a group to the counts that the next heartbeat sends to the main process.
    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        *lock(&self.counts).entry((kind, major)).or_default() += runs;
        Ok(())
    }

    fn claim(&mut self) -> Result<Option<EntryId>, StoreError> {
        match self.ask(&Request::Claim, &[])? {
            Reply::Entry(entry) => Ok(entry),
            _ => Err(self.wrong_answer()),
        }
    }

    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError> {
        let spent_us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let id = id.clone();
        self.ask_done(
            &Request::Release {
                id,
                ended,
                spent_us,
            },
            &[],
        )
    }
}

/// Time between two heartbeats (status reports) of a worker to the main process.
const HEARTBEAT_EVERY: Duration = Duration::from_millis(100);
/// Pause of a worker that is granted no more runs, while other workers finish theirs.
const IDLE: Duration = Duration::from_millis(5);

/// Sends the heartbeats of a worker when they are due, and holds the number of runs that the worker
/// may make.
pub(super) struct HeartbeatTimer {
    pub(super) main_process: MainProcess,
    order: HeartbeatAnswer,
    last: Instant,
    /// Number of runs that the worker has made since its last heartbeat.
    pub(super) runs: u64,
    /// Verdicts about suspected hangs that were received from the main process, and not taken by
    /// [`HeartbeatTimer::take_judged`] yet.
    judged: Vec<JudgedHang>,
    /// The status that the worker's next heartbeat reports, except the number of runs.
    pub(super) status: Heartbeat,
}

impl HeartbeatTimer {
    /// Creates the timer of a worker's heartbeats and sends the first one, which asks for runs.
    pub(super) fn begin(main_process: MainProcess) -> Result<HeartbeatTimer, StoreError> {
        let mut order = main_process.send_heartbeat(Heartbeat::default())?;
        Ok(HeartbeatTimer {
            main_process,
            judged: std::mem::take(&mut order.judged),
            order,
            last: Instant::now(),
            runs: 0,
            status: Heartbeat::default(),
        })
    }

    /// Returns the number of granted runs that the worker may still make; 0 if the worker must end.
    /// Sends a heartbeat when it is due, and waits while no runs are granted.
    pub(super) fn remaining_runs(&mut self) -> Result<u64, StoreError> {
        loop {
            if self.order.stop {
                return Ok(0);
            }
            let left = self.order.runs.saturating_sub(self.runs);
            if left > 0 && self.last.elapsed() < HEARTBEAT_EVERY {
                return Ok(left);
            }
            if left == 0 && self.runs == 0 {
                std::thread::sleep(IDLE);
            }
            self.send_heartbeat()?;
        }
    }

    /// Removes and returns the verdicts about suspected hangs that the worker has received since
    /// the last call.
    pub(super) fn take_judged(&mut self) -> Vec<JudgedHang> {
        std::mem::take(&mut self.judged)
    }

    /// Sends a heartbeat to the main process now, and takes the newly granted runs and the verdicts
    /// about hangs from its answer.
    pub(super) fn send_heartbeat(&mut self) -> Result<(), StoreError> {
        let heartbeat = Heartbeat {
            runs: self.runs,
            ..self.status
        };
        self.order = self.main_process.send_heartbeat(heartbeat)?;
        self.judged.append(&mut self.order.judged);
        self.runs = 0;
        self.status.minimized_us = 0;
        self.last = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        send(&mut here, &Request::Worker { worker: 7 }, b"body").unwrap();
        send(&mut here, &Request::AddToCorpus, b"").unwrap();
        let (request, body) = receive::<Request>(&mut there).unwrap();
        assert!(matches!(request, Request::Worker { worker: 7 }));
        assert_eq!(body, b"body");
        let (request, body) = receive::<Request>(&mut there).unwrap();
        assert!(matches!(request, Request::AddToCorpus));
        assert!(body.is_empty());
    }

    #[test]
    fn nonsense_and_a_cut_frame_are_errors() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&[0xff; 8]).unwrap();
        assert!(receive::<Request>(&mut there).is_err());
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&[9, 0, 0, 0, 0, 0, 0, 0, b'{']).unwrap();
        drop(here);
        assert!(receive::<Request>(&mut there).is_err());
    }
}
