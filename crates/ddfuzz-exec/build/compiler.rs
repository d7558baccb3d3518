//! Runs the C compiler that cargo's environment asks for.

use std::process::{Child, Command};

const HINT: &str = "hint: install a C compiler with its C library's headers (gcc or clang; on \
                    Debian `apt install gcc libc6-dev`), or name one in the variable CC";

/// The compiler, ready for arguments. Names of sources in the debug information begin at the
/// project: they are shown to users, to whom the root of the building machine means nothing.
pub fn command() -> Command {
    let mut command = cc::Build::new()
        .opt_level(1)
        .debug(true)
        .pic(false)
        .force_frame_pointer(true)
        .get_compiler()
        .to_command();
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    command.arg(format!("-ffile-prefix-map={here}=ddfuzz"));
    command
}

/// Starts a compilation of `what`.
pub fn start(what: &str, compiler: &mut Command) -> Child {
    match compiler.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = compiler.get_program().to_owned();
            panic!("cannot start the C compiler {program:?}, which builds {what}: {error}\n{HINT}")
        }
    }
}

/// Waits for the compiler; its messages are in the build's output.
pub fn finish(what: &str, mut compiler: Child) {
    let status = compiler.wait().expect("the compiler is a child of ours");
    assert!(
        status.success(),
        "{what} does not compile ({status}); the compiler's messages stand above\n{HINT}"
    );
}
