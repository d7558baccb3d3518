//! The page of a campaign: its structure, and how a browser shows it.

mod browser;
mod chromium;
mod measure;
#[path = "../../../../tests/needs/mod.rs"]
mod needs;
mod sample;
mod structure;
