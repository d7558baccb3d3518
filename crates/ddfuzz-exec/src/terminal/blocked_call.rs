//! The system calls in which the threads of a program at a terminal sleep: whether the program goes
//! on by itself after a time, or waits for a key.

/// A system call in which a thread sleeps, as `/proc/PID/syscall` shows it: its number and its
/// arguments.
struct BlockedCall {
    number: i64,
    arguments: [u64; 6],
}

/// What a thread waits for, judged by its system call: nothing, the end of a time, input, either of
/// both, or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    /// The thread runs, or has ended.
    Nothing,
    /// The thread sleeps for a given time.
    Time,
    /// The thread waits for input on files, at most for a given time.
    InputOrTime,
    /// The thread waits for input on files.
    Input,
    /// The thread waits for something other than input or time, such as the end of another process.
    Other,
}

/// Returns true if a program at a terminal will go on by itself, without another key. `calls`: the
/// line of `/proc/PID/syscall` for each of its threads; `has_unread`: whether typed keys are
/// unread. A thread must be running or sleep for a given time; if keys are unread, it may also wait
/// for input for a given time. If no key is unread, a thread that waits for input makes the result
/// false, since the program waits for a key.
pub(super) fn goes_on_by_itself(calls: &[String], has_unread: bool) -> bool {
    let waits: Vec<WaitsFor> = calls.iter().map(|line| waits_for(line)).collect();
    let is_any = |of: &[WaitsFor]| waits.iter().any(|one| of.contains(one));
    match has_unread {
        true => is_any(&[WaitsFor::Nothing, WaitsFor::Time, WaitsFor::InputOrTime]),
        false => {
            is_any(&[WaitsFor::Nothing, WaitsFor::Time])
                && !is_any(&[WaitsFor::Input, WaitsFor::InputOrTime])
        }
    }
}

fn waits_for(line: &str) -> WaitsFor {
    if line.starts_with("running") {
        return WaitsFor::Nothing;
    }
    match blocked(line) {
        Some(call) => call.waits_for(),
        None => WaitsFor::Other,
    }
}

/// Parses `line`, the content of a thread's `/proc/PID/syscall`, to the system call in which the
/// thread sleeps; `None` if it sleeps in none.
fn blocked(line: &str) -> Option<BlockedCall> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(BlockedCall { number, arguments })
}

impl BlockedCall {
    fn waits_for(&self) -> WaitsFor {
        match self.number {
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep | libc::SYS_restart_syscall => {
                WaitsFor::Time
            }
            libc::SYS_read | libc::SYS_readv => WaitsFor::Input,
            libc::SYS_ppoll => self.polls(self.arguments[1], self.has_pointer(2)),
            libc::SYS_pselect6 => self.polls(self.arguments[0], self.has_pointer(4)),
            libc::SYS_epoll_pwait => self.polls(1, self.has_milliseconds(3)),
            libc::SYS_epoll_pwait2 => self.polls(1, self.has_pointer(3)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => self.polls(self.arguments[1], self.has_milliseconds(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => self.polls(self.arguments[0], self.has_pointer(4)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => self.polls(1, self.has_milliseconds(3)),
            _ => WaitsFor::Other,
        }
    }

    /// Returns what a thread waits for in a call that watches `files` files for input; `is_timed`:
    /// the call waits at most for a given time.
    fn polls(&self, files: u64, is_timed: bool) -> WaitsFor {
        match (files, is_timed) {
            (0, true) => WaitsFor::Time,
            (0, false) => WaitsFor::Other,
            (_, true) => WaitsFor::InputOrTime,
            (_, false) => WaitsFor::Input,
        }
    }

    /// Whether the call's argument with the index `at`, a pointer to a time, is not null.
    fn has_pointer(&self, at: usize) -> bool {
        self.arguments[at] != 0
    }

    /// Whether the call's argument with the index `at` is a time in milliseconds; a negative number
    /// means that the call waits without a time limit.
    fn has_milliseconds(&self, at: usize) -> bool {
        // The upper half of the register has no meaning.
        self.arguments[at] as u32 <= i32::MAX as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: i64, arguments: [u64; 6]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|it| format!("{it:#x}")).collect();
        format!("{number} {} 0x7ffd0 0x7f001\n", arguments.join(" "))
    }

    #[test]
    fn a_sleeper_goes_on_and_who_waits_for_a_key_does_not() {
        let sleeps = line(libc::SYS_clock_nanosleep, [0, 0, 0x7ff0, 0, 0, 0]);
        let reads = line(libc::SYS_read, [0, 0x7ff0, 1, 0, 0, 0]);
        let waits = line(libc::SYS_wait4, [u64::MAX, 0x7ff0, 0, 0, 0, 0]);
        let pair = |one: &String, other: &String| [one.clone(), other.clone()];
        for has_unread in [false, true] {
            assert!(goes_on_by_itself(&pair(&waits, &sleeps), has_unread));
            assert!(!goes_on_by_itself(&pair(&waits, &reads), has_unread));
            assert!(goes_on_by_itself(&["running\n".to_owned()], has_unread));
            assert!(!goes_on_by_itself(
                &["-1 0x7ffd0 0x7f001\n".to_owned()],
                has_unread
            ));
            assert!(!goes_on_by_itself(&[], has_unread));
        }
        assert!(!goes_on_by_itself(&pair(&reads, &sleeps), false));
    }

    #[test]
    fn a_poll_with_a_time_is_a_sleep_if_it_watches_no_keys() {
        let poll = |files, time: i32| {
            let time = u64::from(time as u32);
            [line(libc::SYS_epoll_pwait, [3, 0x7ff0, files, time, 0, 8])]
        };
        assert!(goes_on_by_itself(&poll(1, 100), true));
        assert!(!goes_on_by_itself(&poll(1, 100), false));
        assert!(!goes_on_by_itself(&poll(1, -1), true));
        let ppoll = |files, time| [line(libc::SYS_ppoll, [0x7ff0, files, time, 0, 8, 0])];
        assert!(goes_on_by_itself(&ppoll(0, 0x7ff8), false));
        assert!(!goes_on_by_itself(&ppoll(0, 0), false));
    }
}
