//! SARIF 2.1.0, the format of code scanning.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use serde_sarif::sarif::{
    ArtifactLocation, Location, LogicalLocation, Message, MultiformatMessageString,
    PhysicalLocation, Region, ReportingDescriptor, Result as SarifResult, ResultLevel, Run,
    SCHEMA_URL, Sarif, Tool, ToolComponent, Version,
};

use super::{Finding, Findings};
use crate::store::Kind;
use crate::triage::Severity;

/// One run of ddfuzz with a result a group; its rules are the classes. A result is the same as an
/// earlier one by its major key, and is said to be new or unchanged where that is known.
pub fn sarif(findings: &Findings) -> String {
    let classes: BTreeSet<&str> = findings
        .groups
        .iter()
        .map(|one| one.class.as_str())
        .collect();
    let rules = classes.iter().map(|class| {
        let text = format!("{class}, found by fuzzing");
        ReportingDescriptor::builder()
            .id(*class)
            .short_description(MultiformatMessageString::builder().text(text).build())
            .build()
    });
    let driver = ToolComponent::builder()
        .name("ddfuzz")
        .version(env!("CARGO_PKG_VERSION"))
        .rules(rules.collect::<Vec<_>>())
        .build();
    let results: Vec<SarifResult> = findings.groups.iter().map(result).collect();
    let run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .results(results)
        .build();
    let log = Sarif::builder()
        .schema(SCHEMA_URL)
        .version(json!(Version::V2_1_0))
        .runs(vec![run])
        .build();
    // Of strings and numbers alone, it has a form in JSON.
    serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
}

fn result(group: &Finding) -> SarifResult {
    let level = match (group.kind, group.severity) {
        (Kind::Crash, Severity::Medium | Severity::High) => ResultLevel::Error,
        _ => ResultLevel::Warning,
    };
    let text = format!(
        "{}: {}. Reproducer: {}, {}. Group {}.",
        group.title(),
        group.severity_reason,
        group.file.display(),
        group.reduction(),
        group.major,
    );
    let key = BTreeMap::from([("ddfuzzMajor/v1".to_owned(), group.major.clone())]);
    let mut result = SarifResult::builder()
        .rule_id(group.class.clone())
        .level(level)
        .message(Message::builder().text(text).build())
        .locations(vec![location(group)])
        .partial_fingerprints(key)
        .build();
    result.baseline_state = group.is_new.map(|is_new| match is_new {
        true => json!("new"),
        false => json!("unchanged"),
    });
    result
}

/// Where it is in the source, or which file is the input: viewers pass over what is nowhere.
fn location(group: &Finding) -> Location {
    let place = group.place.as_deref().unwrap_or_default();
    let function = place.rsplit_once(" at ").map(|(function, _)| function);
    let physical = match group.source.as_deref().and_then(source) {
        Some((file, line)) => PhysicalLocation::builder()
            .artifact_location(artifact(&file))
            .region(Region::builder().start_line(line).build())
            .build(),
        None => PhysicalLocation::builder()
            .artifact_location(artifact(&group.file.to_string_lossy()))
            .build(),
    };
    let mut location = Location::builder().physical_location(physical).build();
    location.logical_locations = function.map(|name| {
        let function = LogicalLocation::builder().fully_qualified_name(name);
        vec![function.kind("function").build()]
    });
    location
}

/// The file and the line of `FILE:LINE` or `FILE:LINE:COLUMN`.
fn source(text: &str) -> Option<(String, i64)> {
    let (rest, last) = text.rsplit_once(':')?;
    let last: i64 = last.parse().ok()?;
    let (file, line) = match rest.rsplit_once(':') {
        Some((file, line)) => match line.parse() {
            Ok(line) => (file, line),
            Err(_) => (rest, last),
        },
        None => (rest, last),
    };
    (!file.is_empty() && line > 0).then(|| (file.to_owned(), line))
}

/// A file as a URI, relative to the root of the sources where it is relative.
fn artifact(file: &str) -> ArtifactLocation {
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
        true => ArtifactLocation::builder()
            .uri(format!("file://{uri}"))
            .build(),
        false => ArtifactLocation::builder()
            .uri(uri)
            .uri_base_id("%SRCROOT%")
            .build(),
    }
}
