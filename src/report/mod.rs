//! Results for people and scripts: one file per format, from records to text.
//!
//! Only [`GroupView::load`] reads files. Names from a target (functions, files, classes) are
//! hostile text and pass through [`text::printable`].

mod block;
mod curve;
pub mod hexdump;
mod json;
mod narrowing;
mod shrinking;
pub mod size;
mod svg;
mod table;
pub mod text;
mod view;

pub use block::block;
pub use curve::curve;
pub use json::{
    ErrorBody, ErrorReport, RunGroup, RunResult, TriageGroup, TriageInput, TriageResult,
};
pub use shrinking::{Dot, Pass, Shrinking, Step};
pub use svg::svg;
pub use table::{groups_table, passes_table, triage_table};
pub use view::{GroupView, place};
