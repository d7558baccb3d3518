//! Runs `afl-fuzz` once, and reads what it wrote.

use std::path::PathBuf;
use std::process::Command;

use crate::programs::{Tools, library};

/// Number of executions after which `afl-fuzz` ends; more than trimming a seed may take.
const RUNS: &str = "4500";
/// Time limit of one run of the target, in milliseconds; no run of these programs takes that long,
/// even on a busy machine.
const LIMIT: &str = "10000";

/// The trimming of one queue entry: sizes and executions.
#[derive(Clone, Copy, Debug)]
pub struct Trimming {
    /// Size of the queue entry before trimming, in bytes.
    pub before: usize,
    pub after: usize,
    pub executions: u64,
}

/// A campaign of `afl-fuzz` that has ended.
pub struct Campaign {
    folder: tempfile::TempDir,
    program: PathBuf,
    /// Output of `afl-fuzz` and of the loaded libraries.
    pub said: String,
}

impl Campaign {
    /// Runs `afl-fuzz` on a parser until it ends: with this library and the environment variables
    /// `with`, or without the library if `with` is `None`.
    pub fn on(
        tools: &Tools,
        program: &str,
        seeds: &[&[u8]],
        with: Option<&[(&str, &str)]>,
    ) -> Campaign {
        let folder = tempfile::tempdir().expect("a folder");
        let program = tools.parser(program);
        let inside = |name: &str| folder.path().join(name);
        std::fs::create_dir(inside("seeds")).unwrap();
        for (index, seed) in seeds.iter().enumerate() {
            std::fs::write(inside("seeds").join(index.to_string()), seed).unwrap();
        }
        std::fs::write(inside("runs"), [0; 16]).unwrap();
        let mut libraries = tools.meter().into_os_string();
        if with.is_some() {
            libraries = [library().as_os_str(), &libraries].join(";".as_ref());
        }
        let mut fuzz = Command::new(&tools.fuzz);
        fuzz.envs(with.unwrap_or_default().iter().copied());
        fuzz.env("AFL_CUSTOM_MUTATOR_LIBRARY", libraries);
        fuzz.envs([("RUNS", inside("runs")), ("METER", inside("meter"))]);
        for name in [
            "NO_UI",
            "SKIP_CPUFREQ",
            "NO_AFFINITY",
            "I_DONT_CARE_ABOUT_MISSING_CRASHES",
        ] {
            fuzz.env(format!("AFL_{name}"), "1");
        }
        for name in [
            "AFL_DISABLE_TRIM",
            "AFL_PYTHON_MODULE",
            "AFL_CUSTOM_MUTATOR_ONLY",
        ] {
            fuzz.env_remove(name);
        }
        // In the order of the queue, by a fixed seed.
        fuzz.args(["-Z", "-s", "1", "-E", RUNS, "-t", LIMIT]);
        fuzz.arg("-i")
            .arg(inside("seeds"))
            .arg("-o")
            .arg(inside("out"));
        let output = fuzz.arg("--").arg(&program).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{:?}: {said}", output.status);
        Campaign {
            folder,
            program,
            said,
        }
    }

    /// Returns the sizes and executions of the trimmings of all queue entries that were fuzzed, in
    /// order.
    pub fn trimmings(&self) -> Vec<Trimming> {
        let meter = std::fs::read_to_string(self.folder.path().join("meter")).unwrap();
        let lines: Vec<Vec<&str>> = meter
            .lines()
            .map(|line| line.splitn(4, ' ').collect())
            .collect();
        let mut seen = Vec::new();
        let mut trimmings = Vec::new();
        for pair in lines.windows(2) {
            let [chosen, trimmed] = pair else { continue };
            // An entry that was chosen again is not trimmed again; others are passed over.
            if chosen[0] == "chosen" && trimmed[0] == "trimmed" && !seen.contains(&chosen[3]) {
                seen.push(chosen[3]);
                let [[first, before], [last, after]] = [chosen, trimmed]
                    .map(|line| [1, 2].map(|at: usize| line[at].parse::<u64>().unwrap()));
                trimmings.push(Trimming {
                    before: before as usize,
                    after: after as usize,
                    executions: last - first,
                });
            }
        }
        trimmings
    }

    /// Returns the sizes and executions of the trimming of the first queue entry; panics if there
    /// is none.
    pub fn trimming(&self) -> Trimming {
        let trimmings = self.trimmings();
        *trimmings
            .first()
            .unwrap_or_else(|| panic!("nothing was trimmed: {}", self.said))
    }

    /// Reads the queue entry with this number, in its trimmed form, from the output folder.
    pub fn entry(&self, number: u32) -> Vec<u8> {
        let queue = self.folder.path().join("out/default/queue");
        let prefix = format!("id:{number:06}");
        let mut files = std::fs::read_dir(queue).unwrap().map(|file| file.unwrap());
        let found = files.find(|file| file.file_name().to_string_lossy().starts_with(&prefix));
        std::fs::read(found.expect("the entry is there").path()).unwrap()
    }

    /// Runs `afl-showmap` on an input and returns the edges that the input covers, each with its
    /// class of execution counts.
    pub fn map_of(&self, tools: &Tools, input: &[u8]) -> Vec<(String, u32)> {
        let place = |name: &str| self.folder.path().join(name);
        std::fs::write(place("input"), input).unwrap();
        let mut showmap = Command::new(&tools.showmap);
        // Counts as they are: of those in classes, `afl-showmap` 4.04c leaves edges out.
        showmap.args(["-q", "-r", "-t", LIMIT, "-o"]);
        showmap.arg(place("map"));
        showmap.stdin(std::fs::File::open(place("input")).unwrap());
        let output = showmap.arg("--").arg(&self.program).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let map = std::fs::read_to_string(place("map")).unwrap();
        let edges = map.lines().filter_map(|line| line.split_once(':'));
        let map: Vec<_> = edges
            .map(|(edge, count)| (edge.to_owned(), class(count.parse().unwrap())))
            .collect();
        assert!(map.len() > 5, "{map:?}");
        map
    }
}

/// Returns the class of an execution count in AFL: 1, 2, 3, and from 4, 8, 16, 32 and 128 on.
fn class(count: u32) -> u32 {
    let begins = [128, 32, 16, 8, 4];
    begins
        .into_iter()
        .find(|&begin| count >= begin)
        .unwrap_or(count)
}
