//! ELF files: the program that crashed is as hostile as what it was fed. The first eight bytes are an
//! address, the rest is the file; its functions, its symbols, its debug information and its small
//! symbol table are asked for that address.
#![no_main]

use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use ddfuzz::triage::{Symbolizer, function_start_in};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((address, image)) = data.split_first_chunk() else {
        return;
    };
    let address = u64::from_le_bytes(*address);
    let _ = function_start_in(image, address);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(image).expect("the file is written");
    file.rewind().expect("the file is rewound");
    let path: Arc<Path> = Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())).into();
    let _ = Symbolizer::looking_in(Vec::new()).place(&path, address);
});
