//! Owns what the source asks of the caches for an access to device memory: [`Caching`]. Hints but for `volatile`, whose accesses
//! go to memory each time.

use tk_tile::{Attr, Attrs};

/// Where an access leaves what it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// In all caches.
    #[default]
    All,
    /// Only in the cache that all processors share.
    Shared,
    /// Where it is in nobody's way, since it is not needed again.
    Streaming,
    /// In memory too, at once.
    Through,
    /// In none that would answer the next access.
    Volatile,
}

/// When what it touches leaves the cache that all processors share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evict {
    /// As other things.
    #[default]
    Normal,
    /// Before other things.
    First,
    /// Behind other things.
    Last,
}

/// What the source asks of the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// `cache`.
    pub level: Level,
    /// `evict`.
    pub evict: Evict,
}

impl Caching {
    /// Of an instruction with these attributes.
    pub fn of(attrs: &Attrs) -> Caching {
        let word = |name| match attrs.get(name) {
            Some(Attr::Str(word)) => word.as_str(),
            _ => "",
        };
        let level = match word("cache") {
            "global" => Level::Shared,
            "streaming" => Level::Streaming,
            "through" => Level::Through,
            "volatile" => Level::Volatile,
            _ => Level::All,
        };
        let evict = match word("evict") {
            "first" => Evict::First,
            "last" => Evict::Last,
            _ => Evict::Normal,
        };
        Caching { level, evict }
    }
}
