//! The cache key of a request: every input that a SubjectAccessReview contains, and nothing else.
//!
//! A key is the review in a canonical form: its parts in a fixed order, each text after its length, so that two different
//! reviews have different forms. One function visits the borrowed attributes; hashing, writing the form and comparing it
//! are three visitors. So they agree on the parts of a request, and a lookup allocates nothing.

use std::hash::{BuildHasher, Hash, Hasher};

use authz::{Attributes, Resource, ReviewSelectorOperator, Target};

/// The key of a request, which may outlive it.
///
/// INVARIANT: `hash` is the hash of the request that `form` was written from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheKey {
    hash: u64,
    canonical_form: Box<[u8]>,
}

impl CacheKey {
    /// The key of a request with this hash.
    pub(crate) fn new(attributes: &Attributes<'_>, hash: u64) -> Self {
        let mut form = CanonicalFormWriter(Vec::with_capacity(FORM_BYTES));
        visit_review(attributes, &mut form);
        Self { hash, canonical_form: form.0.into_boxed_slice() }
    }

    pub(crate) fn request_hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn key_memory_bytes(&self) -> usize {
        self.canonical_form.len()
    }

    /// Reports whether this is the key of the request.
    pub(crate) fn matches_request(&self, attributes: &Attributes<'_>) -> bool {
        let mut comparison = CanonicalFormComparison {
            uncompared_bytes: &self.canonical_form,
            is_equal_so_far: true,
        };
        visit_review(attributes, &mut comparison);
        comparison.is_equal_so_far && comparison.uncompared_bytes.is_empty()
    }
}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The hash of a request under the seed of `state`.
pub(crate) fn hash(attributes: &Attributes<'_>, state: &impl BuildHasher) -> u64 {
    let mut hashing = HashVisitor(state.build_hasher());
    visit_review(attributes, &mut hashing);
    hashing.0.finish()
}

/// The initial capacity, which suffices for most forms.
const FORM_BYTES: usize = 256;

/// Visits the parts of a request in order.
trait ReviewVisitor {
    /// A tag for one of a few alternatives.
    fn visit_tag(&mut self, mark: u8);
    /// The number of parts that follow.
    fn visit_count(&mut self, n: usize);
    /// Visits one text of the request.
    fn visit_text(&mut self, text: &str);

    fn visit_texts(&mut self, texts: &[String]) {
        self.visit_count(texts.len());
        for text in texts {
            self.visit_text(text);
        }
    }
}

const RESOURCE: u8 = 1;
const PATH: u8 = 2;
const END: u8 = 0;

/// Visits the parts of the v1 review, also if another version is sent. A request without a user is the same as one of a
/// user without attributes, as it is in the review.
#[inline]
fn visit_review(attributes: &Attributes<'_>, receive: &mut impl ReviewVisitor) {
    match &attributes.target {
        Target::Resource(resource) => {
            receive.visit_tag(RESOURCE);
            receive.visit_text(attributes.verb.as_str());
            visit_resource(resource, receive);
        }
        Target::Path(path) => {
            receive.visit_tag(PATH);
            receive.visit_text(attributes.verb.as_str());
            receive.visit_text(path);
        }
    }
    let Some(user) = attributes.user else {
        receive.visit_text("");
        receive.visit_text("");
        receive.visit_count(0);
        receive.visit_count(0);
        return;
    };
    receive.visit_text(&user.name);
    receive.visit_text(&user.uid);
    receive.visit_texts(&user.groups);
    receive.visit_count(user.extra.len());
    for (key, values) in &user.extra {
        receive.visit_text(key);
        receive.visit_texts(values);
    }
}

