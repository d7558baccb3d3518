//! The minimization log (`log.jsonl`): one JSON object a line, append-only.
//!
//! It is cache, progress, checkpoint, history and proof in one. A torn last line is dropped when
//! the log is read.

mod call;
mod coverage;
mod difference;
mod edit;
mod error;
mod hash;
mod lines;
mod reader;
mod schema;
mod writer;

pub use call::{CallRecord, Part};
pub use coverage::{CoverageRecord, Numbers};
pub use ddfuzz_exec::TargetRecord;
pub use ddfuzz_model::files::{Base64, OsText};
pub use difference::{DifferenceRecord, Goal, PassingEnd, PassingRecord, Units};
pub use edit::EditRecord;
pub use error::LogError;
pub use hash::{ContentHash, ShortHash};
pub use lines::{
    CheckLine, EndLine, KeyRecord, Line, Phase, ReduceLine, Source, StartLine, TestLine,
    TestRecord, VERSION, What,
};
pub use reader::Log;
pub use schema::schema;
pub use writer::{LogWriter, Medium};
