//! Map values, which borrow records and maps of the host or own their entries.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use super::{Cidr, List, OpaqueValue, Str, TypeName, Value};

/// A record of the host, whose fields are read by index. The evaluation borrows it.
///
/// The expression language sees it as a map with string keys.
pub trait RecordSource: fmt::Debug + Sync {
    /// The names of all fields, present or not, in the order of the record's
    /// [`ObjectType`](crate::ObjectType).
    fn field_names(&self) -> &'static [&'static str];
    /// The value of the field with this index, if the field is present.
    fn field(&self, index: usize) -> Option<Value<'_>>;

    /// Reports whether the field is present.
    #[inline]
    fn has_field(&self, index: usize) -> bool {
        self.field(index).is_some()
    }

    /// The value of a field that is a borrowed string; `None` for other fields.
    #[inline]
    fn string_field(&self, index: usize) -> Option<&str> {
        match self.field(index) {
            Some(Value::String(Str::Borrowed(text))) => Some(text),
            _ => None,
        }
    }

    /// The value of a field that is a list of strings; `None` for other fields.
    #[inline]
    fn string_list_field(&self, index: usize) -> Option<&[String]> {
        match self.field(index) {
            Some(Value::List(List::Strings(texts))) => Some(texts),
            _ => None,
        }
    }

    /// The value of a field that is a record; `None` for other fields.
    #[inline]
    fn nested_record_field(&self, index: usize) -> Option<&dyn RecordSource> {
        match self.field(index) {
            Some(Value::Map(Map::Record(record))) => Some(record),
            _ => None,
        }
    }
}

