//! `ddfuzz check`: after a fix, runs the reproducers of an output directory again, and reports for
//! each group whether it is fixed, the same, or another crash, or that this build cannot show it.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::behaviour::constant_refusal;
use super::campaign_args::read_known;
use super::recorded_conditions::{lacks_files, other_conditions};
use super::run::{self, workers};
use super::show::incomplete_group;
use super::target::{TargetArgs, only_recorded_target, rerun_target};
use super::{DISTURBED, Exit, Failure, Output, changes, signals, ui};
use crate::campaign::{FailuresOfTarget, Recheck, StoredGroup};
use crate::exec::facts::TargetFacts;
use crate::exec::{
    ExecError, Executor, Program, Target, TargetRecord, Way, find_program, is_script,
};
use crate::report::{CheckResult, CheckedGroup, check_table};
use crate::store::{
    Campaign, CampaignFile, Entry, Group, IncompleteGroup, Kind, KnownGroups, Reader, Status,
};
use crate::triage::{Found, Key, Unobservable, another_program, program_build_id, same_build};

/// Maximum number of groups, among those that seem to be fixed, of which one input is run once
/// more, to see whether the program refuses every input.
const REFUSED: usize = 4;

/// After a fix, run the reproducers of an output directory again and show which groups are fixed
///
/// The reproducers of each group are run, and the original inputs if no reproducer fails any more.
/// A crash that this build cannot show (a report of AddressSanitizer in a build without it) is not
/// called fixed. In the output directory only the list of checks (checks.jsonl) is written. `ddfuzz
/// show` reads it; if the program is in a git repository, it also tells which fixed groups have
/// come back.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz check ddfuzz-out\n  \
                        ddfuzz check ddfuzz-out -- ./program-rebuilt @@")]
pub struct CheckArgs {
    /// Output directory
    #[arg(default_value = "ddfuzz-out")]
    pub out: PathBuf,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// File of groups to skip, one a line: 12 or more hex digits of a major key, or stable:HEX
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    known: Option<PathBuf>,
}

pub fn run(args: CheckArgs, output: &Output) -> Result<Exit, Failure> {
    let reader = Reader::open(&args.out)?;
    let known = read_known(args.known.as_deref())?;
    let groups = groups(&reader, &known)?;
    let stop = signals::stop_flag()?;
    let recorded = Recorded::of(&reader)?;
    check_options(&args, &recorded, &groups)?;
    let one = one_target(&args, (&reader, &recorded), &groups, output)?;
    let abandon_when = signals::abandon_at(&stop);
    let one = one.map(|target| target.abandoned_when(abandon_when.clone()));
    let start = |target| args.target.start(target, &stop, output);
    let started = one.as_ref().map(start).transpose()?;
    let one = one.zip(started.as_ref().map(|(_, way)| *way));
    let subject = |entry: &Entry| {
        let (target, way) = subject(&args, &recorded, one.as_ref(), entry)?;
        Some((target.abandoned_when(abandon_when.clone()), way))
    };
    let (groups, missing) = runnable(groups, &subject)?;
    for (group, path) in &missing {
        let (major, path) = (group.record.major.short(), path.display());
        let what = format!("the group {major} is not checked: its program {path} does not exist");
        output.say(&format!("warning: {what}"));
    }
    // If a group has inputs of several utilities, some of these programs may be missing.
    let is_there = |found: &(Target, Way)| one.is_some() || gone(&found.0).is_none();
    let subject = |entry: &Entry| subject(entry).filter(is_there);
    let mut doubts = match &one {
        Some((target, _)) if args.target.is_named() => doubts(&reader, &groups, target)?,
        _ => Doubts::of_recorded(&reader, &groups, &subject)?,
    };
    if let Some((target, _)) = &one {
        doubts.add_same_build(&groups, target)?;
    }
    let recheck = Recheck {
        doubt: &|group| doubts.of(group),
        subject: &subject,
        groups: &groups,
        stop: &stop,
    };
    let jobs = workers(args.jobs);
    let line = ui::CountBar::new(output, "group", groups.len() as u64);
    let checked = recheck.run(jobs, &|done| line.show(done, "checked"));
    let checked = signals::unless_stopped(&stop, checked.map_err(Failure::from))?;
    drop(line);
    if let Some((started, _)) = started {
        warn_of_refusal(started.executor, &checked, output);
    }
    let target = one.as_ref().map(|(target, _)| target);
    let stopped = stop.load(Ordering::Relaxed);
    let incomplete = match stopped {
        true => 0,
        false => warn_of_incomplete((&reader, &known), &groups, &checked, output)?,
    };
    let not_run = (missing.len() as u64, incomplete, stopped);
    Ok(report(&args, checked, not_run, target, output))
}

