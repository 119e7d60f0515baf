//! Converts between URIs of a client and paths of [`crate::ide`].
//!
//! A file is its absolute path, with `/` on every system. What has no file, such as `untitled:Untitled-1`, is its URI.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a URI.
pub fn path(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_string() };
    let rest = rest.strip_prefix("localhost/").map_or(rest.to_string(), |r| format!("/{r}"));
    let decoded = percent_decode_str(&rest).decode_utf8_lossy().into_owned();
    if let Some(drive) = drive(&decoded) {
        return normal(drive);
    }
    // A host is the first part of the path of a network share.
    if decoded.starts_with('/') { normal(&decoded) } else { format!("/{}", normal(&format!("/{decoded}"))) }
}

/// The URI of a path.
pub fn uri(path: &str) -> String {
    let encoded = |p: &str| utf8_percent_encode(p, KEPT).to_string();
    match path.strip_prefix("//") {
        Some(share) => format!("file://{}", encoded(share)),
        None if path.starts_with('/') => format!("file://{}", encoded(path)),
        None if is_drive(path) => format!("file:///{}", encoded(path)),
        None => path.to_string(),
    }
}

/// Returns true if a path is that of a file.
pub fn is_file(path: &str) -> bool {
    path.starts_with('/') || is_drive(path)
}

/// `c:/x` of `/c:/x`.
fn drive(path: &str) -> Option<&str> {
    path.strip_prefix('/').filter(|p| is_drive(p))
}

fn is_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

/// The path without `.`, `..` and empty parts.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = vec![];
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (given, expected) in [
            ("file:///a/b.tk", "/a/b.tk"),
            ("file://localhost/a/b.tk", "/a/b.tk"),
            ("file:///a/x%20y/%C3%A4%23.tk", "/a/x y/ä#.tk"),
            ("file:///c%3A/a.tk", "c:/a.tk"),
            ("file://server/share/a.tk", "//server/share/a.tk"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
        ] {
            assert_eq!(path(given), expected);
            assert_eq!(path(&uri(expected)), expected);
        }
        assert_eq!(path("file:///a/./c/..//b.tk"), "/a/b.tk");
        assert_eq!(path("file:///../../b.tk"), "/b.tk");
        assert_eq!(path("file:///%FF%ZZ%"), "/\u{fffd}%ZZ%");
        assert_eq!(path("file://"), "//");
        assert_eq!(path(""), "");
    }
}
