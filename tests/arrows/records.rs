//! The store and its reports read records: they run no target, name no crash and search nothing.

use crate::{assert_none, sources};

/// Types that run targets, name crashes or search.
const ACTORS: [&str; 9] = [
    "Executor",
    "Observer",
    "Traceable",
    "Triager",
    "Oracle",
    "CrashClassifier",
    "CrashOracle",
    "Search",
    "Ddmin",
];

#[test]
fn the_store_and_its_reports_know_records_only() {
    let mut found = Vec::new();
    for (file, paths) in sources("ddfuzz-store") {
        let actors = paths.words.iter();
        let actors = actors.filter(|(word, _)| ACTORS.contains(&word.as_str()));
        found.extend(actors.map(|(word, line)| format!("{}:{line}: {word}", file.display())));
    }
    assert_none("more than records", &found);
}

#[test]
fn the_output_directory_does_not_depend_on_reports() {
    let mut found = Vec::new();
    for (file, paths) in sources("ddfuzz-store") {
        if file.starts_with("crates/ddfuzz-store/src/report") || file.ends_with("lib.rs") {
            continue;
        }
        let modules = paths.modules().filter(|(module, _)| *module == "report");
        found.extend(modules.map(|(_, line)| format!("{}:{line}", file.display())));
    }
    assert_none("the store uses its reports", &found);
}
