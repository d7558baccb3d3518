//! Mutants that read another variable of the same type, which may be used far away: debug
//! information says which variables are in registers.

use iced_x86::Register;

use super::Engine;
use super::mutants::{Code, Mutant, MutantKind, Patch};
use super::mutated::dwarf_number;
use super::other_operands::{read_registers, with_register};
use crate::dwarf::Function;
use crate::types::TypeId;

/// The general registers that may hold variables.
const REGISTERS: [Register; 15] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
/// Largest number of mutants that are made for one register that an instruction reads.
const OTHERS: usize = 4;

impl Engine {
    /// Returns the registers that have a variable or a parameter of `function` at the address `pc`
    /// of its code, with their types.
    fn variables_in_registers(&self, function: &Function, pc: u64) -> Vec<(Register, TypeId)> {
        let at = pc.wrapping_sub(self.bias);
        let all = function.variables.iter().filter_map(|it| {
            let number = it.register_at(at)?;
            let is_it = |register: &&Register| dwarf_number(**register) == number;
            Some((*REGISTERS.iter().find(is_it)?, it.of))
        });
        all.collect()
    }

    /// Returns mutants of the `code` of `function` in which an instruction that reads a variable
    /// from a register reads another one of the same type, from its register. `is_executed` tells
    /// whether the failing run executes the statement at an address.
    pub(super) fn same_types(
        &self,
        function: &Function,
        code: &Code,
        is_executed: impl Fn(u64) -> bool,
    ) -> Vec<Mutant> {
        let mut found = Vec::new();
        for (it, _) in code.all.iter().filter(|it| is_executed(it.0.ip())) {
            let read = read_registers(it);
            if read.is_empty() {
                continue;
            }
            let (pc, bytes) = (it.ip(), code.bytes_of(it));
            let variables = self.variables_in_registers(function, pc);
            for (role, register) in read {
                let own = register.full_register();
                let of = variables.iter().find(|it| it.0 == own).map(|it| it.1);
                let others = variables
                    .iter()
                    .filter(|it| it.0 != own && Some(it.1) == of);
                let others = others.filter_map(|it| with_register(&bytes, role, it.0.number()));
                found.extend(others.take(OTHERS).map(|bytes| Mutant {
                    pc,
                    kind: MutantKind::Operand,
                    patch: Patch::Code(pc, bytes),
                }));
            }
        }
        found
    }
}
