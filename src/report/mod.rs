//! Results for people and scripts: one file per format, from records to text.
//!
//! Only [`GroupView::load`] reads files. Names from a target (functions, files, classes) are
//! hostile text and pass through [`text::printable`].

mod block;
pub mod hexdump;
mod json;
pub mod size;
mod table;
pub mod text;
mod view;

pub use block::block;
pub use json::{
    ErrorBody, ErrorReport, RunGroup, RunResult, TriageGroup, TriageInput, TriageResult,
};
pub use table::{groups_table, triage_table};
pub use view::{GroupView, place};
