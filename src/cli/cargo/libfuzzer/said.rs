//! What a libFuzzer says while it runs.

use std::collections::VecDeque;
use std::path::PathBuf;

/// Lines that are kept, for an error message.
const KEPT: usize = 20;

/// What one process has said so far.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Inputs that it has run, as far as it has told.
    pub runs: u64,
    /// It has run its whole corpus, and goes on with inputs of its own.
    pub is_initialized: bool,
    /// What its corpus reaches, by the last status: `cov` (places) and `ft` (features).
    pub coverage: Option<(u64, u64)>,
    /// A merge has ended early, and went on after the file that ended it.
    pub is_restarted: bool,
    /// Where it wrote inputs that fail.
    pub written: Vec<PathBuf>,
    last: VecDeque<String>,
}

impl Said {
    /// Takes in a line of its standard error.
    pub fn take(&mut self, line: &str) {
        if let Some(status) = line.strip_prefix('#') {
            let mut words = status.split_whitespace();
            if let Some(Ok(runs)) = words.next().map(str::parse::<u64>) {
                self.runs = runs.max(self.runs);
                self.is_initialized |= words.next().is_some_and(|word| word != "READ");
                let mut numbers = words.skip_while(|word| *word != "cov:").skip(1);
                let cov = numbers.next().and_then(|word| word.parse().ok());
                let mut numbers = numbers.skip_while(|word| *word != "ft:").skip(1);
                let ft = numbers.next().and_then(|word| word.parse().ok());
                self.coverage = cov.zip(ft).or(self.coverage);
            }
        } else if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.runs = count.trim().parse().unwrap_or(self.runs);
        } else if let Some(attempt) = line.strip_prefix("MERGE-OUTER: attempt ") {
            self.is_restarted |= attempt.trim() != "1";
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.written.push(PathBuf::from(path.trim_end()));
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// The last line that says why it could not go on, else the last one.
    pub fn why(&self) -> &str {
        let mut lines = self.last.iter().rev().filter(|line| !line.is_empty());
        let error = lines.clone().find(|line| line.contains("ERROR"));
        error.or_else(|| lines.next()).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Said {
        let mut said = Said::default();
        lines.iter().for_each(|line| said.take(line));
        said
    }

    #[test]
    fn runs_are_counted_by_the_last_status() {
        let said = after(&[
            "INFO: seed corpus: files: 3 min: 1b max: 4b total: 9b rss: 30Mb",
            "#4\tINITED cov: 12 ft: 13 corp: 3/9b exec/s: 0 rss: 31Mb",
            "#4096\tpulse  cov: 12 ft: 13 corp: 3/9b lim: 4 exec/s: 2048 rss: 40Mb",
        ]);
        assert_eq!((said.runs, said.is_initialized), (4096, true));
        assert_eq!(said.coverage, Some((12, 13)));
        let said = after(&["#2\tREAD   units: 3", "stat::number_of_executed_units: 77"]);
        assert_eq!((said.runs, said.is_initialized), (77, false));
        assert_eq!(said.coverage, None);
    }

    #[test]
    fn a_merge_that_was_restarted_is_known() {
        let first = [
            "MERGE-OUTER: attempt 1",
            "#4\tDONE   cov: 12 ft: 13 exec/s: 0 rss: 31Mb",
        ];
        let said = after(&first);
        assert_eq!((said.is_restarted, said.coverage), (false, Some((12, 13))));
        let said = after(&["MERGE-OUTER: attempt 1", "MERGE-OUTER: attempt 2"]);
        assert!(said.is_restarted);
    }

    #[test]
    fn the_file_of_the_failing_input_is_named() {
        let said = after(&[
            "==7== ERROR: libFuzzer: deadly signal",
            "artifact_prefix='a b/'; Test unit written to a b/crash-00",
            "Base64: YQ==",
        ]);
        assert_eq!(said.written, [PathBuf::from("a b/crash-00")]);
        assert_eq!(said.why(), "==7== ERROR: libFuzzer: deadly signal");
    }
}
