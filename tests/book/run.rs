//! The commands of the documents are run, page by page.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::blocks::{Block, Command, blocks};
use crate::documents;
use crate::output::fits;
use crate::stage::{Said, Stage};

/// Exit codes of a command that works: done, crashes found, only known ones. The others say that
/// it is wrong, or has nothing to work on.
const WORKS: [i32; 3] = [0, 1, 4];
/// Programs of the system that pages fuzz.
const SYSTEM: [&str; 2] = ["boxes", "file"];

/// A document with what is run of it.
struct Page {
    file: PathBuf,
    text: String,
    blocks: Vec<Block>,
}

fn pages() -> Vec<Page> {
    let runnable = |block: &Block| block.calls_ddfuzz() && block.not_run.is_none();
    let pages = documents().into_iter().map(|(file, text)| Page {
        blocks: blocks(&text).into_iter().filter(runnable).collect(),
        file,
        text,
    });
    pages.filter(|page| !page.blocks.is_empty()).collect()
}

/// What is wrong with what a command did.
fn wrong(command: &Command, said: &Said) -> Option<String> {
    // What a script shows is a crash, so that is how it ends.
    let shows = command.text.contains("/reproduce.sh") && said.code == Some(139);
    let works = shows || said.code.is_some_and(|code| WORKS.contains(&code));
    let lines: Vec<&str> = said.text.lines().collect();
    let fits = command
        .said
        .as_ref()
        .is_none_or(|expected| fits(expected, &lines));
    (!works || !fits).then(|| {
        let expected = command.said.as_ref().filter(|_| !fits);
        let expected = expected.map_or(String::new(), |lines| {
            format!("\n--- the page has\n{}", lines.join("\n"))
        });
        format!(
            "{}\nends with {:?} and says\n{}{expected}",
            command.text, said.code, said.text
        )
    })
}

fn run(page: &Page) -> Vec<String> {
    let stage = Stage::of(&page.file, &page.text);
    let mut found = Vec::new();
    for block in &page.blocks {
        for command in block.commands() {
            if let Some(wrong) = wrong(&command, &stage.run(&command.text)) {
                found.push(format!("{}:{}: {wrong}", page.file.display(), block.line));
            }
        }
    }
    found
}

#[test]
fn each_command_of_the_documents_works() {
    if !SYSTEM
        .iter()
        .all(|name| crate::needs::program(name).is_some())
    {
        return;
    }
    let pages = pages();
    let blocks: usize = pages.iter().map(|page| page.blocks.len()).sum();
    assert!(blocks >= 16, "only {blocks} blocks are run");
    let queue = Mutex::new(pages.iter());
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(page) = next else { break };
                    let wrong = run(page);
                    found.lock().unwrap().extend(wrong);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn what_is_not_run_has_a_reason_and_is_rare() {
    let mut count = 0;
    for (file, text) in documents() {
        for block in blocks(&text).iter().filter(|block| block.not_run.is_some()) {
            let place = format!("{}:{}", file.display(), block.line);
            assert!(
                block.calls_ddfuzz(),
                "{place}: nothing of ddfuzz would be run"
            );
            assert!(
                block.not_run.as_ref().is_some_and(|why| why.len() > 10),
                "{place}: why?"
            );
            count += 1;
        }
        let marks = text.matches("<!-- not run: ").count();
        let used = blocks(&text)
            .iter()
            .filter(|block| block.not_run.is_some())
            .count();
        assert_eq!(
            marks,
            used,
            "{}: a reason that is above no block",
            file.display()
        );
    }
    assert!(count <= 18, "{count} blocks are not run");
}

#[test]
fn a_command_that_fails_or_says_something_else_is_found_out() {
    let stage = Stage::of(Path::new("page.md"), "");
    let wrong = |text: &str, said: Option<&[&str]>| {
        let said = said.map(|lines| lines.iter().map(|&line| line.to_owned()).collect());
        let text = text.to_owned();
        let command = Command { text, said };
        super::run::wrong(&command, &stage.run(&command.text)).is_some()
    };
    assert!(!wrong("ddfuzz triage crash-1 -- ./program @@", None));
    assert!(wrong(
        "ddfuzz triage crash-1 --agianst x -- ./program @@",
        None
    ));
    assert!(wrong("ddfuzz min good -- ./program @@", None));
    assert!(!wrong(
        "ddfuzz show none 2>&1 | tail -1; true",
        Some(&["hint: [..]"])
    ));
    assert!(wrong(
        "ddfuzz show none; true",
        Some(&["no groups in none"])
    ));
}
