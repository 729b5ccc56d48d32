//! Bytes on the wire: media types, JSON, YAML and protobuf in, JSON and YAML out.
