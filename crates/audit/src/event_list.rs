//! The list of events that a webhook gets.

use bytes::Bytes;

/// The beginning of each line. In a list the items have no type of their own, as in Kubernetes.
const ITEM_TYPE: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// Encodes lines of events as an `EventList` of `audit.k8s.io/v1`.
pub fn encode_event_list(lines: &[Bytes]) -> Vec<u8> {
    let n_bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut list = Vec::with_capacity(n_bytes + 100);
    list.extend_from_slice(
        br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#,
    );
    for (idx, line) in lines.iter().enumerate() {
        if idx > 0 {
            list.push(b',');
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match line.strip_prefix(ITEM_TYPE) {
            Some(members) => {
                list.push(b'{');
                list.extend_from_slice(members);
            }
            None => list.extend_from_slice(line),
        }
    }
    list.extend_from_slice(b"]}\n");
    list
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lines_become_items_without_their_type() {
        let line = |id: &str| {
            let mut line = ITEM_TYPE.to_vec();
            line.extend_from_slice(format!("\"auditID\":\"{id}\"}}\n").as_bytes());
            Bytes::from(line)
        };
        for (lines, want) in [
            (vec![], json!([])),
            (vec![line("a")], json!([{"auditID": "a"}])),
            (vec![line("a"), line("b")], json!([{"auditID": "a"}, {"auditID": "b"}])),
        ] {
            let list: Value = serde_json::from_slice(&encode_event_list(&lines)).unwrap();
            assert_eq!(list["items"], want);
            assert_eq!((&list["kind"], &list["metadata"]), (&json!("EventList"), &json!({})));
            assert_eq!(list["apiVersion"], "audit.k8s.io/v1");
        }
    }
}
