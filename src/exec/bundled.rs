//! The bundled targets.
/// Names.
pub fn names() -> Vec<&'static str> {
    Vec::new()
}
/// Program.
pub fn program(_name: &str) -> Option<&'static [u8]> {
    None
}
