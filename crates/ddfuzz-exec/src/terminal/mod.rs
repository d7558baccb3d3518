//! Targets that read keys at a terminal of their own (docs/decisions/0074).

mod blocked_call;
mod driver;
mod pty;

use nix::sys::eventfd::EventFd;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use std::{fmt::Write, fs::File, io, thread::JoinHandle};

use crate::terminal::driver::{Driver, TerminalRun};
use crate::{Channel, Ended, Target, Terminal, prepared_target::Identity, terminal::pty::Pty};

/// Time by which each key extends the wall limit of a run at a terminal: a program may sleep after
/// each key.
const TIME_PER_KEY: Duration = Duration::from_millis(50);
/// Longest limit on the wall time of a run at a terminal; any longer limit is replaced by this one.
const LONGEST: Duration = Duration::from_secs(1 << 20);
/// Number of end-of-file keys (^D) that are typed at the end of a run, after the input and the keys
/// that end the program.
const LAST_KEYS: usize = 2;

/// The terminal of a target, used by one run at a time.
pub(crate) struct Console {
    terminal: Terminal,
    owner: Option<Identity>,
    pty: Option<Pty>,
    driving: Option<TypingThread>,
    run: TerminalRun,
}

/// The thread that types an input at a terminal during one run.
struct TypingThread {
    stop: Arc<EventFd>,
    thread: JoinHandle<TerminalRun>,
}

impl Console {
    /// Creates the terminal of `target`, which runs as `owner`; `None` if the target takes no input
    /// from a terminal.
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

    /// Opens a new terminal for a new server; returns the target's side of it.
    pub(crate) fn renew(&mut self) -> io::Result<File> {
        self.finish();
        let pty = Pty::open(self.owner)?;
        let theirs = pty.theirs();
        self.pty = Some(pty);
        theirs
    }

    /// Resets the terminal, and starts a thread that types `keys` as soon as the next run has the
    /// terminal. `wall`: the limit on the elapsed time of the run. Fails when the terminal cannot
    /// be reset, or no thread can be started.
    pub(crate) fn begin(&mut self, keys: &[u8], wall: Duration) -> io::Result<()> {
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
            // A program that is hung up then has some of its time left to end.
            until: Instant::now() + wall.min(LONGEST) / 4 * 3,
            unread: 0,
        };
        let thread = std::thread::Builder::new()
            .name("ddfuzz-terminal".to_owned())
            .spawn(move || driver.drive())?;
        self.driving = Some(TypingThread { stop, thread });
        Ok(())
    }

    /// Stops the thread that types at the terminal after the run has ended, and stores its results:
    /// the run's output, and whether the thread hung up the terminal.
    pub(crate) fn finish(&mut self) {
        if let Some(TypingThread { stop, thread }) = self.driving.take() {
            let _ = stop.write(1); // fails only where it was written before
            self.run = thread.join().unwrap_or_default();
        }
    }

    /// Returns how the last run ended, which seems to be `ended`: a run that was ended by hanging
    /// up its terminal counts as a normal exit.
    pub(crate) fn judge(&mut self, ended: Ended) -> Ended {
        self.finish();
        match ended {
            Ended::Signal(libc::SIGHUP | libc::SIGKILL) if self.run.hung_up => Ended::Exit(0),
            ended => ended,
        }
    }

    /// Returns what the last run wrote to its terminal: the first 4 KiB and the last 64 KiB.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        self.finish();
        self.run.text()
    }

    /// Returns the wall time by which the keys `keys` extend the limit of a run.
    pub(crate) fn extra_wall_time(&self, keys: &[u8]) -> Duration {
        let typed = strokes(keys).chain(strokes(&self.terminal.ending.0));
        let count = u32::try_from(typed.count() + LAST_KEYS).unwrap_or(u32::MAX);
        TIME_PER_KEY.saturating_mul(count)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Number of lines before the one very long line of the sample text, which targets at terminals get
/// as a file to work on.
const LINES: usize = 240;
/// Length, in characters, of the one very long line of the sample text, which targets at terminals
/// get as a file to work on.
const LONG: usize = 1200;

/// Returns the sample text of the file that `@@` stands for in the arguments of a target at a
/// terminal. It is constant, and has words, numbers, tabs, brackets, empty lines, a very long line,
/// all widths of UTF-8, invalid UTF-8 and control characters.
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
    // Overstruck text as terminals show it, escape sequences, control characters, invalid UTF-8, no
    // final newline.
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

/// One action at a terminal: a key, or a new window size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke<'a> {
    /// Types the bytes of one key at the terminal.
    Key(&'a [u8]),
    /// Changes the size of the terminal's window to these rows and columns.
    Resize {
        /// New height of the terminal's window in lines.
        rows: u16,
        /// New width of the terminal's window in characters.
        columns: u16,
    },
}

const ESC: u8 = 0x1b;
/// Maximum height and width of a terminal's window, in lines and characters.
const LARGEST: u16 = 500;

/// Splits bytes into keystrokes. A key is an escape sequence (`ESC [` up to its final byte, `ESC [
/// M` and three more bytes, `ESC O` and one more, `ESC` and a character), a character of UTF-8, or
/// else a byte. Xterm's `ESC [ 8 ; rows ; columns t`, with sizes from 1 to 500, changes the size of
/// the window.
pub(super) fn strokes(bytes: &[u8]) -> impl Iterator<Item = Stroke<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (key, behind) = rest
            .split_at_checked(length(rest))
            .filter(|(key, _)| !key.is_empty())?;
        rest = behind;
        Some(resized(key).unwrap_or(Stroke::Key(key)))
    })
}

