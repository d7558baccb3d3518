//! SARIF 2.1.0, the format of code scanning.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use serde_sarif::sarif::{
    ArtifactContent, ArtifactLocation, Location, LogicalLocation, Message,
    MultiformatMessageString, PhysicalLocation, Region, ReportingDescriptor, Result as SarifResult,
    ResultLevel, Run, SCHEMA_URL, Sarif, Stack, StackFrame, Tool, ToolComponent, Version,
};

use super::{Finding, Findings};
use crate::Kind;
use crate::report;
use crate::report::source::{Excerpt, Place};
use crate::report::text::printable;
use ddfuzz_triage::{Severity, Site};

/// Lines of the source before and behind the place.
const AROUND: u64 = 3;
/// Frames of a stack.
const FRAMES: usize = 64;

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
    let message = match &group.trace.message {
        Some(message) => format!(": {message}"),
        None => String::new(),
    };
    let text = format!(
        "{}{message} ({}). Reproducer: {}, {}. Group {}.",
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
    let stacks: Vec<Stack> = group.trace.stacks.iter().map(stack).collect();
    result.stacks = (!stacks.is_empty()).then_some(stacks);
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
    let mut physical = match group.source.as_deref().and_then(Place::parse) {
        Some(place) => in_source(&place),
        None => PhysicalLocation::builder()
            .artifact_location(artifact(&group.file.to_string_lossy()))
            .build(),
    };
    if physical.region.is_some() {
        physical.context_region = group.trace.excerpt(AROUND).map(region);
    }
    let mut location = Location::builder().physical_location(physical).build();
    location.logical_locations = function.map(logical);
    location
}

fn in_source(place: &Place) -> PhysicalLocation {
    let line = i64::try_from(place.line).unwrap_or(i64::MAX);
    PhysicalLocation::builder()
        .artifact_location(artifact(&place.file))
        .region(Region::builder().start_line(line).build())
        .build()
}

fn logical(function: &str) -> Vec<LogicalLocation> {
    let function = LogicalLocation::builder().fully_qualified_name(function);
    vec![function.kind("function").build()]
}

/// The lines around a place, with their text.
fn region(excerpt: Excerpt) -> Region {
    let last = excerpt.first + excerpt.text.len().saturating_sub(1) as u64;
    let text = excerpt.text.join("\n");
    Region::builder()
        .start_line(i64::try_from(excerpt.first).unwrap_or(i64::MAX))
        .end_line(i64::try_from(last).unwrap_or(i64::MAX))
        .snippet(ArtifactContent::builder().text(text).build())
        .build()
}

/// A stack with all its frames, as viewers fold them themselves; functions of the user's that are
/// inlined have frames of their own.
fn stack(stack: &report::Stack) -> Stack {
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
    Stack::builder()
        .message(Message::builder().text(stack.title).build())
        .frames(frames.collect::<Vec<_>>())
        .build()
}

fn stack_frame(site: &Site, module: &str) -> StackFrame {
    let mut location = Location::builder().build();
    location.physical_location = (site.source.as_deref())
        .and_then(Place::parse)
        .map(|place| in_source(&place));
    location.logical_locations = site
        .function
        .as_deref()
        .map(|name| logical(&printable(name)));
    let text = printable(&site.to_string());
    location.message = Some(Message::builder().text(text).build());
    StackFrame::builder()
        .location(location)
        .module(module)
        .build()
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
