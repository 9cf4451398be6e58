//! Names that are made at run time and live as long as the program.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Returns the one copy of a name. A program has as many as it has prompts and resources, however often their toolsets
/// are built.
pub(super) fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    match names.get(name.as_str()) {
        Some(known) => known,
        None => {
            let name: &'static str = Box::leak(name.into_boxed_str());
            names.insert(name);
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_kept_once() {
        assert!(std::ptr::eq(interned("a-name".to_owned()), interned("a-name".to_owned())));
    }
}
