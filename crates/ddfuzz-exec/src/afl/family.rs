//! The fork server's children: the process of the run, and what runs have left behind.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::proc_tree;

/// Where the kernel lists no children, it is looked for them after so many runs only.
const RARELY: u32 = 256;
/// How often the list is read until all that is to die is dead, and how long apart. What takes
/// longer is left to the keepers, which need not ask each process.
const PASSES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);
/// The server waits for none but the child of its run, so what was killed stays in its list. A
/// server with more of these is replaced.
const MOST_DEAD: usize = 16;

/// The children of a server, which is a child subreaper: orphans among its descendants are its
/// children, too.
pub(super) struct Family {
    server: Pid,
    /// The kernel's list of them, kept open: a look is one system call.
    list: Option<File>,
    looks: u32,
    /// Those that are dead and not waited for.
    dead: Vec<Pid>,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing, or nothing any more.
    Nothing,
    /// More than can be swept one by one.
    TooMuch,
}

impl Family {
    /// That of `server`.
    pub(super) fn of(server: Pid) -> Family {
        Family {
            server,
            list: File::open(format!("/proc/{server}/task/{server}/children")).ok(),
            looks: 0,
            dead: Vec::new(),
        }
    }

    /// Kills what a run has left behind. `own`: the process that goes on serving runs.
    pub(super) fn sweep(&mut self, own: Option<Pid>) -> Left {
        if !self.has_strangers(own) {
            return Left::Nothing;
        }
        for _ in 0..PASSES {
            let others = proc_tree::children(self.server).into_iter();
            let others: Vec<Pid> = others.filter(|pid| Some(*pid) != own).collect();
            if others.len() > MOST_DEAD {
                return Left::TooMuch;
            }
            let mut living = others.iter().filter(|pid| !proc_tree::is_dead(**pid));
            let Some(first) = living.next() else {
                self.dead = others;
                return Left::Nothing;
            };
            // Their own children become the server's, and are met in the next pass.
            for pid in std::iter::once(first).chain(living) {
                let _ = kill(*pid, Signal::SIGKILL);
            }
            std::thread::sleep(PAUSE);
        }
        Left::TooMuch
    }

    /// Whether the list holds anybody but the dead of earlier looks and `own`.
    fn has_strangers(&mut self, own: Option<Pid>) -> bool {
        self.looks = self.looks.wrapping_add(1);
        let mut text = [0; 512];
        let listed = self.list.as_ref().map(|list| list.read_at(&mut text, 0));
        match listed {
            Some(Ok(length)) if length < text.len() => {
                numbers(&text[..length]).any(|pid| Some(pid) != own && !self.dead.contains(&pid))
            }
            Some(Ok(_)) => true,
            _ => self.looks.is_multiple_of(RARELY),
        }
    }
}

fn numbers(text: &[u8]) -> impl Iterator<Item = Pid> {
    let words = text.split(|byte| *byte == b' ');
    words
        .filter(|word| !word.is_empty())
        .filter_map(|word| str::from_utf8(word).ok()?.parse().ok())
        .map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_the_kernel_writes_it() {
        let found: Vec<Pid> = numbers(b"12 7 ").collect();
        assert_eq!(found, [Pid::from_raw(12), Pid::from_raw(7)]);
        assert_eq!(numbers(b"").count(), 0);
    }
}
