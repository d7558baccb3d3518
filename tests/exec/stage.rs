//! Runs a part of this test program once more, as a process of its own: as another user, on
//! another system, alone, or to be killed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::compiled::output;
use crate::programs::PROGRAMS;

/// Which scene this process plays; not set in the process that cargo started.
const SCENE: &str = "DDFUZZ_TEST_SCENE";

/// Whether this process was started to play this scene.
pub fn plays(scene: &str) -> bool {
    std::env::var_os(SCENE).is_some_and(|played| played == scene)
}

/// Whether this process was started to play any scene.
pub fn is_scene() -> bool {
    std::env::var_os(SCENE).is_some()
}

/// Has all targets of this process run in a sandbox, and those of whom it starts.
pub fn sandbox(command: &mut Command) {
    command.env(crate::programs::SANDBOXED, "1");
}

/// What the scene was given: the program that it is about.
pub fn given() -> std::path::PathBuf {
    std::env::var_os("DDFUZZ_TEST_GIVEN").unwrap().into()
}

/// The command that plays `scene` in the tests whose names begin so.
pub fn command(scene: &str, tests: &[&str], given: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    prepare(&mut command, scene, tests, given);
    command
}

/// The same for a command that ends with the name of this program.
pub fn prepare(command: &mut Command, scene: &str, tests: &[&str], given: &Path) {
    command
        .args(tests)
        .args(["--nocapture", "--test-threads", "2"])
        .env(SCENE, scene)
        .env("DDFUZZ_TEST_GIVEN", given)
        .stdin(Stdio::null());
}

/// Plays it to its end, which must be a good one, with at least one test.
pub fn play(command: &mut Command) {
    let output = output(command);
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(!said.contains("running 0 tests"), "{said}");
}

/// Lets it begin.
pub fn begin(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Makes the process of `command` one of the user nobody, who keeps compiled programs in `dir`,
/// a directory that this user may reach, and runs there.
pub fn step_down(command: &mut Command, dir: &Path) {
    let programs = dir.join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::set_permissions(&programs, Permissions::from_mode(0o777)).unwrap();
    command.env(PROGRAMS, &programs).current_dir(dir);
    command.uid(65534).gid(65534).env("HOME", "/nonexistent");
}
