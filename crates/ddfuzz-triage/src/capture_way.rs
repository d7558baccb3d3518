//! How a crash was captured.

/// How a crash was captured (crash-keys.md, "Capture"); the first that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureWay {
    /// Read off the stopped process from outside.
    Ptrace,
    /// Unwound from what the dying process has copied.
    Copy,
    /// By the first stack of a sanitizer's report.
    Report,
    /// Only what it said names it.
    Text,
    /// Only how it ended is known.
    Status,
}

impl CaptureWay {
    /// As records write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CaptureWay::Ptrace => "ptrace",
            CaptureWay::Copy => "copy",
            CaptureWay::Report => "report",
            CaptureWay::Text => "text",
            CaptureWay::Status => "status",
        }
    }
}
