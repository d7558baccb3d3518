//! Code in programs that is not of them: the runtimes of sanitizers and of libFuzzer, which
//! compare more, at their start alone, than most programs do in all.

/// How the names of their functions begin, behind what C++ puts before names.
const PREFIXES: [&str; 21] = [
    "__afl_",
    "11__sanitizer",
    "14__interception",
    "6__asan",
    "6__lsan",
    "6__msan",
    "6__tsan",
    "7__ubsan",
    "8__hwasan",
    "8__sancov",
    "6fuzzer",
    "St8__Fuzzer",
    "__asan_",
    "__interceptor_",
    "___interceptor_",
    "__lsan_",
    "__msan_",
    "__sanitizer_",
    "__sancov_",
    "__tsan_",
    "__ubsan_",
];

/// Whether a function of this name in the symbol table is of a runtime.
pub(super) fn is_of_runtime(name: &str) -> bool {
    let plain = ["_ZNK", "_ZN", "_ZThn"]
        .iter()
        .find_map(|mark| name.strip_prefix(mark));
    let begins = |prefix: &str| match plain {
        Some(plain) => plain.starts_with(prefix),
        None => prefix.starts_with('_') && name.starts_with(prefix),
    };
    PREFIXES.iter().any(|prefix| begins(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_told_from_programs() {
        for name in [
            "_ZN11__sanitizer10ExtractIntEPKcS1_Pi",
            "_ZNK6fuzzer5Fuzzer3runEv",
            "_ZNSt8__Fuzzer6vectorIhE4sizeEv",
            "__interceptor_strcmp",
            "__afl_auto_init",
            "__asan_report_load1",
        ] {
            assert!(is_of_runtime(name), "{name}");
        }
        for name in [
            "main",
            "parse",
            "_ZN3png6decodeEv",
            "6fuzzer",
            "sanitizer",
            "_Z6fuzzerv",
        ] {
            assert!(!is_of_runtime(name), "{name}");
        }
    }
}
