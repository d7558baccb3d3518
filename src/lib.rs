//! **ddfuzz** turns every crash into its shortest reproducer while the fuzz campaign runs.
//!
//! One sentence per step: a *campaign* makes inputs; a *target* runs them; *triage* names each
//! crash by its keys (hashes of its stack) and files it in a group; the *minimizer* runs delta
//! debugging on each new group with "same key" as its oracle and writes the minimization log; the
//! *store* keeps it all.
//!
//! This crate is the command line, and the library under one name: each module is a crate.
//!
//! | module | crate | what it does | feature |
//! |---|---|---|---|
//! | [`delta`] | `ddfuzz-delta` | pure delta debugging as step machines | |
//! | `structure` | `ddfuzz-structure` | file formats: documents of inputs | `engine` |
//! | `files`, `pool` | `ddfuzz-model` | atomic writes, locks, append-only files; worker threads | `engine` |
//! | `exec` | `ddfuzz-exec` | runs one input and reports how the run ended | `engine` |
//! | `triage` | `ddfuzz-triage` | from a crashing run to keys | `engine` |
//! | `minimize` | `ddfuzz-minimize` | oracle, minimization log, replay, verification | `engine` |
//! | `store`, `report` | `ddfuzz-store` | the output directory, and one file per format | `engine` |
//! | `campaign` | `ddfuzz-campaign` | fuzz campaigns | `campaign` |
//! | `changes` | `ddfuzz-changes` | which changes between two versions make a program fail | `cli` |
//! | `explain` | `ddfuzz-explain` | cause–effect chains of a failure | `cli` |
//! | `corpus` | `ddfuzz-corpus` | a minimal subset of a corpus with the same coverage | `campaign` |
//!
//! [`target!`] makes a target of a closure; it is available with every combination of features.

pub use ddfuzz_target::target;

#[cfg(all(feature = "engine", not(target_os = "linux")))]
compile_error!("ddfuzz runs on Linux only; use the crate `ddfuzz-delta` for delta debugging alone");

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "campaign")]
pub use ddfuzz_campaign as campaign;
#[cfg(feature = "cli")]
pub use ddfuzz_changes as changes;
#[cfg(feature = "campaign")]
pub use ddfuzz_corpus as corpus;
pub use ddfuzz_delta as delta;
#[cfg(feature = "engine")]
pub use ddfuzz_exec as exec;
#[cfg(feature = "cli")]
pub use ddfuzz_explain as explain;
#[cfg(feature = "engine")]
pub use ddfuzz_minimize as minimize;
#[cfg(feature = "engine")]
pub use ddfuzz_model::{files, pool};
#[cfg(feature = "engine")]
pub use ddfuzz_store as store;
#[cfg(feature = "engine")]
pub use ddfuzz_store::report;
#[cfg(feature = "engine")]
pub use ddfuzz_structure as structure;
#[cfg(feature = "engine")]
pub use ddfuzz_triage as triage;
