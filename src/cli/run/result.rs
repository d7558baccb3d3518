//! Result of a campaign: as text, as JSON, as an exit code.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use crate::campaign::{Minimizing, Summary, Variants, pending_entries};
use crate::cli::behaviour::TargetWarning;
use crate::cli::doctor::refusals::Refusals;
use crate::cli::reports::{ReportArgs, causes, target_name};
use crate::cli::{Exit, Failure, Output, behaviour, config, show, ui};
use crate::exec::Way;
use crate::report::ci::{Finding, Findings};
use crate::report::text::shell_operand;
use crate::report::{EndedBy, GroupView, RunGroup, RunResult, groups_table, size};
use crate::store::{Kind, KnownGroups, Status, Store};

/// Prints with `-v` how many runs the way `snapshot` left to new processes, and why. Prints nothing
/// about a campaign that was guided by coverage, whose workers do not count these runs.
fn say_refusals(told: &CampaignReport<'_>, summary: &Summary, output: &Output) {
    if told.minimizing.way == Way::Snapshot && !told.tells_coverage {
        let refusals = Refusals::of(summary.runs_of_call, &summary.refusals);
        output.detail(&format!("snapshot {}", refusals.text()));
    }
}

/// Prints the result of a campaign, writes the requested reports, and returns the exit code.
pub fn report(
    summary: &Summary,
    store: &Store,
    told: &CampaignReport<'_>,
    output: &Output,
) -> Result<Exit, Failure> {
    let way = told.minimizing.way;
    let mut views: Vec<GroupView> = Vec::new();
    let mut counts = Vec::new();
    for kind in [Kind::Crash, Kind::Hang, Kind::Oom, Kind::Flaky] {
        let of_kind = show::views(store.reader(), kind)?;
        counts.push(of_kind.len() as u64);
        views.extend(of_kind);
    }
    let seconds = summary.fuzzed.as_secs_f64();
    let crashes = views.iter().filter(|view| view.kind == Kind::Crash);
    let result = RunResult {
        runs: summary.runs,
        runs_of_campaign: Some(summary.runs_of_campaign).filter(|all| *all > summary.runs),
        runs_per_s: summary.runs_per_s(),
        seconds,
        groups: crashes.map(RunGroup::from).collect(),
        new_groups: summary.new_groups,
        hangs: counts[1],
        ooms: counts[2],
        flaky: counts[3],
        unnamed_hangs: summary.unnamed,
        unstored: summary.unstored,
        exec: way,
        resumed: told.before.resumed,
        ended_by: summary.ended_by,
        rebuilt: summary.rebuilt,
        warnings: told.warnings(summary, store)?,
        settings: config::settings().cloned(),
    };
    let lines = |warning: &String| format!("warning: {warning}\n");
    let warnings: String = result.warnings.iter().map(lines).collect();
    let table = match views.is_empty() {
        true => String::new(),
        false => groups_table(&views, ui::stdout_width()) + "\n",
    };
    let causes = told.causes(&views, store);
    let text = format!(
        "{causes}{table}{warnings}{} in {seconds:.1} s ({}/s, executed by {way}){}: {}; results in {}",
        size::counted(summary.runs, told.unit),
        ui::rate(result.runs_per_s),
        of_campaign(summary) + &ended(summary),
        found(&counts, summary.new_groups, summary.unstored) + &unnamed(summary.unnamed),
        store.reader().root().display(),
    );
    // Reports are written before the result is printed: if one fails, only the error is printed.
    told.write(&views, &text, store)?;
    say_refusals(told, summary, output);
    output.result(&text, &result);
    for group in result.groups.iter().filter(|group| group.any_input) {
        output.warn_of_any_input(&group.major);
    }
    told.say_next(&views, store, output)?;
    Ok(exit(summary))
}

fn exit(summary: &Summary) -> Exit {
    match (summary.new_groups + summary.unstored, summary.known_crashes) {
        _ if summary.interrupted => Exit::Interrupted,
        (1.., _) => Exit::Found,
        (0, 1..) => Exit::Known,
        // What could not be read might crash.
        (0, 0) if summary.runs == 0 && summary.unread > 0 => Exit::Usage,
        (0, 0) => Exit::Done,
    }
}

/// The major keys (hashes that identify bugs) of all groups of failures that were in the output
/// directory before this call of ddfuzz, and whether the call continues a campaign.
pub struct GroupsBefore {
    majors: BTreeSet<String>,
    resumed: bool,
}

impl GroupsBefore {
    /// Reads the groups in the output directory at the beginning of a call; `resumed` says whether
    /// the call continues a campaign.
    pub fn of(store: &Store, resumed: bool) -> Result<GroupsBefore, Failure> {
        let mut majors = BTreeSet::new();
        for kind in Kind::ALL {
            let groups = store.reader().groups(kind)?;
            majors.extend(groups.iter().map(|group| group.record.major.short()));
        }
        Ok(GroupsBefore { majors, resumed })
    }
}

