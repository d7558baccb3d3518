//! The JSON schema of a log's lines, generated from their types (`docs/log.schema.json`).

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use super::Line;

/// The schema of one line.
pub fn schema() -> Value {
    schema_for!(Line).to_value()
}

// `delta` itself knows nothing of schemas; its two enums are said again here.

/// What a test said.
#[derive(JsonSchema)]
#[schemars(rename = "Outcome", rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "only its names are used")]
pub(super) enum OutcomeName {
    Pass,
    Fail,
    Unresolved,
}

/// Which tests are answered without a run.
#[derive(JsonSchema)]
#[schemars(rename = "Caching", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its names are used")]
pub(super) enum CachingName {
    Text,
    Configuration,
    Off,
}
