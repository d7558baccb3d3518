//! Which function of a library a call enters, and what that function does to memory.

use std::collections::HashMap;

use ddfuzz_triage::memory::Memory;
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SymbolKind};

use super::instructions::{ARGUMENTS, Executed, Value};
use super::origin::LONGEST;
use super::process::Process;
use crate::dwarf::frames::REGISTERS;

/// Maximum number of instructions that are followed from a call of a library's function to the jump
/// into the library: the code in between (the PLT stub) is short.
const STUB: usize = 3;
/// Number of bytes at the start of a freed heap block in which the allocator may keep its own data.
const FREED: u64 = 64;

/// A call of a library's function, by what the function does to memory: copies, fills, frees or
/// allocates it, leaves it as it is, or may write anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryCall {
    /// The function copies as many bytes as its third argument says.
    Copy,
    /// The function copies a zero-terminated text.
    CopyText,
    /// The function sets memory to its second argument, as many bytes as its third argument says.
    Fill,
    /// The function frees the heap block to which its first argument points.
    Free,
    /// The function allocates a heap block of as many bytes as its first argument says.
    Allocate,
    /// The function reports that its first argument is a bad address, and ends the program.
    Report,
    /// The function reports that a check of UndefinedBehaviorSanitizer has failed. This is the
    /// number of the checked values, which are the function's arguments from the second one on.
    Check(usize),
    /// The function writes to no memory in which the program has stored a value.
    Nothing,
    /// The function may write to any memory.
    Other,
}

/// Names of functions of the C and C++ libraries that write to no memory in which the program has
/// stored a value: those that compare, search, convert and print.
const HARMLESS: [&str; 42] = [
    "abs",
    "atof",
    "atoi",
    "atol",
    "atoll",
    "bcmp",
    "ctype_b_loc",
    "ctype_tolower_loc",
    "ctype_toupper_loc",
    "errno_location",
    "fflush",
    "fprintf",
    "fputc",
    "fputs",
    "fwrite",
    "getenv",
    "isalnum",
    "isalpha",
    "isdigit",
    "isspace",
    "labs",
    "memchr",
    "memcmp",
    "printf",
    "putc",
    "putchar",
    "puts",
    "rawmemchr",
    "strcasecmp",
    "strchr",
    "strcmp",
    "strcoll",
    "strcspn",
    "strlen",
    "strncasecmp",
    "strncmp",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "write",
];

/// Which arguments a library's function reads as texts, each up to its terminating zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// The arguments whose bits are set in this number: the first argument has the lowest bit.
    Of(u8),
    /// The arguments that a format string prints by `%s`. The format string is the argument with
    /// this number, from 0.
    Format(usize),
}

impl Texts {
    /// Returns which arguments the C library's function with the name `name` always reads as texts,
    /// up to their terminating zeros: none if the function is not known, or if it may stop before
    /// the zero, as `strcmp` does.
    fn of(name: &str) -> Texts {
        match name {
            "strlen" | "strdup" | "__strdup" | "puts" | "fputs" | "strrchr" => Texts::Of(0b01),
            "strcpy" | "stpcpy" | "__strcpy_chk" | "__stpcpy_chk" => Texts::Of(0b10),
            "strcat" | "__strcat_chk" => Texts::Of(0b11),
            "printf" => Texts::Format(0),
            "__printf_chk" | "fprintf" | "sprintf" => Texts::Format(1),
            "__fprintf_chk" | "snprintf" => Texts::Format(2),
            "__sprintf_chk" => Texts::Format(3),
            "__snprintf_chk" => Texts::Format(4),
            _ => Texts::Of(0),
        }
    }
}

/// Returns which of the first six arguments of a function the format string `format` prints as
/// whole texts (`%s` without a precision), as bits: the first argument in the lowest bit. The
/// argument with the number `next` (from 0) is the first that the format string uses.
pub(super) fn texts_of_format(format: &[u8], mut next: usize) -> u8 {
    let (mut texts, mut bytes) = (0, format.iter().copied());
    while bytes.find(|it| *it == b'%').is_some() {
        let mut is_whole = true;
        for it in bytes.by_ref() {
            match it {
                // A precision bounds what is read.
                b'.' => is_whole = false,
                b'*' => next += 1,
                // Other than by the order of arguments.
                b'$' => return 0,
                b'0'..=b'9'
                | b'-'
                | b'+'
                | b' '
                | b'#'
                | b'\''
                | b'l'
                | b'h'
                | b'z'
                | b'j'
                | b't' => {}
                b's' if is_whole && next < 6 => {
                    texts |= 1 << next;
                    next += 1;
                    break;
                }
                // Numbers with a fraction are in other registers.
                b'%' | b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' | b'm' => break,
                _ => {
                    next += 1;
                    break;
                }
            }
        }
    }
    texts
}

/// Returns true if the library's function of this name frees the heap block to which its first
/// argument points.
pub(super) fn frees(name: &str) -> bool {
    matches!(
        name,
        "free" | "cfree" | "_ZdlPv" | "_ZdlPvm" | "_ZdaPv" | "_ZdaPvm"
    )
}

