//! Whether a target that the command line names gets its input as the failures of an output
//! directory were found: by the same channel, in the same environment and directory.

use std::ffi::OsString;
use std::path::Path;

use super::Failure;
use super::target::TargetArgs;
use crate::exec::facts::TargetFacts;
use crate::exec::{Channel, Target, TargetRecord, Way};
use crate::report::text::{printable, shell_word};
use crate::triage::{Crash, Unobservable};

/// Returns the reason why passing runs of `now` do not show that a failure is fixed that was found
/// on the target `record`: the input channel, environment or working directory differs otherwise
/// than the options `asked` say, or the input is given on stdin in place of a file or the other way
/// round. `None` if there is no such difference.
pub(super) fn other_conditions(
    record: &TargetRecord,
    crash: &Crash,
    (now, asked): (&Target, &TargetArgs),
) -> Result<Option<Unobservable>, Failure> {
    let Some(found) = record.target(crash.limits) else {
        return Ok(None);
    };
    if lacks_files(&found, now) {
        return Ok(Some(Unobservable {
            why: "its input was given in a file (@@), and is not now".to_owned(),
            hint: "put @@ where the file is to stand".to_owned(),
        }));
    }
    let by_main = record.way != Way::Harness && !matches!(found.channel, Channel::Terminal(_));
    if by_main && marks(&found) == 0 && marks(now) > 0 {
        return Ok(Some(Unobservable {
            why: "its input was given on stdin, and is given in a file (@@) now".to_owned(),
            hint: "leave @@ out".to_owned(),
        }));
    }
    let expected = asked.over(found)?;
    let mut why = Vec::new();
    let mut options: Vec<OsString> = Vec::new();
    if expected.channel != now.channel {
        why.push("another input channel");
        options.extend(expected.channel.options());
    }
    if environment(&expected) != environment(now) {
        why.push("another environment");
        for (name, value) in &expected.env {
            let mut option = OsString::from("--env=");
            option.push(name);
            option.push("=");
            option.push(value);
            options.push(option);
        }
    }
    if expected.cwd != now.cwd {
        why.push("another working directory");
        if let Some(cwd) = &expected.cwd {
            options.push("--cwd".into());
            options.push(cwd.into());
        }
    }
    if why.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = options
        .iter()
        .map(|option| printable(&shell_word(Path::new(option))))
        .collect();
    Ok(Some(Unobservable {
        why: format!("it was found with {}", why.join(" and ")),
        hint: match words.is_empty() {
            true => "check it without a program: then all is as it was recorded".to_owned(),
            false => format!("add {}", words.join(" ")),
        },
    }))
}

/// Returns true if the arguments of `now` contain `@@` less often than the channel of the recorded
/// target needs it, although it gets its input by them: a program that reads no input would seem to
/// have all its crashes fixed.
pub(super) fn lacks_files(found: &Target, now: &Target) -> bool {
    let needed = match &found.channel {
        Channel::TwoFiles => marks(found).min(2),
        _ => marks(found).min(1),
    };
    marks(now) < needed && !calls_entry(now)
}

/// Returns the number of times that the arguments of a target contain `@@`.
fn marks(target: &Target) -> usize {
    let count = |arg: &OsString| arg.to_string_lossy().matches("@@").count();
    target.args.iter().map(count).sum()
}

/// Returns true if the program has a function that is given the input itself, without a file.
fn calls_entry(target: &Target) -> bool {
    TargetFacts::of(target).is_ok_and(|facts| facts.libfuzzer || facts.target_main)
}

/// Returns the environment variables that ddfuzz sets for a target, sorted, and whether it inherits
/// no others.
fn environment(target: &Target) -> (bool, Vec<&(OsString, OsString)>) {
    let mut variables: Vec<_> = target.env.iter().collect();
    variables.sort();
    (target.env_only, variables)
}
