//! Utilities that are in no list: by stdin, as a file, and copied under each extension that their
//! package or manual names; or, where they work at a terminal only, there.

use std::path::Path;

use super::list::extensions::extensions;
use super::utility::{Circumstances, Course};
use ddfuzz_exec::facts::TargetFacts;
use ddfuzz_exec::{Channel, Ended, ExecError, Freshness, Terminal, start};

/// What somebody would type who wants to be rid of a program: one that reads its stdin reads this.
const TYPED: &[u8] = b"q\nquit\nexit\n";

/// The courses of a utility that is in no list, and whether it works at a terminal only.
///
/// # Errors
/// When it cannot be started.
pub(super) fn courses(
    circumstances: &Circumstances,
    program: &Path,
) -> Result<(Vec<Course>, bool), ExecError> {
    let stdin = course(Channel::Plain, &[]);
    if is_interactive_only(circumstances, program, &stdin)? {
        let terminal = Channel::Terminal(Terminal::default());
        return Ok((vec![course(terminal, &[])], true));
    }
    let mut courses = vec![stdin, course(Channel::Plain, &["@@"])];
    for extension in extensions(program) {
        let name = format!("input.{extension}");
        courses.push(course(Channel::named(name), &["@@"]));
    }
    Ok((courses, false))
}

fn course(channel: Channel, args: &[&str]) -> Course {
    Course {
        channel,
        args: args.iter().map(Into::into).collect(),
        pool: Vec::new(),
        pool_at: 0,
    }
}

/// Whether a program calls what only terminals understand, and without one ends in failure, with
/// nothing read.
fn is_interactive_only(
    circumstances: &Circumstances,
    program: &Path,
    stdin: &Course,
) -> Result<bool, ExecError> {
    let target = circumstances.target(program.to_owned(), stdin, &[]);
    let facts = TargetFacts::of(&target)?;
    if facts.terminal_calls.is_empty() {
        return Ok(false);
    }
    let mut executor = start(&target, None, Freshness::Fresh)?.executor;
    let run = executor.run(TYPED)?;
    let fails = matches!(run.ended, Ended::Exit(status) if status != 0);
    Ok(fails && run.read == Some(0))
}
