//! The registers of a stopped thread.

use std::collections::BTreeMap;

use nix::unistd::Pid;

use crate::fault::Address;

/// The registers of a stopped thread: all general ones by name and, as separate fields, the program
/// counter and the stack, frame and link registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Program counter of the thread: address of the current instruction.
    pub pc: u64,
    /// Stack pointer of the thread.
    pub sp: u64,
    /// Frame pointer of the thread.
    pub fp: u64,
    /// Link register of the thread; 0 on x86-64, which has none.
    pub lr: u64,
    /// Values of all general registers of the thread, by register name.
    pub all: BTreeMap<&'static str, u64>,
}

impl Registers {
    /// Reads the registers of a thread in ptrace-stop.
    pub(crate) fn of(tid: Pid) -> nix::Result<Registers> {
        nix::sys::ptrace::getregs(tid).map(|regs| Registers::from_native(&regs))
    }

    /// Returns the values of all registers by name, in the form that crash records store.
    pub fn addresses(&self) -> BTreeMap<String, Address> {
        let all = self.all.iter();
        all.map(|(name, value)| ((*name).to_owned(), Address(*value)))
            .collect()
    }

    /// Converts the register values `copied`, which a dying process stored in the order of
    /// `crates/ddfuzz-exec/runtime/snapshot.h`, to registers with names.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn from_copy(copied: &[u64; 20]) -> Registers {
        const NAMES: [&str; 20] = [
            "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15", "rip", "eflags", "fs_base", "gs_base",
        ];
        Registers {
            pc: copied[16],
            sp: copied[7],
            fp: copied[6],
            lr: 0,
            all: NAMES.into_iter().zip(*copied).collect(),
        }
    }

    /// Returns registers that are all 0, because on AArch64 dying processes do not copy their
    /// registers.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn from_copy(_copied: &[u64; 20]) -> Registers {
        Registers::default()
    }

    #[cfg(target_arch = "x86_64")]
    #[rustfmt::skip]
    fn from_native(regs: &libc::user_regs_struct) -> Registers {
        Registers::from_copy(&[
            regs.rax, regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi, regs.rbp, regs.rsp,
            regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
            regs.rip, regs.eflags, regs.fs_base, regs.gs_base,
        ])
    }

    #[cfg(target_arch = "aarch64")]
    fn from_native(regs: &libc::user_regs_struct) -> Registers {
        const NAMES: [&str; 31] = [
            "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
            "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25",
            "x26", "x27", "x28", "x29", "x30",
        ];
        let mut all: BTreeMap<&'static str, u64> = NAMES.into_iter().zip(regs.regs).collect();
        all.extend([("sp", regs.sp), ("pc", regs.pc), ("pstate", regs.pstate)]);
        Registers {
            pc: regs.pc,
            sp: regs.sp,
            fp: regs.regs[29],
            lr: regs.regs[30],
            all,
        }
    }
}