/// What is needed to report the result of a campaign, beside the campaign's summary and its output
/// directory.
pub struct CampaignReport<'a> {
    /// Word by which messages call an execution of the target: `run` or `input`.
    pub unit: &'static str,
    /// Whether the campaign's inputs are files of the user, which stay where they are.
    pub inputs_stay: bool,
    /// Settings of the campaign's minimizations, which include the target and its way of execution.
    pub minimizing: &'a Minimizing,
    /// Crash groups that the user listed as known (`--known`, `--against`), which do not count as
    /// found.
    pub known: &'a KnownGroups,
    pub reports: &'a ReportArgs,
    /// Path of the campaign's output directory, as the user gave it.
    pub out: &'a Path,
    pub before: GroupsBefore,
    /// Warnings about the target that were printed before the campaign began.
    pub target_warnings: Vec<TargetWarning>,
    /// Warnings about the watched fuzzer, for example that it ended too early.
    pub fuzzer_warnings: Vec<String>,
    /// Whether the campaign was guided by coverage; only then can the size of its corpus give rise
    /// to a warning.
    pub tells_coverage: bool,
}

/// Returns the warning after a campaign whose disk was full to the end. `unstored`: number of
/// findings that are not stored. `inputs_stay`: true if their inputs are files of the user, and so
/// are not lost.
pub fn of_full_disk(unstored: u64, inputs_stay: bool) -> String {
    let findings = match unstored {
        0 => String::new(),
        more => format!("{} could not be stored: ", size::counted(more, "finding")),
    };
    let kept = match inputs_stay {
        true => "the files stay where they are",
        false => "what could not be stored is lost",
    };
    format!(
        "{findings}the disk was full to the end: {kept}, and only what is stored is told here; make \
         room, and go on with --resume"
    )
}

impl CampaignReport<'_> {
    /// Returns all warnings for the result of a campaign: those about the target from before the
    /// campaign, and those derived from its runs, such as one about a full disk.
    fn warnings(&self, summary: &Summary, store: &Store) -> Result<Vec<String>, Failure> {
        let corpus = match self.tells_coverage {
            true => Some(store.reader().corpus()?.len()),
            false => None,
        };
        // The warning is left out if one about the target was printed before the campaign.
        let is_late = self.target_warnings.is_empty() && !self.before.resumed;
        let late = is_late
            .then(|| behaviour::campaign_warning(summary, corpus))
            .flatten();
        let slow = behaviour::time_warning(summary, &self.minimizing.target);
        let all = self.target_warnings.iter().chain(&late).chain(&slow);
        let full = summary
            .out_of_room
            .then(|| of_full_disk(summary.unstored, self.inputs_stay));
        let hung = (summary.unnamed > 0).then(|| of_unnamed(summary.unnamed, self.out));
        let unread = (summary.unread > 0).then(|| {
            let paths = size::counted(summary.unread, "path");
            format!("{paths} could not be read, so that nothing was run there")
        });
        let more = full
            .into_iter()
            .chain(hung)
            .chain(unread)
            .chain(self.fuzzer_warnings.iter().cloned());
        Ok(all.map(TargetWarning::to_string).chain(more).collect())
    }

    /// Prints the commands that the user could type next. One command minimizes groups without a
    /// result, if there are any. The others are for one crash group among `views` that is not
    /// fixed: preferably a new one, and among these the most severe one.
    fn say_next(&self, views: &[GroupView], store: &Store, output: &Output) -> Result<(), Failure> {
        let is_left =
            |view: &&GroupView| view.kind == Kind::Crash && view.status != Some(Status::Fixed);
        let left = views.iter().filter(is_left);
        let never_comes = |view: &GroupView| view.flaky.is_some_and(|rate| rate.hits == 0);
        let is_old = |view: &GroupView| self.is_new(view, store) == Some(false);
        let next =
            left.min_by_key(|view| (never_comes(view), is_old(view), Reverse(view.severity)));
        if let Some(view) = next {
            let target = &self.minimizing.target;
            let plain = Variants::Plain;
            if !pending_entries(store.reader(), target, plain, self.known)?.is_empty() {
                let out = shell_operand(self.out);
                output.suggest(&format!("ddfuzz min {out}  # minimizes its groups"));
            }
            output.suggest_for_groups(self.out, &view.major.short(), Some(target));
        }
        Ok(())
    }

    /// Describes up to three crash groups that may be new, the most severe first, with message,
    /// stacks and source.
    fn causes(&self, views: &[GroupView], store: &Store) -> String {
        let new = views
            .iter()
            .filter(|view| self.is_new(view, store) != Some(false));
        let new: Vec<Finding> = new.map(Finding::from).collect();
        causes(new.iter())
    }

    /// Returns whether the group of `view` is new. `Some(false)` if it is listed as known, is the
    /// same bug as a group of an earlier build, or was in the output directory before this call;
    /// else `Some(true)`. `None` if the group was there before, but the campaign is resumed: an
    /// earlier call may have been killed before it reported the group.
    fn is_new(&self, view: &GroupView, store: &Store) -> Option<bool> {
        let major = view.major.short();
        let is_known = store.reader().is_muted(view.kind, &major, self.known);
        match self.before.majors.contains(&major) {
            _ if is_known || view.known_as.is_some() => Some(false),
            // The call before may have been killed before it reported the groups.
            true if self.before.resumed => None,
            was_there => Some(!was_there),
        }
    }

    /// Writes the requested reports for CI servers (Markdown, SARIF, JUnit); does nothing if none
    /// is requested.
    fn write(&self, views: &[GroupView], text: &str, store: &Store) -> Result<(), Failure> {
        if self.reports.is_empty() {
            return Ok(());
        }
        let finding = |view: &GroupView| Finding {
            is_new: self.is_new(view, store),
            ..Finding::from(view)
        };
        self.reports.write(&Findings {
            target: target_name(&self.minimizing.target),
            summary: text.lines().last().unwrap_or_default().to_owned(),
            groups: views.iter().map(finding).collect(),
        })
    }
}

