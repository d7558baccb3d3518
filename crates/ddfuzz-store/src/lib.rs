//! The output directory as a contract, version [`VERSION`].
//!
//! ```text
//! ddfuzz.json                           whose directory it is (campaign::CampaignFile)
//! crashes/MAJOR/group.json              one bug (group::GroupRecord)
//! crashes/MAJOR/MINOR/HASH/original     the input as found; HASH = 16 hex digits of its blake3
//! crashes/MAJOR/MINOR/HASH/minimized    the reproducer, atomically replaced while it shrinks
//! crashes/MAJOR/MINOR/HASH/crash.json   triage's record
//! crashes/MAJOR/MINOR/HASH/minimized.json  how the minimization ended; absent until it has
//! crashes/MAJOR/MINOR/HASH/log.jsonl    the minimization log
//! crashes/MAJOR/MINOR/HASH/options.jsonl  the same of the options, in a study of many utilities
//! crashes/MAJOR/MINOR/HASH/reproduce.sh shows the crash without ddfuzz
//! flaky/ hangs/ oom/                    the same layout
//! corpus/HASH                           inputs worth keeping
//! bin/HASH/NAME                         bundled programs, for reproduce.sh
//! state.json stats.jsonl                the campaign's checkpoint and its course
//! triage.jsonl                          what `triage` has done, a line an input
//! studies/CAMPAIGN.json                 what a study of many utilities came to (study::StudyRecord)
//! ```
//!
//! In: crash records, minimization results, output directories. Out: the files above, and reports
//! as text ([`report`]). The central type is [`Store`], the one writer (by lock); a [`Reader`] needs
//! no lock and may read while the writer is at work. [`merge()`] is the union of several
//! directories. [`foreign`] knows the directories of other fuzzers.
//!
//! Reading order: `layout.rs`, `writer.rs`, `filing.rs`, `group.rs`, `reader.rs`, `merge.rs`,
//! `report/view.rs`.
//!
//! **No crash is ever lost.** An input is written and synced before the record that makes its
//! entry count; an input without its record (the writer was killed in between) stays where it
//! is, is listed by [`Reader::incomplete`], and is completed by filing it again.

mod campaign;
mod error;
mod filing;
pub mod foreign;
mod group;
mod json;
mod known;
mod layout;
mod merge;
mod reader;
pub mod report;
mod reproduce;
mod study;
mod triage_journal;
mod writer;

pub use campaign::{Build, Campaign, CampaignFile, SettingsFile, Status, VERSION};
pub use error::StoreError;
pub use filing::Filed;
pub use group::{Entry, Group, GroupRecord, Minimized, Proved};
pub use json::rfc3339;
pub use known::{BaselineGroups, InvalidKey, KnownGroups};
pub use layout::{EntryId, Kind, hash_of};
pub use merge::{Merged, merge};
pub use reader::Reader;
pub use reproduce::{channel as shell_channel, script};
pub use study::{GroupTally, REFUSALS, Replayed, StudyRecord, Tally, UtilityRecord, is_refusal};
pub use triage_journal::{CrashLine, TriageJournal, Triaged};
pub use writer::Store;
