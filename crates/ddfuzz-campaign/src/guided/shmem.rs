//! Shared memory for LLMP that no killed process can leave behind.

use libafl_bolts::Error;
use libafl_bolts::shmem::{ShMem, ShMemId, ShMemProvider, UnixShMem, UnixShMemProvider};

/// Gives System V segments that are marked for removal from their first moment: Linux lets others
/// attach them as long as somebody has them, and they are gone with the last of those, however
/// they end.
#[derive(Clone, Debug, Default)]
pub(super) struct Vanishing {
    segments: UnixShMemProvider,
}

impl ShMemProvider for Vanishing {
    type ShMem = UnixShMem;

    fn new() -> Result<Vanishing, Error> {
        Ok(Vanishing {
            segments: UnixShMemProvider::new()?,
        })
    }

    fn new_shmem(&mut self, size: usize) -> Result<UnixShMem, Error> {
        let segment = self.segments.new_shmem(size)?;
        // SAFETY: takes a number; the last argument is not used by this command.
        unsafe { libc::shmctl(segment.id().into(), libc::IPC_RMID, std::ptr::null_mut()) };
        Ok(segment)
    }

    fn shmem_from_id_and_size(&mut self, id: ShMemId, size: usize) -> Result<UnixShMem, Error> {
        self.segments.shmem_from_id_and_size(id, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_can_be_attached_while_it_is_held_and_is_gone_with_it() {
        let mut provider = Vanishing::new().unwrap();
        let mut segment = provider.new_shmem(4096).unwrap();
        segment[7] = 42;
        let id = segment.id();
        let again = provider.shmem_from_id_and_size(id, 4096).unwrap();
        assert_eq!(again[7], 42);
        drop((segment, again));
        assert!(provider.shmem_from_id_and_size(id, 4096).is_err());
    }
}
