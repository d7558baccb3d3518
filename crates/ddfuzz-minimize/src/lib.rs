//! Minimizes failing inputs by delta debugging, with a log that proves the result.
//!
//! An [`Oracle`] tests a candidate by running a target or a script. [`minimize`] asks it for the
//! candidates of a search, feeds the outcomes to the search, and writes each of them to the
//! [`log`]. A minimization is a pure function of input, search and outcomes, so the log is also a
//! checkpoint ([`Journal::resume`]), a history ([`replay`]) and a proof ([`verify`]). [`isolate`]
//! does the same for `max` and `diff`.
//!
//! Invariants: a claim is proven by outcomes in the log, or not made. A crash of another bug is
//! reported before its test is logged. The same input and outcomes give the same log, even after
//! interruptions.

mod call;
mod candidate_texts;
mod certificate;
mod crash_classifier;
mod crash_oracle;
mod driver;
pub mod isolate;
mod journal;
pub mod log;
mod minimized;
mod options;
mod oracle;
mod parallel;
mod progress;
mod question;
mod requests;
mod searches;
mod slips;
mod steadiness;
mod test_oracle;
mod time_limit;
mod verify;

pub use call::{Call, CallOracle, OracleOfCall};
pub use certificate::{Certificate, Claim, ProofRef, Proved};
pub use crash_classifier::CrashClassifier;
pub use crash_oracle::{CrashOracle, FreshExecutor, HeldCrash, StartObserver};
pub use driver::{minimize, wall_time};
pub use journal::Journal;
pub use minimized::{
    CallResult, Counts, MinRecord, Minimized, MinimizedCrash, PhaseRecord, Rate, SlipRecord,
    Warning,
};
pub use options::{
    CallbackError, MinimizeError, MinimizePhase, MinimizeStatus, OnReduce, OnSlip, OnStatus,
    Options, Runs,
};
pub use oracle::{Answer, CutOff, Inverted, Kind, Oracle, OracleError, Process, Slip, SlipKeys};
pub use parallel::{BoxedOracle, MakeOracle, Workers, minimize_by_workers};
pub use searches::{
    SEARCHES, UnknownSearch, UnknownStructure, search_by_name, search_summary, structure_name,
    structured_search, trim_search, usual_language, usual_structure,
};
pub use slips::Slips;
pub use steadiness::AGREEING_RUNS;
pub use test_oracle::{Script, ScriptState, TestOracle};
pub use time_limit::{PROOF_TIME_FACTOR, hang_search_limit};
pub use verify::{
    Counterexample, LeastSlip, Replayed, Verified, VerifyError, least_slips, replay, verify,
};
