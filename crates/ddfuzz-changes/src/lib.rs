//! Finds which changes between two versions of a program make it fail ("Yesterday, my program
//! worked. Today, it does not. Why?").
//!
//! - In: a [`Repository`] with two commits, a [`Recipe`] (how to build and test), a log.
//! - Out: [`Found`], a minimal set of changes that fails on top of the old version, and what is
//!   proved of it.
//! - Central type: [`Session`], which tests candidates and writes each test to the minimization
//!   log; [`find`] is the search over it.
//! - The folder [`search`] is pure: sets of changes in, sets to test out. `change_set.rs`,
//!   `tree.rs`, `text.rs`, `messages.rs` and `places.rs` touch neither git nor processes, except
//!   that they ask a [`Repository`] for contents.
//! - Read `change_set.rs`, `search/mod.rs`, `search/nested.rs`, `session.rs`, `find.rs`,
//!   `conclude.rs`, and then `worktree.rs`, `workbench.rs` and `workers.rs`.

mod candidate;
mod change_set;
mod conclude;
mod error;
mod find;
mod git;
mod git_text;
mod messages;
mod outline;
mod places;
mod recipe;
mod repository;
mod result;
pub mod search;
mod session;
mod text;
mod tree;
mod workbench;
mod workers;
mod worktree;

pub use candidate::{Candidate, Known, Status};
pub use change_set::{
    ChangeSet, FileChange, Hunk, Kind, Part, Version, as_in_header, is_lfs_pointer,
};
pub use conclude::{Premise, premises};
pub use error::ChangesError;
pub use find::{Found, Goal, find};
pub use git::{is_ancestor, is_modified, is_shallow, resolve};
pub use messages::BuildMessages;
pub use recipe::{CrashIdentity, Recipe, TestKind, default_build, machine_memory};
pub use repository::{Commit, Repository};
pub use result::{BuildCounts, ChangeRecord, ChangesResult, CommitRecord, TestCounts, describe};
pub use session::{Budget, Session};
pub use tree::{Content, Entry, SUBMODULE, Tree};
pub use workbench::{BuildBase, Report, Workbench};
pub use workers::Workers;
pub use worktree::remove_folder;
