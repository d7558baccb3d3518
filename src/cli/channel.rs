//! How an input reaches the target, on the command line.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use super::{Failure, keys};
use crate::exec::{Channel, Target, Terminal, Way};
use crate::files::Base64;

/// Where the help shows these options.
const TARGET: &str = "The target";
/// The largest terminal, in lines or characters.
const LARGEST: u16 = 500;

/// How the input gets to the program.
#[derive(Args, Clone, Debug, Default)]
pub struct ChannelArgs {
    /// Run the program at a terminal of its own, of this size [24x80 where none is given]: the
    /// input is typed there, key by key, each when the program waits for it. @@ stands for a text
    /// to work on
    #[arg(help_heading = TARGET, long, value_name = "ROWSxCOLUMNS", num_args = 0..=1, require_equals = true, default_missing_value = "24x80", value_parser = size, conflicts_with_all = ["file_name", "two_files"])]
    pub terminal: Option<(u16, u16)>,
    /// Keys that end the program, typed behind the input; with the escapes of C (\r, \e, \x03)
    #[arg(help_heading = TARGET, long, value_name = "KEYS", value_parser = |text: &str| keys::unescaped(text).map(Base64), requires = "terminal", allow_hyphen_values = true)]
    pub ending: Option<Base64>,
    /// Give the file that @@ stands for this name, for programs that look at it
    #[arg(help_heading = TARGET, long, value_name = "NAME", conflicts_with = "two_files")]
    pub file_name: Option<OsString>,
    /// Give the program two files: the first @@ stands for what is before the input's first byte
    /// 0x1c, the second for what is behind it
    #[arg(help_heading = TARGET, long)]
    pub two_files: bool,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let sides = text.split_once('x').and_then(|(rows, columns)| {
        let side = |text: &str| {
            text.parse()
                .ok()
                .filter(|side| (1..=LARGEST).contains(side))
        };
        Some((side(rows)?, side(columns)?))
    });
    sides.ok_or_else(|| format!("a size is ROWSxCOLUMNS, each from 1 to {LARGEST}, as 24x80"))
}

impl ChannelArgs {
    /// Sets the channel of `target`, which is to be run by `way`, if by a certain one.
    ///
    /// # Errors
    /// When the target cannot be given its input in this way.
    pub fn apply(&self, target: &mut Target, way: Option<Way>) -> Result<(), Failure> {
        if let Some((rows, columns)) = self.terminal {
            let ending = self.ending.clone().unwrap_or(Base64(Vec::new()));
            target.channel = Channel::Terminal(Terminal {
                rows,
                columns,
                ending,
            });
            if let Some(way @ (Way::Forkserver | Way::Harness)) = way {
                let message = format!("--exec {way} gives the target no terminal");
                let hint = "take --exec command, --exec inject, or none";
                return Err(Failure::usage(message).hint(hint));
            }
        } else if let Some(name) = &self.file_name {
            if Path::new(name).file_name() != Some(name) {
                let message = format!("--file-name {} is not the name of a file", name.display());
                return Err(Failure::usage(message).hint("name it without a directory"));
            }
            target.channel = Channel::Named(crate::files::OsText(name.clone()));
            names(target, 1, "--file-name")?;
        } else if self.two_files {
            target.channel = Channel::TwoFiles;
            names(target, 2, "--two-files")?;
        }
        Ok(())
    }
}

/// Whether the arguments of `target` name as many files as `option` needs.
fn names(target: &Target, wanted: usize, option: &str) -> Result<(), Failure> {
    let marks = |arg: &OsString| arg.to_string_lossy().matches("@@").count();
    let found: usize = target.args.iter().map(marks).sum();
    if found >= wanted {
        return Ok(());
    }
    let message = format!("{option} needs @@ in the arguments of the program");
    let hint = match wanted {
        1 => "write @@ where the file is to be named",
        _ => "write @@ where each of the files is to be named",
    };
    Err(Failure::usage(message).hint(hint))
}
