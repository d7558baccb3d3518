//! The way `inject`: a fork server inside an unmodified, dynamically linked program. Loading and
//! linking happen once; each run forks just before `main`.

use super::launch::{Inject, Role};
use super::place::Place;
use super::served::Served;
use super::{ExecError, Target, Way};

/// Starts `target` with the injected runtime.
pub(crate) fn start(target: &Target) -> Result<Served, ExecError> {
    let mut place = Place::prepare(target, Way::Inject)?;
    place.see_through_script(target);
    if let Some(why) = unfit(&place) {
        return Err(ExecError::WayUnfit {
            way: Way::Inject.name(),
            path: place.program,
            why: why.to_owned(),
        });
    }
    Served::start(
        target,
        place,
        Way::Inject,
        Role::Program,
        Some(Inject::Fork),
    )
}

/// Why nothing can be injected into the program, if so.
pub(crate) fn unfit(place: &Place) -> Option<&'static str> {
    use std::os::unix::fs::PermissionsExt;
    let Some(facts) = &place.facts else {
        return Some("it is neither an ELF program for this machine nor a script run by one");
    };
    let Some(interpreter) = &facts.interpreter else {
        return Some("it is statically linked");
    };
    if interpreter.contains("musl") {
        return Some("it is linked with musl, not with glibc");
    }
    if !facts.starts_by_libc {
        return Some("it does not start through glibc");
    }
    let mode = std::fs::metadata(&place.program)
        .map(|facts| facts.permissions().mode())
        .unwrap_or(0);
    if mode & 0o6000 != 0 {
        return Some("it is setuid or setgid, so nothing can be preloaded");
    }
    None
}
