//! Memory blow-ups: each is named by the call that eats the memory.

use std::time::Duration;

use ddfuzz::exec::{Ended, Limits};
use ddfuzz::triage::{Triager, Verdict};

use crate::hang::programs::{PLAIN, STRIPPED, build};
use crate::start::Starter;
use crate::{keys, own_names};

const EATERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define FAR __attribute__((noinline, noclone))
static volatile int yes = 1;
static void *volatile kept;
FAR static void fill(size_t size) { void **block = malloc(size); memset(block, 1, size); *block = kept; kept = block; }
FAR static void eating(void) { while (yes) fill(100000); }
FAR static void growing(void) { size_t size = 1000; char *all = NULL; while (yes) { all = realloc(all, size += 2000000); memset(all, 1, size); } }
FAR static void feed(size_t size) { fill(size); fill(size / 2); }
FAR static void feasting(void) { while (yes) feed(70000); }
/* gcc would put `abort` into a part of its own, far away: another function by the unwind tables. */
__attribute__((optimize("no-reorder-blocks-and-partition")))
FAR static void doubling(void)
{
    size_t size = 1 << 20;
    char *all = malloc(size);
    memset(all, 1, size);
    while (yes) {
        if (!(all = realloc(all, 2 * size)) || 2 * size > (size_t)250 << 20) abort();
        memset(all + size, 1, size);
        size *= 2;
    }
}
int main(void)
{
    char word[20] = "";
    fgets(word, sizeof word, stdin);
    if (!strcmp(word, "eating")) eating();
    if (!strcmp(word, "growing")) growing();
    if (!strcmp(word, "feasting")) feasting();
    if (!strcmp(word, "doubling")) doubling();
    return 0;
}
"#;

/// The last one gives up when it has more than it may, before or after anybody has looked.
const NAMES: [&str; 4] = ["eating", "growing", "feasting", "doubling"];

fn triager(variant: (&[&str], bool), megabytes: u64) -> Triager {
    let limits = Limits {
        memory: megabytes << 20,
        ..Limits::with_cpu(Duration::from_secs(10))
    };
    Triager::new(Box::new(Starter {
        limits,
        ..Starter::new(&build("eaters", EATERS, variant))
    }))
}

#[test]
fn a_blow_up_is_named_by_the_call_that_eats_the_memory() {
    let mut triager = triager(PLAIN, 100);
    for name in NAMES {
        let Ok(Verdict::Crash(crash)) = triager.examine(name.as_bytes()) else {
            panic!("{name} ends");
        };
        assert_eq!(crash.class.0, "oom");
        assert_eq!(crash.ended, Ended::OutOfMemory);
        assert_eq!(own_names(&crash).first(), Some(&name), "{:?}", crash.frames);
    }
}

#[test]
fn a_blow_up_has_the_same_keys_without_symbols_and_with_other_limits() {
    let (mut plain, mut stripped) = (triager(PLAIN, 80), triager(STRIPPED, 120));
    for name in NAMES {
        let first = keys(&mut plain, name.as_bytes());
        assert_eq!(keys(&mut stripped, name.as_bytes()), first, "{name}");
    }
}
