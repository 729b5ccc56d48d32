//! Reads the most frequent form of a review, member by member.
//!
//! Deriving a reader from the types takes several times as long. This reader returns `None` for every other
//! form, such as a review with selectors or escapes, and the derived reader reads those.

use super::review_serde_types::{KIND, ResourceAttributes, Spec, V1};

/// Reads a whole review of version v1 with a user, groups and attributes of a resource.
pub(super) fn read_review(text: &str) -> Option<Spec<'_>> {
    let mut reader = JsonCursor { text, at: 0 };
    let (mut kind, mut api_version, mut spec, mut has_metadata) = (None, None, None, false);
    reader.read_object(|reader, name| match name {
        "kind" => set(&mut kind, reader.read_plain_string()?),
        "apiVersion" => set(&mut api_version, reader.read_plain_string()?),
        "metadata" if !std::mem::replace(&mut has_metadata, true) => {
            reader.read_object(|_, _| None)
        }
        "spec" => set(&mut spec, read_spec(reader)?),
        _ => None,
    })?;
    reader.skip_blanks();
    let is_whole = reader.at == text.len() && kind == Some(KIND) && api_version == Some(V1);
    spec.filter(|_| is_whole)
}

fn read_spec<'a>(reader: &mut JsonCursor<'a>) -> Option<Spec<'a>> {
    let (mut user, mut uid) = (None, None);
    let mut spec = Spec::default();
    reader.read_object(|reader, name| match name {
        "user" => set(&mut user, reader.read_plain_string()?),
        "uid" => set(&mut uid, reader.read_plain_string()?),
        "groups" => set(&mut spec.groups, reader.read_plain_strings()?),
        "resourceAttributes" => {
            set(&mut spec.resource_attributes, read_resource_attributes(reader)?)
        }
        _ => None,
    })?;
    Some(Spec { user: user.unwrap_or_default(), uid: uid.unwrap_or_default(), ..spec })
}

fn read_resource_attributes<'a>(reader: &mut JsonCursor<'a>) -> Option<ResourceAttributes<'a>> {
    let mut texts = [None; 7];
    reader.read_object(|reader, name| {
        let [namespace, verb, group, version, resource, subresource, own_name] = &mut texts;
        let member = match name {
            "namespace" => namespace,
            "verb" => verb,
            "group" => group,
            "version" => version,
            "resource" => resource,
            "subresource" => subresource,
            "name" => own_name,
            _ => return None,
        };
        set(member, reader.read_plain_string()?)
    })?;
    let [namespace, verb, group, version, resource, subresource, name] =
        texts.map(Option::unwrap_or_default);
    Some(ResourceAttributes {
        namespace,
        verb,
        group,
        version,
        resource,
        subresource,
        name,
        ..ResourceAttributes::default()
    })
}

/// Sets a member; `None` if it occurs twice.
fn set<T>(member: &mut Option<T>, value: T) -> Option<()> {
    member.replace(value).is_none().then_some(())
}

/// A position in a JSON text. Each method returns `None` if the text does not continue as the method expects.
struct JsonCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonCursor<'a> {
    fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek_byte() {
            self.at += 1;
        }
    }

    /// Skips blanks, and then `byte` if it follows. Reports whether it followed.
    fn skip_byte_if_next(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.peek_byte() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads a string without escapes.
    fn read_plain_string(&mut self) -> Option<&'a str> {
        if !self.skip_byte_if_next(b'"') {
            return None;
        }
        let start = self.at;
        let rest = self.text.as_bytes().get(start..)?;
        let is_special = |byte: &u8| *byte < b' ' || matches!(*byte, b'"' | b'\\');
        let end = start + rest.iter().position(is_special)?;
        self.at = end;
        if self.peek_byte() != Some(b'"') {
            return None;
        }
        self.at += 1;
        self.text.get(start..end)
    }

    fn read_plain_strings(&mut self) -> Option<Vec<&'a str>> {
        if !self.skip_byte_if_next(b'[') {
            return None;
        }
        let mut texts = Vec::with_capacity(8);
        if self.skip_byte_if_next(b']') {
            return Some(texts);
        }
        loop {
            texts.push(self.read_plain_string()?);
            if self.skip_byte_if_next(b']') {
                return Some(texts);
            }
            if !self.skip_byte_if_next(b',') {
                return None;
            }
        }
    }

    /// Reads an object, whose members `read_member` reads by their names.
    fn read_object(
        &mut self,
        mut read_member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        if !self.skip_byte_if_next(b'{') {
            return None;
        }
        if self.skip_byte_if_next(b'}') {
            return Some(());
        }
        loop {
            let name = self.read_plain_string()?;
            if !self.skip_byte_if_next(b':') {
                return None;
            }
            read_member(self, name)?;
            if self.skip_byte_if_next(b'}') {
                return Some(());
            }
            if !self.skip_byte_if_next(b',') {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review_parsing::review_serde_types::{PlainReview, parse_json_object};

    const COMMON: &str = r#"{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {}, "spec": {"user": "ana", "uid": "7", "groups": ["dev", "é"],
        "resourceAttributes": {"namespace": "prod", "verb": "get", "group": "apps", "version": "v1",
        "resource": "pods", "subresource": "log", "name": "a"}}}"#;

    fn derived(text: &str) -> Option<Spec<'_>> {
        let review: PlainReview<'_> = parse_json_object(text.as_bytes())?;
        (review.kind == KIND && review.api_version == V1).then_some(review.spec)
    }

    #[test]
    fn common_reviews_are_read_as_the_derived_reader_reads_them() {
        for text in [
            COMMON.to_owned(),
            COMMON.replace(char::is_whitespace, ""),
            COMMON.replace("\"groups\": [\"dev\", \"é\"]", "\"groups\": [ ]"),
            COMMON.replace("\"metadata\": {}, ", ""),
            COMMON.replace("\"user\": \"ana\", ", ""),
            r#"{"spec":{},"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1"} "#
                .to_owned(),
        ] {
            let read = read_review(&text);
            assert!(read.is_some(), "{text}");
            assert_eq!(read, derived(&text), "{text}");
        }
    }

    /// The derived reader reads every text that this reader accepts in the same way: for each change of one byte, and for each
    /// text that breaks off.
    #[test]
    fn nothing_else_is_read() {
        for at in 0..COMMON.len() {
            let Some((start, end)) = COMMON.split_at_checked(at) else { continue };
            assert_eq!(read_review(start), None);
            for byte in
                [" ", "\"", "\\", "{", "}", "[", "]", ",", ":", "null", "1", "\u{1}", "\n", "x"]
            {
                for rest in [end, end.get(1..).unwrap_or(end)] {
                    let text = format!("{start}{byte}{rest}");
                    if let Some(read) = read_review(&text) {
                        assert_eq!(Some(read), derived(&text), "{text}");
                    }
                }
            }
        }
        for (from, to) in [
            ("\"uid\"", "\"user\""),
            ("\"uid\": \"7\"", "\"extra\": {}"),
            ("\"name\"", "\"verb\""),
            ("\"name\": \"a\"", "\"fieldSelector\": {}"),
            ("{}", "{\"name\": \"a\"}"),
            ("{}", "null"),
            ("/v1\"", "/v1beta1\""),
            ("\"ana\"", "\"a\\u006e\""),
            ("\"metadata\": {}", "\"status\": {}"),
            ("\"metadata\": {}", "\"metadata\": {}, \"metadata\": {}"),
        ] {
            let text = COMMON.replacen(from, to, 1);
            assert_eq!(read_review(&text), None, "{text}");
        }
    }
}