/// Fails if an option of the command line does not fit one of the recorded targets that showed the
/// failures in `groups`. Does nothing if the command line names a target.
fn check_options(
    args: &CheckArgs,
    recorded: &Recorded,
    groups: &[StoredGroup],
) -> Result<(), Failure> {
    if args.target.is_named() {
        return Ok(());
    }
    for entry in entries(groups) {
        if let Some((target, _)) = recorded.of_entry(entry) {
            args.target.over(target)?;
        }
    }
    Ok(())
}

/// Prints a warning for each group none of whose inputs could be run, and returns the number of
/// these groups. `checked`: the result for each of `groups`, `None` if no input was run. Groups in
/// `known` are left out.
fn warn_of_incomplete(
    (reader, known): (&Reader, &KnownGroups),
    groups: &[StoredGroup],
    checked: &[Option<CheckedGroup>],
    output: &Output,
) -> Result<u64, Failure> {
    let both = groups.iter().zip(checked);
    let unchecked = both.filter(|(_, checked)| checked.is_none());
    let unchecked = unchecked.map(|(stored, _)| {
        let group = &stored.group;
        reader.incomplete_group(group.kind, &group.record.major.short())
    });
    let mut incomplete = unchecked.collect::<Result<Vec<IncompleteGroup>, _>>()?;
    for group in reader.incomplete_groups()? {
        if !known.has_major(&group.major) && !incomplete.contains(&group) {
            incomplete.push(group);
        }
    }
    for group in &incomplete {
        output.say(&incomplete_group(reader.root(), group, "checked"));
    }
    Ok(incomplete.len() as u64)
}

/// Prints the result of `ddfuzz check`, with the groups that came back. `missing` and `incomplete`:
/// numbers of groups that were not checked because their programs or inputs are missing; `stopped`:
/// whether the user has ended the check. Returns the exit code, which says success only if all
/// groups are fixed.
fn report(
    args: &CheckArgs,
    checked: Vec<Option<CheckedGroup>>,
    (missing, incomplete, stopped): (u64, u64, bool),
    target: Option<&Target>,
    output: &Output,
) -> Exit {
    let mut result = CheckResult {
        not_run: missing + incomplete,
        incomplete,
        ..CheckResult::default()
    };
    checked
        .into_iter()
        .flatten()
        .for_each(|group| result.add(group));
    changes::note_check(&args.out, target, &mut result, output);
    output.result(&check_table(&result, ui::stdout_width()), &result);
    if result.groups.iter().any(|group| group.is_disturbed) {
        output.say(&format!(
            "warning: {DISTURBED}; the groups that failed only when checked alone are told as they \
             failed then, and --jobs 1 checks one at a time"
        ));
    }
    changes::tell(&result, output);
    match stopped {
        true => Exit::Interrupted,
        false if result.fixed == result.groups.len() as u64 + result.not_run => Exit::Done,
        false => Exit::Found,
    }
}

/// Warns if the checked program ends with the same error status on inputs of groups that seem to be
/// fixed and on trial inputs.
fn warn_of_refusal(
    mut executor: Box<dyn Executor>,
    checked: &[Option<CheckedGroup>],
    output: &Output,
) {
    let fixed = checked.iter().flatten();
    let fixed = fixed.filter(|group| group.status == Status::Fixed);
    let inputs = fixed.take(REFUSED).map(|group| fs::read(&group.file).ok());
    let inputs: Option<Vec<Vec<u8>>> = inputs.collect();
    if let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty())
        && let Some(refusal) = constant_refusal(&mut *executor, &inputs)
    {
        output.say(&format!("warning: {refusal}"));
    }
}

