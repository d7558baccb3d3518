//! `ddfuzz triage`: runs existing crash files and groups them. `--against` compares the groups with
//! those of another output directory.

mod job;
mod outcomes;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::campaign_args::read_known;
use super::failure::CONTINUE;
use super::min::directory::{self, GROUP_BUDGET, MinimizedGroups};
use super::recorded_conditions::other_conditions;
use super::report::HtmlArgs;
use super::reports::{ReportArgs, causes, target_name};
use super::run::workers;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, explain, show, signals, ui, values};
use crate::campaign::{Minimizing, Variants, pending_entries};
use crate::exec::{Program, Target, TargetRecord, Way, find_program};
use crate::report::ci::{Finding, Findings};
use crate::report::text::shell_word;
use crate::report::{
    CannotTell, SameBy, TriageGroup, TriageResult, triage_cannot_tell, triage_doubts,
    triage_groups_table, triage_summary, triage_table,
};
use crate::store::{BaselineGroups, CampaignFile, Kind, KnownGroups, Reader, StoreError};
use crate::triage::{Conditions, Crash, Unobservable};
use job::TriageJob;
use workers::find_inputs;

/// Default of `--max-len` of `ddfuzz triage`, in bytes: larger files are not run.
const MAX_LEN: u64 = 256 << 20;

/// Run crash files and group them by bug
///
/// Directories of libFuzzer, cargo-fuzz, AFL++, honggfuzz and ddfuzz are recognised, and only
/// their crash files are run; of any other directory all files are. The files are only read.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz triage crash-1 artifacts/ -- ./program @@\n  \
                  ddfuzz triage afl-out -o groups --resume -- ./program @@\n  \
                  ddfuzz triage afl-out -o groups --minimize -- ./program @@\n  \
                  ddfuzz triage afl-out --against groups --known known.txt -- ./program @@"
)]
pub struct TriageArgs {
    /// Crash files, or directories of them
    #[arg(required = true, value_name = "INPUT_OR_DIR")]
    pub(in crate::cli) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Also look for memory leaks in inputs that do not crash, if the program has LeakSanitizer.
    /// Files named leak-* are always checked for leaks
    #[arg(long)]
    leaks: bool,
    /// Also store the groups in this output directory: the smallest input of each minor key
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue an earlier triage into --out: files that were run before are not run again
    #[arg(long, requires = "out")]
    resume: bool,
    /// Also minimize the groups, as `ddfuzz min OUT` does
    #[arg(long, requires = "out")]
    minimize: bool,
    /// Also explain each group of crashes, as `ddfuzz explain OUT` does
    #[arg(long, requires = "out")]
    explain: bool,
    /// Maximum time for one minimization [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = values::time, requires = "minimize")]
    budget_time: Option<Duration>,
    /// Show which groups are not in this other output directory; exit with 4 if it has all of them
    #[arg(long, value_name = "OUT")]
    against: Option<PathBuf>,
    /// File of known groups, one a line: 12 or more hex digits of a major key, or stable:HEX. They
    /// do not count for the exit code
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Maximum length of an input; longer files are not run [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    max_len: Option<u64>,
    #[command(flatten)]
    reports: ReportArgs,
    #[command(flatten)]
    html: HtmlArgs,
}

pub fn run(args: TriageArgs, output: &Output) -> Result<Exit, Failure> {
    args.target.check_given("triage", &args.inputs)?;
    let stop = signals::stop_flag()?;
    let target = args.target_until(&stop)?;
    let known = read_known(args.known.as_deref())?;
    let against = args.against.as_deref().map(Against::read).transpose()?;
    let output = &args.reports.check(output)?;
    args.check_page(output)?;
    let found = find_inputs(&args.inputs, args.out.as_deref(), output)?;
    let (started, way) = args.target.start(&target, &stop, output)?;
    let name = target_name(&target);
    let job = TriageJob {
        target: target.clone(),
        way,
        jobs: workers(args.jobs),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: args.leaks,
        out: args.out.clone(),
        resume: args.resume,
        found: &found,
        stop: &stop,
    };
    let page = args.out.as_ref().and_then(|out| args.html.start_page(out));
    let mut result = signals::unless_stopped(&stop, job.run(output))?;
    drop(started);
    mute(&mut result, &known);
    if let Some(against) = &against {
        compare(&mut result, against, &job.target);
    }
    if !args.explain {
        args.reports.write(&args.findings(&result, &name))?;
    }
    let minimized = match &args.out {
        Some(out) if args.minimize && !result.interrupted => {
            let done = args.minimize(out, target.clone(), way, &known, &stop, output);
            Some(signals::unless_stopped(&stop, done)?)
        }
        _ => None,
    };
    if let Some(done) = &minimized {
        result.interrupted = done.interrupted;
        result.minimized.clone_from(&done.groups);
    }
    if args.explain {
        args.explain(&mut result, &stop, output)?;
        args.reports.write(&args.findings(&result, &name))?;
    }
    page.into_iter().for_each(|page| page.finish(output));
    let mut shown = args.text(&result, output);
    if let (Some(done), Some(out)) = (&minimized, &args.out) {
        shown.push_str(&format!("\n\n{}", done.text(out)));
    }
    output.result(&shown, &result);
    let doubts = [triage_doubts(&result), triage_cannot_tell(&result)];
    doubts.iter().flatten().for_each(|text| output.say(text));
    let by_any_input = result.groups.iter().filter(|group| group.any_input);
    by_any_input.for_each(|group| output.warn_of_any_input(&group.major));
    args.say_next(&result, &target, &known, output)?;
    Ok(exit(&result))
}

impl TriageArgs {
    /// Returns the target that the options name; its runs are abandoned when `stop` turns true.
    fn target_until(&self, stop: &Arc<AtomicBool>) -> Result<Target, Failure> {
        let target = self.target.target()?;
        Ok(target.abandoned_when(signals::abandon_at(stop)))
    }

