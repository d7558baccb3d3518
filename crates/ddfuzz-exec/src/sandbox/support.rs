//! Tests which parts of a sandbox this system supports. Each part is tried once in a child process,
//! because kernel configuration, sysctls, containers and security modules may disable it.

use nix::{errno::Errno, unistd::Uid};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{private_dir::PrivateDir, sandbox::landlock};

/// A part of the sandbox, which the system may or may not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxPart {
    User,
    Mount,
    /// In a mount namespace, all files are read-only, except in some directories. Unsupported
    /// before Linux 5.12 and in some containers.
    ReadOnly,
    Pid,
    Net,
    Ipc,
    Uts,
    Seccomp,
}

impl SandboxPart {
    pub(crate) const ALL: [SandboxPart; 8] = [
        SandboxPart::User,
        SandboxPart::Mount,
        SandboxPart::ReadOnly,
        SandboxPart::Pid,
        SandboxPart::Net,
        SandboxPart::Ipc,
        SandboxPart::Uts,
        SandboxPart::Seccomp,
    ];

    /// Returns three facts on this part of the sandbox: its name in the launcher's output, its name
    /// for users, and its `clone` flag (0 if it is not a namespace).
    fn row(self) -> (&'static str, &'static str, i32) {
        match self {
            SandboxPart::User => ("user", "user namespace", libc::CLONE_NEWUSER),
            SandboxPart::Mount => ("mount", "mount namespace", libc::CLONE_NEWNS),
            SandboxPart::ReadOnly => ("read-only", "read-only files", 0),
            SandboxPart::Pid => ("pid", "pid namespace", libc::CLONE_NEWPID),
            SandboxPart::Net => ("net", "network namespace", libc::CLONE_NEWNET),
            SandboxPart::Ipc => ("ipc", "ipc namespace", libc::CLONE_NEWIPC),
            SandboxPart::Uts => ("uts", "uts namespace", libc::CLONE_NEWUTS),
            SandboxPart::Seccomp => ("seccomp", "seccomp", 0),
        }
    }

    fn word(self) -> &'static str {
        self.row().0
    }

    fn what(self) -> &'static str {
        self.row().1
    }

    /// Returns the flag of `clone` that creates the namespace; 0 if the part of the sandbox is not
    /// a namespace.
    pub(crate) fn flag(self) -> i32 {
        self.row().2
    }
}

/// Name, in messages for users, of the part of the sandbox that Landlock provides.
const LANDLOCK: &str = "landlock";

/// A part of the sandbox, and whether this system supports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Name of the part of the sandbox, for users.
    pub what: &'static str,
    /// Whether this system supports the part of the sandbox, so that it is used.
    pub works: bool,
    /// Why the part of the sandbox does not work, in a few words; `None` if it works.
    pub why_not: Option<String>,
}

impl SandboxSupport {
    fn of(what: &'static str, why_not: Option<String>) -> SandboxSupport {
        SandboxSupport {
            what,
            works: why_not.is_none(),
            why_not,
        }
    }
}

/// Tests which parts of a sandbox this system supports, once: later calls return the result of the
/// first. Limits, the scratch directory and killing descendants always work, and are not listed.
pub fn supported_parts() -> Vec<SandboxSupport> {
    let landlock = match landlock::version() {
        Some(_) => None,
        None => Some("not in this kernel, or turned off".to_owned()),
    };
    let mut all = vec![
        SandboxSupport::of("unprivileged user", None),
        SandboxSupport::of(LANDLOCK, landlock),
        SandboxSupport::of(SandboxPart::Seccomp.what(), why_not(SandboxPart::Seccomp)),
    ];
    // Root needs no user namespace to create other namespaces.
    let is_more = |part: &SandboxPart| match part {
        SandboxPart::Seccomp => false,
        SandboxPart::User => !Uid::effective().is_root(),
        _ => true,
    };
    let others = SandboxPart::ALL.into_iter().filter(is_more);
    all.extend(others.map(|part| SandboxSupport::of(part.what(), why_not(part))));
    all
}

/// Returns true if Landlock or read-only files are among those `parts` of the sandbox that work:
/// they keep a target from changing the user's files even if it runs as the user. A mount namespace
/// alone does not.
pub fn keep_files(parts: &[SandboxSupport]) -> bool {
    let keeps =
        |part: &SandboxSupport| part.what == LANDLOCK || part.what == SandboxPart::ReadOnly.what();
    parts.iter().any(|part| part.works && keeps(part))
}

/// Returns true if this part of the sandbox works on this system and ddfuzz uses it; root uses no
/// user namespace.
pub(super) fn works(part: SandboxPart) -> bool {
    // Root runs targets as another user, who does not exist in a user namespace with one user.
    let wanted = part != SandboxPart::User || !Uid::effective().is_root();
    wanted && why_not(part).is_none()
}

fn why_not(part: SandboxPart) -> Option<String> {
    static TRIED: OnceLock<Result<String, String>> = OnceLock::new();
    match TRIED.get_or_init(try_all) {
        Err(why) => Some(why.clone()),
        Ok(told) => reason(told, part),
    }
}

/// Returns why `part`, a part of the sandbox, does not work, according to the launcher's output
/// `told`; `None` if it works.
fn reason(told: &str, part: SandboxPart) -> Option<String> {
    let mut lines = told.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(word, _)| *word == part.word());
    match found.map(|(_, errno)| errno.parse()) {
        Some(Ok(0)) => None,
        Some(Ok(errno)) => Some(Errno::from_raw(errno).desc().to_owned()),
        _ => Some("it could not be tried".to_owned()),
    }
}

fn try_all() -> Result<String, String> {
    let private = PrivateDir::get().map_err(|error| error.to_string())?;
    let place = private.fresh("support");
    let told = std::fs::create_dir(&place).and_then(|()| {
        let output = Command::new(private.launcher())
            .arg("support")
            .arg(&place)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let _ = std::fs::remove_dir(&place); // else with the private directory
        output
    });
    let told = told.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&told.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_or_never_tried_does_not_work() {
        let told = "user 0\nmount 1\npid x\n";
        assert_eq!(reason(told, SandboxPart::User), None);
        assert_eq!(
            reason(told, SandboxPart::Mount).as_deref(),
            Some("Operation not permitted")
        );
        assert!(
            reason(told, SandboxPart::Pid).is_some() && reason(told, SandboxPart::Net).is_some()
        );
    }

    #[test]
    fn each_offer_is_told_of_once_and_says_why_not() {
        let all = supported_parts();
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.works, one.why_not.is_none());
            assert!(!all[..at].iter().any(|other| other.what == one.what));
        }
    }

    #[test]
    fn a_mount_namespace_without_read_only_files_keeps_no_files() {
        let of = |works: &[&'static str]| -> Vec<SandboxSupport> {
            let all = ["unprivileged user", "landlock", "seccomp"].into_iter();
            let all = all.chain(["mount namespace", "read-only files"]);
            all.map(|what| SandboxSupport::of(what, (!works.contains(&what)).then(String::new)))
                .collect()
        };
        assert!(!keep_files(&of(&[
            "unprivileged user",
            "seccomp",
            "mount namespace"
        ])));
        assert!(keep_files(&of(&["landlock"])));
        assert!(keep_files(&of(&["mount namespace", "read-only files"])));
        // By the names in the launcher's output.
        let told = supported_parts();
        for what in ["landlock", "read-only files"] {
            assert!(told.iter().any(|one| one.what == what), "{what}");
        }
    }
}
