//! The screen of a minimization, on a terminal and without one.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;

use crate::ddfuzz::Desk;

/// Both ends of a new terminal of 24 rows and so many columns: what the program gets, and what
/// shows what it writes there.
fn terminal(columns: u16) -> (OwnedFd, File) {
    let (mut shows, mut given) = (0, 0);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the pointers are to our variables, or null for what is not asked for.
    let failed = unsafe {
        libc::openpty(
            &mut shows,
            &mut given,
            std::ptr::null_mut(),
            std::ptr::null(),
            &size,
        )
    };
    assert_eq!(failed, 0, "a terminal");
    for end in [shows, given] {
        // SAFETY: the call takes numbers; the descriptor is ours.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: both descriptors are new and owned by nobody else.
    unsafe { (OwnedFd::from_raw_fd(given), File::from_raw_fd(shows)) }
}

/// What `ddfuzz` with these words writes to a terminal that is its standard error.
fn drawn(desk: &Desk, columns: u16, words: &str) -> String {
    let (given, mut shows) = terminal(columns);
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    command
        .args(words.split_whitespace())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(given);
    let mut child = command.spawn().unwrap();
    drop(command); // our copy of the program's end
    let mut drawn = Vec::new();
    let mut buffer = [0; 4096];
    // A terminal that nobody has open any more is an error.
    while let Ok(count @ 1..) = shows.read(&mut buffer) {
        drawn.extend_from_slice(&buffer[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8_lossy(&drawn).into_owned()
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("crash", "....t....".repeat(40));
    desk
}

#[test]
fn a_terminal_shows_where_things_stand() {
    let drawn = drawn(&desk(), 100, "min crash --target crtplot");
    assert!(drawn.contains("360 bytes, 0 tests, "), "{drawn:?}");
    assert!(drawn.contains("baseline: 0 of 4 runs"), "{drawn:?}");
    // In the end the lines are gone again.
    let last = drawn.rfind("360 ").expect("a line");
    assert!(drawn[last..].contains("\u{1b}[2K"), "{drawn:?}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let drawn = drawn(&desk(), 24, "min crash --target crtplot -v");
    assert!(drawn.contains("360 bytes, 0 …"), "{drawn:?}");
}

#[test]
fn a_quiet_call_draws_nothing() {
    let drawn = drawn(&desk(), 100, "min crash --target crtplot -q");
    assert_eq!(drawn, "");
}

#[test]
fn without_a_terminal_only_lines_are_written() {
    let desk = desk();
    let said = desk.call("min crash --target crtplot").exits(0);
    let next = format!(
        "next: ddfuzz log verify {}\n",
        desk.file("crash.min.log.jsonl").display()
    );
    let (held, rest) = said.err.split_once('\n').unwrap();
    assert!(held.starts_with("minimizing the crash segv in "), "{held}");
    assert_eq!(rest, next);
    let said = desk
        .call("min crash --target crtplot -v --force --search ddmin")
        .exits(0);
    assert!(
        said.err.contains("test 0: 180 bytes by subset\n"),
        "{}",
        said.err
    );
    assert!(said.err.contains(": 1 byte by "), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'), "{:?}", said.err);
    let said = desk
        .call("min crash --target crtplot -v -q --force --json --search ddmin")
        .exits(0);
    assert!(!said.err.contains("by subset"), "{}", said.err);
    said.json();
}
