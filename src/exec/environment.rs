//! The environment of a target (interface.md): the inherited one less ddfuzz's own variables,
//! a UTF-8 locale where none is set, and what the user added.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Variables that would tell a target about ddfuzz.
const OWN_PREFIX: &[u8] = b"DDFUZZ_";
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// The variables of a target's processes, as `NAME=VALUE`.
pub(crate) fn compose(extra: &[(OsString, OsString)]) -> Vec<CString> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut all: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| !name.as_bytes().starts_with(OWN_PREFIX))
        .collect();
    if !LOCALE.iter().any(is_set) {
        all.retain(|(name, _)| name != "LANG");
        all.push(("LANG".into(), "C.UTF-8".into()));
    }
    for (name, value) in extra {
        all.retain(|(known, _)| known != name);
        all.push((name.clone(), value.clone()));
    }
    all.into_iter()
        .filter_map(|(name, value)| assignment(&name, value))
        .collect()
}

fn assignment(name: &OsStr, value: OsString) -> Option<CString> {
    let mut text = name.as_bytes().to_vec();
    text.push(b'=');
    text.extend(value.into_vec());
    CString::new(text).ok()
}
