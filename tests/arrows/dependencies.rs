//! Each dependency is used where it is localized, and nowhere else.

use std::path::Path;

use crate::paths::Paths;
use crate::{module_of, sources, tree};

/// Where each dependency may be used: modules, or files of `src/`.
const PLACES: &[(&str, &[&str])] = &[
    // Names and lines of frames, and (as `addr2line::gimli`) unwind tables.
    ("addr2line", &["triage"]),
    // Bytes inside JSON: of inputs in the log, of paths and arguments in records.
    ("base64", &["files/base64.rs"]),
    // Keys; content names in the log and the store; the classic generator's stream.
    (
        "blake3",
        &[
            "triage/key.rs",
            "minimize/log/hash.rs",
            "store/layout.rs",
            "campaign",
            "exec/hearing.rs",
            "corpus/content.rs",
            "corpus/cover/gather.rs",
            "corpus/journal",
            "cli/export/sealed.rs",
            "cli/generate/seed.rs",
        ],
    ),
    ("clap", &["cli"]),
    // Scripts for shells, and man pages, made of the command line.
    ("clap_complete", &["cli/completions.rs"]),
    ("clap_mangen", &["cli/man.rs"]),
    // The width of the terminal.
    ("console", &["cli/ui"]),
    // Workers that report to who commits: of a campaign, of a minimization.
    ("crossbeam", &["campaign", "corpus", "minimize/parallel"]),
    // The harness macro, for users of the library.
    ("ddfuzz_target", &["lib.rs"]),
    // Man pages are compressed.
    ("flate2", &["campaign/miller/list/extensions.rs"]),
    ("framehop", &["triage/unwind.rs"]),
    // What the instruction did that crashed, where comparisons stand, and their constants.
    (
        "iced_x86",
        &[
            "triage/instruction/x86_64.rs",
            "exec/observe/breakpoints",
            "exec/facts/words/code.rs",
        ],
    ),
    ("indicatif", &["cli"]),
    // The small symbol table in stripped programs is compressed.
    ("lzma_rust2", &["triage/symbols"]),
    // What files a target in a sandbox may write, and which system calls it may make.
    ("landlock", &["exec/sandbox/ruleset.rs"]),
    ("seccompiler", &["exec/sandbox/seccomp.rs"]),
    // What nix does not wrap: wait statuses, ptrace records, the numbers of signals and errors.
    (
        "libc",
        &[
            "exec",
            "triage",
            "files/folder.rs",
            "files/regular.rs",
            "minimize/crash_oracle.rs",
            "campaign/guided/process.rs",
            "campaign/guided/shmem.rs",
            "cli/cargo/libfuzzer/process.rs",
            "cli/memory.rs",
            "cli/runner/last.rs",
            "cli/ui/campaign/terminal.rs",
        ],
    ),
    // Processes, pipes, ptrace; workers and their hub; the host's name, for the record of a
    // campaign; the terminal.
    (
        "nix",
        &[
            "exec",
            "triage",
            "campaign/guided",
            "cli/cargo/clean.rs",
            "cli/cargo/libfuzzer",
            "cli/config/find.rs",
            "cli/runner",
            "cli/ui/campaign/terminal.rs",
            "files/space.rs",
            "files/swap.rs",
        ],
    ),
    (
        "object",
        &[
            "triage",
            "exec/elf.rs",
            "exec/entry.rs",
            "exec/facts",
            "exec/observe/image.rs",
        ],
    ),
    // Results for CI servers.
    ("quick_junit", &["report/ci/junit.rs"]),
    ("serde_sarif", &["report/ci/sarif.rs"]),
    // The screen of a campaign, and as `ratatui::crossterm` the keys.
    ("ratatui", &["cli/ui/campaign"]),
    ("rustc_demangle", &["triage"]),
    // Records.
    (
        "serde",
        &[
            "delta", "files", "exec", "triage", "minimize", "store", "report", "campaign",
            "corpus", "cli",
        ],
    ),
    (
        "serde_json",
        &["minimize", "store", "report", "campaign", "corpus", "cli"],
    ),
    // The schema of the log: each type says what it looks like beside its serde.
    ("schemars", &["files", "exec", "triage", "minimize"]),
    // libFuzzer's names of inputs.
    ("sha1", &["cli/cargo/artifacts.rs"]),
    ("signal_hook", &["cli"]),
    // Atomic writes; the directory for what is unpacked; directories of unit tests; of
    // campaigns that are only measured.
    (
        "tempfile",
        &[
            "files/atomic.rs",
            "exec/private_dir.rs",
            "exec/input.rs",
            "exec/scratch.rs",
            "exec/elf.rs",
            "exec/marked.rs",
            "corpus/place.rs",
            "cli/clean/afl.rs",
            "corpus/measure/spool.rs",
            "cli/doctor/rate.rs",
            "cli/cargo",
            "cli/runner",
        ],
    ),
    // The library's errors; those of the command line are `cli/failure.rs`.
    (
        "thiserror",
        &[
            "files", "exec", "triage", "minimize", "store", "campaign", "corpus",
        ],
    ),
    // The file of settings, `ddfuzz.toml`; manifests of cargo-fuzz projects.
    ("toml", &["cli/config/file.rs", "cli/fuzz_manifest.rs"]),
    // One line of `.cargo/config.toml`.
    ("toml_edit", &["cli/cargo/install_runner.rs"]),
    // The coverage-guided campaign.
    ("libafl", &["campaign"]),
    ("libafl_bolts", &["campaign"]),
    ("libafl_targets", &["campaign"]),
];

