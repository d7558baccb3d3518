//! What is asked for on the command line.

/// What `--help` prints.
pub const HELP: &str = "\
Measures campaigns: ddfuzz beside LibAFL, AFL++ and libFuzzer.

Usage: cargo bench --bench campaigns [-- [finding] [speed] [share] [workers] [loops]
                                         [guidance] [OPTIONS]]

Without a table's name all six are measured, which takes hours.

  --quick          a smoke run of some minutes: less of everything; options behind it add to it
  --tools NAME,…   only these tools (ddfuzz, ddfuzz-structure, ddfuzz-fork, ddfuzz-persistent,
                   libafl, libafl-fork, libafl-persistent, afl-fuzz, afl-fuzz-fork, afl-fuzz-c,
                   libfuzzer, libfuzzer-value, libfuzzer-fork)
  --bugs NAME,…    finding: only these bugs; guidance: only these programs
  --seeds N        finding, guidance: campaigns for each bug or program, and tool [default: 10]
  --runs N         finding: budget of a campaign, in runs [default: 1000000]
  --cpu SECONDS    finding, loops, guidance: budget of a campaign, in CPU time [default: 60]
  --rounds N       others: how many rounds a median is of [default: 5]
  --scale N        speed: runs of a campaign; a hundredth of it where each run has a process of
                   its own, a tenth of it for other fork servers [default: 2000000]
  --seconds N      share, workers: length of a campaign [default: 600]

Example: cargo bench --bench campaigns -- finding --quick --tools ddfuzz,libafl";

/// What is measured, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tables; all, if empty.
    pub tables: Vec<String>,
    /// The tools by name; all, if empty.
    pub tools: Vec<String>,
    /// The bugs, and the programs of `guidance`, by name; all, if empty.
    pub bugs: Vec<String>,
    /// Campaigns for each bug and tool.
    pub seeds: u64,
    /// Runs of a campaign that looks for a bug.
    pub runs: u64,
    /// Seconds of CPU time of such a campaign.
    pub cpu: u64,
    /// Rounds that a median is of.
    pub rounds: usize,
    /// Runs of a campaign of which the speed is measured.
    pub scale: u64,
    /// Seconds of a campaign that ends by time.
    pub seconds: u64,
}

/// What the command line asks for.
pub enum Asked {
    /// To measure.
    Run(Options),
    /// Only to see whether it would: that is `cargo test`.
    Try,
    /// The help.
    Help,
}

const TABLES: [&str; 6] = ["finding", "speed", "share", "workers", "loops", "guidance"];

impl Options {
    /// For the record.
    pub fn full() -> Options {
        Options {
            tables: Vec::new(),
            tools: Vec::new(),
            bugs: Vec::new(),
            seeds: 10,
            runs: 1_000_000,
            cpu: 60,
            rounds: 5,
            scale: 2_000_000,
            seconds: 600,
        }
    }

    fn quick(self) -> Options {
        Options {
            seeds: 3,
            runs: 100_000,
            cpu: 5,
            rounds: 1,
            scale: 200_000,
            seconds: 10,
            ..self
        }
    }

    /// The options on the command line.
    ///
    /// # Errors
    /// What is wrong with them, and what would be right.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Asked, String> {
        let args: Vec<String> = args.collect();
        // Cargo says so when it is to measure; else words are for tests, and none of ours.
        if !args.iter().any(|arg| arg == "--bench") {
            return Ok(Asked::Try);
        }
        let mut options = Options::full();
        let mut args = args.into_iter().filter(|arg| arg != "--bench");
        while let Some(word) = args.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(Asked::Help),
                "--quick" => options = options.quick(),
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
        let list = || {
            value
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect()
        };
        let number = || {
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or(format!("{option} {value}: a whole number, from 1"))
        };
        match option {
            "--tools" => self.tools = list(),
            "--bugs" => self.bugs = list(),
            "--seeds" => self.seeds = number()?,
            "--runs" => self.runs = number()?,
            "--cpu" => self.cpu = number()?,
            "--rounds" => self.rounds = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--scale" => self.scale = number()?,
            "--seconds" => self.seconds = number()?,
            _ => return Err(format!("no option or table {option}; see --help")),
        }
        Ok(())
    }

    /// Whether this table is wanted.
    pub fn wants(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }

    /// Whether this tool is run.
    pub fn chooses_tool(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|name| name == tool)
    }

    /// Whether one of LibAFL's fuzzers is run.
    pub fn chooses_libafl(&self) -> bool {
        let is_one = |name: &String| name.starts_with("libafl");
        self.tools.is_empty() || self.tools.iter().any(is_one)
    }

    /// Whether this bug is looked for, or this program measured.
    pub fn chooses_bug(&self, bug: &str) -> bool {
        self.bugs.is_empty() || self.bugs.iter().any(|name| name == bug)
    }
}
