//! What a run has said of itself while it died.

/// What a run wrote where dying programs say why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The beginning and the end of what it wrote to stderr: 4 KiB and 64 KiB at most. Where
    /// something between them is missing a line says so.
    pub stderr: Vec<u8>,
    /// The report that a sanitizer wrote to its file, 64 KiB of it at most; empty without one.
    pub report: Vec<u8>,
}

/// For what a run is made once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Again {
    /// To see the backtrace of a Rust panic.
    Backtrace,
    /// To let LeakSanitizer look for leaks.
    Leaks,
    /// To let a sanitizer say where a deadly signal came, because nobody traces the run.
    Signals,
    /// To let the sanitizers of its processes say that they are there.
    Introductions,
}
