//! The minimization log (`log.jsonl`): one JSON object per line, append-only. It is cache,
//! checkpoint, history and proof of a minimization. An incomplete last line is ignored when the log
//! is read.

mod file;
mod goals;
mod hash;
mod lines;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

pub use ddfuzz_exec::TargetRecord;
pub use ddfuzz_model::files::{Base64, OsText};
pub use file::{Log, LogError, LogWriter, Medium};
pub use goals::{ChangesRecord, ChangesTest, CoverageRecord, Numbers};
pub use goals::{DifferenceRecord, Goal, PassingEnd, PassingRecord, Units};
pub use hash::{ContentHash, ShortHash};
pub use lines::{
    CallRecord, CheckLine, EditRecord, EndLine, KeyRecord, Line, NO_STRUCTURE, Part, Phase,
    ReduceLine, Source, StartLine, TestLine, TestRecord, VERSION, What,
};

/// Returns the JSON schema of one line of the minimization log.
pub fn schema() -> Value {
    schema_for!(Line).to_value()
}

// `ddfuzz-delta` has no JSON schemas, so two of its enums are repeated here.

/// Outcome of a test: PASS, FAIL or UNRESOLVED.
#[derive(JsonSchema)]
#[schemars(rename = "Outcome", rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "only its names are used")]
pub(super) enum OutcomeName {
    Pass,
    Fail,
    Unresolved,
}

/// Which tests are answered without a run: those of a text that was tested before, those of a
/// configuration (set of kept units) that was tested before, or none.
#[derive(JsonSchema)]
#[schemars(rename = "Caching", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its names are used")]
pub(super) enum CachingName {
    Text,
    Configuration,
    Off,
}
