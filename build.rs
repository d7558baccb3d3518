//! Tells the linker to pack the relocations of the programs: half a megabyte of an optimized
//! `ddfuzz`, and a hundredth of that when packed.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if can_pack() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the programs run by a C library that reads packed relocations: glibc since 2.36, that of
/// this machine.
fn can_pack() -> bool {
    let is_for_this_machine = env::var_os("HOST") == env::var_os("TARGET");
    let is_glibc = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|c_library| c_library == "gnu");
    is_for_this_machine && is_glibc && glibc_version().is_some_and(|version| version >= (2, 36))
}

/// Returns the version of this machine's glibc; `None` if `getconf` does not say it.
fn glibc_version() -> Option<(u32, u32)> {
    let getconf = std::process::Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let said = String::from_utf8(getconf.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
