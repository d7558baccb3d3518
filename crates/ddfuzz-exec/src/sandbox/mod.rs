//! The sandbox: restricts what a target can do to the machine, beyond the limits of every target.
//!
//! `SandboxPolicy` says what applies to a target. `landlock.rs` and `seccomp.rs` make the rules
//! that the launcher enforces, and `support.rs` tests which parts this kernel supports.

mod landlock;
mod seccomp;
mod support;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, fs::File, io, os::fd::OwnedFd, os::unix::ffi::OsStrExt, os::unix::fs::MetadataExt};

use crate::prepared_target::sandbox_identity;
use crate::{launch::Role, protocol::fd, sandbox::support::SandboxPart};

pub(crate) use landlock::version as landlock_version;
pub use support::{SandboxSupport, keep_files, supported_parts};

/// Whether a target runs in a sandbox, which keeps it from changing files and reaching the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// No sandbox: only limits, an unprivileged user and a scratch directory protect the system.
    #[default]
    Off,
    /// A sandbox: the target may write to its scratch directory only, reach no network, and see no
    /// other processes, as far as the kernel allows; `HOME` is the scratch directory.
    On,
}

impl Sandbox {
    /// Returns true if the sandbox is off. This is the default, which is not recorded.
    pub fn is_off(&self) -> bool {
        *self == Sandbox::Off
    }
}

/// Maximum size of all files in the scratch directory of a sandboxed target, in bytes.
const DISK: u64 = 64 << 20;
/// Maximum number of files and directories in the scratch directory of a sandboxed target.
const FILES: u64 = 10_000;

/// The parts of the sandbox that are applied to a target: those that this kernel supports.
#[derive(Clone, Debug)]
pub(crate) struct SandboxPolicy {
    /// Flags of `clone` (`CLONE_NEW*`) for the Linux namespaces in which the target is started.
    namespaces: i32,
    read_only: bool,
    filtered: bool,
}

/// What the launcher gets from the sandbox policy: descriptors, each with the number that it is to
/// have in the launcher, and command-line options.
#[derive(Default)]
pub(crate) struct Handover {
    pub(crate) descriptors: Vec<(OwnedFd, i32)>,
    pub(crate) options: Vec<OsString>,
}

impl SandboxPolicy {
    /// Returns the sandbox policy for a target, by what this system supports; `None` without a
    /// sandbox. `role` says what the launched process becomes: parts that AFL++'s servers could not
    /// work with are left out for them.
    pub(crate) fn of(sandbox: Sandbox, role: &Role) -> Option<SandboxPolicy> {
        if sandbox.is_off() {
            return None;
        }
        // AFL++'s servers report process ids and use System V shared memory.
        let spared = match role {
            Role::Afl => libc::CLONE_NEWPID | libc::CLONE_NEWIPC,
            Role::Serve | Role::Trace | Role::Program => 0,
        };
        let works = |part| support::works(part);
        let namespaces = SandboxPart::ALL
            .into_iter()
            .filter(|part| works(*part))
            .fold(0, |flags, part| flags | part.flag());
        Some(SandboxPolicy {
            namespaces: namespaces & !spared,
            read_only: works(SandboxPart::ReadOnly),
            filtered: works(SandboxPart::Seccomp),
        })
    }

    /// Returns true if the target has a PID namespace, so that its process ids differ from those
    /// outside.
    pub(crate) fn numbers_processes(&self) -> bool {
        self.namespaces & libc::CLONE_NEWPID != 0
    }

    /// Returns true if the scratch directory is a mount that only processes in the sandbox see.
    pub(crate) fn hides_scratch(&self) -> bool {
        self.namespaces & libc::CLONE_NEWNS != 0
    }

    /// Makes the descriptors and options with which one launcher applies the sandbox policy.
    /// `scratch` and `open`: the directories in which the target may write; `covered`: directories
    /// that the scratch directory replaces; `terminal`: the target's terminal.
    pub(crate) fn handover(
        &self,
        scratch: &Path,
        open: &[PathBuf],
        covered: &[PathBuf],
        terminal: Option<&File>,
    ) -> io::Result<Handover> {
        let mut handover = Handover::default();
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
        if let Some(rules) = landlock::rules(terminal)? {
            option("-L", number(rules.access));
            handover.descriptors.push((rules.ruleset, fd::RULES));
        }
        if self.filtered
            && let Some(filters) = seccomp::file()?
        {
            words.push("-F".into());
            handover.descriptors.push((filters, fd::FILTERS));
        }
        if self.read_only {
            words.push("-R".into());
        }
        handover.options = words;
        Ok(handover)
    }
}

