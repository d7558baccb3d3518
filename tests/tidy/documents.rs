//! The papers tell the truth where that can be checked.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::assert_none;
use crate::tree::{files, root};

fn read(file: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(file)).expect("documents are UTF-8")
}

fn documents() -> Vec<PathBuf> {
    let is_markdown = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "md");
    files().into_iter().filter(is_markdown).collect()
}

/// The targets of the links in a Markdown text, with their lines; code is skipped.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        // Every second part stands between backquotes.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for link in prose.split("](").skip(1) {
            if let Some((target, _)) = link.split_once(')') {
                found.push((index + 1, target.to_owned()));
            }
        }
    }
    found
}

/// The file or folder that a link in `document` leads to; `None` for links that leave the tree.
fn destination(document: &Path, link: &str) -> Option<PathBuf> {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let mut place = PathBuf::new();
    let folder = document.parent().unwrap_or(Path::new(""));
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir if place.pop() => {}
            Component::CurDir => {}
            other => place.push(other),
        }
    }
    Some(place)
}

#[test]
fn each_link_leads_somewhere() {
    let known = files();
    let mut dead = Vec::new();
    for document in documents() {
        for (line, link) in links(&read(&document)) {
            let Some(place) = destination(&document, &link) else {
                continue;
            };
            // Not what happens to lie on this disk: only what is committed.
            if !known.iter().any(|file| file.starts_with(&place)) {
                dead.push(format!("{}:{line}: {link}", document.display()));
            }
        }
    }
    assert_none("links that lead nowhere", &dead);
}

/// Fails where a folder below `root` is not named in the document that maps it.
fn assert_mapped(root: &str, document: &str) {
    let map = read(document);
    let mut folders = BTreeSet::new();
    for file in files() {
        let inside = file.strip_prefix(root).ok().and_then(Path::parent);
        folders.extend(inside.map(|folder| format!("{}/", folder.display())));
    }
    folders.remove("/");
    let missing: Vec<String> = folders
        .into_iter()
        .filter(|folder| !map.contains(&format!("`{folder}`")))
        .collect();
    assert_none(&format!("folders that {document} does not name"), &missing);
}

/// Fails where a source file below `root` has no row in the document that maps it: its path below
/// `root`, or its name, in backticks. Roots of modules stand for their folder, and files of tests
/// for what they test.
fn assert_rows(root: &str, document: &str) {
    let map = read(document);
    let mut missing = Vec::new();
    for file in files() {
        let Ok(inside) = file.strip_prefix(root) else {
            continue;
        };
        let name = inside.file_name().unwrap_or_default().to_string_lossy();
        let is_source = name.ends_with(".rs") || name.ends_with(".c") || name.ends_with(".h");
        let is_mapped = |name: &str| map.contains(&format!("`{name}`"));
        if is_source
            && !["lib.rs", "main.rs", "mod.rs", "tests.rs"].contains(&&*name)
            && !is_mapped(&name)
            && !is_mapped(&inside.display().to_string())
        {
            missing.push(file.display().to_string());
        }
    }
    assert_none(&format!("files without a row in {document}"), &missing);
}

#[test]
fn each_folder_and_file_of_a_crate_is_on_its_map() {
    let map = read("ARCHITECTURE.md");
    let mut crates = BTreeSet::new();
    for file in files() {
        let mut parts = file.iter().map(|part| part.to_string_lossy().into_owned());
        if parts.next().as_deref() == Some("crates") {
            crates.extend(parts.next());
        }
    }
    assert!(crates.len() > 8, "only {crates:?} were found");
    for name in crates {
        assert!(map.contains(&format!("`{name}`")), "{name} is on no map");
        let folder = format!("crates/{name}");
        assert_mapped(&format!("{folder}/src"), &format!("{folder}/README.md"));
        assert_rows(&format!("{folder}/src"), &format!("{folder}/README.md"));
    }
    assert_mapped("src/cli", "src/cli/README.md");
    assert_rows("src/cli", "src/cli/README.md");
}

#[test]
fn each_page_of_the_book_is_in_its_summary() {
    let summary = read("docs/src/SUMMARY.md");
    let missing: Vec<String> = documents()
        .iter()
        .filter_map(|file| Some(file.strip_prefix("docs/src").ok()?.display().to_string()))
        .filter(|page| page != "SUMMARY.md" && !summary.contains(&format!("({page})")))
        .collect();
    assert_none("pages that the summary does not list", &missing);
}

#[test]
fn links_are_told_from_code() {
    let text = "a [b](c.md#d) and `[e](f)` and\n```\n[g](h)\n```\n[i](https://j) [k](../l/)";
    let found = links(text);
    let expected = [(1, "c.md#d"), (5, "https://j"), (5, "../l/")];
    assert_eq!(found, expected.map(|(line, link)| (line, link.to_owned())));
    let page = Path::new("docs/src/m.md");
    assert_eq!(destination(page, "c.md#d"), Some("docs/src/c.md".into()));
    assert_eq!(destination(page, "../../n"), Some("n".into()));
    assert_eq!(destination(page, "https://j"), None);
    assert_eq!(destination(page, "#d"), None);
}
