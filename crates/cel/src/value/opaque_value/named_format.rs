//! The names of string formats.

/// A string format that an expression selects by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFormat {
    /// The format `byte`: base64 with padding.
    Byte,
    /// A date such as `2021-01-01`.
    Date,
    /// A date and a time such as `2021-01-01T00:00:00Z`.
    Datetime,
    /// A DNS label of RFC 1035: it begins with a letter.
    Dns1035Label,
    /// The beginning of a [`NamedFormat::Dns1035Label`]: it may end in a dash.
    Dns1035LabelPrefix,
    /// A DNS label of RFC 1123.
    Dns1123Label,
    /// The beginning of a [`NamedFormat::Dns1123Label`]: it may end in a dash.
    Dns1123LabelPrefix,
    /// DNS labels of RFC 1123 between dots.
    Dns1123Subdomain,
    /// The beginning of a [`NamedFormat::Dns1123Subdomain`]: it may end in a dash.
    Dns1123SubdomainPrefix,
    /// The value of a label of an object.
    LabelValue,
    /// The key of a label of an object: a name, with an optional domain before a slash.
    QualifiedName,
    /// An absolute URL, or an absolute path.
    Uri,
    /// A UUID, with or without its dashes.
    Uuid,
}
