//! Results for people and scripts: one file per format, from records to text.
//!
//! Only [`GroupView::load`], [`study::study_groups`] and [`Trace::excerpt`] (the source) read files. Names from a target (functions, files, classes) are
//! hostile text and pass through [`text::printable`].

mod block;
mod check;
pub mod ci;
pub mod clean;
mod curve;
pub mod export;
pub mod hexdump;
mod html;
mod json;
mod narrowing;
mod shrinking;
pub mod size;
mod source;
pub mod study;
mod svg;
mod table;
pub mod text;
mod trace;
mod triage;
mod view;

pub use crate::Status;
pub use block::{Cause, block, block_in_full, cause};
pub use check::{CheckResult, CheckedGroup, Now, check_table};
pub use curve::curve;
pub use json::{EndedBy, ErrorBody, ErrorReport, RunGroup, RunResult};
pub use shrinking::{Dot, Pass, Shrinking, Step};
pub use source::Excerpt;
pub use svg::svg;
pub use table::{groups_table, passes_table};
pub use trace::{Extent, Stack, Trace, TraceLine};
pub use triage::{
    CannotTell, SameBy, TriageGroup, TriageInput, TriageResult, triage_cannot_tell, triage_doubts,
    triage_groups_table, triage_summary, triage_table,
};
pub use view::{GroupView, VariantView, claim, place};
