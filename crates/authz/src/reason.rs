//! Why it was answered so.
//!
//! Most answers are never shown to anybody, so a reason is not a text but what a text can be made
//! of, and making it is put off until somebody displays it. That keeps the path that allows free of
//! allocations.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Why an authorizer decided as it did, for audit logs and for people. May be empty.
///
/// A clone shares the text. Reasons are equal if they read the same.
///
/// ```
/// use authz::Reason;
///
/// let fixed = Reason::from("the cluster is frozen");
/// let made = Reason::from(format!("the {} is frozen", "cluster"));
/// assert_eq!(fixed, made);
/// assert_eq!(made, "the cluster is frozen");
/// assert!(Reason::default().is_empty());
/// ```
#[derive(Clone)]
pub struct Reason(Form);

/// What can tell reasons: an object of a policy that tells why it allowed something.
///
/// One object may have several reasons; a number that the authorizer chose says which. What is told
/// must never change, or a clone of a reason would come to differ from its original.
pub trait ReasonSource: fmt::Debug + Send + Sync {
    /// Writes the reason of this number.
    ///
    /// # Errors
    /// Fails if the formatter does.
    fn tell(&self, number: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

#[derive(Clone)]
enum Form {
    Fixed(&'static str),
    Shared(Arc<str>),
    Told(Arc<dyn ReasonSource>, usize),
    /// Around the name lie a beginning and an end; behind one pointer, since every answer has room
    /// for all of this.
    Named(&'static [&'static str; 2], ShortName),
}

/// A name that lies in the reason itself. INVARIANT: the first so many bytes are the name.
#[derive(Clone)]
struct ShortName {
    len: u8,
    bytes: [u8; SHORT_NAME_MAX],
}

/// Bytes of a name that lies in the reason. Clouds name nodes by address and region, as in
/// `ip-10-123-123-123.us-west-2.compute.internal`; longer names are few.
const SHORT_NAME_MAX: usize = 46;

impl Reason {
    /// A reason that is always the same.
    pub const fn fixed(text: &'static str) -> Self {
        Self(Form::Fixed(text))
    }

    /// The reason that `source` tells under this number. Costs no allocation: a pointer to any
    /// source is coerced.
    pub fn told_by(source: Arc<dyn ReasonSource>, number: usize) -> Self {
        Self(Form::Told(source, number))
    }

    /// A name between a fixed beginning and a fixed end.
    ///
    /// A name of usual length is copied and nothing else is done: no memory is allocated and no owner
    /// is counted. Counting would wait until all that was read before has arrived, needed or not,
    /// which takes long if the policy is large.
    #[inline]
    pub fn named(around: &'static [&'static str; 2], name: &str) -> Self {
        match ShortName::new(name) {
            Some(name) => Self(Form::Named(around, name)),
            None => around.join(name).into(),
        }
    }

    /// Reports whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Fixed(text) => text.is_empty(),
            Form::Shared(text) => text.is_empty(),
            Form::Told(..) | Form::Named(..) => write!(Rest(""), "{self}").is_ok(),
        }
    }
}

impl ShortName {
    #[inline]
    fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; SHORT_NAME_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self { len: u8::try_from(name.len()).ok()?, bytes })
    }

    fn get(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        // It was text when it was put in.
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl Default for Reason {
    fn default() -> Self {
        Self::fixed("")
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Self::fixed(text)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self(Form::Shared(text.into()))
    }
}

impl From<Cow<'static, str>> for Reason {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Fixed(text) => f.write_str(text),
            Form::Shared(text) => f.write_str(text),
            Form::Told(source, number) => source.tell(*number, f),
            Form::Named([beginning, end], name) => {
                [beginning, name.get(), end].iter().try_for_each(|part| f.write_str(part))
            }
        }
    }
}

/// What it reads, in quotes.
impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, text: &str) -> bool {
        match &self.0 {
            Form::Fixed(own) => *own == text,
            Form::Shared(own) => **own == *text,
            Form::Told(..) | Form::Named(..) => {
                let mut rest = Rest(text);
                write!(rest, "{self}").is_ok() && rest.0.is_empty()
            }
        }
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (_, Form::Fixed(text)) => self == *text,
            (_, Form::Shared(text)) => self == &**text,
            (Form::Fixed(text), _) => other == *text,
            (Form::Shared(text), _) => other == &**text,
            (Form::Told(..) | Form::Named(..), Form::Told(..) | Form::Named(..)) => {
                *self == *other.to_string()
            }
        }
    }
}

impl Eq for Reason {}

/// What is left of an expected text. Takes only what is expected next, and so compares without a
/// second text.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(piece).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Numbers;

    impl ReasonSource for Numbers {
        fn tell(&self, number: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (0..number).try_for_each(|n| write!(f, "{n},"))
        }
    }

    fn told(number: usize) -> Reason {
        Reason::told_by(Arc::new(Numbers), number)
    }

    #[test]
    fn every_form_reads_the_same() {
        let named = Reason::named(&["0", ","], ",1");
        let forms = [Reason::fixed("0,1,"), "0,1,".to_owned().into(), told(2), named];
        for reason in &forms {
            assert_eq!(reason.to_string(), "0,1,");
            assert_eq!(format!("{reason:?}"), "\"0,1,\"");
            assert_eq!(*reason, "0,1,");
            for near in ["0,1", "0,1,2,", "", "0,2,"] {
                assert_ne!(*reason, near);
            }
            assert!(!reason.is_empty());
            assert!(forms.iter().all(|other| other == reason));
        }
        assert_ne!(told(1), told(2));
        assert_ne!(told(1), Reason::fixed("1,"));
    }

    #[test]
    fn nothing_is_empty_in_every_form() {
        let named = Reason::named(&["", ""], "");
        for reason in [Reason::default(), "".into(), String::new().into(), told(0), named] {
            assert!(reason.is_empty());
            assert_eq!(reason, Reason::default());
        }
        assert_eq!(Reason::from(Cow::Borrowed("a")), Reason::from(Cow::Owned("a".to_owned())));
    }

    #[test]
    fn a_name_is_kept_whole_however_long() {
        for len in [0, 1, SHORT_NAME_MAX - 1, SHORT_NAME_MAX, SHORT_NAME_MAX + 1, 300] {
            for letter in ["n", "ß"] {
                let name = letter.repeat(len / letter.len());
                let reason = Reason::named(&["node '", "' is unknown"], &name);
                assert_eq!(reason, format!("node '{name}' is unknown").as_str());
                let is_short = matches!(reason.0, Form::Named(..));
                assert_eq!(is_short, name.len() <= SHORT_NAME_MAX);
            }
        }
    }

    /// Every answer is as large, and is moved more than once.
    #[test]
    fn a_reason_takes_less_than_a_processor_reads_at_once() {
        assert_eq!(size_of::<Reason>(), 56);
    }
}
