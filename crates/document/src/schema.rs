//! Tables of the fields of objects. The decoder, the hints and the published JSON Schema all use them.

/// The schema of one object type.
#[derive(Debug)]
pub struct ObjectSchema {
    /// Kubernetes' name of the type, which its messages show.
    pub type_name: &'static str,
    /// Description for the published JSON Schema.
    pub description: &'static str,
    /// The fields that the object may have.
    pub field_schemas: &'static [FieldSchema],
}

/// One field of an object.
#[derive(Debug)]
pub struct FieldSchema {
    /// Name of the field in a document.
    pub name: &'static str,
    /// Description for the published JSON Schema.
    pub description: &'static str,
    /// Whether the published JSON Schema requires the field.
    pub is_required: bool,
    /// The type of the value.
    pub field_type: FieldType,
}

/// The type of a field's value.
#[derive(Debug)]
pub enum FieldType {
    /// Any text, or one of a closed set.
    Text(SchemaTextRule),
    /// A duration in Go's syntax.
    Duration {
        /// The value that an absent field gets.
        default: Option<&'static str>,
    },
    /// A boolean, which has a default.
    Bool {
        /// The value that an absent field has.
        default: bool,
    },
    /// A number without a fraction.
    Integer,
    /// An object with the fields of this schema.
    Object(&'static ObjectSchema),
    /// A list of objects.
    List {
        /// The schema of an item.
        item: &'static ObjectSchema,
        /// The smallest number of items allowed.
        items_min: usize,
        /// The largest number of items allowed.
        items_max: Option<usize>,
    },
    /// A list of objects, or a map of them by name.
    ListOrMap {
        /// The schema of an item.
        item: &'static ObjectSchema,
        /// The smallest number of items allowed.
        items_min: usize,
    },
    /// A list of texts.
    TextList,
    /// A map from any key to a text.
    TextMap,
    /// Any value; the check does not descend into it.
    Any,
}

/// The texts that the published JSON Schema accepts.
#[derive(Debug)]
pub enum SchemaTextRule {
    /// Any text is allowed.
    Any,
    /// One text of this list.
    OneOf(&'static [&'static str]),
    /// The text must be a DNS-1123 subdomain.
    DnsSubdomain,
    /// An absolute path of a file.
    AbsolutePath,
}

impl FieldSchema {
    /// Makes a field that the published JSON Schema does not require.
    pub const fn optional_field(
        name: &'static str,
        description: &'static str,
        field_type: FieldType,
    ) -> Self {
        Self { name, description, is_required: false, field_type }
    }
}

impl ObjectSchema {
    /// Finds a field by its name.
    pub fn field(&self, name: &str) -> Option<&'static FieldSchema> {
        self.field_schemas.iter().find(|field| field.name == name)
    }

    /// Lists the names of all fields.
    pub fn field_names(&self) -> Vec<&'static str> {
        self.field_schemas.iter().map(|field| field.name).collect()
    }

    /// Finds the nested object that has a field of this name, and returns its path from this object.
    pub fn path_of_nested_field(&self, name: &str) -> Option<String> {
        self.field_schemas.iter().find_map(|field| {
            let (nested, dots) = match &field.field_type {
                FieldType::Object(object) => (*object, ""),
                FieldType::List { item, .. } | FieldType::ListOrMap { item, .. } => (*item, "[]"),
                FieldType::Text(_)
                | FieldType::Duration { .. }
                | FieldType::Bool { .. }
                | FieldType::Integer
                | FieldType::TextList
                | FieldType::TextMap
                | FieldType::Any => return None,
            };
            let here = format!("{}{dots}", field.name);
            if nested.field(name).is_some() {
                return Some(here);
            }
            nested.path_of_nested_field(name).map(|below| format!("{here}.{below}"))
        })
    }
}

impl FieldType {
    /// Go's name of the type, for a message; `version` is the package.
    pub fn go_type_name(&self, version: &str) -> String {
        match self {
            Self::Text(_) | Self::Duration { .. } => "string".to_owned(),
            Self::Bool { .. } => "bool".to_owned(),
            Self::Integer => "int64".to_owned(),
            Self::TextList => "[]string".to_owned(),
            Self::TextMap => "map[string]string".to_owned(),
            Self::Any => "interface {}".to_owned(),
            Self::Object(object) => format!("{version}.{}", object.type_name),
            Self::List { item, .. } | Self::ListOrMap { item, .. } => {
                format!("[]{version}.{}", item.type_name)
            }
        }
    }
}
