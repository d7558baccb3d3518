//! **ddfuzz** turns every crash into its shortest reproducer while the fuzz campaign runs.
//!
//! One sentence per step: a *campaign* makes inputs; a *target* runs them; *triage* names each
//! crash by its keys and files it in a group; the *minimizer* runs delta debugging on each new
//! group with "same key" as its oracle and writes the minimization log; the *store* keeps it all.
//!
//! # Map
//! | module | what it is | uses |
//! |---|---|---|
//! | [`delta`] | pure delta debugging as step machines | nothing of ours |
//! | `exec` | runs one input on one target and says how it ended | `files` |
//! | `triage` | from a crashing run to keys | `exec` |
//! | `minimize` | oracle, log, replay, verify, certificate | `delta`, `exec`, `triage` |
//! | `campaign` | the fuzz loop | all of the above and `store` |
//! | `corpus` | the least of a corpus that reaches as much | `campaign` and what it uses |
//! | `files` | atomic writes, locks, append-only files | nothing of ours |
//! | `store` | the output directory as a contract | records of `triage` and `minimize` |
//! | `report` | one file per format | records |
//! | `cli` | one file per subcommand | everything |
//!
//! [`target!`] makes a target of a closure; it is there in every combination of features.

pub use ddfuzz_target::target;

#[cfg(all(feature = "engine", not(target_os = "linux")))]
compile_error!("ddfuzz runs on Linux only; use the crate `ddfuzz-delta` for delta debugging alone");

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "campaign")]
pub use ddfuzz_campaign as campaign;
#[cfg(feature = "campaign")]
pub use ddfuzz_corpus as corpus;
pub use ddfuzz_delta as delta;
#[cfg(feature = "engine")]
pub use ddfuzz_exec as exec;
#[cfg(feature = "engine")]
pub use ddfuzz_minimize as minimize;
#[cfg(feature = "engine")]
pub use ddfuzz_model::files;
#[cfg(feature = "engine")]
pub use ddfuzz_store as store;
#[cfg(feature = "engine")]
pub use ddfuzz_store::report;
#[cfg(feature = "engine")]
pub use ddfuzz_triage as triage;
