//! The handshake with an AFL++ fork server: one word up to AFL++ 4.09, several messages since 4.10.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

use crate::AbandonWhen;
use crate::protocol::{HELLO_SIZE, MAGIC, Trouble, read_hello};
use crate::server::read_within;

/// Constants of the one-word handshake up to AFL++ 4.09: a set of flags (AFL++'s `FS_OPT_…`). Zero
/// means no options.
mod old {
    pub(super) const ENABLED: u32 = 0x8000_0001;
    pub(super) const MAP_SIZE: u32 = 0x4000_0000;
    pub(super) const SHARED_INPUT: u32 = 0x0100_0000;
    pub(super) const ERROR: u32 = 0xf800_008f;
    /// Four bits of the handshake word that some AFL++ versions set together without meaning the
    /// options for which the bits stand; they are ignored then.
    pub(super) const WORKAROUND: u32 = 0x0f00_0000;

    /// Returns the size of the coverage map in bytes, from the handshake word's middle bits, which
    /// hold the size minus one.
    pub(super) fn map_size(word: u32) -> usize {
        ((word & 0x00ff_fffe) >> 1) as usize + 1
    }
}

/// Constants of the handshake messages since AFL++ 4.10 (AFL++'s `FS_NEW_…`).
mod new {
    pub(super) const VERSION: u32 = 0x4146_4c00;
    pub(super) const KNOWN: u32 = 1;
    pub(super) const MAP_SIZE: u32 = 0x0000_0001;
    pub(super) const SHARED_INPUT: u32 = 0x0000_0002;
    pub(super) const DICTIONARY: u32 = 0x0000_0800;
    pub(super) const ERROR: u32 = 0xeffe_0000;
    /// Allowed size of the dictionary that a fork server sends in its handshake, in bytes.
    pub(super) const DICTIONARIES: std::ops::RangeInclusive<u32> = 2..=0x00ff_ffff;
}

/// AFL++'s error number for a coverage map that is too small (`FS_ERROR_MAP_SIZE`).
pub(super) const MAP_TOO_SMALL: u32 = 1;

/// The options that an AFL++ fork server reports in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// Size of the program's coverage map, in bytes; `None` if it is not reported.
    pub(super) map_size: Option<usize>,
    /// Whether the program reads its input from memory shared with the fuzzer.
    pub(super) shares_input: bool,
}

/// Why a handshake with an AFL++ fork server has failed, such as an early end, a timeout or an
/// unknown version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error(
        "it exited before its fork server started (was it compiled by afl-clang-fast or another AFL++ compiler?)"
    )]
    Ended,
    #[error("its fork server did not start within {} s", .0.as_secs())]
    Late(Duration),
    /// The launcher, which starts the target, could not execute the program.
    #[error("it cannot be started")]
    Launch(Trouble),
    #[error("its fork server reports: {}", meaning(*.0))]
    Error(u32),
    #[error(
        "its fork server speaks protocol version {0}; ddfuzz knows version 1 and the older one without a version"
    )]
    Version(u32),
    #[error("its fork server needs inputs in shared memory, which was not offered")]
    Unoffered,
    #[error("its fork server sent an invalid handshake: {what} {word:#010x}")]
    ProtocolBroken { what: &'static str, word: u32 },
}

/// Describes an error number of AFL++ (`FS_ERROR_…`) in words for users.
fn meaning(error: u32) -> String {
    let known = match error {
        MAP_TOO_SMALL => "the coverage map is too small for it",
        2 => "its map's fixed address is not free (recompile it without AFL_LLVM_MAP_ADDR)",
        4 => "shared memory could not be opened",
        8 => "shared memory could not be attached",
        16 => "memory could not be mapped",
        other => return format!("error {other}"),
    };
    known.to_owned()
}

pub(super) struct HandshakePipes<'a> {
    pub(super) control: &'a mut File,
    pub(super) status: &'a mut File,
    /// True if ddfuzz proposes to the AFL++ fork server of the target that inputs are passed in
    /// shared memory.
    pub(super) shared: bool,
    /// Conditions under which the handshake ends early, because the run that needs the fork server
    /// is abandoned.
    pub(super) abandon_when: &'a AbandonWhen,
    /// How long the whole handshake with the AFL++ fork server may take.
    pub(super) timeout: Duration,
    pub(super) began: Instant,
}

