//! The programs that are run, and the floors, compiled by the system's C compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What `ul` is made of.
const UL: [&str; 4] = ["main.c", "ul/ul.c", "complain.c", "guarded.c"];
/// As crates/ddfuzz-exec/build.rs compiles it.
const UL_FLAGS: [&str; 5] = [
    "-O1",
    "-fno-omit-frame-pointer",
    "-fno-inline",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
];

/// A directory of compiled programs, removed at the end.
pub struct Programs(tempfile::TempDir);

impl Programs {
    /// An empty one, that everybody may reach: the target may be another user.
    pub fn new() -> Programs {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), everybody).expect("it is ours");
        Programs(directory)
    }

    /// A program that does nearly nothing.
    pub fn tiny(&self) -> PathBuf {
        self.compile("tiny", &["-O2"], &[floor("tiny.c")])
    }

    /// The bundled `ul`, as a file.
    pub fn ul(&self) -> PathBuf {
        self.compile("ul", &UL_FLAGS, &ul())
    }

    /// The spawn floor.
    pub fn spawn_floor(&self) -> PathBuf {
        self.compile("spawn-floor", &["-O2"], &[floor("spawn.c")])
    }

    /// The floor of AFL++'s fork servers.
    pub fn afl_floor(&self) -> PathBuf {
        self.compile("afl-floor", &["-O2"], &[floor("afl.c")])
    }

    /// The library that forks a program in front of its `main` for each run.
    pub fn fork_main(&self) -> PathBuf {
        let flags = ["-O2", "-shared", "-fPIC"];
        self.compile("fork_main.so", &flags, &[floor("fork_main.c")])
    }

    /// The fork floor of the tiny program.
    pub fn tiny_fork_floor(&self) -> PathBuf {
        self.fork_floor("tiny", &["-O2"], &[floor("tiny.c")])
    }

    /// The fork floor of `ul`.
    pub fn ul_fork_floor(&self) -> PathBuf {
        self.fork_floor("ul", &UL_FLAGS, &ul())
    }

    /// `name.c` of this bench, with AFL++'s fork server in it; fails, and says why, where
    /// `afl-clang-fast` is missing or does not work.
    pub fn instrumented(&self, name: &str) -> Result<PathBuf, String> {
        let output = self.0.path().join(name);
        let said = Command::new("afl-clang-fast")
            .arg("-O2")
            .arg("-o")
            .arg(&output)
            .arg(Path::new(HERE).join(format!("benches/ways/{name}.c")))
            .output()
            .map_err(|error| format!("starting afl-clang-fast: {error}"))?;
        match said.status.success() {
            true => Ok(output),
            false => Err(format!(
                "afl-clang-fast does not compile {name}.c: {}",
                String::from_utf8_lossy(&said.stderr).trim()
            )),
        }
    }

    /// The target's `main` gets another name, and the floor's calls it.
    fn fork_floor(&self, name: &str, flags: &[&str], sources: &[PathBuf]) -> PathBuf {
        let renamed = [flags, &["-Dmain=floor_target", "-r"]].concat();
        let object = self.compile(&format!("{name}.o"), &renamed, sources);
        let sources = [floor("fork.c"), object];
        self.compile(&format!("{name}-fork-floor"), &["-O2"], &sources)
    }

    /// Compiles it, unless that was done before.
    fn compile(&self, name: &str, flags: &[&str], sources: &[PathBuf]) -> PathBuf {
        let output = self.0.path().join(name);
        if output.exists() {
            return output;
        }
        let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
        let status = Command::new(&compiler)
            .args(flags)
            .arg("-o")
            .arg(&output)
            .args(sources)
            .status()
            .unwrap_or_else(|error| panic!("starting the C compiler {compiler:?}: {error}"));
        assert!(status.success(), "{name} does not compile");
        output
    }
}

fn floor(file: &str) -> PathBuf {
    Path::new(HERE).join("benches/ways/floors").join(file)
}

fn ul() -> Vec<PathBuf> {
    let targets = Path::new(HERE).join("targets");
    UL.iter().map(|file| targets.join(file)).collect()
}

/// The environment of all programs: with what cargo adds to its own the dynamic linker would search
/// more directories for each new process, and only for that.
pub fn environment() -> [(OsString, OsString); 2] {
    let path = std::env::var_os("PATH").unwrap_or_default();
    [("PATH".into(), path), ("LANG".into(), "C.UTF-8".into())]
}

/// What all programs get: lines of 59 printable bytes, 1000 bytes in all.
pub fn input() -> Vec<u8> {
    let byte = |i: u32| match i % 60 {
        59 => b'\n',
        _ => b' ' + (i % 90) as u8,
    };
    (0..1000).map(byte).collect()
}
