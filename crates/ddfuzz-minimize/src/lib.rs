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
mod call_oracle;
mod certificate;
mod contradiction;
mod counts;
mod course;
mod crash_oracle;
mod driver;
mod error;
mod inverted;
pub mod isolate;
mod journal;
mod judge;
mod keyer;
mod lines;
pub mod log;
mod minimized;
mod observing;
mod options;
mod oracle;
mod parallel;
mod progress;
mod question;
mod record;
mod replay;
mod reply;
mod script;
mod searches;
mod slips;
mod standing;
mod steadiness;
mod test_oracle;
mod time_limit;
mod verify;

pub use call::Call;
pub use call_oracle::{CallOracle, OracleOfCall};
pub use certificate::{Certificate, Claim, ProofRef, Proved, Removal};
pub use counts::{Counts, Rate};
pub use crash_oracle::{CrashOracle, FreshExecutor, Held};
pub use driver::minimize;
pub use error::MinimizeError;
pub use inverted::Inverted;
pub use journal::Journal;
pub use keyer::Keyer;
pub use minimized::{Minimized, Warning};
pub use observing::StartObserver;
pub use options::{CallbackError, OnReduce, OnSlip, OnStanding, Options};
pub use oracle::{Answer, CutOff, Kind, Oracle, OracleError, Process, Slip, SlipKeys};
pub use parallel::{BoxedOracle, MakeOracle, Workers, minimize_by_workers};
pub use record::{CallResult, MinRecord, OutcomeRecord, PhaseRecord, SlipRecord};
pub use replay::{LeastSlip, Replayed, least_slips, replay};
pub use script::{Script, ScriptState};
pub use searches::{SEARCHES, UnknownSearch, search_by_name, search_summary};
pub use slips::Slips;
pub use standing::{Doing, Standing};
pub use test_oracle::TestOracle;
pub use time_limit::{PATIENCE, hurried};
pub use verify::{Counterexample, Verified, VerifyError, verify};
