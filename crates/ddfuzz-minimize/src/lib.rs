//! The minimizer: joins delta debugging, running and triage, and writes the minimization log.
//!
//! An [`Oracle`] says what a candidate did; [`minimize`] feeds a search with its answers and
//! writes every one of them to the [`log`]. A minimization is a pure function of (input, search,
//! outcomes), so that the log is also the checkpoint ([`Journal::resume`]), the history
//! ([`replay`]) and the proof ([`verify`]).
//!
//! Invariants: a claim is proven by outcomes in the log or not made; a candidate that slipped into
//! another bug is handed over before its test is logged; the same input and outcomes give the same
//! log, whatever happened in between.

mod call;
mod candidate_texts;
mod certificate;
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
mod searches;
mod steadiness;
mod test_oracle;
mod time_limit;
mod verify;

pub use call::{Call, CallOracle, OracleOfCall};
pub use certificate::{Certificate, Claim, ProofRef, Proved, Removal};
pub use crash_oracle::{
    CrashClassifier, CrashOracle, FreshExecutor, HeldCrash, Slips, StartObserver,
};
pub use driver::minimize;
pub use journal::Journal;
pub use minimized::{
    CallResult, Counts, MinRecord, Minimized, OutcomeRecord, PhaseRecord, Rate, SlipRecord, Warning,
};
pub use options::{
    CallbackError, MinimizeError, MinimizePhase, MinimizeStatus, OnReduce, OnSlip, OnStatus,
    Options,
};
pub use oracle::{Answer, CutOff, Inverted, Kind, Oracle, OracleError, Process, Slip, SlipKeys};
pub use parallel::{BoxedOracle, MakeOracle, Workers, minimize_by_workers};
pub use searches::{SEARCHES, UnknownSearch, search_by_name, search_summary};
pub use test_oracle::{Script, ScriptState, TestOracle};
pub use time_limit::{PROOF_TIME_FACTOR, hang_search_limit};
pub use verify::{
    Counterexample, LeastSlip, Replayed, Verified, VerifyError, least_slips, replay, verify,
};
