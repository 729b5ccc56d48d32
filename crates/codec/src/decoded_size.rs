//! The memory that a body takes when it is decoded.

/// The memory of one value that is read from YAML: the value, its place in the text, and the value in JSON.
const YAML_VALUE_BYTES: usize = 320;

/// Texts look like values in this estimate, and the parser has a limit of values of its own.
const YAML_ESTIMATE_MAX: usize = 48 << 20;

/// The bytes of an object for each byte in protobuf, where the shortest field has two.
const PROTOBUF_FACTOR: usize = 16;

/// About as many bytes as a body takes when it is decoded; more for one with few texts and many other values.
pub fn estimate_decoded_bytes(body: &[u8], content_type: Option<&str>) -> usize {
    // The decoder ignores parameters, so they must not change the estimate.
    let content_type = content_type.unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().to_ascii_lowercase();
    if content_type.contains("protobuf") {
        return body.len().saturating_mul(PROTOBUF_FACTOR);
    }
    if content_type.contains("yaml") {
        let n_values = body.iter().filter(|byte| matches!(byte, b'\n' | b',' | b'[' | b'{'));
        let n_bytes = n_values.count().saturating_mul(YAML_VALUE_BYTES);
        return n_bytes.saturating_add(body.len()).min(YAML_ESTIMATE_MAX);
    }
    api_object::estimate_tree_bytes(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A16: what a body takes depends on its values more than on its bytes, in each format.
    #[test]
    fn a16_bodies_weigh_by_their_values() {
        let estimate = |body: &str, format: &str| {
            estimate_decoded_bytes(body.as_bytes(), Some(&format!("application/{format}")))
        };
        let lines = "a: 1\n".repeat(10_000);
        assert!(estimate(&lines, "yaml") > 3_000_000);
        assert!(estimate(&"x".repeat(50_000), "yaml") < 60_000);
        let flow = format!("[{}1]", "1,".repeat(10_000));
        assert_eq!(estimate(&flow, "json; x=yaml"), estimate(&flow, "json"));
        assert_eq!(estimate(&flow, "json;x=protobuf"), estimate(&flow, "json"));
        let members = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(10_000));
        assert!(estimate(&members, "json") > 1_000_000);
        assert!(estimate(&members, "apply-patch+yaml") > 3_000_000);
        assert_eq!(estimate(&"\n".repeat(3 << 20), "yaml"), YAML_ESTIMATE_MAX);
        assert_eq!(estimate(&lines, "vnd.kubernetes.protobuf"), 16 * lines.len());
        assert_eq!(estimate_decoded_bytes(b"{}", None), api_object::estimate_tree_bytes(b"{}"));
    }
}
