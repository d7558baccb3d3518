//! The output directory of a campaign, new or gone on with.

use std::path::Path;

use crate::campaign::new_campaign;
use crate::cli::target::install_bundled;
use crate::cli::{Failure, config};
use crate::exec::{Target, TargetRecord, Way};
use crate::store::{Campaign, Store};

/// The output directory that is asked for.
pub struct Asked<'a> {
    /// The directory.
    pub out: &'a Path,
    /// Whether its campaign is gone on with.
    pub resume: bool,
    /// The seed, where one was named.
    pub seed: Option<u64>,
}

/// Opens the output directory: `--resume` goes on with its campaign, else a new one begins,
/// beside whatever earlier ones found.
pub fn open_store(
    asked: &Asked<'_>,
    target: &Target,
    way: Way,
) -> Result<(Store, Campaign), Failure> {
    let mut fresh = campaign_of(target, way, asked.seed);
    fresh.seed = fresh
        .seed
        .or_else(|| u64::from_str_radix(&fresh.id, 16).ok());
    let mut store = Store::create_or_resume(asked.out, fresh.clone())?;
    let current = store.campaigns().current.clone();
    let campaign = match current {
        Some(campaign) if store.resumed() && asked.resume => {
            check_same(asked, target, &campaign)?;
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
    Campaign {
        settings: config::settings().cloned(),
        seed,
        ..new_campaign(target, way)
    }
}

fn check_same(asked: &Asked<'_>, target: &Target, campaign: &Campaign) -> Result<(), Failure> {
    let unlike = |what: &str| {
        let message = format!(
            "the campaign in {} cannot be resumed with another {what}",
            asked.out.display()
        );
        Err(Failure::usage(message).path(asked.out).hint(
            "omit --resume to start a new campaign there, or choose another directory with -o",
        ))
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
    if asked.seed.is_some_and(|seed| campaign.seed != Some(seed)) {
        return unlike("seed");
    }
    Ok(())
}
