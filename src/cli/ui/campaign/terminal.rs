//! Takes over the terminal (alternate screen, unbuffered keys), and restores it however ddfuzz
//! ends.
//!
//! Only modes that would spoil the picture are switched off: echo, line buffering, Ctrl-S, Ctrl-Z
//! and Ctrl-\. Ctrl-C remains a signal, so that it works while no keys are read
//! (docs/decisions/0062).

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, raise};
use nix::sys::termios::{
    self, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices as Special, Termios,
};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui_crossterm::crossterm::{event, terminal};

use super::draw::draw;
use super::model::{Key, ScreenModel};

/// Escape sequence that switches to the terminal's alternate screen and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Escape sequence that restores the terminal's colours, cursor and normal screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// True while the terminal shows ddfuzz's full screen, so that the terminal must be restored when
/// ddfuzz ends.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The terminal's descriptor, and the modes that the terminal had before ddfuzz changed them;
/// [`restore_terminal`] sets these modes again.
static SAVED_MODES: OnceLock<(RawFd, libc::termios)> = OnceLock::new();
static HOOK: Once = Once::new();

/// The terminal of stderr while ddfuzz shows its full screen on it; restored when dropped.
pub struct Terminal {
    drawing: ratatui_core::terminal::Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    keys: File,
    before: Termios,
}

impl Terminal {
    /// Takes over the terminal of stderr for the full screen. `None` if that is impossible: stderr
    /// is not a terminal, TERM is `dumb`, the size is unknown, or ddfuzz runs in the background.
    pub fn take() -> io::Result<Option<Terminal>> {
        let stderr = io::stderr();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        // The terminal would stop the whole process if it is a background job.
        let is_ours = || tcgetpgrp(stderr.as_fd()).is_ok_and(|group| group == getpgrp());
        if !stderr.is_terminal() || dumb || !is_ours() {
            return Ok(None);
        }
        // The size of a terminal may be unknown, as on a serial line.
        if !terminal::size().is_ok_and(|(width, height)| width > 0 && height > 0) {
            return Ok(None);
        }
        let Ok(keys) = File::options().read(true).write(true).open("/dev/tty") else {
            return Ok(None);
        };
        let before = termios::tcgetattr(&keys)?;
        SAVED_MODES.get_or_init(|| (keys.as_raw_fd(), before.clone().into()));
        restore_when_panicking();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 14, stderr));
        let mut terminal = Terminal {
            drawing: ratatui_core::terminal::Terminal::new(backend)?,
            keys,
            before,
        };
        terminal.enter()?;
        Ok(Some(terminal))
    }

    fn enter(&mut self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.local_flags -= LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::IEXTEN;
        modes.input_flags -= InputFlags::IXON;
        for key in [Special::VSUSP, Special::VQUIT] {
            modes.control_chars[key as usize] = libc::_POSIX_VDISABLE;
        }
        modes.control_chars[Special::VMIN as usize] = 1;
        modes.control_chars[Special::VTIME as usize] = 0;
        TAKEN.store(true, Ordering::Relaxed);
        termios::tcsetattr(&self.keys, SetArg::TCSADRAIN, &modes)?;
        io::stderr().write_all(ENTER)?;
        self.drawing.clear()
    }

    /// Draws the full screen's current page with the data in `model`; does nothing after a panic
    /// has restored the terminal.
    pub fn draw(&mut self, model: &ScreenModel) -> io::Result<()> {
        if TAKEN.load(Ordering::Relaxed) {
            self.drawing.draw(|frame| draw(model, frame))?;
        }
        Ok(())
    }

    /// Returns the meaning of the next pressed key, without waiting. Keys without a meaning on the
    /// full screen are skipped. `None` if no other key was pressed.
    pub fn key(&mut self) -> io::Result<Option<Key>> {
        while event::poll(Duration::ZERO)? {
            if let Event::Key(pressed) = event::read()?
                && pressed.kind != KeyEventKind::Release
                && let Some(key) = meaning(pressed.code, pressed.modifiers)
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Restores the terminal and suspends the process group, as Ctrl-Z does; when the user resumes
    /// the process group, shows the full screen again.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore_terminal();
        // As Ctrl-Z does: whoever waits for the group sees it stop.
        kill(Pid::from_raw(0), Signal::SIGTSTP)?;
        self.enter()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // What is still in the buffer belongs to our screen.
        let _ = self.drawing.backend_mut().flush();
        restore_terminal();
    }
}

/// Returns true while the terminal shows ddfuzz's full screen.
pub fn owns_terminal() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// Restores the terminal if it shows ddfuzz's full screen. May be called in a signal handler.
pub fn restore_terminal() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the descriptor is open, or it is closed and the call fails. stderr is only borrowed:
    // the file made of it is never dropped, and so does not close it.
    unsafe {
        if let Some((keys, before)) = SAVED_MODES.get() {
            libc::tcsetattr(*keys, libc::TCSANOW, before);
        }
        let mut stderr = ManuallyDrop::new(File::from_raw_fd(libc::STDERR_FILENO));
        let _ = stderr.write_all(LEAVE);
    }
}

/// Installs a panic hook that restores the terminal before the panic message is printed.
fn restore_when_panicking() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            before(panic);
        }));
    });
}

/// Returns the meaning of a pressed key on the full screen; `None` if it has none. Ctrl-C has none,
/// and raises SIGINT.
fn meaning(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    if modifiers.contains(KeyModifiers::CONTROL) {
        return match code {
            // The terminal did not make a signal of it, so we do: the second one ends at once.
            KeyCode::Char('c') => {
                let _ = raise(Signal::SIGINT);
                None
            }
            KeyCode::Char('z') => Some(Key::Suspend),
            _ => None,
        };
    }
    Some(match code {
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Key::First,
        KeyCode::End | KeyCode::Char('G') => Key::Last,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc | KeyCode::Backspace => Key::Back,
        KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => Key::Next,
        KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => Key::Previous,
        _ => return None,
    })
}
