//! Runs the C compiler that cargo's environment asks for.

use std::process::{Child, Command};

const HINT: &str = "hint: install a C compiler with its C library's headers (gcc or clang; on \
                    Debian `apt install gcc libc6-dev`), or name one in the variable CC";

/// The compiler, ready for arguments.
pub fn command() -> Command {
    cc::Build::new()
        .opt_level(1)
        .debug(true)
        .pic(false)
        .force_frame_pointer(true)
        .get_compiler()
        .to_command()
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
