//! Campaigns that are guided by coverage, called as a user calls them, on small programs made by
//! clang and AFL++.

mod found;
mod killed;
mod options;
mod processes;
mod targets;
