//! The function of a target that takes an input, and what goes with it.

use object::{Object, ObjectSection};

/// A function that takes an input; all addresses are those before loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it is.
    pub(crate) at: u64,
    /// Whose convention it follows.
    pub(crate) kind: EntryKind,
    /// Where the counters of the compiler's coverage are.
    pub(crate) counters: Option<(u64, u64)>,
    /// Where libFuzzer has its callbacks before comparisons, in the order of `CALLBACKS`; 0 where
    /// it has none. In a loop they return at once: the engine that they tell does not run.
    callbacks: [u64; CALLBACKS.len()],
}

/// What `-fsanitize-coverage=trace-cmp` calls, and libFuzzer defines.
const CALLBACKS: [&str; 9] = [
    "__sanitizer_cov_trace_cmp1",
    "__sanitizer_cov_trace_cmp2",
    "__sanitizer_cov_trace_cmp4",
    "__sanitizer_cov_trace_cmp8",
    "__sanitizer_cov_trace_const_cmp1",
    "__sanitizer_cov_trace_const_cmp2",
    "__sanitizer_cov_trace_const_cmp4",
    "__sanitizer_cov_trace_const_cmp8",
    "__sanitizer_cov_trace_switch",
];

/// Whose function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// `target_main` of ddfuzz's own targets: it returns an exit status.
    Target,
    /// `LLVMFuzzerTestOneInput`: it returns whether libFuzzer may keep the input, which is no
    /// exit status. The initializer, where there is one, is called once before it.
    LibFuzzer {
        /// `LLVMFuzzerInitialize`.
        initialize: Option<u64>,
    },
}

/// Where the counters of `-fsanitize-coverage=inline-8bit-counters` stand; it stays when symbols
/// are stripped.
const COUNTERS: &str = "__sancov_cntrs";

/// What a symbol table tells of entry functions, whatever the order of its symbols.
#[derive(Default)]
pub(crate) struct EntryFunctions {
    target_main: Option<u64>,
    test_one_input: Option<u64>,
    initialize: Option<u64>,
    callbacks: [u64; CALLBACKS.len()],
}

impl EntryFunctions {
    /// Takes note of a symbol. What the program only asks for has no address.
    pub(crate) fn meet(&mut self, name: &str, address: u64) {
        if let Some(number) = CALLBACKS.iter().position(|known| *known == name) {
            self.callbacks[number] = address;
            return;
        }
        let place = match name {
            "target_main" => &mut self.target_main,
            "LLVMFuzzerTestOneInput" => &mut self.test_one_input,
            "LLVMFuzzerInitialize" => &mut self.initialize,
            _ => return,
        };
        if address != 0 {
            place.get_or_insert(address);
        }
    }

    /// The entry of the program whose symbols these are.
    pub(crate) fn entry<'data>(self, file: &impl Object<'data>) -> Option<Entry> {
        // A harness of libFuzzer may call a `target_main`; its `main` is libFuzzer's all the same.
        let (at, kind) = match (self.test_one_input, self.target_main) {
            (Some(at), _) => {
                let initialize = self.initialize;
                (at, EntryKind::LibFuzzer { initialize })
            }
            (None, Some(at)) => (at, EntryKind::Target),
            (None, None) => return None,
        };
        let counters = file.section_by_name(COUNTERS).and_then(|section| {
            let end = section.address().checked_add(section.size())?;
            (section.size() > 0).then_some((section.address(), end))
        });
        let callbacks = match kind {
            EntryKind::LibFuzzer { .. } => self.callbacks,
            EntryKind::Target => Default::default(),
        };
        Some(Entry {
            at,
            kind,
            counters,
            callbacks,
        })
    }
}

impl Entry {
    /// As `entry_from` of `runtime/entry.h` reads it.
    pub(crate) fn words(&self) -> String {
        let (kind, initialize) = match self.kind {
            EntryKind::Target => ('t', 0),
            EntryKind::LibFuzzer { initialize } => ('f', initialize.unwrap_or(0)),
        };
        let (start, end) = self.counters.unwrap_or((0, 0));
        let mut words = format!("{kind},{:x},{initialize:x},{start:x},{end:x}", self.at);
        for callback in self.callbacks.iter().filter(|callback| **callback != 0) {
            words.push_str(&format!(",{callback:x}"));
        }
        words
    }

    /// Whether it is libFuzzer's.
    pub(crate) fn is_fuzzer(&self) -> bool {
        matches!(self.kind, EntryKind::LibFuzzer { .. })
    }

    /// Its coverage, in a few words for people.
    pub(crate) fn coverage(&self) -> String {
        match self.counter_count() {
            0 => "without coverage counters".to_owned(),
            count => format!("with {count} coverage counters"),
        }
    }

    /// How many counters it has.
    pub(crate) fn counter_count(&self) -> usize {
        let (start, end) = self.counters.unwrap_or((0, 0));
        usize::try_from(end.saturating_sub(start)).unwrap_or(0)
    }
}