/// Reads all groups of failures in the output directory that are not in the list of known groups.
fn groups(reader: &Reader, known: &KnownGroups) -> Result<Vec<StoredGroup>, Failure> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            let major = group.record.major.short();
            let muted =
                known.has_major(&major) || reader.is_muted_by_stable_key(kind, &major, known)?;
            if !muted {
                all.push(StoredGroup::read(reader, group)?);
            }
        }
    }
    Ok(all)
}

/// Iterates over the entries (stored failures) of all `groups`.
fn entries(groups: &[StoredGroup]) -> impl Iterator<Item = &Entry> {
    groups.iter().flat_map(|stored| &stored.entries)
}

/// Returns the target on which the reproducers of all groups are run: that of the command line,
/// else the recorded one. Its time and memory limits are the recorded ones unless the command line
/// gives others. `None` if every entry (stored failure) records its own program, as after a study
/// of many programs.
fn one_target(
    args: &CheckArgs,
    (reader, recorded): (&Reader, &Recorded),
    groups: &[StoredGroup],
    output: &Output,
) -> Result<Option<Target>, Failure> {
    let file = reader.campaigns()?;
    let campaigns: Vec<&Campaign> = file.all().collect();
    let limits = campaigns.iter().find_map(|campaign| campaign.limits);
    if args.target.is_named() {
        let mut target = rerun_target(&file, &args.target)?;
        if let Some(limits) = limits {
            target.limits = args.target.override_limits(limits);
        }
        warn_without_file(&campaigns, &target, output);
        return Ok(Some(target));
    }
    let (own, others) = have_own_targets(recorded, groups);
    let of_many = match groups.is_empty() {
        true => !reader.studies()?.is_empty(),
        false => own && !others,
    };
    if of_many {
        return Ok(None);
    }
    // Failures found by a study record their program themselves, without their campaign.
    let of_one = |campaign: &&Campaign| !own || campaign.target.is_some();
    let finders = finders(groups);
    let has_found = |campaign: &&Campaign| finders.is_empty() || finders.contains(&campaign.id);
    let campaigns = campaigns.into_iter().filter(of_one).filter(has_found);
    let campaigns: Vec<&Campaign> = campaigns.collect();
    let target = only_recorded_target(&campaigns, &args.out)?;
    Ok(Some(args.target.over(target)?))
}

/// Returns the ids of the campaigns that have found the failures in `groups`. Returns an empty set
/// if the record of a failure names no campaign, unless the failure is a slip (met while another
/// one was minimized).
fn finders(groups: &[StoredGroup]) -> BTreeSet<String> {
    let mut finders = BTreeSet::new();
    for entry in entries(groups) {
        match (entry.crash.campaign(), &entry.crash.found) {
            (Some(campaign), _) => {
                finders.insert(campaign.to_owned());
            }
            // The minimization of another entry has found this one: the record names no campaign.
            (None, Some(Found::Slip { .. })) => {}
            (None, _) => return BTreeSet::new(),
        }
    }
    finders
}

/// Reasons to doubt that groups are fixed although no run of their inputs fails any more.
#[derive(Default)]
struct Doubts {
    /// The reason to doubt that holds for all groups; `None` if there is none.
    all: Option<Unobservable>,
    /// Reasons to doubt that single groups are fixed, by kind and major key (hash that identifies
    /// the bug).
    single: HashMap<(Kind, Key), Unobservable>,
}

impl Doubts {
    /// Returns reasons to doubt that groups are fixed when their inputs pass: options of the
    /// command line have changed conditions under which the groups were found, as recorded with
    /// their targets. `subject` returns the target and the way with which an entry (a stored
    /// failure) is run now.
    fn of_recorded(
        reader: &Reader,
        groups: &[StoredGroup],
        subject: &dyn Fn(&Entry) -> Option<(Target, Way)>,
    ) -> Result<Doubts, Failure> {
        let file = reader.campaigns()?;
        let mut doubts = Doubts::default();
        for StoredGroup { group, entries } in groups {
            let why = entries.iter().find_map(|entry| {
                let (now, _) = subject(entry)?;
                let own = entry.crash.of.as_ref().map(|of| &of.target);
                let record = own.or_else(|| target_of_finder(&file, entry))?;
                other_conditions(record, &entry.crash, &now)
            });
            let name = (group.kind, group.record.major);
            doubts.single.extend(why.map(|why| (name, why)));
        }
        Ok(doubts)
    }

