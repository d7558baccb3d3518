//! Writes and reads the output directory of ddfuzz (format [`VERSION`]), and makes reports of it.
//!
//! ```text
//! ddfuzz.json                           the campaign that the directory belongs to
//! crashes/MAJOR/group.json              one bug: record of the group with this major key
//! crashes/MAJOR/MINOR/HASH/original     an input as found; HASH = 16 hex digits of its blake3
//! crashes/MAJOR/MINOR/HASH/minimized    the minimized input, replaced atomically while it shrinks
//! crashes/MAJOR/MINOR/HASH/crash.json   record of the crash
//! crashes/MAJOR/MINOR/HASH/minimized.json  result of the minimization; absent until it has ended
//! crashes/MAJOR/MINOR/HASH/log.jsonl    log of the minimization
//! crashes/MAJOR/MINOR/HASH/passing.json  which earlier minimizations have results that pass
//! crashes/MAJOR/MINOR/HASH/options.jsonl  log of the minimization of a utility's options
//! crashes/MAJOR/MINOR/HASH/explanation.txt  why the input fails, by `ddfuzz explain`
//! crashes/MAJOR/MINOR/HASH/reproduce.sh shows the crash without ddfuzz
//! flaky/ hangs/ oom/                    like crashes/, for the other kinds of findings
//! corpus/HASH                           inputs with new coverage
//! bin/HASH/NAME                         bundled programs, for reproduce.sh
//! state.json stats.jsonl                checkpoint and statistics of the campaign
//! code.json                             code of an unmodified program that the campaign has reached
//! checks.jsonl                          journal of `ddfuzz check`, results of groups
//! triage.jsonl                          journal of `ddfuzz triage`, one line for each input
//! studies/CAMPAIGN.json                 result of a study of many utilities
//! ```
//!
//! In: crash records, minimization results, output directories. Out: the files above, and reports
//! as text ([`report`]). The central type is [`Store`], the only writer, protected by a lock. A
//! [`Reader`] needs no lock and may read while a writer writes. [`merge()`] unites several
//! directories. [`foreign`] reads the directories of other fuzzers.
//!
//! Reading order: `layout.rs`, `writer.rs`, `filing.rs`, `group.rs`, `reader.rs`, `merge.rs`,
//! `report/view.rs`.
//!
//! **No crash is ever lost.** An input is written and synced before its record. If the writer is
//! killed in between, the input stays; [`Reader::incomplete`] lists it, and storing it again
//! completes its entry.

mod campaign;
mod checks;
mod code;
mod error;
mod filing;
pub mod foreign;
mod group;
mod json;
mod known;
mod layout;
mod merge;
mod merged_builds;
mod merged_minimizations;
mod reader;
pub mod report;
mod reproduce;
mod study;
mod triage_journal;
mod writer;

pub use campaign::{Build, Campaign, CampaignFile, LastBuilds, SettingsFile, Status, VERSION};
pub use checks::{Checked, LastCheck, LastChecks};
pub use code::{CodeCoverage, FileCoverage, UnreachedFunction};
pub use error::StoreError;
pub use filing::Filed;
pub use group::{Archived, Entry, Group, GroupRecord, Minimized, Proved};
pub use json::rfc3339;
pub use known::{BaselineGroups, InvalidKey, KnownGroups};
pub use layout::{EntryId, Kind, hash_of};
pub use merge::{Merged, merge};
pub use reader::{IncompleteGroup, Reader};
pub use reproduce::{channel as shell_channel, script};
pub use study::{GroupTally, REFUSALS, Replayed, StudyRecord, Tally, UtilityRecord, is_refusal};
pub use triage_journal::{CrashLine, TriageJournal, Triaged};
pub use writer::Store;
