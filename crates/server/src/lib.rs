//! The API server: the life of a request.
