//! `ddfuzz revisit`: the fuzz studies of 1990 to 2020 again, on this machine. Here are its output
//! directory, its sandbox and its result.

mod args;
mod plan;
pub mod reports;

use std::sync::{Mutex, PoisonError};

pub use args::RevisitArgs;

use super::campaign_args::read_known_and_against;
use super::{Exit, Failure, Output, config, next_steps, signals, ui};
use crate::campaign::study::{StudySettings, StudySummary};
use crate::campaign::{new_study, study};
use crate::exec::sandbox::{SandboxSupport, keep_files, supported_parts};
use crate::exec::{Limits, Sandbox};
use crate::report::study::{StudyResult, table};
use crate::report::{EndedBy, size};
use crate::store::{Campaign, Kind, Store};
use reports::Studied;

/// Runs the command.
pub fn run(args: RevisitArgs, output: &Output) -> Result<Exit, Failure> {
    if args.compare.is_asked() {
        return args.compare.run(output);
    }
    let output = &args.reports.check(output)?;
    let args = args.resumed()?;
    let planned = plan::plan(&args, output)?;
    if args.dry_run {
        return Ok(plan::show(&planned, output));
    }
    let held = choose_sandbox(&args, output)?;
    let known = read_known_and_against(args.known.as_deref(), None)?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let limits = args.limits();
    let (store, campaign) = open_study(&args, limits)?;
    let resumed = args.resume && store.resumed();
    let settings = StudySettings {
        known,
        deadline,
        ..plan::settings(&args, planned, &campaign, held)
    };
    output.detail(&format!("seed {}", settings.plan.seed));
    let mut screen = ui::Line::new(output);
    let store = Mutex::new(store);
    let summary = study::run(&store, &settings, &mut screen, &stop);
    drop(screen);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&summary?, &store, resumed, &args, output)
}

/// Opens the output directory: `--resume` goes on with its study, else a new one begins, beside
/// whatever earlier ones found.
fn open_study(args: &RevisitArgs, limits: Limits) -> Result<(Store, Campaign), Failure> {
    let mut fresh = new_study(limits);
    fresh.settings = config::settings().cloned();
    fresh.seed = (args.seed).or_else(|| u64::from_str_radix(&fresh.id, 16).ok());
    let mut store = Store::create_or_resume(&args.out, fresh.clone())?;
    let current = store.campaigns().current.clone();
    let campaign = match current {
        Some(campaign) if store.resumed() && args.resume => {
            check_same(args, &campaign)?;
            campaign
        }
        _ if store.resumed() => {
            store.begin(fresh.clone())?;
            fresh
        }
        _ => fresh,
    };
    Ok((store, campaign))
}

fn check_same(args: &RevisitArgs, campaign: &Campaign) -> Result<(), Failure> {
    let unlike = |what: &str| {
        let message = format!("{} cannot be resumed: {what}", args.out.display());
        Err(Failure::usage(message)
            .path(&args.out)
            .hint("omit --resume to start a new study there, or choose another directory with -o"))
    };
    if campaign.target.is_some() {
        return unlike("it contains a campaign on one program, not a study");
    }
    if args.seed.is_some_and(|seed| campaign.seed != Some(seed)) {
        return unlike("its study has another --seed");
    }
    Ok(())
}

/// What holds utilities back.
struct StudySandbox {
    /// Whether there is a sandbox.
    sandbox: Sandbox,
    /// The parts of it that work here, by name.
    parts: Vec<String>,
}

/// What is asked for; says what the sandbox is made of here.
fn choose_sandbox(args: &RevisitArgs, output: &Output) -> Result<StudySandbox, Failure> {
    match args.no_sandbox {
        0 => available_sandbox(output),
        1 => Err(Failure::usage(
            "--no-sandbox would let random input loose on programs that can write to this \
             machine and reach its network",
        )
        .hint("omit it, or give it twice if that is what you want")),
        _ => {
            output.say("warning: without the sandbox utilities can write to every file that their user may write to");
            Ok(StudySandbox {
                sandbox: Sandbox::Off,
                parts: Vec::new(),
            })
        }
    }
}

fn available_sandbox(output: &Output) -> Result<StudySandbox, Failure> {
    let (works, fails): (Vec<SandboxSupport>, Vec<SandboxSupport>) =
        supported_parts().into_iter().partition(|part| part.works);
    let parts: Vec<String> = works.iter().map(|part| part.what.to_owned()).collect();
    let missing: Vec<String> = fails
        .iter()
        .map(|part| format!("{} ({})", part.what, part.why_not.as_deref().unwrap_or("?")))
        .collect();
    // Else nothing keeps a user's files from what runs as that user.
    if !keep_files(&works) {
        return Err(Failure::usage(format!(
            "this system has no protection against utilities that write to files: {}",
            missing.join(", ")
        ))
        .hint("run it on another machine, or give --no-sandbox twice"));
    }
    let without = match missing.is_empty() {
        true => String::new(),
        false => format!("; not: {}", missing.join(", ")),
    };
    output.say(&format!("sandbox: {}{without}", parts.join(", ")));
    Ok(StudySandbox {
        sandbox: Sandbox::On,
        parts,
    })
}

/// Shows the result, and gives the exit code that it stands for.
fn report(
    summary: &StudySummary,
    store: &Store,
    resumed: bool,
    args: &RevisitArgs,
    output: &Output,
) -> Result<Exit, Failure> {
    let studied = Studied::read(store.reader())?;
    let call = StudyResult {
        runs: summary.runs,
        runs_per_s: summary.runs_per_s(),
        seconds: summary.fuzzed.as_secs_f64(),
        new_groups: summary.new_groups,
        ways: summary.ways.clone(),
        resumed,
        ended_by: match (summary.interrupted, args.time) {
            (true, _) => EndedBy::Interrupted,
            (false, Some(_)) => EndedBy::Time,
            (false, None) if summary.out_of_time => EndedBy::Time,
            (false, None) => EndedBy::Runs,
        },
        settings: config::settings().cloned(),
        ..StudyResult::default()
    };
    // Before the result: where one of them cannot be written, the one answer is an error.
    args.reports.write(&studied.rows)?;
    if summary.out_of_room {
        output.say(&format!("warning: {}", crate::cli::run::OUT_OF_ROOM));
    }
    let text = format!(
        "{}\n{} in {:.1} s ({}/s): {}; results in {}",
        table(&studied.rows, ui::stdout_width()),
        size::counted(summary.runs, "run"),
        summary.fuzzed.as_secs_f64(),
        ui::rate(summary.runs_per_s()),
        match summary.new_groups {
            0 => "no new crash group".to_owned(),
            new => size::counted(new, "new crash group"),
        },
        store.reader().root().display(),
    );
    let result = call.with_results(&studied.rows, &studied.groups);
    output.result(&text, &result);
    let of_crash = |group: &&crate::report::study::StudyGroup| group.view.kind == Kind::Crash;
    if let Some(group) = studied.groups.iter().find(of_crash) {
        next_steps::after_groups(output, &args.out, &group.view.major.short(), None);
    }
    Ok(exit(summary))
}

fn exit(summary: &StudySummary) -> Exit {
    match summary {
        StudySummary {
            interrupted: true, ..
        } => Exit::Interrupted,
        StudySummary {
            new_groups: 1.., ..
        } => Exit::Found,
        StudySummary {
            known_crashes: 1.., ..
        } => Exit::Known,
        _ => Exit::Done,
    }
}
