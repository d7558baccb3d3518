//! `ddfuzz run`: runs a fuzz campaign that groups and minimizes crashes. Options, output directory,
//! choice of the screen, and the list of bundled targets.

mod result;
mod start_up;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

pub(in crate::cli) use result::other_groups;
pub use result::{CampaignReport, GroupsBefore, of_full_disk, report};
pub(in crate::cli) use start_up::StartUp;

use super::behaviour::TargetWarning;
use super::campaign_args::{
    GeneratorArg, MinimizationArgs, MutateStructureArg, SeedArgs, read_known_and_against,
};
use super::report::{HtmlArgs, LivePage};
use super::reports::{ReportArgs, target_name};
use super::target::{TargetArgs, install_bundled, recorded_target};
use super::ui::campaign::{FullScreen, Heading};
use super::{Exit, Failure, Output, campaign_args, config, explain, show, signals, ui, values};
use crate::campaign::{
    self, DEFAULT_MAX_LEN, Deadline, Generator, Minimizing, Monitoring, Network, RecordedSettings,
    Screen, SeedSources, Seeds, Settings, Share, Until, Words, new_campaign,
};
use crate::exec::{Started, Target, TargetRecord, Way, bundled};
use crate::minimize::usual_language;
use crate::report::text;
use crate::store::{Campaign, Kind, KnownGroups, Reader, Store};

/// Fuzz a program: find crashes, group them, and minimize each new group
///
/// Without a program, lists the targets that come with ddfuzz.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz run --target ul --time 10s\n  \
                        ddfuzz run --time 60s -o boxes-out -- boxes\n  \
                        ddfuzz run --seeds samples/ -- ./afl_or_libfuzzer_program")]
pub struct RunArgs {
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    #[command(flatten)]
    pub(in crate::cli) seeds: SeedArgs,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    pub(in crate::cli) out: PathBuf,
    /// Fuzz for this long, like 90s, 10m or 2h [default: until Ctrl-C]
    #[arg(long, value_parser = values::time)]
    pub(in crate::cli) time: Option<Duration>,
    /// Stop after this long in all: builds, fuzzing and minimization. Without --time, three
    /// quarters of it are for fuzzing. --resume continues
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = values::time)]
    pub(in crate::cli) total_time: Option<Duration>,
    /// Stop after this many runs
    #[arg(long, value_name = "N")]
    pub(in crate::cli) runs: Option<u64>,
    /// Stop at the `first` new group, at `3 groups`, or after `no new for 10m`. May be repeated;
    /// the first condition that is met stops the campaign
    #[arg(long, value_name = "END", value_parser = Until::from_str)]
    pub(in crate::cli) until: Vec<Until>,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(in crate::cli) jobs: Option<u32>,
    /// Random seed [default: from the clock]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) seed: Option<u64>,
    /// Maximum length of an input [default: 1M]
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = values::size)]
    pub(in crate::cli) max_len: Option<u64>,
    /// How inputs are generated
    #[arg(long, hide_short_help = true, value_enum, default_value_t = GeneratorArg::Auto)]
    generator: GeneratorArg,
    /// Whether a coverage-guided campaign also mutates inputs by their structure
    #[arg(long, hide_short_help = true, value_name = "WHEN", value_enum, default_value_t = MutateStructureArg::Auto)]
    mutate_structure: MutateStructureArg,
    #[command(flatten)]
    pub(in crate::cli) shrink: MinimizationArgs,
    /// Maximum share of the workers' time that minimization may take in a coverage-guided campaign
    #[arg(help_heading = campaign_args::MINIMIZATION_HEADING, hide_short_help = true, long, value_name = "SHARE", value_parser = Share::from_str, default_value_t = Share::DEFAULT)]
    minimize_share: Share,
    /// Continue the campaign in the output directory
    #[arg(long)]
    pub(in crate::cli) resume: bool,
    /// Let campaigns on other hosts connect to this one at 127.0.0.1:PORT and exchange new inputs.
    /// The connection has no authentication and no encryption: reach it through a tunnel
    /// (ssh -L PORT:127.0.0.1:PORT HOST)
    #[arg(help_heading = NETWORK, hide_short_help = true, long, value_name = "PORT", num_args = 0..=1, default_missing_value = "1337")]
    broker: Option<u16>,
    /// Join the campaign whose broker listens at this address (the local end of the tunnel)
    #[arg(help_heading = NETWORK, hide_short_help = true, long, value_name = "HOST:PORT", value_parser = values::address)]
    join: Option<SocketAddr>,
    /// Send statistics to this StatsD server by UDP
    #[arg(help_heading = NETWORK, hide_short_help = true, long, value_name = "HOST:PORT", value_parser = values::address)]
    statsd: Option<SocketAddr>,
    /// Serve statistics for Prometheus at this address by HTTP
    #[arg(help_heading = NETWORK, hide_short_help = true, long, value_name = "HOST:PORT", value_parser = values::address)]
    prometheus: Option<SocketAddr>,
    /// Print lines instead of showing the full screen
    #[arg(hide_short_help = true, long)]
    pub(in crate::cli) plain: bool,
    /// File of known groups, one a line: 12 or more hex digits of a major key, or stable:HEX. Their
    /// crashes are stored but not minimized, and do not count for the exit code
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub(in crate::cli) known: Option<PathBuf>,
    /// Treat all groups of this other output directory as known, too. If no other group is found,
    /// the exit code is 4
    #[arg(hide_short_help = true, long, value_name = "OUT")]
    pub(in crate::cli) against: Option<PathBuf>,
    /// When the campaign has ended, explain each group of crashes, as `ddfuzz explain OUT` does
    #[arg(hide_short_help = true, long)]
    explain: bool,
    #[command(flatten)]
    pub(in crate::cli) reports: ReportArgs,
    #[command(flatten)]
    pub(in crate::cli) html: HtmlArgs,
}

