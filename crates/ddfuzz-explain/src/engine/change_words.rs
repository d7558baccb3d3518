//! What a changed instruction does in place of the program's, in words. Pure.

use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::mutant_words::IN_CODE;
use super::mutants::sign_extended;
use super::source_text::{
    adds, has_number, has_size, has_step, is_literal, is_quoted, relations, steps,
};

/// The changed instruction of a mutant, with what is needed to describe the change in words.
pub(super) struct Change<'a> {
    /// The instruction in the program, before the change.
    pub was: Instruction,
    /// The instruction in the mutant, in place of `was`.
    pub is: Instruction,
    /// The instruction after the changed one in the program.
    pub next: Instruction,
    /// The number in the code with which the condition of `was` compares a value, and the size of
    /// both in bytes; `None` if it compares two values, or if that is not known.
    pub compared: Option<(i64, usize)>,
    /// Name of the variable to which `was` adds its number; `None` if it is not known.
    pub added_to: Option<&'a str>,
    /// Text of the changed source line; empty where it is unknown.
    pub source: &'a str,
}

/// Returns the first `N` instructions of the machine code `code`, which begins at the address
/// `start`; invalid ones where `code` ends before.
pub(super) fn decoded<const N: usize>(code: &[u8], start: u64) -> [Instruction; N] {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    std::array::from_fn(|_| decoder.decode())
}

/// Returns the number in the code with which `it`, an instruction before a conditional jump,
/// compares a value, and the size of both in bytes; `None` if it does not compare with a number.
pub(super) fn compared(it: &Instruction) -> Option<(i64, usize)> {
    match it.mnemonic() {
        Mnemonic::Cmp => number(it),
        Mnemonic::Test if it.op0_register() == it.op1_register() => {
            (it.op0_kind() == OpKind::Register).then(|| (0, it.op0_register().size()))
        }
        _ => None,
    }
}

/// Returns the last operand of the instruction `it` as a signed number, and the size in bytes of
/// the first operand; `None` if the last operand is not an immediate (a number in the code).
pub(super) fn number(it: &Instruction) -> Option<(i64, usize)> {
    let size = match it.op0_kind() {
        OpKind::Memory => it.memory_size().size(),
        _ => it.op0_register().size(),
    };
    let value = it.try_immediate(it.op_count().checked_sub(1)?).ok()?;
    Some((sign_extended(value, size.clamp(1, 8)), size))
}

/// Returns the largest number of those on the lower side of a condition: it compares values with
/// `number`, which has `size` bytes, and the instruction `it` uses the condition (less, greater).
/// `None` if the condition is not one by order, or if the number is too large.
fn limit_of(it: &Instruction, (number, size): (i64, usize)) -> Option<i64> {
    use ConditionCode::{a, ae, b, be, g, ge, l, le};
    let code = it.condition_code();
    let number = match code {
        a | ae | b | be if number < 0 && size < 8 => number + (1 << (8 * size)),
        a | ae | b | be if number < 0 => return None,
        _ => number,
    };
    match code {
        be | a | le | g => Some(number),
        ae | b | ge | l => number.checked_sub(1),
        _ => None,
    }
}

/// Returns in words that a limit is larger by `by`, or lower if `by` is negative; `None` for 0.
fn other_limit(by: i64) -> Option<String> {
    let how = if by < 0 { "lower" } else { "higher" };
    (by != 0).then(|| format!("with a limit that is {} {how}", by.unsigned_abs()))
}

