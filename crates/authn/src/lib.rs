//! Who is asking: from headers, certificates and tokens to a user.
