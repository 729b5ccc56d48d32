//! Reads the form in which most clients write a review, in a fraction of the time of the general reader.
//!
//! It knows strings without escapes, lists of them, and the fields that most reviews have. `None` means that the general
//! reader has to look; where this one returns a review, the general one returns the same.

use super::{EmptyMetadata, NonResourceAttributes, ResourceAttributes, Review, Spec};

/// Reads a review, if it is written so plainly that this reader knows all of it.
pub(in crate::review) fn read_plain_review(text: &[u8]) -> Option<Review<'_>> {
    let mut reader = PlainReader { rest: std::str::from_utf8(text).ok()? };
    let review = reader.read_review()?;
    reader.rest.bytes().all(is_blank).then_some(review)
}

/// What is left of the text.
struct PlainReader<'a> {
    rest: &'a str,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Sets a field that occurs for the first time.
fn set_once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

impl<'a> PlainReader<'a> {
    fn read_review(&mut self) -> Option<Review<'a>> {
        let (mut api_version, mut kind, mut metadata, mut spec) = (None, None, None, None);
        let mut is_first = true;
        self.skip_byte(b'{')?;
        while let Some(name) = self.next_name(&mut is_first)? {
            match name {
                "apiVersion" => set_once(&mut api_version, self.read_text()?)?,
                "kind" => set_once(&mut kind, self.read_text()?)?,
                "metadata" => {
                    self.skip_byte(b'{')?;
                    self.skip_byte(b'}')?;
                    set_once(&mut metadata, EmptyMetadata { _creation_timestamp: None })?;
                }
                "spec" => set_once(&mut spec, self.read_spec()?)?,
                _ => return None,
            }
        }
        Some(Review {
            api_version: api_version?,
            kind: kind?,
            _metadata: metadata,
            spec: spec?,
            _status: None,
        })
    }

    fn read_spec(&mut self) -> Option<Spec<'a>> {
        let (mut resource, mut path) = (None, None);
        let (mut user, mut groups, mut uid) = (None, None, None);
        let mut is_first = true;
        self.skip_byte(b'{')?;
        while let Some(name) = self.next_name(&mut is_first)? {
            match name {
                "resourceAttributes" => set_once(&mut resource, self.read_resource()?)?,
                "nonResourceAttributes" => set_once(&mut path, self.read_path()?)?,
                "user" => set_once(&mut user, self.read_text()?)?,
                "groups" => set_once(&mut groups, self.read_texts()?)?,
                "uid" => set_once(&mut uid, self.read_text()?)?,
                _ => return None,
            }
        }
        Some(Spec {
            resource_attributes: resource,
            non_resource_attributes: path,
            user: user.unwrap_or_default(),
            groups,
            uid: uid.unwrap_or_default(),
            ..Spec::default()
        })
    }

    fn read_resource(&mut self) -> Option<ResourceAttributes<'a>> {
        let (mut namespace, mut verb, mut group, mut version) = (None, None, None, None);
        let (mut resource, mut subresource, mut name) = (None, None, None);
        let mut is_first = true;
        self.skip_byte(b'{')?;
        while let Some(field) = self.next_name(&mut is_first)? {
            let slot = match field {
                "namespace" => &mut namespace,
                "verb" => &mut verb,
                "group" => &mut group,
                "version" => &mut version,
                "resource" => &mut resource,
                "subresource" => &mut subresource,
                "name" => &mut name,
                _ => return None,
            };
            set_once(slot, self.read_text()?)?;
        }
        Some(ResourceAttributes {
            namespace: namespace.unwrap_or_default(),
            verb: verb.unwrap_or_default(),
            group: group.unwrap_or_default(),
            version: version.unwrap_or_default(),
            resource: resource.unwrap_or_default(),
            subresource: subresource.unwrap_or_default(),
            name: name.unwrap_or_default(),
            ..ResourceAttributes::default()
        })
    }

    fn read_path(&mut self) -> Option<NonResourceAttributes<'a>> {
        let (mut path, mut verb) = (None, None);
        let mut is_first = true;
        self.skip_byte(b'{')?;
        while let Some(field) = self.next_name(&mut is_first)? {
            let slot = match field {
                "path" => &mut path,
                "verb" => &mut verb,
                _ => return None,
            };
            set_once(slot, self.read_text()?)?;
        }
        let (path, verb) = (path.unwrap_or_default(), verb.unwrap_or_default());
        Some(NonResourceAttributes { path, verb })
    }

    /// The name of the next member of an object, up to its colon; the inner `None` at the end of the object.
    fn next_name(&mut self, is_first: &mut bool) -> Option<Option<&'a str>> {
        match self.next_byte()? {
            b'}' => {
                self.skip_byte(b'}')?;
                return Some(None);
            }
            b',' if !*is_first => self.skip_byte(b',')?,
            _ if *is_first => {}
            _ => return None,
        }
        *is_first = false;
        let name = self.read_text()?;
        self.skip_byte(b':')?;
        Some(Some(name))
    }

    /// A list of strings.
    fn read_texts(&mut self) -> Option<Vec<&'a str>> {
        self.skip_byte(b'[')?;
        if self.next_byte()? == b']' {
            self.skip_byte(b']')?;
            return Some(Vec::new());
        }
        let mut texts = Vec::with_capacity(8);
        loop {
            texts.push(self.read_text()?);
            match self.next_byte()? {
                b',' => self.skip_byte(b',')?,
                _ => {
                    self.skip_byte(b']')?;
                    return Some(texts);
                }
            }
        }
    }

    /// A string without escapes.
    fn read_text(&mut self) -> Option<&'a str> {
        self.skip_byte(b'"')?;
        let is_special = |byte: u8| matches!(byte, b'"' | b'\\') || byte < b' ';
        let end = self.rest.bytes().position(is_special)?;
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Skips blanks and this byte, which is ASCII.
    fn skip_byte(&mut self, byte: u8) -> Option<()> {
        if self.next_byte()? != byte {
            return None;
        }
        self.rest = self.rest.get(1..)?;
        Some(())
    }

    /// Skips blanks and returns the byte after them.
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            let byte = *self.rest.as_bytes().first()?;
            if !is_blank(byte) {
                return Some(byte);
            }
            self.rest = self.rest.get(1..)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_json_object;
    use super::*;

    const WHOLE: &str = r#"{"apiVersion": "authorization.k8s.io/v1", "kind":"SubjectAccessReview",
        "metadata": { }, "spec": {"user": "ana", "groups": ["a", "b" ], "uid":"7",
        "resourceAttributes": {"namespace": "n", "verb": "get", "group": "g", "version": "v",
        "resource": "r", "subresource": "s", "name": "é"}}}
        "#;

    /// Both readers agree on every text that the plain one reads, whatever is cut out of it or put into it.
    #[test]
    fn what_it_reads_is_what_the_general_reader_reads() {
        let path = r#"{"apiVersion":"a","kind":"k","spec":{"nonResourceAttributes":{"path":"/","verb":"get"},
            "groups":[]}}"#;
        let mut n_read = 0;
        for text in [WHOLE, path] {
            assert!(read_plain_review(text.as_bytes()).is_some(), "{text}");
            for at in 0..=text.len() {
                for changed in
                    [b"".as_slice(), b",", b"}", b"\"", b"\\", b" ", b"\n", b"null", b"\xff"]
                {
                    for n_cut in [0, 1, 7, 60] {
                        let end = (at + n_cut).min(text.len());
                        let text =
                            [&text.as_bytes()[..at], changed, &text.as_bytes()[end..]].concat();
                        let Some(review) = read_plain_review(&text) else { continue };
                        let shown = String::from_utf8_lossy(&text).into_owned();
                        let general: Review<'_> = parse_json_object(&text).expect(&shown);
                        assert_eq!(format!("{review:?}"), format!("{general:?}"), "{shown}");
                        n_read += 1;
                    }
                }
            }
        }
        assert!(n_read > 1_000, "{n_read}");
    }

    #[test]
    fn other_forms_are_left_to_the_general_reader() {
        for (from, to) in [
            ("\"ana\"", "\"an\\u0061\""),
            ("\"ana\"", "null"),
            ("\"uid\":\"7\"", "\"user\":\"7\""),
            ("\"uid\":\"7\"", "\"extra\":{}"),
            ("{ }", "{\"creationTimestamp\":null}"),
            ("\"kind\"", "\"Kind\""),
            ("[\"a\", \"b\" ]", "[\"a\",]"),
        ] {
            let text = WHOLE.replacen(from, to, 1);
            assert_ne!(text, WHOLE, "{from}");
            assert!(read_plain_review(text.as_bytes()).is_none(), "{text}");
        }
    }
}
