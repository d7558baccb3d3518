//! What keeps targets in their bounds, and who they run as.

use nix::unistd::{Uid, User};

use super::super::cgroup::Cgroup;
use super::{Check, bad, good};

/// How many processes the control group that is tried would allow.
const PROCESSES: u32 = 64;

/// A control group bounds the processes of a target.
pub(super) fn cgroup() -> Check {
    match Cgroup::create(PROCESSES) {
        Some(_) => good(
            "cgroup",
            "a control group can bound the processes of a target",
        ),
        None => bad(
            "cgroup",
            "no control group can be made; RLIMIT_NPROC bounds processes instead, and together with those that the user has already",
            "nothing need be done; as root with a writable /sys/fs/cgroup the bound is a target's own",
        ),
    }
}

/// Landlock would fence the files that a target may write.
pub(super) fn landlock() -> Check {
    const VERSION: libc::c_ulong = 1; // LANDLOCK_CREATE_RULESET_VERSION
    // SAFETY: asked for the version alone, the call makes nothing and reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    match version {
        1.. => good(
            "landlock",
            format!("there (version {version}); ddfuzz does not use it yet"),
        ),
        _ => bad(
            "landlock",
            "not there; ddfuzz does not use it yet, so nothing is lost",
            "Linux 5.13 with landlock among the kernel's `lsm=`, and a seccomp profile that allows it",
        ),
    }
}

/// Who ddfuzz is, and so who targets are.
pub(super) fn user() -> Check {
    let user = Uid::effective();
    if !user.is_root() {
        return good(
            "user",
            format!("targets run as user {user}, with all its rights on files"),
        );
    }
    match User::from_name("nobody") {
        Ok(Some(nobody)) => good(
            "user",
            format!(
                "ddfuzz is root, targets run as nobody (user {})",
                nobody.uid
            ),
        ),
        _ => good("user", "ddfuzz is root, targets run as user 65534"),
    }
}
