//! `ddfuzz run`: a fuzz campaign with grouping and inline minimization.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use serde::Serialize;

use super::generator::GeneratorArg;
use super::seeds::SeedArgs;
use super::target::{TargetArgs, install_bundled};
use super::ui::campaign::{Full, Heading};
use super::{Exit, Failure, Output, amounts, config, known, show, signals, ui};
use crate::campaign::{
    self, DEFAULT_MAX_LEN, Generator, Minimizing, Monitoring, Network, Screen, Seeds, Settings,
    Share, Summary, Until, When, Words,
};
use crate::exec::{Program, Target, TargetRecord, Way, bundled};
use crate::files::OsText;
use crate::report::{EndedBy, GroupView, RunGroup, RunResult, groups_table, size};
use crate::store::{Campaign, Kind, KnownGroups, Store, hash_of, rfc3339};

/// Fuzz a program: find crashes, group them, and minimize each new group
///
/// Without a target, lists the bundled ones.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz run --target ul --time 10s\n  \
                        ddfuzz run --time 60s -o boxes-out -- boxes")]
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    seeds: SeedArgs,
    /// The output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Fuzz for this long [default: until Ctrl-C]
    #[arg(long, value_parser = amounts::time)]
    time: Option<Duration>,
    /// Make this many runs
    #[arg(long)]
    runs: Option<u64>,
    /// End with the `first` new group, with `3 groups`, or with `no new for 10m`; of several,
    /// whichever comes first
    #[arg(long, value_name = "END", value_parser = Until::from_str)]
    until: Vec<Until>,
    /// Workers [default: the number of processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// The seed of all inputs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Longest input [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    max_len: Option<u64>,
    /// What makes the inputs
    #[arg(long, value_enum, default_value_t = GeneratorArg::Auto)]
    generator: GeneratorArg,
    /// When new groups are minimized
    #[arg(long, value_enum, default_value_t = WhenArg::Inline)]
    minimize: WhenArg,
    /// The most that minimizing takes of the time of workers which also fuzz; in classic campaigns
    /// none does both
    #[arg(long, value_name = "SHARE", value_parser = Share::from_str, default_value_t = Share::DEFAULT)]
    minimize_share: Share,
    /// How they are minimized
    #[arg(long, value_name = "NAME", default_value = "full")]
    search: String,
    /// Longest time for one minimization
    #[arg(long, value_name = "TIME", value_parser = amounts::time, default_value = "60s")]
    budget_time: Duration,
    /// Most tests for one minimization
    #[arg(long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Write the candidates into the logs
    #[arg(long)]
    log_inputs: bool,
    /// Go on with the campaign of the output directory
    #[arg(long)]
    resume: bool,
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
    plain: bool,
    /// A file of groups to mute: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
}

/// When new groups are minimized, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhenArg {
    /// As soon as they are found
    Inline,
    /// When the fuzzing has ended
    After,
    /// By a worker of its own
    Worker,
    /// Not at all
    Off,
}

impl From<WhenArg> for When {
    fn from(arg: WhenArg) -> When {
        match arg {
            WhenArg::Inline => When::Inline,
            WhenArg::After => When::After,
            WhenArg::Worker => When::Worker,
            WhenArg::Off => When::Off,
        }
    }
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.target.is_named() {
        list_targets(output);
        return Ok(Exit::Done);
    }
    crate::minimize::search_by_name(&args.search, b"x").map_err(Failure::usage)?;
    let target = args.target.target()?;
    let known = known::read(args.known.as_deref())?;
    let stop = signals::stop_flag()?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("running by {way}: {}", started.why));
    let generator = args.generator.settle(&started)?;
    // What cannot be read must not begin a campaign in the place of an earlier one.
    let inputs = match args.resume {
        true => None,
        false => Some(args.seeds.read(&target, asked_length(&args), output)?),
    };
    let (store, campaign) = open_store(&args, &target, way)?;
    let resumed = args.resume && store.resumed();
    let seed = campaign.seed.unwrap_or_default();
    output.detail(&format!("seed {seed}"));
    let mut settings = settings(&args, target, way, generator, known);
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
    let mut screen = screen(&args, heading, &store, &stop, output)?;
    let store = Mutex::new(store);
    let summary = campaign::run(&store, &campaign.id, &settings, &mut *screen, &stop);
    drop(screen);
    // Only now: while it lives, what it has unpacked is there for the workers. Were they to unpack
    // it at the same time, one might find it being written by another.
    drop(started);
    let store = store
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    report(&summary?, &store, way, resumed, output)
}

/// What the screen shows of the campaign from the beginning.
fn heading(args: &Args, settings: &Settings) -> Heading {
    let target = &settings.minimizing.target;
    let mut name = match &target.program {
        Program::Bundled(name) => name.clone(),
        Program::Path(path) => path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into(),
    };
    for arg in &target.args {
        name.push(' ');
        name.push_str(&arg.to_string_lossy());
    }
    Heading {
        target: name,
        way: settings.minimizing.way.to_string(),
        engine: match settings.generator {
            Generator::Classic => "classic generator".to_owned(),
            Generator::Guided => "guided by coverage".to_owned(),
        },
        seed: settings.seed,
        out: args.out.to_string_lossy().into_owned(),
    }
}

