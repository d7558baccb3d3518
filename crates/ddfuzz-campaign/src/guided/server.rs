//! [`WorkerServer`], the socket on which the main process receives the requests of its workers, and
//! its answers. The socket is in a directory that only this user can enter.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::engine::GuidedEngine;
use super::hang_examiner::SuspectedHang;
use super::messages::{self, Heartbeat, Reply, Request};
use crate::crash_sink::StoreWriter;
use crate::lock;
use crate::session::CampaignSession;
use crate::settings::When;
use crate::{CampaignError, CrashSink, DiskFullError, Report};
use ddfuzz_exec::{PrivateDir, Signature};
use ddfuzz_store::report::size;
use ddfuzz_store::{EntryId, Kind, StoreError};
use ddfuzz_triage::Key;

/// Time that a worker may take to send or receive one message; then its connection is closed.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// The role of a process that is connected to the main process: worker or supervisor, with the
/// number of the worker from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The connected process has not sent its role yet.
    Unknown,
    /// The connected process is the supervisor of the worker with this number: it starts the
    /// worker, and restarts it after a crash.
    Supervisor(usize),
    Worker(usize),
}

/// The main process's connection to a worker or to a supervisor, and what the main process knows of
/// the connected process.
pub(super) struct Peer {
    stream: UnixStream,
    pub(super) role: Role,
    /// Number of runs that the main process has granted to the worker of this connection, and that
    /// the worker has not reported yet.
    pub(super) granted: u64,
    /// Entries that the worker of this connection has claimed, to minimize them.
    pub(super) claimed: Vec<EntryId>,
    /// The last heartbeat (status report) that came over this connection; all 0 before the first.
    pub(super) heartbeat: Heartbeat,
    /// Number of verdicts about suspected hangs that the main process has sent to the worker,
    /// counted from the oldest verdict.
    pub(super) judged: usize,
}

/// The socket of the main process, and its connections to workers and supervisors.
pub(super) struct WorkerServer {
    listener: UnixListener,
    socket: PathBuf,
    pub(super) peers: Vec<Peer>,
    /// The directory of the socket, which is removed when no process uses it any more, or by the
    /// next call of ddfuzz.
    _folder: Arc<PrivateDir>,
}

impl WorkerServer {
    /// Opens a socket in a new directory, so that no other user can connect to it.
    pub(super) fn open() -> Result<WorkerServer, CampaignError> {
        let folder = PrivateDir::get()?;
        let socket = folder.fresh("hub");
        let listen = || {
            let listener = UnixListener::bind(&socket)?;
            fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source| CampaignError::System {
            what: format!("listening for workers at {}", socket.display()),
            source,
        })?;
        Ok(WorkerServer {
            listener,
            socket,
            peers: Vec::new(),
            _folder: folder,
        })
    }

    /// Returns the path of the main process's socket, to which workers connect.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Serves the connected workers and supervisors once: answers one request of each process that
    /// has sent a request, removes closed connections, and accepts new ones; waits at most `time`
    /// if there is nothing to do.
    pub(super) fn serve(
        &mut self,
        time: Duration,
        engine: &mut GuidedEngine<'_>,
    ) -> io::Result<()> {
        let ready = self.wait(time)?;
        for (at, _) in ready.iter().enumerate().rev().filter(|(_, ready)| **ready) {
            let mut peer = self.peers.swap_remove(at);
            match engine.serve_peer(&mut peer) {
                Ok(()) => self.peers.push(peer),
                Err(_) => engine.lost(peer),
            }
        }
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
            stream.set_write_timeout(Some(MESSAGE_TIMEOUT))?;
            self.peers.push(Peer {
                stream,
                role: Role::Unknown,
                granted: 0,
                claimed: Vec::new(),
                heartbeat: Heartbeat::default(),
                judged: 0,
            });
        }
        Ok(())
    }

    /// Waits at most `time` for a request or a new connection. Returns for each peer (worker or
    /// supervisor), in order, whether it has sent a request or closed its connection.
    fn wait(&self, time: Duration) -> io::Result<Vec<bool>> {
        let listener = std::iter::once(self.listener.as_fd());
        let fds = self
            .peers
            .iter()
            .map(|peer| peer.stream.as_fd())
            .chain(listener);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        Ok(fds[..self.peers.len()].iter().map(ready).collect())
    }
}

