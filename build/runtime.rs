//! Compiles `runtime/`: the launcher, and the runtime that is injected.

use std::path::Path;

use crate::compiler;

const FLAGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic"];

/// What both are made of, among others.
const SHARED: [&str; 2] = ["serve.c", "sweep.c"];

/// Compiles both into `out`, where `src/exec/private_dir.rs` embeds them from.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-ldl"];
    let launcher = ["launcher.c", "keeper.c", "confine.c", "fence.c"];
    link(&out.join("launcher"), &launcher, &[]);
    link(&out.join("ddfuzz-runtime.so"), &["inject.c"], &shared);
}

fn link(output: &Path, sources: &[&str], flags: &[&str]) {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args(
            sources
                .iter()
                .chain(&SHARED)
                .map(|file| format!("runtime/{file}")),
        )
        .arg("-o")
        .arg(output)
        .args(flags);
    let what = "the runtime";
    compiler::finish(what, compiler::start(what, &mut command));
}
