//! `ddfuzz run`: a fuzz campaign with grouping and inline minimization.

mod directory;
mod result;
mod screen;
mod targets;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use super::behaviour::{self, Complaint};
use super::generator::GeneratorArg;
use super::reports::ReportArgs;
use super::seeds::SeedArgs;
use super::shrinking::ShrinkArgs;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, amounts, known, signals};
use crate::campaign::{
    self, DEFAULT_MAX_LEN, Deadline, Generator, Minimizing, Monitoring, Network, Seeds, Settings, Share,
    Until, Words,
};
use crate::exec::{Channel, Started, Target, Way};
use crate::store::KnownGroups;
pub use directory::{Asked, campaign_of, open_store};
pub use result::{Before, OUT_OF_ROOM, Told, report};
use screen::heading;
pub use screen::screen;
use targets::list_targets;

/// Fuzz a program: find crashes, group them, and minimize each new group
///
/// Without a target, lists the bundled ones.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz run --target ul --time 10s\n  \
                        ddfuzz run --time 60s -o boxes-out -- boxes\n  \
                        ddfuzz run --seeds samples/ -- ./afl_or_libfuzzer_program")]
pub struct Args {
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    #[command(flatten)]
    pub(in crate::cli) seeds: SeedArgs,
    /// The output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    pub(in crate::cli) out: PathBuf,
    /// Fuzz for this long [default: until Ctrl-C]
    #[arg(long, value_parser = amounts::time)]
    pub(in crate::cli) time: Option<Duration>,
    /// End after this long whatever is under way: builds, fuzzing, minimizing. Without --time the
    /// fuzzing has three quarters of it; what is left to be done, --resume goes on with
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    pub(in crate::cli) total_time: Option<Duration>,
    /// Make this many runs
    #[arg(long)]
    pub(in crate::cli) runs: Option<u64>,
    /// End with the `first` new group, with `3 groups`, or with `no new for 10m`; of several,
    /// whichever comes first
    #[arg(long, value_name = "END", value_parser = Until::from_str)]
    pub(in crate::cli) until: Vec<Until>,
    /// Workers [default: the number of processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(in crate::cli) jobs: Option<u32>,
    /// The seed of all inputs [default: from the clock]
    #[arg(long)]
    pub(in crate::cli) seed: Option<u64>,
    /// Longest input [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    pub(in crate::cli) max_len: Option<u64>,
    /// What makes the inputs
    #[arg(long, value_enum, default_value_t = GeneratorArg::Auto)]
    generator: GeneratorArg,
    #[command(flatten)]
    pub(in crate::cli) shrink: ShrinkArgs,
    /// The most that minimizing takes of the time of workers which also fuzz; in classic campaigns
    /// none does both
    #[arg(long, value_name = "SHARE", value_parser = Share::from_str, default_value_t = Share::DEFAULT)]
    minimize_share: Share,
    /// Go on with the campaign of the output directory
    #[arg(long)]
    pub(in crate::cli) resume: bool,
    /// Let campaigns on other hosts join this one at 127.0.0.1:PORT, and exchange what is new.
    /// They reach it through a tunnel (ssh -L PORT:127.0.0.1:PORT HOST): the link has neither
    /// authentication nor encryption
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "1337")]
    broker: Option<u16>,
    /// Join the campaign whose broker is there, as a tunnel brings it to this host
    #[arg(long, value_name = "HOST:PORT", value_parser = amounts::address)]
    join: Option<SocketAddr>,
    /// Send statistics to a StatsD server, by UDP
    #[arg(long, value_name = "HOST:PORT", value_parser = amounts::address)]
    statsd: Option<SocketAddr>,
    /// Answer Prometheus there, by HTTP
    #[arg(long, value_name = "HOST:PORT", value_parser = amounts::address)]
    prometheus: Option<SocketAddr>,
    /// Show lines instead of the whole screen
    #[arg(long)]
    pub(in crate::cli) plain: bool,
    /// A file of groups to mute: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) known: Option<PathBuf>,
    /// Take the groups that this other output directory has for known ones: they are filed and not
    /// minimized, and the exit code is 4 where there are no others
    #[arg(long, value_name = "OUT")]
    pub(in crate::cli) against: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) reports: ReportArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.target.is_named() {
        list_targets(output);
        return Ok(Exit::Done);
    }
    args.shrink.check()?;
    let target = args.target.target()?;
    let known = known::read_both(args.known.as_deref(), args.against.as_deref())?;
    args.reports.check()?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let mut started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("running by {way}: {}", started.why));
    let complaints = complaints(&mut started, &target, output);
    let generator = args.generator.settle(&started)?;
    needs_coverage(&args, generator, way)?;
    // What cannot be read must not begin a campaign in the place of an earlier one.
    let inputs = match args.resume {
        true => None,
        false => Some(args.seeds.read(&target, asked_length(&args), output)?),
    };
    let (store, campaign) = open_store(&args.asked(), &target, way)?;
    let resumed = args.resume && store.resumed();
    let seed = campaign.seed.unwrap_or_default();
    output.detail(&format!("seed {seed}"));
    let mut settings = settings(&args, target, way, generator, known);
    settings.deadline = deadline;
    settings.seed = seed;
    settings.minimizing.seed = Some(seed);
    let max_len = match resumed {
        true => campaign::greatest_length(&store, args.max_len)?,
        false => asked_length(&args),
    };
    let target = &settings.minimizing.target;
    (settings.seeds, settings.words) = match inputs {
        Some(inputs) => inputs,
        None => args.seeds.read(target, max_len, output)?,
    };
    let heading = heading(&args, &settings);
    let before = Before::of(&store, resumed)?;
    let mut screen = screen(args.plain, "run", heading, &store, &stop, output)?;
    let store = Mutex::new(store);
    let summary = campaign::run(&store, &campaign.id, &settings, &mut *screen, &stop);
    drop(screen);
    // Only now: while it lives, what it has unpacked is there for the workers. Were they to unpack
    // it at the same time, one might find it being written by another.
    drop(started);
    let store = store
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let told = Told {
        unit: "run",
        minimizing: &settings.minimizing,
        known: &settings.known,
        reports: &args.reports,
        out: &args.out,
        before,
        complaints,
        tells_coverage: generator == Generator::Guided,
    };
    report(&summary?, &store, &told, output)
}

