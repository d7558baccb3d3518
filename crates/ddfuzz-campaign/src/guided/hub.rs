//! The socket at which workers reach the main process, and the main process's answers. It lies in a
//! directory that only this user can enter.

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
use super::examiner::SuspectedHang;
use super::wire::{self, Heartbeat, Reply, Request};
use crate::campaign_state::lock;
use crate::crash_sink::StoreWriter;
use crate::session::CampaignSession;
use crate::settings::When;
use crate::{CampaignError, CrashSink, DiskFullError, Report};
use ddfuzz_exec::{PrivateDir, Signature};
use ddfuzz_store::report::size;
use ddfuzz_store::{EntryId, Kind, StoreError};
use ddfuzz_triage::Key;

/// How long a worker may take to send a message that it has begun.
const PATIENCE: Duration = Duration::from_secs(20);

/// The role of a peer. Workers are numbered from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has not sent it yet.
    Unknown,
    /// The process that starts this worker, again where it has died.
    Supervisor(usize),
    Worker(usize),
}

/// A worker, as the hub sees it.
pub(super) struct Peer {
    stream: UnixStream,
    pub(super) role: Role,
    /// Runs that it was granted and has not reported.
    pub(super) granted: u64,
    /// What it is minimizing.
    pub(super) claimed: Vec<EntryId>,
    /// Its last heartbeat.
    pub(super) heartbeat: Heartbeat,
    /// How many verdicts it has received.
    pub(super) judged: usize,
}

/// Answers the requests of workers.
pub(super) trait RequestHandler {
    /// The answer; `None` where the worker does not wait for one.
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply>;

    /// The connection to a worker is closed.
    fn lost(&mut self, peer: Peer);
}

/// The socket of the main process, and the workers that are connected.
pub(super) struct Hub {
    listener: UnixListener,
    socket: PathBuf,
    pub(super) peers: Vec<Peer>,
    /// The directory of the socket; removed with its last user, or by the next ddfuzz.
    _folder: Arc<PrivateDir>,
}

impl Hub {
    /// Listens where no other user can connect.
    pub(super) fn open() -> Result<Hub, CampaignError> {
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
        Ok(Hub {
            listener,
            socket,
            peers: Vec::new(),
            _folder: folder,
        })
    }

    /// Where it listens.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Answers requests; waits for `time` at most where there are none.
    pub(super) fn serve(
        &mut self,
        time: Duration,
        answer: &mut impl RequestHandler,
    ) -> io::Result<()> {
        let ready = self.wait(time)?;
        for (at, _) in ready.iter().enumerate().rev().filter(|(_, ready)| **ready) {
            let mut peer = self.peers.swap_remove(at);
            match serve_one(&mut peer, answer) {
                Ok(()) => self.peers.push(peer),
                Err(_) => answer.lost(peer),
            }
        }
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
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

    /// Which of the peers have something to say.
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

fn serve_one(peer: &mut Peer, answer: &mut impl RequestHandler) -> io::Result<()> {
    let (request, body) = wire::receive::<Request>(&mut peer.stream)?;
    match answer.answer(peer, request, body) {
        Some(reply) => wire::send(&mut peer.stream, &reply, &[]),
        None => Ok(()),
    }
}

impl GuidedEngine<'_> {
    /// Where the disk is full, the worker waits for its answer until there is room.
    fn respond_when_there_is_room(
        &mut self,
        peer: &mut Peer,
        request: &Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        let mut failed = false;
        loop {
            let answer = self.respond(peer, request, body);
            // Now: until there is room, nothing else is done here.
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
            | Request::Hello { .. }
            | Request::Note(_)
            | Request::Failed(_) => Reply::Done,
            Request::Keep => {
                // Workers give each other what they find.
                let mut store = lock(self.session.store);
                let is_new = !store.reader().keeps(body);
                store.add_to_corpus(body)?;
                self.corpus += u64::from(is_new);
                Reply::Done
            }
            Request::Hang { .. } => self.suspect(peer, request, body)?,
            Request::Known => Reply::Known(self.registry.desk.known()?),
            Request::HandIn {
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
                self.take_in(&report)?
            }
            Request::Count { kind, major, runs } => {
                self.count(*kind, *major, *runs)?;
                Reply::Done
            }
            Request::CountUnnamed { signatures, runs } => {
                self.count_unnamed(signatures, *runs)?;
                Reply::Done
            }
            Request::Heartbeat(heartbeat) => Reply::Order(self.order(peer, *heartbeat)),
            Request::Claim => Reply::Entry(self.claim(peer)?),
            Request::GiveBack {
                id,
                ended,
                spent_us,
            } => {
                peer.claimed.retain(|claimed| claimed != id);
                let spent = Duration::from_micros(*spent_us);
                self.minimized += spent;
                self.registry.desk.release(id, *ended, spent)?;
                Reply::Done
            }
            writing => self.write(writing, body)?,
        })
    }

