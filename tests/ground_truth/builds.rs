//! The programs with planted bugs, and the ways in which they are compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bugs::{Planted, parse};
use crate::compiled::{once, run};
use crate::needs;

/// What all C programs include.
const GROUND: &str = include_str!("programs/ground.h");

/// One program with planted bugs.
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// The name of its file, by which compilers know the language.
    file: &'static str,
    text: &'static str,
    inputs: &'static str,
}

macro_rules! source {
    ($name:literal, $file:literal) => {
        Source {
            name: $name,
            file: $file,
            text: include_str!(concat!("programs/", $file)),
            inputs: include_str!(concat!("programs/", $name, ".inputs")),
        }
    };
}

/// The C programs that crash.
pub static CRASHING: [Source; 6] = [
    source!("records", "records.c"),
    source!("strings", "strings.c"),
    source!("heap", "heap.c"),
    source!("calc", "calc.c"),
    source!("control", "control.c"),
    source!("scene", "scene.c"),
];
/// The one whose bugs only AddressSanitizer tells apart.
pub static OWNED: [Source; 1] = [source!("buffers", "buffers.c")];
/// The one that hangs or fills the memory.
pub static LOOPING: [Source; 1] = [source!("loops", "loops.c")];
/// The one in Rust whose loops the compiler makes one function of.
pub static SPINNING: [Source; 1] = [source!("spins", "spins.rs")];
/// The one that loses memory.
pub static LEAKING: [Source; 1] = [source!("leaks", "leaks.c")];
/// The one in Rust.
pub static RUST: [Source; 1] = [source!("panics", "panics.rs")];

impl Source {
    /// Its inputs.
    pub fn planted(&self) -> Vec<Planted> {
        parse(self.inputs)
    }
}

/// A way of compiling.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Build {
    /// Its name in tables.
    pub name: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
    strip: bool,
}

const fn build(
    name: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
    strip: bool,
) -> Build {
    Build {
        name,
        compiler,
        flags,
        strip,
    }
}

/// As distributions compile.
pub const GCC_O2: Build = build("gcc -O2", "gcc", &["-O2", "-D_FORTIFY_SOURCE=2"], false);
/// The same, stripped.
pub const STRIPPED: Build = build(
    "gcc -O2 stripped",
    "gcc",
    &["-O2", "-D_FORTIFY_SOURCE=2"],
    true,
);
/// Statically linked, and stripped.
pub const STATIC_STRIPPED: Build = build(
    "gcc -O2 static stripped",
    "gcc",
    &["-O2", "-D_FORTIFY_SOURCE=2", "-static"],
    true,
);
/// Without optimization.
pub const GCC_O0: Build = build("gcc -O0", "gcc", &["-O0"], false);
/// All others of the plain ones.
pub const OTHER_PLAIN: [Build; 5] = [
    GCC_O0,
    build("gcc -O3", "gcc", &["-O3", "-D_FORTIFY_SOURCE=2"], false),
    build(
        "gcc -O2 static",
        "gcc",
        &["-O2", "-D_FORTIFY_SOURCE=2", "-static"],
        false,
    ),
    build(
        "gcc -O2 -no-pie",
        "gcc",
        &["-O2", "-D_FORTIFY_SOURCE=2", "-no-pie"],
        false,
    ),
    CLANG_O2,
];
/// By clang.
pub const CLANG_O2: Build = build("clang -O2", "clang", &["-O2", "-D_FORTIFY_SOURCE=2"], false);
/// With sanitizers.
pub const SANITIZED: [Build; 3] = [
    build(
        "gcc ASan+UBSan",
        "gcc",
        &[
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
        ],
        false,
    ),
    build(
        "clang ASan+UBSan",
        "clang",
        &[
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
        ],
        false,
    ),
    build(
        "gcc ASan+UBSan recovering",
        "gcc",
        &["-O1", "-g", "-fsanitize=address,undefined"],
        false,
    ),
];
/// Rust as it is released: panics unwind.
pub const RUST_RELEASE: Build = build("rustc -O", "rustc", &["-O"], false);
/// All of Rust.
pub const RUST_BUILDS: [Build; 4] = [
    RUST_RELEASE,
    build("rustc debug", "rustc", &["-C", "debuginfo=1"], false),
    build(
        "rustc -O panic=abort",
        "rustc",
        &["-O", "-C", "panic=abort"],
        false,
    ),
    RUST_STRIPPED,
];
/// The same as it is released, stripped.
pub const RUST_STRIPPED: Build = build(
    "rustc -O stripped",
    "rustc",
    &["-O", "-C", "strip=symbols"],
    false,
);

impl Build {
    /// Whether the compiler is there; says so if it is not.
    pub fn possible(&self) -> bool {
        // Without these two nothing of this project could be built at all.
        ["gcc", "rustc"].contains(&self.compiler) || needs::program(self.compiler).is_some()
    }

    /// The program, compiled when it is first wanted.
    pub fn program(&self, source: &Source) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ground-truth");
        let key = (self, GROUND, source.text);
        once(&folder, source.name, key, |own| self.compile(source, own))
    }

    fn compile(&self, source: &Source, folder: &Path) -> PathBuf {
        let write = |name: &str, text| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("the source is written");
            path
        };
        write("ground.h", GROUND);
        let file = write(source.file, source.text);
        let program = folder.join(source.name);
        let mut command = Command::new(self.compiler);
        match self.compiler {
            "rustc" => command.args(["--edition", "2021"]),
            _ => command.args(["-w", "-pthread", "-fstack-protector-all"]),
        };
        command.args(self.flags).arg(&file).arg("-o").arg(&program);
        run(&mut command);
        if self.strip {
            run(Command::new("strip").arg("-s").arg(&program));
        }
        program
    }
}
