//! The compile cache: entries come back exactly or not at all, whatever happens to the folder.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tk_driver::{Cache, Key, Size};

/// An empty folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tk-cache-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path());
        files.filter(|p| p.extension().is_some_and(|e| e == "tkc")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(n: u32) -> Key {
    Key::of(&[b"test", &n.to_le_bytes()])
}

#[test]
fn parts_of_a_key_are_told_apart() {
    assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
    assert_ne!(Key::of(&[b"a"]), Key::of(&[b"a", b""]));
    assert_eq!(Key::of(&[b"a", b"b"]), Key::of(&[b"a", b"b"]));
}

#[test]
fn what_is_put_comes_back() {
    let folder = Folder::new("back");
    let cache = Cache::at(&folder.0, 1 << 20);
    assert_eq!(cache.get(&key(1)), None);
    for payload in [&b"hello"[..], b"", &[0; 5000]] {
        cache.put(&key(1), payload);
        assert_eq!(cache.get(&key(1)).as_deref(), Some(payload));
    }
    assert_eq!(cache.get(&key(2)), None);
    assert_eq!(cache.size().entries, 1);
}

#[test]
fn every_damage_is_a_miss_and_is_replaced() {
    let folder = Folder::new("damage");
    let cache = Cache::at(&folder.0, 1 << 20);
    cache.put(&key(1), b"the payload");
    let path = folder.entries().pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|n| whole[..n].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|n| {
        let mut bytes = whole.clone();
        bytes[n] ^= 0x10;
        bytes
    }));
    damaged.push([whole.as_slice(), b"more"].concat());
    damaged.push(b"something else".to_vec());
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(&key(1)), None, "{bytes:?}");
        cache.put(&key(1), b"the payload");
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    // An entry under the name of another one.
    cache.put(&key(2), b"other");
    let other = folder.entries().into_iter().find(|p| *p != path).unwrap();
    fs::copy(&other, &path).unwrap();
    assert_eq!(cache.get(&key(1)), None);
    // A folder under its name cannot be replaced, and is no error.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    cache.put(&key(1), b"the payload");
    assert_eq!(cache.get(&key(1)), None);
}

#[test]
fn what_was_used_last_stays() {
    let folder = Folder::new("limit");
    let limit = 100_000;
    let cache = Cache::at(&folder.0, limit);
    for n in 0..200 {
        cache.put(&key(n), &[7; 2000]);
        assert!(cache.size().bytes <= limit, "{:?} after {n}", cache.size());
        // Clocks of file systems are coarse, so what is not used is made older.
        for path in folder.entries() {
            let file = fs::File::open(path).unwrap();
            let used = file.metadata().unwrap().modified().unwrap();
            file.set_modified(used - Duration::from_secs(1)).unwrap();
        }
        assert!(cache.get(&key(0)).is_some(), "after {n}");
    }
    assert_eq!(cache.get(&key(1)), None);
    assert!(cache.get(&key(199)).is_some());
    assert!(cache.size().entries > 20, "{:?}", cache.size());
    // What can never fit does not push out what is there.
    cache.put(&key(1000), &vec![7; 200_000]);
    assert_eq!(cache.get(&key(1000)), None);
    assert!(cache.get(&key(0)).is_some());
}

#[test]
fn only_entries_are_removed() {
    let folder = Folder::new("foreign");
    let cache = Cache::at(&folder.0, 1 << 20);
    cache.put(&key(1), b"one");
    let foreign = ["notes.txt", "x.tkc", ".tk-unfinished-1"];
    for name in foreign {
        fs::write(folder.0.join(name), "mine").unwrap();
    }
    assert_eq!(cache.size().entries, 1);
    assert_eq!(cache.clear().unwrap().entries, 1);
    assert_eq!(cache.size(), Size::default());
    for name in foreign {
        assert!(folder.0.join(name).exists(), "{name}");
    }
}

#[test]
fn what_a_killed_process_left_is_removed_later() {
    let folder = Folder::new("killed");
    let cache = Cache::at(&folder.0, 8000);
    cache.put(&key(1), b"one");
    let (old, new) = (folder.0.join(".tk-unfinished-1"), folder.0.join(".tk-unfinished-2"));
    for path in [&old, &new] {
        fs::write(path, "half").unwrap();
    }
    let then = SystemTime::now() - Duration::from_secs(2 * 3600);
    fs::File::options().write(true).open(&old).unwrap().set_modified(then).unwrap();
    cache.put(&key(2), &[0; 1000]);
    assert!(!old.exists() && new.exists());
}

#[test]
fn without_a_folder_everything_is_a_miss() {
    let folder = Folder::new("below");
    fs::write(&folder.0, "a file").unwrap();
    let cache = Cache::at(&folder.0.join("cache"), 1 << 20);
    cache.put(&key(1), b"one");
    assert_eq!(cache.get(&key(1)), None);
    assert_eq!(cache.size(), Size::default());
    assert!(cache.writable().is_err());
    assert_eq!(cache.clear().unwrap(), Size::default());
    fs::remove_file(&folder.0).unwrap();
    assert_eq!(cache.writable(), Ok(()));
}

#[test]
fn many_at_once_see_whole_entries() {
    let folder = Folder::new("many");
    let payload = |n: u32| vec![n as u8; 1000 + n as usize];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // A cache of its own each, as another process has; the limit makes them remove each other's entries.
            scope.spawn(|| {
                let cache = Cache::at(&folder.0, 30_000);
                for round in 0..300 {
                    let n = round % 50;
                    match cache.get(&key(n)) {
                        Some(found) => assert_eq!(found, payload(n)),
                        None => cache.put(&key(n), &payload(n)),
                    }
                }
            });
        }
    });
    assert!(Cache::at(&folder.0, 30_000).size().bytes <= 40_000);
}
