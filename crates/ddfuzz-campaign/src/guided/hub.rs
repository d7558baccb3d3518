//! Where workers reach the one who writes: a socket that this process alone can give away.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::wire::{self, Beat, Reply, Request};
use crate::CampaignError;
use ddfuzz_exec::PrivateDir;
use ddfuzz_store::EntryId;

/// So long a worker may take to say what it has begun to say.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who a peer is. Workers are numbered from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has not said so yet.
    Unknown,
    /// The process that starts this worker, again where it has died.
    Above(usize),
    Worker(usize),
}

/// A worker, as the hub sees it.
pub(super) struct Peer {
    stream: UnixStream,
    pub(super) role: Role,
    /// Runs that it was granted and has not told of.
    pub(super) granted: u64,
    /// What it is minimizing.
    pub(super) claimed: Vec<EntryId>,
    /// How it stood when it last told.
    pub(super) beat: Beat,
    /// How many judgements it was told.
    pub(super) judged: usize,
}

/// Who answers what workers ask.
pub(super) trait Answer {
    /// The answer; `None` where the worker does not wait for one.
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply>;

    /// A worker has hung up.
    fn lost(&mut self, peer: Peer);
}

/// The hub.
pub(super) struct Hub {
    listener: UnixListener,
    socket: PathBuf,
    pub(super) peers: Vec<Peer>,
    /// Where the socket is; removed with the last who uses it, or by the next ddfuzz.
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

    /// Answers whoever asks, for `time` at most where nobody does.
    pub(super) fn serve(&mut self, time: Duration, answer: &mut impl Answer) -> io::Result<()> {
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
                beat: Beat::default(),
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

fn serve_one(peer: &mut Peer, answer: &mut impl Answer) -> io::Result<()> {
    let (request, body) = wire::receive::<Request>(&mut peer.stream)?;
    match answer.answer(peer, request, body) {
        Some(reply) => wire::send(&mut peer.stream, &reply, &[]),
        None => Ok(()),
    }
}
