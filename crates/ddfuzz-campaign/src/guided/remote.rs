//! A worker's connection to the main process: the [`CrashSink`] at the other end of a socket, and when
//! the worker reports ([`HeartbeatTimer`]).

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::wire::{self, Heartbeat, JudgedHang, Order, Reply, Request};
use crate::campaign_state::lock;
use crate::crash_sink::StoreWriter;
use crate::{CrashSink, KnownKey, Report};
use ddfuzz_exec::{Signature, Target};
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, StoreError};
use ddfuzz_triage::{Crash, Key};

/// A worker's end of the socket, shared by all that find and minimize in it.
#[derive(Clone)]
pub(super) struct Remote {
    reader: Reader,
    stream: Arc<Mutex<UnixStream>>,
    /// Which worker this is.
    worker: usize,
    /// Runs of known groups that are not reported yet.
    tally: Arc<Mutex<HashMap<(Kind, Key), u64>>>,
}

impl Remote {
    /// Connects to the hub that listens at `socket`, as worker number `worker`.
    pub(super) fn connect(socket: &Path, root: &Path, worker: usize) -> Result<Remote, StoreError> {
        let reader = Reader::open(root)?;
        let stream = UnixStream::connect(socket).map_err(|error| lost(&reader, &error))?;
        let remote = Remote {
            reader,
            stream: Arc::new(Mutex::new(stream)),
            worker,
            tally: Arc::default(),
        };
        remote.tell(&Request::Hello { worker }, &[])?;
        Ok(remote)
    }

    /// The number of what was handed in so, where this worker has.
    pub(super) fn own(&self, (worker, number): (usize, u64)) -> Option<u64> {
        (worker == self.worker).then_some(number)
    }

    /// Sends a message without an answer.
    pub(super) fn tell(&self, request: &Request, body: &[u8]) -> Result<(), StoreError> {
        wire::send(&mut lock(&self.stream), request, body)
            .map_err(|error| lost(&self.reader, &error))
    }

    fn ask(&self, request: &Request, body: &[u8]) -> Result<Reply, StoreError> {
        let mut line = lock(&self.stream);
        let answer = wire::send(&mut line, request, body).and_then(|()| wire::receive(&mut line));
        match answer.map_err(|error| lost(&self.reader, &error))? {
            (Reply::Failed { path, why }, _) => Err(StoreError::Unwritable { path, why }),
            (reply, _) => Ok(reply),
        }
    }

    /// Sends a request that is answered by [`Reply::Done`].
    fn have(&self, request: &Request, body: &[u8]) -> Result<(), StoreError> {
        match self.ask(request, body)? {
            Reply::Done => Ok(()),
            _ => Err(self.nonsense()),
        }
    }

    fn nonsense(&self) -> StoreError {
        lost(&self.reader, &io::ErrorKind::InvalidData.into())
    }

    /// Has an input stored in the corpus, without waiting for it.
    pub(super) fn keep(&self, input: &[u8]) -> Result<(), StoreError> {
        self.tell(&Request::Keep, input)
    }

    /// Has runs counted whose hang is classified later.
    pub(super) fn count_unnamed(
        &self,
        signatures: Vec<Signature>,
        runs: u64,
    ) -> Result<(), StoreError> {
        self.have(&Request::CountUnnamed { signatures, runs }, &[])
    }

    /// Says something that the user should know.
    pub(super) fn note(&self, text: &str) -> Result<(), StoreError> {
        self.tell(&Request::Note(text.to_owned()), &[])
    }

    /// Says why this worker cannot go on.
    pub(super) fn fail(&self, why: &str) -> Result<(), StoreError> {
        self.tell(&Request::Failed(why.to_owned()), &[])
    }

    /// Sends the worker's status, and receives what it is to do.
    pub(super) fn send_heartbeat(&self, heartbeat: Heartbeat) -> Result<Order, StoreError> {
        for ((kind, major), runs) in std::mem::take(&mut *lock(&self.tally)) {
            self.have(&Request::Count { kind, major, runs }, &[])?;
        }
        match self.ask(&Request::Heartbeat(heartbeat), &[])? {
            Reply::Order(order) => Ok(order),
            _ => Err(self.nonsense()),
        }
    }
}