impl GuidedEngine<'_> {
    /// Receives one request of a worker or supervisor, handles it, and sends the answer if the
    /// request has one. An error means that the connection is lost.
    fn serve_peer(&mut self, peer: &mut Peer) -> io::Result<()> {
        let (request, body) = messages::receive::<Request>(&mut peer.stream)?;
        match self.answer(peer, request, body) {
            Some(reply) => messages::send(&mut peer.stream, &reply, &[]),
            None => Ok(()),
        }
    }

    /// Carries out a request of a worker or supervisor and returns the answer. While the disk is
    /// full, tries again until there is space, so that the worker and the main process wait;
    /// returns an error if the user stops or the time is over.
    fn respond_when_space(
        &mut self,
        peer: &mut Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        let mut failed = false;
        loop {
            let answer = self.respond(peer, request, body);
            // While the disk is full, the main process does nothing else.
            let CampaignSession {
                disk_wait, screen, ..
            } = &mut self.session;
            let say = &mut |text: &str| screen.note(text);
            match answer {
                Err(error) if disk_wait.wait_after(&error, say) => failed = true,
                Err(error) => return Err(error),
                Ok(reply) => {
                    disk_wait.note_written(failed, say);
                    return Ok(reply);
                }
            }
        }
    }

    fn respond(
        &mut self,
        peer: &mut Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        Ok(match request {
            Request::Supervisor { .. }
            | Request::Worker { .. }
            | Request::Note(_)
            | Request::Failed(_) => Reply::Done,
            Request::AddToCorpus => self.keep_input(body)?,
            Request::Reached => {
                self.code.add(body);
                Reply::Done
            }
            Request::Hang { .. } => self.take_suspect(peer, request, body)?,
            Request::Known => Reply::Known(self.groups.known()?),
            Request::Submit {
                kind,
                crash,
                run,
                name,
            } => {
                let report = Report {
                    kind: *kind,
                    crash,
                    input: body,
                    run: *run,
                    name,
                };
                self.store(&report)?
            }
            Request::Count { kind, major, runs } => {
                self.count(*kind, *major, *runs)?;
                Reply::Done
            }
            Request::CountUnclassified { signatures, runs } => {
                self.count_unclassified(signatures, *runs)?;
                Reply::Done
            }
            Request::Heartbeat(heartbeat) => Reply::Order(self.on_heartbeat(peer, *heartbeat)),
            Request::Claim => Reply::Entry(self.claim(peer)?),
            Request::Release {
                id,
                ended,
                spent_us,
            } => {
                peer.claimed.retain(|claimed| claimed != id);
                let spent = Duration::from_micros(*spent_us);
                self.minimized += spent;
                self.groups.release(id, *ended, spent)?;
                Reply::Done
            }
            writing => self.write(writing, body)?,
        })
    }

    /// Stores an input that a worker has sent in the corpus of the output directory, and counts it
    /// unless the corpus already has it. Returns the answer to the worker.
    fn keep_input(&mut self, input: &[u8]) -> Result<Reply, StoreError> {
        let is_new = lock(self.session.store).add_to_corpus_unsynced(input)?;
        self.corpus += u64::from(is_new);
        Ok(Reply::Done)
    }

    /// Counts `runs` runs that were stopped as hangs with one of these `signatures` (hashes of the
    /// looping code): in the group of the hang if it is known, otherwise in the examiner of hangs,
    /// which later adds them to the group.
    fn count_unclassified(
        &mut self,
        signatures: &[Signature],
        runs: u64,
    ) -> Result<(), StoreError> {
        match self.examiner.count(signatures, runs) {
            Some((kind, major)) => self.count(kind, major, runs),
            None => Ok(()),
        }
    }

    /// Passes an input that may hang ([`Request::Hang`]) to the examiner of suspected hangs; if too
    /// many inputs wait there, only counts its run in its group. Returns the answer to the worker.
    fn take_suspect(
        &mut self,
        peer: &Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        let Request::Hang {
            number,
            first,
            signatures,
            run,
            name,
        } = request
        else {
            return Ok(Reply::Done);
        };
        let Role::Worker(worker) = peer.role else {
            return Ok(Reply::Done);
        };
        let group = self.examiner.take(SuspectedHang {
            from: (worker, *number),
            first: *first,
            signatures: signatures.clone(),
            run: *run,
            name: name.clone(),
            input: body.to_vec(),
        });
        if let Some((kind, major)) = group {
            self.count(kind, major, 1)?;
        }
        Ok(Reply::Done)
    }

    /// Handles the error `error` of the store while `request` was carried out. If the disk is full
    /// and the time to wait for space is over, counts the crash that the request would store as not
    /// stored; any other error ends the campaign.
    fn fail_or_give_up(&mut self, error: StoreError, request: &Request) {
        if !self.session.disk_wait.is_given_up() || error.full_at().is_none() {
            return self.fail(error.into());
        }
        let crash = matches!(request, Request::Submit { .. } | Request::File { .. });
        self.unstored += u64::from(crash);
    }

    /// Adds `runs` to the number of runs that ended in a group, in the group registry and in the
    /// checkpoint.
    pub(super) fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        self.groups.count(kind, major, runs)?;
        self.state.checkpoint.count_runs(kind, major.short(), runs);
        Ok(())
    }

    /// Counts a crash that a worker has submitted, and shows its group. Stores the input if its
    /// keys are new, or if the group registry finds it small enough. Returns the answer to the
    /// worker, with the id of the new entry if the input was stored.
    pub(super) fn store(&mut self, report: &Report<'_>) -> Result<Reply, StoreError> {
        let entry = self.groups.submit(report)?;
        let major = report.crash.keys.major;
        self.state.checkpoint.count(report.kind, major.short());
        if let Some(id) = &entry {
            self.show(id, false)?;
        }
        Ok(Reply::Entry(entry))
    }

    /// Returns the next entry for the worker to minimize, and records that the worker has claimed
    /// it. Returns `None` if there is no entry to minimize, fuzzing has ended, or the settings
    /// forbid minimizing while fuzzing.
    fn claim(&mut self, peer: &mut Peer) -> Result<Option<EntryId>, StoreError> {
        let minimizes = matches!(self.settings.when, When::Inline | When::Worker);
        if !minimizes || self.is_over() {
            return Ok(None);
        }
        let id = self.groups.claim()?;
        peer.claimed.extend(id.clone());
        Ok(id)
    }

    /// Carries out a request with which a worker's minimization writes to the output directory:
    /// another crash, a reproducer, its script, or the outcome. Returns the answer to the worker.
    /// Shows the group when its reproducer or outcome was written.
    fn write(&mut self, request: &Request, body: &[u8]) -> Result<Reply, StoreError> {
        let groups = &mut self.groups;
        match request {
            Request::File { kind, crash } => {
                let filed = groups.file(*kind, crash, body)?;
                return Ok(Reply::Filed {
                    id: filed.id,
                    new_major: filed.new_major,
                    new_minor: filed.new_minor,
                    already: filed.already,
                });
            }
            Request::WriteMinimized { id } => {
                groups.write_minimized(id, body)?;
                self.show(id, false)?;
            }
            Request::WriteReproduce { id } => {
                let minimizing = &self.settings.minimizing;
                let target = match groups.reader().entry(id)? {
                    Some(entry) => minimizing.of(&entry.crash).target.with_main_arguments(),
                    None => minimizing.target.with_main_arguments(),
                };
                groups.write_reproduce(id, &target)?;
            }
            Request::WriteOutcome { id, outcome } => {
                groups.write_outcome(id, outcome)?;
                self.show(id, true)?;
            }
            _ => {}
        }
        Ok(Reply::Done)
    }

    /// Handles a request of a worker or supervisor and returns the answer; `None` if the request
    /// has none.
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply> {
        match request {
            Request::Supervisor { worker } => {
                peer.role = Role::Supervisor(worker);
                self.workers.begun.insert(worker);
                self.workers.supervised.insert(worker);
                return None;
            }
            Request::Worker { worker } => {
                peer.role = Role::Worker(worker);
                if !self.workers.connected_once.insert(worker) {
                    self.tell(format!("worker {worker} is restarted"));
                }
                return None;
            }
            Request::Note(text) => {
                self.tell(text);
                return None;
            }
            Request::Failed(why) => {
                self.fail(CampaignError::Worker(why));
                return None;
            }
            _ => {}
        }
        let reply = match self.respond_when_space(peer, &request, &body) {
            Ok(reply) => reply,
            Err(error) => {
                let reply = Reply::Failed {
                    path: error.path().to_owned(),
                    why: error.to_string(),
                    is_full: error.full_at().is_some(),
                };
                self.fail_or_give_up(error, &request);
                reply
            }
        };
        // Workers do not wait for an answer to these.
        let is_told = matches!(
            request,
            Request::AddToCorpus | Request::Hang { .. } | Request::Reached
        );
        (!is_told).then_some(reply)
    }

    /// Handles the end of a connection to a worker or supervisor: takes back the runs that were
    /// granted to the worker, releases the entries that it was minimizing, and tells the user
    /// unless fuzzing has ended.
    pub(super) fn lost(&mut self, peer: Peer) {
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        for id in &peer.claimed {
            // The queue is in memory, so this cannot fail.
            let _ = self.groups.release(id, false, Duration::ZERO);
        }
        if let Role::Supervisor(worker) = peer.role {
            self.workers.supervised.remove(&worker);
        }
        if self.is_over() {
            return;
        }
        match peer.role {
            Role::Worker(worker) => self.tell(format!("worker {worker} has died")),
            Role::Supervisor(worker) => {
                let left = self.workers.supervised.len();
                let are = if left == 1 { "is" } else { "are" };
                let left = size::counted(left as u64, "worker");
                self.tell(format!(
                    "worker {worker} died too often and is not restarted; {left} {are} left"
                ));
            }
            Role::Unknown => {}
        }
    }
}
