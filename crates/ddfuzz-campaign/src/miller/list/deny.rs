//! What is not run, and why: what could harm the machine, or send something away from it.
//!
//! The sandbox holds what slips through; this list is for what has no business in a fuzz study
//! even there. Interpreters that read programs on stdin (`sh`, `perl`, `python3`, `awk`) are not
//! on it: random characters are hardly ever a program that does anything, the studies have always
//! run them, and what one may do is what the sandbox lets any program do.

use std::ffi::OsString;

use super::denied::{DELETES, DENIED, DISKS, NETWORK};
use super::endings::base;

/// Utilities that run others: a denied name anywhere among their arguments has them denied, too.
const WRAPPERS: [&str; 11] = [
    "nohup", "busybox", "env", "find", "nice", "parallel", "stdbuf", "time", "timeout", "watch",
    "xargs",
];

/// What is known by its plain name has another one behind Debian's alternatives, which tells it
/// from that of another package.
const PREFIXES: [&str; 2] = ["inetutils-", "bsd-"];
const SUFFIXES: [&str; 5] = [".mailutils", ".db", ".netkit", ".traditional", ".openbsd"];

/// Utilities that are harmless by these names, of programs that are not by their own.
const HARMLESS: [(&str, &str); 1] = [("pidof", "killall5")];

/// Why a utility, a name or a path, is not run, by the name of the program that it is a link to;
/// `words` are as in [`reason`].
pub fn reason_of_program(utility: &str, program: &str, words: &[OsString]) -> Option<&'static str> {
    let is_harmless = HARMLESS.contains(&(base(utility), base(program)));
    reason(program, words).filter(|_| !is_harmless)
}

/// Why a utility, a name or a path, is not run with these words, be they arguments that are always
/// there or options that may be drawn; `None` when it may be.
pub fn reason(utility: &str, args: &[OsString]) -> Option<&'static str> {
    let name = base(utility);
    if let Some(why) = by_name(name) {
        return Some(why);
    }
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let begins = |beginning: &str| args.iter().any(|arg| arg.starts_with(beginning));
    let has = |word: &str| args.iter().any(|arg| arg == word);
    if WRAPPERS.contains(&name) {
        let told = args.iter().find_map(|arg| by_name(base(arg)));
        if told.is_some() {
            return told;
        }
    }
    match name {
        "dd" if begins("of=") => Some(DELETES),
        "find"
            if ["-delete", "-fprint", "-fprintf", "-fls", "-fprint0"]
                .into_iter()
                .any(has) =>
        {
            Some(DELETES)
        }
        "openssl" if ["s_client", "s_server", "ocsp"].into_iter().any(has) => Some(NETWORK),
        "lynx" | "w3m" | "html2text" | "xmllint" | "xsltproc" | "ffmpeg" | "mpg123" | "mplayer"
            if args.iter().any(|arg| arg.contains("://")) =>
        {
            Some(NETWORK)
        }
        _ => None,
    }
}

fn by_name(name: &str) -> Option<&'static str> {
    in_table(name).or_else(|| in_table(stem(name)))
}

/// A name without what tells it from the same of other packages.
fn stem(name: &str) -> &str {
    let mut begins = PREFIXES.iter();
    let name = begins.find_map(|it| name.strip_prefix(it)).unwrap_or(name);
    let mut ends = SUFFIXES.iter();
    ends.find_map(|it| name.strip_suffix(it)).unwrap_or(name)
}

fn in_table(name: &str) -> Option<&'static str> {
    if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("fsck.") {
        return Some(DISKS);
    }
    let found = DENIED.iter().find(|(_, names)| names.contains(&name));
    found.map(|(why, _)| *why)
}