/// Heading in `--help` of the options for several hosts and monitoring.
pub(in crate::cli) const NETWORK: &str = "Several hosts and monitoring";

pub fn run(args: RunArgs, output: &Output) -> Result<Exit, Failure> {
    if args.asks_for_list() {
        list_targets(output);
        return Ok(Exit::Done);
    }
    let target = args.target_to_run(output)?;
    let known = read_known_and_against(args.known.as_deref(), args.against.as_deref())?;
    let output = &args.reports.check(output)?;
    args.html.check(&args.out, &args.reports, output)?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let target = target.abandoned_when(signals::abandon_at(&stop));
    let start_up = StartUp::begin(args.fuzzing_time(), &stop, &deadline);
    let (mut started, way) = start_up.start(&args.target, &target, output)?;
    let mut target_warnings = start_up::target_warnings(&mut started, &target);
    let recorded = args.recorded_settings();
    let warnings = (&mut target_warnings, output);
    let generator = args.settle(&mut started, recorded.as_ref(), warnings);
    let generator = start_up.in_time(generator)?;
    // What cannot be read must not begin a campaign in the place of an earlier one.
    let max_len = args.max_len.unwrap_or(DEFAULT_MAX_LEN);
    let inputs = match args.resume {
        true => None,
        false => Some(args.read_inputs(&target, max_len, output)?),
    };
    let (store, campaign) = open_store(&args.store_request(), &target, way)?;
    let resumed = args.resume && store.resumed();
    warn_of_another_target(&store, &campaign, output);
    let seed = campaign.seed.unwrap_or_default();
    output.detail(&format!("seed {seed}"));
    let mut settings = settings(&args, target, way, generator, known);
    (settings.deadline, settings.seed, settings.minimizing.seed) = (deadline, seed, Some(seed));
    let recorded = recorded.filter(|_| resumed);
    args.set_inputs(&mut settings, inputs, recorded.as_ref(), &store, output)?;
    let heading = heading(&args, &settings);
    let before = GroupsBefore::of(&store, resumed)?;
    let mut screen = screen(args.plain, "run", heading, &store, &stop, output)?;
    let page = args.html.start_page(&args.out);
    let store = Mutex::new(store);
    settings.time = start_up.time_left();
    let summary = campaign::run(&store, &campaign.id, &settings, &mut *screen, &stop);
    drop(screen);
    // Dropped only now, because the workers have used the files that it has unpacked.
    drop(started);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    args.explain_and_finish(page, summary.is_ok(), &stop, output)?;
    let told = CampaignReport {
        unit: "run",
        inputs_stay: false,
        minimizing: &settings.minimizing,
        known: &settings.known,
        reports: &args.reports,
        out: &args.out,
        before,
        target_warnings,
        fuzzer_warnings: Vec::new(),
        tells_coverage: generator == Generator::Guided,
    };
    report(&summary?, &store, &told, output)
}