/// Beginning of the names of the runtime's functions that report a failed check of
/// UndefinedBehaviorSanitizer, without the underscores in front.
const CHECKS: &str = "ubsan_handle_";

/// Returns the number of checked values among the arguments of a function that reports a failed
/// check of UndefinedBehaviorSanitizer; 0 if the function is not known. `name` is the function's
/// name without its beginning [`CHECKS`].
fn checked(name: &str) -> usize {
    let plain = name.trim_end_matches("_abort").trim_end_matches("_v1");
    match plain {
        "add_overflow"
        | "sub_overflow"
        | "mul_overflow"
        | "divrem_overflow"
        | "shift_out_of_bounds"
        | "pointer_overflow"
        | "implicit_conversion" => 2,
        "negate_overflow"
        | "out_of_bounds"
        | "load_invalid_value"
        | "type_mismatch"
        | "vla_bound_not_positive" => 1,
        _ => 0,
    }
}

impl LibraryCall {
    /// Returns what the C library's function with the name `name` does to memory;
    /// [`LibraryCall::Other`] for functions that are not known.
    fn of(name: &str) -> LibraryCall {
        let plain = name.trim_end_matches("_chk");
        let plain = plain.strip_prefix("__").unwrap_or(plain);
        match plain.strip_prefix("asan_").unwrap_or(plain) {
            "memcpy" | "memmove" | "mempcpy" => LibraryCall::Copy,
            "strcpy" | "stpcpy" | "strncpy" => LibraryCall::CopyText,
            "memset" => LibraryCall::Fill,
            name if frees(name) => LibraryCall::Free,
            "malloc" | "_Znwm" | "_Znam" => LibraryCall::Allocate,
            name if HARMLESS.contains(&name) => LibraryCall::Nothing,
            // `std::ostream` and its operators.
            _ if plain.starts_with("asan_report_") => LibraryCall::Report,
            _ if plain.starts_with(CHECKS) => LibraryCall::Check(checked(&plain[CHECKS.len()..])),
            // They write to the shadow memory only.
            _ if plain.starts_with("asan_") => LibraryCall::Nothing,
            name if name.starts_with("_ZNSo") || name.starts_with("_ZStls") => LibraryCall::Nothing,
            _ => LibraryCall::Other,
        }
    }

    /// Returns whether the function, called with these registers, writes to `memory` (address and
    /// size); `None` where that is not known.
    pub fn writes(self, registers: &[u64; REGISTERS], memory: (u64, u64)) -> Option<bool> {
        let [to, _, length] = [ARGUMENTS[0], ARGUMENTS[1], ARGUMENTS[2]].map(|it| registers[it]);
        let (address, size) = memory;
        match self {
            LibraryCall::Copy | LibraryCall::Fill => {
                Some(address < to.saturating_add(length) && to < address.saturating_add(size))
            }
            LibraryCall::Nothing
            | LibraryCall::Allocate
            | LibraryCall::Report
            | LibraryCall::Check(_) => Some(false),
            // The allocator keeps its words in what is freed.
            LibraryCall::Free => {
                (!(to..to.saturating_add(FREED)).contains(&address)).then_some(false)
            }
            LibraryCall::CopyText | LibraryCall::Other => None,
        }
    }

    /// Returns the place from which the function, called with these registers, copies a value to
    /// `memory` (address and size); `None` if it copies nothing to this memory, or if that is not
    /// known.
    pub fn copied(self, registers: &[u64; REGISTERS], memory: (u64, u64)) -> Option<Value> {
        let [to, from] = [ARGUMENTS[0], ARGUMENTS[1]].map(|it| registers[it]);
        let (address, size) = memory;
        let offset = address.checked_sub(to)?;
        match self {
            LibraryCall::Copy if self.writes(registers, memory)? => {
                Some(Value::Memory(from.wrapping_add(offset), size))
            }
            LibraryCall::CopyText => Some(Value::Memory(from.wrapping_add(offset), size)),
            LibraryCall::Fill if self.writes(registers, memory)? => {
                Some(Value::Register(ARGUMENTS[1]))
            }
            _ => None,
        }
    }
}

/// A function that a program calls in a library, with what is known of the function.
#[derive(Clone, Copy)]
pub struct Imported {
    /// What the function does to memory.
    pub call: LibraryCall,
    /// Number of parameters that the function declares; 0 where that is not known.
    pub parameters: usize,
    /// Which arguments the function reads as texts, each up to its terminating zero.
    pub texts: Texts,
}

impl Imported {
    fn of(name: &str, prototypes: &HashMap<String, usize>) -> Imported {
        Imported {
            call: LibraryCall::of(name),
            parameters: prototypes.get(name).copied().unwrap_or(0),
            texts: Texts::of(name),
        }
    }
}

/// The functions of libraries that a program calls.
#[derive(Default)]
pub struct Imports {
    /// The imported functions, each by the address, in the program's file, of the word that holds
    /// the function's address at run time (its entry in the global offset table).
    imported: HashMap<u64, Imported>,
    /// The functions of a runtime that is linked into the program, by their addresses in its file.
    linked: HashMap<u64, Imported>,
}

