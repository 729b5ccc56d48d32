//! Expands aliases and merge keys, types scalars and finds duplicate keys.

use std::collections::{HashMap, HashSet};

use super::parser::{
    NodeId, RawContent, RawNode, RawScalar, RawTree, YAML_TAG_PREFIX, too_many_nodes_message,
};
use super::resolve_scalar::{ResolvedScalar, resolve_scalar};
use super::scanner::too_deep_message;
use super::{DuplicateKey, YamlDocument, YamlError};
use crate::node::{DocumentLimits, Entry, NESTING_MAX, Node, Value};
use crate::source::Span;

/// The check for excessive aliasing begins when aliases have produced more than this many values.
const ALIASED_NODES_MIN: usize = 100;
/// The check for excessive aliasing begins when the document has more than this many values.
const COUNTED_NODES_MIN: usize = 1000;
/// The maximum percentage of values that may come from aliases. The YAML reader of Kubernetes has the same three
/// limits.
const ALIASED_PERCENT_MAX: usize = 99;

/// Turns a tree with aliases into one of plain values.
pub(super) fn expand_aliases(
    text: &str,
    tree: &RawTree,
    document_limits: DocumentLimits,
) -> Result<YamlDocument, YamlError> {
    let mut composer = Composer {
        raw_tree: tree,
        limits: document_limits,
        duplicate_keys: Vec::new(),
        path: String::new(),
        aliases_being_expanded: Vec::new(),
        nesting_depth: 0,
        n_nodes: 1,
        n_nodes_from_aliases: 0,
        n_text_bytes: 0,
    };
    let root = match tree.root {
        Some(root) => composer.compose_node(root)?,
        None => untagged_node(Span::new(text.len(), text.len()), Value::Null),
    };
    Ok(YamlDocument {
        root_node: root,
        duplicate_keys: composer.duplicate_keys,
        trailing_content_span: None,
    })
}

struct Composer<'t> {
    raw_tree: &'t RawTree,
    limits: DocumentLimits,
    duplicate_keys: Vec<DuplicateKey>,
    /// Path of the current value as Kubernetes writes it: `authorizers[0].webhook`.
    path: String,
    /// Targets of the aliases that are being expanded.
    aliases_being_expanded: Vec<NodeId>,
    nesting_depth: usize,
    n_nodes: usize,
    n_nodes_from_aliases: usize,
    n_text_bytes: usize,
}

/// A mapping that is being filled.
#[derive(Default)]
struct MappingBuilder {
    mapping_entries: Vec<Entry>,
    /// Index in `entries` by key.
    index_by_key: HashMap<Key, usize>,
    /// The entries, by index, that a merge key has set.
    merged_entry_idxs: HashSet<usize>,
    /// Whether entries are being copied for a merge key.
    is_copying_for_merge_key: bool,
}

/// A key before it becomes text: `1` and `"1"` are different keys for YAML.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Bool(bool),
    Int(i64),
    /// The bits of the float.
    Float(u64),
    Text(String),
}

impl<'t> Composer<'t> {
    fn compose_node(&mut self, id: NodeId) -> Result<Node, YamlError> {
        let raw = self.look_up_and_count_node(id)?;
        match &raw.raw_content {
            RawContent::Scalar(scalar) => compose_scalar(raw, scalar),
            RawContent::Alias { name, target } => {
                self.expand_alias(raw, name, *target, |this| this.compose_node(*target))
            }
            RawContent::Sequence(items) => self.run_one_level_deeper(raw, |this| {
                let mut nodes = Vec::with_capacity(items.len());
                for (idx, &item) in items.iter().enumerate() {
                    let node = this
                        .run_with_path_step(&format!("[{idx}]"), |this| this.compose_node(item))?;
                    nodes.push(node);
                }
                Ok(untagged_node(raw.span, Value::List(nodes)))
            }),
            RawContent::Mapping(pairs) => {
                let mut mapping = MappingBuilder::default();
                self.fill_mapping(raw, pairs, &mut mapping)?;
                let mut entries = mapping.mapping_entries;
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                Ok(untagged_node(raw.span, Value::Object(entries)))
            }
        }
    }

