//! Programs with planted bugs, compiled when a test first wants them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// One way of compiling the planted bugs.
pub struct Variant {
    name: &'static str,
    flags: &'static [&'static str],
    strip: bool,
    built: OnceLock<PathBuf>,
}

impl Variant {
    const fn new(name: &'static str, flags: &'static [&'static str], strip: bool) -> Variant {
        Variant {
            name,
            flags,
            strip,
            built: OnceLock::new(),
        }
    }

    /// The program, compiled on first use.
    pub fn path(&self) -> &Path {
        self.built.get_or_init(|| self.build())
    }

    fn build(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let result = folder.join(format!("planted-{}", self.name));
        // Other test processes may build the same: each builds its own and puts it in place.
        let own = folder.join(format!("planted-{}.{}", self.name, std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triage/planted.c");
        run(Command::new("cc")
            .args(["-w", "-pthread"])
            .args(self.flags)
            .arg(source)
            .arg("-o")
            .arg(&own));
        if self.strip {
            run(Command::new("strip").arg("-s").arg(&own));
        }
        std::fs::rename(&own, &result).expect("the program is put in place");
        result
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("the tool runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

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
