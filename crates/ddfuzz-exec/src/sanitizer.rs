//! The sanitizers of clang, gcc and rustc, and the names by which each goes.

use serde::{Deserialize, Serialize};

/// A sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sanitizer {
    /// AddressSanitizer.
    Asan,
    /// HWAddressSanitizer.
    Hwasan,
    /// LeakSanitizer.
    Lsan,
    /// MemorySanitizer.
    Msan,
    /// ThreadSanitizer.
    Tsan,
    /// UndefinedBehaviorSanitizer.
    Ubsan,
}

impl Sanitizer {
    /// All of them.
    pub const ALL: [Sanitizer; 6] = [
        Sanitizer::Asan,
        Sanitizer::Hwasan,
        Sanitizer::Lsan,
        Sanitizer::Msan,
        Sanitizer::Tsan,
        Sanitizer::Ubsan,
    ];

    /// Its short name, as it stands in classes: `asan`.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Asan => "asan",
            Sanitizer::Hwasan => "hwasan",
            Sanitizer::Lsan => "lsan",
            Sanitizer::Msan => "msan",
            Sanitizer::Tsan => "tsan",
            Sanitizer::Ubsan => "ubsan",
        }
    }

    /// Its whole name, as its reports have it.
    pub fn title(self) -> &'static str {
        match self {
            Sanitizer::Asan => "AddressSanitizer",
            Sanitizer::Hwasan => "HWAddressSanitizer",
            Sanitizer::Lsan => "LeakSanitizer",
            Sanitizer::Msan => "MemorySanitizer",
            Sanitizer::Tsan => "ThreadSanitizer",
            Sanitizer::Ubsan => "UndefinedBehaviorSanitizer",
        }
    }

    /// Its name on the command line of compilers, `-fsanitize=FLAG`.
    pub fn flag(self) -> &'static str {
        match self {
            Sanitizer::Asan => "address",
            Sanitizer::Hwasan => "hwaddress",
            Sanitizer::Lsan => "leak",
            Sanitizer::Msan => "memory",
            Sanitizer::Tsan => "thread",
            Sanitizer::Ubsan => "undefined",
        }
    }

    /// The variable that it reads its options from.
    pub fn variable(self) -> &'static str {
        match self {
            Sanitizer::Asan => "ASAN_OPTIONS",
            Sanitizer::Hwasan => "HWASAN_OPTIONS",
            Sanitizer::Lsan => "LSAN_OPTIONS",
            Sanitizer::Msan => "MSAN_OPTIONS",
            Sanitizer::Tsan => "TSAN_OPTIONS",
            Sanitizer::Ubsan => "UBSAN_OPTIONS",
        }
    }

    /// What the names of symbols begin with that only programs with it have; of
    /// UndefinedBehaviorSanitizer also those with the runtime of another sanitizer or of libFuzzer.
    pub fn symbol(self) -> &'static str {
        match self {
            Sanitizer::Asan => "__asan_init",
            Sanitizer::Hwasan => "__hwasan_init",
            Sanitizer::Lsan => "__lsan_init",
            Sanitizer::Msan => "__msan_init",
            Sanitizer::Tsan => "__tsan_init",
            Sanitizer::Ubsan => "__ubsan_handle_",
        }
    }

    /// Whether it keeps a shadow of all memory: terabytes of address space, for which no limit on
    /// that leaves room, and another layout of stack and heap.
    pub fn shadows(self) -> bool {
        !matches!(self, Sanitizer::Lsan | Sanitizer::Ubsan)
    }

    /// The one whose reports make this class (`asan:KIND`).
    pub fn of_class(class: &str) -> Option<Sanitizer> {
        let (tool, _) = class.split_once(':')?;
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| sanitizer.name() == tool)
    }

    /// The one of which this symbol tells.
    pub(crate) fn of_symbol(name: &str) -> Option<Sanitizer> {
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| name.starts_with(sanitizer.symbol()))
    }

    /// The one of this flag.
    pub fn of_flag(flag: &str) -> Option<Sanitizer> {
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| sanitizer.flag() == flag)
    }
}
