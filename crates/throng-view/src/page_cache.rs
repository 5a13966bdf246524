//! Caches pages made from records until a file of the record changes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;

use super::record_cache::Stamp;

/// Maximum number of cached pages, and their maximum total size in bytes.
const MOST: usize = 64;
const MOST_BYTES: usize = 32 << 20;

/// The most recently made pages.
#[derive(Debug, Default)]
pub(super) struct PageCache(Mutex<VecDeque<CachedPage>>);

/// A page, and the state of the files it was made from.
#[derive(Debug)]
struct CachedPage {
    name: String,
    from: Vec<Option<Stamp>>,
    page: Bytes,
}

impl PageCache {
    /// The page `name` for files in state `from`: from the cache, or made now.
    ///
    /// # Errors
    /// When the page cannot be made.
    pub(super) fn page<E>(
        &self,
        name: String,
        from: Vec<Option<Stamp>>,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let same = |made: &&CachedPage| (&made.name, &made.from) == (&name, &from);
        if let Some(made) = self.locked().iter().find(same) {
            return Ok(made.page.clone());
        }
        let page = make()?;
        let mut all = self.locked();
        all.retain(|made| made.name != name);
        all.push_back(CachedPage {
            name,
            from,
            page: page.clone(),
        });
        let bytes =
            |all: &VecDeque<CachedPage>| all.iter().map(|made| made.page.len()).sum::<usize>();
        while all.len() > MOST || bytes(&all) > MOST_BYTES {
            all.pop_front();
        }
        Ok(page)
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<CachedPage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_page_is_made_again_when_a_file_changes_and_few_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.json");
        let pages = PageCache::default();
        let page = |name: &str, text: &'static [u8]| -> Bytes {
            let from = vec![Stamp::of(&file)];
            let made: Result<Bytes, Infallible> =
                pages.page(name.to_owned(), from, || Ok(Bytes::from_static(text)));
            made.unwrap()
        };
        assert_eq!(page("a", b"first"), "first");
        assert_eq!(page("a", b"second"), "first");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(page("a", b"second"), "second");
        for number in 0..MOST {
            page(&format!("b{number}"), b"other");
        }
        assert_eq!(pages.locked().len(), MOST);
        assert_eq!(page("a", b"third"), "third", "the oldest is forgotten");
    }
}