/// Formats the number of runs of the whole campaign, as a text to follow the number of runs that
/// this call reports: `, 5,000 with earlier calls`. The text is empty if both numbers are equal.
fn of_campaign(summary: &Summary) -> String {
    match summary.runs_of_campaign > summary.runs {
        true => format!(
            ", {} with earlier calls",
            size::grouped(summary.runs_of_campaign)
        ),
        false => String::new(),
    }
}

/// Formats the numbers of groups that a campaign has found. `counts`: the numbers of groups of
/// crashes, hangs, out-of-memory failures and flaky crashes, in this order. `new`: how many of the
/// crash groups are new. `unstored`: number of findings that were not stored because the disk was
/// full.
fn found(counts: &[u64], new: u64, unstored: u64) -> String {
    let crashes = match counts[0] {
        0 if unstored > 0 => "no crash stored".to_owned(),
        0 => "no crashes".to_owned(),
        count => {
            let groups = size::counted(count, "crash group");
            match new {
                0 => format!("{groups} (none new)"),
                new => format!("{groups} ({} new)", size::grouped(new)),
            }
        }
    };
    let lost = match unstored {
        0 => String::new(),
        more => format!(
            ", {} not stored (full disk)",
            size::counted(more, "finding")
        ),
    };
    crashes + &other_groups(&counts[1..]) + &lost
}

/// Formats the numbers of groups that are not crash groups, as a text to follow the number of crash
/// groups: `, 1 hang group`. `counts`: the numbers for hangs, out-of-memory failures and flaky
/// crashes, in this order. Zeros are left out.
pub(in crate::cli) fn other_groups(counts: &[u64]) -> String {
    let kinds = ["hang group", "out-of-memory group", "flaky group"];
    let others = counts.iter().zip(kinds).filter(|(count, _)| **count > 0);
    others
        .map(|(count, kind)| format!(", {}", size::counted(*count, kind)))
        .collect()
}

/// Formats the number of hangs that belong to no group yet, as a text to follow the numbers of
/// groups; empty for 0.
fn unnamed(hangs: u64) -> String {
    match hangs {
        0 => String::new(),
        hangs => format!(", {} seen and not yet named", size::counted(hangs, "hang")),
    }
}

/// Formats the warning that `hangs` hangs could not be assigned to groups before the campaign's
/// time was over; their inputs are the files `flaky/MAJOR/MINOR/HASH/original` of the output
/// directory `out`.
fn of_unnamed(hangs: u64, out: &Path) -> String {
    format!(
        "the time was over before {} could be named: the inputs are stored under flaky; continue with \
         --resume and more time, or name them with `ddfuzz triage {}/*/*/*/original -- PROGRAM`",
        size::counted(hangs, "hang"),
        shell_operand(&out.join(Kind::Flaky.folder()))
    )
}

/// Formats why the campaign ended: by a condition of `--until`, or by Ctrl-C. The text is empty if
/// its time or its number of runs was used up. It also says if the program was rebuilt during the
/// campaign.
fn ended(summary: &Summary) -> String {
    let by = match (summary.ended_by, summary.until) {
        (EndedBy::Until, Some(until)) => format!(", stopped by --until '{until}'"),
        (EndedBy::Interrupted, _) => ", interrupted".to_owned(),
        _ => String::new(),
    };
    match summary.rebuilt {
        true => format!("{by}, of more than one build of the program"),
        false => by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_full_disk_did_not_take_is_told() {
        assert_eq!(found(&[0, 0, 0, 0], 0, 0), "no crashes");
        let lost = "no crash stored, 2 findings not stored (full disk)";
        assert_eq!(found(&[0, 0, 0, 0], 0, 2), lost);
        let both = "1 crash group (1 new), 1 hang group, 1 finding not stored (full disk)";
        assert_eq!(found(&[1, 1, 0, 0], 1, 1), both);
    }
}
