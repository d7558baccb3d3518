//! The advice not to run a program by a wrapper that takes most of the CPU time of a run.

use std::ffi::OsStr;
use std::path::Path;

use crate::exec::{ExecError, Program, Target, Way, is_interpreted_by_script};
use crate::report::text::shell_word;
use crate::triage::{Triager, Wrapper};

/// Number of traced runs in all of which the wrapper must take most of the CPU time for the advice
/// to be given.
const RUNS: usize = 3;

/// Returns the advice to run, in place of the wrapper `target`, the program that the wrapper
/// executes, with the arguments that the wrapper adds. `triager` runs the target; its last traced
/// run was one of `input`. `None` unless the wrapper takes most of the CPU time in each of three
/// runs, executes the same program each time, and passes the target's arguments on as the last
/// ones.
pub(super) fn advice(
    target: &Target,
    triager: &mut Triager,
    input: &[u8],
) -> Result<Option<String>, ExecError> {
    let Program::Path(named) = &target.program else {
        return Ok(None);
    };
    let Some(run) = median(triager, input)? else {
        return Ok(None);
    };
    let own = run.own_arguments(target.args.len());
    Ok(own.map(|own| {
        let words = std::iter::once(shell_word(&run.program));
        let own = own.iter().map(Path::new).map(shell_word);
        let words = words.chain(own).collect::<Vec<_>>().join(" ");
        told(named, &run, &format!("give {words} in its place"))
    }))
}

/// Returns the advice to name the real interpreter in the `#!` line of an interestingness test, the
/// script of `target`; `None` unless the interpreter in that line is itself a script that executes
/// the real one in its place (a wrapper). Three runs with `input` must show that the wrapper takes
/// most of the CPU time, executes the same program each time, and calls it with the test's path and
/// the test's arguments only.
pub(super) fn advice_on_test(target: &Target, input: &[u8]) -> Result<Option<String>, ExecError> {
    let script = match &target.program {
        Program::Path(script) if is_interpreted_by_script(script) => script,
        _ => return Ok(None),
    };
    let mut triager = Triager::of_target(target, Way::Command)?;
    triager.key(input)?;
    let Some(run) = median(&mut triager, input)? else {
        return Ok(None);
    };
    let own = run.own_arguments(target.args.len());
    let is_known = own.is_some_and(|own| own == [script.as_os_str()]);
    let first_line = format!("begin it with #!{}", run.program.display());
    Ok(is_known.then(|| told(script, &run, &first_line)))
}

/// Returns the one of three runs in which the CPU time of the wrapper is the median: the last
/// traced run of `triager`, and two new runs of `input`. `None` if in any of the three runs the
/// wrapper takes no more than half of the CPU time, takes less than 20 ms, or executes another
/// program than in the other runs.
fn median(triager: &mut Triager, input: &[u8]) -> Result<Option<Wrapper>, ExecError> {
    let mut runs: Vec<Wrapper> = Vec::new();
    while runs.len() < RUNS {
        if !runs.is_empty() {
            triager.key(input)?;
        }
        let run = triager.wrapper().filter(|run| run.is_dear());
        let is_same = |run: &&Wrapper| runs.iter().all(|other| other.program == run.program);
        match run.filter(is_same) {
            Some(run) => runs.push(run.clone()),
            None => return Ok(None),
        }
    }
    runs.sort_by_key(|run| run.spent);
    Ok(Some(runs.swap_remove(RUNS / 2)))
}

fn told(named: &Path, run: &Wrapper, advice: &str) -> String {
    let names = run.changed_variables().into_iter();
    let names: Vec<_> = names.map(OsStr::to_string_lossy).collect();
    let sets = match names.is_empty() {
        true => String::new(),
        false => format!(
            " (the environment then lacks what the wrapper does to {})",
            names.join(", ")
        ),
    };
    format!(
        "note: {} of the {} ms of CPU time of a run pass before {} executes {}; to be faster, \
         {advice}{sets}",
        run.spent.as_millis(),
        run.total.as_millis(),
        shell_word(named),
        shell_word(&run.program),
    )
}
