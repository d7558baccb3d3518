//! Compiles `runtime/`: the launcher, and the runtime that is injected.

use std::path::Path;

use crate::compiler;

const FLAGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic"];

/// Compiles both into `out`, where `src/exec/private_dir.rs` embeds them from.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-ldl"];
    let launcher = [
        "runtime/launcher.c",
        "runtime/keeper.c",
        "runtime/confine.c",
    ];
    link(&out.join("launcher"), &launcher, &[]);
    link(
        &out.join("ddfuzz-runtime.so"),
        &["runtime/inject.c"],
        &shared,
    );
}

fn link(output: &Path, sources: &[&str], flags: &[&str]) {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args(sources)
        .args(["runtime/serve.c", "runtime/sweep.c"])
        .arg("-o")
        .arg(output)
        .args(flags);
    let what = "the runtime";
    compiler::finish(what, compiler::start(what, &mut command));
}
