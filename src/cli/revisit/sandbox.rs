//! Whether utilities are held back from the machine, and by what.

use super::Args;
use crate::cli::{Failure, Output};
use crate::exec::Sandbox;
use crate::exec::sandbox::{Offered, keep_files, offers};

/// What holds utilities back.
pub(super) struct Held {
    /// Whether there is a sandbox.
    pub(super) sandbox: Sandbox,
    /// The parts of it that work here, by name.
    pub(super) parts: Vec<String>,
}

/// What is asked for; says what the sandbox is made of here.
///
/// # Errors
/// Where it is to be left away, and that is not said twice; where this system has nothing to make
/// one of.
pub(super) fn settle(args: &Args, output: &Output) -> Result<Held, Failure> {
    match args.no_sandbox {
        0 => held(output),
        1 => Err(Failure::usage(
            "--no-sandbox would let random input loose on programs that can write to this \
             machine and reach its network",
        )
        .hint("omit it, or give it twice if that is what you want")),
        _ => {
            output.say("warning: without the sandbox utilities can write to every file that their user may write to");
            Ok(Held {
                sandbox: Sandbox::Off,
                parts: Vec::new(),
            })
        }
    }
}

fn held(output: &Output) -> Result<Held, Failure> {
    let (works, fails): (Vec<Offered>, Vec<Offered>) =
        offers().into_iter().partition(|part| part.works);
    let parts: Vec<String> = works.iter().map(|part| part.what.to_owned()).collect();
    let missing: Vec<String> = fails
        .iter()
        .map(|part| format!("{} ({})", part.what, part.why_not.as_deref().unwrap_or("?")))
        .collect();
    // Else nothing keeps a user's files from what runs as that user.
    if !keep_files(&works) {
        return Err(Failure::usage(format!(
            "this system has no protection against utilities that write to files: {}",
            missing.join(", ")
        ))
        .hint("run it on another machine, or give --no-sandbox twice"));
    }
    let without = match missing.is_empty() {
        true => String::new(),
        false => format!("; not: {}", missing.join(", ")),
    };
    output.say(&format!("sandbox: {}{without}", parts.join(", ")));
    Ok(Held {
        sandbox: Sandbox::On,
        parts,
    })
}