/// The hub is gone, and with it the main process.
fn lost(reader: &Reader, error: &io::Error) -> StoreError {
    StoreError::Unwritable {
        path: reader.root().to_owned(),
        why: format!("the process that writes it cannot be reached: {error}"),
    }
}

impl StoreWriter for Remote {
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
            _ => Err(self.nonsense()),
        }
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        self.have(&Request::Minimized { id: id.clone() }, bytes)
    }

    /// The hub knows the target.
    fn write_reproduce(&mut self, id: &EntryId, _target: &Target) -> Result<(), StoreError> {
        self.have(&Request::Reproduce { id: id.clone() }, &[])
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        let (id, outcome) = (id.clone(), outcome.clone());
        self.have(&Request::Outcome { id, outcome }, &[])
    }
}

impl CrashSink for Remote {
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError> {
        match self.ask(&Request::Known, &[])? {
            Reply::Known(known) => Ok(known),
            _ => Err(self.nonsense()),
        }
    }

    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
        let request = Request::HandIn {
            kind: report.kind,
            crash: Box::new(report.crash.clone()),
            run: report.run,
            name: report.name.to_owned(),
        };
        match self.ask(&request, report.input)? {
            Reply::Entry(entry) => Ok(entry),
            _ => Err(self.nonsense()),
        }
    }

    /// Told with the next heartbeat.
    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        *lock(&self.tally).entry((kind, major)).or_default() += runs;
        Ok(())
    }

    fn claim(&mut self) -> Result<Option<EntryId>, StoreError> {
        match self.ask(&Request::Claim, &[])? {
            Reply::Entry(entry) => Ok(entry),
            _ => Err(self.nonsense()),
        }
    }

    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError> {
        let spent_us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let id = id.clone();
        self.have(
            &Request::GiveBack {
                id,
                ended,
                spent_us,
            },
            &[],
        )
    }
}

/// Between two heartbeats.
const EVERY: Duration = Duration::from_millis(100);
/// How long a worker waits that has no runs left, while others finish theirs.
const IDLE: Duration = Duration::from_millis(5);

/// Sends the heartbeats of a worker when they are due.
pub(super) struct HeartbeatTimer {
    remote: Remote,
    order: Order,
    last: Instant,
    /// Runs since the last heartbeat.
    runs: u64,
    /// Verdicts about hangs that are not applied yet.
    judged: Vec<JudgedHang>,
    /// The other content of the next heartbeat.
    pub(super) status: Heartbeat,
}

impl HeartbeatTimer {
    /// The first heartbeat, which asks for runs.
    pub(super) fn begin(remote: Remote) -> Result<HeartbeatTimer, StoreError> {
        let mut order = remote.send_heartbeat(Heartbeat::default())?;
        Ok(HeartbeatTimer {
            remote,
            judged: std::mem::take(&mut order.judged),
            order,
            last: Instant::now(),
            runs: 0,
            status: Heartbeat::default(),
        })
    }

    /// How many more runs the worker may make now, reporting where it is time to; none only where
    /// it is to end.
    pub(super) fn left(&mut self) -> Result<u64, StoreError> {
        loop {
            if self.order.stop {
                return Ok(0);
            }
            let left = self.order.runs.saturating_sub(self.runs);
            if left > 0 && self.last.elapsed() < EVERY {
                return Ok(left);
            }
            if left == 0 && self.runs == 0 {
                std::thread::sleep(IDLE);
            }
            self.send_heartbeat()?;
        }
    }

    /// Counts runs.
    pub(super) fn ran(&mut self, runs: u64) {
        self.runs += runs;
    }

    /// Takes what was found out about hangs.
    pub(super) fn take_judged(&mut self) -> Vec<JudgedHang> {
        std::mem::take(&mut self.judged)
    }

    /// The connection on which it reports.
    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Reports now.
    pub(super) fn send_heartbeat(&mut self) -> Result<(), StoreError> {
        let heartbeat = Heartbeat {
            runs: self.runs,
            ..self.status
        };
        self.order = self.remote.send_heartbeat(heartbeat)?;
        self.judged.append(&mut self.order.judged);
        self.runs = 0;
        self.status.minimized_us = 0;
        self.last = Instant::now();
        Ok(())
    }
}
