//! A pair of pseudo terminals: ddfuzz's side, and the target's side.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{PtyMaster, posix_openpt, unlockpt};
use nix::sys::termios::{
    FlushArg, InputFlags, SetArg, Termios, tcflush, tcgetattr, tcgetsid, tcsetattr,
};
use nix::{errno::Errno, unistd::Pid};
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::{io, os::unix::fs::PermissionsExt};

use crate::prepared_target::Identity;

/// The file mode that login programs give a terminal: only its user may read it.
const TERMINAL_MODE: u32 = 0o620;
/// Maximum number of output blocks (16 KiB each) that are read at once, for a program that writes
/// without end.
const MOST_BLOCKS: usize = 64;

/// A pair of connected pseudo terminals: ddfuzz's side and the target's side.
pub(super) struct Pty {
    pub(super) ours: File,
    theirs: File,
    /// The settings of a new terminal, which are restored before each run.
    fresh: Termios,
}

impl Pty {
    /// Opens a pair of pseudo terminals. `owner`: the user that the target runs as; `None` for the
    /// current user.
    pub(super) fn open(owner: Option<Identity>) -> io::Result<Pty> {
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let master = posix_openpt(flags)?;
        unlockpt(&master)?;
        let theirs = peer(&master)?;
        if let Some(owner) = owner {
            std::os::unix::fs::fchown(&theirs, Some(owner.uid), Some(owner.gid))?;
        }
        let fresh = tcgetattr(&theirs)?;
        let ours = File::from(OwnedFd::from(master));
        Ok(Pty {
            ours,
            theirs,
            fresh,
        })
    }

    /// Duplicates the descriptor of the target's side, for the server that runs the target.
    pub(super) fn theirs(&self) -> io::Result<File> {
        self.theirs.try_clone()
    }

    pub(super) fn try_clone(&self) -> io::Result<Pty> {
        Ok(Pty {
            ours: self.ours.try_clone()?,
            theirs: self.theirs.try_clone()?,
            fresh: self.fresh.clone(),
        })
    }

    /// Restores a new terminal's settings, window size (`rows` and `columns`) and empty queues
    /// before a run. Fails when the terminal cannot be reset, because a process has hung it up.
    pub(super) fn reset(&self, rows: u16, columns: u16) -> io::Result<()> {
        // The flags are shared with all processes that had the terminal as stdin.
        fcntl(&self.theirs, FcntlArg::F_SETFL(OFlag::O_RDWR))?;
        self.theirs
            .set_permissions(Permissions::from_mode(TERMINAL_MODE))?;
        ioctl_number(&self.theirs, libc::TIOCSETD, &mut 0)?; // the ordinary line discipline
        // SAFETY: this request takes no argument.
        Errno::result(unsafe { libc::ioctl(self.theirs.as_raw_fd(), libc::TIOCNXCL) })?;
        // Disabling ^S resumes output that ^S has stopped.
        let mut flowing = self.fresh.clone();
        flowing.input_flags.remove(InputFlags::IXON);
        tcsetattr(&self.theirs, SetArg::TCSANOW, &flowing)?;
        tcsetattr(&self.theirs, SetArg::TCSANOW, &self.fresh)?;
        let _ = self.unread(); // brings to its queue what is under way to it
        tcflush(&self.theirs, FlushArg::TCIOFLUSH)?;
        self.take_output(&mut |_| ());
        self.resize(rows, columns)
    }

    /// Changes the window size of the terminal; the foreground processes get SIGWINCH.
    pub(super) fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        let mut size = libc::winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let ours = self.ours.as_raw_fd();
        // SAFETY: the request reads a size from where the pointer shows.
        Errno::result(unsafe { libc::ioctl(ours, libc::TIOCSWINSZ, &raw mut size) })?;
        Ok(())
    }

    /// Returns the leader of the terminal's session; `None` if the terminal has no session.
    pub(super) fn leader(&self) -> Option<Pid> {
        tcgetsid(&self.ours).ok().filter(|pid| pid.as_raw() > 0)
    }

    /// Returns the id of the terminal's foreground process group; `None` if it has none.
    pub(super) fn foreground(&self) -> Option<Pid> {
        let mut group = 0;
        ioctl_number(&self.ours, libc::TIOCGPGRP, &mut group).ok()?;
        Some(Pid::from_raw(group)).filter(|pid| pid.as_raw() > 0)
    }

    /// Types `bytes` at the terminal; returns how many bytes the terminal's queue took.
    pub(super) fn type_in(&self, bytes: &[u8]) -> usize {
        let mut typed = 0;
        while let Some(rest) = bytes.get(typed..).filter(|rest| !rest.is_empty()) {
            match (&self.ours).write(rest) {
                Ok(count) if count > 0 => typed += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        typed
    }

    /// Returns the number of typed bytes that nobody has read; in line mode only those of complete
    /// lines.
    pub(super) fn unread(&self) -> usize {
        // Polling moves typed bytes to the queue at once.
        polled(&self.theirs);
        let mut count = 0;
        let asked = ioctl_number(&self.theirs, libc::FIONREAD, &mut count);
        asked.map_or(0, |()| usize::try_from(count).unwrap_or(0))
    }

    /// Reads output of the target from the terminal and passes it to `take`; returns whether there
    /// was any.
    pub(super) fn take_output(&self, take: &mut dyn FnMut(&[u8])) -> bool {
        let mut block = [0; 1 << 14];
        for taken in 0..MOST_BLOCKS {
            polled(&self.ours); // as above, for the other direction
            match (&self.ours).read(&mut block) {
                Ok(count) if count > 0 => take(&block[..count]),
                _ => return taken > 0,
            }
        }
        true
    }
}

/// Opens the side of a pseudo terminal that the target gets, by the descriptor `master` of ddfuzz's
/// side. Needs no path in /dev/pts.
fn peer(master: &PtyMaster) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the request takes flags, and gives a new descriptor or an error.
    let fd = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    let fd = Errno::result(fd)?;
    // SAFETY: the descriptor is new and owned by nobody else.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Makes the `ioctl` request `request` on the terminal `of`; the request reads or writes one
/// number, `number`.
fn ioctl_number(of: &File, request: libc::Ioctl, number: &mut libc::c_int) -> nix::Result<()> {
    // SAFETY: these requests read or write one number where the pointer shows.
    let asked = unsafe { libc::ioctl(of.as_raw_fd(), request, std::ptr::from_mut(number)) };
    Errno::result(asked).map(drop)
}

fn polled(fd: &File) {
    let _ = poll(
        &mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)],
        PollTimeout::ZERO,
    );
}
