//! The warnings of hooks for the client.

/// The limit on the characters of all warnings together.
const TOTAL_CHARS_MAX: usize = 4096;
/// The limit on the characters of one warning, applied when all together are too long.
const ITEM_CHARS_MAX: usize = 256;
/// The limit on the number of warnings, however short they are, of one response and in all. Each is compared with
/// those before it.
pub(crate) const ITEMS_MAX: usize = 1024;

/// The distinct warnings of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClientWarnings {
    warning_texts: Vec<String>,
}

impl ClientWarnings {
    /// Adds a warning, unless it is empty, a duplicate, or not valid in a header.
    pub(crate) fn add_warning(&mut self, text: String) {
        let is_fit = !text.is_empty() && !text.chars().any(char::is_control);
        if is_fit && self.warning_texts.len() < ITEMS_MAX && !self.warning_texts.contains(&text) {
            self.warning_texts.push(text);
        }
    }

    /// Returns the warnings for the client: all of them if they are within the limit together, otherwise
    /// each shortened, up to the limit.
    pub(crate) fn into_warning_texts(self) -> Vec<String> {
        let n_chars = |text: &String| text.chars().count();
        if self.warning_texts.iter().map(n_chars).sum::<usize>() <= TOTAL_CHARS_MAX {
            return self.warning_texts;
        }
        let mut n_written = 0;
        let mut shortened = Vec::new();
        for text in self.warning_texts {
            if n_written >= TOTAL_CHARS_MAX {
                break;
            }
            let text: String = text.chars().take(ITEM_CHARS_MAX).collect();
            n_written += n_chars(&text);
            shortened.push(text);
        }
        shortened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(added: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut warnings = ClientWarnings::default();
        added.into_iter().for_each(|text| warnings.add_warning(text));
        warnings.into_warning_texts()
    }

    #[test]
    fn repeated_ones_and_those_with_control_characters_are_left_out() {
        let added = ["twice", "a\nb", "twice", "", "once"].map(str::to_owned);
        assert_eq!(texts(added), ["twice", "once"]);
    }

    #[test]
    fn long_ones_are_shortened_when_all_are_too_long() {
        let long = |n: usize| (0..n).map(|idx| format!("{idx:03}{}", "ä".repeat(297)));
        assert_eq!(texts(long(13))[12].chars().count(), 300);
        let shortened = texts(long(20));
        assert!(shortened.iter().all(|text| text.chars().count() == 256));
        assert_eq!(shortened.len(), 16);
    }

    #[test]
    fn no_more_than_the_limit_are_looked_at() {
        let short = |n: usize| (0..n).map(|idx| format!("{idx:04}"));
        assert_eq!(texts(short(ITEMS_MAX)).len(), ITEMS_MAX);
        assert_eq!(texts(short(ITEMS_MAX + 1)).len(), ITEMS_MAX);
    }
}
