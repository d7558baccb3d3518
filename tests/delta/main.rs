//! Delta debugging: configurations, candidates, the cache and the searches.

mod algebra;
mod argument;
mod cache;
mod candidate;
mod case_studies;
mod change;
mod config;
mod ddmin;
mod debugger;
#[cfg(feature = "engine")]
mod debuggingbook;
mod exact;
mod families;
mod fixed;
#[cfg(feature = "engine")]
mod golden;
mod passes;
mod predictor;
mod properties;
mod random;
mod reference;
mod reference_dd;
mod runs;
mod sequence;
mod split;
#[path = "../stream/mod.rs"]
mod stream;
mod trace;