impl Imports {
    /// Reads the library functions that the ELF file `image` imports; none if it is not an ELF
    /// file. `prototypes` gives the number of declared parameters of a function by its name. If
    /// `is_linked`, also reads the functions of the file itself that are named like known functions
    /// of the C library or of a sanitizer's runtime, as the runtime may be linked into the file.
    pub fn of(image: &[u8], prototypes: &HashMap<String, usize>, is_linked: bool) -> Imports {
        let Ok(file) = object::File::parse(image) else {
            return Imports::default();
        };
        let symbols = file.dynamic_symbol_table();
        let relocations = file.dynamic_relocations().into_iter().flatten();
        let named = relocations.filter_map(|(slot, it)| {
            let RelocationTarget::Symbol(index) = it.target() else {
                return None;
            };
            let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
            let name = symbol.name().ok()?.split('@').next()?;
            Some((slot, Imported::of(name, prototypes)))
        });
        let own = file.symbols().chain(file.dynamic_symbols());
        let own = own.filter(|it| is_linked && it.is_definition() && it.kind() == SymbolKind::Text);
        let linked = own.filter_map(|it| {
            let known = Imported::of(it.name().ok()?, prototypes);
            (known.call != LibraryCall::Other).then_some((it.address(), known))
        });
        Imports {
            imported: named.collect(),
            linked: linked.collect(),
        }
    }

    /// Returns the library's function that the call instruction `call` enters; one of which nothing
    /// is known if it cannot be found. `entered` is the first address outside of the program's own
    /// code that the call reaches. `bias` is the difference between an address in the process and
    /// the same address in the program's file.
    pub fn called(
        &self,
        call: &Executed,
        entered: u64,
        process: &mut Process,
        bias: u64,
    ) -> Imported {
        if let Some(found) = self.linked.get(&entered.wrapping_sub(bias)) {
            return *found;
        }
        let known = |slot: u64| self.imported.get(&slot.wrapping_sub(bias)).copied();
        // By the word itself, or by code of the linker that jumps there.
        if let Some((slot, _)) = call.read()
            && let Some(found) = known(slot)
        {
            return found;
        }
        let mut registers = call.registers;
        registers[REGISTERS - 1] = entered;
        for _ in 0..STUB {
            let code = process.bytes(registers[REGISTERS - 1], LONGEST as usize);
            let Some(it) = Executed::new(&code, registers) else {
                break;
            };
            if let Some((slot, _)) = it.read()
                && let Some(found) = known(slot)
            {
                return found;
            }
            registers[REGISTERS - 1] = it.instruction.next_ip();
        }
        Imported {
            call: LibraryCall::Other,
            parameters: 0,
            texts: Texts::Of(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_that_a_format_prints_as_a_whole() {
        assert_eq!(texts_of_format(b"%d: %s\n", 1), 0b100);
        assert_eq!(texts_of_format(b"%.3s %-8s %% %*d %s", 1), 0b10_0100);
        assert_eq!(texts_of_format(b"%5.2f %s %lld %s", 2), 0b1_0100);
        assert_eq!(texts_of_format(b"%2$s %1$s", 1), 0);
        assert_eq!(texts_of_format(b"%c%c%c%c%c%c %s %", 1), 0);
    }

    #[test]
    fn what_is_copied_is_where_it_was_before() {
        let mut registers = [0; REGISTERS];
        let [to, from, length] = [ARGUMENTS[0], ARGUMENTS[1], ARGUMENTS[2]];
        (registers[to], registers[from], registers[length]) = (0x1000, 0x2000, 16);
        let copied = |call: LibraryCall, address| call.copied(&registers, (address, 4));
        let inside = Some(Value::Memory(0x2008, 4));
        assert_eq!(copied(LibraryCall::of("memcpy"), 0x1008), inside);
        assert_eq!(copied(LibraryCall::of("__memmove_chk"), 0x1008), inside);
        assert_eq!(copied(LibraryCall::of("memcpy"), 0x1010), None);
        assert_eq!(copied(LibraryCall::of("memcpy"), 0x0ff0), None);
        let filled = Some(Value::Register(from));
        assert_eq!(copied(LibraryCall::of("memset"), 0x1000), filled);
        assert_eq!(copied(LibraryCall::of("qsort"), 0x1000), None);
        let check = LibraryCall::of("__ubsan_handle_shift_out_of_bounds_abort");
        assert_eq!(check, LibraryCall::Check(2));
        let check = LibraryCall::of("__ubsan_handle_type_mismatch_v1");
        assert_eq!(check, LibraryCall::Check(1));
        assert!(frees("free") && frees("_ZdlPvm") && !frees("malloc"));
        let writes = |call: LibraryCall, address| call.writes(&registers, (address, 4));
        assert_eq!(writes(LibraryCall::Copy, 0x100f), Some(true));
        assert_eq!(writes(LibraryCall::Copy, 0x1010), Some(false));
        assert_eq!(writes(LibraryCall::Other, 0x1010), None);
    }
}
