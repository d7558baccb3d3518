#![no_main]

use arbitrary_ops::{Bank, Plan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|plan: Plan| {
    Bank::follow(&plan);
});
