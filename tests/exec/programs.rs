//! C programs of the tests, compiled with the system's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Program, Sandbox, Target};

/// The sources go with the test, which may run as a user who cannot read the project.
const SOURCES: &[(&str, &str)] = &[
    ("afl_branches", include_str!("programs/afl_branches.c")),
    ("afl_speaker", include_str!("programs/afl_speaker.c")),
    ("at_main", include_str!("programs/at_main.c")),
    ("capture", include_str!("programs/capture.c")),
    ("changes", include_str!("programs/changes.c")),
    ("compares", include_str!("programs/compares.c")),
    ("constructor", include_str!("programs/constructor.c")),
    ("defer", include_str!("programs/defer.c")),
    ("early_thread", include_str!("programs/early_thread.c")),
    ("family", include_str!("programs/family.c")),
    ("fuzzer", include_str!("programs/fuzzer.c")),
    ("hides", include_str!("programs/hides.c")),
    ("hostile", include_str!("programs/hostile.c")),
    ("magic", include_str!("programs/magic.c")),
    ("no_libc", include_str!("programs/no_libc.c")),
    ("odd_system", include_str!("programs/odd_system.c")),
    ("sandbox", include_str!("programs/sandbox.c")),
    ("sweeper", include_str!("programs/sweeper.c")),
    ("terminal", include_str!("programs/terminal.c")),
    ("two_files", include_str!("programs/two_files.c")),
    ("verdict", include_str!("programs/verdict.c")),
];

/// The folder in which compiled programs are kept, for users who may not write to cargo's.
pub const PROGRAMS: &str = "DDFUZZ_TEST_PROGRAMS";

/// A compiled program in a directory of its own, that everybody may reach.
pub struct Compiled {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

/// Compiles `tests/exec/programs/NAME.c`.
pub fn compile(name: &str, flags: &[&str]) -> Compiled {
    try_compile(name, flags).expect("the tests need a C compiler")
}

/// The same where the compiler may lack something; `None` if it does.
pub fn try_compile(name: &str, flags: &[&str]) -> Option<Compiled> {
    compile_by("cc", name, flags)
}

/// The same by another compiler. A program that another test has compiled is copied.
pub fn compile_by(compiler: &str, name: &str, flags: &[&str]) -> Option<Compiled> {
    let (compiled, file) = source_of(name);
    // What a source includes may change.
    if flags.iter().any(|flag| flag.contains('/')) {
        let done = call_compiler(compiler, &file, &compiled.path, flags);
        return done.then_some(compiled);
    }
    let key = (compiler, std::fs::read(&file).unwrap(), flags);
    let folder = std::env::var_os(PROGRAMS).map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("exec-programs"));
    let made = crate::compiled::try_once(&folder, name, key, |own| {
        let program = own.join(name);
        call_compiler(compiler, &file, &program, flags).then_some(program)
    })?;
    // Another process writes it: what this one has open for writing when a test starts a process
    // cannot be executed.
    let copied = Command::new("cp").arg(made).arg(&compiled.path).status();
    assert!(copied.unwrap().success());
    Some(compiled)
}

fn call_compiler(compiler: &str, source: &Path, program: &Path, flags: &[&str]) -> bool {
    let mut command = Command::new(compiler);
    command.args(["-O1", "-o"]).arg(program).arg(source);
    command.args(flags).env("AFL_QUIET", "1");
    let status = command.status().expect("the tests need a C compiler");
    status.success()
}

/// Where a program will be, and its source.
fn source_of(name: &str) -> (Compiled, PathBuf) {
    let dir = open_directory();
    let (_, source) = SOURCES.iter().find(|(known, _)| *known == name).unwrap();
    let file = dir.path().join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let path = dir.path().join(name);
    (Compiled { _dir: dir, path }, file)
}

/// A temporary directory that everybody may reach.
pub fn open_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// A wall limit that only a sleeper meets, however busy the machine is.
const WALL_LIMIT: Duration = Duration::from_secs(60);

/// A target of that program with short limits on all but wall time.
pub fn target(program: &Compiled) -> Target {
    let mut target = patient(Program::Path(program.path.clone()));
    target.limits.cpu = Duration::from_millis(150);
    target.limits.memory = 200 << 20;
    target
}

/// Set where all targets run in a sandbox.
pub const SANDBOXED: &str = "DDFUZZ_TEST_SANDBOX";

/// Whether they do.
pub fn is_sandboxed() -> bool {
    std::env::var_os(SANDBOXED).is_some()
}

/// A target whose runs are to end by themselves, on a busy machine too.
pub fn patient(program: Program) -> Target {
    let mut target = Target::new(program);
    target.limits.wall = WALL_LIMIT;
    if is_sandboxed() {
        target.sandbox = Sandbox::On;
    }
    target
}

/// Processes that execute this program.
pub fn running(program: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
        })
        .count()
}
