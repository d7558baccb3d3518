//! What workers and the hub say to each other: frames of a JSON head and a body of bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::KnownKey;
use ddfuzz_exec::Signature;
use ddfuzz_store::{EntryId, Kind, Minimized};
use ddfuzz_triage::{Crash, Key};

/// The largest head or body, in bytes: what is longer is nonsense.
const LONGEST: u32 = 1 << 30;

/// The requests of a worker to the hub. The body is the input, or the reproducer, where there is
/// one.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// The first message of a supervisor: which worker it starts.
    Supervisor {
        worker: usize,
    },
    /// The first message of a worker: which one it is.
    Hello {
        worker: usize,
    },
    Known,
    HandIn {
        kind: Kind,
        crash: Box<Crash>,
        run: u64,
        name: String,
    },
    Count {
        kind: Kind,
        major: Key,
        runs: u64,
    },
    File {
        kind: Kind,
        crash: Box<Crash>,
    },
    Minimized {
        id: EntryId,
    },
    Reproduce {
        id: EntryId,
    },
    Outcome {
        id: EntryId,
        outcome: Minimized,
    },
    Claim,
    GiveBack {
        id: EntryId,
        ended: bool,
        spent_us: u64,
    },
    /// Runs that were stopped at a hang which is not classified yet, as far as the worker knows.
    CountUnnamed {
        signatures: Vec<Signature>,
        runs: u64,
    },
    /// An input that is worth keeping.
    Keep,
    /// An input whose run took too long.
    Hang {
        /// Counts what the worker hands in.
        number: u64,
        /// Whether it hung where none has before, as far as the worker knows.
        first: bool,
        signatures: Vec<Signature>,
        run: u64,
        name: String,
    },
    Heartbeat(Heartbeat),
    /// Something that the user should know.
    Note(String),
    /// Why the worker cannot go on.
    Failed(String),
}

/// The status of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Heartbeat {
    /// Runs since the last heartbeat.
    pub(super) runs: u64,
    /// Inputs in its corpus.
    pub(super) corpus: u64,
    /// Places of the target that its runs have reached.
    pub(super) edges: u64,
    /// How many places the target has.
    pub(super) edges_of: u64,
    /// Of the places reached, those whose counts change when an input is run again.
    pub(super) unstable: u64,
    /// How long it has minimized since the last heartbeat, in microseconds.
    pub(super) minimized_us: u64,
}

/// The next order to a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// It is to end.
    pub(super) stop: bool,
    /// How many runs it may make until it asks again.
    pub(super) runs: u64,
    /// What was found out about hangs since it last asked.
    pub(super) judged: Vec<JudgedHang>,
}

/// The verdict about an input that was handed in as a hang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JudgedHang {
    /// The worker that has handed it in, and the number that it has there.
    pub(super) from: (usize, u64),
    pub(super) signatures: Vec<Signature>,
    /// The size of the input, in bytes.
    pub(super) size: usize,
    pub(super) verdict: HangVerdict,
}

/// Whether it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HangVerdict {
    /// It does, or does not end well: it is of this group.
    Of(Kind, Key),
    /// It ends by itself.
    Ends,
    /// It is unknown: the target could not be run.
    Unknown,
}

/// The answers of the hub.
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
    Order(Order),
    Failed {
        path: PathBuf,
        why: String,
    },
}

/// Sends a frame.
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

/// Waits for a frame.
pub(super) fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<(T, Vec<u8>)> {
    let mut lengths = [0; 8];
    stream.read_exact(&mut lengths)?;
    let [head, body] = [0, 4].map(|at| {
        let mut word = [0; 4];
        word.copy_from_slice(&lengths[at..at + 4]);
        u32::from_le_bytes(word)
    });
    if head.max(body) > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; head as usize];
    stream.read_exact(&mut text)?;
    let mut bytes = vec![0; body as usize];
    stream.read_exact(&mut bytes)?;
    Ok((serde_json::from_slice(&text)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        send(&mut here, &Request::Hello { worker: 7 }, b"body").unwrap();
        send(&mut here, &Request::Keep, b"").unwrap();
        let (request, body) = receive::<Request>(&mut there).unwrap();
        assert!(matches!(request, Request::Hello { worker: 7 }));
        assert_eq!(body, b"body");
        let (request, body) = receive::<Request>(&mut there).unwrap();
        assert!(matches!(request, Request::Keep));
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
