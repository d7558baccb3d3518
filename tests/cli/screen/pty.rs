//! The screen on a real terminal: a pseudo terminal of its own session.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, killpg};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;

use crate::ddfuzz::Desk;

/// No call takes longer than this; one that does has gone wrong.
const LONGEST: Duration = Duration::from_secs(120);
/// The alternate screen, and the way back.
const SCREEN: (&str, &str) = ("\u{1b}[?1049h", "\u{1b}[?1049l");

/// What the shell of the session does: it says the modes of the terminal before and after ddfuzz,
/// for at its own end the kernel resets them. Signals are meant for ddfuzz: one that is still under
/// way when ddfuzz has ended must not end the last `stty`.
const SHELL: &str = r#"trap : INT TERM; stty ${SIZE-cols 80}; stty -g; "$@"; code=$?
    trap '' INT TERM; stty -g; exit $code"#;

/// ddfuzz in a shell on a terminal of 80 columns and 24 lines.
struct Session {
    shell: Child,
    /// The user's end of the terminal.
    user: File,
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
        // A session that held the user's end itself would outlive a test that fails.
        for end in [&both.master, &both.slave] {
            nix::fcntl::fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let end = || Stdio::from(both.slave.try_clone().unwrap());
        let mut command: Command = desk.command("sh");
        command
            .args(["-c", SHELL, "sh", env!("CARGO_BIN_EXE_ddfuzz")])
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
            shell: command.spawn().unwrap(),
            user: File::from(both.master),
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

    /// Reads what there is, waiting a moment for it; false at the end.
    fn hear(&mut self) -> bool {
        let mut ready = [PollFd::new(self.user.as_fd(), PollFlags::POLLIN)];
        // A signal to the test is no reason to fail.
        if poll(&mut ready, 50_u16).unwrap_or(0) == 0 {
            return true;
        }
        let mut bytes = [0; 4096];
        // The last one has closed it: the end.
        let Ok(count @ 1..) = self.user.read(&mut bytes) else {
            return false;
        };
        let said = String::from_utf8_lossy(&bytes[..count]);
        self.said.push_str(&said);
        true
    }

    fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; gives the exit code, and what ddfuzz said in all. The terminal is as it
    /// was before.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        while self.hear() {
            assert!(began.elapsed() < LONGEST, "no end: {}", self.said);
        }
        let said = std::mem::take(&mut self.said);
        let (before, said) = said.split_once("\r\n").expect("the modes before");
        let said = said.trim_end_matches("\r\n");
        // A second signal ends it without another word, and so without a line end.
        let kept = said.strip_suffix(before);
        let said = kept.unwrap_or_else(|| panic!("other modes than {before}: {said}"));
        let said = said.strip_suffix("\r\n").unwrap_or(said);
        (self.shell.wait().unwrap().code(), said.to_owned())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Of a test that failed; else it has ended.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The screen was there, and nothing but what is behind it is left.
#[track_caller]
fn behind_the_screen(said: &str) -> &str {
    let (before, inside) = said.split_once(SCREEN.0).expect(said);
    assert_eq!(before, "");
    let (_, behind) = inside.rsplit_once(SCREEN.1).expect(said);
    behind.trim_start_matches("\u{1b}[?25h")
}

/// A campaign without end.
const ENDLESS: &str = "run --target crtplot --max-len 500 --seed 1 -o out";

#[test]
fn q_ends_the_campaign_and_restores_the_terminal() {
    let desk = Desk::new();
    let mut session = Session::start(&desk, ENDLESS, &[]);
    session.until("1-minimal");
    for word in [
        "ddfuzz", "crtplot", "classic", "seed", "rate", "groups", "events", "quit",
    ] {
        session.until(word);
    }
    let modes = tcgetattr(&session.user).unwrap().local_flags;
    assert!(!modes.intersects(LocalFlags::ICANON | LocalFlags::ECHO));
    session.press("q");
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
    let table = behind_the_screen(&said);
    assert!(
        table.contains("GROUP") && table.contains("results in out"),
        "{table}"
    );
    desk.is_left_clean();
}

/// A slow test shows for how long the result is run again, and Ctrl-C there keeps it and says that
/// it is not confirmed.
#[test]
fn the_runs_that_confirm_a_result_are_counted_on_the_screen() {
    let desk = Desk::new();
    desk.script("test.sh", "sleep 0.3\ngrep -q x");
    desk.write("in", b"axb\n");
    let words = "min --test ./test.sh in -o out --jobs 1 --budget-tests 2";
    let mut session = Session::start(&desk, words, &[]);
    session.until(" of 20 runs, about ");
    session.until(" s left");
    session.press("\u{3}");
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("which is not confirmed yet"), "{said}");
    assert!(desk.read("out").contains(&b'x'), "the result is kept");
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
    session.until("|t|");
    session.press("\t\t");
    session.until("[log]");
    session.until("confirm");
    // The first goes back, the second ends the campaign.
    session.press("qq");
    let (code, said) = session.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn signals_restore_the_terminal_and_two_of_one_request_still_leave_the_result() {
    let desk = Desk::new();
    for (at, signals) in [1, 2].into_iter().enumerate() {
        let words = ENDLESS.replace("out", &format!("out{at}"));
        let mut session = Session::start(&desk, &words, &[]);
        session.until("rate");
        for _ in 0..signals {
            let group = Pid::from_raw(session.shell.id() as i32);
            killpg(group, Signal::SIGTERM).unwrap();
        }
        let (code, said) = session.end();
        assert_eq!(code, Some(130), "{said}");
        let table = behind_the_screen(&said);
        assert!(table.contains("interrupted"), "{table}");
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
    assert!(table.contains("GROUP"), "{table}");
    assert!(
        table.contains(": 1 crash group (1 new); results in out"),
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
    let odd = [("TERM", "dumb"), ("SIZE", "cols 0 rows 0")];
    for (at, variable) in odd.into_iter().enumerate() {
        let words = format!("{words} -o odd{at}");
        let (_, said) = Session::start(&desk, &words, &[variable]).end();
        assert!(!said.contains(SCREEN.0), "{said}");
        assert!(said.contains("1-minimal"), "{said}");
    }
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
