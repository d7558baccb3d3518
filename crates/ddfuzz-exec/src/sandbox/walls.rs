//! What the launcher is given for a target in a sandbox.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::super::launch::Role;
use super::super::protocol::fd;
use super::{Part, Sandbox, offers, ruleset, seccomp};

/// Bytes that a target may leave in its scratch directory.
pub(super) const DISK: u64 = 64 << 20;
/// Files and directories that it may make there.
pub(super) const FILES: u64 = 10_000;

/// The walls around a target.
#[derive(Clone, Debug)]
pub(crate) struct Walls {
    /// `CLONE_NEW*` of those that work here.
    namespaces: i32,
    read_only: bool,
    filtered: bool,
}

/// Descriptors for the launcher, each with the number that it is to have there, and options.
#[derive(Default)]
pub(crate) struct Handed {
    pub(crate) descriptors: Vec<(OwnedFd, i32)>,
    pub(crate) options: Vec<OsString>,
}

impl Walls {
    /// Those around a target that is started for `role`; `None` where it is in no sandbox.
    pub(crate) fn around(sandbox: Sandbox, role: &Role) -> Option<Walls> {
        if sandbox.is_off() {
            return None;
        }
        // AFL++'s servers tell of runs by their ids, and share memory by System V's.
        let spared = match role {
            Role::Afl => libc::CLONE_NEWPID | libc::CLONE_NEWIPC,
            Role::Serve | Role::Trace | Role::Program => 0,
        };
        let works = |part| offers::works(part);
        let namespaces = Part::ALL
            .into_iter()
            .filter(|part| works(*part))
            .fold(0, |flags, part| flags | part.flag());
        Some(Walls {
            namespaces: namespaces & !spared,
            read_only: works(Part::ReadOnly),
            filtered: works(Part::Seccomp),
        })
    }

    /// Whether process ids inside are not those outside.
    pub(crate) fn numbers_processes(&self) -> bool {
        self.namespaces & libc::CLONE_NEWPID != 0
    }

    /// Whether the scratch directory is a mount that is seen from inside only.
    pub(crate) fn hides_scratch(&self) -> bool {
        self.namespaces & libc::CLONE_NEWNS != 0
    }

    /// What one start needs; made again for each, because the launcher adds rules. `open`: other
    /// directories in which the target may write; `covered`: those in whose place its scratch
    /// directory stands, too; `terminal`: its own.
    pub(crate) fn hand(
        &self,
        scratch: &Path,
        open: &[PathBuf],
        covered: &[PathBuf],
        terminal: Option<&File>,
    ) -> io::Result<Handed> {
        let mut handed = Handed::default();
        let mut words: Vec<OsString> = vec!["-X".into()];
        let mut option = |flag: &str, value: OsString| words.extend([flag.into(), value]);
        let number = |value: u64| OsString::from(value.to_string());
        for directory in std::iter::once(scratch).chain(open.iter().map(PathBuf::as_path)) {
            option("-W", directory.into());
        }
        if self.namespaces != 0 {
            option("-N", number(u64::from(self.namespaces.unsigned_abs())));
        }
        if self.hides_scratch() {
            option("-s", scratch.into());
            option("-B", number(DISK));
            option("-I", number(FILES));
            for directory in covered {
                option("-V", directory.into());
            }
        }
        if let Some(rules) = ruleset::rules(terminal)? {
            option("-L", number(rules.access));
            handed.descriptors.push((rules.ruleset, fd::RULES));
        }
        if self.filtered
            && let Some(filters) = seccomp::file()?
        {
            words.push("-F".into());
            handed.descriptors.push((filters, fd::FILTERS));
        }
        if self.read_only {
            words.push("-R".into());
        }
        handed.options = words;
        Ok(handed)
    }
}