    /// Formats the result of a triage as text, with the outcome of each file if only files were
    /// given, or with `-v`.
    fn text(&self, result: &TriageResult, output: &Output) -> String {
        let each = output.verbose || self.inputs.iter().all(|input| !input.is_dir());
        text(result, each)
    }

    /// Checks, if `--html` asks for an HTML page of the results, that there is an output directory
    /// and that the page overwrites no other file.
    fn check_page(&self, output: &Output) -> Result<(), Failure> {
        match &self.out {
            Some(out) => self.html.check(out, &self.reports, output),
            None if self.html.is_asked() => {
                Err(Failure::usage("--html needs an output directory").hint("give one with -o"))
            }
            None => Ok(()),
        }
    }

    /// Prints the commands that the user could type after a triage: to minimize, show or export the
    /// groups, or to continue.
    fn say_next(
        &self,
        result: &TriageResult,
        target: &Target,
        known: &KnownGroups,
        output: &Output,
    ) -> Result<(), Failure> {
        match (&self.out, result.groups.first()) {
            (Some(out), Some(group)) => {
                let reader = Reader::open(out)?;
                if !pending_entries(&reader, target, Variants::Plain, known)?.is_empty() {
                    let out = shell_word(out);
                    output.suggest(&format!("ddfuzz min {out}  # minimizes its groups"));
                }
                output.suggest_for_groups(out, &group.major, Some(target));
            }
            (None, Some(_)) => {
                output.suggest("add -o DIR to store the groups, for ddfuzz export and ddfuzz check")
            }
            _ => {}
        }
        if result.interrupted {
            let how = match self.out {
                Some(_) => CONTINUE,
                None => "with -o DIR a triage can be continued by --resume",
            };
            output.say(&format!("interrupted: {how}"));
        }
        Ok(())
    }

    /// Explains the crash groups in the output directory of the triage (`--explain`), unless it was
    /// interrupted, and copies the beginning of each explanation there to its group in `result`.
    fn explain(
        &self,
        result: &mut TriageResult,
        stop: &AtomicBool,
        output: &Output,
    ) -> Result<(), Failure> {
        let Some(out) = &self.out else {
            return Ok(());
        };
        if !result.interrupted {
            explain::explain_new(out, stop, output)?;
        }
        tell_explanations(result, out)
    }

