//! Delta debugging: configurations, candidates, the cache and the searches.

mod cache;
mod candidate;
mod config;
mod ddmin;
mod fixed;
#[cfg(feature = "engine")]
mod golden;
mod properties;
mod reference;
mod sequence;
mod split;
mod trace;
