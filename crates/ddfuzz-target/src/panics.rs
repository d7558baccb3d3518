//! Panics end the process where they begin.

/// Lets each panic abort as soon as the hook that is set now has said what it says. Without
/// unwinding the stack still shows where the panic began, and nothing that would catch the panic
/// can hide it.
///
/// ddfuzz knows this crate's frames, as it does those of the standard library, and names the crash
/// by what is behind them.
pub(crate) fn abort_behind_the_hook() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
}
