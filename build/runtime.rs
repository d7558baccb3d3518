//! Compiles `runtime/`: the launcher, and the runtime that is injected.

use std::path::Path;

use crate::compiler;

const FLAGS: [&str; 4] = ["-std=c11", "-O2", "-Wall", "-Wextra"];

/// Compiles both into `out`, where `src/exec/private_dir.rs` embeds them from.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-ldl"];
    link(&out.join("launcher"), "runtime/launcher.c", &[]);
    link(&out.join("ddfuzz-runtime.so"), "runtime/inject.c", &shared);
}

fn link(output: &Path, source: &str, flags: &[&str]) {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args([source, "runtime/serve.c"])
        .arg("-o")
        .arg(output)
        .args(flags);
    let what = "the runtime";
    compiler::finish(what, compiler::start(what, &mut command));
}
