//! What fuzzing of the parsers has kept (`corpora/parsers`): nothing of it may make one panic, and
//! each answers what it answers for sound input.

use std::path::{Path, PathBuf};

use ddfuzz::triage::memory::Maps;
use ddfuzz::triage::{Symbolizer, function_start_in, messages};

/// The files kept for one parser.
fn kept(parser: &str) -> Vec<PathBuf> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/parsers");
    let entries = std::fs::read_dir(corpora.join(parser)).expect("a folder of files");
    let files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    assert!(files.len() > 5, "{parser}");
    files
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).expect("a readable file")
}

#[test]
fn maps_that_fuzzing_has_found_are_read_in_order() {
    for file in kept("maps") {
        let maps = Maps::parse(&read(&file));
        for mapping in maps.iter() {
            assert!(mapping.start < mapping.end, "{}", file.display());
            assert!(maps.find(mapping.start).is_some(), "{}", file.display());
        }
    }
}

#[test]
fn elf_files_that_fuzzing_has_found_do_no_harm() {
    for file in kept("elf") {
        let data = read(&file);
        let Some((address, image)) = data.split_first_chunk() else {
            continue;
        };
        let address = u64::from_le_bytes(*address);
        let start = function_start_in(image, address);
        assert!(
            start.is_none_or(|start| start <= address),
            "{}",
            file.display()
        );
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        std::fs::write(&program, image).expect("a file");
        let _ = Symbolizer::looking_in(Vec::new()).place(&program.into(), address);
    }
}

#[test]
fn texts_that_fuzzing_has_found_do_no_harm() {
    for file in kept("messages") {
        let text = read(&file);
        let _ = (messages::abort(&text), messages::go_panic(&text));
        let _ = (
            messages::rust_panic(&text),
            messages::backtrace_place(&text),
        );
        let report = messages::report(&text);
        let named = report.is_none_or(|report| !report.kind.is_empty());
        assert!(named, "{}", file.display());
    }
}
