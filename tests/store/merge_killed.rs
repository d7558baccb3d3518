//! A merge that is killed before any of its changes of files, and repeated.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ddfuzz::store::merge;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::mounts;
use crate::tree::tree;

/// Says to the child which folder has the directories to merge.
const FOLDER: &str = "DDFUZZ_TEST_KILLED_MERGE";

/// The system calls that change names of files.
const CHANGES: [libc::c_long; 7] = [
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_link,
    libc::SYS_linkat,
];

fn merge_in(folder: &Path) {
    merge(&[folder.join("new")], &folder.join("into")).unwrap();
}

/// The merge: in a thread that the test below traces.
#[test]
fn the_merge_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        // Only the test below starts it.
        return;
    };
    ptrace::traceme().unwrap();
    // Not before: only a thread that is traced can be waited for.
    println!("\nthread {}", nix::unistd::gettid());
    nix::sys::signal::raise(Signal::SIGSTOP).unwrap();
    merge_in(&folder);
    // The end of the test need not be traced.
    nix::sys::signal::raise(Signal::SIGKILL).unwrap();
}

/// Merges in a child that is killed before its change number `number` of files; returns whether it
/// came to that.
fn killed_before(folder: &Path, number: usize) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "merge_killed::the_merge_that_is_killed",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let thread = lines.find_map(|line| line.ok()?.strip_prefix("thread ")?.parse().ok());
    let thread = Pid::from_raw(thread.unwrap());
    // An error says that the thread has ended.
    let wait = || waitpid(thread, Some(WaitPidFlag::__WALL));
    assert_eq!(wait(), Ok(WaitStatus::Stopped(thread, Signal::SIGSTOP)));
    let (mut left, mut is_entry) = (number, false);
    loop {
        ptrace::syscall(thread, None).unwrap();
        if !matches!(wait(), Ok(WaitStatus::Stopped(_, Signal::SIGTRAP))) {
            break;
        }
        is_entry = !is_entry;
        let call = ptrace::getregs(thread).unwrap().orig_rax as libc::c_long;
        if is_entry && CHANGES.contains(&call) {
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    // Each of these fails if one before has seen the end of the child.
    let _ = child.kill();
    let _ = waitpid(thread, Some(WaitPidFlag::__WALL));
    let _ = child.wait();
    left == 0
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    for (path, (_, bytes)) in tree(from) {
        match bytes {
            Some(bytes) => {
                std::fs::create_dir_all(to.join(&path).parent().unwrap()).unwrap();
                std::fs::write(to.join(path), bytes).unwrap();
            }
            None => std::fs::create_dir_all(to.join(path)).unwrap(),
        }
    }
}

#[test]
fn a_merge_that_is_killed_between_any_two_writes_is_completed_by_the_next() {
    let folder = mounts::fast_tempdir();
    crate::merged_builds::copy_that_was_rebuilt(folder.path());
    let (old, into) = (folder.path().join("old"), folder.path().join("into"));
    copy(&old, &into);
    merge_in(folder.path());
    let whole = tree(&into);
    let mut number = 1;
    loop {
        copy(&old, &into);
        let is_killed = killed_before(folder.path(), number);
        merge_in(folder.path());
        assert_eq!(tree(&into), whole, "killed before change {number}");
        if !is_killed {
            break;
        }
        number += 1;
    }
    assert!(number > 10, "{number} changes");
}