/// Returns what the operator `name` does, as a noun: `an addition`.
fn operation(name: &str) -> &'static str {
    match name {
        "+" => "an addition",
        "-" => "a subtraction",
        "&" => "a bitwise and",
        "|" => "a bitwise or",
        _ => "an exclusive or",
    }
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
    pub fn number(&self) -> Option<String> {
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
    /// line does not add or subtract `was`, as where the compiler has computed a limit; except for 1
    /// and -1 in a line with `++` or `--`, if the sum is put where the number was.
    fn sum(&self, was: i64, is: i64) -> Option<String> {
        if let Some(words) = self.computed_limit(was, is) {
            return Some(words);
        }
        let is_step = was.abs() == 1 && has_step(self.source) && self.goes_back();
        if !is_step && !adds(self.source, was.checked_abs()?) {
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
        let both = [was, is].map(|it| limit_of(&self.next, (it, size)));
        let is_order = limit_of(&self.next, (0, size)).is_some();
        if !is_order {
            let is_known = was == 0 || self.has(was);
            let [is, was] = [is, was].map(|it| self.shown(it, size, was));
            return is_known.then(|| format!("with a comparison with {is} instead of {was}"));
        }
        self.limits(both[0]?, both[1]?)
    }

    /// Returns the number `it`, or one in place of the number `was`, as the source would write it:
    /// as a character if the number has one byte (`size`) or the source line has the character
    /// `was`.
    fn shown(&self, it: i64, size: usize, was: i64) -> String {
        let is_character = size == 1 || is_quoted(self.source, was);
        match u8::try_from(it) {
            Ok(byte) if is_character && (byte.is_ascii_graphic() || byte == b' ') => {
                format!("'{}'", char::from(byte).escape_default())
            }
            _ => it.to_string(),
        }
    }

    /// Returns in words that the answer of a comparison changes above the number `is` instead of
    /// above the number `was`. The words have the numbers if the source line has one of the old
    /// two. `None` if nothing changes, or if a number is too large.
    fn limits(&self, was: i64, is: i64) -> Option<String> {
        let (after, now) = (was.checked_add(1)?, is.checked_add(1)?);
        Some(match self.has(was) || self.has(after) {
            true => format!("with the limit between {is} and {now} instead of {was} and {after}"),
            // The compiler may compare a sum.
            false => other_limit(is.checked_sub(was)?)?,
        })
    }

    /// Returns in words that the mutant adds `is` instead of `was` to the limit of the source
    /// line's only comparison by order: compilers compare with `n + 1` for `i <= n`. `None` if the
    /// number is added to something else than the variable that is the limit, or if that is not
    /// known.
    fn computed_limit(&self, was: i64, is: i64) -> Option<String> {
        let name = self.added_to?;
        let [relation] = relations(self.source)[..] else {
            return None;
        };
        let operator = match (relation.left == name, relation.right == name) {
            (false, true) => relation.operator,
            (true, false) => relation.turned(),
            _ => return None,
        };
        if steps(self.source, name) {
            return None;
        }
        match (operator, was, is) {
            ("<=" | ">", 1, 0) | ("<" | ">=", -1, 0) => Some(relation.words()),
            _ => other_limit(is.checked_sub(was)?),
        }
    }

    /// Returns true if an addition puts the sum where the number was: into the same register, or
    /// into memory, as after `i++`.
    fn goes_back(&self) -> bool {
        let (was, next) = (&self.was, &self.next);
        let to = was.op0_register();
        let is_stored = next.mnemonic() == Mnemonic::Mov
            && next.op0_kind() == OpKind::Memory
            && next.op1_register().full_register() == to.full_register();
        was.mnemonic() != Mnemonic::Lea
            || to.full_register() == was.memory_base().full_register()
            || is_stored
    }

    /// Returns in words which number the mutant has in its code in place of the program's number;
    /// `None` if the instruction has none.
    pub fn code_number(&self) -> Option<String> {
        let ((was, size), (is, _)) = match (number(&self.was), number(&self.is)) {
            (Some(was), Some(is)) => (was, is),
            _ => {
                let [was, is] = [&self.was, &self.is].map(|it| it.memory_displacement64() as i64);
                ((was, 8), (is, 8))
            }
        };
        if has_size(self.source) && was != is {
            let by = is.wrapping_sub(was);
            let how = if by < 0 { "smaller" } else { "larger" };
            return Some(format!("with a size that is {} {how}", by.unsigned_abs()));
        }
        let is_compared = self.was.mnemonic() == Mnemonic::Cmp;
        let [was, is] = match is_compared {
            true => [was, is].map(|it| self.shown(it, size, was)),
            false => [was, is].map(|it| it.to_string()),
        };
        let what = if was.starts_with('\'') && is.starts_with('\'') {
            ""
        } else {
            "the number "
        };
        (was != is).then(|| format!("with {what}{is} instead of {was}{IN_CODE}"))
    }

    /// Returns in words that the mutant adds another constant in an instruction `lea`, which
    /// computes an address, but by which compilers also add numbers. `None` for other instructions,
    /// and if the source line does not have the old constant.
    pub fn displaced(&self) -> Option<String> {
        let [was, is] = [&self.was, &self.is].map(|it| it.memory_displacement64() as i64);
        match self.was.mnemonic() {
            Mnemonic::Lea => self.sum(was, is),
            _ => None,
        }
    }

    /// Returns in words which operator the mutant has in place of that of the program, as in
    /// ``with `-` in place of `+` ``. The operators are `+`, `-`, `&`, `|` and `^`; if the source line
    /// does not contain that of the program, the words name the operations of the code. `None` if
    /// the instruction of the program or of the mutant has none of these.
    pub fn operator(&self) -> Option<String> {
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
        Some(match is_known.contains(was) {
            true => format!("with `{is}` in place of `{was}`"),
            false => {
                let [is, was] = [is, was].map(operation);
                format!("with {is} in place of {was}{IN_CODE}")
            }
        })
    }

    /// Returns in words how the mutant widens a number of few bits otherwise than the program,
    /// which does so by `movzx` or `movsx`: the mutant reads more bits, takes the number as signed,
    /// or takes it as unsigned. `None` for other instructions in the mutant.
    pub fn width(&self) -> Option<String> {
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
    /// equal. The words name the operators (`<=` in place of `<`) if the source line has exactly one
    /// relational operator, and the code compares as the source does. For `n >= 6`, a compiler may
    /// compare with 5: the mutant then has another limit than `n > 6`. The words tell the limits,
    /// or the number that is decided otherwise.
    pub fn boundary(&self) -> String {
        let all = relations(self.source);
        let only = match all[..] {
            [only] => Some(only),
            _ => None,
        };
        let Some(compared) = self.compared else {
            let unknown = "with the other decision where both sides are equal";
            return only.map_or_else(|| unknown.to_owned(), |it| it.words());
        };
        let decided = format!("with the other decision for the number {}", compared.0);
        let [Some(was), Some(is)] = [&self.was, &self.is].map(|it| limit_of(it, compared)) else {
            return decided;
        };
        let limit = only.and_then(|it| Some((it, it.limit()?)));
        if let Some((relation, (operator, limit))) = limit {
            let (after, moved) = match operator {
                "<" | ">=" => (1, 1),
                _ => (0, -1),
            };
            let is_it = has_number(limit, was.saturating_add(after)) || !is_literal(limit);
            if is_it && is.saturating_sub(was) == moved {
                return relation.words();
            }
        }
        let has = self.has(was) || self.has(was.saturating_add(1));
        let told = self.limits(was, is).filter(|_| limit.is_some() || has);
        told.unwrap_or(decided)
    }

    /// Returns the words for a mutant that joins two conditions by `||` instead of `&&`, or the
    /// other way. The words say which of these two it is if the source line has one such operator
    /// in all; otherwise, they leave both possible.
    pub fn connective(&self) -> &'static str {
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
            compared: None,
            added_to: None,
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
    fn a_computed_limit_is_not_added_in_the_source() {
        // lea ecx, [rdi+1], with 0 and 2 in place of 1
        let (was, is, more) = ([0x8d, 0x4f, 1], [0x8d, 0x4f, 0], [0x8d, 0x4f, 2]);
        let told = |was: &[u8], is: &[u8], name, source| {
            let mut change = change(was, is, source);
            change.added_to = name;
            change.displaced().or_else(|| change.code_number()).unwrap()
        };
        let source = "for (i = 1; i <= n; i++)";
        let words = "with `<` in place of `<=`";
        assert_eq!(told(&was, &is, Some("n"), source), words);
        let words = "with a limit that is 1 higher";
        assert_eq!(told(&was, &more, Some("n"), source), words);
        let words = "with the number 0 instead of 1 in its code";
        assert_eq!(told(&was, &is, None, source), words);
        assert_eq!(told(&was, &is, Some("i"), source), words);
        // lea ecx, [rcx+1]
        let step = told(&[0x8d, 0x49, 1], &[0x8d, 0x49, 2], Some("i"), source);
        assert_eq!(step, "with 2 instead of 1 added");
        // cmp al, '-'
        let case = change(&[0x3c, b'-'], &[0x3c, b'.'], "switch (line[0]) {").code_number();
        assert_eq!(case.unwrap(), "with '.' instead of '-' in its code");
    }

    #[test]
    fn operators_are_those_of_the_source_where_it_has_only_one() {
        let boundary = |source| change(&[0x7c, 2], &[0x7e, 2], source).boundary();
        assert_eq!(
            boundary("while (p->at < n << 2)"),
            "with `<=` in place of `<`"
        );
        assert_eq!(boundary("if (a >= b)"), "with `>` in place of `>=`");
        let unknown = "with the other decision where both sides are equal";
        assert_eq!(boundary("if (a >= b && c > d)"), unknown);
        assert_eq!(boundary(""), unknown);
        let connective = |source| change(&[0x7c, 2], &[0x7e, 2], source).connective();
        assert_eq!(connective("if (a && b)"), "with `||` in place of `&&`");
        // jg and jge after cmp edi, 5
        let words = |is, source| {
            let mut change = change(&[0x7f, 2], is, source);
            change.compared = Some((5, 4));
            change.boundary()
        };
        let lower = "with a limit that is 1 lower";
        assert_eq!(words(&[0x7d, 2], "if (n >= MAXSTOPS)"), lower);
        let limit = "with the limit between 4 and 5 instead of 5 and 6";
        assert_eq!(words(&[0x7d, 2], "if (n >= 6)"), limit);
        let same = "with `>=` in place of `>`";
        assert_eq!(words(&[0x7d, 2], "if (n > 5)"), same);
        assert_eq!(words(&[0x7d, 2], "if (n > MAX)"), same);
        let unknown = "with the other decision for the number 5";
        assert_eq!(words(&[0x7d, 2], "if (n >= max)"), unknown);
        // add eax, ecx
        let operator = |source| change(&[0x01, 0xc8], &[0x29, 0xc8], source).operator();
        assert_eq!(operator("a + b").unwrap(), "with `-` in place of `+`");
        let unknown = "with a subtraction in place of an addition in its code";
        assert_eq!(operator("table[at]").unwrap(), unknown);
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
