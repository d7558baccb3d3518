//! Why a target could not be run.

use std::io;
use std::path::PathBuf;

/// Why a target could not be started or served.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The program does not exist.
    #[error("there is no program {}", path.display())]
    Missing {
        /// The path, or the name looked for in PATH.
        path: PathBuf,
    },
    /// The program is there but cannot be executed.
    #[error("{} cannot be executed: {why}", path.display())]
    NotExecutable {
        /// The program.
        path: PathBuf,
        /// What stands in the way.
        why: String,
    },
    /// No bundled target has this name.
    #[error("no target named {name:?} comes with ddfuzz; there are: {known}")]
    UnknownBundled {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The user whom root gives targets to cannot reach the program or its directory, and a target
    /// in a sandbox never runs as root.
    #[error("the user nobody cannot access {}, and as root ddfuzz runs sandboxed programs as nobody only", path.display())]
    RootOnly {
        /// The first path on the way that is closed.
        path: PathBuf,
    },
    /// This way of execution does not work for this target.
    #[error("--exec {way} does not work for {}: {why}", path.display())]
    WayUnfit {
        /// The way's name.
        way: &'static str,
        /// The program.
        path: PathBuf,
        /// What stands in the way.
        why: String,
    },
    /// A server stopped answering, or answered something that is not of the protocol.
    #[error("the fork server of {} failed: {why}", path.display())]
    Server {
        /// The program served.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// The system refused something that running targets needs.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}
