//! The data segments of the libraries of a process.

use std::path::Path;

use ddfuzz_triage::memory::Maps;
use nix::unistd::Pid;

use crate::unfold::Area;

/// Number of bytes before the address of a thread that count as the libraries' variables of this
/// thread.
const OF_THREAD: u64 = 4096;

/// Returns the writable memory of the libraries of a process, and the variables of the thread at
/// the address `thread`. For a static program, which contains its libraries, also returns its own
/// data.
pub fn library_data(maps: &Maps, pid: Pid, thread: u64) -> Vec<Area> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let is_library = |path: &Path| path != program;
    let is_dynamic =
        (maps.iter()).any(|it| it.executable && it.is_file() && is_library(&it.file_path()));
    let mut found = vec![(thread.saturating_sub(OF_THREAD), thread)];
    let mut before = (0, false);
    for mapping in maps.iter() {
        let of_file = mapping.is_file() && (is_library(&mapping.file_path()) || !is_dynamic);
        // What is zero at first follows the data of a library.
        let is_rest = before == (mapping.start, true) && !mapping.is_file();
        before = (mapping.end, of_file);
        let is_data = mapping.writable && mapping.base_name() != "[heap]";
        if is_data && (of_file || is_rest) {
            found.push((mapping.start, mapping.end));
        }
    }
    let area = |(start, end)| Area {
        start,
        end,
        is_block: false,
    };
    found.into_iter().map(area).collect()
}
