//! Compiles the injected runtime and the bundled targets, and lists their corpora, all of which the
//! binary embeds.

#[path = "build/compiler.rs"]
mod compiler;
#[path = "build/corpora.rs"]
mod corpora;
#[path = "build/runtime.rs"]
mod runtime;
#[path = "build/targets.rs"]
mod targets;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    runtime::build(&out);
    targets::build(&out);
    corpora::build(&out, &targets::TARGETS);
}
