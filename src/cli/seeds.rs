//! The seeds and dictionaries of a campaign.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Output};
use crate::campaign::{LeftOut, Seeds, Source, Words, dictionary};
use crate::exec::facts::program_words;
use crate::exec::{Program, Target, bundled};
use crate::report::size;

/// The heading of these options in the help.
const INPUTS: &str = "Inputs";

/// What inputs are made of, beside chance.
#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// Seed inputs: a file, or all files below a directory; may be repeated
    #[arg(help_heading = INPUTS, long, value_name = "PATH")]
    seeds: Vec<PathBuf>,
    /// With --target, also use the seeds and the dictionary that come with that target
    #[arg(help_heading = INPUTS, hide_short_help = true, long)]
    bundled_seeds: bool,
    /// Dictionary in AFL's format (lines like name="value"); may be repeated
    #[arg(help_heading = INPUTS, long, value_name = "FILE")]
    dict: Vec<PathBuf>,
    /// Do not extract a dictionary from the program (its strings and the constants it compares
    /// with)
    #[arg(help_heading = INPUTS, hide_short_help = true, long)]
    no_auto_dict: bool,
}

impl SeedArgs {
    /// Takes the files below this path, too.
    pub fn add(&mut self, path: PathBuf) {
        self.seeds.push(path);
    }

    /// The paths of seeds, and the dictionaries, as they are named.
    pub fn named(&self) -> (&[PathBuf], &[PathBuf]) {
        (&self.seeds, &self.dict)
    }

    /// The seeds of at most `max_len` bytes, and the words to write into them.
    ///
    /// # Errors
    /// Those of [`SeedArgs::seeds`] and [`SeedArgs::words`].
    pub fn read(
        &self,
        target: &Target,
        max_len: u64,
        output: &Output,
    ) -> Result<(Seeds, Words), Failure> {
        let seeds = self.seeds(target, max_len, output)?;
        let words = self.words(target, !seeds.is_empty())?;
        Ok((seeds, words))
    }

    /// The seeds of at most `max_len` bytes.
    ///
    /// # Errors
    /// When they cannot be read, or when there are none where some were named.
    pub fn seeds(&self, target: &Target, max_len: u64, output: &Output) -> Result<Seeds, Failure> {
        let (seeds, left_out) = Seeds::read(&self.seeds, max_len)?;
        if seeds.is_empty() && !self.seeds.is_empty() {
            return Err(self.none(left_out, max_len));
        }
        if !self.seeds.is_empty() {
            let said = told(seeds.len() as u64, left_out);
            match left_out.too_long + left_out.too_many {
                0 => output.detail(&said),
                _ => output.say(&said),
            }
        }
        if !self.bundled_seeds {
            return Ok(seeds);
        }
        let bundled = self.bundled(target)?;
        let bundled = bundled::seeds(bundled).iter().map(|seed| seed.to_vec());
        let own = seeds.all().iter().map(|seed| seed.bytes.clone());
        let fits = |seed: &Vec<u8>| seed.len() as u64 <= max_len;
        Ok(Seeds::of(own.chain(bundled.filter(fits))))
    }

    /// The words of the dictionaries; also those of the program where `automatic`, or where there
    /// is a dictionary.
    ///
    /// # Errors
    /// When a dictionary cannot be read, or the program is not there.
    pub fn words(&self, target: &Target, automatic: bool) -> Result<Words, Failure> {
        let mut words = Words::default();
        for path in &self.dict {
            words.add(Source::Dictionary, dictionary::read(path)?);
        }
        if self.bundled_seeds
            && let Some(text) = bundled::dictionary(self.bundled(target)?)
        {
            // A test parses them all.
            words.add(
                Source::Dictionary,
                dictionary::parse(text).unwrap_or_default(),
            );
        }
        if !self.no_auto_dict && (automatic || !words.is_empty()) {
            words.add(Source::Program, program_words(target)?);
        }
        Ok(words)
    }

    fn bundled<'a>(&self, target: &'a Target) -> Result<&'a str, Failure> {
        match &target.program {
            Program::Bundled(name) => Ok(name),
            Program::Path(_) => Err(Failure::usage("--bundled-seeds works only with --target")
                .hint("give your own seeds with --seeds")),
        }
    }

    fn none(&self, left_out: LeftOut, max_len: u64) -> Failure {
        let message = match left_out.too_long {
            0 => "there is no file in what --seeds names".to_owned(),
            1.. => format!(
                "all seeds ({}) are longer than {}",
                size::grouped(left_out.too_long),
                size::counted(max_len, "byte"),
            ),
        };
        let hint = match left_out.too_long {
            0 => "give a file, or a directory with files in it",
            _ => "raise --max-len",
        };
        let failure = Failure::usage(message).hint(hint);
        match &self.seeds[..] {
            [path] => failure.path(path),
            _ => failure,
        }
    }
}

/// How many seeds there are, and what gave none.
fn told(count: u64, left_out: LeftOut) -> String {
    let mut text = size::counted(count, "seed");
    for (files, why) in [
        (left_out.too_long, "longer than --max-len"),
        (left_out.too_many, "more than 256 MiB or 2^18 files"),
        (left_out.again, "duplicates"),
        (left_out.no_files, "not regular files"),
    ] {
        if files > 0 {
            text.push_str(&format!("; skipped: {} ({why})", size::grouped(files)));
        }
    }
    text
}
