//! What a campaign came to, less what may differ from one machine, moment or number of workers to
//! the next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Files that tell of the course, not of the outcome.
const COURSE: [&str; 3] = [".lock", "ddfuzz.json", "stats.jsonl"];
/// Keys of records that tell of times, hosts and limits.
const MAY_DIFFER: [&str; 6] = [
    "us",
    "spent_ms",
    "speculative",
    "limits",
    "first_seen",
    "checks",
];
/// Keys of `crash.json` that are the same wherever the crash is seen.
const OF_CRASH: [&str; 4] = ["keys", "class", "found", "confidence"];

/// Every file of an output directory by its relative path, as text to compare.
pub fn outcome(root: &Path) -> BTreeMap<String, String> {
    let campaign = record(&root.join("ddfuzz.json"))["campaign"].clone();
    let campaign = campaign.as_str().unwrap_or_default().to_owned();
    let mut found = BTreeMap::new();
    for path in files(root) {
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if COURSE.contains(&name.as_str()) {
            continue;
        }
        let text = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => of_record(&path),
            Some("jsonl") => log(&path),
            _ => blake3::hash(&std::fs::read(&path).unwrap()).to_string(),
        };
        found.insert(name, text.replace(&campaign, "CAMPAIGN"));
    }
    found
}

/// A log without its `check` lines and what else may differ.
pub fn log(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{}: a torn last line", path.display());
    let lines = text.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value
    });
    let lines = lines.filter(|line| line["kind"] != "check");
    let lines: Vec<String> = lines.map(|line| without(line).to_string()).collect();
    lines.join("\n")
}

fn of_record(path: &Path) -> String {
    let record = record(path);
    if path.file_name().is_some_and(|name| name == "crash.json") {
        return OF_CRASH.map(|key| record[key].to_string()).join("\n");
    }
    without(record).to_string()
}

fn without(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter();
            let kept = kept.filter(|(key, _)| !MAY_DIFFER.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key, without(value))).collect())
        }
        other => other,
    }
}

/// A whole record; nothing in an output directory is ever torn.
pub fn record(path: &Path) -> Value {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{} is torn: {error}", path.display())),
        Err(_) => json!({}),
    }
}

/// All files below `root`.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Fails with the names of the files that differ.
#[track_caller]
pub fn assert_same(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>, what: &str) {
    let names = one.keys().chain(other.keys());
    let differing: Vec<_> = names
        .filter(|name| one.get(*name) != other.get(*name))
        .map(|name| (name, one.get(name), other.get(name)))
        .map(|(name, one, other)| format!("{name}\n  {}\n  {}", shown(one), shown(other)))
        .collect();
    assert!(differing.is_empty(), "{what}:\n{}", differing.join("\n"));
}

/// The beginning of a text.
fn shown(text: Option<&String>) -> String {
    text.map_or_else(
        || "none".to_owned(),
        |text| text.chars().take(300).collect(),
    )
}
