//! Texts side by side, so that to read one after the other takes few looks at memory.

use std::num::NonZeroU32;

/// The texts.
#[derive(Debug)]
pub(crate) struct Texts(Box<str>);

/// Where one of the texts is. Something stands before the first, so that no text ends at 0 and to say
/// that there is no text takes no room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    start: u32,
    end: NonZeroU32,
}

/// Texts that are still being added to.
#[derive(Debug)]
pub(crate) struct TextsBuilder(String);

impl Default for TextsBuilder {
    fn default() -> Self {
        Self(" ".to_owned())
    }
}

impl TextsBuilder {
    /// Adds a text; `None` if all together would be longer than can be told.
    pub(crate) fn add(&mut self, text: &str) -> Option<Text> {
        let start = u32::try_from(self.0.len()).ok()?;
        let end = start.checked_add(u32::try_from(text.len()).ok()?).and_then(NonZeroU32::new)?;
        self.0.push_str(text);
        Some(Text { start, end })
    }

    pub(crate) fn finish(self) -> Texts {
        Texts(self.0.into_boxed_str())
    }
}

impl Texts {
    /// A text that was added when these were made; `None` for one of others, as far as it can tell.
    #[inline]
    pub(crate) fn get(&self, text: Text) -> Option<&str> {
        self.0.get(text.start as usize..text.end.get() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart() {
        let mut builder = TextsBuilder::default();
        let all = ["pods", "", "größe", "", "pods/log"];
        let places: Vec<Text> = all.iter().map(|text| builder.add(text).unwrap()).collect();
        let texts = builder.finish();
        let found: Vec<&str> = places.iter().map(|text| texts.get(*text).unwrap()).collect();
        assert_eq!(found, all);
        assert!(TextsBuilder::default().finish().get(places[4]).is_none());
        assert_eq!(size_of::<Option<Text>>(), size_of::<Text>());
    }
}