/// What speaks against fuzzing the target as it is called, which is said before it begins.
fn complaints(started: &mut Started, target: &Target, output: &Output) -> Vec<Complaint> {
    // Each run of a target at a terminal takes long, and says nothing of what it reads.
    if matches!(target.channel, Channel::Terminal(_)) {
        return Vec::new();
    }
    let seen = behaviour::observe(&mut *started.executor, target);
    let complaints = seen.complaints(target);
    for complaint in &complaints {
        output.say(&format!("warning: {complaint}"));
    }
    complaints
}

/// The options that campaigns without coverage would do nothing about are refused there.
fn needs_coverage(args: &Args, generator: Generator, way: Way) -> Result<(), Failure> {
    match args.only_guided() {
        Some(name) if generator == Generator::Classic => {
            let message = format!(
                "{name} is for campaigns guided by coverage, and this one, by {way}, is not"
            );
            Err(Failure::usage(message).hint(
                "build the target with afl-clang-fast, or as a libFuzzer harness; campaigns of \
                 several hosts meet by `ddfuzz merge`, too",
            ))
        }
        _ => Ok(()),
    }
}

fn asked_length(args: &Args) -> u64 {
    args.max_len.unwrap_or(DEFAULT_MAX_LEN)
}

fn settings(
    args: &Args,
    target: Target,
    way: Way,
    generator: Generator,
    known: KnownGroups,
) -> Settings {
    Settings {
        seed: 0,
        max_len: args.max_len,
        seeds: Seeds::default(),
        words: Words::default(),
        runs: args.runs,
        time: Deadline::fuzzing(args.total_time, args.time),
        deadline: Deadline::default(),
        until: args.until.clone(),
        generator,
        share: args.minimize_share,
        jobs: args.jobs.map_or_else(processors, |jobs| jobs as usize),
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

impl Args {
    fn asked(&self) -> Asked<'_> {
        Asked {
            out: &self.out,
            resume: self.resume,
            seed: self.seed,
        }
    }

    /// What is minimized, and how.
    pub fn minimizing(&self, target: Target, way: Way) -> Minimizing {
        let learn_limit = self.target.timeout.is_none();
        self.shrink.minimizing(target, way, learn_limit)
    }

    /// The first of the options that only campaigns guided by coverage understand, if it is given.
    pub fn only_guided(&self) -> Option<&'static str> {
        let given = [
            ("--broker", self.broker.is_some()),
            ("--join", self.join.is_some()),
            ("--statsd", self.statsd.is_some()),
            ("--prometheus", self.prometheus.is_some()),
        ];
        let first = given.into_iter().find(|(_, is_given)| *is_given);
        first.map(|(name, _)| name)
    }
}

/// How many workers there are where nobody says.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
