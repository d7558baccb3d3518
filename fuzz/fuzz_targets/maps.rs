//! `/proc/PID/maps`: a target chooses the names in it. Every mapping that is read must lie in order
//! and be found again.
#![no_main]

use ddfuzz::triage::memory::Maps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let maps = Maps::parse(data);
    for mapping in maps.iter() {
        assert!(mapping.start < mapping.end);
        assert!(maps.find(mapping.start).is_some());
        let _ = (mapping.base_name(), mapping.file_path(), mapping.is_file());
    }
});
