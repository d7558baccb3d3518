//! Compiles the C runtime (`runtime/`) and the bundled targets (`targets/`), and lists their seeds
//! and dictionaries (`corpora/`). The library embeds all of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    build_runtime(&out);
    build_targets(&out);
    build_corpora(&out);
}

const RUNTIME_FLAGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic"];

/// C sources that the launcher and the preloaded runtime library share.
const SHARED: [&str; 3] = ["serve.c", "sweep.c", "terminal.c"];

/// Further C sources of the runtime library, which is preloaded into targets.
const INJECTED: [&str; 17] = [
    "inject.c",
    "blocks.c",
    "defer.c",
    "entry.c",
    "load_address.c",
    "loop.c",
    "restore.c",
    "restore_calls.c",
    "restore_filter.c",
    "restore_memory.c",
    "restore_setup.c",
    "restore_sites.c",
    "spare.c",
    "counters.c",
    "disable_callbacks.c",
    "wait_wrappers.c",
    "spawn_wrappers.c",
];

/// C sources of the preloaded library that takes snapshots of crashing processes.
const COPYING: [&str; 4] = [
    "snapshot.c",
    "crash_handler.c",
    "signal_wrappers.c",
    "preload.c",
];

/// Compiles the launcher and the three libraries into `out`, from where
/// `crates/ddfuzz-exec/src/private_dir.rs` embeds them.
fn build_runtime(out: &Path) {
    println!("cargo::rerun-if-changed=runtime");
    let shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-ldl"];
    // Each fork copies all mappings of the library: two instead of five (decision 0039).
    // Its handlers may run with the target's thread pointer, and its data is read-only where many
    // runs share a process, so nothing may use a canary or note that the library ends (restore.c).
    let alone = [
        "-Wl,-z,noseparate-code,-z,norelro",
        "-nostartfiles",
        "-fno-stack-protector",
    ];
    let compact = [&shared[..], &alone].concat();
    let launcher = [
        "launcher.c",
        "supervisor.c",
        "rlimits.c",
        "signal_scope.c",
        "namespaces.c",
        "restrict.c",
        "support.c",
    ];
    link(&out.join("launcher"), &[&launcher, &SHARED], &[]);
    link(
        &out.join("ddfuzz-runtime.so"),
        &[&INJECTED, &SHARED],
        &compact,
    );
    // The compiler must not call the replaced functions by itself.
    let observing = [&shared[..], &["-fno-builtin"]].concat();
    let sources: [&[&str]; 1] = [&["observe.c", "jump.c", "load_address.c"]];
    link(&out.join("ddfuzz-observe.so"), &sources, &observing);
    // In a signal handler, thread-local memory must not be allocated first.
    let copying = [&shared[..], &["-ftls-model=initial-exec"]].concat();
    let sources: [&[&str]; 1] = [&COPYING];
    link(&out.join("ddfuzz-copy.so"), &sources, &copying);
}

fn link(output: &Path, sources: &[&[&str]], flags: &[&str]) {
    let mut command = compiler();
    // Each program embeds the runtime: debug information would make it four times as large.
    command
        .arg("-g0")
        .args(RUNTIME_FLAGS)
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
    finish(what, start(what, &mut command));
}

/// Names of the bundled targets, sorted.
const TARGETS: [&str; 6] = ["crtplot", "flex", "nroff", "troff", "ul", "units"];

/// Compiler flags of the bundled targets: one optimisation level for all, and no canaries or checks
/// that stop an overrun before it crashes. Without inlining, each bug is in the function that the
/// source shows.
const TARGET_FLAGS: [&str; 12] = [
    "-std=c11",
    "-O1",
    "-g",
    "-gz=zlib",
    "-fno-omit-frame-pointer",
    "-fno-inline",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-fPIE",
    "-pie",
    "-Wall",
    "-Wextra",
];

/// The compiler flag for variants of the bundled targets that count the code locations that they
/// pass (`targets/counted.c`).
const COUNTED: &str = "-fsanitize-coverage=trace-pc";
/// Compiler flag for the number of coverage counters, enough for the largest bundled target.
const PLACES: &str = "-DDDFUZZ_PLACES=1024";

/// Variants of each bundled target: suffix of the name, and compiler flags.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("", &[]),
    ("-fixed", &["-DDDFUZZ_FIXED"]),
    ("-counted", &[COUNTED]),
    ("-fixed-counted", &["-DDDFUZZ_FIXED", COUNTED]),
];

