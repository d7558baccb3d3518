//! The names of crash files, of AFL++ and of other fuzzers: whoever may write into a directory
//! chooses them.
#![no_main]

use ddfuzz::store::foreign::{CrashName, Fuzzer, ReportedEnd};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    let Some(read) = CrashName::parse(name) else {
        return;
    };
    assert!(!read.describe().is_empty());
    match read.fuzzer {
        Fuzzer::Afl => {
            assert!(name.starts_with("id"));
            let is_signal = matches!(read.reported_end, ReportedEnd::Signal(number) if number > 0);
            assert!(is_signal || read.reported_end == ReportedEnd::Timeout);
        }
        Fuzzer::Honggfuzz => assert!(name.starts_with("SIG") && name.contains(".PC.")),
        Fuzzer::LibFuzzer if read.exact => {
            let hash = name.rsplit('-').next().unwrap_or_default();
            assert!(hash.len() == 40 && hash.bytes().all(|one| one.is_ascii_hexdigit()));
        }
        Fuzzer::LibFuzzer => assert!(name.contains('-')),
    }
});
