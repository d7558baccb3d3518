//! Campaigns that are guided by coverage, called as a user calls them, on small programs made by
//! clang and AFL++.

mod blocks;
mod disturbed;
mod found;
mod hangs;
mod hosts;
mod killed;
mod monitors;
mod odd_targets;
mod options;
mod processes;
mod signals;
pub mod targets;
