//! What a mutant changes in its statement, in words.

use std::ops::Range;
use std::path::Path;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind,
};

use super::Engine;
use super::mutants::{Mutant, MutantKind, Patch, sign_extended};

/// Maximum number of bytes of code that are read to describe a mutant: the changed instruction and
/// the next one, which may be the conditional jump that uses its result.
const CODE: usize = 32;
/// Words for the arguments of a call, by their numbers from 0.
const ARGUMENTS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

/// The changed instruction of a mutant, with what is needed to describe the change in words.
struct Change<'a> {
    /// The instruction in the program, before the change.
    was: Instruction,
    /// The instruction in the mutant, in place of `was`.
    is: Instruction,
    /// The instruction after the changed one in the program.
    next: Instruction,
    /// Text of the changed source line; empty where it is unknown.
    source: &'a str,
}

/// Returns the first `N` instructions of the machine code `code`, which begins at the address
/// `start`; invalid ones where `code` ends before.
fn decoded<const N: usize>(code: &[u8], start: u64) -> [Instruction; N] {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    std::array::from_fn(|_| decoder.decode())
}

/// Returns the last operand of the instruction `it` as a signed number, and the size in bytes of
/// the first operand; `None` if the last operand is not an immediate (a number in the code).
fn number(it: &Instruction) -> Option<(i64, usize)> {
    let size = match it.op0_kind() {
        OpKind::Memory => it.memory_size().size(),
        _ => it.op0_register().size(),
    };
    let value = it.try_immediate(it.op_count().checked_sub(1)?).ok()?;
    Some((sign_extended(value, size.clamp(1, 8)), size))
}

/// Returns the relational operators in the source text `source`, from left to right: `<`, `<=`, `>`
/// and `>=`. Shifts (`<<`, `>>`) and arrows (`->`, `=>`) are left out.
fn relations(source: &str) -> Vec<&str> {
    let bytes = source.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b' ');
    let mut found = Vec::new();
    for (index, byte) in bytes.iter().enumerate() {
        let before = at(index.wrapping_sub(1));
        let is_it = matches!(byte, b'<' | b'>') && before != *byte && at(index + 1) != *byte;
        if is_it && !(*byte == b'>' && matches!(before, b'-' | b'=')) {
            let size = if at(index + 1) == b'=' { 2 } else { 1 };
            found.push(&source[index..index + size]);
        }
    }
    found
}

/// Returns true if the number `value` is in the source text `source`: as a decimal or hexadecimal
/// number, or as a character.
fn has_number(source: &str, value: i64) -> bool {
    let is_of_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let parsed = |word: &str| {
        let plain = word.replace('_', "");
        let plain = plain.trim_end_matches(['u', 'U', 'l', 'L']);
        match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => plain.parse().ok(),
        }
    };
    let mut words = source.split(|it| !is_of_word(it));
    is_quoted(source, value) || words.any(|word| parsed(word) == Some(value))
}

/// Returns true if the source text `source` has the character with the code `value` in single
/// quotes.
fn is_quoted(source: &str, value: i64) -> bool {
    let character = u8::try_from(value).ok().map(char::from);
    let known = character.map(|it| [it.to_string(), it.escape_default().to_string()]);
    let known = known.into_iter().flatten();
    let zero = (value == 0).then(|| "\\0".to_owned());
    (known.chain(zero)).any(|it| source.contains(&format!("'{it}'")))
}

