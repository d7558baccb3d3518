//! Which module may use which.

use std::collections::BTreeMap;
use std::path::Path;

use crate::paths::Paths;
use crate::{module_of, sources};

/// What each module may use, from the leaves up.
const ARROWS: &[(&str, &[&str])] = &[
    ("delta", &[]),
    ("files", &[]),
    // From `delta` what a comparison is: runs tell it, searches read it.
    ("exec", &["delta", "files"]),
    ("triage", &["exec", "files"]),
    ("minimize", &["delta", "exec", "triage", "files"]),
    ("store", &["exec", "triage", "minimize", "files"]),
    // From `store` the records of groups and entries, which it shows.
    ("report", &["exec", "triage", "minimize", "store", "files"]),
    (
        "campaign",
        &[
            "delta", "exec", "triage", "minimize", "store", "report", "files",
        ],
    ),
    // From `campaign` how crashes are filed and minimized.
    (
        "corpus",
        &[
            "delta", "exec", "triage", "minimize", "store", "report", "files", "campaign",
        ],
    ),
    (
        "cli",
        &[
            "delta", "exec", "triage", "minimize", "store", "report", "files", "corpus", "campaign",
        ],
    ),
    ("main", &["cli"]),
    ("bin", &["cli"]),
    // Declares the modules, and uses none.
    ("lib", &[]),
];

/// Modules that know of others nothing but their records.
const KEEPERS_OF_RECORDS: [&str; 2] = ["store", "report"];
/// What runs targets, names crashes or searches.
const ACTORS: [&str; 9] = [
    "Executor",
    "Observer",
    "Traceable",
    "Triager",
    "Oracle",
    "CrashOracle",
    "Keyer",
    "Search",
    "Ddmin",
];

fn allowed(module: &str) -> Option<&'static [&'static str]> {
    let found = ARROWS.iter().find(|(name, _)| *name == module);
    found.map(|(_, allowed)| *allowed)
}

/// The arrows of a file that point the wrong way.
fn turned(file: &Path, paths: &Paths) -> Vec<String> {
    let module = module_of(file);
    let Some(allowed) = allowed(&module) else {
        return vec![format!(
            "{}: {module} is not in the table of arrows",
            file.display()
        )];
    };
    // The program sees the library from outside.
    let ours = paths
        .found
        .iter()
        .filter_map(|found| match &found.parts[..] {
            [root, used, ..] if root == "ddfuzz" => Some((used.as_str(), found.line)),
            _ => None,
        });
    paths
        .modules()
        .chain(ours)
        .filter(|(used, _)| *used != module && !allowed.contains(used))
        // Items at the crate's root are no modules.
        .filter(|(used, _)| self::allowed(used).is_some())
        .map(|(used, line)| format!("{}:{line}: {module} -> {used}", file.display()))
        .collect()
}

#[test]
fn no_arrow_between_modules_turns() {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|(file, paths)| turned(file, paths))
        .collect();
    assert!(
        found.is_empty(),
        "arrows that point the wrong way:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn store_and_report_know_records_only() {
    let mut found = Vec::new();
    for (file, paths) in sources() {
        if KEEPERS_OF_RECORDS.contains(&module_of(&file).as_str()) {
            let actors = paths
                .words
                .iter()
                .filter(|(word, _)| ACTORS.contains(&word.as_str()));
            found.extend(actors.map(|(word, line)| format!("{}:{line}: {word}", file.display())));
        }
    }
    assert!(
        found.is_empty(),
        "more than records:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn the_table_of_arrows_has_no_cycle() {
    let place: BTreeMap<&str, usize> = ARROWS
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (*name, at))
        .collect();
    for (module, used) in ARROWS {
        for used in *used {
            assert!(place[used] < place[module], "{module} -> {used}");
        }
    }
}

#[test]
fn a_turned_arrow_is_found_out_however_it_is_written() {
    let file = Path::new("src/exec/run.rs");
    let good = "use crate::files::Lock; use super::Ended; use crate::exec::Way; use nix::triage;";
    assert_eq!(turned(file, &Paths::of(file, good)), [""; 0]);
    for bad in [
        "use crate::triage::Key;",
        "use crate::{files::Lock, triage::Key};",
        "use super::super::triage;",
        "fn a() -> crate::triage::Key { loop {} }",
        "mod inner { use super::super::super::triage::Key; }",
        "made_by!(crate::triage::Key);",
    ] {
        let found = turned(file, &Paths::of(file, bad));
        assert_eq!(found, ["src/exec/run.rs:1: exec -> triage"], "{bad}");
    }
    let program = Path::new("src/main.rs");
    let found = turned(
        program,
        &Paths::of(program, "fn main() { ddfuzz::exec::start() }"),
    );
    assert_eq!(found, ["src/main.rs:1: main -> exec"]);
    let stranger = Path::new("src/extra/mod.rs");
    assert_eq!(turned(stranger, &Paths::of(stranger, "")).len(), 1);
}
