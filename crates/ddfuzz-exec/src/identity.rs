//! The user and group that a target runs as: an unprivileged user, also where ddfuzz is root.

use nix::unistd::{Uid, User};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{ExecError, Sandbox};

/// The user and group of a target's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// User id.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
}

/// The identity to take on for running `program` in `cwd`; `None` keeps our own.
///
/// Root steps down to `nobody`, except where `nobody` could not reach the program or the
/// directory: a program below a private home directory would otherwise not run at all. In a sandbox
/// that is an error.
///
/// # Errors
/// [`ExecError::RootOnly`].
pub(crate) fn choose(
    program: &Path,
    cwd: Option<&Path>,
    sandbox: Sandbox,
) -> Result<Option<Identity>, ExecError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    match closed(program).or_else(|| cwd.and_then(closed)) {
        Some(path) if sandbox == Sandbox::On => Err(ExecError::RootOnly { path }),
        Some(_) => Ok(None),
        None => Ok(Some(nobody())),
    }
}

/// Whether targets can reach `path`: always, unless they are run as somebody else.
pub fn targets_reach(path: &Path) -> bool {
    !Uid::effective().is_root() || closed(path).is_none()
}

fn nobody() -> Identity {
    let nobody = User::from_name("nobody").ok().flatten();
    match nobody {
        Some(user) => Identity {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        },
        None => Identity {
            uid: 65534,
            gid: 65534,
        },
    }
}

/// The first of `path` and the directories above it that not everybody may execute or search.
fn closed(path: &Path) -> Option<PathBuf> {
    let Ok(path) = path.canonicalize() else {
        return Some(path.to_owned());
    };
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    let found = parts.into_iter().find(|part| {
        !std::fs::metadata(part).is_ok_and(|facts| {
            let wanted = if facts.is_dir() { 0o001 } else { 0o005 };
            facts.permissions().mode() & wanted == wanted || facts.uid() == 65534
        })
    });
    found.map(Path::to_owned)
}
