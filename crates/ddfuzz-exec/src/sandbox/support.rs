//! Which parts of a sandbox this system offers. Each is tried once, for real, in a child: what
//! kernels are built with, sysctls, containers and other security modules all have a say.

use nix::errno::Errno;
use nix::unistd::Uid;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::private_dir::PrivateDir;
use crate::sandbox::landlock;

/// A part of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    User,
    Mount,
    /// In a mount namespace nothing can be written but what is opened. Kernels before 5.12, and
    /// some containers, have such namespaces and not this.
    ReadOnly,
    Pid,
    Net,
    Ipc,
    Uts,
    Seccomp,
}

impl Part {
    pub(crate) const ALL: [Part; 8] = [
        Part::User,
        Part::Mount,
        Part::ReadOnly,
        Part::Pid,
        Part::Net,
        Part::Ipc,
        Part::Uts,
        Part::Seccomp,
    ];

    /// As the launcher has it.
    fn word(self) -> &'static str {
        match self {
            Part::User => "user",
            Part::Mount => "mount",
            Part::ReadOnly => "read-only",
            Part::Pid => "pid",
            Part::Net => "net",
            Part::Ipc => "ipc",
            Part::Uts => "uts",
            Part::Seccomp => "seccomp",
        }
    }

    /// For people.
    fn what(self) -> &'static str {
        match self {
            Part::User => "user namespace",
            Part::Mount => "mount namespace",
            Part::ReadOnly => "read-only files",
            Part::Pid => "pid namespace",
            Part::Net => "network namespace",
            Part::Ipc => "ipc namespace",
            Part::Uts => "uts namespace",
            Part::Seccomp => "seccomp",
        }
    }

    /// The flag of `clone`; 0 for what is no namespace.
    pub(crate) fn flag(self) -> i32 {
        match self {
            Part::User => libc::CLONE_NEWUSER,
            Part::Mount => libc::CLONE_NEWNS,
            Part::Pid => libc::CLONE_NEWPID,
            Part::Net => libc::CLONE_NEWNET,
            Part::Ipc => libc::CLONE_NEWIPC,
            Part::Uts => libc::CLONE_NEWUTS,
            Part::ReadOnly | Part::Seccomp => 0,
        }
    }
}

/// What Landlock is called, for people.
const LANDLOCK: &str = "landlock";

/// A part of the sandbox, and whether this system offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its name, for people.
    pub what: &'static str,
    /// Whether it works here.
    pub works: bool,
    /// Why it does not, in a few words; `None` where it does.
    pub why_not: Option<String>,
}

impl Offered {
    fn of(what: &'static str, why_not: Option<String>) -> Offered {
        Offered {
            what,
            works: why_not.is_none(),
            why_not,
        }
    }
}

/// What this system offers for a sandbox. Tried at the first call, and remembered. Limits, the
/// scratch directory and the killing of descendants need nothing of this, and are not told of.
pub fn offers() -> Vec<Offered> {
    let landlock = match landlock::version() {
        Some(_) => None,
        None => Some("not in this kernel, or turned off".to_owned()),
    };
    let mut all = vec![
        Offered::of("unprivileged user", None),
        Offered::of(LANDLOCK, landlock),
        Offered::of(Part::Seccomp.what(), why_not(Part::Seccomp)),
    ];
    // Root needs no user namespace to make the others.
    let is_more = |part: &Part| match part {
        Part::Seccomp => false,
        Part::User => !Uid::effective().is_root(),
        _ => true,
    };
    let others = Part::ALL.into_iter().filter(is_more);
    all.extend(others.map(|part| Offered::of(part.what(), why_not(part))));
    all
}

/// Whether what works of these parts keeps the files of its user from a target that runs as that
/// user. A mount namespace alone does not.
pub fn keep_files(parts: &[Offered]) -> bool {
    let keeps = |part: &Offered| part.what == LANDLOCK || part.what == Part::ReadOnly.what();
    parts.iter().any(|part| part.works && keeps(part))
}

/// Whether a part is to be used.
pub(super) fn works(part: Part) -> bool {
    // Root steps down to another user, which a namespace of one user does not have.
    let wanted = part != Part::User || !Uid::effective().is_root();
    wanted && why_not(part).is_none()
}

fn why_not(part: Part) -> Option<String> {
    static TRIED: OnceLock<Result<String, String>> = OnceLock::new();
    match TRIED.get_or_init(try_all) {
        Err(why) => Some(why.clone()),
        Ok(told) => reason(told, part),
    }
}

/// Why a part does not work, by what the launcher told.
fn reason(told: &str, part: Part) -> Option<String> {
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
    let place = private.fresh("offers");
    let told = std::fs::create_dir(&place).and_then(|()| {
        let output = Command::new(private.launcher())
            .arg("offers")
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
        assert_eq!(reason(told, Part::User), None);
        assert_eq!(
            reason(told, Part::Mount).as_deref(),
            Some("Operation not permitted")
        );
        assert!(reason(told, Part::Pid).is_some() && reason(told, Part::Net).is_some());
    }

    #[test]
    fn each_offer_is_told_of_once_and_says_why_not() {
        let all = offers();
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.works, one.why_not.is_none());
            assert!(!all[..at].iter().any(|other| other.what == one.what));
        }
    }

    #[test]
    fn a_mount_namespace_without_read_only_files_keeps_no_files() {
        let of = |works: &[&'static str]| -> Vec<Offered> {
            let all = ["unprivileged user", "landlock", "seccomp"].into_iter();
            let all = all.chain(["mount namespace", "read-only files"]);
            all.map(|what| Offered::of(what, (!works.contains(&what)).then(String::new)))
                .collect()
        };
        assert!(!keep_files(&of(&[
            "unprivileged user",
            "seccomp",
            "mount namespace"
        ])));
        assert!(keep_files(&of(&["landlock"])));
        assert!(keep_files(&of(&["mount namespace", "read-only files"])));
        // By the names that are told.
        let told = offers();
        for what in ["landlock", "read-only files"] {
            assert!(told.iter().any(|one| one.what == what), "{what}");
        }
    }
}
