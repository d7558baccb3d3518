//! Findings as SARIF 2.1.0, the format of code scanning.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Finding, Findings};
use crate::Kind;
use crate::report;
use crate::report::text::printable;
use crate::report::trace::{Excerpt, Place};
use ddfuzz_triage::{Severity, Site};

const SCHEMA_URL: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Number of source lines in the SARIF log before and after the crash location.
const AROUND: u64 = 3;
/// Maximum number of frames of a stack in the SARIF log.
const FRAMES: usize = 64;

/// Formats the findings as a SARIF log with one run. Its rules are the crash classes; its results
/// are the groups, identified by major key and, if it is known whether they are new, marked as new
/// or unchanged.
pub fn sarif(findings: &Findings) -> String {
    let classes: BTreeSet<&str> = findings
        .groups
        .iter()
        .map(|one| one.class.as_str())
        .collect();
    let rules = classes.iter().map(|class| {
        let text = format!("{class}, found by fuzzing");
        json!({ "id": class, "shortDescription": { "text": text } })
    });
    let driver = json!({
        "name": "ddfuzz",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
    });
    let results: Vec<Value> = findings.groups.iter().map(result).collect();
    let log = json!({
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    });
    format!("{log:#}\n")
}

/// Makes a JSON object of members, each with its name and value; members without a value are left
/// out.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let there = members.into_iter();
    let there = there.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect::<Map<_, _>>())
}

fn result(group: &Finding) -> Value {
    let level = match (group.kind, group.severity) {
        (Kind::Crash, Severity::Medium | Severity::High) => "error",
        _ => "warning",
    };
    let message = match &group.trace.message {
        Some(message) => format!(": {message}"),
        None => String::new(),
    };
    let why = match &group.explanation {
        Some(explanation) => format!(" Why it fails: {}.", explanation.replace('\n', "; ")),
        None => String::new(),
    };
    let text = format!(
        "{}{message} ({}). Reproducer: {}, {}. Group {}.{why}",
        group.title(),
        group.severity_reason,
        group.file.display(),
        group.reduction(),
        group.major,
    );
    let stacks: Vec<Value> = group.trace.stacks.iter().map(stack).collect();
    let baseline = group.is_new.map(|is_new| match is_new {
        true => "new",
        false => "unchanged",
    });
    object([
        ("ruleId", Some(json!(group.class))),
        ("level", Some(json!(level))),
        ("message", Some(json!({ "text": text }))),
        ("locations", Some(json!([location(group)]))),
        (
            "partialFingerprints",
            Some(json!({ "ddfuzzMajor/v1": group.major })),
        ),
        ("stacks", (!stacks.is_empty()).then(|| json!(stacks))),
        ("baselineState", baseline.map(|state| json!(state))),
    ])
}

/// Returns the SARIF location of the group's crash in the source code or, if that is unknown, of
/// the group's input file, because viewers ignore results without a file.
fn location(group: &Finding) -> Value {
    let place = group.place.as_deref().unwrap_or_default();
    let function = place.rsplit_once(" at ").map(|(function, _)| function);
    let physical = match group.source.as_deref().and_then(Place::parse) {
        Some(place) => {
            let around = group.trace.excerpt(AROUND).map(region);
            in_source(&place, around)
        }
        None => json!({ "artifactLocation": artifact(&group.file.to_string_lossy()) }),
    };
    object([
        ("physicalLocation", Some(physical)),
        ("logicalLocations", function.map(logical)),
    ])
}

fn in_source(place: &Place, around: Option<Value>) -> Value {
    object([
        ("artifactLocation", Some(artifact(&place.file))),
        ("region", Some(json!({ "startLine": place.line }))),
        ("contextRegion", around),
    ])
}

fn logical(function: &str) -> Value {
    json!([{ "fullyQualifiedName": function, "kind": "function" }])
}

/// Converts an excerpt (source lines around a location of a crash) to a SARIF region that contains
/// the lines as text.
fn region(excerpt: Excerpt) -> Value {
    json!({
        "startLine": excerpt.first,
        "endLine": excerpt.first + excerpt.text.len().saturating_sub(1) as u64,
        "snippet": { "text": excerpt.text.join("\n") },
    })
}

/// Converts a stack of a crash to a SARIF stack with its frames. Inlined functions of the target
/// become separate frames.
fn stack(stack: &report::Stack) -> Value {
    let frames = stack.frames.iter().take(FRAMES).flat_map(|frame| {
        let own = frame.own_sites();
        let sites = if own.is_empty() {
            vec![frame.site()]
        } else {
            own
        };
        let module = printable(&frame.module);
        sites
            .into_iter()
            .map(move |site| stack_frame(&site, &module))
    });
    let frames: Vec<Value> = frames.collect();
    json!({ "message": { "text": stack.title }, "frames": frames })
}

fn stack_frame(site: &Site, module: &str) -> Value {
    let place = site.source.as_deref().and_then(Place::parse);
    let function = site.function.as_deref();
    let location = object([
        (
            "physicalLocation",
            place.map(|place| in_source(&place, None)),
        ),
        (
            "logicalLocations",
            function.map(|name| logical(&printable(name))),
        ),
        (
            "message",
            Some(json!({ "text": printable(&site.to_string()) })),
        ),
    ]);
    json!({ "location": location, "module": module })
}

/// Returns the SARIF location of a file: its URI; a relative path is relative to the root of the
/// sources.
fn artifact(file: &str) -> Value {
    let mut uri = String::new();
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(byte as char);
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    match uri.starts_with('/') {
        true => json!({ "uri": format!("file://{uri}") }),
        false => json!({ "uri": uri, "uriBaseId": "%SRCROOT%" }),
    }
}
