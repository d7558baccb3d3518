//! How an input reaches the target, on the command line.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use super::{Failure, keys};
use crate::exec::{Channel, Target, Terminal, Way};
use crate::files::Base64;

/// The heading of these options in the help.
pub const HEADING: &str = "Programs that read a terminal, a certain file, or two files";
/// The largest terminal, in lines or characters.
const LARGEST: u16 = 500;

/// How the input gets to the program.
#[derive(Args, Clone, Debug, Default)]
pub struct ChannelArgs {
    /// Run the program on a pseudo-terminal of this size [24x80 if no size is given]. The input is
    /// typed, one key whenever the program waits for one. @@ is replaced by the path of a sample
    /// text file, for editors and the like
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "ROWSxCOLUMNS", num_args = 0..=1, require_equals = true, default_missing_value = "24x80", value_parser = size, conflicts_with_all = ["file_name", "two_files"])]
    pub terminal: Option<(u16, u16)>,
    /// Keys that make the program exit, typed after the input; with the escapes of C (\r, \e, \x03)
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "KEYS", value_parser = |text: &str| keys::unescaped(text).map(Base64), requires = "terminal", allow_hyphen_values = true)]
    pub ending: Option<Base64>,
    /// Name of the file that @@ is replaced by, for programs that look at file names
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "NAME", conflicts_with = "two_files")]
    pub file_name: Option<OsString>,
    /// Split the input into two files at its first byte 0x1c: the first @@ is replaced by the path
    /// of what stands before that byte, the second by that of what follows
    #[arg(help_heading = HEADING, hide_short_help = true, long)]
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
    sides.ok_or_else(|| {
        format!("write a size as ROWSxCOLUMNS, each from 1 to {LARGEST}, like 24x80")
    })
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
                let message = format!("--terminal does not work with --exec {way}");
                let hint = "use --exec command or --exec inject, or omit --exec";
                return Err(Failure::usage(message).hint(hint));
            }
        } else if let Some(name) = &self.file_name {
            if Path::new(name).file_name() != Some(name) {
                let message = format!("--file-name {} is not a plain file name", name.display());
                return Err(Failure::usage(message).hint("give the name without a directory"));
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
        1 => "write @@ where the program expects the path of the file",
        _ => "write @@ twice, where the program expects the paths of the two files",
    };
    Err(Failure::usage(message).hint(hint))
}
