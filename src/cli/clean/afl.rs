//! The target of an output directory of AFL++, as its statistics name it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The command line of the target that was fuzzed into `corpus`, an output directory of AFL++ or
/// of one instance; `None` where none is told.
pub fn target_of(corpus: &Path) -> Option<Vec<OsString>> {
    let own = corpus.join("fuzzer_stats");
    let mut below: Vec<PathBuf> = std::fs::read_dir(corpus)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    below.sort();
    let below = below.into_iter().map(|path| path.join("fuzzer_stats"));
    std::iter::once(own)
        .chain(below)
        .find_map(|stats| target_in(&std::fs::read(stats).ok()?))
}

/// The words behind `--` of the line `command_line : afl-fuzz -i in -o out -- program @@`.
fn target_in(stats: &[u8]) -> Option<Vec<OsString>> {
    let line = stats.split(|byte| *byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(b"command_line")?.trim_ascii_start();
        Some(rest.strip_prefix(b":")?.trim_ascii())
    })?;
    let words = line.split(|byte| *byte == b' ');
    let words = words.filter(|word| !word.is_empty());
    let target: Vec<OsString> = (words.skip_while(|word| *word != b"--").skip(1))
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    (!target.is_empty()).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_stands_behind_the_two_dashes() {
        let stats =
            b"start_time        : 1\ncommand_line      : afl-fuzz -i in -o out -- ./tiff -q @@\n";
        let target = target_in(stats).unwrap();
        assert_eq!(target, ["./tiff", "-q", "@@"]);
    }

    #[test]
    fn a_line_without_two_dashes_tells_no_target() {
        assert_eq!(
            target_in(b"command_line : afl-fuzz -i in -o out ./x\n"),
            None
        );
        assert_eq!(target_in(b"run_time : 3\n"), None);
        assert_eq!(target_in(b""), None);
    }

    #[test]
    fn the_first_instance_that_tells_names_it() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b", "command_line : afl-fuzz -- /bin/cat\n"), ("a", "")] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("fuzzer_stats"), text).unwrap();
        }
        assert_eq!(target_of(dir.path()).unwrap(), ["/bin/cat"]);
        assert_eq!(target_of(&dir.path().join("none")), None);
    }
}