impl Change<'_> {
    /// Returns true if the source line has the number `value`, as [`has_number`] recognizes it.
    fn has(&self, value: i64) -> bool {
        has_number(self.source, value)
    }

    /// Returns in words which number the mutant uses instead of the program's, and for what the
    /// instruction uses it: `with a factor of 4 instead of 8`. `None` for an instruction that is
    /// not described here. Also `None` if the source line does not have the program's number, as
    /// the compiler has then computed it from others; only comparisons by order are described
    /// without it.
    fn number(&self) -> Option<String> {
        let ((was, size), (is, _)) = (number(&self.was)?, number(&self.is)?);
        match self.was.mnemonic() {
            Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar if self.has(was) => {
                Some(format!("with a shift by {is} instead of {was}"))
            }
            Mnemonic::Shl if (0..62).contains(&was) && self.has(1 << was) => {
                let [was, is] = [was, is].map(|it| 1i64.checked_shl(it as u32).unwrap_or(0));
                Some(format!("with a factor of {is} instead of {was}"))
            }
            Mnemonic::Imul if self.has(was) => {
                Some(format!("with a factor of {is} instead of {was}"))
            }
            Mnemonic::Add => self.sum(was, is),
            Mnemonic::Sub => self.sum(was.checked_neg()?, is.checked_neg()?),
            Mnemonic::Mov if self.has(was) => {
                Some(format!("with the number {is} instead of {was}"))
            }
            Mnemonic::Cmp => self.comparison((was, is), size),
            _ => None,
        }
    }

    /// Returns in words that the mutant adds the number `is` instead of `was`. Both numbers are
    /// described as subtracted if `was` is negative and `is` is not positive. `None` if the source
    /// line does not have `was` (without its sign), except for 1 and -1 in a line with `++` or
    /// `--`.
    fn sum(&self, was: i64, is: i64) -> Option<String> {
        let is_step = was.abs() == 1 && (self.source.contains("++") || self.source.contains("--"));
        if !is_step && !self.has(was.checked_abs()?) {
            return None;
        }
        Some(match was < 0 && is <= 0 {
            true => format!("with {} instead of {} subtracted", -is, -was),
            false => format!("with {is} instead of {was} added"),
        })
    }

    /// Returns in words that the mutant compares a value with the number `is` instead of `was`;
    /// both have `size` bytes. If the next instruction uses an order (less, greater), the words
    /// give the limit: the two neighboring numbers between which the answer changes, or by how much
    /// it is higher or lower if the source line has neither of the old two. For other comparisons,
    /// `None` unless `was` is 0 or in the source line.
    fn comparison(&self, (was, is): (i64, i64), size: usize) -> Option<String> {
        use ConditionCode::{a, ae, b, be, g, ge, l, le};
        let code = self.next.condition_code();
        if !matches!(code, a | ae | b | be | g | ge | l | le) {
            let is_character = size == 1 || is_quoted(self.source, was);
            let told = |it: i64| match u8::try_from(it) {
                Ok(byte) if is_character && (byte.is_ascii_graphic() || byte == b' ') => {
                    format!("'{}'", char::from(byte).escape_default())
                }
                _ => it.to_string(),
            };
            let is_known = was == 0 || self.has(was);
            let words = || {
                format!(
                    "with a comparison with {} instead of {}",
                    told(is),
                    told(was)
                )
            };
            return is_known.then(words);
        }
        let below = i64::from(!matches!(code, be | a | le | g));
        let pair = |it: i64| {
            Some((
                it.checked_sub(below)?,
                it.checked_sub(below)?.checked_add(1)?,
            ))
        };
        let (was, is) = (pair(was)?, pair(is)?);
        Some(match self.has(was.0) || self.has(was.1) {
            true => format!(
                "with the limit between {} and {} instead of {} and {}",
                is.0, is.1, was.0, was.1
            ),
            // The compiler may compare a sum.
            false if is.0 < was.0 => format!("with a limit that is {} lower", was.0 - is.0),
            false => format!("with a limit that is {} higher", is.0 - was.0),
        })
    }

    /// Returns in words that the mutant adds another constant in an instruction `lea`, which
    /// computes an address, but by which compilers also add numbers. `None` for other instructions,
    /// and if the source line does not have the old constant.
    fn displaced(&self) -> Option<String> {
        let [was, is] = [&self.was, &self.is].map(|it| it.memory_displacement64() as i64);
        match self.was.mnemonic() {
            Mnemonic::Lea => self.sum(was, is),
            _ => None,
        }
    }

    /// Returns in words which operator the mutant has in place of that of the program, as in
    /// ``with `-` in place of `+` ``. The operators are `+`, `-`, `&`, `|` and `^`. `None` if the
    /// instruction of the program or of the mutant has none of these, or if the source line does
    /// not contain the operator of the program.
    fn operator(&self) -> Option<String> {
        let name = |it: &Instruction| {
            Some(match it.mnemonic() {
                Mnemonic::Add => "+",
                Mnemonic::Sub => "-",
                Mnemonic::And => "&",
                Mnemonic::Or => "|",
                Mnemonic::Xor => "^",
                _ => return None,
            })
        };
        let (is, was) = (name(&self.is)?, name(&self.was)?);
        let is_known = self
            .source
            .replace("&&", "")
            .replace("||", "")
            .replace("->", "");
        (is_known.contains(was)).then(|| format!("with `{is}` in place of `{was}`"))
    }

    /// Returns in words how the mutant widens a number of few bits otherwise than the program,
    /// which does so by `movzx` or `movsx`: the mutant reads more bits, takes the number as signed,
    /// or takes it as unsigned. `None` for other instructions in the mutant.
    fn width(&self) -> Option<String> {
        let bits = 8 * match self.was.op1_kind() {
            OpKind::Memory => self.was.memory_size().size(),
            _ => self.was.op1_register().size(),
        };
        let is_wider = self.is.mnemonic() == Mnemonic::Mov
            || self.is.op1_kind() == OpKind::Register
                && self.is.op1_register().size() > self.was.op1_register().size();
        Some(match (is_wider, self.is.mnemonic()) {
            (true, _) => format!("with a number that is not cut to {bits} bits"),
            (_, Mnemonic::Movsx) => format!("with a sign for a number of {bits} bits"),
            (_, Mnemonic::Movzx) => format!("with no sign for a number of {bits} bits"),
            _ => return None,
        })
    }

    /// Returns in words that a comparison of the mutant has the other answer if both numbers are
    /// equal. The words name the operators (`<=` in place of `<`) if the source line has exactly
    /// one relational operator.
    fn boundary(&self) -> String {
        let other = match relations(self.source)[..] {
            ["<"] => "with `<=` in place of `<`",
            ["<="] => "with `<` in place of `<=`",
            [">"] => "with `>=` in place of `>`",
            [">="] => "with `>` in place of `>=`",
            _ => "with the other answer for equal numbers",
        };
        other.to_owned()
    }

    /// Returns the words for a mutant that joins two conditions by `||` instead of `&&`, or the
    /// other way. The words say which of these two it is if the source line has one such operator
    /// in all; otherwise, they leave both possible.
    fn connective(&self) -> &'static str {
        match (
            self.source.matches("&&").count(),
            self.source.matches("||").count(),
        ) {
            (1, 0) => "with `||` in place of `&&`",
            (0, 1) => "with `&&` in place of `||`",
            _ => "with `&&` in place of `||`, or the other way",
        }
    }
}

