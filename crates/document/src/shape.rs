//! Tables that describe wire objects: one description for the decoder, for hints and for the
//! published schema.

/// A wire object.
#[derive(Debug)]
pub struct Object {
    /// Kubernetes' name of the type, which its messages show.
    pub type_name: &'static str,
    pub description: &'static str,
    pub fields: &'static [Field],
}

/// One field of an object.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub description: &'static str,
    pub is_required: bool,
    pub shape: Shape,
}

/// What a field holds.
#[derive(Debug)]
pub enum Shape {
    /// Any text, or one of a closed set.
    Text(TextRule),
    /// A duration in Go's syntax, with the default that an absent one gets.
    Duration {
        default: Option<&'static str>,
    },
    /// A boolean, with the value that an absent one has.
    Flag {
        default: bool,
    },
    Number,
    Object(&'static Object),
    List {
        item: &'static Object,
        items_min: usize,
        items_max: Option<usize>,
    },
    /// A list of objects, or a map of them by name.
    ListOrMap {
        item: &'static Object,
        items_min: usize,
    },
    /// A list of texts.
    Texts,
    /// Keys that anybody may choose, each with a text.
    TextMap,
    /// Something that is never looked at.
    Any,
}

/// Which texts the published schema accepts.
#[derive(Debug)]
pub enum TextRule {
    Any,
    OneOf(&'static [&'static str]),
    DnsSubdomain,
    AbsolutePath,
}

impl Object {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub fn field_names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }

    /// The nested object that has a field of this name, as a path of fields from here.
    pub fn find_nested(&self, name: &str) -> Option<String> {
        self.fields.iter().find_map(|field| {
            let (nested, dots) = match &field.shape {
                Shape::Object(object) => (*object, ""),
                Shape::List { item, .. } | Shape::ListOrMap { item, .. } => (*item, "[]"),
                Shape::Text(_)
                | Shape::Duration { .. }
                | Shape::Flag { .. }
                | Shape::Number
                | Shape::Texts
                | Shape::TextMap
                | Shape::Any => return None,
            };
            let here = format!("{}{dots}", field.name);
            if nested.field(name).is_some() {
                return Some(here);
            }
            nested.find_nested(name).map(|below| format!("{here}.{below}"))
        })
    }
}

impl Shape {
    /// Go's name of the type, for a message; `version` is the package.
    pub fn go_type(&self, version: &str) -> String {
        match self {
            Self::Text(_) | Self::Duration { .. } => "string".to_owned(),
            Self::Flag { .. } => "bool".to_owned(),
            Self::Number => "int64".to_owned(),
            Self::Texts => "[]string".to_owned(),
            Self::TextMap => "map[string]string".to_owned(),
            Self::Any => "interface {}".to_owned(),
            Self::Object(object) => format!("{version}.{}", object.type_name),
            Self::List { item, .. } | Self::ListOrMap { item, .. } => {
                format!("[]{version}.{}", item.type_name)
            }
        }
    }
}
