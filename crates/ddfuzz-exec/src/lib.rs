//! Runs one input on one target and reports how the run ended.
//!
//! - In: a [`Target`] (program, arguments, input channel, limits, sandbox) and the bytes of an
//!   input.
//! - Out: a [`Run`] (how it ended, CPU time); on request coverage, comparisons and captured output.
//! - Central type: the trait [`Executor`], a started target. [`start`] chooses one of the ways of
//!   execution ([`Way`]) and returns an executor; [`Mock`] is one without processes, for tests.
//! - Tracers use a [`Traceable`] instead: each run waits until it has been seized.
//! - Read `target.rs`, `run.rs`, `executor.rs` and `ways.rs` first; then `prepared_target.rs`,
//!   `launch.rs`, `server.rs` and `server_executor.rs`, which most ways share; then `afl/`.

mod abandon;
mod accesses;
mod afl;
mod blocks;
pub mod bundled;
mod command_line;
mod control_group;
mod crash_snapshots;
mod descendants;
mod elf;
mod environment;
mod executor;
pub mod facts;
mod hang_detector;
mod input;
mod launch;
pub mod machine;
mod observations;
pub mod observe;
mod output_capture;
mod prepared_target;
mod private_dir;
mod proc_tree;
mod program;
mod program_trust;
mod protocol;
mod refusals;
mod retry;
mod run;
mod run_directory;
pub mod sandbox;
mod scratch;
mod server;
mod server_executor;
mod shared_page;
mod shared_server;
mod snapshot_executor;
mod supervisor;
mod system_calls;
mod target;
mod terminal;
mod test_executor;
mod trace_server;
mod traceable;
pub mod tracing;
mod watch;
mod ways;

pub use abandon::AbandonWhen;
pub use blocks::{CodeFunction, CoveredCode, mapped_path};
pub use command_line::FuzzerLimits;
pub use crash_snapshots::CrashSnapshots;
pub use elf::{
    facts as program_facts, holds as holds_bytes, is_libfuzzer, read as read_program, read_tables,
};
pub use environment::{
    LARGEST_ALLOCATION, LOCALE, Sanitizer, inherited, sanitizer_options, without_symbols,
};
pub use executor::{ExecError, Executor, Mock, NotCovered, NotExecuted, TimeLimit};
pub use hang_detector::{Signature, Stuck};
pub use observations::{CoverageReporting, RunCoverage};
pub use output_capture::Written;
pub use prepared_target::{ClosedPath, runs_as_root_for, targets_reach};
pub use private_dir::{PrivateDir, lock_directory, lock_of_abandoned, temporary_directories};
pub use proc_tree::{
    inner_pid, is_child, is_runnable, lives, own_thread_is_runnable, proc_bytes, proc_text,
    resident_memory, switches, tree_cpu, tree_exceeds,
};
pub use program::{find_program, is_interpreted_by_script, is_script};
pub use refusals::RefusalReason;
pub use run::{CrashMessages, Ended, RUST_PANIC, RerunReason, Run};
pub use sandbox::Sandbox;
pub use target::{Channel, Limits, Program, SEPARATOR, Target, TargetRecord, Terminal, two_files};
pub use terminal::sample_text;
pub use test_executor::start_test;
pub use traceable::{RunFiles, Traceable, Traced};
pub use watch::SchedulingDelay;
pub use ways::{
    Freshness, Started, Way, WithSearch, debug_text, start, start_covered, start_shell,
    start_uncounted, start_with_tracer,
};
