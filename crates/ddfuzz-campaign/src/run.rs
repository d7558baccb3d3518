//! Runs a campaign of the kind that fits its target.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::error::CampaignError;
use super::screen::Screen;
use super::settings::{Generator, Settings};
use super::summary::Summary;
use super::{classic, guided};
use ddfuzz_store::Store;

/// Runs one call of the campaign that `store` belongs to. When `stop` turns true it saves its
/// state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; what was found until
/// then is kept.
pub fn run(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    match settings.generator {
        Generator::Classic => classic::run(store, campaign, settings, screen, stop),
        Generator::Guided => guided::run(store, campaign, settings, screen, stop),
    }
}
