//! Whatever is promised of targets holds in a sandbox, too: the same tests, with all their targets
//! in one.

use crate::programs::{is_sandboxed, open_directory};
use crate::stage;

const TESTS: [&str; 9] = [
    "descendants::",
    "hostile::",
    "keys::",
    "killed::",
    "limits::",
    "terminal",
    "ways::",
    // Targets of AFL++'s own servers are in no sandbox there.
    "--skip",
    "forkserver_hostile",
];

#[test]
fn targets_in_a_sandbox_run_as_they_do_without() {
    if is_sandboxed() {
        return; // this is it
    }
    let program = std::env::current_exe().unwrap();
    let mut command = stage::command("sandboxed", &TESTS, &program);
    stage::sandbox(&mut command);
    stage::play(&mut command);
}

#[test]
fn an_unprivileged_user_sandboxes_targets_as_root_does() {
    if !nix::unistd::geteuid().is_root() || is_sandboxed() {
        return; // the test above is it
    }
    // A copy, because the user may not reach the project.
    let dir = open_directory();
    let program = dir.path().join("exec-tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = std::process::Command::new(&program);
    stage::prepare(
        &mut command,
        "sandboxed",
        &[
            "descendants::",
            "hostile::",
            "keys::",
            "killed::",
            "--skip",
            "forkserver_hostile",
        ],
        &program,
    );
    stage::sandbox(&mut command);
    stage::step_down(&mut command, dir.path());
    stage::play(&mut command);
}
