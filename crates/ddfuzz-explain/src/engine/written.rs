//! What a process writes to files, seen at the system calls that write. With a filter in the kernel
//! (seccomp), the process stops only at these; most other calls, such as those that read or get
//! memory, would stop it for nothing.

use std::collections::BTreeMap;
use std::io;
use std::mem::offset_of;

use ddfuzz_triage::memory::Memory;
use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_TRACE,
};
use nix::sys::ptrace::Options;

use super::process::Process;
use super::run::Pace;
use super::tests_at_point::Stand;
use super::{Engine, EngineError};

/// The system calls that [`add_written`] looks at.
const WRITING: [i64; 14] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_mmap,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_splice,
    libc::SYS_vmsplice,
    libc::SYS_tee,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_io_uring_enter,
];

/// Returns the filter with which the kernel stops a traced process at the system calls [`WRITING`],
/// as the bytes of its instructions.
fn filter() -> Vec<u8> {
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let mut all = vec![(BPF_LD | BPF_W | BPF_ABS, 0, number)];
    for (at, call) in WRITING.iter().enumerate() {
        // To the last instruction, behind the one that follows the comparisons.
        let ahead = (WRITING.len() - at) as u8;
        all.push((BPF_JMP | BPF_JEQ | BPF_K, ahead, *call as u32));
    }
    all.push((BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW));
    all.push((BPF_RET | BPF_K, 0, SECCOMP_RET_TRACE));
    let bytes = |(code, ahead, value): (u32, u8, u32)| {
        let [one, other] = (code as u16).to_le_bytes();
        let [first, second, third, fourth] = value.to_le_bytes();
        [one, other, ahead, 0, first, second, third, fourth]
    };
    all.into_iter().flat_map(bytes).collect()
}

impl Process {
    /// Gives the process, and the forks that are made of it later, a filter of system calls
    /// (seccomp): `filter` has the bytes of its instructions, 8 for each. System calls that the
    /// filter selects stop the process with `PTRACE_EVENT_SECCOMP`. `instruction` is the address of
    /// a `syscall` instruction. Returns false, and sets no filter, if the kernel refuses it.
    ///
    /// # Errors
    /// When the process is gone.
    fn filter_system_calls(&mut self, instruction: u64, filter: &[u8]) -> io::Result<bool> {
        // Below the red zone: the number of instructions, their address, and the instructions.
        let size = 16 + filter.len();
        let at = (self.registers()?.rsp - 512 - size as u64) & !15;
        let before = self.bytes(at, size);
        let count = (filter.len() as u64 / 8).to_le_bytes();
        self.write(at, &[&count, &(at + 16).to_le_bytes()[..], filter].concat())?;
        let may_not = [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0];
        self.system_call(instruction, libc::SYS_prctl as u64, may_not)?;
        let set = [libc::SECCOMP_SET_MODE_FILTER.into(), 0, at, 0, 0];
        let (result, _) = self.system_call(instruction, libc::SYS_seccomp as u64, set)?;
        self.write(at, &before)?;
        if result == 0 {
            self.stop_at(Options::PTRACE_O_TRACESECCOMP)?;
        }
        Ok(result == 0)
    }
}

impl Engine {
    /// Lets the forks of the run that is stopped in `stand` stop where they write to files. Returns
    /// the pace at which they are to be resumed: [`Pace::Writes`]; or [`Pace::SystemCalls`], where
    /// the kernel refuses the filter.
    pub(super) fn stops_at_writes(&self, stand: &mut Stand) -> Result<Pace, EngineError> {
        let Some(instruction) = self.system_call else {
            return Ok(Pace::SystemCalls);
        };
        let is_set = stand
            .process()
            .filter_system_calls(instruction, &filter())?;
        Ok(match is_set {
            true => Pace::Writes,
            false => Pace::SystemCalls,
        })
    }
}

/// Adds to `written` what a process has written by the system call from which it returns. Sets
/// `written` to `None` if the written bytes cannot be read: what the process writes is then
/// unknown.
pub(super) fn add_written(
    written: &mut Option<BTreeMap<u64, Vec<u8>>>,
    process: &mut Process,
) -> Result<(), EngineError> {
    let registers = process.registers()?;
    let count = registers.rax as i64;
    // An error, or the entry to the call.
    if count < 0 {
        return Ok(());
    }
    let is_shared = registers.r10 & libc::MAP_SHARED as u64 != 0
        && registers.rdx & libc::PROT_WRITE as u64 != 0;
    let bytes = match registers.orig_rax as i64 {
        libc::SYS_write | libc::SYS_pwrite64 => Some(process.bytes(registers.rsi, count as usize)),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            let parts = registers.rdx.min(libc::UIO_MAXIOV as u64);
            let mut all = Vec::new();
            for at in (0..parts).map(|it| registers.rsi + 16 * it) {
                let part = process.word(at).zip(process.word(at + 8));
                all.extend(part.map(|(from, size)| process.bytes(from, size as usize)));
            }
            let mut all = all.concat();
            all.truncate(count as usize);
            Some(all)
        }
        libc::SYS_mmap if !is_shared => return Ok(()),
        libc::SYS_mmap
        | libc::SYS_sendfile
        | libc::SYS_copy_file_range
        | libc::SYS_splice
        | libc::SYS_vmsplice
        | libc::SYS_tee
        | libc::SYS_sendmsg
        | libc::SYS_sendto
        | libc::SYS_io_uring_enter => None,
        _ => return Ok(()),
    };
    match bytes.filter(|it| it.len() == count as usize) {
        Some(bytes) => {
            if let Some(written) = written {
                written.entry(registers.rdi).or_default().extend(bytes);
            }
        }
        None => *written = None,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the action of the filter for the system call `number`.
    fn action(number: i64) -> u32 {
        let all = filter();
        let all: Vec<&[u8]> = all.chunks_exact(8).collect();
        let value = |at: usize| u32::from_le_bytes(all[at][4..].try_into().unwrap());
        // It loads the number first.
        assert_eq!(
            (u32::from(all[0][0]), value(0)),
            (BPF_LD | BPF_W | BPF_ABS, 0)
        );
        let mut at = 1;
        while u32::from(all[at][0]) != BPF_RET | BPF_K {
            let is_it = value(at) == number as u32;
            at += 1 + usize::from(all[at][if is_it { 2 } else { 3 }]);
        }
        value(at)
    }

    #[test]
    fn only_calls_that_write_stop_a_process() {
        for call in WRITING {
            assert_eq!(action(call), SECCOMP_RET_TRACE, "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_brk, libc::SYS_exit_group, 100_000] {
            assert_eq!(action(call), SECCOMP_RET_ALLOW, "{call}");
        }
    }
}
