//! The harnesses of `fuzz/`: the bundled targets and the parsers of hostile files.

use std::collections::BTreeSet;
use std::path::Path;

use ::ddfuzz::exec::bundled;
use ::ddfuzz::minimize::log::Log;
use ::ddfuzz::store::foreign::CrashName;

/// The harnesses that are no bundled targets.
const PARSERS: [&str; 7] = [
    "afl_names",
    "config",
    "containers",
    "elf",
    "log",
    "maps",
    "messages",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What fuzzing a parser begins with, by name.
fn seeds(parser: &str) -> Vec<(String, Vec<u8>)> {
    let folder = root().join("corpora/parsers").join(parser);
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let read = |file: std::fs::DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        (name, std::fs::read(file.path()).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn each_bundled_target_and_each_parser_has_a_harness() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let mut blocks = manifest.split("[[bin]]\n");
    blocks.next();
    let names = blocks.map(|block| {
        let name = block.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap().trim_matches('"').to_owned()
    });
    let names: BTreeSet<String> = names.collect();
    let bundled = bundled::names().into_iter();
    let with_bugs = bundled.filter(|name| !name.ends_with("-fixed"));
    let expected = with_bugs.chain(PARSERS).map(str::to_owned);
    assert_eq!(names, expected.collect());
    for name in names {
        let file = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let source = std::fs::read_to_string(&file).unwrap();
        let is_harness = ["fuzz_target!(", "bundled!("].map(|word| source.contains(word));
        assert!(is_harness.contains(&true), "{name}");
    }
}

#[test]
fn each_parser_has_seeds_that_it_understands() {
    for parser in PARSERS {
        assert!(!seeds(parser).is_empty(), "{parser}");
    }
    for (name, seed) in seeds("log") {
        let behind = 2 + usize::from(seed[0]) + usize::from(seed[1]);
        let log = Log::parse(&seed[behind..]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(log.start.is_some() && !log.lines.is_empty(), "{name}");
    }
    for (name, seed) in seeds("afl_names") {
        let seed = String::from_utf8(seed).unwrap();
        assert!(CrashName::parse(&seed).is_some(), "{name}: {seed}");
    }
}
