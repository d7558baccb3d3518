//! The minimization log (`log.jsonl`): one JSON object a line, append-only.
//!
//! It is cache, progress, checkpoint, history and proof in one. A torn last line is dropped when
//! the log is read.

mod base64;
mod edit;
mod error;
mod hash;
mod lines;
mod os_text;
mod reader;
mod target;
mod writer;

pub use self::base64::Base64;
pub use edit::EditRecord;
pub use error::LogError;
pub use hash::{ContentHash, ShortHash};
pub use lines::{
    CheckLine, EndLine, KeyRecord, Line, Phase, ReduceLine, Source, StartLine, TestLine, VERSION,
    What,
};
pub use os_text::OsText;
pub use reader::Log;
pub use target::TargetRecord;
pub use writer::{LogWriter, Medium};