/// What a campaign reads: seeds, the sources of the seeds, and words (byte strings) for mutations.
type ReadInputs = (Seeds, SeedSources, Words);

/// Sets in `settings` the structure (grammar or file format) that most seeds have. Minimizations
/// parse inputs by it, and mutations do so, too, if `mutate` allows it.
fn use_structure_of_seeds(settings: &mut Settings, mutate: MutateStructureArg) {
    let seeds = settings.seeds.all().iter().map(|seed| &seed.bytes[..]);
    settings.minimizing.usual_language = usual_language(seeds.clone());
    settings.mutated_structure = mutate.choose(seeds);
}

fn settings(
    args: &RunArgs,
    target: Target,
    way: Way,
    generator: Generator,
    known: KnownGroups,
) -> Settings {
    Settings {
        seed: 0,
        max_len: args.max_len,
        seeds: Seeds::default(),
        seed_sources: SeedSources::default(),
        words: Words::default(),
        runs: args.runs,
        time: args.fuzzing_time(),
        deadline: Deadline::default(),
        until: args.until.clone(),
        generator,
        mutated_structure: None,
        share: args.minimize_share,
        jobs: workers(args.jobs),
        when: args.shrink.when(),
        minimizing: args.minimizing(target, way),
        network: Network {
            port: args.broker,
            join: args.join,
        },
        monitoring: Monitoring {
            statsd: args.statsd,
            prometheus: args.prometheus,
        },
        known,
    }
}

impl RunArgs {
    /// If the campaign has ended well (`ended_well`; else does nothing), explains its crash groups
    /// (with `--explain`), then writes the last version of its HTML page and stops the thread that
    /// keeps the page current. Prints failures as warnings only, so that the campaign's result is
    /// not lost; returns an error only if the user stops ddfuzz.
    fn explain_and_finish(
        &self,
        page: Option<LivePage>,
        ended_well: bool,
        stop: &AtomicBool,
        output: &Output,
    ) -> Result<(), Failure> {
        if !ended_well {
            return Ok(());
        }
        let explained = match self.explain {
            true => explain::explain_new(&self.out, stop, output),
            false => Ok(()),
        };
        match explained {
            Err(failure) if failure.kind() == "interrupted" => return Err(failure),
            Err(failure) => output.say(&format!("warning: {}", failure.message())),
            Ok(()) => {}
        }
        if let Some(page) = page {
            page.finish(output);
        }
        Ok(())
    }

    /// Chooses the input generator (of a resumed campaign by its settings `recorded`), and prints
    /// the warnings about the target. Fails if an option does not fit the generator.
    fn settle(
        &self,
        started: &mut Started,
        recorded: Option<&RecordedSettings>,
        (warnings, output): (&mut Vec<TargetWarning>, &Output),
    ) -> Result<Generator, Failure> {
        let generator = self.generator.or_recorded(recorded)?;
        let generator = generator.settle(started, warnings)?;
        for warning in &*warnings {
            output.say(&format!("warning: {warning}"));
        }
        if generator == Generator::Classic {
            GeneratorArg::Classic.or_recorded(recorded)?;
        }
        start_up::needs_coverage(self, generator, started.executor.way())?;
        Ok(generator)
    }

