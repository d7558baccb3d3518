//! Links to a part of a page lead to a heading that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::documents;

/// The name that mdBook and GitHub give to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|one| match one {
        ' ' => Some('-'),
        one if one.is_alphanumeric() || one == '-' || one == '_' => one.to_lowercase().next(),
        _ => None,
    });
    kept.collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code && line.starts_with('#') {
            found.insert(anchor(line.trim_start_matches('#')));
        }
    }
    found
}

#[test]
fn each_anchor_of_a_link_is_a_heading() {
    let documents = documents();
    let known: BTreeMap<&Path, BTreeSet<String>> = documents
        .iter()
        .map(|(file, text)| (file.as_path(), anchors(text)))
        .collect();
    let mut dead = Vec::new();
    let mut count = 0;
    for (file, text) in &documents {
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let Some((page, anchor)) = link.split_once('#') else {
                continue;
            };
            let page = match page {
                "" => file.clone(),
                page => file.with_file_name(page),
            };
            // What is elsewhere is not ours, or not Markdown.
            let Some(anchors) = known.get(page.as_path()) else {
                continue;
            };
            count += 1;
            if !anchors.contains(anchor) {
                dead.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(
        dead.is_empty(),
        "links to no heading:\n  {}",
        dead.join("\n  ")
    );
    assert!(count >= 5, "only {count} such links");
}

#[test]
fn headings_become_anchors_as_renderers_make_them() {
    assert_eq!(
        anchor(" A plain `cargo fuzz run`"),
        "a-plain-cargo-fuzz-run"
    );
    assert_eq!(
        anchor("Crash files: `triage` and `check`"),
        "crash-files-triage-and-check"
    );
    assert_eq!(
        anchors("# A b\n```\n# c\n```\n## D?"),
        ["a-b", "d"].map(str::to_owned).into()
    );
}