    fn of(&self, group: &Group) -> Option<&Unobservable> {
        let single = self.single.get(&(group.kind, group.record.major));
        self.all.as_ref().or(single)
    }

    /// Adds a reason to doubt for each group that has none and whose crashes were all found with
    /// the very build of `target` that is being checked ([`same_build`]): a build cannot have fixed
    /// its own crash. Adds none if `target` is a script or its arguments name existing files, since
    /// what the target does depends on those files, too.
    fn add_same_build(&mut self, groups: &[StoredGroup], target: &Target) -> Result<(), Failure> {
        let Program::Path(path) = &target.program else {
            return Ok(());
        };
        let path = find_program(path)?;
        if is_script(&path) || target.args.iter().any(|word| Path::new(word).exists()) {
            return Ok(());
        }
        let id = program_build_id(&path)
            .map_err(|error| Failure::file(&path, "cannot read the program", &error))?;
        let Some(id) = id else {
            return Ok(());
        };
        for StoredGroup { group, entries } in groups {
            let name = (group.kind, group.record.major);
            if self.single.contains_key(&name) {
                continue;
            }
            let why = same_build((&path, &id), entries.iter().map(|entry| &entry.crash));
            self.single.extend(why.map(|why| (name, why)));
        }
        Ok(())
    }
}

/// Returns the reasons to doubt that groups are fixed although runs of `target` pass. A group gets
/// a reason in three cases. (1) It was found with other arguments, by another input channel, or in
/// another environment or directory. (2) Some of its inputs were found on another target, in an
/// output directory with results of several targets. (3) The program has another file name than a
/// recorded one and contains none of the functions in which the group failed; this case is left out
/// if no program is recorded, or if `target` comes with ddfuzz.
fn doubts(reader: &Reader, groups: &[StoredGroup], target: &Target) -> Result<Doubts, Failure> {
    let file = reader.campaigns()?;
    let failures = FailuresOfTarget::of_target(reader, target)?;
    let mut doubts = Doubts::default();
    // Groups with their entries that may have been found on another program.
    let mut unclear = Vec::new();
    for StoredGroup { group, entries } in groups {
        let name = (group.kind, group.record.major);
        let mut otherwise = other_arguments(&file, entries, target);
        if otherwise.is_none() && !failures.is_same_but_moved() {
            otherwise = other_than_found(&file, entries, target);
        }
        if let Some(why) = otherwise {
            doubts.single.insert(name, why);
            continue;
        }
        let is_other = |entry: &&Entry| !failures.is_near() || !failures.include(entry);
        let others: Vec<&Entry> = entries.iter().filter(is_other).collect();
        let near = others.iter().copied().filter(|_| failures.is_near());
        match found_elsewhere(&file, near, target) {
            Some(why) => drop(doubts.single.insert(name, why)),
            None if others.is_empty() => {}
            None => unclear.push((name, others)),
        }
    }
    let records = file.all().filter_map(|campaign| campaign.target.as_ref());
    let programs: BTreeSet<_> = records
        .filter_map(|record| record.program.as_ref())
        .map(|path| Path::new(&path.0).file_name())
        .collect();
    let Program::Path(path) = &target.program else {
        return Ok(doubts);
    };
    if unclear.is_empty() || programs.iter().all(|name| *name == path.file_name()) {
        return Ok(doubts);
    }
    let path = TargetFacts::of(target)?.program;
    let doubt = |entries: &mut dyn Iterator<Item = &Entry>| {
        let doubt = another_program(&path, entries.map(|entry| &entry.crash));
        doubt.map_err(|error| Failure::file(&path, "cannot read the program", &error))
    };
    if !failures.is_near() {
        doubts.all = doubt(&mut unclear.iter().flat_map(|(_, entries)| entries).copied())?;
    }
    if programs.len() > 1 && doubts.all.is_none() {
        for (name, entries) in unclear {
            let why = doubt(&mut entries.into_iter())?;
            doubts.single.extend(why.map(|why| (name, why)));
        }
    }
    Ok(doubts)
}