    /// Reads the seeds, with their sources, and the dictionary words of a new campaign.
    fn read_inputs(
        &self,
        target: &Target,
        max_len: u64,
        output: &Output,
    ) -> Result<ReadInputs, Failure> {
        let (seeds, words) = self.seeds.read(target, max_len, output)?;
        Ok((seeds, self.seeds.sources(), words))
    }

    /// Reads the seeds, with their sources, and the dictionary words for a call with `--resume`.
    /// Seeds and dictionaries that the call does not give are those of the campaign's settings
    /// `recorded`. If there was a campaign to continue, seeds are at most as long as its inputs.
    fn resumed_inputs(
        &self,
        store: &Store,
        recorded: Option<&RecordedSettings>,
        settings: &Settings,
        output: &Output,
    ) -> Result<ReadInputs, Failure> {
        let target = &settings.minimizing.target;
        let max_len = match store.resumed() {
            true => campaign::greatest_length(store, self.max_len)?,
            false => self.max_len.unwrap_or(DEFAULT_MAX_LEN),
        };
        match recorded {
            None => self.read_inputs(target, max_len, output),
            Some(recorded) => {
                let how = (target, settings.generator);
                self.seeds.read_resumed(recorded, how, max_len, output)
            }
        }
    }

    /// Sets in `settings` the seeds, the words and the structure of inputs: those of a new
    /// campaign, which are `read` already; for `--resume` those that are given again, else those of
    /// the campaign's `recorded` settings.
    fn set_inputs(
        &self,
        settings: &mut Settings,
        read: Option<ReadInputs>,
        recorded: Option<&RecordedSettings>,
        store: &Store,
        output: &Output,
    ) -> Result<(), Failure> {
        (settings.seeds, settings.seed_sources, settings.words) = match read {
            Some(read) => read,
            None => self.resumed_inputs(store, recorded, settings, output)?,
        };
        use_structure_of_seeds(settings, self.mutate_structure);
        match recorded {
            Some(recorded) => self.keep_recorded(recorded, settings),
            None if self.resume && store.resumed() => self.warn_of_unrecorded(output),
            None => {}
        }
        Ok(())
    }

    /// Warns that the output directory of a resumed campaign records no settings: the campaign was
    /// stopped before it had stored them, or was begun by an older version of ddfuzz.
    fn warn_of_unrecorded(&self, output: &Output) {
        let (seeds, dictionaries) = self.seeds.given_paths();
        if seeds.is_empty() && dictionaries.is_empty() {
            output.say(&format!(
                "warning: {} does not record with which seeds, dictionaries and limits the campaign \
                 began (it may have been stopped before): give those options again",
                self.out.display()
            ));
        }
    }

    /// Reads the settings that the campaign in the output directory has recorded, for `--resume`;
    /// `None` if there are none, or they cannot be read (opening the directory fails then, too).
    fn recorded_settings(&self) -> Option<RecordedSettings> {
        let reader = self.resume.then(|| Reader::open(&self.out).ok())??;
        RecordedSettings::read(&reader).ok()?
    }

    /// Copies two of the `recorded` settings of a resumed campaign to `settings`, unless the user
    /// gives them again: the structure by which inputs are mutated, and whether the user has set a
    /// time limit for the target (if so, it is not adapted).
    fn keep_recorded(&self, recorded: &RecordedSettings, settings: &mut Settings) {
        if self.mutate_structure == MutateStructureArg::Auto {
            let structure = recorded.mutated_structure.clone();
            // Seeds that are given now may have another structure.
            let of_seeds = settings.mutated_structure.take();
            settings.mutated_structure = structure.or(of_seeds.filter(|_| self.seeds.has_seeds()));
        }
        if recorded.has_time_limit {
            settings.minimizing.learn_limit = false;
        }
    }

