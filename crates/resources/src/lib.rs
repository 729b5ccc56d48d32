//! Which resources there are: the built-in set, custom ones, their discovery, their columns, their own rules.
