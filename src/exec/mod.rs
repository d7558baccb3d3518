//! Runs ONE input on ONE target and says how it ended.
//!
//! A [`Target`] says how to start a program; an [`Executor`] is a started one. There is one file
//! per way of execution, and [`mock`] stands beside them so that everything above is tested
//! without processes.

mod afl;
mod again;
mod args;
mod attempts;
mod besides;
pub mod bundled;
mod cgroup;
mod channel;
mod choose;
mod command;
mod copies;
mod coverage;
mod debug_text;
mod elf;
mod ended;
mod entry;
mod environment;
mod error;
mod executor;
pub mod facts;
mod feed;
mod forkserver;
mod harness;
mod hearing;
mod identity;
mod inject;
mod input;
mod inputs;
mod keeper;
mod launch;
mod limits;
pub mod machine;
mod mapping;
mod marked;
pub mod mock;
pub mod observe;
mod offered;
mod outer_pid;
mod page;
mod place;
mod private_dir;
mod proc_tree;
mod protocol;
mod recent;
mod reports;
mod resolve;
mod run;
mod said;
pub mod sandbox;
mod scratch;
mod script;
mod served;
mod server;
mod serving;
mod starved;
mod stderr;
mod target;
mod target_record;
mod terminal;
mod time_limit;
mod trace_server;
mod traced;
pub(crate) mod tracing;
mod tree;
mod watch;
mod way;

pub use args::FuzzerLimits;
pub use channel::{Channel, SEPARATOR, Terminal, two_files};
pub use choose::{Freshness, Started, start, start_covered};
pub use copies::Copies;
pub use coverage::{Covered, Telling};
pub use debug_text::debug_text;
pub(crate) use elf::is_sanitized;
pub use ended::Ended;
pub(crate) use ended::RUST_PANIC;
pub use environment::inherited;
pub(crate) use environment::{LARGEST_ALLOCATION, SANITIZER_OPTIONS, SANITIZERS};
pub use error::ExecError;
pub use executor::Executor;
pub use hearing::Written;
pub use identity::targets_reach;
pub use limits::Limits;
pub use offered::start_test;
#[cfg(feature = "campaign")]
pub(crate) use private_dir::PrivateDir;
pub(crate) use proc_tree::{
    is_child, is_runnable, lives, resident_memory, switches, tree_cpu, tree_exceeds,
};
pub use resolve::find_program;
pub use run::Run;
pub use said::{Again, Said};
pub use sandbox::Sandbox;
pub(crate) use starved::Starved;
pub use target::{Program, Target};
pub use target_record::TargetRecord;
pub use terminal::sample_text;
pub use time_limit::TimeLimit;
pub use traced::{Traceable, Traced};
pub use way::Way;
