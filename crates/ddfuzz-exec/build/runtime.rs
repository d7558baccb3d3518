//! Compiles `runtime/`: the launcher, the runtime that is injected, what observes a run,
//! and what copies a dying one.

use std::path::Path;

use crate::compiler;

const FLAGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic"];

/// What launcher and runtime are made of, among others.
const SHARED: [&str; 4] = ["serve.c", "sweep.c", "family.c", "terminal.c"];

/// What the runtime is made of besides.
const INJECTED: [&str; 9] = [
    "inject.c",
    "entry.c",
    "base.c",
    "loop.c",
    "spare.c",
    "counters.c",
    "quiet.c",
    "waits.c",
    "starts.c",
];

/// What copies a dying process is made of.
const COPYING: [&str; 4] = ["copy.c", "dying.c", "stand_in.c", "inherit.c"];

/// Compiles all four into `out`, where `crates/ddfuzz-exec/src/private_dir.rs` embeds them from.
pub fn build(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-ldl"];
    // Each mapping is one more that each fork copies: two, and not five (decision 0039).
    let compact = [&shared[..], &["-Wl,-z,noseparate-code,-z,norelro"]].concat();
    let launcher = [
        "launcher.c",
        "keeper.c",
        "confine.c",
        "fence.c",
        "isolate.c",
        "walls.c",
        "offers.c",
    ];
    link(&out.join("launcher"), &[&launcher, &SHARED], &[]);
    link(
        &out.join("ddfuzz-runtime.so"),
        &[&INJECTED, &SHARED],
        &compact,
    );
    // What it takes the place of must be called by what it stands in for, and by nothing else.
    let observing = [&shared[..], &["-fno-builtin"]].concat();
    let sources: [&[&str]; 1] = [&["observe.c", "jump.c", "base.c"]];
    link(&out.join("ddfuzz-observe.so"), &sources, &observing);
    // In a handler no memory of a thread may have to be allocated first.
    let copying = [&shared[..], &["-ftls-model=initial-exec"]].concat();
    let sources: [&[&str]; 1] = [&COPYING];
    link(&out.join("ddfuzz-copy.so"), &sources, &copying);
}

fn link(output: &Path, sources: &[&[&str]], flags: &[&str]) {
    let mut command = compiler::command();
    command
        .args(FLAGS)
        .args(
            sources
                .iter()
                .copied()
                .flatten()
                .map(|file| format!("runtime/{file}")),
        )
        .arg("-o")
        .arg(output)
        .args(flags);
    let what = "the runtime";
    compiler::finish(what, compiler::start(what, &mut command));
}
