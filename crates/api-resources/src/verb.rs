//! The verbs of a resource.

/// A verb of a request for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Creates a new object.
    Create,
    /// Deletes one object by its name.
    Delete,
    /// Deletes all objects that a list with the same selectors returns.
    DeleteCollection,
    /// Reads one object by its name.
    Get,
    /// Lists the objects of a collection.
    List,
    /// Changes parts of one object.
    Patch,
    /// Replaces one object as a whole.
    Update,
    /// Streams the changes of the objects of a collection.
    Watch,
}

/// A set of verbs. Iterates in the order in which discovery shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbs {
    verb_bits: u8,
}

impl Verb {
    /// All verbs, in the order of their names.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The name in discovery and in policies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    /// The verb of this name; `None` for words that are no verb of a resource.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Reports whether the verb changes objects.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    const fn verb_bit(self) -> u8 {
        1 << self as u8
    }
}

impl Verbs {
    /// The eight verbs of a stored resource.
    pub const ALL: Self = Self { verb_bits: u8::MAX };
    /// The verb of a resource whose objects are not stored.
    pub const CREATE: Self = Self { verb_bits: Verb::Create.verb_bit() };
    /// The verbs of a subresource that becomes a stream: clients of SPDY send POST, those of WebSocket GET.
    pub const STREAM: Self = Self { verb_bits: Verb::Create.verb_bit() | Verb::Get.verb_bit() };
    /// The verbs of a subresource that forwards requests.
    pub const PROXY: Self = Self {
        verb_bits: Self::PART.verb_bits | Verb::Create.verb_bit() | Verb::Delete.verb_bit(),
    };
    /// The verbs of a subresource such as `status`.
    pub const PART: Self =
        Self { verb_bits: Verb::Get.verb_bit() | Verb::Patch.verb_bit() | Verb::Update.verb_bit() };
    /// The verb of a subresource that can only be replaced.
    pub const UPDATE: Self = Self { verb_bits: Verb::Update.verb_bit() };

    /// The set without one verb.
    #[must_use]
    pub const fn without_verb(self, verb: Verb) -> Self {
        Self { verb_bits: self.verb_bits & !verb.verb_bit() }
    }

    /// Reports whether the set contains the verb.
    #[must_use]
    pub const fn contains(self, verb: Verb) -> bool {
        self.verb_bits & verb.verb_bit() != 0
    }

    /// The verbs, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.contains(*verb))
    }

    /// The names, in order.
    #[must_use]
    pub fn verb_names(self) -> Vec<&'static str> {
        self.iter().map(Verb::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_other_words_are_not() {
        for verb in Verbs::ALL.iter() {
            assert_eq!(Verb::parse(verb.name()), Some(verb));
        }
        for word in ["", "proxy", "Get", "bind", "*"] {
            assert_eq!(Verb::parse(word), None, "{word}");
        }
    }

    #[test]
    fn sets_show_their_verbs_in_order() {
        assert_eq!(
            Verbs::ALL.verb_names(),
            ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        );
        assert_eq!(Verbs::PART.verb_names(), ["get", "patch", "update"]);
        assert_eq!(Verbs::CREATE.verb_names(), ["create"]);
        assert_eq!(Verbs::STREAM.verb_names(), ["create", "get"]);
        assert_eq!(Verbs::PROXY.verb_names(), ["create", "delete", "get", "patch", "update"]);
        let some = Verbs::ALL.without_verb(Verb::DeleteCollection);
        assert!(!some.contains(Verb::DeleteCollection));
        assert_eq!(some.iter().count(), 7);
    }
}