/// The path of a resource request is not part of the review. Neither are requirements that a review cannot express.
#[inline]
fn visit_resource(resource: &Resource<'_>, receive: &mut impl ReviewVisitor) {
    receive.visit_text(resource.namespace.as_str());
    receive.visit_text(resource.api_group);
    receive.visit_text(resource.api_version);
    receive.visit_text(resource.resource);
    receive.visit_text(resource.subresource);
    receive.visit_text(resource.name);
    for requirement in resource.field_requirements() {
        receive.visit_tag(operator_tag(requirement.operator.review_selector_operator()));
        receive.visit_text(&requirement.field);
        receive.visit_text(&requirement.value);
    }
    receive.visit_tag(END);
    for requirement in resource.label_requirements() {
        if let Some(operator) = requirement.operator.review_selector_operator() {
            receive.visit_tag(operator_tag(operator));
            receive.visit_text(&requirement.key);
            receive.visit_texts(&requirement.values);
        }
    }
    receive.visit_tag(END);
}

/// Returns the tag of an operator. INVARIANT: never [`END`].
const fn operator_tag(operator: ReviewSelectorOperator) -> u8 {
    match operator {
        ReviewSelectorOperator::In => 1,
        ReviewSelectorOperator::NotIn => 2,
        ReviewSelectorOperator::Exists => 3,
        ReviewSelectorOperator::DoesNotExist => 4,
    }
}

struct HashVisitor<H>(H);

impl<H: Hasher> ReviewVisitor for HashVisitor<H> {
    #[inline]
    fn visit_tag(&mut self, mark: u8) {
        self.0.write_u8(mark);
    }

    #[inline]
    fn visit_count(&mut self, n: usize) {
        self.0.write_usize(n);
    }

    #[inline]
    fn visit_text(&mut self, text: &str) {
        self.0.write_usize(text.len());
        self.0.write(text.as_bytes());
    }
}

/// Writes the canonical form of a review: the bytes by which two requests are compared.
struct CanonicalFormWriter(Vec<u8>);

impl ReviewVisitor for CanonicalFormWriter {
    fn visit_tag(&mut self, mark: u8) {
        self.0.push(mark);
    }

    fn visit_count(&mut self, n: usize) {
        let (digits, n_digits) = encode_varint(n);
        self.0.extend(digits.iter().take(n_digits));
    }

    fn visit_text(&mut self, text: &str) {
        self.visit_count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Compares a request with a form, part by part.
struct CanonicalFormComparison<'a> {
    uncompared_bytes: &'a [u8],
    is_equal_so_far: bool,
}

impl CanonicalFormComparison<'_> {
    #[inline]
    fn compare_bytes(&mut self, bytes: &[u8]) {
        match self.uncompared_bytes.strip_prefix(bytes) {
            Some(rest) => self.uncompared_bytes = rest,
            None => self.is_equal_so_far = false,
        }
    }
}

impl ReviewVisitor for CanonicalFormComparison<'_> {
    #[inline]
    fn visit_tag(&mut self, mark: u8) {
        match self.uncompared_bytes.split_first() {
            Some((first, rest)) if *first == mark => self.uncompared_bytes = rest,
            _ => self.is_equal_so_far = false,
        }
    }

    /// Nearly all numbers have one digit, which is the number itself.
    #[inline]
    fn visit_count(&mut self, n: usize) {
        match u8::try_from(n) {
            Ok(digit) if digit < 0x80 => self.visit_tag(digit),
            _ => {
                let (digits, n_digits) = encode_varint(n);
                self.compare_bytes(digits.get(..n_digits).unwrap_or(&digits));
            }
        }
    }

    #[inline]
    fn visit_text(&mut self, text: &str) {
        self.visit_count(text.len());
        self.compare_bytes(text.as_bytes());
    }
}

/// The maximum number of digits of a number.
const DIGITS_MAX: usize = usize::BITS.div_ceil(7) as usize;

/// A number as a varint: digits of seven bits, the lowest first. All but the last have the eighth bit set, so that no
/// number is a prefix of another.
fn encode_varint(mut n: usize) -> ([u8; DIGITS_MAX], usize) {
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
