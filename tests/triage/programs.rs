//! Programs with planted bugs, compiled when a test first wants them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::compiled::{once, run};

/// The planted bugs.
const SOURCE: &str = include_str!("planted.c");

/// One way of compiling the planted bugs.
pub struct Variant {
    name: &'static str,
    flags: &'static [&'static str],
    strip: bool,
    source: &'static str,
    built: OnceLock<PathBuf>,
}

impl Variant {
    const fn new(name: &'static str, flags: &'static [&'static str], strip: bool) -> Variant {
        Variant {
            name,
            flags,
            strip,
            source: SOURCE,
            built: OnceLock::new(),
        }
    }

    const fn of(source: &'static str, name: &'static str) -> Variant {
        Variant {
            name,
            flags: &["-O2", "-fno-stack-protector"],
            strip: false,
            source,
            built: OnceLock::new(),
        }
    }

    const fn flagged(mut self, flags: &'static [&'static str]) -> Variant {
        self.flags = flags;
        self
    }

    const fn without_symbols(mut self) -> Variant {
        self.strip = true;
        self
    }

    /// The program, compiled on first use.
    pub fn path(&self) -> &Path {
        self.built.get_or_init(|| self.build())
    }

    fn build(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let key = (self.source, self.flags, self.strip);
        once(folder, &format!("planted-{}", self.name), key, |own| {
            let (source, program) = (own.join("planted.c"), own.join("planted"));
            std::fs::write(&source, self.source).expect("the source is written");
            run(Command::new("cc")
                .args(["-w", "-pthread"])
                .args(self.flags)
                .arg(&source)
                .arg("-o")
                .arg(&program));
            if self.strip {
                run(Command::new("strip").arg("-s").arg(&program));
            }
            program
        })
    }
}

/// Ways to die of which little is left.
pub static DEATHS: Variant = Variant::of(include_str!("deaths.c"), "deaths");

/// The source of programs that give up by functions of their own.
const GIVING_UP_SOURCE: &str = include_str!("giving_up.c");

/// Programs that give up by functions of their own.
pub static GIVING_UP: Variant = Variant::of(GIVING_UP_SOURCE, "giving-up");
/// The same, without symbols.
pub static GIVING_UP_STRIPPED: Variant =
    Variant::of(GIVING_UP_SOURCE, "giving-up-stripped").without_symbols();
/// The same, with a C library that cannot be told from them.
pub static GIVING_UP_STATIC_STRIPPED: Variant = Variant::of(GIVING_UP_SOURCE, "giving-up-static")
    .flagged(&["-O2", "-static"])
    .without_symbols();
/// The source of programs whose functions have their return addresses overwritten.
const OVERWRITTEN_SOURCE: &str = include_str!("overwritten.c");

/// Programs whose functions have their return addresses overwritten.
pub static OVERWRITTEN: Variant = Variant::of(OVERWRITTEN_SOURCE, "overwritten");
/// The same, without symbols.
pub static OVERWRITTEN_STRIPPED: Variant =
    Variant::of(OVERWRITTEN_SOURCE, "overwritten-stripped").without_symbols();
/// The source of programs whose functions end with calls.
const TAIL_CALLS_SOURCE: &str = include_str!("tail_calls.c");

/// Programs whose functions end with calls.
pub static TAIL_CALLS: Variant = Variant::of(TAIL_CALLS_SOURCE, "tail-calls");
/// The same, without symbols.
pub static TAIL_CALLS_STRIPPED: Variant =
    Variant::of(TAIL_CALLS_SOURCE, "tail-calls-stripped").without_symbols();

/// A program that fails, and takes for ever if it is traced.
pub static SLOW_IF_TRACED: Variant =
    Variant::of(include_str!("slow_if_traced.c"), "slow-if-traced");

/// As distributions compile.
pub static PLAIN: Variant = Variant::new("plain", &["-O2"], false);
/// The same, without symbols.
pub static STRIPPED: Variant = Variant::new("stripped", &["-O2"], true);
/// Without optimization, with debug information.
pub static DEBUG: Variant = Variant::new("debug", &["-O0", "-g"], false);
/// With stack protectors.
pub static PROTECTED: Variant = Variant::new("protected", &["-O2", "-fstack-protector-all"], false);
/// Explicitly without stack protectors.
pub static UNPROTECTED: Variant = Variant::new(
    "unprotected",
    &["-O2", "-fno-stack-protector", "-fcf-protection=none"],
    false,
);
/// At a fixed address.
pub static FIXED: Variant = Variant::new("fixed", &["-O2", "-no-pie"], true);
/// Statically linked.
pub static STATIC: Variant = Variant::new("static", &["-O2", "-static"], false);
/// Statically linked, without symbols.
pub static STATIC_STRIPPED: Variant = Variant::new("static-stripped", &["-O2", "-static"], true);
/// With buffer sizes checked by the C library.
pub static FORTIFIED: Variant = Variant::new(
    "fortified",
    &["-O2", "-fno-stack-protector", "-D_FORTIFY_SOURCE=2"],
    false,
);