    fn fill_mapping(
        &mut self,
        raw: &RawNode,
        pairs: &[(NodeId, NodeId)],
        mapping: &mut MappingBuilder,
    ) -> Result<(), YamlError> {
        self.run_one_level_deeper(raw, |this| {
            for &(key_id, value_id) in pairs {
                let key_raw = this.raw_node(key_id)?;
                if is_merge_key(key_raw) {
                    this.apply_merge_key(value_id, mapping)?;
                    continue;
                }
                let (key, name) = this.compose_key(key_id)?;
                let step = if this.path.is_empty() { name.clone() } else { format!(".{name}") };
                let value = this.run_with_path_step(&step, |this| this.compose_node(value_id))?;
                let entry = Entry { key: name, key_span: key_raw.span, value };
                let line = this.raw_node(value_id)?.line;
                match mapping.index_by_key.get(&key) {
                    None => {
                        if mapping.is_copying_for_merge_key {
                            mapping.merged_entry_idxs.insert(mapping.mapping_entries.len());
                        }
                        mapping.index_by_key.insert(key, mapping.mapping_entries.len());
                        mapping.mapping_entries.push(entry);
                    }
                    Some(&position) => {
                        if this.duplicate_keys.len() < this.limits.duplicate_keys_max {
                            let path = join_and_truncate_path(&this.path, &step);
                            let is_merged = mapping.is_copying_for_merge_key
                                || mapping.merged_entry_idxs.contains(&position);
                            let duplicate = describe_duplicate_key(&key, &entry, line, path);
                            this.duplicate_keys
                                .push(DuplicateKey { is_from_merge_key: is_merged, ..duplicate });
                        }
                        // The key that is set again is no longer that of the merged mapping.
                        if !mapping.is_copying_for_merge_key {
                            mapping.merged_entry_idxs.remove(&position);
                        }
                        if let Some(slot) = mapping.mapping_entries.get_mut(position) {
                            *slot = entry;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Handles a merge key `<<`: copies the keys of one mapping, or of a list of mappings from the last to the
    /// first.
    fn apply_merge_key(
        &mut self,
        id: NodeId,
        mapping: &mut MappingBuilder,
    ) -> Result<(), YamlError> {
        let raw = self.raw_node(id)?;
        let was_merging = std::mem::replace(&mut mapping.is_copying_for_merge_key, true);
        let merged = match &raw.raw_content {
            RawContent::Sequence(items) => {
                items.iter().rev().try_for_each(|&item| self.merge_mapping(item, mapping))
            }
            _ => self.merge_mapping(id, mapping),
        };
        mapping.is_copying_for_merge_key = was_merging;
        merged
    }

    fn merge_mapping(&mut self, id: NodeId, mapping: &mut MappingBuilder) -> Result<(), YamlError> {
        let wants_mapping = "map merge requires map or sequence of maps as the value";
        let raw = self.raw_node(id)?;
        match &raw.raw_content {
            RawContent::Mapping(pairs) => {
                self.look_up_and_count_node(id)?;
                self.fill_mapping(raw, pairs, mapping)
            }
            RawContent::Alias { name, target } => {
                let target_raw = self.raw_node(*target)?;
                let RawContent::Mapping(pairs) = &target_raw.raw_content else {
                    return Err(YamlError::new(wants_mapping, raw.span));
                };
                self.look_up_and_count_node(id)?;
                self.expand_alias(raw, name, *target, |this| {
                    this.look_up_and_count_node(*target)?;
                    this.fill_mapping(target_raw, pairs, mapping)
                })
            }
            RawContent::Scalar(_) | RawContent::Sequence(_) => {
                Err(YamlError::new(wants_mapping, raw.span))
            }
        }
    }

    /// Composes a key. Returns it with its name in JSON.
    fn compose_key(&mut self, id: NodeId) -> Result<(Key, String), YamlError> {
        let mut raw = self.look_up_and_count_node(id)?;
        let span = raw.span;
        if let RawContent::Alias { name, target } = &raw.raw_content {
            raw =
                self.expand_alias(raw, name, *target, |this| this.look_up_and_count_node(*target))?;
        }
        let RawContent::Scalar(scalar) = &raw.raw_content else {
            return Err(YamlError::new("invalid map key", span));
        };
        let unsupported = |kind: &str| YamlError {
            message: format!("unsupported map key of type: {kind}"),
            span,
        };
        match resolve_scalar(scalar).map_err(|problem| YamlError::new(problem, span))? {
            ResolvedScalar::Text(text) => {
                let name = text.as_str().to_owned();
                Ok((Key::Text(name.clone()), name))
            }
            ResolvedScalar::Bool(value) => Ok((Key::Bool(value), value.to_string())),
            ResolvedScalar::Int(value) => Ok((Key::Int(value), value.to_string())),
            ResolvedScalar::Float(value) => {
                Ok((Key::Float((value + 0.0).to_bits()), scalar.scalar_text.as_str().to_owned()))
            }
            ResolvedScalar::Uint(_) => Err(unsupported("uint64")),
            ResolvedScalar::Null => Err(unsupported("null")),
        }
    }

    fn raw_node(&self, id: NodeId) -> Result<&'t RawNode, YamlError> {
        // The invariant of `RawTree` rules this error out.
        self.raw_tree
            .raw_node_by_id(id)
            .ok_or_else(|| YamlError::new("unknown node", Span::default()))
    }

    /// Looks up a node and counts it against the limits.
    fn look_up_and_count_node(&mut self, id: NodeId) -> Result<&'t RawNode, YamlError> {
        let raw = self.raw_node(id)?;
        self.n_nodes += 1;
        if let RawContent::Scalar(scalar) = &raw.raw_content {
            self.n_text_bytes += scalar.scalar_text.as_str().len();
        }
        if !self.aliases_being_expanded.is_empty() {
            self.n_nodes_from_aliases += 1;
        }
        let DocumentLimits { nodes_max, expanded_bytes_max, .. } = self.limits;
        if self.n_nodes > nodes_max {
            return Err(YamlError::new(too_many_nodes_message(nodes_max), raw.span));
        }
        if self.n_text_bytes > expanded_bytes_max {
            let problem = format!("aliases make more than {expanded_bytes_max} bytes of text");
            return Err(YamlError::new(problem, raw.span));
        }
        let is_excessive = self.n_nodes_from_aliases > ALIASED_NODES_MIN
            && self.n_nodes > COUNTED_NODES_MIN
            && self.n_nodes_from_aliases * 100 > self.n_nodes * ALIASED_PERCENT_MAX;
        if is_excessive {
            return Err(YamlError::new("document contains excessive aliasing", raw.span));
        }
        Ok(raw)
    }

    /// Runs `work` on the target of an alias. An alias inside its own target is an error.
    fn expand_alias<T>(
        &mut self,
        alias: &RawNode,
        name: &str,
        target: NodeId,
        work: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if self.aliases_being_expanded.contains(&target) {
            let problem = format!("anchor '{name}' value contains itself");
            return Err(YamlError::new(problem, alias.span));
        }
        self.aliases_being_expanded.push(target);
        let done = work(self);
        self.aliases_being_expanded.pop();
        done
    }

    /// Runs `work` one level deeper.
    fn run_one_level_deeper<T>(
        &mut self,
        raw: &RawNode,
        work: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if self.nesting_depth >= NESTING_MAX {
            return Err(YamlError::new(too_deep_message(), raw.span));
        }
        self.nesting_depth += 1;
        let done = work(self);
        self.nesting_depth -= 1;
        done
    }

    /// Runs `work` with `step` appended to the path.
    fn run_with_path_step<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.path.len();
        self.path.push_str(step);
        let done = work(self);
        self.path.truncate(len);
        done
    }
}

fn compose_scalar(raw: &RawNode, scalar: &RawScalar) -> Result<Node, YamlError> {
    let resolved = resolve_scalar(scalar).map_err(|problem| YamlError::new(problem, raw.span))?;
    let value = match resolved {
        ResolvedScalar::Null => Value::Null,
        ResolvedScalar::Bool(value) => Value::Bool(value),
        ResolvedScalar::Float(float) if !float.is_finite() => {
            let name = match float {
                f64::INFINITY => "+Inf",
                f64::NEG_INFINITY => "-Inf",
                _ => "NaN",
            };
            let message = format!("json: unsupported value: {name}");
            return Err(YamlError { message, span: raw.span });
        }
        ResolvedScalar::Int(int) => Value::Number(int.into()),
        ResolvedScalar::Uint(int) => Value::Number(int.into()),
        // An arm above refuses floats that are not finite.
        ResolvedScalar::Float(float) => {
            serde_json::Number::from_f64(float).map_or(Value::Null, Value::Number)
        }
        ResolvedScalar::Text(text) => Value::Text(text),
    };
    let is_tagged = scalar.tag.as_ref().is_some_and(|tag| tag.starts_with('!'));
    Ok(Node { span: raw.span, value, has_yaml_tag: is_tagged })
}

fn untagged_node(span: Span, value: Value) -> Node {
    Node { span, value, has_yaml_tag: false }
}

fn is_merge_key(raw: &RawNode) -> bool {
    let RawContent::Scalar(scalar) = &raw.raw_content else { return false };
    let is_merge_tag =
        scalar.tag.as_deref().and_then(|tag| tag.strip_prefix(YAML_TAG_PREFIX)) == Some("merge");
    scalar.scalar_text.as_str() == "<<" && (scalar.is_type_implicit || is_merge_tag)
}

/// The maximum length in bytes of a path or key in the message about a duplicate key.
const SHOWN_BYTES_MAX: usize = 1024;

/// Joins a path and truncates it: the author of the file chooses the names, and many duplicate keys may
/// share a long path.
fn join_and_truncate_path(parent: &str, step: &str) -> String {
    let left = SHOWN_BYTES_MAX.saturating_sub(parent.len());
    format!(
        "{}{}",
        field_errors::truncate_to_bytes(parent, SHOWN_BYTES_MAX),
        field_errors::truncate_to_bytes(step, left)
    )
}

fn describe_duplicate_key(key: &Key, entry: &Entry, line: usize, path: String) -> DuplicateKey {
    let key = match key {
        Key::Text(text) => go_compat::quote(field_errors::truncate_to_bytes(text, SHOWN_BYTES_MAX)),
        Key::Bool(_) | Key::Int(_) | Key::Float(_) => entry.key.clone(),
    };
    let message = format!("line {line}: key {key} already set in map");
    DuplicateKey { message, path, span: entry.key_span, is_from_merge_key: false }
}