impl Engine {
    /// Returns in words how the statement of `mutant` is changed, as the end of a sentence: `with a
    /// shift by 7 instead of 8`. If the change itself cannot be described, returns the words for
    /// all mutants of its kind. `source` is the text of the statement's source line; empty if it is
    /// unknown.
    pub(crate) fn change_of(&self, mutant: &Mutant, source: &str) -> String {
        match &mutant.patch {
            Patch::Code(at, bytes) => {
                let code = self.code_in_file(*at..at + CODE as u64);
                let told = code.and_then(|code| self.change_in_code(mutant, &code, bytes, source));
                told.unwrap_or_else(|| mutant.words())
            }
            Patch::Exchange(at, pair) => {
                let object = usize::from(self.calls_method(*at));
                let named = pair.map(|it| {
                    let arguments = super::mutants::ARGUMENTS.iter();
                    let at = arguments.clone().position(|argument| *argument == it);
                    let at = at.and_then(|at| at.checked_sub(object));
                    at.and_then(|at| ARGUMENTS.get(at)).copied()
                });
                match named {
                    [Some(one), Some(other)] => {
                        format!("with the {one} and the {other} argument exchanged")
                    }
                    _ => mutant.words(),
                }
            }
            Patch::Add(_, _, by) if *by > 0 => "with a stored number that is one larger".to_owned(),
            Patch::Add(..) => "with a stored number that is one smaller".to_owned(),
            _ => mutant.words(),
        }
    }

    /// Returns in words what `mutant` changes: it has the code `bytes` where the program has
    /// `code`. `source` is the text of the source line. `None` if the change itself cannot be
    /// described.
    fn change_in_code(
        &self,
        mutant: &Mutant,
        code: &[u8],
        bytes: &[u8],
        source: &str,
    ) -> Option<String> {
        let start = mutant.patch.begins();
        let [was, next] = decoded(code, start);
        let [is] = decoded(bytes, start);
        let change = Change {
            was,
            is,
            next,
            source,
        };
        match mutant.kind {
            MutantKind::Constant | MutantKind::Bound => {
                change.number().or_else(|| change.displaced())
            }
            MutantKind::Operator => change.operator(),
            MutantKind::Width => change.width(),
            MutantKind::Boundary => Some(change.boundary()),
            MutantKind::Connective => Some(change.connective().to_owned()),
            MutantKind::Operand => {
                let at = (start.wrapping_sub(self.bias), self.has_frame_pointer(start));
                self.info.other_operand((&was, &is), at, source)
            }
            MutantKind::Fixed => self.always(&was, &is),
            MutantKind::LeftOut => Some(match was.flow_control() {
                FlowControl::Call => self.without_call(&was),
                FlowControl::IndirectCall => "without this call".to_owned(),
                _ => "without what is written here".to_owned(),
            }),
            _ => None,
        }
    }

