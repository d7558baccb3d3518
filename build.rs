//! Tells the linker to pack the relocations of the programs (half a megabyte of an optimized
//! `ddfuzz`, and a hundredth of that when packed), and to link development builds without any.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if !is_for_glibc_here() {
        return;
    }
    if is_development_build() {
        // Each start would relocate 450 pages of an unoptimized ddfuzz, a third of its page faults.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    } else if glibc_version().is_some_and(|version| version >= (2, 36)) {
        // Older ones do not read packed relocations.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the programs are built for this machine, and its C library is glibc.
fn is_for_glibc_here() -> bool {
    let is_for_this_machine = env::var_os("HOST") == env::var_os("TARGET");
    let is_glibc = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|c_library| c_library == "gnu");
    is_for_this_machine && is_glibc
}

/// Whether the profile is one of those that are not for users: those of tests and of `cargo run`.
fn is_development_build() -> bool {
    env::var_os("PROFILE").is_some_and(|profile| profile == "debug")
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
