//! The seccomp filters: which system calls a sandboxed target may make. The launcher loads them
//! last.
//!
//! All other calls are allowed. A refused call fails with an error code: killing the target would
//! look like a crash.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use std::{collections::BTreeMap, io, io::Write, os::fd::OwnedFd};

use crate::input::memory_file;

/// System calls that no target needs, and that the sandbox refuses: mounts, modules, namespaces,
/// tracing of the system, keys (which outlive processes), and interfaces that filters cannot
/// inspect.
const REFUSED: [i64; 36] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
];

/// Flags of the system call `clone` that create namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Flag of the system call `userfaultfd` for reports of faults of user code only; without the flag,
/// faults of the kernel are reported, too.
const USER_MODE_ONLY: u64 = 1;

/// Numbers of the `ioctl` requests that simulate typing at a terminal, which the sandbox refuses.
const TYPING: [u64; 2] = [0x5412, 0x541C]; // TIOCSTI, TIOCLINUX

/// The bit that marks calls by the x32 interface in the numbers of system calls.
const X32: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

/// Makes the three seccomp filters of the sandbox, one for each error code of a refused call:
/// rights that no target needs (mounts, modules, namespaces, …: EPERM), sockets except AF_UNIX
/// (EAFNOSUPPORT), and `clone3` (ENOSYS). `None` for processors that `seccompiler` does not
/// support.
fn filters() -> Built<Option<Vec<BpfProgram>>> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(None);
    };
    let error = |number: i32| SeccompAction::Errno(number.unsigned_abs());
    let filters = [
        (rights()?, error(libc::EPERM)),
        (sockets()?, error(libc::EAFNOSUPPORT)),
        // The flags of `clone3` are in memory, which filters cannot read; C libraries fall back to
        // `clone`.
        (
            Rules::from([(libc::SYS_clone3, Vec::new())]),
            error(libc::ENOSYS),
        ),
    ];
    let built = filters.into_iter().map(|(rules, action)| {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
        BpfProgram::try_from(filter).map(refuse_others)
    });
    built.collect::<Built<_>>().map(Some)
}

fn rights() -> Built<Rules> {
    let mut rules: Rules = REFUSED.map(|call| (call, Vec::new())).into();
    let flags = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(0, Length::Qword, Is::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, flags.into_iter().collect::<Built<_>>()?);
    // Faults of the kernel must not wait for a target. Its own may: `snapshot` watches what is
    // written by them.
    let own_faults = rule(0, Length::Dword, Is::MaskedEq(USER_MODE_ONLY), 0)?;
    rules.insert(libc::SYS_userfaultfd, vec![own_faults]);
    let typing = TYPING.map(|request| rule(1, Length::Dword, Is::Eq, request));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Built<_>>()?);
    Ok(rules)
}

/// Makes the rules that refuse sockets of all address families except AF_UNIX.
fn sockets() -> Built<Rules> {
    let family = u64::from(libc::AF_UNIX.unsigned_abs());
    let others = || rule(0, Length::Dword, Is::Ne, family).map(|rule| vec![rule]);
    Ok(Rules::from([
        (libc::SYS_socket, others()?),
        (libc::SYS_socketpair, others()?),
    ]))
}

/// Makes a seccomp rule that applies to a system call if its argument with the index `argument`,
/// from 0, compares with `value` as `is` says. `length`: whether 32 or 64 bits are compared.
fn rule(argument: u8, length: Length, is: Is, value: u64) -> Built<SeccompRule> {
    SeccompRule::new(vec![SeccompCondition::new(argument, length, is, value)?])
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Returns a seccomp filter changed so that all system calls by the 32-bit and x32 interfaces fail.
/// The original filter kills the process at 32-bit calls, and misreads x32 calls, whose numbers
/// have other meanings.
fn refuse_others(program: BpfProgram) -> BpfProgram {
    // From <linux/bpf_common.h>.
    const LOAD: u16 = 0x20;
    const JUMP_GE: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut program = program.into_iter();
    // The filter begins by comparing the architecture.
    let mut filter: BpfProgram = program.by_ref().take(2).collect();
    program.next();
    filter.push(statement(RETURN, refused));
    if cfg!(target_arch = "x86_64") {
        filter.push(statement(LOAD, 0)); // the call's number
        filter.push(sock_filter {
            code: JUMP_GE,
            jt: 0,
            jf: 1,
            k: X32,
        });
        filter.push(statement(RETURN, refused));
    }
    filter.extend(program);
    filter
}

/// Returns a memory file for the launcher with the seccomp filters, each preceded by the number of
/// its instructions. `None` where there are no filters for this processor.
pub(super) fn file() -> io::Result<Option<OwnedFd>> {
    let Some(filters) = filters().map_err(io::Error::other)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    for filter in filters {
        let count = u32::try_from(filter.len()).map_err(io::Error::other)?;
        bytes.extend(count.to_ne_bytes());
        for one in filter {
            bytes.extend(one.code.to_ne_bytes());
            bytes.extend([one.jt, one.jf]);
            bytes.extend(one.k.to_ne_bytes());
        }
    }
    let mut file = std::fs::File::from(memory_file(c"ddfuzz-filters")?);
    file.write_all(&bytes)?;
    Ok(Some(file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_filter_kills() {
        for filter in filters().unwrap().unwrap() {
            let kills =
                |one: &sock_filter| one.code == 6 && one.k == libc::SECCOMP_RET_KILL_PROCESS;
            assert!(!filter.iter().any(kills));
            assert_eq!(filter[2].k & 0xffff_0000, libc::SECCOMP_RET_ERRNO);
            assert!(filter.len() < 1024, "more than the launcher reads");
        }
    }
}