/// Returns the target of the campaign that has found the failure `entry`; `None` if the record of
/// the failure names no campaign, or the campaign records no target.
fn target_of_finder<'a>(file: &'a CampaignFile, entry: &Entry) -> Option<&'a TargetRecord> {
    let id = entry.crash.campaign()?;
    file.all().find(|one| one.id == id)?.target.as_ref()
}

/// Returns the reason to doubt that a group is fixed if all its `entries` (stored failures) were
/// found on a program with the same file name as that of `target`, but with other arguments; else
/// `None`.
fn other_arguments(
    file: &CampaignFile,
    entries: &[Entry],
    target: &Target,
) -> Option<Unobservable> {
    let now = TargetRecord::new(target, Way::Command);
    let name = |record: &TargetRecord| {
        let path = record.program.as_ref()?;
        Some(Path::new(&path.0).file_name()?.to_owned())
    };
    let mut found = None;
    for entry in entries {
        let record = target_of_finder(file, entry)?;
        if record.args == now.args || name(record) != name(&now) {
            return None;
        }
        found = Some(record);
    }
    found.map(|found| Unobservable {
        why: format!("it was found with other arguments, {}", run::name_of(found)),
        hint: "give these arguments, or no program: then all is as it was recorded".to_owned(),
    })
}

/// Returns the reason to doubt that a group is fixed if one of its `entries` (stored failures) was
/// found by another input channel than that of `target`, in another environment or in another
/// directory; else `None`.
fn other_than_found(
    file: &CampaignFile,
    entries: &[Entry],
    target: &Target,
) -> Option<Unobservable> {
    entries.iter().find_map(|entry| {
        let record = target_of_finder(file, entry)?;
        other_conditions(record, &entry.crash, target)
    })
}

/// Returns the reason to doubt that a group is fixed: some of its inputs, `entries`, were found on
/// another target than `target`. `None` if `entries` is empty, or if the target of the last one is
/// not recorded.
fn found_elsewhere<'a>(
    file: &CampaignFile,
    entries: impl Iterator<Item = &'a Entry>,
    target: &Target,
) -> Option<Unobservable> {
    let other = target_of_finder(file, entries.last()?)?;
    let now = TargetRecord::new(target, Way::Command);
    let why = match other.program == now.program && other.bundled == now.bundled {
        true => format!(
            "it was found with other arguments or another environment, {}",
            run::name_of(other)
        ),
        false => format!("it was found on another program, {}", run::name_of(other)),
    };
    Some(Unobservable {
        why,
        hint: "give that program, or none: then each group is checked with its own".to_owned(),
    })
}

/// Prints a warning if a campaign in `campaigns` gave its target the input in a file (`@@`), and
/// `target` gets it on stdin: all crashes of a program that does not read stdin would seem to be
/// fixed.
fn warn_without_file(campaigns: &[&Campaign], target: &Target, output: &Output) {
    let records = campaigns
        .iter()
        .filter_map(|campaign| campaign.target.as_ref());
    let mut before = records.filter_map(|record| record.target(target.limits));
    let has_lost = |before: Target| before.takes_file() && lacks_files(&before, target);
    if !target.takes_file() && before.any(has_lost) {
        output.say(
            "warning: the inputs were given in a file (@@), and are given on stdin now: a program \
             that does not read them fails on none; put @@ where the file is to stand",
        );
    }
}

/// Returns two bools. The first is true if at least one failure in `groups` has a target of its own
/// on record, as in a study or if the output directory has results of several targets
/// ([`Recorded::of_entry`]). The second is true if at least one failure has none.
fn have_own_targets(recorded: &Recorded, groups: &[StoredGroup]) -> (bool, bool) {
    let (mut own, mut others) = (false, false);
    for entry in entries(groups) {
        match recorded.of_entry(entry) {
            Some(_) => own = true,
            None => others = true,
        }
    }
    (own, others)
}

