//! Scripts: files that begin by naming who reads them.

/// Bytes of a script that the kernel looks at (`BINPRM_BUF_SIZE`).
const LOOKED_AT: usize = 256;

/// The interpreter that a script names in its first line, with its argument.
pub(super) fn interpreter(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(LOOKED_AT)];
    let rest = bytes.strip_prefix(b"#!")?;
    let line = rest.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).trim().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::interpreter;

    #[test]
    fn a_script_names_its_interpreter_in_its_first_line() {
        assert_eq!(interpreter(b"#! /bin/sh -e\nx"), Some("/bin/sh -e".into()));
        assert_eq!(interpreter(b"#!/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }
}
