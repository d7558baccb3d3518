//! Which crate may depend on what.

use std::collections::BTreeMap;

use crate::{assert_none, tree};

/// The crates from the leaves up, and which of ours each may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("ddfuzz-delta", &[]),
    ("ddfuzz-model", &[]),
    ("ddfuzz-structure", &["ddfuzz-delta"]),
    ("ddfuzz-target", &[]),
    ("ddfuzz-afl", &["ddfuzz-delta"]),
    // From `ddfuzz-delta` the type of a comparison: runs report it, searches read it.
    ("ddfuzz-exec", &["ddfuzz-delta", "ddfuzz-model"]),
    ("ddfuzz-triage", &["ddfuzz-exec", "ddfuzz-model"]),
    (
        "ddfuzz-minimize",
        &[
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-model",
            "ddfuzz-structure",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz-explain",
        &[
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-model",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz-store",
        &[
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz-campaign",
        &[
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-structure",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz-corpus",
        &[
            "ddfuzz-campaign",
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz-changes",
        &[
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-structure",
            "ddfuzz-triage",
        ],
    ),
    (
        "ddfuzz",
        &[
            "ddfuzz-campaign",
            "ddfuzz-changes",
            "ddfuzz-corpus",
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-structure",
            "ddfuzz-target",
            "ddfuzz-triage",
        ],
    ),
];

/// Other dependencies, and the crates that may use each; `ddfuzz` is the command line.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    // Names and lines of frames, and (as `addr2line::gimli`) unwind tables.
    ("addr2line", &["ddfuzz-triage"]),
    // Bytes inside JSON.
    ("base64", &["ddfuzz-model", "ddfuzz-structure"]),
    // Keys; names of contents; the classic generator's stream.
    (
        "blake3",
        &[
            "ddfuzz",
            "ddfuzz-campaign",
            "ddfuzz-changes",
            "ddfuzz-corpus",
            "ddfuzz-exec",
            "ddfuzz-minimize",
            "ddfuzz-store",
            "ddfuzz-triage",
        ],
    ),
    ("cc", &["ddfuzz-exec"]),
    ("clap", &["ddfuzz"]),
    ("clap_complete", &["ddfuzz"]),
    ("clap_mangen", &["ddfuzz"]),
    ("console", &["ddfuzz"]),
    ("cpp_demangle", &["ddfuzz-triage"]),
    ("crossbeam", &["ddfuzz-campaign", "ddfuzz-minimize"]),
    ("flate2", &["ddfuzz-campaign", "ddfuzz-structure"]),
    ("framehop", &["ddfuzz-triage"]),
    // Variables, types, lines, and registers of callers.
    ("gimli", &["ddfuzz-explain"]),
    (
        "iced-x86",
        &["ddfuzz-exec", "ddfuzz-explain", "ddfuzz-triage"],
    ),
    ("indicatif", &["ddfuzz"]),
    ("landlock", &["ddfuzz-exec"]),
    // The coverage-guided campaign; no other crate sees a type of LibAFL.
    ("libafl", &["ddfuzz-campaign"]),
    ("libafl_bolts", &["ddfuzz-campaign"]),
    // What nix does not wrap: wait statuses, ptrace records, numbers of signals and errors.
    (
        "libc",
        &[
            "ddfuzz",
            "ddfuzz-campaign",
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-triage",
        ],
    ),
    ("libloading", &["ddfuzz-structure"]),
    // Debug files of distributions; bundled targets; files of xz.
    (
        "lzma-rust2",
        &["ddfuzz-exec", "ddfuzz-structure", "ddfuzz-triage"],
    ),
    // Templates of HTML pages.
    ("maud", &["ddfuzz-store"]),
    ("md-5", &["ddfuzz-structure"]),
    ("memchr", &["ddfuzz-exec", "ddfuzz-structure"]),
    (
        "nix",
        &[
            "ddfuzz",
            "ddfuzz-campaign",
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-triage",
        ],
    ),
    (
        "object",
        &["ddfuzz-exec", "ddfuzz-explain", "ddfuzz-triage"],
    ),
    ("ratatui-core", &["ddfuzz"]),
    ("ratatui-crossterm", &["ddfuzz"]),
    // What the output of a failing run matches.
    ("regex", &["ddfuzz-changes", "ddfuzz-explain"]),
    ("rustc-demangle", &["ddfuzz-triage"]),
    (
        "schemars",
        &[
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-triage",
        ],
    ),
    ("seccompiler", &["ddfuzz-exec"]),
    // Records; in `ddfuzz-delta` behind a feature, and on two enums.
    (
        "serde",
        &[
            "ddfuzz",
            "ddfuzz-campaign",
            "ddfuzz-changes",
            "ddfuzz-corpus",
            "ddfuzz-delta",
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-triage",
        ],
    ),
    (
        "serde_json",
        &[
            "ddfuzz",
            "ddfuzz-campaign",
            "ddfuzz-corpus",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
        ],
    ),
    ("sha1", &["ddfuzz", "ddfuzz-structure"]),
    ("sha2", &["ddfuzz-structure"]),
    ("signal-hook", &["ddfuzz"]),
    (
        "tempfile",
        &[
            "ddfuzz",
            "ddfuzz-changes",
            "ddfuzz-corpus",
            "ddfuzz-exec",
            "ddfuzz-model",
        ],
    ),
    // Errors of the libraries; those of the command line are `src/cli/failure.rs`.
    (
        "thiserror",
        &[
            "ddfuzz-campaign",
            "ddfuzz-changes",
            "ddfuzz-corpus",
            "ddfuzz-exec",
            "ddfuzz-explain",
            "ddfuzz-minimize",
            "ddfuzz-model",
            "ddfuzz-store",
            "ddfuzz-structure",
            "ddfuzz-triage",
        ],
    ),
    ("toml", &["ddfuzz"]),
    ("toml_edit", &["ddfuzz"]),
    // Syntax trees of texts that are minimized.
    ("tree-sitter", &["ddfuzz-structure"]),
    ("tree-sitter-bash", &["ddfuzz-structure"]),
    ("tree-sitter-c", &["ddfuzz-structure"]),
    ("tree-sitter-html", &["ddfuzz-structure"]),
    ("tree-sitter-javascript", &["ddfuzz-structure"]),
    ("tree-sitter-json", &["ddfuzz-structure"]),
    ("tree-sitter-language", &["ddfuzz-structure"]),
    ("tree-sitter-lua", &["ddfuzz-structure"]),
    ("tree-sitter-python", &["ddfuzz-structure"]),
    ("tree-sitter-rust", &["ddfuzz-structure"]),
    ("tree-sitter-xml", &["ddfuzz-structure"]),
    ("weezl", &["ddfuzz-structure"]),
];

/// The names of `[dependencies]` and `[build-dependencies]` in a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = matches!(line, "[dependencies]" | "[build-dependencies]");
        } else if inside && !line.starts_with('#') {
            let name = line.split_once(['=', '.']).map(|(name, _)| name.trim());
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names
}

/// The crates of the workspace with what their manifests name.
fn manifests() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for file in tree::files() {
        let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
        let name = match &parts[..] {
            [manifest] if manifest == "Cargo.toml" => "ddfuzz".to_owned(),
            [crates, name, manifest] if crates == "crates" && manifest == "Cargo.toml" => {
                name.clone().into_owned()
            }
            _ => continue,
        };
        let text = std::fs::read_to_string(tree::root().join(&file)).expect("it is UTF-8");
        found.insert(name, dependencies(&text));
    }
    found
}

#[test]
fn each_crate_depends_on_what_the_tables_allow() {
    let all = manifests();
    assert!(all.len() > 8, "only {:?} were found", all.keys());
    let mut found = Vec::new();
    for (name, used) in &all {
        let Some((_, ours)) = ARROWS.iter().find(|(known, _)| known == name) else {
            found.push(format!("{name} is not in the table of arrows"));
            continue;
        };
        for used in used {
            let others = DEPENDENCIES.iter().find(|(known, _)| known == used);
            let may = match others {
                Some((_, crates)) => crates.contains(&name.as_str()),
                None => ours.contains(&used.as_str()),
            };
            if !may {
                found.push(format!("{name} -> {used}"));
            }
        }
    }
    assert_none("dependencies that no table allows", &found);
}

#[test]
fn the_tables_name_nothing_that_is_not_there() {
    let all = manifests();
    let mut stale = Vec::new();
    for (dependency, crates) in DEPENDENCIES {
        for name in *crates {
            let has = |used: &Vec<String>| used.iter().any(|one| one == dependency);
            if !all.get(*name).is_some_and(has) {
                stale.push(format!("{name} -> {dependency}"));
            }
        }
    }
    stale.extend(
        (ARROWS.iter())
            .filter(|(name, _)| !all.contains_key(*name))
            .map(|(name, _)| (*name).to_owned()),
    );
    assert_none("rows of the tables that nothing uses", &stale);
}

#[test]
fn the_table_of_arrows_has_no_cycle() {
    let rank = |name: &str| ARROWS.iter().position(|(known, _)| *known == name);
    for (name, used) in ARROWS {
        for used in *used {
            assert!(rank(used) < rank(name), "{name} -> {used}");
        }
    }
}

#[test]
fn dependencies_are_read_from_manifests() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\n# b\nc.workspace = true\n\
                    d = \"1\"\n[dev-dependencies]\ne = \"1\"\n[build-dependencies]\nf = \"1\"\n";
    assert_eq!(dependencies(manifest), ["c", "d", "f"]);
}