/// A group that cannot be checked, with the path of the missing program that its recorded failures
/// need.
type Stranded = (Group, PathBuf);

/// Divides the groups into those that can be checked, and those that cannot, because no input of
/// the group has a program that exists. Returns each of the latter with the path of a missing
/// program. `subject` returns the target and the way with which an entry (a stored failure) is run.
/// Fails if no group can be checked.
fn runnable(
    groups: Vec<StoredGroup>,
    subject: &dyn Fn(&Entry) -> Option<(Target, Way)>,
) -> Result<(Vec<StoredGroup>, Vec<Stranded>), Failure> {
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for group in groups {
        let (mut is_there, mut absent) = (false, None);
        for entry in &group.entries {
            if let Some((target, _)) = subject(entry) {
                match gone(&target) {
                    Some(path) => absent = Some(path.to_owned()),
                    None => is_there = true,
                }
            }
        }
        match (is_there, absent) {
            (false, Some(path)) => missing.push((group.group, path)),
            _ => there.push(group),
        }
    }
    match missing.pop() {
        Some((_, path)) if there.is_empty() => {
            let hint = "give the program after `--`";
            Err(Failure::from(ExecError::Missing { path }).hint(hint))
        }
        last => {
            missing.extend(last);
            Ok((there, missing))
        }
    }
}

/// Returns the path of the target's program if there is no file at this path any more; `None` if
/// there is, or if the target is one that comes with ddfuzz.
fn gone(target: &Target) -> Option<&Path> {
    match &target.program {
        Program::Path(path) if !path.is_file() => Some(path),
        Program::Path(_) | Program::Bundled(_) => None,
    }
}

/// The recorded targets of an output directory, by the ids of the campaigns that used them; empty
/// if all campaigns have the same target.
struct Recorded(HashMap<String, TargetRecord>);

impl Recorded {
    /// Returns the target of each campaign in the output directory, by the campaign's id; empty if
    /// all campaigns are on the same target.
    fn of(reader: &Reader) -> Result<Recorded, Failure> {
        let file = reader.campaigns()?;
        let records = file
            .all()
            .filter_map(|one| Some((one.id.clone(), one.target.clone()?)));
        let records: HashMap<String, TargetRecord> = records.collect();
        let first = records.values().next();
        let is_first = |record: &TargetRecord| first.is_some_and(|it| it.same_target(record));
        let is_one = records.values().all(is_first);
        Ok(Recorded(if is_one { HashMap::new() } else { records }))
    }

    /// Returns the target on which a failure was found, and the way of execution. They come from
    /// the failure's own record, if it has them (as in a study of many programs); else from its
    /// campaign, if the output directory has results of several targets; else returns `None`.
    fn of_entry(&self, entry: &Entry) -> Option<(Target, Way)> {
        let of_campaign = || self.0.get(entry.crash.campaign()?);
        let record = match &entry.crash.of {
            Some(of) => &of.target,
            None => of_campaign()?,
        };
        Some((record.target(entry.crash.limits)?, record.way))
    }
}

/// Returns the target on which the failure `entry` is run again, and the way of execution. If the
/// command line names a target, that is `one`. Otherwise it is the target recorded for this failure
/// alone ([`Recorded::of_entry`]), changed by the options of the command line; without such a
/// record, it is `one`, too. A hang or an out-of-memory failure gets its recorded limits unless the
/// command line gives others. `None` if there is no target at all, as for a failure that another
/// process has just added.
fn subject(
    args: &CheckArgs,
    recorded: &Recorded,
    one: Option<&(Target, Way)>,
    entry: &Entry,
) -> Option<(Target, Way)> {
    let own = || {
        let (target, way) = recorded.of_entry(entry)?;
        Some((
            args.target.over(target).ok()?,
            args.target.asked_way().unwrap_or(way),
        ))
    };
    let (mut target, way) = match args.target.is_named() {
        true => one.cloned(),
        false => own().or_else(|| one.cloned()),
    }?;
    if matches!(entry.id.kind(), Kind::Hang | Kind::Oom) {
        // An input that exceeded a limit is fixed only if it stays within the same limit.
        target.limits = args.target.override_limits(entry.crash.limits);
    }
    Some((target, way))
}
