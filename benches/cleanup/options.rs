//! What is asked for on the command line.

use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
Measures corpus cleanup: ddfuzz beside afl-cmin, libFuzzer's -merge=1 and cargo fuzz cmin.

Usage: cargo bench --bench cleanup [-- [bundled] [cpp] [flaky] [afl] [afl-plain] [scale] [OPTIONS]]

Without a table's name all are measured, which takes the better part of an hour.

  --files N        files of each corpus [default: 10000]
  --scale N        tiny files of the table `scale` [default: 1000000]
  --tools WORD,…   only tools whose names contain one of these
  --ddfuzz FILE    another build of ddfuzz

Corpora and programs are made once, and kept in target/bench-cleanup.

Example: cargo bench --bench cleanup -- cpp --files 2000 --tools off,merge";

/// What is measured, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tables; all, if empty.
    tables: Vec<String>,
    /// Parts of the names of tools; all, if empty.
    tools: Vec<String>,
    /// Files of each corpus.
    pub files: usize,
    /// Files of the largest one.
    pub scale: usize,
    /// The ddfuzz that cleans.
    pub ddfuzz: PathBuf,
}

/// What the command line asks for.
pub enum Asked {
    /// To measure.
    Run(Options),
    /// Nothing: that is `cargo test`.
    Try,
    /// The help.
    Help,
}

const TABLES: [&str; 6] = ["bundled", "cpp", "flaky", "afl", "afl-plain", "scale"];

impl Options {
    /// The options on the command line.
    ///
    /// # Errors
    /// What is wrong with them, and what would be right.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Asked, String> {
        let args: Vec<String> = args.collect();
        // Cargo says so when it is to measure.
        if !args.iter().any(|arg| arg == "--bench") {
            return Ok(Asked::Try);
        }
        let mut options = Options {
            tables: Vec::new(),
            tools: Vec::new(),
            files: 10_000,
            scale: 1_000_000,
            ddfuzz: PathBuf::from(env!("CARGO_BIN_EXE_ddfuzz")),
        };
        let mut args = args.into_iter().filter(|arg| arg != "--bench");
        while let Some(word) = args.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(Asked::Help),
                table if TABLES.contains(&table) => options.tables.push(word),
                option => {
                    let value = args.next();
                    let value = value.ok_or(format!("{option} needs a value; see --help"))?;
                    options.take(option, &value)?;
                }
            }
        }
        Ok(Asked::Run(options))
    }

    fn take(&mut self, option: &str, value: &str) -> Result<(), String> {
        let number = || {
            let number = value.parse::<usize>().ok().filter(|number| *number > 0);
            number.ok_or(format!("{option} {value}: a whole number, from 1"))
        };
        match option {
            "--files" => self.files = number()?,
            "--scale" => self.scale = number()?,
            "--ddfuzz" => self.ddfuzz = PathBuf::from(value),
            "--tools" => self.tools = value.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("no option or table {option}; see --help")),
        }
        Ok(())
    }

    /// Whether this table is wanted.
    pub fn wants(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }

    /// Whether this tool is run.
    pub fn chooses(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|part| tool.contains(part))
    }
}
