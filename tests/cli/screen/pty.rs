//! The screen on a real terminal: a pseudo terminal of its own session.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;

use crate::ddfuzz::Desk;

/// No call takes longer than this; one that does has gone wrong.
const LONGEST: Duration = Duration::from_secs(120);
/// The alternate screen, and the way back.
const SCREEN: (&str, &str) = ("\u{1b}[?1049h", "\u{1b}[?1049l");

/// ddfuzz on a terminal of 80 columns and 24 lines.
struct Session {
    child: Child,
    /// The user's end of the terminal.
    user: File,
    /// The program's end, so that it outlives the program.
    terminal: OwnedFd,
    said: String,
}

impl Session {
    /// Calls ddfuzz with these words, and waits for nothing.
    fn start(desk: &Desk, words: &str, variables: &[(&str, &str)]) -> Session {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let both = openpty(&size, None).unwrap();
        let end = || Stdio::from(both.slave.try_clone().unwrap());
        let mut command: Command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command
            .args(words.split_whitespace())
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end());
        // SAFETY: both calls are async-signal-safe, and touch the child only.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        Session {
            child: command.spawn().unwrap(),
            user: File::from(both.master),
            terminal: both.slave,
            said: String::new(),
        }
    }

    /// Reads what is said until it contains this text.
    #[track_caller]
    fn until(&mut self, text: &str) {
        let began = Instant::now();
        while !self.said.contains(text) {
            assert!(self.hear(), "the end, without {text:?}: {}", self.said);
            assert!(began.elapsed() < LONGEST, "no {text:?}: {}", self.said);
        }
    }

    /// Reads what there is, waiting a moment for it; false when the program has ended and all was
    /// read.
    fn hear(&mut self) -> bool {
        use std::os::fd::AsFd;
        // Asked before what it said last is read.
        let ended = self.child.try_wait().unwrap().is_some();
        let mut ready = [PollFd::new(self.user.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, 50_u16).unwrap() == 0 {
            return !ended;
        }
        let mut bytes = [0; 4096];
        let count = self.user.read(&mut bytes).unwrap();
        self.said
            .push_str(&String::from_utf8_lossy(&bytes[..count]));
        true
    }

    fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; gives the exit code, and what was said in all.
    fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        while self.hear() {
            if began.elapsed() > LONGEST {
                self.child.kill().unwrap();
                panic!("it does not end: {}", self.said);
            }
        }
        let modes = tcgetattr(&self.terminal).unwrap().local_flags;
        let cooked = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN;
        assert!(modes.contains(cooked), "{modes:?}");
        (self.child.wait().unwrap().code(), self.said)
    }
}

/// The screen was there, and nothing but what is behind it is left.
#[track_caller]
fn behind_the_screen(said: &str) -> &str {
    let (before, inside) = said.split_once(SCREEN.0).expect(said);
    assert_eq!(before, "");
    let (_, behind) = inside.rsplit_once(SCREEN.1).expect(said);
    behind
}

/// A campaign without end.
const ENDLESS: &str = "run --target crtplot --max-len 500 --seed 1 -o out";

#[test]
fn q_ends_the_campaign_and_restores_the_terminal() {
    let desk = Desk::new();
    let mut session = Session::start(&desk, ENDLESS, &[]);
    let before = tcgetattr(&session.terminal).unwrap();
    session.until("1-minimal");
    for word in [
        "ddfuzz", "crtplot", "classic", "seed", "rate", "groups", "events", "quit",
    ] {
        session.until(word);
    }
    assert_ne!(tcgetattr(&session.terminal).unwrap(), before);
    session.press("q");
    let terminal = session.terminal.try_clone().unwrap();
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(tcgetattr(&terminal).unwrap(), before);
    let table = behind_the_screen(&said);
    assert!(
        table.contains("KIND") && table.contains("all in out"),
        "{table}"
    );
    desk.is_left_clean();
}

#[test]
fn the_page_of_a_group_opens_by_its_keys() {
    let desk = Desk::new();
    let mut session = Session::start(&desk, ENDLESS, &[]);
    session.until("1-minimal");
    session.press("\r");
    session.until("[stack]");
    session.press("\t");
    session.until("[input]");
    session.until("00000000");
    session.press("\t\t");
    session.until("[log]");
    session.until("confirm");
    session.press("\u{1b}");
    session.press("q");
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn every_signal_restores_the_terminal_also_the_second_one() {
    let desk = Desk::new();
    for (at, signals) in [1, 2].into_iter().enumerate() {
        let words = ENDLESS.replace("out", &format!("out{at}"));
        let mut session = Session::start(&desk, &words, &[]);
        session.until("rate");
        for _ in 0..signals {
            let pid = Pid::from_raw(session.child.id() as i32);
            kill(pid, Signal::SIGTERM).unwrap();
        }
        let (code, said) = session.end();
        assert_eq!(code, Some(130), "{said}");
        behind_the_screen(&said);
    }
    let mut session = Session::start(&desk, &ENDLESS.replace("out", "typed"), &[]);
    session.until("rate");
    session.press("\u{3}");
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
    behind_the_screen(&said);
}

#[test]
fn a_campaign_that_ends_by_itself_leaves_its_table() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 60 --max-len 500 --seed 1 -o out";
    let (code, said) = Session::start(&desk, words, &[]).end();
    assert_eq!(code, Some(1), "{said}");
    let table = behind_the_screen(&said);
    assert!(table.starts_with("KIND"), "{table}");
    assert!(
        table.contains(": 1 group of crashes, 1 new; all in out"),
        "{table}"
    );
}

#[test]
fn the_screen_is_not_drawn_where_it_is_not_wanted() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 60 --max-len 500 --seed 1";
    for (at, more) in ["--plain", "-q", "--json"].into_iter().enumerate() {
        let session = Session::start(&desk, &format!("{words} {more} -o out{at}"), &[]);
        let (code, said) = session.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(!said.contains(SCREEN.0), "{more}: {said}");
        assert!(at == 1 || said.contains("reproduce.sh"), "{more}: {said}");
    }
    let dumb = [("TERM", "dumb")];
    let (_, said) = Session::start(&desk, &format!("{words} -o dumb"), &dumb).end();
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(said.contains("reproduce.sh"), "{said}");
}

#[test]
fn colours_are_those_that_are_wanted() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 60 --max-len 500 --seed 1";
    // A colour of the text, as crossterm writes it.
    let is_colored = |said: &str| said.contains("\u{1b}[38;5;");
    let (_, said) = Session::start(&desk, &format!("{words} -o a"), &[]).end();
    assert!(is_colored(&said), "{said}");
    let never = format!("{words} -o b --color never");
    let (_, said) = Session::start(&desk, &never, &[]).end();
    assert!(!is_colored(&said), "{said}");
    let (_, said) = Session::start(&desk, &format!("{words} -o c"), &[("NO_COLOR", "1")]).end();
    assert!(!is_colored(&said), "{said}");
}
