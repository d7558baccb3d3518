//! Reports for people and scripts, made of the records of an output directory. One file per report
//! or format.
//!
//! Only [`GroupView::load`], [`study::study_groups`], [`Trace::excerpt`] (source lines) and
//! [`page`] read files. Names that come from a target (functions, files, classes) may contain
//! control characters; every report cleans them with [`text::printable`].

mod chart;
mod check;
pub mod ci;
pub mod clean;
mod code;
pub mod export;
mod groups;
mod html;
mod json;
mod minimization;
pub mod page;
pub mod size;
mod slips;
pub mod study;
pub mod text;
mod trace;
mod triage;
mod view;

pub use crate::Status;
pub use check::{CameBack, CheckResult, CheckedGroup, CurrentFailure, check_table};
pub use groups::{block, block_in_full, cause, groups_table, passes_table};
pub use html::page_without_script;
pub use json::{EndedBy, ErrorBody, ErrorReport, RunGroup, RunResult};
pub use minimization::{MinimizationHistory, Pass, Reduction, TestPoint, curve, svg};
pub use trace::{Excerpt, Extent, Stack, Trace, TraceLine};
pub use triage::{
    CannotTell, SameBy, TriageGroup, TriageInput, TriageResult, triage_cannot_tell, triage_doubts,
    triage_groups_table, triage_summary, triage_table,
};
pub use view::{GroupView, VariantView, claim, place};
