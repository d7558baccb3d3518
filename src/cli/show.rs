//! `ddfuzz show`: the groups of an output directory.

use std::path::PathBuf;

use serde::Serialize;

use super::reports::{ReportArgs, target_name};
use super::{Exit, Failure, Output, ui};
use crate::report::ci::Findings;
use crate::report::{GroupView, RunGroup, block, groups_table, size};
use crate::store::{Entry, Group, Kind, Reader, StoreError};

/// Show the groups of an output directory
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz show ddfuzz-out\n  ddfuzz show ddfuzz-out 3fa4")]
pub struct Args {
    /// The output directory
    out: PathBuf,
    /// Only the groups whose major key begins so, each in full
    group: Option<String>,
    #[command(flatten)]
    reports: ReportArgs,
}

#[derive(Serialize)]
struct Shown {
    groups: Vec<RunGroup>,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    args.reports.check()?;
    let reader = Reader::open(&args.out)?;
    let mut views = Vec::new();
    for kind in Kind::ALL {
        views.extend(self::views(&reader, kind)?);
    }
    let text = match &args.group {
        None if views.is_empty() => format!("no groups in {}", args.out.display()),
        None => groups_table(&views, ui::stdout_width()),
        Some(beginning) => {
            views.retain(|view| view.major.to_string().starts_with(beginning));
            if views.is_empty() {
                let message = format!("no group of {} begins with {beginning}", args.out.display());
                return Err(Failure::usage(message)
                    .path(&args.out)
                    .hint("list them without GROUP"));
            }
            views.iter().map(block).collect::<Vec<_>>().join("\n")
        }
    };
    let target = reader.campaigns()?.current.and_then(|campaign| {
        let limits = campaign.limits?;
        campaign.target?.target(limits)
    });
    args.reports.write(&Findings {
        target: target.map_or_else(|| args.out.display().to_string(), |one| target_name(&one)),
        summary: size::counted(views.len() as u64, "group"),
        groups: views.iter().map(Into::into).collect(),
    })?;
    output.result(
        &text,
        &Shown {
            groups: views.iter().map(RunGroup::from).collect(),
        },
    );
    Ok(Exit::Done)
}

/// All groups of a kind, each through its minimized entry, else through its least reproducer.
pub fn views(reader: &Reader, kind: Kind) -> Result<Vec<GroupView>, StoreError> {
    let campaign = reader.campaigns()?.current;
    let build = campaign
        .as_ref()
        .and_then(|campaign| campaign.builds.last());
    let mut views = Vec::new();
    for group in reader.groups(kind)? {
        if let Some(entry) = best_entry(reader, &group)? {
            let status = build.and_then(|build| build.status(kind, &group.record.major.short()));
            views.push(GroupView {
                status,
                ..GroupView::load(&group, &entry)?
            });
        }
    }
    Ok(views)
}

/// The entry through which a group is shown: its minimized one, else that of its least reproducer.
pub fn best_entry(reader: &Reader, group: &Group) -> Result<Option<Entry>, StoreError> {
    let mut best = None;
    for id in group.representatives() {
        if let Some(entry) = reader.entry(&id)? {
            let size = entry.reproducer_bytes()?.len();
            let rank = (entry.minimized.is_none(), size, id);
            if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                best = Some((rank, entry));
            }
        }
    }
    Ok(best.map(|(_, entry)| entry))
}
