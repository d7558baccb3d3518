//! Why a campaign could not go on.

use std::path::PathBuf;

use ddfuzz_exec::ExecError;
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::StoreError;

/// Why a campaign ended early. What it had committed is saved.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The campaign is resumed with inputs of other lengths.
    #[error("the campaign was started with --max-len {was} and cannot be resumed with {now}")]
    OtherLengths {
        /// Its greatest length, in bytes.
        was: u64,
        /// The one asked for.
        now: u64,
    },
    /// The system refuses what a campaign needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The campaign of another host cannot be joined.
    #[error("no campaign answers at {address}: {why}")]
    NotJoined {
        /// Where its broker should be.
        address: std::net::SocketAddr,
        /// What came instead.
        why: String,
    },
    /// The workers cannot reach each other.
    #[error("the workers cannot be connected: {0}")]
    Network(String),
    /// A worker has failed, and says why; or all have died, again and again.
    #[error("a worker has failed: {0}")]
    Worker(String),
    /// The output directory is that of a campaign on another target.
    #[error(
        "{} contains the results of another target; use one output directory for each target",
        path.display()
    )]
    OtherTarget {
        /// The output directory.
        path: PathBuf,
    },
    /// The system gives no thread for a minimization.
    #[error("no thread for a minimization could be started: {source}; ddfuzz tries again later")]
    NoThread {
        /// Why not.
        source: std::io::Error,
    },
    /// A minimization has panicked, as standard error says.
    #[error("a minimization ended with an internal error of ddfuzz, which is printed on stderr")]
    Broken,
    /// The campaign is resumed with other seeds.
    #[error("the campaign was started with other seeds and cannot be resumed with these")]
    OtherSeeds,
    /// A watch is to go on with a campaign that makes its inputs itself.
    #[error(
        "the output directory belongs to a campaign of `ddfuzz run`, which `ddfuzz watch` cannot continue"
    )]
    NoWatch,
    /// The campaign is resumed with other words.
    #[error("the campaign was started with other dictionaries and cannot be resumed with these")]
    OtherDictionary,
    /// A minimization failed for another reason than its target.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
}

impl From<CampaignError> for libafl::Error {
    fn from(error: CampaignError) -> libafl::Error {
        libafl::Error::unknown(error.to_string())
    }
}
