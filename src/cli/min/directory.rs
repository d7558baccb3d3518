//! `ddfuzz min OUT`: minimizes the groups of an output directory that are not minimized yet.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::MinArgs;
use crate::campaign::{FailuresOfTarget, Minimizing, Progress, Screen, Variants, minimize_pending};
use crate::cli::target::{install_bundled, recorded_target, rerun_target};
use crate::cli::{Exit, Failure, Output, show, signals, ui, values};
use crate::report::text::shell_operand;
use crate::report::{GroupView, RunGroup, groups_table, size};
use crate::store::{Kind, KnownGroups, Reader, Store};

/// Default of `--budget-time`, the maximum time for one minimization, when the groups of an output
/// directory are minimized.
pub(in crate::cli) const GROUP_BUDGET: Duration = Duration::from_secs(60);

/// The result of minimizing the crash groups of an output directory.
#[derive(Serialize)]
pub(in crate::cli) struct MinimizedGroups {
    /// All crash groups in the output directory, also those of hangs and out-of-memory failures.
    pub(in crate::cli) groups: Vec<RunGroup>,
    /// Number of inputs that this call of ddfuzz has minimized; inputs that did not crash again do
    /// not count.
    pub(in crate::cli) minimized: u64,
    /// Whether the user stopped `ddfuzz` before all crash groups of the output directory were
    /// minimized.
    pub(in crate::cli) interrupted: bool,
    /// Number of groups whose minimization was ended by a budget, and which `min --resume` would
    /// continue; 0 if this call had `--resume`.
    #[serde(skip)]
    unfinished: u64,
    #[serde(skip)]
    views: Vec<GroupView>,
}

/// Returns true if `path` is a directory with a file `ddfuzz.json`, the mark of output directories,
/// or a directory into which this user cannot look. Reading it as an output directory may still
/// fail.
pub(super) fn is_output_directory(path: &Path) -> bool {
    let mark = path.join("ddfuzz.json").try_exists();
    path.is_dir() && mark.unwrap_or(true)
}

/// Runs `ddfuzz min OUT`: minimizes all groups of an output directory, and prints the result.
pub(super) fn run(args: &MinArgs, out: &Path, output: &Output) -> Result<Exit, Failure> {
    check(args)?;
    let target = match args.target.is_named() {
        true => rerun_target(&Reader::open(out)?.campaigns()?, &args.target)?,
        false => recorded_target(out, &args.target)?,
    };
    let stop = signals::stop_flag()?;
    let target = target.abandoned_when(signals::abandon_at(&stop));
    let (started, way) = args.target.start(&target, &stop, output)?;
    let minimizing = Minimizing {
        // Resumed minimizations have used up the default budget.
        budget_time: match (args.results.budget_time, args.results.resume) {
            (None, true) => None,
            (given, _) => Some(given.unwrap_or(GROUP_BUDGET)),
        },
        variants: (args.variants).map_or(Variants::Plain, |most| Variants::Most(most.into())),
        ..args.minimizing(target, way)
    };
    let known = KnownGroups::default();
    let resume = args.results.resume;
    let done = minimize(out, &minimizing, &known, resume, &stop, output);
    drop(started);
    let done = signals::unless_stopped(&stop, done)?;
    output.result(&done.text(out), &done);
    for group in done.groups.iter().filter(|group| group.any_input) {
        output.warn_of_any_input(&group.major);
    }
    if let Some(view) = done.views.iter().find(|view| view.kind == Kind::Crash) {
        output.suggest_for_groups(out, &view.major.short(), Some(&minimizing.target));
    }
    Ok(match done.interrupted {
        true => {
            output.say("interrupted: continue with the same command");
            Exit::Interrupted
        }
        false => Exit::Done,
    })
}

/// Fails if an option was given that is only for the minimization of a single input.
fn check(args: &MinArgs) -> Result<(), Failure> {
    let given = values::first_given(&[
        ("--args", args.args),
        ("--env-vars", args.env_vars),
        ("--test", args.test.is_some()),
        ("--export-test", args.export_test.is_some()),
        ("--out", args.results.out.is_some()),
        ("--log", args.results.log.is_some()),
        ("--force", args.results.force),
    ]);
    match given {
        Some(name) => Err(Failure::usage(format!(
            "{name} works with one input, but an output directory is given"
        ))
        .hint("the groups of an output directory are minimized in place; give a file to minimize one input")),
        None => Ok(()),
    }
}

