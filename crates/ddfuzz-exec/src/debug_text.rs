//! What a harness of libfuzzer-sys makes of an input: the `Debug` text of the value that is built
//! from it (`fuzz_target!(|x: T|)` with `Arbitrary`).
//!
//! The harness writes it, instead of testing anything, to the file named by a variable that it
//! reads when it starts: in a run of its own, which is asked for once per finished reproducer.

use super::launch::Role;
use super::place::Place;
use super::served::Served;
use super::{ExecError, Executor, Program, Target, Way, elf, find_program};

/// The variable, of libfuzzer-sys and cargo-fuzz.
const VARIABLE: &str = "RUST_LIBFUZZER_DEBUG_PATH";

/// The text that the harness writes of `input`, without white space at its end: at most 64 KiB of
/// it, with replacement characters for what is not UTF-8. `None` for programs that are no such
/// harness, for harnesses of plain bytes, which are written as a list of numbers and no more, and
/// where nothing is written: no value can be built of the input.
///
/// # Errors
/// When the target cannot be run.
pub fn debug_text(target: &Target, input: &[u8]) -> Result<Option<String>, ExecError> {
    if !knows(target) {
        return Ok(None);
    }
    // It holds the private directory, which nothing else may hold by now.
    let mut place = Place::prepare(target, Way::Command)?;
    let reports = place.texts()?;
    let mut asking = target.clone();
    // What is set last holds.
    let path = reports.log_path().into_os_string();
    asking.env.push((VARIABLE.into(), path));
    let mut executor = Served::start(&asking, place, Way::Command, Role::Serve, None)?;
    executor.run(input)?;
    let written = reports.read();
    let text = String::from_utf8_lossy(&written);
    let text = text.trim_end();
    let is_plain = || format!("{input:?}").starts_with(text);
    Ok((!text.is_empty() && !is_plain()).then(|| text.to_owned()))
}

/// Whether its `main` is libFuzzer's, around a harness that knows the variable.
fn knows(target: &Target) -> bool {
    let Program::Path(path) = &target.program else {
        return false;
    };
    let facts = find_program(path).ok().and_then(|path| elf::facts(&path));
    facts.is_some_and(|facts| facts.fuzzer_main && facts.debug_text)
}
