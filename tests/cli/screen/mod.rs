//! The screen of a campaign.

mod counts;
mod history;
mod hostile;
mod keys;
mod log;
mod plot;
mod pty;
mod sample;
mod shots;
mod statuses;
