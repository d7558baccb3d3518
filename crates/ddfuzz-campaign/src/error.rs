//! The errors that end a campaign.

use std::path::PathBuf;

use ddfuzz_exec::ExecError;
use ddfuzz_minimize::MinimizeError;
use ddfuzz_model::files::FileError;
use ddfuzz_store::StoreError;

/// Why a campaign ended early. Findings stored and runs counted before the error are kept.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The campaign is resumed with another greatest length of inputs.
    #[error("the campaign was started with --max-len {was} and cannot be resumed with {now}")]
    OtherLengths {
        /// Greatest length of inputs, in bytes, that the campaign had when it began.
        was: u64,
        /// Greatest length of inputs, in bytes, that the user asks for when resuming the campaign.
        now: u64,
    },
    /// A system call failed, such as the one that opens a port for the workers, or the description
    /// of the target could not be encoded as JSON.
    #[error("{what}: {source}")]
    System {
        /// Description of the operation that failed.
        what: String,
        /// The system's error, which says why the operation failed.
        source: std::io::Error,
    },
    /// The watched fuzzer has ended too early.
    #[error("{what}: {why}")]
    Fuzzer {
        /// Description of what the watched fuzzer did.
        what: String,
        /// How the process of the watched fuzzer ended, and what it printed about the cause.
        why: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// The campaign on another host, given by the address of its broker, cannot be joined.
    #[error("no campaign answers at {address}: {why}")]
    NotJoined {
        /// Address at which the broker of the other campaign was expected.
        address: std::net::SocketAddr,
        /// Why the campaign on the other host cannot be joined.
        why: String,
    },
    /// The workers of a guided campaign cannot exchange messages by LibAFL's network, for this
    /// reason.
    #[error("the workers cannot be connected: {0}")]
    Network(String),
    /// A worker has reported this reason why it cannot continue, or all workers have died.
    #[error("a worker has failed: {0}")]
    Worker(String),
    /// The output directory belongs to a campaign on another target.
    #[error(
        "{} contains the results of another target; use one output directory for each target",
        path.display()
    )]
    OtherTarget {
        /// Path of the output directory that belongs to a campaign on another target.
        path: PathBuf,
    },
    /// The system cannot start another thread for a minimization.
    #[error("no thread for a minimization could be started: {source}; ddfuzz tries again later")]
    NoThread {
        /// The system's error, which says why the thread cannot be started.
        source: std::io::Error,
    },
    /// A thread that minimizes, or that examines the inputs of a watched fuzzer, has panicked; the
    /// panic is printed on stderr.
    #[error("a minimization ended with an internal error of ddfuzz, which is printed on stderr")]
    Broken,
    /// The campaign is resumed with other seeds than it began with.
    #[error("the campaign was started with other seeds and cannot be resumed with these")]
    OtherSeeds,
    /// The campaign is resumed without seeds, and the seeds that it began with can no longer be
    /// read: they are incomplete in the output directory, and changed or gone at their original
    /// paths.
    #[error(
        "the seeds of the campaign are not complete in its output directory{}",
        read_from(paths)
    )]
    MissingSeeds {
        /// Paths that the seeds were read from when the campaign began; empty if not recorded.
        paths: Vec<PathBuf>,
    },
    /// A call that stores the findings of another fuzzer (such as `ddfuzz watch`) is asked to
    /// continue a campaign that makes its own inputs.
    #[error("the last campaign in the output directory made its inputs by ddfuzz's own engine")]
    NoWatch,
    /// A call that makes inputs with ddfuzz's own engine (such as `ddfuzz run`) is asked to
    /// continue a campaign that stores the findings of another fuzzer.
    #[error("the last campaign in the output directory filed the findings of another fuzzer")]
    NoRun,
    /// The campaign is resumed with other dictionaries than it began with.
    #[error("the campaign was started with other dictionaries and cannot be resumed with these")]
    OtherDictionary,
    /// A minimization failed or was interrupted, for the reason that the inner error says.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
}

/// Returns the end of the error message about missing seeds, which says that the seeds have changed
/// or are gone at `paths`. Empty if there are no paths.
fn read_from(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(", and have changed or are gone in {}", names.join(", ")),
    }
}

impl From<FileError> for CampaignError {
    fn from(error: FileError) -> CampaignError {
        StoreError::from(error).into()
    }
}

impl From<CampaignError> for libafl::Error {
    fn from(error: CampaignError) -> libafl::Error {
        libafl::Error::unknown(error.to_string())
    }
}
