//! Compiles the bundled target `ul`, with its bug, into a library for its harness.

use std::path::Path;

fn main() {
    let targets = Path::new("../targets");
    println!("cargo::rerun-if-changed=../targets");
    // The flags of ddfuzz's build/targets.rs: nothing but the bug itself stops an overrun.
    cc::Build::new()
        .std("c11")
        .opt_level(1)
        .debug(true)
        .force_frame_pointer(true)
        .flag("-fno-inline")
        .flag("-fno-stack-protector")
        .flag("-U_FORTIFY_SOURCE")
        .files(["ul/ul.c", "guarded.c", "complain.c"].map(|file| targets.join(file)))
        .compile("ul");
}
