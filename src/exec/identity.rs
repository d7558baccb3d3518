//! Who a target runs as. Fuzzed system programs run unprivileged, also when ddfuzz is root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::unistd::{Uid, User};

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
/// directory: a program below a private home directory would otherwise not run at all.
pub(crate) fn choose(program: &Path, cwd: Option<&Path>) -> Option<Identity> {
    if !Uid::effective().is_root() {
        return None;
    }
    let reachable = reaches(program) && cwd.is_none_or(reaches);
    if !reachable {
        return None;
    }
    let nobody = User::from_name("nobody").ok().flatten();
    Some(match nobody {
        Some(user) => Identity {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        },
        None => Identity {
            uid: 65534,
            gid: 65534,
        },
    })
}

/// Whether everybody may execute `path` and search all directories above it.
fn reaches(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    path.ancestors().all(|part| {
        std::fs::metadata(part).is_ok_and(|facts| {
            let wanted = if facts.is_dir() { 0o001 } else { 0o005 };
            facts.permissions().mode() & wanted == wanted || facts.uid() == 65534
        })
    })
}
