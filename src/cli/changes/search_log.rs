//! The log of a search for changes: reads it, begins it anew or continues it, and tells which
//! search it is of.

use std::path::{Path, PathBuf};

use super::ChangesArgs;
use super::crash::inside;
use super::job::{Files, SEARCH};
use super::subject::Subject;
use crate::changes::{Recipe, TestKind};
use crate::cli::{Exit, Failure, Output};
use crate::delta::Outcome;
use crate::exec::{Limits, Program, Target, Way};
use crate::files::OsText;
use crate::minimize::log::{
    CheckLine, KeyRecord, Line, Log, LogWriter, StartLine, TargetRecord, What,
};
use crate::triage::Class;

/// Reads the log of an earlier call in this output directory; `None` if there is none, or with
/// `--force`.
pub(super) fn logged(files: &Files, args: &ChangesArgs) -> Result<Option<Log>, Failure> {
    let path = files.log();
    if args.force || !path.exists() {
        return Ok(None);
    }
    let log = Log::read(&path).map_err(|error| Failure::from(error).path(&path))?;
    Ok(Some(log).filter(|log| log.start.is_some()))
}

/// Returns true if the log of a search ends with checks of which at least one has failed, and else
/// false. A check fails if the old version does not pass, if the new version or the result does not
/// fail, or if a version that had passed fails when it is tested again. Such a search ended with an
/// error, and a later call does not continue it, because the user may have removed the cause.
pub(super) fn is_refuted(log: &Log) -> bool {
    let mut checks = log.lines.iter().rev().map_while(|(_, line)| match line {
        Line::Check(check) => Some(check),
        _ => None,
    });
    let is_wrong = |check: &CheckLine| match check.what {
        What::Axiom => check.outcome != Outcome::Pass,
        What::Baseline | What::Confirm => check.outcome != Outcome::Fail,
        What::Vote => check.outcome == Outcome::Fail,
    };
    checks.any(is_wrong)
}

/// Makes the first line of the log of a search for changes: the target or test command, the input,
/// the key of the crash, the two versions, and the limits.
pub(super) fn start_line(
    args: &ChangesArgs,
    subject: &Subject,
    recipe: &Recipe,
    (old, new): (&str, &str),
    history: bool,
) -> StartLine {
    let mut target = Target::new(Program::Path("/bin/sh".into()));
    target.args = vec!["-c".into(), args.run.clone().unwrap_or_default().into()];
    let mut key = None;
    if let TestKind::Program {
        program,
        is_inside,
        args,
        expected,
        crash_exit,
    } = &recipe.test
    {
        let program = match is_inside.get() {
            Some(true) => inside(program),
            _ => program.clone(),
        };
        target = Target::new(Program::Path(PathBuf::from(program)));
        (target.args, target.crash_exit) = (args.clone(), *crash_exit);
        key = expected.get().map(|expected| KeyRecord {
            class: Class(expected.class.clone()),
            major: expected.major,
            minor: expected.minor,
        });
    }
    (target.env, target.sandbox) = (recipe.env.clone(), recipe.sandbox);
    let versions = format!("{old}..{new}");
    let limits = Limits {
        memory: recipe.memory,
        ..Limits::with_cpu(recipe.test_time)
    };
    let record = subject.record(args, recipe, old, new, history);
    StartLine {
        input: subject.input.as_deref().map(OsText::from),
        learn_limit: !recipe.keep_test_time,
        changes: Some(record),
        ..StartLine::new(
            versions.as_bytes(),
            SEARCH,
            TargetRecord::new(&target, Way::Command),
            key,
            limits,
        )
    }
}

/// An opened log of a search: the lines that an earlier call wrote (none in a new log), each with
/// its line number, and the writer that appends lines.
pub(super) type OpenLog = (Vec<(u64, Line)>, LogWriter);

/// Opens the log of a search for changes, whose first line is to be `start`. `logged`: the log of
/// an earlier call, `None` without one or with `--force`. If that call made the same search, its
/// log is continued, except after a failed check ([`is_refuted`]), when a new log is begun; if it
/// made another search, that is an error. Before a log is replaced, the result that belongs to it
/// is removed.
pub(super) fn open_log(
    files: &Files,
    start: StartLine,
    logged: Option<Log>,
    output: &Output,
) -> Result<OpenLog, Failure> {
    let path = files.log();
    let is_over = logged.as_ref().is_some_and(is_refuted);
    // A refuted search has found nothing that could be lost.
    let kept = logged.as_ref().filter(|_| !is_over);
    if let Some(logged) = kept.and_then(|log| log.start.as_ref())
        && let Some(why) = other_search(logged, &start)
    {
        let message = format!("{} is the log of another search{why}", path.display());
        return Err(Failure::new(Exit::Usage, "exists", message)
            .path(&path)
            .hint("replace it with --force, or give another output directory with -o"));
    }
    match logged.filter(|_| !is_over) {
        Some(log) => {
            let (path_shown, count) = (path.display(), log.lines.len());
            output.detail(&format!("continuing {path_shown} after {count} lines"));
            Ok((log.lines, LogWriter::resume(&path)?))
        }
        None => {
            files.remove_results()?;
            match std::fs::remove_file(&path) {
                Err(error) if path.exists() => {
                    return Err(Failure::file(&path, "removing", &error));
                }
                _ => {}
            }
            let mut writer = LogWriter::create(&path)?;
            writer.append(&Line::Start(Box::new(start)))?;
            Ok((Vec::new(), writer))
        }
    }
}

/// Compares the start lines of two logs. Returns `None` if they are of the same search; the limits
/// and the version of ddfuzz may differ. Otherwise returns a text to append to the message that the
/// searches differ: it names a script that has another content, or is empty if something else
/// differs.
fn other_search(logged: &StartLine, start: &StartLine) -> Option<String> {
    let class = |line: &StartLine| line.key.as_ref().map(|key| key.class.clone());
    let without_scripts = |line: &StartLine| {
        let mut changes = line.changes.clone();
        if let Some(changes) = &mut changes {
            changes.scripts.clear();
        }
        changes
    };
    let is_same = without_scripts(logged) == without_scripts(start)
        && logged.target.same_target(&start.target)
        // A build may fail where the sandbox keeps it from writing.
        && logged.target.sandbox == start.target.sandbox
        && logged.input_blake3 == start.input_blake3
        && class(logged) == class(start);
    if !is_same {
        return Some(String::new());
    }
    let scripts = |line: &StartLine| {
        let changes = line.changes.as_ref();
        changes.map_or_else(Vec::new, |changes| changes.scripts.clone())
    };
    let (before, now) = (scripts(logged), scripts(start));
    let changed = now.iter().find(|script| !before.contains(script));
    let changed = changed.or_else(|| before.iter().find(|script| !now.contains(script)));
    changed.map(|(path, _)| {
        let path = Path::new(&path.0).display();
        format!(": {path} was another file when it was begun")
    })
}