/// A map of the host with string keys. The evaluation borrows it and converts only the values that
/// it reads.
pub trait MapSource: fmt::Debug + Sync {
    /// The number of entries.
    fn len(&self) -> usize;
    /// The value at `key`.
    fn get(&self, key: &str) -> Option<Value<'_>>;
    /// The entries, in an order that does not change while the map is borrowed.
    fn map_entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_>;
    /// Reports whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A map value of CEL, in one of several representations.
#[derive(Debug, Clone)]
pub enum Map<'a> {
    /// A record of the host.
    Record(&'a dyn RecordSource),
    /// A map of the host.
    Source(&'a dyn MapSource),
    /// A map that the evaluation created, or a constant.
    Owned(Arc<OwnedMap<'a>>),
}

/// Lookups of string keys search maps up to this size linearly and use the hash index of larger
/// maps.
const LINEAR_SEARCH_MAX: usize = 16;

/// A map that owns its entries and keeps their insertion order.
#[derive(Debug, Clone, Default)]
pub struct OwnedMap<'a> {
    map_entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<MapKey<'a>, usize>,
    /// The greatest nesting depth of all entries that were ever added.
    nesting_depth: u32,
}

/// The key of an entry in the hash index. `1`, `1u` and `1.0` are the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum MapKey<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above the range of `Int`.
    Uint(u64),
    /// The bits of a double that is not an integer.
    Double(u64),
    Duration(i64),
    Timestamp(i64, u32),
    String(StringKey<'a>),
    Type(TypeName<'a>),
    Ip(IpAddr),
    Cidr(Cidr),
}

#[derive(Debug, Clone)]
struct StringKey<'a>(Str<'a>);

impl PartialEq for StringKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for StringKey<'_> {}

impl Hash for StringKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl<'a> MapKey<'a> {
    /// The key for a value; `None` if no key can equal the value.
    fn key_from_value(value: &Value<'a>) -> Option<Self> {
        match value {
            Value::Bool(b) => Some(Self::Bool(*b)),
            Value::Int(i) => Some(Self::Int(*i)),
            Value::Uint(u) => Some(i64::try_from(*u).map_or(Self::Uint(*u), Self::Int)),
            Value::Double(d) => Self::key_from_double(*d),
            Value::String(text) => Some(Self::String(StringKey(text.clone()))),
            Value::Null => Some(Self::Null),
            Value::Duration(nanos) => Some(Self::Duration(*nanos)),
            Value::Timestamp(time) => {
                Some(Self::Timestamp(time.unix_seconds(), time.nanos_of_second()))
            }
            Value::Type(name) => Some(Self::Type(*name)),
            Value::Opaque(opaque) => match &**opaque {
                OpaqueValue::Ip(ip) => Some(Self::Ip(*ip)),
                OpaqueValue::Cidr(cidr) => Some(Self::Cidr(*cidr)),
                // In cel-go no two of these keys are equal, because it compares addresses or fails.
                OpaqueValue::Authorization(_)
                | OpaqueValue::Format(_)
                | OpaqueValue::Quantity(_)
                | OpaqueValue::Semver(_)
                | OpaqueValue::Url(_) => None,
            },
            Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Optional(_) => None,
        }
    }

    fn key_from_double(d: f64) -> Option<Self> {
        if d.is_nan() {
            return None;
        }
        if d.fract() != 0.0 || d.is_infinite() {
            return Some(Self::Double(d.to_bits()));
        }
        // The casts are exact: the ranges are checked first and the fraction is zero.
        if d.abs() < 9_223_372_036_854_775_808.0 {
            Some(Self::Int(d as i64))
        } else if (0.0..18_446_744_073_709_551_616.0).contains(&d) {
            Some(Self::Uint(d as u64))
        } else {
            Some(Self::Double(d.to_bits()))
        }
    }
}

impl<'a> OwnedMap<'a> {
    /// Returns a map without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry. Returns false and changes nothing if the map has the key already or if the
    /// value cannot be a key.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> bool {
        let Some(k) = MapKey::key_from_value(&key) else { return false };
        if self.index.contains_key(&k) {
            return false;
        }
        self.index.insert(k, self.map_entries.len());
        self.push(key, value);
        true
    }

    /// Adds an entry, or replaces the value of the entry that has this key. If the value cannot be
    /// a key, the entry is part of the size and of iterations, but no lookup finds it.
    pub fn set(&mut self, key: Value<'a>, value: Value<'a>) {
        let Some(k) = MapKey::key_from_value(&key) else {
            self.push(key, value);
            return;
        };
        match self.index.get(&k).and_then(|&position| self.map_entries.get_mut(position)) {
            Some(entry) => {
                self.nesting_depth = self.nesting_depth.max(value.nesting_depth());
                entry.1 = value;
            }
            None => {
                self.insert(key, value);
            }
        }
    }

    fn push(&mut self, key: Value<'a>, value: Value<'a>) {
        self.nesting_depth = self.nesting_depth.max(key.nesting_depth()).max(value.nesting_depth());
        self.map_entries.push((key, value));
    }

    /// The greatest nesting depth of all entries that were ever added.
    pub(super) fn nesting_depth(&self) -> u32 {
        self.nesting_depth
    }

    /// Removes an entry, if there is one.
    pub fn remove(&mut self, key: &Value<'a>) {
        let Some(position) = MapKey::key_from_value(key).and_then(|k| self.index.remove(&k)) else {
            return;
        };
        self.map_entries.remove(position);
        for later in self.index.values_mut().filter(|p| **p > position) {
            *later -= 1;
        }
    }

    /// The value at `key`.
    pub fn get(&self, key: &Value<'a>) -> Option<Value<'a>> {
        let position = *self.index.get(&MapKey::key_from_value(key)?)?;
        self.map_entries.get(position).map(|(_, value)| value.clone())
    }

    /// The value at a string key.
    pub fn get_by_str_key(&self, key: &str) -> Option<Value<'a>> {
        // The index needs a key with the lifetime of the map, so a lookup copies the text. Most
        // maps of expressions are small enough for a linear search.
        let is_key =
            |candidate: &Value<'a>| matches!(candidate, Value::String(s) if s.as_str() == key);
        if self.map_entries.len() <= LINEAR_SEARCH_MAX {
            let (_, value) = self.map_entries.iter().find(|(k, _)| is_key(k))?;
            return Some(value.clone());
        }
        let position = *self.index.get(&MapKey::String(StringKey(Str::Owned(key.into()))))?;
        self.map_entries.get(position).map(|(_, value)| value.clone())
    }

    /// The entries in the order in which they were added.
    pub fn map_entries(&self) -> &[(Value<'a>, Value<'a>)] {
        &self.map_entries
    }
}

impl<'a> Map<'a> {
    /// Wraps a map that owns its entries.
    pub fn from_owned_map(map: OwnedMap<'a>) -> Self {
        Self::Owned(Arc::new(map))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Record(record) => {
                (0..record.field_names().len()).filter(|&i| record.field(i).is_some()).count()
            }
            Self::Source(map) => map.len(),
            Self::Owned(map) => map.map_entries.len(),
        }
    }

    /// Reports whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a string key.
    pub fn get_by_str_key(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Record(record) => {
                let record: &'a dyn RecordSource = *record;
                let index = record.field_names().iter().position(|name| *name == key)?;
                record.field(index)
            }
            Self::Source(map) => {
                let map: &'a dyn MapSource = *map;
                map.get(key)
            }
            Self::Owned(map) => map.get_by_str_key(key),
        }
    }

    /// The value at any key.
    pub fn get(&self, key: &Value<'a>) -> Option<Value<'a>> {
        match (self, key) {
            (Self::Owned(map), key) => map.get(key),
            (_, Value::String(text)) => self.get_by_str_key(text.as_str()),
            _ => None,
        }
    }

    /// Iterates over the entries as pairs of key and value.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + '_> {
        match self {
            Self::Record(record) => {
                let record: &'a dyn RecordSource = *record;
                let fields = record.field_names().iter().enumerate();
                Box::new(fields.filter_map(move |(index, name)| {
                    Some((Value::borrowed_string(name), record.field(index)?))
                }))
            }
            Self::Source(map) => {
                let map: &'a dyn MapSource = *map;
                Box::new(map.map_entries().map(|(key, value)| (Value::borrowed_string(key), value)))
            }
            Self::Owned(map) => Box::new(map.map_entries.iter().cloned()),
        }
    }
}
