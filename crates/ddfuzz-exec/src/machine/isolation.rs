//! What keeps targets in their bounds, and who they run as.

use nix::unistd::{Uid, User};

use super::super::cgroup::Cgroup;
use super::super::sandbox::{landlock_version, offers};
use super::{Check, bad, good};

/// How many processes the control group that is tried would allow.
const PROCESSES: u32 = 64;

/// A control group bounds the processes of a target.
pub(super) fn cgroup() -> Check {
    match Cgroup::create(PROCESSES) {
        Some(_) => good(
            "cgroup",
            "a control group limits the number of processes of a target",
        ),
        None => bad(
            "cgroup",
            "no control group can be created; RLIMIT_NPROC limits processes instead, and counts all processes of the user",
            "not needed; run as root with a writable /sys/fs/cgroup for a limit that counts the target's processes only",
        ),
    }
}

/// What `--sandbox` is made of, a check each.
pub(super) fn sandbox() -> Vec<Check> {
    let parts = offers().into_iter().filter_map(|offered| {
        let (_, name, holds, fix) = PARTS.iter().find(|part| part.0 == offered.what)?;
        Some(match offered.why_not {
            None if *name == "landlock" => {
                let version = landlock_version().unwrap_or_default();
                good(name, format!("supported (version {version}): {holds}"))
            }
            None => good(name, format!("supported: {holds}")),
            Some(why) => bad(
                name,
                format!("not supported ({why}), so this is not guaranteed: {holds}"),
                *fix,
            ),
        })
    });
    parts.collect()
}

const NAMESPACES: &str = "as a user: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 (as root; Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0); in a container: one that may make namespaces (--cap-add=SYS_ADMIN, or a seccomp profile that allows unshare)";

/// The parts of a sandbox: what they are called there and here, what they hold, and what brings
/// them back.
const PARTS: [(&str, &str, &str, &str); 9] = [
    (
        "landlock",
        "landlock",
        "with --sandbox a target can write files in its temporary directory only",
        "Linux 5.13 with landlock among the kernel's `lsm=`, and a seccomp profile that allows it",
    ),
    (
        "seccomp",
        "seccomp",
        "with --sandbox a target can open local sockets only, and cannot make system calls for administrators",
        "a kernel with CONFIG_SECCOMP_FILTER, and a container that allows loading filters",
    ),
    (
        "user namespace",
        "ns-user",
        "with --sandbox an unprivileged user can use the other namespaces",
        NAMESPACES,
    ),
    (
        "mount namespace",
        "ns-mount",
        "with --sandbox the temporary directory holds at most 64 MiB and 10,000 files",
        NAMESPACES,
    ),
    (
        "read-only files",
        "read-only",
        "with --sandbox a target cannot change modes, owners and times of files outside its temporary directory",
        "Linux 5.12, mount namespaces, and a seccomp profile that allows mount_setattr",
    ),
    (
        "pid namespace",
        "ns-pid",
        "with --sandbox a target sees no other processes, and its processes end with its first one",
        NAMESPACES,
    ),
    (
        "network namespace",
        "ns-net",
        "with --sandbox a target cannot send packets",
        NAMESPACES,
    ),
    (
        "ipc namespace",
        "ns-ipc",
        "with --sandbox no System V shared memory or queue of a target is left behind",
        NAMESPACES,
    ),
    (
        "uts namespace",
        "ns-uts",
        "with --sandbox a target cannot change the host name",
        NAMESPACES,
    ),
];

/// Who ddfuzz is, and so who targets are.
pub(super) fn user() -> Check {
    let user = Uid::effective();
    if !user.is_root() {
        return good(
            "user",
            format!("targets run as the user {user} and can write wherever it can"),
        );
    }
    match User::from_name("nobody") {
        Ok(Some(nobody)) => good(
            "user",
            format!(
                "ddfuzz runs as root, targets run as nobody (user {})",
                nobody.uid
            ),
        ),
        _ => good("user", "ddfuzz runs as root, targets run as user 65534"),
    }
}