    /// Counts runs of a group that the worker does not know, or keeps their count until it is
    /// known.
    fn count_unnamed(&mut self, signatures: &[Signature], runs: u64) -> Result<(), StoreError> {
        match self.examiner.count(signatures, runs) {
            Some((kind, major)) => self.count(kind, major, runs),
            None => Ok(()),
        }
    }

    /// Hands a run that seems to hang to the examiner, and counts it where its group is known.
    fn suspect(
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

    /// Ends the campaign, by an error; or by its time, where that was over before there was room.
    fn fail_or_give_up(&mut self, error: StoreError, request: &Request) {
        if !self.session.disk_wait.is_given_up() || error.full_at().is_none() {
            return self.fail(error.into());
        }
        let finding = matches!(request, Request::HandIn { .. } | Request::File { .. });
        self.unstored += u64::from(finding);
    }

    /// Counts runs of a group.
    pub(super) fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        self.registry.desk.count(kind, major, runs)?;
        self.registry.count(kind, major, runs);
        self.session.note_return(kind, &major.short())
    }

    /// Files a finding, where it is to be.
    pub(super) fn take_in(&mut self, report: &Report<'_>) -> Result<Reply, StoreError> {
        let entry = self.registry.desk.submit(report)?;
        let major = report.crash.keys.major;
        self.registry.count(report.kind, major, 1);
        self.session.note_return(report.kind, &major.short())?;
        if let Some(id) = &entry {
            self.show(id, false)?;
        }
        Ok(Reply::Entry(entry))
    }

    fn claim(&mut self, peer: &mut Peer) -> Result<Option<EntryId>, StoreError> {
        let minimizes = matches!(self.settings.when, When::Inline | When::Worker);
        if !minimizes || self.is_over() {
            return Ok(None);
        }
        let id = self.registry.desk.claim()?;
        peer.claimed.extend(id.clone());
        Ok(id)
    }

    /// What a minimization writes.
    fn write(&mut self, request: &Request, body: &[u8]) -> Result<Reply, StoreError> {
        let desk = &mut self.registry.desk;
        match request {
            Request::File { kind, crash } => {
                let filed = desk.file(*kind, crash, body)?;
                return Ok(Reply::Filed {
                    id: filed.id,
                    new_major: filed.new_major,
                    new_minor: filed.new_minor,
                    already: filed.already,
                });
            }
            Request::Minimized { id } => {
                desk.write_minimized(id, body)?;
                self.show(id, false)?;
            }
            Request::Reproduce { id } => {
                desk.write_reproduce(id, &self.settings.minimizing.target.by_main())?;
            }
            Request::Outcome { id, outcome } => {
                desk.write_outcome(id, outcome)?;
                self.show(id, true)?;
            }
            _ => {}
        }
        Ok(Reply::Done)
    }
}

impl RequestHandler for GuidedEngine<'_> {
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply> {
        match request {
            Request::Supervisor { worker } => {
                peer.role = Role::Supervisor(worker);
                self.workers.begin(worker);
                return None;
            }
            Request::Hello { worker } => {
                peer.role = Role::Worker(worker);
                if self.workers.is_another(worker) {
                    self.tell(format!("worker {worker} is restarted"));
                }
                return None;
            }
            Request::Note(text) => {
                self.tell(text);
                return None;
            }
            Request::Failed(why) => {
                let gone = self.has_directory().err().map(CampaignError::from);
                self.fail(gone.unwrap_or(CampaignError::Worker(why)));
                return None;
            }
            _ => {}
        }
        let reply = match self.respond_when_there_is_room(peer, &request, &body) {
            Ok(reply) => reply,
            Err(error) => {
                let (path, why) = (error.path().to_owned(), error.to_string());
                self.fail_or_give_up(error, &request);
                Reply::Failed { path, why }
            }
        };
        // Workers do not wait for an answer to those.
        (!matches!(request, Request::Keep | Request::Hang { .. })).then_some(reply)
    }

    fn lost(&mut self, peer: Peer) {
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        for id in &peer.claimed {
            // It waits in memory only, where nothing can fail.
            let _ = self.registry.desk.release(id, false, Duration::ZERO);
        }
        if let Role::Supervisor(worker) = peer.role {
            self.workers.end(worker);
        }
        if self.is_over() {
            return;
        }
        match peer.role {
            Role::Worker(worker) => self.tell(format!("worker {worker} has died")),
            Role::Supervisor(worker) => {
                let left = self.workers.count();
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