    /// Returns true if the targets that come with ddfuzz are to be listed: the call names no program,
    /// and no option says how to fuzz (then the user has forgotten the program).
    fn asks_for_list(&self) -> bool {
        !self.target.is_named() && !self.resume && !self.says_how()
    }

    /// Returns how the output directory of the campaign is to be opened, by the options: as a new
    /// one, or to resume the campaign in it.
    fn store_request(&self) -> StoreRequest<'_> {
        let (out, resume, seed) = (&*self.out, self.resume, self.seed);
        StoreRequest { out, resume, seed }
    }

    /// Returns the time limit of the fuzzing; `None` if there is none.
    fn fuzzing_time(&self) -> Option<Duration> {
        Deadline::fuzzing(self.total_time, self.time)
    }

    /// Returns true if an option about the campaign is given, such as a limit, a seed or inputs.
    fn says_how(&self) -> bool {
        let (seeds, dictionaries) = self.seeds.given_paths();
        let limits = [self.time, self.total_time].iter().any(Option::is_some);
        let numbers = [self.runs, self.seed, self.max_len];
        let others = [&self.known, &self.against];
        limits
            || numbers.iter().any(Option::is_some)
            || others.iter().any(|path| path.is_some())
            || !(self.until.is_empty() && seeds.is_empty() && dictionaries.is_empty())
    }

    /// Returns the target that the command line names; if it names none, the one recorded in the
    /// output directory, for `--resume`. Fails if that directory does not exist or records none.
    fn target_to_run(&self, output: &Output) -> Result<Target, Failure> {
        let is_missing = !self.out.exists();
        if self.target.is_named() || !self.resume {
            if self.resume && is_missing {
                let out = self.out.display();
                output.say(&format!(
                    "{out} does not exist: a new campaign is started there"
                ));
            }
            return self.named_target();
        }
        if is_missing {
            let message = format!(
                "there is no campaign to continue: {} does not exist",
                self.out.display()
            );
            return Err(Failure::usage(message).path(&self.out).hint(
                "give its output directory with -o, or start a new campaign: give a program after `--`",
            ));
        }
        recorded_target(&self.out, &self.target)
    }

    /// Returns the target that the command line names. With `--resume`, limits that are not given
    /// are those of the campaign in the output directory, if that is on the same target.
    pub(in crate::cli) fn named_target(&self) -> Result<Target, Failure> {
        let mut named = self.target.target()?;
        let reader = self.resume.then(|| Reader::open(&self.out).ok()).flatten();
        let campaigns = reader.and_then(|reader| reader.campaigns().ok());
        let Some(campaign) = campaigns.and_then(|file| file.current) else {
            return Ok(named);
        };
        let now = TargetRecord::new(&named, Way::Command);
        let is_same = |record: &TargetRecord| now.same_target(record);
        if let Some(limits) = campaign.limits
            && campaign.target.as_ref().is_some_and(is_same)
        {
            named.limits = self.target.override_limits(limits);
        }
        Ok(named)
    }

    /// Builds the settings with which the campaign on `target`, executed by `way`, minimizes crash
    /// groups.
    pub fn minimizing(&self, target: Target, way: Way) -> Minimizing {
        let learn_limit = self.target.timeout.is_none();
        self.shrink.minimizing(target, way, learn_limit)
    }

    /// Returns the name of the first option on the command line that works only in coverage-guided
    /// campaigns; `None` if there is none.
    pub fn only_guided(&self) -> Option<&'static str> {
        values::first_given(&[
            ("--broker", self.broker.is_some()),
            ("--join", self.join.is_some()),
            ("--statsd", self.statsd.is_some()),
            ("--prometheus", self.prometheus.is_some()),
        ])
    }

    /// Returns the name of the first option on the command line that only ddfuzz's own engine
    /// supports; `None` if there is none.
    pub fn only_own_engine(&self) -> Option<&'static str> {
        let own = values::first_given(&[
            ("--generator", self.generator != GeneratorArg::Auto),
            (
                "--mutate-structure",
                self.mutate_structure != MutateStructureArg::Auto,
            ),
            ("--minimize-share", self.minimize_share != Share::DEFAULT),
            ("--bundled-seeds", self.seeds.bundled_seeds),
            ("--no-auto-dict", self.seeds.no_auto_dict),
            ("--explain", self.explain),
        ]);
        own.or_else(|| self.only_guided())
    }
}

