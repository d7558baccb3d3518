//! Evaluates the expressions in debug information that say where a variable is.

use std::sync::Arc;

use ddfuzz_triage::memory::Memory;
use gimli::{Encoding, Evaluation, EvaluationResult, Expression, LittleEndian, Location, Value};

use super::{Bytes, Declared};

/// Where a variable was found by its DWARF location expression: in memory, in a register, or
/// nowhere, with a known value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The variable is in memory, at this address.
    Memory(u64),
    /// The variable is in the register with this DWARF number.
    Register(u16),
    /// The variable is nowhere: only its value is known, and it cannot be changed.
    Value(u64),
}

/// What the evaluation of DWARF location expressions reads from a stopped process: registers,
/// memory, and facts about a frame.
pub trait Context {
    /// Returns the value of the register with a DWARF number in the frame; `None` where it is
    /// unknown.
    fn register(&mut self, number: u16) -> Option<u64>;

    /// Returns the memory of the stopped process, from which it can be read.
    fn memory(&mut self) -> &mut dyn Memory;

    /// Returns the frame base of the frame's function; `None` where it is unknown.
    fn frame_base(&mut self) -> Option<u64> {
        None
    }

    /// Returns the canonical frame address of the frame; `None` where it is unknown.
    fn cfa(&mut self) -> Option<u64> {
        None
    }

    /// Returns the address, in the process, of the thread-local variable at `offset` in the
    /// program's thread-local memory; `None` where it is not known, and by default.
    fn thread_local(&mut self, _offset: u64) -> Option<u64> {
        None
    }

    /// Converts an address in the file to an address in the process. Returns it unchanged by
    /// default.
    fn relocate(&mut self, address: u64) -> u64 {
        address
    }

    /// Returns the value that the DWARF expression `_expression` had when the frame's function was
    /// entered; `None` where it is unknown, and by default.
    fn at_entry(&mut self, _expression: &[u8]) -> Option<u64> {
        None
    }
}

impl Declared {
    /// Returns the DWARF number of the register that holds the whole variable at `pc`, an address
    /// in the file; `None` if the variable is somewhere else, or nowhere.
    pub fn register_at(&self, pc: u64) -> Option<u16> {
        let registers = gimli::DW_OP_reg0.0..=gimli::DW_OP_reg15.0;
        match self.located.at(pc) {
            Some([operation]) if registers.contains(operation) => {
                Some(u16::from(operation - registers.start()))
            }
            _ => None,
        }
    }
}

/// Largest number of steps in the evaluation of one DWARF expression: a damaged one may jump in a
/// circle.
const MOST_STEPS: u32 = 10_000;

/// Evaluates a DWARF location expression, and returns where the variable is; `None` if the variable
/// does not exist or is scattered over several places, or if a value that the expression needs is
/// unknown. `start` is put on the expression's stack first.
pub fn evaluate(
    expression: &[u8],
    encoding: Encoding,
    start: Option<u64>,
    context: &mut dyn Context,
) -> Option<Found> {
    let bytes = Bytes::new(Arc::from(expression), LittleEndian);
    let mut evaluation = Expression(bytes).evaluation(encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(start) = start {
        evaluation.set_initial_value(start);
    }
    let mut result = evaluation.evaluate().ok()?;
    while !matches!(result, EvaluationResult::Complete) {
        result = answer(&mut evaluation, result, context)?;
    }
    match evaluation.result().as_slice() {
        [piece] => match &piece.location {
            Location::Address { address } => Some(Found::Memory(*address)),
            Location::Register { register } => Some(Found::Register(register.0)),
            Location::Value { value } => value.to_u64(u64::MAX).ok().map(Found::Value),
            Location::Bytes { value } => {
                let mut word = [0; 8];
                let length = value.bytes().len().min(8);
                word[..length].copy_from_slice(&value.bytes()[..length]);
                Some(Found::Value(u64::from_le_bytes(word)))
            }
            Location::Empty | Location::ImplicitPointer { .. } => None,
        },
        _ => None,
    }
}

/// Resumes a DWARF evaluation that asks for something (`asked`), such as memory or a register, with
/// the answer from `context`; `None` if the answer is unknown.
fn answer(
    evaluation: &mut Evaluation<Bytes>,
    asked: EvaluationResult<Bytes>,
    context: &mut dyn Context,
) -> Option<EvaluationResult<Bytes>> {
    match asked {
        EvaluationResult::RequiresMemory { address, size, .. } => {
            let bytes = context.memory().bytes(address, usize::from(size));
            if bytes.len() < usize::from(size) {
                return None;
            }
            let mut word = [0; 8];
            word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            let value = Value::Generic(u64::from_le_bytes(word));
            evaluation.resume_with_memory(value)
        }
        EvaluationResult::RequiresRegister { register, .. } => {
            let value = context.register(register.0)?;
            evaluation.resume_with_register(Value::Generic(value))
        }
        EvaluationResult::RequiresFrameBase => {
            let base = context.frame_base()?;
            evaluation.resume_with_frame_base(base)
        }
        EvaluationResult::RequiresCallFrameCfa => {
            let cfa = context.cfa()?;
            evaluation.resume_with_call_frame_cfa(cfa)
        }
        EvaluationResult::RequiresTls(offset) => {
            let address = context.thread_local(offset)?;
            evaluation.resume_with_tls(address)
        }
        EvaluationResult::RequiresRelocatedAddress(address) => {
            let address = context.relocate(address);
            evaluation.resume_with_relocated_address(address)
        }
        EvaluationResult::RequiresEntryValue(inner) => {
            let value = context.at_entry(inner.0.bytes())?;
            evaluation.resume_with_entry_value(Value::Generic(value))
        }
        _ => return None,
    }
    .ok()
}
