//! A table of sessions, written in C++, that is driven by lines of commands:
//!
//! ```text
//! +ID NAME     a session of this name; ID is a lower-case letter
//! =ID NAME     another name for it
//! -ID          its end
//! ?ID          counts the letters of its name
//! ```
//!
//! Two bugs are planted in `cpp/sessions.cpp`: a name that is longer than its buffer, and a session
//! that is used after it was closed. The feature `fixed` takes both out.

use std::ffi::c_void;

unsafe extern "C" {
    fn sessions_new() -> *mut c_void;
    fn sessions_delete(table: *mut c_void);
    fn sessions_open(table: *mut c_void, id: u8, name: *const u8, size: usize) -> bool;
    fn sessions_rename(table: *mut c_void, id: u8, name: *const u8, size: usize) -> bool;
    fn sessions_close(table: *mut c_void, id: u8) -> bool;
    fn sessions_show(table: *mut c_void, id: u8) -> bool;
}

/// A table of sessions.
struct Sessions(*mut c_void);

impl Sessions {
    fn new() -> Sessions {
        // SAFETY: it takes nothing, and gives a table that is deleted once, in `drop`.
        Sessions(unsafe { sessions_new() })
    }

    /// Follows one command; whether it could be followed.
    fn follow(&mut self, line: &[u8]) -> bool {
        let &[command, id @ b'a'..=b'z', ref name @ ..] = line else {
            return false;
        };
        let id = id - b'a';
        let name = name.strip_prefix(b" ").unwrap_or(name);
        // SAFETY: the table lives, `id` is below 26, and `name` has as many bytes as it is said.
        unsafe {
            match command {
                b'+' => sessions_open(self.0, id, name.as_ptr(), name.len()),
                b'=' => sessions_rename(self.0, id, name.as_ptr(), name.len()),
                b'-' => sessions_close(self.0, id),
                b'?' => sessions_show(self.0, id),
                _ => false,
            }
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and deleted nowhere else.
        unsafe { sessions_delete(self.0) }
    }
}

/// Follows the commands in `data`. Gives how many of them could be followed.
pub fn run(data: &[u8]) -> usize {
    let mut sessions = Sessions::new();
    let mut followed = 0;
    for line in data.split(|&byte| byte == b'\n') {
        if sessions.follow(line) {
            followed += 1;
        }
    }
    followed
}