/// Returns the length, in bytes, of the first key in `bytes`; 0 if `bytes` is empty.
fn length(bytes: &[u8]) -> usize {
    match bytes {
        [ESC, b'[', b'M', report @ ..] => 3 + report.len().min(3), // of a mouse
        [ESC, b'[', rest @ ..] => 2 + control_sequence(rest),
        [ESC, b'O', _, ..] => 3,
        [ESC, ESC, ..] => 1,
        [ESC, rest @ ..] => 1 + character(rest),
        _ => character(bytes),
    }
}

/// Returns the length, in bytes, of the parameters, intermediate bytes and final byte of a
/// terminal's control sequence; `bytes` begins after `ESC [`.
fn control_sequence(bytes: &[u8]) -> usize {
    let parameters = bytes.iter().take_while(|byte| (0x20..0x40).contains(*byte));
    let length = parameters.count();
    let is_final = |byte: &u8| (0x40..0x7f).contains(byte);
    length + usize::from(bytes.get(length).is_some_and(is_final))
}

/// Returns the length, in bytes, of the first UTF-8 character in `bytes`; 1 for invalid UTF-8, 0 if
/// `bytes` is empty.
fn character(bytes: &[u8]) -> usize {
    let width = match bytes.first() {
        None => 0,
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) => 1,
    };
    match bytes.get(..width) {
        Some(whole) if width < 2 || std::str::from_utf8(whole).is_ok() => width,
        _ => 1,
    }
}

fn resized(key: &[u8]) -> Option<Stroke<'static>> {
    let sizes = key.strip_prefix(b"\x1b[8;")?.strip_suffix(b"t")?;
    let (rows, columns) = std::str::from_utf8(sizes).ok()?.split_once(';')?;
    let size = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let size = text.parse::<u16>().ok().filter(|_| digits)?;
        (1..=LARGEST).contains(&size).then_some(size)
    };
    Some(Stroke::Resize {
        rows: size(rows)?,
        columns: size(columns)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<&[u8]> {
        let all = strokes(bytes).map(|stroke| match stroke {
            Stroke::Key(key) => key,
            Stroke::Resize { .. } => b"resize",
        });
        all.collect()
    }

    #[test]
    fn escape_sequences_and_characters_are_keys() {
        let keys = |bytes: &'static [u8]| keys(bytes);
        assert_eq!(keys(b"ab"), [b"a", b"b"]);
        assert_eq!(keys(b"\x1b[1;5Ax"), [&b"\x1b[1;5A"[..], b"x"]);
        assert_eq!(keys(b"\x1bOPy"), [&b"\x1bOP"[..], b"y"]);
        assert_eq!(keys(b"\x1bvz"), [&b"\x1bv"[..], b"z"]);
        assert_eq!(keys(b"\x1b[M !!q"), [&b"\x1b[M !!"[..], b"q"]);
        assert_eq!(keys("é€".as_bytes()), ["é".as_bytes(), "€".as_bytes()]);
        assert_eq!(keys("\x1bé".as_bytes()), ["\x1bé".as_bytes()]);
    }

    #[test]
    fn what_is_torn_stays_whole_byte_by_byte() {
        assert_eq!(keys(b"\x1b"), [b"\x1b"]);
        assert_eq!(keys(b"\x1b\x1b[A"), [&b"\x1b"[..], b"\x1b[A"]);
        assert_eq!(keys(b"\x1b[\x01"), [&b"\x1b["[..], b"\x01"]);
        assert_eq!(keys(b"\xe2\x82"), [b"\xe2", b"\x82"]);
        assert_eq!(keys(b"\xff\xc3("), [b"\xff", b"\xc3", b"("]);
        for bytes in [&b"\x1b[1;\x1bO\x1b\x1b\xf0\x9f"[..], b"\x1b[M!", b"\x1bO"] {
            assert_eq!(keys(bytes).concat(), bytes);
        }
    }

    #[test]
    fn a_window_is_resized_within_bounds() {
        let stroke = |bytes: &'static [u8]| strokes(bytes).next().unwrap();
        let resize = Stroke::Resize {
            rows: 30,
            columns: 500,
        };
        assert_eq!(stroke(b"\x1b[8;30;500t"), resize);
        for other in [
            &b"\x1b[8;0;80t"[..],
            b"\x1b[8;1;501t",
            b"\x1b[8;+1;1t",
            b"\x1b[8;1t",
        ] {
            assert_eq!(stroke(other), Stroke::Key(other));
        }
    }
}