impl HandshakePipes<'_> {
    /// Performs the handshake with an AFL++ fork server of any version, and returns the options
    /// that the server reports.
    pub(super) fn perform(mut self) -> Result<Handshake, HandshakeError> {
        let word = self.word()?;
        if word == MAGIC {
            return Err(self.launcher_error(word));
        }
        if word & 0xffff_0000 == new::ERROR {
            return Err(HandshakeError::Error(word & 0xffff));
        }
        match word & 0xffff_ff00 {
            new::VERSION => self.new_handshake(word),
            _ => self.old_handshake(word),
        }
    }

    fn old_handshake(&mut self, word: u32) -> Result<Handshake, HandshakeError> {
        if word & old::ERROR == old::ERROR {
            return Err(HandshakeError::Error((word & 0x00ff_ff00) >> 8));
        }
        if word & old::ENABLED != old::ENABLED {
            let what = "an old handshake without its mark:";
            return match word {
                0 => Ok(Handshake {
                    map_size: None,
                    shares_input: false,
                }),
                _ => Err(HandshakeError::ProtocolBroken { what, word }),
            };
        }
        let odd = word & old::WORKAROUND == old::WORKAROUND;
        let word = if odd { word & !old::WORKAROUND } else { word };
        let shares_input = word & old::SHARED_INPUT != 0;
        if shares_input {
            self.may_share()?;
            // The option for a dictionary is not set, so none is sent.
            self.send(old::ENABLED | old::SHARED_INPUT)?;
        }
        Ok(Handshake {
            map_size: (word & old::MAP_SIZE != 0).then(|| old::map_size(word)),
            shares_input,
        })
    }

    fn new_handshake(&mut self, version: u32) -> Result<Handshake, HandshakeError> {
        if version & 0xff != new::KNOWN {
            return Err(HandshakeError::Version(version & 0xff));
        }
        self.send(!version)?;
        let options = self.word_or_error()?;
        if options & !(new::MAP_SIZE | new::SHARED_INPUT | new::DICTIONARY) != 0 {
            return Err(HandshakeError::ProtocolBroken {
                what: "options",
                word: options,
            });
        }
        // Values of the options arrive in the order of the options' bits.
        let map_size = match options & new::MAP_SIZE {
            0 => None,
            _ => Some(self.word_or_error()? as usize),
        };
        let shares_input = options & new::SHARED_INPUT != 0;
        if shares_input {
            self.may_share()?;
        }
        if options & new::DICTIONARY != 0 {
            self.skip_dictionary()?;
        }
        let word = self.word_or_error()?;
        if word != version {
            let what = "instead of the version again:";
            return Err(HandshakeError::ProtocolBroken { what, word });
        }
        Ok(Handshake {
            map_size,
            shares_input,
        })
    }

    /// Reads a word of four bytes from the fork server; returns an error if reading fails or if the
    /// word is an error message.
    fn word_or_error(&mut self) -> Result<u32, HandshakeError> {
        match self.word()? {
            word if word & 0xffff_0000 == new::ERROR => Err(HandshakeError::Error(word & 0xffff)),
            word => Ok(word),
        }
    }

    fn skip_dictionary(&mut self) -> Result<(), HandshakeError> {
        let length = self.word_or_error()?;
        if !new::DICTIONARIES.contains(&length) {
            return Err(HandshakeError::ProtocolBroken {
                what: "a dictionary of so many bytes",
                word: length,
            });
        }
        let mut left = length as usize;
        let mut block = [0; 4096];
        while left > 0 {
            let count = left.min(block.len());
            self.read(&mut block[..count])?;
            left -= count;
        }
        Ok(())
    }

    fn may_share(&self) -> Result<(), HandshakeError> {
        self.shared.then_some(()).ok_or(HandshakeError::Unoffered)
    }

    /// Reads the rest of the launcher's first message, which begins with the word `magic` and says
    /// why the program could not be executed. Returns it as an error.
    fn launcher_error(&mut self, magic: u32) -> HandshakeError {
        let mut hello = [0; HELLO_SIZE];
        hello[..4].copy_from_slice(&magic.to_ne_bytes());
        match self.read(&mut hello[4..]) {
            Ok(()) => match read_hello(&hello) {
                Err(trouble) => HandshakeError::Launch(trouble),
                Ok(_) => HandshakeError::Launch(Trouble::ProtocolBroken),
            },
            Err(refused) => refused,
        }
    }

    fn word(&mut self) -> Result<u32, HandshakeError> {
        let mut bytes = [0; 4];
        self.read(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), HandshakeError> {
        let left = self.timeout.saturating_sub(self.began.elapsed());
        read_within(self.status, buffer, left, self.abandon_when).map_err(|error| {
            match error.kind() {
                ErrorKind::TimedOut => HandshakeError::Late(self.timeout),
                _ => HandshakeError::Ended,
            }
        })
    }

    fn send(&mut self, word: u32) -> Result<(), HandshakeError> {
        let said = self.control.write_all(&word.to_ne_bytes());
        said.map_err(|_| HandshakeError::Ended)
    }
}
