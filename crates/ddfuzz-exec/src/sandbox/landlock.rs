//! The Landlock ruleset: which files a sandboxed target may write.
//!
//! The launcher (`runtime/restrict.c`) adds the directories that are writable and applies the
//! ruleset, because the scratch directory may be a mount that only the launcher sees.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope, path_beneath_rules,
};
use std::os::fd::{AsFd, OwnedFd};
use std::{fs::File, io};

/// Paths of the devices that a sandboxed target may write.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/tty",
    "/dev/ptmx",
];

/// A Landlock ruleset for a sandboxed target, and the access rights that it grants in the
/// directories that the launcher adds to it.
pub(super) struct Rules {
    pub(super) ruleset: OwnedFd,
    pub(super) access: u64,
}

/// Returns the version of the kernel's Landlock interface; `None` if it is missing or disabled.
pub(crate) fn version() -> Option<i32> {
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
    i32::try_from(version).ok().filter(|version| *version > 0)
}

/// Returns all access rights of a Landlock version that change files. Reading, executing and
/// `ioctl`s of devices are not restricted.
fn writing(version: i32) -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI::from(version)) & !AccessFs::IoctlDev
}

/// Makes a Landlock ruleset that allows writing only to devices and to the target's terminal, and
/// restricts network access and signals to processes outside, if this kernel supports that. `None`
/// if the kernel has no Landlock.
pub(super) fn rules(terminal: Option<&File>) -> io::Result<Option<Rules>> {
    let Some(version) = version() else {
        return Ok(None);
    };
    let abi = ABI::from(version);
    let access = writing(version);
    let made = || {
        // The crate's best-effort mode: rights that this kernel does not know are left out.
        let ruleset = Ruleset::default().handle_access(access)?;
        let ruleset = match AccessNet::from_all(abi) {
            none if none.is_empty() => ruleset,
            all => ruleset.handle_access(all)?,
        };
        let ruleset = match Scope::from_all(abi) {
            none if none.is_empty() => ruleset,
            all => ruleset.scope(all)?,
        };
        // Devices are files, so only the right to write files applies.
        let rules = path_beneath_rules(DEVICES, access & AccessFs::WriteFile);
        let ruleset = ruleset.create()?.add_rules(rules)?;
        match terminal {
            Some(file) => {
                let write = access & AccessFs::WriteFile;
                ruleset.add_rule(PathBeneath::new(file.as_fd(), write))
            }
            None => Ok(ruleset),
        }
    };
    let ruleset: Option<OwnedFd> = made().map_err(io::Error::other)?.into();
    Ok(ruleset.map(|ruleset| Rules {
        ruleset,
        // Only root could create device files.
        access: (access & !(AccessFs::MakeChar | AccessFs::MakeBlock)).bits(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_asked_only_for_the_rights_that_it_knows() {
        assert!(!writing(1).intersects(AccessFs::Refer | AccessFs::Truncate));
        assert!(writing(2).contains(AccessFs::Refer));
        assert!(writing(3).contains(AccessFs::Truncate));
        for version in 1..9 {
            let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
            assert!(!writing(version).intersects(read | AccessFs::IoctlDev));
            assert!(writing(version).contains(AccessFs::WriteFile));
        }
    }

    #[test]
    fn a_ruleset_is_made_where_the_kernel_has_them() {
        assert_eq!(rules(None).unwrap().is_some(), version().is_some());
    }
}
