//! Files with expected text.
//!
//! `UPDATE_EXPECT=1 cargo test -p cli` rewrites them; the difference is then reviewed.

/// Asserts that the content of a file is this text, or makes it so.
pub(crate) fn assert_is(path: &str, text: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    let differs = "differs from what it should be (UPDATE_EXPECT=1 rewrites it)";
    assert!(text == want, "{path} {differs}:\n{text}");
}