/// Compiles every bundled target into `out/targets` and writes the list of them, `out/bundled.rs`.
fn build_targets(out: &Path) {
    println!("cargo::rerun-if-changed=targets");
    let programs = out.join("targets");
    fs::create_dir_all(&programs).expect("OUT_DIR is writable");
    let counters = programs.join("counted.o");
    finish("the counters of bundled targets", start_counters(&counters));
    for name in TARGETS {
        // Two at a time: more would not fit small machines.
        for pair in VARIANTS.chunks(2) {
            let running: Vec<Child> = (pair.iter())
                .map(|(suffix, flags)| {
                    let counters = flags.contains(&COUNTED).then_some(&*counters);
                    start_target(
                        name,
                        flags,
                        counters,
                        &programs.join(format!("{name}{suffix}")),
                    )
                })
                .collect();
            for variant in running {
                finish(&format!("the bundled target {name}"), variant);
            }
        }
    }
    fs::write(out.join("bundled.rs"), bundled_list()).expect("OUT_DIR is writable");
}

/// Starts compiling the bundled targets' coverage counters, which must not be instrumented
/// themselves.
fn start_counters(object: &Path) -> Child {
    let mut command = compiler();
    command
        .args(TARGET_FLAGS.iter().filter(|flag| **flag != "-pie"))
        .args([PLACES, "-c", "-o"])
        .arg(object)
        .arg("targets/counted.c");
    start("the counters of bundled targets", &mut command)
}

/// Starts compiling one variant of the bundled target `name` to the file `program`.
fn start_target(name: &str, flags: &[&str], counters: Option<&Path>, program: &Path) -> Child {
    let mut command = compiler();
    command
        .args(TARGET_FLAGS)
        .args(flags)
        .arg("-o")
        .arg(program)
        .args(sources(name))
        .args(counters);
    start(&format!("the bundled target {name}"), &mut command)
}

/// Returns the C sources of a bundled target: its own files, and those that all targets share.
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
    // The order of functions in the program must not depend on the file system.
    own.sort();
    sources.append(&mut own);
    sources
}

/// Returns the Rust source of `BUNDLED`, the list of the bundled targets, then of their fixed
/// variants; and of `COUNTED`, the same with coverage counters.
fn bundled_list() -> String {
    let plain = programs_named("BUNDLED", |suffix| !suffix.ends_with("-counted"));
    plain + &programs_named("COUNTED", |suffix| suffix.ends_with("-counted"))
}

fn programs_named(list_name: &str, is_in: impl Fn(&str) -> bool) -> String {
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

/// Writes `out/corpora.rs` with `CORPORA`, a list of each bundled target's seeds and dictionary.
fn build_corpora(out: &Path) {
    println!("cargo::rerun-if-changed=corpora");
    let mut list = String::from("pub const CORPORA: &[super::Corpus] = &[\n");
    for name in TARGETS {
        let folder = Path::new("corpora").join(name);
        let seeds: String = files(&folder.join("seeds"))
            .iter()
            .map(|path| included(path) + ", ")
            .collect();
        let dictionary = included(folder.join(format!("{name}.dict")));
        writeln!(
            list,
            "    super::Corpus {{ name: \"{name}\", seeds: &[{seeds}], dictionary: {dictionary} }},"
        )
        .expect("a string takes what is written");
    }
    list.push_str("];\n");
    fs::write(out.join("corpora.rs"), list).expect("OUT_DIR is writable");
}

/// Returns the paths of the files in a folder, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("each target has seeds");
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.sort();
    files
}

fn included(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().display();
    format!("include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{path}\"))")
}

const HINT: &str = "hint: install a C compiler with its C library's headers (gcc or clang; on \
                    Debian `apt install gcc libc6-dev`), or name one in the variable CC";

/// Returns a command that calls the C compiler. Source paths in debug information are relative to
/// the project, because users see them.
fn compiler() -> Command {
    let mut command = cc::Build::new()
        .opt_level(1)
        .debug(true)
        .pic(false)
        .force_frame_pointer(true)
        .get_compiler()
        .to_command();
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    command.arg(format!("-ffile-prefix-map={here}=ddfuzz"));
    command
}

/// Starts the compiler; `what` names the result in the message of a panic.
fn start(what: &str, compiler: &mut Command) -> Child {
    match compiler.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = compiler.get_program().to_owned();
            panic!("cannot start the C compiler {program:?}, which builds {what}: {error}\n{HINT}")
        }
    }
}

/// Waits until the compiler ends, and panics if it failed. `what` names the result in the message.
fn finish(what: &str, mut compiler: Child) {
    let status = compiler.wait().expect("the compiler is a child of ours");
    assert!(
        status.success(),
        "{what} does not compile ({status}); the compiler's messages stand above\n{HINT}"
    );
}
