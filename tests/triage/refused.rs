//! Runs what it is given where the system refuses tracing: behind a seccomp filter, as in many
//! containers.

use std::mem::offset_of;

/// The calls give EPERM, everything else is allowed.
fn forbid(calls: &[libc::c_long]) {
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let statement = |code: u32, k: u32, jt: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = vec![statement(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        number,
        0,
    )];
    for (index, call) in calls.iter().enumerate() {
        // Over the tests that are left, and over the statement that allows.
        let over = (calls.len() - index) as u8;
        let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(statement(equals, *call as u32, over));
    }
    let give = libc::BPF_RET | libc::BPF_K;
    filter.push(statement(give, libc::SECCOMP_RET_ALLOW, 0));
    filter.push(statement(give, refusal, 0));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter lives as long as the call, which copies it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &program), 0);
    }
}

/// Calls `work` in a thread that may not make these system calls, nor may what it starts.
fn without<T: Send>(calls: &[libc::c_long], work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            forbid(calls);
            work()
        });
        let done = thread.join();
        done.unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// Calls `work` where nothing may be traced.
pub fn without_ptrace<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    without(&[libc::SYS_ptrace], work)
}

/// Calls `work` where nothing may be traced, and addresses are random.
pub fn without_fixed_addresses<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    without(&[libc::SYS_ptrace, libc::SYS_personality], work)
}
