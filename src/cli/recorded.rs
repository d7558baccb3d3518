//! The target that an output directory has on record, for commands that name none.

use std::path::Path;

use super::Failure;
use super::target::TargetArgs;
use crate::exec::Target;
use crate::store::{Campaign, Reader};

/// The one target that all of these campaigns have.
///
/// # Errors
/// When there is no campaign, one does not record which program was run, or they are of several targets.
pub fn of_all(campaigns: &[&Campaign], out: &Path) -> Result<Target, Failure> {
    let Some((first, others)) = campaigns.split_first() else {
        return Err(unclear(out, "does not record which program was run"));
    };
    let target = of_one(first, out)?;
    let record = first.target.as_ref();
    let same = |other: &&Campaign| {
        let both = record.zip(other.target.as_ref());
        both.is_some_and(|(one, other)| one.same_target(other))
    };
    match others.iter().all(same) {
        true => Ok(target),
        false => Err(unclear(out, "contains groups of several programs")),
    }
}

/// The target of the campaign that the directory belongs to, with those limits in the place of the
/// recorded ones that are asked for.
///
/// # Errors
/// When there is no such directory, or it does not record which program was run.
pub fn of_current(out: &Path, asked: &TargetArgs) -> Result<Target, Failure> {
    let campaign = Reader::open(out)?.campaigns()?.current;
    let campaign = campaign.ok_or_else(|| unclear(out, "does not record which program was run"))?;
    let mut target = of_one(&campaign, out)?;
    target.limits = asked.limits_over(target.limits);
    Ok(target)
}

fn of_one(campaign: &Campaign, out: &Path) -> Result<Target, Failure> {
    let record = campaign.target.as_ref().zip(campaign.limits);
    let target = record.and_then(|(record, limits)| record.target(limits));
    target.ok_or_else(|| unclear(out, "does not record which program was run"))
}

fn unclear(out: &Path, message: &str) -> Failure {
    Failure::usage(format!("{} {message}", out.display()))
        .path(out)
        .hint("give the program after `--`")
}
