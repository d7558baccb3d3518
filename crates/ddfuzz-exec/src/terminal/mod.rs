//! Targets that are worked at a terminal of their own (docs/decisions/0074).

mod driver;
mod heard;
mod keys;
mod pty;
mod sample;
mod session;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::EventFd;

use self::driver::{Driven, Driver};
use self::keys::strokes;
use self::pty::Pty;
use super::identity::Identity;
use super::{Channel, Ended, Target, Terminal};

pub use sample::sample_text;

/// By how much each key lengthens the wall limit of a run: a program may sleep on each.
const PATIENCE: Duration = Duration::from_millis(50);
/// What is typed behind the input and its ending.
const LAST_KEYS: u32 = 2;

/// A terminal at which the runs of a target are made, one at a time.
pub(crate) struct Console {
    terminal: Terminal,
    owner: Option<Identity>,
    pty: Option<Pty>,
    driving: Option<Driving>,
    driven: Driven,
}

/// A run that is under way.
struct Driving {
    stop: Arc<EventFd>,
    thread: JoinHandle<Driven>,
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
            driven: Driven::default(),
        })
    }

    /// A new terminal, for a new server; gives what that is born with.
    pub(crate) fn renew(&mut self) -> io::Result<File> {
        self.finish();
        let pty = Pty::open(self.owner)?;
        let theirs = pty.theirs();
        self.pty = Some(pty);
        theirs
    }

    /// Begins to type `keys` as soon as the next run is at the terminal, which is as new.
    ///
    /// # Errors
    /// When the terminal cannot be made as new, or no thread be started.
    pub(crate) fn begin(&mut self, keys: &[u8]) -> io::Result<()> {
        self.finish();
        self.driven = Driven::default();
        let pty = self.pty.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        pty.reset(self.terminal.rows, self.terminal.columns)?;
        let stop = Arc::new(EventFd::new()?);
        let driver = Driver {
            pty: pty.try_clone()?,
            stop: Arc::clone(&stop),
            keys: keys.to_owned(),
            ending: self.terminal.ending.0.clone(),
            driven: Driven::default(),
            unread: 0,
        };
        let thread = std::thread::Builder::new()
            .name("ddfuzz-terminal".to_owned())
            .spawn(move || driver.drive())?;
        self.driving = Some(Driving { stop, thread });
        Ok(())
    }

    /// Takes the hands off the terminal: the run, if there was one, has ended.
    pub(crate) fn finish(&mut self) {
        if let Some(Driving { stop, thread }) = self.driving.take() {
            let _ = stop.write(1); // fails only where it was written before
            self.driven = thread.join().unwrap_or_default();
        }
    }

    /// How the last run ended: one that was ended with its terminal has not failed.
    pub(crate) fn judge(&mut self, ended: Ended) -> Ended {
        self.finish();
        match ended {
            Ended::Signal(libc::SIGHUP | libc::SIGKILL) if self.driven.hung_up => Ended::Exit(0),
            ended => ended,
        }
    }

    /// What the last run wrote to its terminal: the first 4 KiB and the last 64 KiB.
    pub(crate) fn heard(&mut self) -> Vec<u8> {
        self.finish();
        self.driven.heard.text()
    }

    /// By how much these keys lengthen the wall limit of their run.
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
