//! What is asked for on the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::families::{FAMILIES, Set, family};

/// What `--help` prints.
pub const HELP: &str = "\
Measures ddfuzz and other minimizers on the same failing inputs.

Usage: cargo bench --bench minimizers [-- OPTIONS]

  --peers none|installed|all  which other tools; `all` (default) fails where one is missing
  --tools NAME,…              only these tools, ddfuzz's searches among them (ddfuzz-ddmin)
  --families NAME,…           only these families
  --set tuned|held-out|both|real
                              which cases; `real` are files of this machine at which
                              installed programs fail [default: both]
  --limit SECONDS             longest CPU time of a tool on a case [default: 60];
                              ten times that of wall time
  --markdown FILE             write the tables there, too; relative to the package's folder

Example: cargo bench --bench minimizers -- --peers none --families json,records";

/// Which other tools are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// None.
    None,
    /// Those that are there.
    Installed,
    /// All; a missing one is an error.
    All,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which other tools.
    pub peers: Peers,
    /// The tools by name; all, if empty.
    pub tools: Vec<String>,
    /// The families by name; all, if empty.
    pub families: Vec<String>,
    /// The sets of cases.
    pub sets: Vec<Set>,
    /// Longest CPU time of a tool on a case.
    pub limit: Duration,
    /// Where the tables are written, too.
    pub markdown: Option<PathBuf>,
    /// Whether this measures, or only sees whether it would.
    pub measures: bool,
}

/// What the command line asks for.
pub enum Asked {
    /// To measure.
    Run(Options),
    /// The help.
    Help,
}

impl Options {
    /// The options on the command line.
    ///
    /// # Errors
    /// What is wrong with them, and what would be right.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Asked, String> {
        let mut options = Options {
            peers: Peers::All,
            tools: Vec::new(),
            families: Vec::new(),
            sets: Set::ALL.to_vec(),
            limit: Duration::from_secs(60),
            markdown: None,
            measures: false,
        };
        let args: Vec<String> = args.collect();
        // Cargo says so when it is to measure; else words are for tests, and none of ours.
        options.measures = args.iter().any(|arg| arg == "--bench");
        if !options.measures {
            return Ok(Asked::Run(options.smoke()));
        }
        let mut args = args.into_iter().filter(|arg| arg != "--bench");
        while let Some(option) = args.next() {
            if ["--help", "-h"].contains(&option.as_str()) {
                return Ok(Asked::Help);
            }
            let value = args.next();
            let value = value.ok_or(format!("{option} needs a value; see --help"))?;
            options.take(&option, &value)?;
        }
        Ok(Asked::Run(options))
    }

    fn take(&mut self, option: &str, value: &str) -> Result<(), String> {
        let list = || {
            value
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect()
        };
        let wrong = |there_are: &str| format!("{option} {value}: {there_are}");
        match option {
            "--peers" => {
                self.peers = match value {
                    "none" => Peers::None,
                    "installed" => Peers::Installed,
                    "all" => Peers::All,
                    _ => return Err(wrong("none, installed or all")),
                }
            }
            "--set" => {
                self.sets = match value {
                    "tuned" => vec![Set::Tuned],
                    "held-out" => vec![Set::HeldOut],
                    "both" => Set::ALL.to_vec(),
                    "real" => vec![Set::Real],
                    _ => return Err(wrong("tuned, held-out, both or real")),
                }
            }
            "--families" => {
                self.families = list();
                if let Some(unknown) = self.families.iter().find(|name| family(name).is_none()) {
                    let names = FAMILIES.iter().map(|family| family.name);
                    let names: Vec<&str> = names.collect();
                    return Err(format!(
                        "no family {unknown}; there are: {}",
                        names.join(", ")
                    ));
                }
            }
            "--tools" => self.tools = list(),
            "--limit" => {
                let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                let seconds = seconds.ok_or_else(|| wrong("a whole number of seconds, from 1"))?;
                self.limit = Duration::from_secs(seconds);
            }
            "--markdown" => self.markdown = Some(value.into()),
            _ => return Err(format!("no option {option}; see --help")),
        }
        Ok(())
    }

    /// A case or two with ddfuzz alone, which only shows that it still runs.
    fn smoke(self) -> Options {
        Options {
            peers: Peers::None,
            families: vec!["select".to_owned()],
            sets: vec![Set::Tuned],
            ..self
        }
    }

    /// Whether this family is measured.
    pub fn chooses(&self, family: &str) -> bool {
        self.families.is_empty() || self.families.iter().any(|name| name == family)
    }

    /// Whether this tool is run.
    pub fn chooses_tool(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|name| name == tool)
    }
}
