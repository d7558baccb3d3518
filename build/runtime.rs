//! Compiles `runtime/`: the launcher and the runtime that is injected.

use std::path::Path;

/// Compiles both into `out`, where `src/exec/private_dir.rs` embeds them from.
pub fn compile(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden"];
    crate::compiler::link(
        &out.join("launcher"),
        &[],
        &["runtime/launcher.c", "runtime/serve.c"],
        &["-O2"],
    );
    let runtime = ["runtime/inject.c", "runtime/serve.c"];
    crate::compiler::link(
        &out.join("ddfuzz-runtime.so"),
        &shared,
        &runtime,
        &["-O2", "-ldl"],
    );
}