    /// Returns true if `mutant` reads a variable which a compiler would not accept in place of the
    /// one that the program reads: only one of the two is a pointer, or they are pointers to
    /// different types. Returns false if the types are not known, or if `mutant` is of another kind
    /// than `Operand`.
    pub(super) fn mixes_types(&self, mutant: &Mutant) -> bool {
        let (MutantKind::Operand, Patch::Code(at, bytes)) = (mutant.kind, &mutant.patch) else {
            return false;
        };
        let code = self.code_in_file(*at..*at + CODE as u64);
        code.is_some_and(|code| {
            let ([was], [is]) = (decoded(&code, *at), decoded(bytes, *at));
            let place = (at.wrapping_sub(self.bias), self.has_frame_pointer(*at));
            self.info.is_of_other_type((&was, &is), place)
        })
    }

    /// Returns true if the instruction at the address `pc` in the process calls a method of C++,
    /// that is, a function whose first variable is named `this`.
    fn calls_method(&self, pc: u64) -> bool {
        let code = self.code_in_file(pc..pc + CODE as u64);
        let target = code.map(|code| decoded::<1>(&code, pc)[0].near_branch_target());
        let function = target.and_then(|it| self.info.function(it.wrapping_sub(self.bias)));
        function.is_some_and(|it| it.variables.first().is_some_and(|it| it.name == "this"))
    }

    /// Returns true if the function at the address `pc` in the process uses the register RBP as its
    /// frame pointer: it copies RSP to RBP within its first [`CODE`] bytes.
    fn has_frame_pointer(&self, pc: u64) -> bool {
        let function = self.info.function(pc.wrapping_sub(self.bias));
        let start = function.and_then(|it| Some(it.ranges.first()?.start + self.bias));
        let code = start.and_then(|it| self.code_in_file(it..it + CODE as u64));
        let copies: [u8; 3] = [0x48, 0x89, 0xe5];
        code.is_some_and(|it| it.windows(3).any(|it| it == copies))
    }

    /// Returns in words at which line the mutant always goes on where the program has the
    /// conditional jump `was`: the mutant has the instruction `is` in its place, which always jumps
    /// or never does. `None` if the line is unknown, in another file, or the same as that of the
    /// jump.
    fn always(&self, was: &Instruction, is: &Instruction) -> Option<String> {
        let own = self.line(was.ip())?;
        let to = match is.flow_control() {
            FlowControl::UnconditionalBranch => was.near_branch_target(),
            _ => was.next_ip(),
        };
        let there = self.line(to).filter(|it| it.0 == own.0 && it.1 != own.1)?;
        Some(format!(
            "with a condition after which it always goes on at line {}",
            there.1
        ))
    }

    /// Returns in words that the mutant leaves out the call instruction `it`; they name the called
    /// function if it is known.
    fn without_call(&self, it: &Instruction) -> String {
        let own = self.function(it.near_branch_target());
        match own {
            Some(name) => format!(
                "without the call of {}",
                ddfuzz_triage::short_function(name)
            ),
            None => "without this call".to_owned(),
        }
    }

    /// Returns the bytes of code that the program's file has for `range`, addresses in the process;
    /// fewer if the file's section of code ends inside of `range`. `None` if the file has no code
    /// at its beginning.
    fn code_in_file(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let start = range.start.wrapping_sub(self.bias);
        let size = (range.end - range.start) as usize;
        let sections = self
            .code
            .sections
            .get_or_init(|| code_sections(&self.program));
        sections.iter().find_map(|(address, code)| {
            let from = usize::try_from(start.checked_sub(*address)?).ok()?;
            let bytes = code.get(from..)?;
            (!bytes.is_empty()).then(|| bytes[..bytes.len().min(size)].to_vec())
        })
    }
}

