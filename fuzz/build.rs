//! Compiles the bundled targets, with their bugs, each into a library for its own harness.

use std::path::{Path, PathBuf};

/// One harness each, of the same name.
const TARGETS: [&str; 6] = ["crtplot", "flex", "nroff", "troff", "ul", "units"];

fn main() {
    println!("cargo::rerun-if-changed=../targets");
    let targets = Path::new("../targets");
    let out = std::env::var_os("OUT_DIR").expect("cargo names the folder for what is built");
    for name in TARGETS {
        let folder = Path::new(&out).join(name);
        std::fs::create_dir_all(&folder).expect("cargo's folder is writable");
        compile(name, targets, &folder);
        // Each has the same entry, so that a harness must be linked with its own one only.
        let library = folder.join(format!("lib{name}.a"));
        println!("cargo::rustc-link-arg-bin={name}={}", library.display());
    }
}

fn compile(name: &str, targets: &Path, folder: &Path) {
    // The flags of ddfuzz's crates/ddfuzz-exec/build.rs: nothing but the bug itself stops an overrun.
    cc::Build::new()
        .std("c11")
        .opt_level(1)
        .debug(true)
        .force_frame_pointer(true)
        .flag("-fno-inline")
        .flag("-fno-stack-protector")
        .flag("-U_FORTIFY_SOURCE")
        // Clang's; what gcc compiles does not tell where it passes.
        .flag_if_supported("-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp")
        .files(sources(&targets.join(name)))
        .files(["guarded.c", "complain.c"].map(|file| targets.join(file)))
        .cargo_metadata(false)
        .out_dir(folder)
        .compile(name);
}

/// The C files of a folder, in an order that is not the file system's.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("each target has a folder");
    let mut sources: Vec<PathBuf> = files
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    sources
}
