//! `--resume`: the options by which a study is the one that it is. They are those that it began
//! with, and need not be said again; others are refused, as another seed is.

use super::Args;
use super::args::Shard;
use crate::campaign::CampaignError;
use crate::campaign::study::Asked;
use crate::cli::Failure;
use crate::store::Reader;

impl Args {
    /// These options with what the study that they resume was asked for.
    ///
    /// # Errors
    /// Where they ask for something else.
    pub(super) fn resumed(mut self) -> Result<Args, Failure> {
        // What is wrong with the directory is said when it is opened to be written.
        let so_far = match self.resume {
            true => Reader::open(&self.out).ok(),
            false => None,
        };
        let Some(was) = so_far.and_then(|reader| Asked::so_far(&reader)) else {
            return Ok(self);
        };
        if let Some(now) = self.max_len.filter(|now| *now != was.max_len) {
            let was = was.max_len;
            return Err(CampaignError::OtherLengths { was, now }.into());
        }
        self.max_len = Some(was.max_len);
        let list = was.list.map(|list| list.0.into());
        self.list = self.same("--list", self.list.clone(), list)?;
        let preset = was.preset.and_then(|preset| preset.parse().ok());
        self.preset = self.same("--preset", self.preset, preset)?;
        let shard = was.shard.map(|(part, of)| Shard { part, of });
        self.shard = self.same("--shard", self.shard, shard)?;
        let some = |channels: Vec<String>| (!channels.is_empty()).then_some(channels);
        let channels = self.same("--channel", some(self.channels()), some(was.channels))?;
        self.channel = channels.unwrap_or_default();
        Ok(self)
    }

    /// The channels asked for, in an order that does not depend on that of the options.
    pub(super) fn channels(&self) -> Vec<String> {
        let mut channels = self.channel.clone();
        channels.sort();
        channels.dedup();
        channels
    }

    /// What an option was, where it is not given, or is the same.
    fn same<T: PartialEq>(
        &self,
        option: &str,
        now: Option<T>,
        was: Option<T>,
    ) -> Result<Option<T>, Failure> {
        if now.is_none() || now == was {
            return Ok(was);
        }
        let had = match was {
            Some(_) => format!("another {option}"),
            None => format!("no {option}"),
        };
        let message = format!(
            "{} cannot be resumed: its study has {had}",
            self.out.display()
        );
        Err(Failure::usage(message).path(&self.out).hint(format!(
            "omit {option} to continue the study, or omit --resume to start a new one there"
        )))
    }
}
