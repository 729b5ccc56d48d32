//! What makes two questions the same: every input that a review tells, and nothing else.
//!
//! A key is the review in a canonical form: its parts in fixed order, each text after its length, so
//! that no two reviews have one form. Hashing a question, writing its form and comparing it with a
//! written form are one walk over the borrowed attributes with three different receivers. They can
//! not disagree about what belongs to a question, and a lookup allocates nothing.

use std::hash::{BuildHasher, Hash, Hasher};

use authz::{Attributes, Resource, ReviewOperator, Target};

/// A question that outlives the request that asked it.
///
/// INVARIANT: `hash` is the hash of the question that `form` was written from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    hash: u64,
    form: Box<[u8]>,
}

impl Key {
    /// The key of a question of which the hash is known.
    pub(crate) fn new(attributes: &Attributes<'_>, hash: u64) -> Self {
        let mut form = Form(Vec::with_capacity(FORM_BYTES));
        walk(attributes, &mut form);
        Self { hash, form: form.0.into_boxed_slice() }
    }

    pub(crate) fn hash_value(&self) -> u64 {
        self.hash
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.form.len()
    }

    /// Reports whether this is the key of the question.
    pub(crate) fn is_of(&self, attributes: &Attributes<'_>) -> bool {
        let mut comparison = Comparison { rest: &self.form, is_equal: true };
        walk(attributes, &mut comparison);
        comparison.is_equal && comparison.rest.is_empty()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The hash of a question under the seed of `state`.
pub(crate) fn hash(attributes: &Attributes<'_>, state: &impl BuildHasher) -> u64 {
    let mut hashing = Hashing(state.build_hasher());
    walk(attributes, &mut hashing);
    hashing.0.finish()
}

/// What most forms have room in.
const FORM_BYTES: usize = 256;

/// Receives the parts of a question in order.
trait Receive {
    /// One of a few alternatives.
    fn mark(&mut self, mark: u8);
    /// How many of something follow.
    fn count(&mut self, n: usize);
    /// A text.
    fn text(&mut self, text: &str);

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        for text in texts {
            self.text(text);
        }
    }
}

const RESOURCE: u8 = 1;
const PATH: u8 = 2;
const END: u8 = 0;

/// Names the parts of a question: those of the v1 review, also where another version is sent. Nobody
/// and a user without attributes are one, as they are in the review.
#[inline]
fn walk(attributes: &Attributes<'_>, receive: &mut impl Receive) {
    match &attributes.target {
        Target::Resource(resource) => {
            receive.mark(RESOURCE);
            receive.text(attributes.verb);
            walk_resource(resource, receive);
        }
        Target::Path(path) => {
            receive.mark(PATH);
            receive.text(attributes.verb);
            receive.text(path);
        }
    }
    let Some(user) = attributes.user else {
        receive.text("");
        receive.text("");
        receive.count(0);
        receive.count(0);
        return;
    };
    receive.text(&user.name);
    receive.text(&user.uid);
    receive.texts(&user.groups);
    receive.count(user.extra.len());
    for (key, values) in &user.extra {
        receive.text(key);
        receive.texts(values);
    }
}

/// The path of a resource request is not part of the review. Requirements that a review can not
/// express are left out of it and so of the question.
#[inline]
fn walk_resource(resource: &Resource<'_>, receive: &mut impl Receive) {
    receive.text(resource.namespace);
    receive.text(resource.api_group);
    receive.text(resource.api_version);
    receive.text(resource.resource);
    receive.text(resource.subresource);
    receive.text(resource.name);
    for requirement in resource.field_requirements() {
        receive.mark(operator_mark(requirement.operator.review_operator()));
        receive.text(&requirement.field);
        receive.text(&requirement.value);
    }
    receive.mark(END);
    for requirement in resource.label_requirements() {
        if let Some(operator) = requirement.operator.review_operator() {
            receive.mark(operator_mark(operator));
            receive.text(&requirement.key);
            receive.texts(&requirement.values);
        }
    }
    receive.mark(END);
}

/// INVARIANT: never [`END`].
const fn operator_mark(operator: ReviewOperator) -> u8 {
    match operator {
        ReviewOperator::In => 1,
        ReviewOperator::NotIn => 2,
        ReviewOperator::Exists => 3,
        ReviewOperator::DoesNotExist => 4,
    }
}

struct Hashing<H>(H);

impl<H: Hasher> Receive for Hashing<H> {
    #[inline]
    fn mark(&mut self, mark: u8) {
        self.0.write_u8(mark);
    }

    #[inline]
    fn count(&mut self, n: usize) {
        self.0.write_usize(n);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.0.write_usize(text.len());
        self.0.write(text.as_bytes());
    }
}

/// Writes the form.
struct Form(Vec<u8>);

impl Receive for Form {
    fn mark(&mut self, mark: u8) {
        self.0.push(mark);
    }

    fn count(&mut self, n: usize) {
        let (digits, n_digits) = digits(n);
        self.0.extend(digits.iter().take(n_digits));
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Compares with a form, part by part.
struct Comparison<'a> {
    rest: &'a [u8],
    is_equal: bool,
}

impl Comparison<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        match self.rest.strip_prefix(bytes) {
            Some(rest) => self.rest = rest,
            None => self.is_equal = false,
        }
    }
}

impl Receive for Comparison<'_> {
    #[inline]
    fn mark(&mut self, mark: u8) {
        match self.rest.split_first() {
            Some((first, rest)) if *first == mark => self.rest = rest,
            _ => self.is_equal = false,
        }
    }

    /// Nearly all numbers have one digit, which is the number itself.
    #[inline]
    fn count(&mut self, n: usize) {
        match u8::try_from(n) {
            Ok(digit) if digit < 0x80 => self.mark(digit),
            _ => {
                let (digits, n_digits) = digits(n);
                self.bytes(digits.get(..n_digits).unwrap_or(&digits));
            }
        }
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }
}

/// The most digits of a number.
const DIGITS_MAX: usize = usize::BITS.div_ceil(7) as usize;

/// A number in digits of seven bits, the lowest first; all but the last have the eighth bit set, so
/// that no number is the beginning of another.
fn digits(mut n: usize) -> ([u8; DIGITS_MAX], usize) {
    let mut digits = [0; DIGITS_MAX];
    let mut n_digits = 0;
    for digit in &mut digits {
        n_digits += 1;
        let low = n.to_le_bytes()[0] & 0x7f;
        n >>= 7;
        if n == 0 {
            *digit = low;
            break;
        }
        *digit = low | 0x80;
    }
    (digits, n_digits)
}

#[cfg(test)]
mod tests;
