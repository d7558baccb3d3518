//! The output directory of a study, new or gone on with.

use super::Args;
use crate::campaign::new_study;
use crate::cli::{Failure, config};
use crate::exec::Limits;
use crate::store::{Campaign, Store};

/// Opens the output directory: `--resume` goes on with its study, else a new one begins, beside
/// whatever earlier ones found.
pub(super) fn open(args: &Args, limits: Limits) -> Result<(Store, Campaign), Failure> {
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

fn check_same(args: &Args, campaign: &Campaign) -> Result<(), Failure> {
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