    fn findings(&self, result: &TriageResult, target: &str) -> Findings {
        Findings {
            target: target.to_owned(),
            summary: triage_summary(result),
            groups: result.groups.iter().map(Into::into).collect(),
        }
    }

    /// Minimizes the crash groups in the output directory of the triage (`--minimize`), and returns
    /// the result.
    fn minimize(
        &self,
        out: &Path,
        target: Target,
        way: Way,
        known: &KnownGroups,
        stop: &AtomicBool,
        output: &Output,
    ) -> Result<MinimizedGroups, Failure> {
        let minimizing = Minimizing {
            budget_time: Some(self.budget_time.unwrap_or(GROUP_BUDGET)),
            learn_limit: self.target.timeout.is_none(),
            jobs: workers(self.jobs),
            variants: Variants::Plain,
            ..Minimizing::of_target(target, way, "full")
        };
        directory::minimize(out, &minimizing, known, false, stop, output)
    }
}

/// Copies the beginning of each explanation in the output directory `out` to its crash group in the
/// result of the triage.
fn tell_explanations(result: &mut TriageResult, out: &Path) -> Result<(), Failure> {
    let views = show::views(&Reader::open(out)?, Kind::Crash)?;
    for group in &mut result.groups {
        let same = views.iter().find(|view| view.major.short() == group.major);
        group.explanation = same.and_then(|view| view.explanation.clone());
    }
    Ok(())
}

/// Marks the crash groups in the result of the triage that the user listed (`--known`) as known.
fn mute(result: &mut TriageResult, known: &KnownGroups) {
    for group in &mut result.groups {
        let mut stables = group.stables.iter().map(|text| text.parse().ok());
        group.known =
            known.has_major(&group.major) || stables.any(|stable| known.has_stable(stable));
    }
}

/// Compares the groups in the result of a triage with those of `against`, the output directory of
/// `--against`. Sets for each group whether that directory lacks it. Lists the groups of that
/// directory that runs of `target` cannot show, because of its build, limits, input channel or
/// environment.
fn compare(result: &mut TriageResult, against: &Against, target: &Target) {
    let conditions = Conditions {
        instrumentation: result.instrumentation.clone(),
        limits: target.limits,
        crash_exit: target.crash_exit,
        program: match &target.program {
            Program::Path(path) => find_program(path).ok(),
            Program::Bundled(_) => None,
        },
    };
    for group in &mut result.groups {
        against.compare_group(group, &conditions);
    }
    result.cannot_tell = against.cannot_tell(&conditions, target);
}

fn text(result: &TriageResult, each: bool) -> String {
    let width = ui::stdout_width();
    let mut text = String::new();
    if each && !result.inputs.is_empty() {
        text.push_str(&triage_table(result, width));
        text.push('\n');
    }
    if !result.groups.is_empty() {
        let findings: Vec<Finding> = result.groups.iter().map(Finding::from).collect();
        text.push_str(&causes(
            findings.iter().filter(|one| one.is_new != Some(false)),
        ));
        text.push_str(&triage_groups_table(&result.groups, width));
    }
    text.push_str(&triage_summary(result));
    text
}

/// Returns the exit code of a triage, which says whether it found new groups, only known ones, or
/// none. A triage that the user stopped has a code of its own. If nothing crashed and some files
/// could not be read, it is that of an error, because those files might crash.
fn exit(result: &TriageResult) -> Exit {
    let told = |group: &TriageGroup| !group.known && group.new != Some(false);
    if result.interrupted {
        Exit::Interrupted
    } else if result.groups.iter().any(told) {
        Exit::Found
    } else if !result.groups.is_empty() {
        Exit::Known
    } else if result.unread > 0 {
        Exit::Usage
    } else {
        Exit::Done
    }
}

/// The crash groups of the output directory given with `--against`, for comparison with the groups
/// of a triage.
pub struct Against {
    had: BaselineGroups,
    /// The crashes that represent the groups of the output directory given with `--against`.
    crashes: Vec<Crash>,
    /// The campaigns of the output directory given with `--against`, which record the targets on
    /// which its crashes were found.
    campaigns: CampaignFile,
}

impl Against {
    /// Reads the crash groups of the output directory `out` and their representative crashes.
    pub fn read(out: &Path) -> Result<Against, StoreError> {
        let had = BaselineGroups::read(out)?;
        let reader = Reader::open(out)?;
        let mut crashes = Vec::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                for id in group.representatives() {
                    crashes.extend(reader.entry(&id)?.map(|entry| entry.crash));
                }
            }
        }
        Ok(Against {
            had,
            crashes,
            campaigns: reader.campaigns()?,
        })
    }

    /// Sets in `group`, a group of this triage, whether it is new, that is, missing in the output
    /// directory of `--against`. Leaves this unknown, with the reason, if no match is found, but
    /// the builds of that directory had other sanitizers than the present build (`now`), so that
    /// they would report the same crash differently.
    pub fn compare_group(&self, group: &mut TriageGroup, now: &Conditions) {
        let same = self.same_by(group);
        group.same_by = same;
        group.new = Some(same.is_none());
        if same.is_none() && !self.is_comparable(group, now) {
            group.new = None;
            group.why = Some(
                "the other directory is of builds with other sanitizers, which see the same bug \
                 as something else"
                    .to_owned(),
            );
        }
    }

    /// Tells how the output directory of `--against` knows `group`: by the same major key (hash of
    /// stack frames), or by the same function names; `None` if the directory does not have the
    /// group.
    fn same_by(&self, group: &TriageGroup) -> Option<SameBy> {
        if self.had.has_major(&group.major) {
            return Some(SameBy::Key);
        }
        let stable = group.stable.as_deref()?;
        let has = self.had.has_names(stable, group.build.as_deref());
        has.then_some(SameBy::Names)
    }

    /// Returns true if the builds of the other output directory would report the crash of `group`
    /// under the same class as the current build with the conditions `now`. False if not: two
    /// sanitizers may report the same bug differently.
    fn is_comparable(&self, group: &TriageGroup, now: &Conditions) -> bool {
        let everywhere = [
            "rustpanic",
            "gopanic",
            "stackoverflow",
            "hang",
            "oom",
            "sys",
        ];
        let class = group.class.as_str();
        let now = now.instrumentation.as_deref();
        everywhere.contains(&class)
            || class.starts_with("exit:")
            || self.crashes.is_empty()
            || self.crashes.iter().any(|crash| crash.is_comparable(now))
    }

    /// Returns the groups of the output directory of `--against` that runs of the target `now`
    /// under `conditions` cannot judge, since they would not show the crash: for example a bug that
    /// only another sanitizer reports, or a crash by an input that came through another channel.
    fn cannot_tell(&self, conditions: &Conditions, now: &Target) -> Vec<CannotTell> {
        let mut all: Vec<CannotTell> = Vec::new();
        for crash in &self.crashes {
            let major = crash.keys.major.short();
            if all.iter().any(|known| known.major == major) {
                continue;
            }
            let otherwise = self
                .finder(crash)
                .and_then(|record| other_conditions(record, crash, now));
            if let Some(Unobservable { why, hint }) = crash.unobservable(conditions).or(otherwise) {
                all.push(CannotTell {
                    major,
                    class: crash.class.to_string(),
                    why,
                    hint,
                });
            }
        }
        all
    }

    /// Returns the target on which `crash` was found, as its campaign in the output directory of
    /// `--against` records it; `None` if no target is recorded, as in a study.
    fn finder(&self, crash: &Crash) -> Option<&TargetRecord> {
        let id = crash.campaign()?;
        let campaign = self.campaigns.all().find(|one| one.id == id)?;
        campaign.target.as_ref()
    }
}