/// Returns the number of worker threads: `jobs`, the value of `--jobs`, else the number of
/// processors.
pub fn workers(jobs: Option<u32>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(processors, |jobs| jobs as usize)
}

/// Prints a warning if the output directory has results of another target than that of `campaign`,
/// because the inputs of both are then mixed, and commands such as `check` need the target named.
fn warn_of_another_target(store: &Store, campaign: &Campaign, output: &Output) {
    let now = campaign.target.as_ref();
    let is_same = |record: &TargetRecord| now.is_none_or(|now| now.same_target(record));
    let records = store
        .campaigns()
        .all()
        .filter_map(|one| one.target.as_ref());
    if let (Some(other), Some(now)) = (records.filter(|record| !is_same(record)).last(), now) {
        let (other, now) = (name_of(other), name_of(now));
        let other = match other == now {
            true => "the same with other options (--env, --cwd, --crash-exit, …)".to_owned(),
            false => other,
        };
        output.say(&format!(
            "warning: the output directory has results of another target, {other}; what is found \
             with {now} is added to them (another directory: -o)"
        ));
    }
}

/// Returns the words by which messages name a recorded target: its program and arguments.
pub(in crate::cli) fn name_of(record: &TargetRecord) -> String {
    let program = match (&record.bundled, &record.program) {
        (Some(name), _) => name.clone(),
        (None, Some(program)) => text::shell_word(Path::new(&program.0)),
        (None, None) => return "one that is not recorded".to_owned(),
    };
    let args = record.args.iter();
    let args = args.map(|arg| text::shell_word(Path::new(&arg.0)));
    let words: Vec<String> = std::iter::once(program).chain(args).collect();
    format!("`{}`", words.join(" "))
}

/// The options of a command that say how the output directory of a campaign is opened.
pub struct StoreRequest<'a> {
    pub out: &'a Path,
    /// Whether the last campaign in the output directory is continued; if false, a new one begins.
    pub resume: bool,
    /// Value of `--seed`, the random seed; `None` if it is not given.
    pub seed: Option<u64>,
}

/// Opens the output directory of a campaign on `target`: with `--resume`, continues the last
/// campaign there (fails if its target or seed differ), else begins a new campaign and keeps the
/// earlier ones. Returns the opened directory and the record of the campaign.
pub fn open_store(
    asked: &StoreRequest<'_>,
    target: &Target,
    way: Way,
) -> Result<(Store, Campaign), Failure> {
    let mut fresh = campaign_of(target, way, asked.seed);
    fresh.seed = fresh
        .seed
        .or_else(|| u64::from_str_radix(&fresh.id, 16).ok());
    let (mut store, campaign) = open_or_begin(asked.out, asked.resume, fresh, |campaign| {
        check_same(asked, target, campaign)
    })?;
    install_bundled(&mut store, target)?;
    Ok((store, campaign))
}

/// Opens or creates the output directory `out`, and returns it with the campaign to run. With
/// `resume`, that is the current campaign there; fails if `check` does not accept it. Without
/// `resume`, or if there is none, it is the new campaign `fresh`.
pub fn open_or_begin(
    out: &Path,
    resume: bool,
    fresh: Campaign,
    check: impl FnOnce(&Campaign) -> Result<(), Failure>,
) -> Result<(Store, Campaign), Failure> {
    let mut store = Store::create_or_resume(out, fresh.clone())?;
    match store.campaigns().current.clone() {
        Some(campaign) if store.resumed() && resume => {
            check(&campaign)?;
            return Ok((store, campaign));
        }
        _ if store.resumed() => store.begin(fresh.clone())?,
        _ => {}
    }
    Ok((store, fresh))
}

