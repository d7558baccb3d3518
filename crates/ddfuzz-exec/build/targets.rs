//! Compiles the programs in `targets/`, each as it was and fixed, for the binary to embed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::compiler;

/// Sorted by name.
pub const TARGETS: [&str; 6] = ["crtplot", "flex", "nroff", "troff", "ul", "units"];

/// One optimisation level for everybody, and no canary or check that could stop an overrun before
/// it crashes by itself; no inlining, so that each bug stands in the function it was written in.
const FLAGS: [&str; 11] = [
    "-std=c11",
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fno-inline",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-fPIE",
    "-pie",
    "-Wall",
    "-Wextra",
];

/// What makes a variant that counts which places it passes (`targets/counted.c`).
const COUNTED: &str = "-fsanitize-coverage=trace-pc";
/// Counters of such a variant: room for the places of the largest target.
const PLACES: &str = "-DDDFUZZ_PLACES=1024";

/// Variants of each target: what they are called behind its name, and what makes them.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("", &[]),
    ("-fixed", &["-DDDFUZZ_FIXED"]),
    ("-counted", &[COUNTED]),
    ("-fixed-counted", &["-DDDFUZZ_FIXED", COUNTED]),
];

/// Compiles every target into `out/targets` and writes the list of them, `out/bundled.rs`.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=targets");
    let programs = out.join("targets");
    fs::create_dir_all(&programs).expect("OUT_DIR is writable");
    let counters = programs.join("counted.o");
    compiler::finish("the counters of bundled targets", start_counters(&counters));
    for name in TARGETS {
        // Two at a time: more would not fit small machines.
        for pair in VARIANTS.chunks(2) {
            let running: Vec<Child> = (pair.iter())
                .map(|(suffix, flags)| {
                    let counters = flags.contains(&COUNTED).then_some(&*counters);
                    start(
                        name,
                        flags,
                        counters,
                        &programs.join(format!("{name}{suffix}")),
                    )
                })
                .collect();
            for variant in running {
                compiler::finish(&format!("the bundled target {name}"), variant);
            }
        }
    }
    fs::write(out.join("bundled.rs"), list()).expect("OUT_DIR is writable");
}

/// Starts the compiler on what counts, which must not be counted itself.
fn start_counters(object: &Path) -> Child {
    let mut command = compiler::command();
    command
        .args(FLAGS.iter().filter(|flag| **flag != "-pie"))
        .args([PLACES, "-c", "-o"])
        .arg(object)
        .arg("targets/counted.c");
    compiler::start("the counters of bundled targets", &mut command)
}

/// Starts the compiler on one variant of a target.
fn start(name: &str, flags: &[&str], counters: Option<&Path>, program: &Path) -> Child {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args(flags)
        .arg("-o")
        .arg(program)
        .args(sources(name))
        .args(counters);
    compiler::start(&format!("the bundled target {name}"), &mut command)
}

/// What a target is made of: its own files, and those that all share.
fn sources(name: &str) -> Vec<PathBuf> {
    let shared = ["main.c", "guarded.c", "complain.c"];
    let mut sources: Vec<PathBuf> = shared
        .iter()
        .map(|file| Path::new("targets").join(file))
        .collect();
    let own = fs::read_dir(Path::new("targets").join(name)).expect("each target has a folder");
    let mut own: Vec<PathBuf> = own
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    // The order of a folder is the file system's; that of the program's functions must not be.
    own.sort();
    sources.append(&mut own);
    sources
}

/// The Rust source of `BUNDLED`: the targets by name, then their fixed variants; and of `COUNTED`:
/// the same of the variants that count.
fn list() -> String {
    let plain = list_of("BUNDLED", |suffix| !suffix.ends_with("-counted"));
    plain + &list_of("COUNTED", |suffix| suffix.ends_with("-counted"))
}

fn list_of(list_name: &str, is_in: impl Fn(&str) -> bool) -> String {
    let mut list = format!("pub const {list_name}: &[(&str, &[u8])] = &[\n");
    for (suffix, _) in VARIANTS.iter().filter(|(suffix, _)| is_in(suffix)) {
        for name in TARGETS {
            let program = format!("/targets/{name}{suffix}");
            writeln!(
                list,
                "    (\"{name}{suffix}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"{program}\"))),"
            )
            .expect("a string takes what is written");
        }
    }
    list.push_str("];\n");
    list
}
