//! Cache hints of the source for an access to device memory: [`Caching`]. All are hints but `volatile`, whose accesses
//! go to memory each time.

use tk_tile::{Attr, Attrs};

/// Where an access leaves its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// In all caches.
    #[default]
    All,
    /// Only in the cache that all processors share.
    Shared,
    /// Where it is evicted first, since it is not needed again.
    Streaming,
    /// In memory too, at once.
    Through,
    /// In none that would answer the next access.
    Volatile,
}

/// When the data leaves the cache that all processors share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evict {
    /// As other lines.
    #[default]
    Normal,
    /// Before other lines.
    First,
    /// After other lines.
    Last,
}

/// The cache hints of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// `cache`.
    pub level: Level,
    /// `evict`.
    pub evict: Evict,
}

/// The words of `cache`; without one of these an access uses all caches.
const LEVELS: [(&str, Level); 4] = [
    ("global", Level::Shared),
    ("streaming", Level::Streaming),
    ("through", Level::Through),
    ("volatile", Level::Volatile),
];

/// The words of `evict`.
const EVICTS: [(&str, Evict); 2] = [("first", Evict::First), ("last", Evict::Last)];

fn find<T: Copy + Default>(words: &[(&str, T)], attr: Option<&Attr>) -> T {
    let word = if let Some(Attr::Str(word)) = attr { word.as_str() } else { "" };
    words.iter().find(|(w, _)| *w == word).map_or(T::default(), |(_, t)| *t)
}

impl Caching {
    /// Of an instruction with these attributes.
    pub fn of(attrs: &Attrs) -> Caching {
        Caching::of_words(attrs.get("cache"), attrs.get("evict"))
    }

    /// Of the attributes `cache` and `evict`.
    pub fn of_words(cache: Option<&Attr>, evict: Option<&Attr>) -> Caching {
        Caching { level: find(&LEVELS, cache), evict: find(&EVICTS, evict) }
    }

    /// The attributes `cache` and `evict`.
    pub fn words(self) -> (Option<&'static str>, Option<&'static str>) {
        let level = LEVELS.iter().find(|(_, l)| *l == self.level).map(|(w, _)| *w);
        (level, EVICTS.iter().find(|(_, e)| *e == self.evict).map(|(w, _)| *w))
    }
}