/// Creates the record of a new campaign on `target`, executed by `way`, with a new id.
pub fn campaign_of(target: &Target, way: Way, seed: Option<u64>) -> Campaign {
    Campaign {
        settings: config::settings().cloned(),
        seed,
        ..new_campaign(target, way)
    }
}

fn check_same(
    asked: &StoreRequest<'_>,
    target: &Target,
    campaign: &Campaign,
) -> Result<(), Failure> {
    let unlike = |what: &str| {
        let message = format!(
            "the campaign in {} cannot be resumed with another {what}",
            asked.out.display()
        );
        Err(Failure::usage(message).path(asked.out).hint(
            "omit --resume to start a new campaign there, or choose another directory with -o",
        ))
    };
    // Each campaign has a seed, but triages and cleanups have none.
    if campaign.seed.is_none() {
        let out = asked.out.display();
        let message = format!("{out} has no campaign to resume: no run or watch began it");
        let failure = Failure::usage(message).path(asked.out);
        return Err(failure.hint("omit --resume to start a campaign there; its results stay"));
    }
    // Keys are equal by every way of execution, so the way may be another.
    let now = TargetRecord::new(target, Way::Command);
    if !campaign
        .target
        .as_ref()
        .is_none_or(|record| now.same_target(record))
    {
        return unlike("target");
    }
    if asked.seed.is_some_and(|seed| campaign.seed != Some(seed)) {
        return unlike("seed");
    }
    Ok(())
}

/// Builds the heading that the full screen shows at its top: target, way of execution, generator,
/// seed, output directory.
fn heading(args: &RunArgs, settings: &Settings) -> Heading {
    Heading {
        target: target_name(&settings.minimizing.target),
        way: settings.minimizing.way.to_string(),
        engine: match settings.generator {
            Generator::Classic => "classic generator".to_owned(),
            Generator::Guided => "guided by coverage".to_owned(),
        },
        seed: Some(settings.seed),
        out: args.out.to_string_lossy().into_owned(),
    }
}

/// Returns the display of a campaign: the full screen if stderr is a terminal and neither `plain`,
/// `--quiet` nor `--json` is given; else one that prints lines, which call an execution of the
/// target `unit` (`run` or `input`).
pub fn screen(
    plain: bool,
    unit: &'static str,
    heading: Heading,
    store: &Store,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<Box<dyn Screen>, Failure> {
    let mut known = Vec::new();
    if !plain {
        for kind in Kind::ALL {
            known.extend(show::views(store.reader(), kind)?);
        }
        if let Some(full) = FullScreen::take(output, heading, store.reader(), stop, &known) {
            return Ok(Box::new(full));
        }
    }
    Ok(Box::new(ui::CampaignLine::new(output).counting(unit)))
}

/// Prints the names and descriptions of the bundled targets: programs that come with ddfuzz, to be
/// fuzzed.
fn list_targets(output: &Output) {
    #[derive(Serialize)]
    struct ListedTarget {
        name: &'static str,
        summary: &'static str,
    }
    #[derive(Serialize)]
    struct Listed {
        targets: Vec<ListedTarget>,
    }
    let target = |bundled: bundled::Bundled| ListedTarget {
        name: bundled.name,
        summary: bundled.summary,
    };
    let targets: Vec<ListedTarget> = bundled::list().into_iter().map(target).collect();
    let mut text =
        "Targets that come with ddfuzz, for --target NAME (or give any program after `--`):\n"
            .to_owned();
    for target in &targets {
        text.push_str(&format!("  {:<15} {}\n", target.name, target.summary));
    }
    output.result(&text, &Listed { targets });
}

#[cfg(test)]
mod tests;