/// Directories for temporary files that all programs use. In a sandbox the scratch directory
/// replaces them, unless a run needs a file there.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Chooses the directories of `TEMPORARY` that the scratch directory may replace: those without
/// files that a run needs. A run needs `paths`, and may need every path in `texts` (arguments and
/// variables).
pub(crate) fn replaceable_directories<'a>(
    paths: &[&Path],
    texts: impl Iterator<Item = &'a OsStr> + Clone,
) -> Vec<PathBuf> {
    let is_free = |directory: &&str| {
        let is_in = |path: &Path| path.starts_with(directory);
        let names = |text: &OsStr| {
            let mut parts = text.as_bytes().split(|byte| b":=,".contains(byte));
            parts.any(|part| is_in(Path::new(OsStr::from_bytes(part))))
        };
        !paths.iter().any(|path| is_in(path)) && !texts.clone().any(names)
    };
    let there = TEMPORARY.iter().filter(|one| Path::new(one).is_dir());
    there
        .filter(|one| is_free(one))
        .map(PathBuf::from)
        .collect()
}

/// Makes `folder` and everything below it belong to the user that runs sandboxed programs, so that
/// these can write there. Links are not followed. Does nothing unless ddfuzz runs as root, since
/// only root runs them as another user.
///
/// # Errors
/// If an owner cannot be changed, or a directory cannot be read.
pub fn give(folder: &Path) -> io::Result<()> {
    let Some(user) = sandbox_identity() else {
        return Ok(());
    };
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let facts = fs::symlink_metadata(&path)?;
        let is_theirs = (facts.uid(), facts.gid()) == (user.uid, user.gid);
        // A file with several names may be somebody else's.
        let is_alone = facts.is_dir() || facts.nlink() == 1;
        if !is_theirs && is_alone {
            std::os::unix::fs::lchown(&path, Some(user.uid), Some(user.gid))?;
        }
        if facts.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// Returns true if the files below `directory` exceed the limits of a sandboxed target's scratch
/// directory (64 MiB, 10,000 files). Deleted open files, and files deeper than a path can be, are
/// not counted.
pub(crate) fn is_overfull(directory: &Path) -> bool {
    let (mut bytes, mut files) = (0u64, 0u64);
    let mut left: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            if let Ok(facts) = entry.metadata() {
                bytes = bytes.saturating_add(facts.blocks().saturating_mul(512));
                if facts.is_dir() {
                    left.push(entry.path());
                }
            }
            if bytes > DISK || files > FILES {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_dir::PrivateDir;

    fn covered(paths: &[&str], texts: &[&str]) -> Vec<PathBuf> {
        let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
        replaceable_directories(&paths, texts.iter().map(OsStr::new))
    }

    #[test]
    fn what_a_run_needs_is_not_covered() {
        let both: Vec<PathBuf> = TEMPORARY.map(PathBuf::from).into();
        assert_eq!(
            covered(&["/usr/bin/nvi", "/tmpfs/x"], &["-e", "/var"]),
            both
        );
        assert_eq!(covered(&["/tmp/program"], &[]), both[1..]);
        assert_eq!(covered(&[], &["--config=/var/tmp/x"]), both[..1]);
        assert_eq!(covered(&[], &["/bin:/tmp/bin"]), both[1..]);
    }

    #[test]
    fn many_files_are_too_many_and_holes_take_no_room() {
        let private = PrivateDir::get().unwrap();
        let top = private.fresh("test");
        let below = top.join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let file = std::fs::File::create(below.join("hole")).unwrap();
        file.set_len(2 * DISK).unwrap();
        std::os::unix::fs::symlink("/", below.join("everything")).unwrap();
        assert!(!is_overfull(&top));
        for number in 0..=FILES {
            std::fs::File::create(below.join(number.to_string())).unwrap();
        }
        assert!(is_overfull(&top));
    }
}