/// The whole terminal where there is one, else lines.
fn screen(
    args: &Args,
    heading: Heading,
    store: &Store,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<Box<dyn Screen>, Failure> {
    let mut known = Vec::new();
    if !args.plain {
        for kind in Kind::ALL {
            known.extend(show::views(store.reader(), kind)?);
        }
        if let Some(full) = Full::take(output, heading, store.reader(), stop, &known) {
            return Ok(Box::new(full));
        }
    }
    Ok(Box::new(ui::Line::new(output)))
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
        time: args.time,
        until: args.until.clone(),
        generator,
        share: args.minimize_share,
        jobs: args.jobs.map_or_else(processors, |jobs| jobs as usize),
        when: args.minimize.into(),
        minimizing: Minimizing {
            target,
            way,
            search: args.search.clone(),
            budget_time: Some(args.budget_time),
            budget_tests: args.budget_tests,
            log_inputs: args.log_inputs,
            no_cache: false,
            seed: None,
            learn_limit: args.target.timeout.is_none(),
            jobs: 1,
        },
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

/// How many workers there are where nobody says.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Opens the output directory: `--resume` goes on with its campaign, else a new one begins,
/// beside whatever earlier ones found.
fn open_store(args: &Args, target: &Target, way: Way) -> Result<(Store, Campaign), Failure> {
    let mut fresh = campaign_of(target, way, args.seed);
    fresh.seed = fresh
        .seed
        .or_else(|| u64::from_str_radix(&fresh.id, 16).ok());
    let mut store = Store::create_or_resume(&args.out, fresh.clone())?;
    let current = store.campaigns().current.clone();
    let campaign = match current {
        Some(campaign) if store.resumed() && args.resume => {
            check_same(args, target, &campaign)?;
            campaign
        }
        _ if store.resumed() => {
            store.begin(fresh.clone())?;
            fresh
        }
        _ => fresh,
    };
    install_bundled(&mut store, target)?;
    Ok((store, campaign))
}

/// A new campaign on this target, with an id that no other has.
pub fn campaign_of(target: &Target, way: Way, seed: Option<u64>) -> Campaign {
    let now = SystemTime::now();
    let host = nix::sys::utsname::uname()
        .map(|name| name.nodename().to_string_lossy().into_owned())
        .unwrap_or_default();
    let moment = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let unique = format!("{host} {} {moment}", std::process::id());
    Campaign {
        id: hash_of(unique.as_bytes()),
        command_line: std::env::args_os().map(OsText).collect(),
        settings: config::settings().cloned(),
        target: Some(TargetRecord::new(target, way)),
        limits: Some(target.limits),
        builds: Vec::new(),
        ways: vec![way],
        seed,
        started: rfc3339(now),
        host,
    }
}

fn check_same(args: &Args, target: &Target, campaign: &Campaign) -> Result<(), Failure> {
    let unlike = |what: &str| {
        let message = format!(
            "the campaign of {} cannot be resumed with another {what}",
            args.out.display()
        );
        Err(Failure::usage(message)
            .path(&args.out)
            .hint("leave --resume away to begin a new campaign there, or choose another --out"))
    };
    // Keys are equal by every way of execution, so the way may be another.
    let now = TargetRecord::new(target, Way::Command);
    if !campaign
        .target
        .as_ref()
        .is_none_or(|record| now.same_target(record))
    {
        return unlike("target");
    }
    if args.seed.is_some_and(|seed| campaign.seed != Some(seed)) {
        return unlike("seed");
    }
    Ok(())
}

fn report(
    summary: &Summary,
    store: &Store,
    way: Way,
    resumed: bool,
    output: &Output,
) -> Result<Exit, Failure> {
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
        runs_per_s: summary.runs_per_s(),
        seconds,
        groups: crashes.map(RunGroup::from).collect(),
        new_groups: summary.new_groups,
        hangs: counts[1],
        ooms: counts[2],
        flaky: counts[3],
        exec: way,
        resumed,
        ended_by: summary.ended_by,
        rebuilt: summary.rebuilt,
        settings: config::settings().cloned(),
    };
    let table = match views.is_empty() {
        true => String::new(),
        false => groups_table(&views, ui::stdout_width()) + "\n",
    };
    let text = format!(
        "{table}{} in {seconds:.1} s ({}/s by {way}){}: {} of crashes, {} new; all in {}",
        size::counted(summary.runs, "run"),
        ui::rate(result.runs_per_s),
        ended(summary),
        size::counted(counts[0], "group"),
        size::grouped(summary.new_groups),
        store.reader().root().display(),
    );
    output.result(&text, &result);
    Ok(match summary {
        Summary {
            interrupted: true, ..
        } => Exit::Interrupted,
        Summary {
            new_groups: 1.., ..
        } => Exit::Found,
        Summary {
            known_crashes: 1.., ..
        } => Exit::Known,
        _ => Exit::Done,
    })
}

/// What ended the campaign, where that is not just what was asked for.
fn ended(summary: &Summary) -> String {
    let by = match (summary.ended_by, summary.until) {
        (EndedBy::Until, Some(until)) => format!(", ended by --until '{until}'"),
        (EndedBy::Interrupted, _) => ", interrupted".to_owned(),
        _ => String::new(),
    };
    match summary.rebuilt {
        true => format!("{by}, on more than one build"),
        false => by,
    }
}

#[derive(Serialize)]
struct Listed {
    targets: Vec<ListedTarget>,
}

#[derive(Serialize)]
struct ListedTarget {
    name: &'static str,
    summary: &'static str,
}

fn list_targets(output: &Output) {
    let targets: Vec<ListedTarget> = bundled::list()
        .into_iter()
        .map(|bundled| ListedTarget {
            name: bundled.name,
            summary: bundled.summary,
        })
        .collect();
    let mut text =
        "Bundled targets, to be named with --target (or name any program behind `--`):\n"
            .to_owned();
    for target in &targets {
        text.push_str(&format!("  {:<15} {}\n", target.name, target.summary));
    }
    output.result(&text, &Listed { targets });
}
