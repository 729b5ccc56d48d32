//! The listener: certificates, TLS, HTTP connections and their limits.
