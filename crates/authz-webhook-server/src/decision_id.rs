//! The ids of decisions.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};

/// The number of hexadecimal digits of each part of an id.
const PART_DIGITS: usize = 8;

/// The id of one decision: a part for the process, which its status shows, and a random part. It tells an administrator which
/// replica has the trace, and tells a user nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DecisionId {
    instance: u32,
    number: u32,
}

/// Makes ids. Each process has an instance of its own.
#[derive(Debug)]
pub(crate) struct DecisionIdGenerator {
    random: SystemRandom,
    instance: u32,
}

impl DecisionIdGenerator {
    /// A generator with a random instance.
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let instance = random_u32(&random);
        Self { random, instance }
    }

    /// The part of all ids of this process.
    pub(crate) fn instance(&self) -> String {
        format!("{:08x}", self.instance)
    }

    /// Makes the next id.
    pub(crate) fn next_id(&self) -> DecisionId {
        DecisionId { instance: self.instance, number: random_u32(&self.random) }
    }
}

impl DecisionId {
    /// Reads an id as it is displayed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (instance, number) = text.split_once('-')?;
        let parse = |part: &str| {
            let is_hex =
                part.len() == PART_DIGITS && part.bytes().all(|own| own.is_ascii_hexdigit());
            u32::from_str_radix(part, 16).ok().filter(|_| is_hex)
        };
        Some(Self { instance: parse(instance)?, number: parse(number)? })
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:08x}", self.instance, self.number)
    }
}

/// A random number; 0 if the system has none. An id need not be secret, only seldom repeated.
fn random_u32(random: &SystemRandom) -> u32 {
    let mut bytes = [0; 4];
    // The bytes stay zero after an error.
    let _ = random.fill(&mut bytes);
    u32::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_shown() {
        let ids = DecisionIdGenerator::new();
        let id = ids.next_id();
        assert_eq!(DecisionId::parse(&id.to_string()), Some(id));
        assert!(id.to_string().starts_with(&ids.instance()));
        for text in ["", "5f3a9c1e", "5f3a9c1e-1", "5f3a9c1e-+1234567", "5f3a9c1e-07d2b8411", "x-y"]
        {
            assert_eq!(DecisionId::parse(text), None, "{text}");
        }
    }
}
