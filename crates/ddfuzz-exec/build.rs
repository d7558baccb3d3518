//! Compiles the C runtime (`runtime/`) and the bundled targets (`targets/`), and compresses these
//! together with their seeds and dictionaries (`corpora/`). The library embeds all of them.

use lzma_rust2::{LzmaOptions, LzmaWriter};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    build_runtime(&out);
    build_targets(&out);
    pack_targets(&out);
}

const RUNTIME_FLAGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic"];

/// Names of the C sources that are compiled into both the launcher and the runtime library, which
/// is preloaded into targets.
const SHARED: [&str; 3] = ["serve.c", "sweep.c", "terminal.c"];

/// Names of the C files that, with those in `SHARED`, are compiled to the runtime library, which is
/// preloaded into targets.
const INJECTED: [&str; 21] = [
    "inject.c",
    "blocks.c",
    "defer.c",
    "defer_calls.c",
    "defer_files.c",
    "entry.c",
    "environment.c",
    "load_address.c",
    "loop.c",
    "restore.c",
    "restore_calls.c",
    "restore_filter.c",
    "restore_memory.c",
    "restore_paths.c",
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

/// Compiles the launcher (the process that starts targets) and the three libraries that are
/// preloaded into targets. Writes them to `out`, from where `crates/ddfuzz-exec/src/private_dir.rs`
/// embeds them.
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

/// Names of the bundled target programs, in alphabetical order.
const TARGETS: [&str; 6] = ["crtplot", "flex", "nroff", "troff", "ul", "units"];

/// Compiler flags of the bundled targets: the same optimisation level for all, no stack canaries or
/// checks that stop an overrun before it crashes, and no inlining, so that each bug is in the
/// function that the source shows.
const TARGET_FLAGS: [&str; 11] = [
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

/// The compiler flag for those builds of the bundled targets that count the code locations that
/// they pass (`targets/counted.c`).
const COUNTED: &str = "-fsanitize-coverage=trace-pc";
/// Compiler flag that sets the number of coverage counters in the builds of the bundled targets
/// that have them: enough for the largest target.
const PLACES: &str = "-DDDFUZZ_PLACES=1024";

/// The builds that are made of each bundled target (with the bug or without, with coverage counters
/// or without): the suffix of the program's name, and the compiler flags that are added to
/// `TARGET_FLAGS`.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("", &[]),
    ("-fixed", &["-DDDFUZZ_FIXED"]),
    ("-counted", &[COUNTED]),
    ("-fixed-counted", &["-DDDFUZZ_FIXED", COUNTED]),
];

/// Compiles every bundled target into `out/targets`.
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
}

/// Starts compiling the coverage counters of the bundled targets to the file `object`. The source
/// of the counters must not be instrumented itself.
fn start_counters(object: &Path) -> Child {
    let mut command = compiler();
    command
        .args(TARGET_FLAGS.iter().filter(|flag| **flag != "-pie"))
        .args([PLACES, "-c", "-o"])
        .arg(object)
        .arg("targets/counted.c");
    start("the counters of bundled targets", &mut command)
}

/// Starts compiling one build of the bundled target `name`, with the compiler flags `flags`, to the
/// file `program`, and returns the compiler's process. `counters`: the object file of the coverage
/// counters; `None` for a build without.
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

/// Compresses each bundled target with its seeds and dictionary into one file of `out/targets`, and
/// writes the list of these files, `out/bundled.rs`.
fn pack_targets(out: &Path) {
    println!("cargo::rerun-if-changed=corpora");
    let suffixes = VARIANTS.map(|(suffix, _)| suffix);
    let mut list = format!(
        "const SUFFIXES: [&str; {}] = {suffixes:?};\nconst ARCHIVES: &[Archive] = &[\n",
        suffixes.len()
    );
    for name in TARGETS {
        let folder = Path::new("corpora").join(name);
        let programs = suffixes.map(|suffix| out.join("targets").join(format!("{name}{suffix}")));
        let mut paths = Vec::from(programs);
        paths.push(folder.join(format!("{name}.dict")));
        paths.extend(files(&folder.join("seeds")));
        let contents: Vec<Vec<u8>> = paths.iter().map(|path| read(path)).collect();
        let sizes: Vec<usize> = contents.iter().map(Vec::len).collect();
        let packed = out.join("targets").join(format!("{name}.lzma"));
        fs::write(&packed, compressed(&contents.concat())).expect("OUT_DIR is writable");
        writeln!(
            list,
            "    Archive {{ name: {name:?}, fixed: \"{name}-fixed\", sizes: &{sizes:?}, \
             packed: include_bytes!({packed:?}) }},"
        )
        .expect("a string takes what is written");
    }
    list.push_str("];\n");
    fs::write(out.join("bundled.rs"), list).expect("OUT_DIR is writable");
}

/// Returns bytes compressed as a file of the format `.lzma`.
fn compressed(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).expect("a target has some 100 KB");
    let mut options = LzmaOptions::with_preset(6);
    // Whoever decompresses allocates as much.
    options.dict_size = size.next_power_of_two().max(4096);
    let writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(size.into()));
    let mut writer = writer.expect("a vector takes what is written");
    writer
        .write_all(bytes)
        .expect("a vector takes what is written");
    writer.finish().expect("a vector takes what is written")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Returns the paths of the files in a folder, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("each target has seeds");
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.sort();
    files
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

/// Starts the compiler and returns its process; `what` names the result in the message of a panic.
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
