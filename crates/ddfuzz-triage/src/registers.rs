//! The registers of a stopped thread.

use std::collections::BTreeMap;

use nix::unistd::Pid;

use super::address::Address;

/// The registers of a stopped thread: those that unwinding needs, and all by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The program counter.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer.
    pub fp: u64,
    /// The link register; 0 on x86-64, which has none.
    pub lr: u64,
    /// All general registers, by the name of the processor's manual.
    pub all: BTreeMap<&'static str, u64>,
}

impl Registers {
    /// Reads the registers of a thread in ptrace-stop.
    pub(crate) fn of(tid: Pid) -> nix::Result<Registers> {
        nix::sys::ptrace::getregs(tid).map(|regs| Registers::from_native(&regs))
    }

    /// As records write them.
    pub fn addresses(&self) -> BTreeMap<String, Address> {
        self.all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Address(*value)))
            .collect()
    }

    /// Of a copy, in the order of `crates/ddfuzz-exec/runtime/snapshot.h`.
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

    /// Nothing is copied on this processor.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn from_copy(_copied: &[u64; 20]) -> Registers {
        Registers::default()
    }

    #[cfg(target_arch = "x86_64")]
    fn from_native(regs: &libc::user_regs_struct) -> Registers {
        let all = [
            ("rax", regs.rax),
            ("rbx", regs.rbx),
            ("rcx", regs.rcx),
            ("rdx", regs.rdx),
            ("rsi", regs.rsi),
            ("rdi", regs.rdi),
            ("rbp", regs.rbp),
            ("rsp", regs.rsp),
            ("r8", regs.r8),
            ("r9", regs.r9),
            ("r10", regs.r10),
            ("r11", regs.r11),
            ("r12", regs.r12),
            ("r13", regs.r13),
            ("r14", regs.r14),
            ("r15", regs.r15),
            ("rip", regs.rip),
            ("eflags", regs.eflags),
            ("fs_base", regs.fs_base),
            ("gs_base", regs.gs_base),
        ];
        Registers {
            pc: regs.rip,
            sp: regs.rsp,
            fp: regs.rbp,
            lr: 0,
            all: BTreeMap::from(all),
        }
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
