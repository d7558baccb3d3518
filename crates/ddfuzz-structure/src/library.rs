//! Loads grammars from shared libraries, which tree-sitter builds from the grammar of any language.
//!
//! A grammar is loaded only where a command names its file. Logs have the name of the language
//! alone, so that reading a log never loads code.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;
use tree_sitter::{LANGUAGE_VERSION, Language, MIN_COMPATIBLE_LANGUAGE_VERSION};
use tree_sitter_language::LanguageFn;

use crate::language::KnownLanguage;

/// The languages whose grammars were loaded in this process; they are never unloaded.
static LOADED: Mutex<Vec<&'static KnownLanguage>> = Mutex::new(Vec::new());

/// Error of loading a grammar: the file is not a shared library, or has no grammar that can be
/// used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no grammar can be loaded from {}: {why}", path.display())]
pub struct GrammarError {
    /// Path of the shared library from which the grammar could not be loaded.
    pub path: PathBuf,
    /// Why no grammar can be loaded from the file, for the user.
    pub why: String,
}

/// Checks whether a value of the option `--grammar` is the path of a shared library, not the name
/// of a grammar: it contains `/` or has the extension `so`.
pub fn is_library(value: &str) -> bool {
    value.contains('/') || Path::new(value).extension().is_some_and(|it| it == "so")
}

/// Loads the grammar in the shared library `path`, and returns the name of its language, by which
/// it is known from now on. The name is that of the file without the extension and without
/// `libtree-sitter-` or `tree-sitter-`; the library exports the function `tree_sitter_NAME`.
///
/// Loading a library runs its code: it must be trusted as a program is.
///
/// # Errors
/// If the file is not a shared library, or has no grammar of a supported version.
pub fn load_grammar(path: &Path) -> Result<String, GrammarError> {
    let error = |why: String| GrammarError {
        path: path.to_owned(),
        why,
    };
    let name = language_name(path)
        .ok_or_else(|| error("its name does not say the language, as lua.so does".to_owned()))?;
    // With a directory, the path is not searched for in the directories of the system.
    let whole = path
        .canonicalize()
        .map_err(|reason| error(reason.to_string()))?;
    // SAFETY: the user has named the library and trusts its code.
    let library = unsafe { Library::new(&whole) }.map_err(|reason| error(reason.to_string()))?;
    let symbol = format!("tree_sitter_{name}");
    // SAFETY: by the convention of tree-sitter, a function of this name has this type.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> *const ()>(symbol.as_bytes()) };
    let function = *function.map_err(|_| {
        error(format!(
            "it has no function {symbol}; the file must be named after its language, as lua.so is"
        ))
    })?;
    // SAFETY: the function returns the grammar, which lives as long as the library.
    let language = Language::from(unsafe { LanguageFn::from_raw(function) });
    let version = language.abi_version();
    if !(MIN_COMPATIBLE_LANGUAGE_VERSION..=LANGUAGE_VERSION).contains(&version) {
        return Err(error(format!(
            "its version is {version}, and versions {MIN_COMPATIBLE_LANGUAGE_VERSION} to \
             {LANGUAGE_VERSION} can be used"
        )));
    }
    // The grammar must live as long as the process.
    std::mem::forget(library);
    let known = KnownLanguage::loaded(name.clone(), language);
    let mut all = lock();
    all.retain(|one| one.name() != name);
    all.push(Box::leak(Box::new(known)));
    Ok(name)
}

/// Returns the languages whose grammars were loaded from shared libraries, in the order of loading.
pub fn loaded() -> impl Iterator<Item = &'static KnownLanguage> {
    lock().clone().into_iter()
}

fn lock() -> MutexGuard<'static, Vec<&'static KnownLanguage>> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the language that the file name of a shared library contains, such as `lua`
/// for `libtree-sitter-lua.so`; `None` if the name is not of this form.
fn language_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = file.split('.').next()?;
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    let prefixes = ["tree-sitter-", "tree_sitter_"];
    let name = prefixes.iter().find_map(|prefix| stem.strip_prefix(prefix));
    let name = name.unwrap_or(stem).replace('-', "_");
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_word)).then_some(name)
}
