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
}

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

    /// Reports whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Fixed(text) => text.is_empty(),
            Form::Shared(text) => text.is_empty(),
            Form::Told(..) => write!(Rest(""), "{self}").is_ok(),
        }
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
            Form::Told(..) => {
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
            (Form::Told(..), Form::Told(..)) => *self == *other.to_string(),
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
        let forms = [Reason::fixed("0,1,"), "0,1,".to_owned().into(), told(2)];
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
        for reason in [Reason::default(), "".into(), String::new().into(), told(0)] {
            assert!(reason.is_empty());
            assert_eq!(reason, Reason::default());
        }
        assert_eq!(Reason::from(Cow::Borrowed("a")), Reason::from(Cow::Owned("a".to_owned())));
    }
}
