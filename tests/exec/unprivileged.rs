//! Everything works without being root: no control group, no other user to step down to.

use std::process::Command;

use crate::programs::open_directory;
use crate::stage;

#[test]
fn an_unprivileged_user_runs_targets_as_root_does() {
    if !nix::unistd::geteuid().is_root() {
        return; // all these tests run so already
    }
    // A copy, because the user may not reach the project.
    let dir = open_directory();
    let program = dir.path().join("exec-tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    // Servers of AFL++ are started like any program.
    let tests = [
        "constructors::what",
        "hostile::",
        "keys::",
        "killed::",
        "limits::",
        "sandbox::",
        "sandbox_ends::",
        "ways::",
        "--skip",
        "forkserver_hostile",
    ];
    stage::prepare(&mut command, "unprivileged", &tests, &program);
    stage::step_down(&mut command, dir.path());
    stage::play(&mut command);
}
