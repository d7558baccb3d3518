//! Targets that read keys at a terminal of their own (docs/decisions/0074).

mod driver;
mod keys;
mod pty;

use nix::sys::eventfd::EventFd;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::identity::Identity;
use crate::terminal::driver::{Driver, TerminalRun};
use crate::terminal::keys::strokes;
use crate::terminal::pty::Pty;
use crate::{Channel, Ended, Target, Terminal};

/// By how much each key extends the wall limit of a run: a program may sleep after each.
const PATIENCE: Duration = Duration::from_millis(50);
/// Keys that are typed after the input and its ending.
const LAST_KEYS: u32 = 2;

/// The terminal of a target, at which its runs are made one at a time.
pub(crate) struct Console {
    terminal: Terminal,
    owner: Option<Identity>,
    pty: Option<Pty>,
    driving: Option<Driving>,
    run: TerminalRun,
}

/// A run that is under way.
struct Driving {
    stop: Arc<EventFd>,
    thread: JoinHandle<TerminalRun>,
}

impl Console {
    /// The terminal of `target`, which runs as `owner`; `None` where it needs none.
    pub(crate) fn of(target: &Target, owner: Option<Identity>) -> Option<Console> {
        let Channel::Terminal(terminal) = &target.channel else {
            return None;
        };
        Some(Console {
            terminal: terminal.clone(),
            owner,
            pty: None,
            driving: None,
            run: TerminalRun::default(),
        })
    }

    /// Opens a new terminal for a new server; returns the target's side.
    pub(crate) fn renew(&mut self) -> io::Result<File> {
        self.finish();
        let pty = Pty::open(self.owner)?;
        let theirs = pty.theirs();
        self.pty = Some(pty);
        theirs
    }

    /// Resets the terminal, and begins to type `keys` as soon as the next run is at it.
    ///
    /// # Errors
    /// When the terminal cannot be reset, or no thread be started.
    pub(crate) fn begin(&mut self, keys: &[u8]) -> io::Result<()> {
        self.finish();
        self.run = TerminalRun::default();
        let pty = self.pty.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        pty.reset(self.terminal.rows, self.terminal.columns)?;
        let stop = Arc::new(EventFd::new()?);
        let driver = Driver {
            pty: pty.try_clone()?,
            stop: Arc::clone(&stop),
            keys: keys.to_owned(),
            ending: self.terminal.ending.0.clone(),
            run: TerminalRun::default(),
            unread: 0,
        };
        let thread = std::thread::Builder::new()
            .name("ddfuzz-terminal".to_owned())
            .spawn(move || driver.drive())?;
        self.driving = Some(Driving { stop, thread });
        Ok(())
    }

    /// Stops typing: the run, if there was one, has ended.
    pub(crate) fn finish(&mut self) {
        if let Some(Driving { stop, thread }) = self.driving.take() {
            let _ = stop.write(1); // fails only where it was written before
            self.run = thread.join().unwrap_or_default();
        }
    }

    /// How the last run ended: a run that was ended by hanging up its terminal has not failed.
    pub(crate) fn judge(&mut self, ended: Ended) -> Ended {
        self.finish();
        match ended {
            Ended::Signal(libc::SIGHUP | libc::SIGKILL) if self.run.hung_up => Ended::Exit(0),
            ended => ended,
        }
    }

    /// What the last run wrote to its terminal: the first 4 KiB and the last 64 KiB.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        self.finish();
        self.run.text()
    }

    /// By how much these keys extend the wall limit of their run.
    pub(crate) fn patience(&self, keys: &[u8]) -> Duration {
        let typed = strokes(keys).chain(strokes(&self.terminal.ending.0));
        let count = u32::try_from(typed.count()).unwrap_or(u32::MAX);
        PATIENCE.saturating_mul(count.saturating_add(LAST_KEYS))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Lines of the ordinary kind.
const LINES: usize = 240;
/// Characters of the long line.
const LONG: usize = 1200;

/// The text that `@@` in the arguments of a target at a terminal stands for: always the same some
/// hundred lines, with words, numbers, tabs, brackets, empty lines, a very long one, characters of
/// UTF-8 of all widths, bytes that are none, and control characters.
pub fn sample_text() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(make);
    &TEXT
}

const WORDS: [&str; 16] = [
    "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "then", "sleeps",
    "in", "warm", "summer", "grass",
];

fn make() -> Vec<u8> {
    let mut text = String::new();
    for line in 1..=LINES {
        match line % 12 {
            3 => {}
            5 => text.push_str("\tint main(void) { return f(a[1], \"x\\n\"); }\t/* indented */"),
            8 => text.push_str("Ünïcödé: ñandú, Σίσυφος, 漢字かな, 🦀 e\u{301} \u{200b}|"),
            _ => sentence(&mut text, line),
        }
        text.push('\n');
    }
    let long: String = (0..LONG)
        .map(|at| WORDS[at % 16].as_bytes()[0] as char)
        .collect();
    text.push_str(&long);
    let mut bytes = text.into_bytes();
    // What terminals write bold and underlined, an escape sequence, controls, no UTF-8, no end.
    bytes.extend(b"\nN\x08NA\x08AM\x08ME\x08E _\x08u_\x08n_\x08d_\x08e_\x08r\n");
    bytes.extend(b"\x1b[1mbold\x1b[0m \x07 \x0c \x00 \x01\x7f \xff\xfe \xc3( \xe2\x82\n");
    bytes.extend(b"https://example.org/a?b=c (see section 3.1)\r\nno newline at the end");
    bytes
}

fn sentence(text: &mut String, line: usize) {
    let _ = write!(text, "{line:3} "); // a string takes everything
    for word in 0..5 + line * 7 % 6 {
        text.push_str(WORDS[(line * 5 + word * word) % 16]);
        text.push(' ');
    }
    let _ = write!(text, "{}.", line * line * 37 % 1009);
}