/// Returns the sections with code of the ELF file at `path`, each with its address in the file;
/// none if the file cannot be read.
fn code_sections(path: &Path) -> Vec<(u64, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let image = std::fs::read(path).unwrap_or_default();
    let Ok(file) = object::File::parse(&*image) else {
        return Vec::new();
    };
    let code = file
        .sections()
        .filter(|it| it.kind() == object::SectionKind::Text);
    code.filter_map(|it| Some((it.address(), it.data().ok()?.to_vec())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the change of the first instruction of the code `was` into that of the code `is`, in
    /// the source line `source`.
    fn change<'a>(was: &[u8], is: &[u8], source: &'a str) -> Change<'a> {
        let [was, next] = decoded(was, 0x1000);
        let [is] = decoded(is, 0x1000);
        Change {
            was,
            is,
            next,
            source,
        }
    }

    #[test]
    fn another_number_is_told_by_what_it_is_used_for() {
        let told = |was: &[u8], is: &[u8], source| change(was, is, source).number();
        // shl eax, 8 and 3
        let (was, is) = ([0xc1, 0xe0, 8], [0xc1, 0xe0, 7]);
        let shift = "with a shift by 7 instead of 8";
        assert_eq!(told(&was, &is, "value << 8").unwrap(), shift);
        let factor = told(&[0xc1, 0xe0, 3], &[0xc1, 0xe0, 2], "value * 8");
        assert_eq!(factor.unwrap(), "with a factor of 4 instead of 8");
        assert_eq!(told(&was, &is, "value << bits"), None);
        // add eax, 1; sub eax, 1; add eax, -1
        let (one, two) = ([0x83, 0xc0, 1], [0x83, 0xc0, 2]);
        for source in ["n++", "n + 1", "n += 0x1u"] {
            assert_eq!(
                told(&one, &two, source).unwrap(),
                "with 2 instead of 1 added"
            );
        }
        assert_eq!(told(&one, &two, "n + size1"), None);
        let less = "with 2 instead of 1 subtracted";
        let changed = told(&[0x83, 0xe8, 1], &[0x83, 0xe8, 2], "n - 1");
        assert_eq!(changed.unwrap(), less);
        let changed = told(&[0x83, 0xc0, 0xff], &[0x83, 0xc0, 0xfe], "n--");
        assert_eq!(changed.unwrap(), less);
    }

    #[test]
    fn a_comparison_has_another_limit_or_another_number() {
        let told = |was: &[u8], is: &[u8], source| change(was, is, source).number();
        // cmp eax, 7; jle +2 and jl +2
        let (at_most, less) = ([0x83, 0xf8, 7, 0x7e, 2], [0x83, 0xf8, 7, 0x7c, 2]);
        let is = [0x83, 0xf8, 9];
        let words = "with the limit between 9 and 10 instead of 7 and 8";
        assert_eq!(told(&at_most, &is, "n < 8").unwrap(), words);
        let words = "with the limit between 8 and 9 instead of 6 and 7";
        assert_eq!(told(&less, &is, "n < 7").unwrap(), words);
        let words = "with a limit that is 2 higher";
        assert_eq!(told(&less, &is, "n < LIMIT").unwrap(), words);
        // cmp al, 'a'; je +2
        let equal = told(&[0x3c, b'a', 0x74, 2], &[0x3c, b'b'], "*p == 'a'");
        assert_eq!(equal.unwrap(), "with a comparison with 'b' instead of 'a'");
    }

    #[test]
    fn operators_are_those_of_the_source_where_it_has_only_one() {
        let boundary = |source| change(&[0x7c, 2], &[0x7e, 2], source).boundary();
        assert_eq!(
            boundary("while (p->at < n << 2)"),
            "with `<=` in place of `<`"
        );
        assert_eq!(boundary("if (a >= b)"), "with `>` in place of `>=`");
        let unknown = "with the other answer for equal numbers";
        assert_eq!(boundary("if (a >= b && c > d)"), unknown);
        assert_eq!(boundary(""), unknown);
        let connective = |source| change(&[0x7c, 2], &[0x7e, 2], source).connective();
        assert_eq!(connective("if (a && b)"), "with `||` in place of `&&`");
        // add eax, ecx
        let operator = |source| change(&[0x01, 0xc8], &[0x29, 0xc8], source).operator();
        assert_eq!(operator("a + b").unwrap(), "with `-` in place of `+`");
        assert_eq!(operator("table[at]"), None);
        // movzx eax, al
        let width = |is| change(&[0x0f, 0xb6, 0xc0], is, "").width().unwrap();
        assert_eq!(
            width(&[0x0f, 0xbe, 0xc0]),
            "with a sign for a number of 8 bits"
        );
        let whole = "with a number that is not cut to 8 bits";
        assert_eq!(width(&[0x0f, 0xb7, 0xc0]), whole);
        assert_eq!(width(&[0x8b, 0xc0, 0x90]), whole);
    }
}