/// The dependencies in the table that this version does not have.
const NOT_YET: [&str; 1] = ["libafl_targets"];

/// The names of `[dependencies]` in a manifest, as paths write them.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && !line.starts_with('#') {
            names.extend(
                line.split_once('=')
                    .map(|(name, _)| name.trim().replace('-', "_")),
            );
        }
    }
    names
}

/// Whether a file lies in a place: a module, a folder of it, or a single file.
fn lies_in(file: &Path, place: &str) -> bool {
    let single = format!("{place}.rs");
    file.strip_prefix("src")
        .is_ok_and(|inside| inside.starts_with(place) || inside == Path::new(&single))
}

/// The uses of dependencies out of their places.
fn strayed(file: &Path, paths: &Paths) -> Vec<String> {
    let uses = paths.roots().filter_map(|(root, line)| {
        let (name, places) = PLACES.iter().find(|(name, _)| *name == root)?;
        let stays = places.iter().any(|place| lies_in(file, place));
        (!stays).then(|| format!("{}:{line}: {name}", file.display()))
    });
    uses.collect()
}

#[test]
fn each_dependency_stays_in_its_place() {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|(file, paths)| strayed(file, paths))
        .collect();
    assert!(
        found.is_empty(),
        "dependencies out of their places:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn the_table_names_each_dependency_of_the_manifest() {
    let manifest = std::fs::read_to_string(tree::root().join("Cargo.toml")).expect("it is there");
    let known: Vec<&str> = PLACES.iter().map(|(name, _)| *name).collect();
    let declared = dependencies(&manifest);
    assert!(declared.len() > 10, "only {declared:?} were found");
    for name in &declared {
        assert!(
            known.contains(&name.as_str()),
            "{name} has no place in the table"
        );
    }
    for name in known.iter().filter(|name| !NOT_YET.contains(name)) {
        assert!(
            declared.iter().any(|one| one == name),
            "{name} is no dependency any more"
        );
    }
}

#[test]
fn each_place_in_the_table_exists() {
    let modules: Vec<String> = sources().iter().map(|(file, _)| module_of(file)).collect();
    for (name, places) in PLACES {
        for place in *places {
            let exists = tree::root().join("src").join(place).exists();
            assert!(
                exists || modules.iter().any(|module| module == place),
                "{name}: {place}"
            );
        }
    }
}

#[test]
fn nothing_of_libafl_leaks_below_the_campaign() {
    for (file, paths) in sources() {
        let is_campaign = module_of(&file) == "campaign";
        let leaked = paths
            .words
            .iter()
            .find(|(word, _)| word.starts_with("libafl"));
        assert!(
            is_campaign || leaked.is_none(),
            "{}: {leaked:?}",
            file.display()
        );
    }
}

#[test]
fn a_strayed_dependency_is_found_out_however_it_is_written() {
    let file = Path::new("src/store/open.rs");
    let good = "mod serde { fn nix() {} } use std::libc; fn a(nix: u8) -> serde_json::Value {}";
    let of = |source: &str| strayed(file, &Paths::of(file, source));
    for bad in [
        "use nix::unistd::Pid;",
        "use nix;",
        "fn a() { nix::unistd::getpid() }",
        "made_by!(nix::unistd);",
        "#[cfg(x)] pub use {std::fs, nix::sys};",
    ] {
        assert_eq!(of(bad), ["src/store/open.rs:1: nix"], "{bad}");
    }
    assert_eq!(of(good), [""; 0]);
    assert!(lies_in(Path::new("src/cli/ui/bar.rs"), "cli"));
    assert!(lies_in(Path::new("src/exec/elf.rs"), "exec/elf.rs"));
    assert!(!lies_in(Path::new("src/executor.rs"), "exec"));
}