/// Minimizes the crash groups of the output directory `out` that are not minimized yet and not in
/// `known`; with `resume`, also those whose budget was used up.
pub(in crate::cli) fn minimize(
    out: &Path,
    minimizing: &Minimizing,
    known: &KnownGroups,
    resume: bool,
    stop: &std::sync::atomic::AtomicBool,
    output: &Output,
) -> Result<MinimizedGroups, Failure> {
    let target = &minimizing.target;
    // No campaign is added, because it would hide that nothing was found on this target yet.
    let mut store = Store::open(out, None)?;
    install_bundled(&mut store, target)?;
    let left_out = FailuresOfTarget::of_target(store.reader(), target)?.left_out(store.reader())?;
    if left_out > 0 {
        output.say(&format!(
            "{} found on another target: not minimized with this one",
            size::counted(left_out, "group")
        ));
    }
    show::warn_of_incomplete(store.reader(), "minimized", output)?;
    let store = Mutex::new(store);
    let mut screen = GroupsScreen {
        line: ui::CountBar::new(output, "group", 0),
        output,
        done: 0,
    };
    let done = minimize_pending(&store, minimizing, known, resume, &mut screen, stop);
    let minimized = screen.done;
    drop(screen);
    done?;
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut views = Vec::new();
    for kind in Kind::ALL {
        views.extend(show::views(store.reader(), kind)?);
    }
    let is_unfinished = |view: &&GroupView| {
        let ended = view.minimized.as_ref();
        !resume && ended.is_some_and(|ended| ended.is_unfinished())
    };
    Ok(MinimizedGroups {
        groups: views.iter().map(RunGroup::from).collect(),
        unfinished: views.iter().filter(is_unfinished).count() as u64,
        minimized,
        interrupted: stop.load(std::sync::atomic::Ordering::Relaxed),
        views,
    })
}

impl MinimizedGroups {
    /// Formats a table of the crash groups, the number of inputs that this call of ddfuzz has
    /// minimized, and how to continue minimizations that a budget has ended.
    pub(in crate::cli) fn text(&self, out: &Path) -> String {
        let table = match self.views.is_empty() {
            true => String::new(),
            false => groups_table(&self.views, ui::stdout_width()) + "\n",
        };
        let count = match self.minimized {
            0 if self.interrupted => "interrupted".to_owned(),
            0 => "nothing to minimize".to_owned(),
            count => format!("{} minimized", size::counted(count, "input")),
        };
        let groups = size::counted(self.groups.len() as u64, "group");
        let mut text = format!("{table}{groups} in {}: {count}", out.display());
        if self.unfinished > 0 && !self.interrupted {
            let ended = size::counted(self.unfinished, "minimization");
            text.push_str(&format!(
                "; `ddfuzz min --resume {}` continues {ended} whose budget was used up",
                shell_operand(out)
            ));
        }
        text
    }
}

/// The progress display while all groups of an output directory are minimized: how many are done,
/// and how many remain.
struct GroupsScreen<'a> {
    line: ui::CountBar,
    output: &'a Output,
    done: u64,
}

impl Screen for GroupsScreen<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.line.set_all(self.done + progress.minimizing);
        self.line.show(self.done, "minimized");
    }

    fn minimized(&mut self, group: &GroupView) {
        if group.kind == Kind::Flaky {
            return self.output.say(&format!(
                "not minimized {}: it did not crash again, and stands under flaky now",
                group.major.short()
            ));
        }
        if let Some(why) = group.minimized.as_ref().and_then(|it| it.given_up.as_ref()) {
            return self
                .output
                .say(&format!("not minimized {}: {why}", group.name()));
        }
        self.done += 1;
        self.output.say(&format!(
            "minimized {}, {}: {}",
            group.name(),
            size::reduction(group.size_before, group.size_after()),
            group.claim()
        ));
    }

    fn note(&mut self, text: &str) {
        self.output.say(text);
    }
}
