//! `ddfuzz merge`: merges several output directories into one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::results::absolute;
use super::run::other_groups;
use super::show::warn_of_incomplete;
use super::{Exit, Failure, Output};
use crate::files::OsText;
use crate::report::{size, text::shell_operand};
use crate::store::{Group, IncompleteGroup, Kind, Reader, merge};

/// Merge output directories into one
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz merge host1-out host2-out -o all-out")]
pub struct MergeArgs {
    /// Output directories to merge; they are only read
    #[arg(required = true)]
    outs: Vec<PathBuf>,
    /// Output directory to merge them into
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Serialize)]
struct MergeResult {
    output: OsText,
    /// Number of groups of all kinds, without those that have no complete input.
    groups: u64,
    hangs: u64,
    ooms: u64,
    flaky: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    utilities: Option<u64>,
}

pub fn run(args: MergeArgs, output: &Output) -> Result<Exit, Failure> {
    merge(&args.outs, &args.out)?;
    let reader = Reader::open(&args.out)?;
    warn_of_incomplete(&reader, "counted", output)?;
    let incomplete = reader.incomplete_groups()?;
    let count = |kind| {
        let is_complete = |group: &Group| {
            let major = group.record.major.short();
            let is_this = |one: &IncompleteGroup| one.kind == kind && one.major == major;
            !incomplete.iter().any(is_this)
        };
        let groups = reader.groups(kind)?;
        Ok::<_, Failure>(groups.into_iter().filter(is_complete).count() as u64)
    };
    let groups = count(Kind::Crash)?;
    let studies = reader.studies()?;
    let utilities = studies.iter().flat_map(|study| &study.utilities);
    let utilities: BTreeSet<&str> = utilities.map(|one| one.utility.as_str()).collect();
    let utilities = (!studies.is_empty()).then_some(utilities.len() as u64);
    let study = match utilities {
        None => String::new(),
        Some(1) => ", and the study of 1 utility".to_owned(),
        Some(count) => format!(", and the study of {} utilities", size::grouped(count)),
    };
    let others = [count(Kind::Hang)?, count(Kind::Oom)?, count(Kind::Flaky)?];
    let path = absolute(&args.out);
    let text = format!(
        "{}{}{study} in {}",
        size::counted(groups, "crash group"),
        other_groups(&others),
        path.display()
    );
    output.result(
        &text,
        &MergeResult {
            output: OsText::from(&path),
            groups: groups + others.iter().sum::<u64>(),
            hangs: others[0],
            ooms: others[1],
            flaky: others[2],
            utilities,
        },
    );
    output.suggest(&format!("ddfuzz show {}", shell_operand(&args.out)));
    Ok(Exit::Done)
}
