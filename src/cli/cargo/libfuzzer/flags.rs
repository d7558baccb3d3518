//! The flags that a user gives libFuzzer, as far as a campaign has to know them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Flags, with those taken out that hold for all of a campaign and not for one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// What each process gets.
    pub each: Vec<OsString>,
    /// Directories of inputs; new ones go to the first.
    pub corpora: Vec<PathBuf>,
    /// `-max_total_time`, where it is set.
    pub time: Option<Duration>,
    /// `-runs`, where it is set.
    pub runs: Option<u64>,
    /// The prefix of files for failing inputs, where it is set.
    pub artifact_prefix: Option<OsString>,
}

impl Flags {
    /// Reads the words of a command line.
    pub fn of(words: &[OsString]) -> Flags {
        let mut flags = Flags::default();
        for word in words {
            let text = word.to_string_lossy();
            let number = |name: &str| -> Option<i64> {
                text.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
            };
            if let Some(seconds) = number("-max_total_time") {
                let bounded = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
                flags.time = bounded.map(Duration::from_secs);
            } else if let Some(runs) = number("-runs") {
                flags.runs = u64::try_from(runs).ok();
            } else if let Some(prefix) = text.strip_prefix("-artifact_prefix=") {
                flags.artifact_prefix = Some(prefix.into());
            } else if text.starts_with('-') {
                flags.each.push(word.clone());
            } else {
                flags.corpora.push(word.into());
            }
        }
        flags
    }

    /// Whether it starts processes of its own.
    pub fn starts_processes(&self) -> bool {
        ["fork", "jobs", "workers"]
            .iter()
            .any(|name| self.is_on(name))
    }

    /// Whether a flag of this name is set to something else than 0.
    pub fn is_on(&self, name: &str) -> bool {
        let set = self.value(name);
        set.is_some_and(|value| value != "0")
    }

    /// The last value of a flag.
    pub fn value(&self, name: &str) -> Option<String> {
        let mut values = self.each.iter().filter_map(|word| value(word, name));
        values.next_back()
    }
}

fn value(word: &OsStr, name: &str) -> Option<String> {
    let text = word.to_str()?.strip_prefix('-')?;
    let (own, value) = text.split_once('=')?;
    (own == name).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Flags {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        Flags::of(&words)
    }

    #[test]
    fn what_holds_for_the_campaign_is_taken_out() {
        let flags = flags("-max_total_time=9 -runs=-1 -artifact_prefix=a/ -fork=2 corpus more");
        assert_eq!(flags.time, Some(Duration::from_secs(9)));
        assert_eq!(flags.runs, None);
        assert_eq!(flags.artifact_prefix, Some("a/".into()));
        assert_eq!(flags.each, [OsString::from("-fork=2")]);
        assert_eq!(flags.corpora, [PathBuf::from("corpus"), "more".into()]);
        assert!(flags.is_on("fork") && !flags.is_on("merge"));
    }

    #[test]
    fn a_flag_that_is_set_to_nothing_is_off() {
        let flags = flags("-merge=1 -merge=0 -runs=5 -max_total_time=0");
        assert!(!flags.is_on("merge"));
        assert_eq!((flags.runs, flags.time), (Some(5), None));
    }
}
