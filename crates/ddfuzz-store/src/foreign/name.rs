//! What the name of a crash file says.

/// The fuzzers whose names are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuzzer {
    /// AFL, AFL++ and what names its files alike (LibAFL's `AflNaming`).
    Afl,
    /// honggfuzz.
    Honggfuzz,
    /// libFuzzer, and so cargo-fuzz.
    LibFuzzer,
}

/// How the input ended for the fuzzer that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It died of this signal (a Linux number).
    Signal(i32),
    /// It crashed; nothing says how.
    Crash,
    /// It ran out of time.
    Timeout,
    /// It ran out of memory.
    OutOfMemory,
    /// It leaked memory.
    Leak,
    /// It was slow, and nothing else.
    Slow,
}

/// What the name of a crash file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashName {
    /// Who named it.
    pub fuzzer: Fuzzer,
    /// How it ended there.
    pub promise: Promise,
    /// Whether the whole name is as the fuzzer makes it. `crash-1` begins like a name of
    /// libFuzzer, whose names end with a hash.
    pub exact: bool,
}

/// The beginnings of libFuzzer's names (`-artifact_prefix`, then one of these).
const LIBFUZZER: [(&str, Promise); 6] = [
    ("crash-", Promise::Crash),
    ("timeout-", Promise::Timeout),
    ("oom-", Promise::OutOfMemory),
    ("leak-", Promise::Leak),
    ("slow-unit-", Promise::Slow),
    ("minimized-from-", Promise::Crash),
];

/// The signals by which honggfuzz names its files.
const SIGNALS: [(&str, i32); 11] = [
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGSEGV", 11),
    ("SIGXCPU", 24),
    ("SIGVTALRM", 26),
    ("SIGSYS", 31),
];

impl CrashName {
    /// Reads a name; `None` where none of the fuzzers would have given it. Bytes that are not
    /// UTF-8 occur in none of their names.
    pub fn parse(name: &str) -> Option<CrashName> {
        afl(name)
            .or_else(|| honggfuzz(name))
            .or_else(|| libfuzzer(name))
    }

    /// What it says, for people: `sig:11`, `a timeout`.
    pub fn said(&self) -> String {
        match self.promise {
            Promise::Signal(number) => match SIGNALS.iter().find(|(_, known)| *known == number) {
                Some((name, _)) => (*name).to_owned(),
                None => format!("signal {number}"),
            },
            Promise::Crash => "a crash".to_owned(),
            Promise::Timeout => "a timeout".to_owned(),
            Promise::OutOfMemory => "out of memory".to_owned(),
            Promise::Leak => "a leak".to_owned(),
            Promise::Slow => "a slow unit".to_owned(),
        }
    }
}

/// `id:000000,sig:11,src:000002,time:31,execs:87,op:havoc,rep:4`; with `_` for `:` where AFL++ was
/// built for file systems that have no colons. A hang has no `sig`, and neither has an entry of
/// the queue, which only its directory tells apart.
fn afl(name: &str) -> Option<CrashName> {
    let rest = name.strip_prefix("id")?;
    let separator = rest.chars().next().filter(|c| matches!(c, ':' | '_'))?;
    let mut fields = rest[1..].split(',');
    let id = fields.next()?;
    if id.len() < 6 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let signal = fields.find_map(|field| {
        let (key, value) = field.split_once(separator)?;
        (key == "sig").then(|| value.parse::<i32>().ok()).flatten()
    });
    Some(CrashName {
        fuzzer: Fuzzer::Afl,
        promise: match signal {
            Some(number @ 1..) => Promise::Signal(number),
            _ => Promise::Timeout,
        },
        exact: true,
    })
}

/// `SIGSEGV.PC.555555555189.STACK.18e5a9d2.CODE.1.ADDR.0x0.INSTR.mov____%eax,(%rdx).fuzz`, with a
/// time and a number before the ending where all crashes are saved. A run out of time is a
/// SIGVTALRM, SIGXCPU or SIGKILL.
fn honggfuzz(name: &str) -> Option<CrashName> {
    let (signal, rest) = name.split_once(".PC.")?;
    if !rest.contains(".STACK.") || !rest.contains(".CODE.") {
        return None;
    }
    let known = SIGNALS.iter().find(|(known, _)| *known == signal);
    Some(CrashName {
        fuzzer: Fuzzer::Honggfuzz,
        promise: match known {
            Some((_, 9 | 24 | 26)) => Promise::Timeout,
            Some((_, number)) => Promise::Signal(*number),
            None => Promise::Crash,
        },
        exact: known.is_some() || signal.starts_with("SIG"),
    })
    .filter(|named| named.exact)
}

/// `crash-` and 40 hex digits of SHA-1.
fn libfuzzer(name: &str) -> Option<CrashName> {
    let (begin, promise) = LIBFUZZER
        .iter()
        .find(|(begin, _)| name.starts_with(begin))?;
    let hash = &name[begin.len()..];
    Some(CrashName {
        fuzzer: Fuzzer::LibFuzzer,
        promise: *promise,
        exact: hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
    })
}
