//! Trimming: each kept file made smaller by delta debugging, with what it reaches as the oracle.
//!
//! It is a minimization as that of a crash is, through the same searches, log and claim; FAIL means
//! that a run ends as that of the original and reaches what is [`Wanted`]. One [`Trimmer`] trims
//! one file after the other, [`trim_all`] many by workers.
//!
//! Invariants: what a claim, a reduction and the result rest on was seen in a fresh process; a
//! result that does not reach all that is wanted each time is not taken, the file then stays as it
//! is; a crash that a candidate runs into is handed over before its test is logged.

mod all;
mod error;
mod held;
mod left;
mod log;
mod oracle;
mod record;
mod trimmed;
mod trimmer;
mod trimming;
mod wanted;

pub use all::{OnSlipOf, OnTrimmed, Watch, trim_all};
pub use error::TrimError;
pub use held::Held;
pub use left::Left;
pub use oracle::CoverageOracle;
pub use trimmed::Trimmed;
pub use trimmer::{OnSlip, ToTrim, Trimmer};
pub use trimming::Trimming;
pub use wanted::Wanted;
