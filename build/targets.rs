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

/// Compiles every target into `out/targets` and writes the list of them, `out/bundled.rs`.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=targets");
    let programs = out.join("targets");
    fs::create_dir_all(&programs).expect("OUT_DIR is writable");
    for name in TARGETS {
        // The two variants at a time: more would not fit small machines.
        let variants = [
            start(name, &[], &programs.join(name)),
            start(
                name,
                &["-DDDFUZZ_FIXED"],
                &programs.join(format!("{name}-fixed")),
            ),
        ];
        for variant in variants {
            compiler::finish(&format!("the bundled target {name}"), variant);
        }
    }
    fs::write(out.join("bundled.rs"), list()).expect("OUT_DIR is writable");
}

/// Starts the compiler on one variant of a target.
fn start(name: &str, defines: &[&str], program: &Path) -> Child {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args(defines)
        .arg("-o")
        .arg(program)
        .args(sources(name));
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

/// The Rust source of `BUNDLED`: the targets by name, then their fixed variants.
fn list() -> String {
    let mut list = String::from("pub const BUNDLED: &[(&str, &[u8])] = &[\n");
    for suffix in ["", "-fixed"] {
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
