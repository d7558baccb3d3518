//! The callbacks that compilers put before comparisons (`-fsanitize-coverage=trace-cmp`).
//!
//! Their names, arguments and widths are those of clang's SanitizerCoverage documentation, "Tracing
//! data flow"; gcc has the same.

/// Which callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookKind {
    /// Two operands of so many bytes; for the second form, the first of them a constant.
    Compare { width: usize, constant: bool },
    /// A value, and the list of its cases.
    Switch,
    /// What a sanitizer tells libFuzzer of a function that compares. Only a jump can hear it.
    Function(&'static str),
}

/// The number of each kind (`enum hook_kind` of `runtime/observe.h`) is its place here.
const NAMES: [(&str, HookKind); 17] = [
    ("__sanitizer_cov_trace_cmp1", compare(1, false)),
    ("__sanitizer_cov_trace_cmp2", compare(2, false)),
    ("__sanitizer_cov_trace_cmp4", compare(4, false)),
    ("__sanitizer_cov_trace_cmp8", compare(8, false)),
    ("__sanitizer_cov_trace_const_cmp1", compare(1, true)),
    ("__sanitizer_cov_trace_const_cmp2", compare(2, true)),
    ("__sanitizer_cov_trace_const_cmp4", compare(4, true)),
    ("__sanitizer_cov_trace_const_cmp8", compare(8, true)),
    ("__sanitizer_cov_trace_switch", HookKind::Switch),
    function("__sanitizer_weak_hook_memcmp"),
    function("__sanitizer_weak_hook_strncmp"),
    function("__sanitizer_weak_hook_strcmp"),
    function("__sanitizer_weak_hook_strncasecmp"),
    function("__sanitizer_weak_hook_strcasecmp"),
    function("__sanitizer_weak_hook_memmem"),
    function("__sanitizer_weak_hook_strstr"),
    function("__sanitizer_weak_hook_strcasestr"),
];

const fn function(name: &'static str) -> (&'static str, HookKind) {
    (name, HookKind::Function(name))
}

const fn compare(width: usize, constant: bool) -> HookKind {
    HookKind::Compare { width, constant }
}

/// Bytes of the jump that is written over an entry (`JUMP` of `runtime/jump.h`).
const JUMP: u64 = 5;

/// A callback that a program defines itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// Where it is, before loading.
    pub(crate) address: u64,
    /// Which it is.
    pub(crate) kind: HookKind,
    /// Bytes up to the next function.
    room: u64,
}

impl Hook {
    /// Its kind's number.
    pub(crate) fn number(&self) -> u64 {
        let place = NAMES.iter().position(|(_, kind)| *kind == self.kind);
        place.unwrap_or_default() as u64
    }

    /// Whether a jump can stand over its entry.
    pub(crate) fn takes_jump(&self) -> bool {
        self.room >= JUMP
    }

    /// Whether a breakpoint at its entry tells what is compared.
    pub(crate) fn can_be_listened_to(&self) -> bool {
        !matches!(self.kind, HookKind::Function(_))
    }
}

/// The callbacks among the functions (name and address) of a program. Where a linker has folded
/// several into one nobody can tell which was called: they are left out.
pub(crate) fn hooks_among<'a>(functions: &[(&'a str, u64)]) -> Vec<Hook> {
    let kind_of = |name: &str| NAMES.iter().find(|(known, _)| *known == name);
    let mut found: Vec<(&'a str, Hook)> = Vec::new();
    let mut starts: Vec<u64> = functions.iter().map(|(_, address)| *address).collect();
    starts.sort_unstable();
    for (name, address) in functions {
        let Some((_, kind)) = kind_of(name) else {
            continue;
        };
        if found.iter().any(|(known, _)| known == name) {
            continue;
        }
        let next = starts.partition_point(|start| start <= address);
        let hook = Hook {
            address: *address,
            kind: *kind,
            room: starts.get(next).map_or(u64::MAX, |next| next - address),
        };
        found.push((name, hook));
    }
    let all: Vec<Hook> = found.into_iter().map(|(_, hook)| hook).collect();
    let folded = |hook: &&Hook| {
        let same = all.iter().filter(|other| other.address == hook.address);
        same.count() > 1
    };
    all.iter().filter(|hook| !folded(hook)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_found_with_the_room_for_a_jump() {
        let functions = [
            ("main", 0x40),
            ("__sanitizer_cov_trace_cmp4", 0x10),
            ("__sanitizer_cov_trace_switch", 0x14),
            ("__sanitizer_cov_trace_pc", 0x30),
        ];
        let found = hooks_among(&functions);
        let told: Vec<_> = found
            .iter()
            .map(|hook| (hook.address, hook.number(), hook.takes_jump()))
            .collect();
        assert_eq!(told, [(0x10, 2, false), (0x14, 8, true)]);
    }

    #[test]
    fn callbacks_that_were_folded_into_one_are_left_out() {
        let functions = [
            ("__sanitizer_cov_trace_cmp1", 0x10),
            ("__sanitizer_cov_trace_cmp2", 0x10),
            ("__sanitizer_cov_trace_cmp8", 0x20),
            ("__sanitizer_cov_trace_cmp8", 0x20),
        ];
        let found: Vec<u64> = hooks_among(&functions).iter().map(Hook::number).collect();
        assert_eq!(found, [3]);
    }
}
