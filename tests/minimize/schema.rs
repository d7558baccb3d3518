//! The schema of the log.

use ddfuzz::minimize::log::schema;
use serde_json::Value;

use crate::failures::all_of;
use crate::scripted::{outcomes, run};

#[test]
fn the_schema_in_the_documentation_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/log.schema.json");
    if std::env::var_os("DDFUZZ_WRITE_SCHEMAS").is_some() {
        let text = serde_json::to_string_pretty(&schema()).expect("JSON");
        std::fs::write(path, text + "\n").expect("the schema is written");
    }
    let text = std::fs::read_to_string(path).expect("the schema");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        written,
        schema(),
        "write it again: DDFUZZ_WRITE_SCHEMAS=1 cargo test --test minimize schema"
    );
}

/// The variant of the schema for lines of this kind.
fn variant<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    let variants = schema["oneOf"].as_array().expect("variants");
    let of_kind = |variant: &&Value| variant["properties"]["kind"]["const"] == kind;
    variants.iter().find(of_kind).expect("a variant")
}

/// A definition that a variant refers to, or the variant itself.
fn resolved<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"]
        .as_str()
        .and_then(|path| path.strip_prefix('#'))
    {
        Some(path) => schema.pointer(path).expect("a definition"),
        None => part,
    }
}

#[test]
fn each_line_of_a_log_has_the_fields_of_the_schema() {
    let (_, log) = run(b"12345678", &mut outcomes(all_of(b"178")));
    let schema = schema();
    for line in log
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let line: Value = serde_json::from_slice(line).expect("JSON");
        let variant = variant(&schema, line["kind"].as_str().expect("a kind"));
        let part = resolved(&schema, variant);
        let edits = part["oneOf"].as_array().into_iter().flatten();
        let known = |field: &String| {
            let stands = |part: &Value| !part["properties"][field].is_null();
            stands(variant) || stands(part) || edits.clone().any(stands)
        };
        for field in line.as_object().expect("an object").keys() {
            assert!(known(field), "{field} of {line}");
        }
        for required in part["required"].as_array().into_iter().flatten() {
            let name = required.as_str().expect("a name");
            assert!(!line[name].is_null() || name == "key", "{name} of {line}");
        }
    }
}
