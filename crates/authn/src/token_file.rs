//! The static token file: each record holds a token and its user.

use std::fmt;
use std::sync::Arc;

use authz::User;

use crate::csv::{CsvError, parse_csv};
use crate::random_secrets::RandomnessError;
use crate::token_table::TokenTable;

/// Upper bound on the size of a token file. The server reads it whole at start; a larger file is a
/// mistake.
pub const TOKEN_FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The users of a token file by token.
pub struct TokenFile {
    users_by_token: TokenTable,
    token_file_warnings: Vec<TokenFileWarning>,
}

/// Why a token file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// The file is not CSV.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// A record has fewer than three columns.
    #[error(
        "token file '{file}' must have at least 3 columns (token, user name, user uid), found \
         {n_columns}"
    )]
    Columns {
        /// The name of the file, for messages.
        file: String,
        /// How many columns the record has.
        n_columns: usize,
    },
    /// The file is larger than [`TOKEN_FILE_BYTES_MAX`].
    #[error("token file '{file}' is larger than {TOKEN_FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// The name of the file.
        file: String,
    },
    /// The key of the token table cannot be generated.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// A questionable record in a usable token file. Records are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFileWarning {
    /// A record without a token is skipped.
    EmptyToken {
        /// The number of the record.
        record: usize,
    },
    /// A record has the token of an earlier one and replaces it.
    DuplicateToken {
        /// The number of the record.
        record: usize,
    },
}

impl fmt::Display for TokenFileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyToken { record } => write!(f, "record {record} has no token and is skipped"),
            Self::DuplicateToken { record } => {
                write!(f, "record {record} replaces an earlier one with the same token")
            }
        }
    }
}

impl TokenFile {
    /// Parses the text of a file; the file name is for messages.
    ///
    /// # Errors
    /// The text is not CSV, or a record has fewer than three columns.
    pub fn parse(file: &str, text: &str) -> Result<Self, TokenFileError> {
        if text.len() > TOKEN_FILE_BYTES_MAX {
            return Err(TokenFileError::TooLarge { file: file.to_owned() });
        }
        let mut table = TokenTable::new()?;
        let mut warnings = Vec::new();
        for (idx, columns) in parse_csv(text).enumerate() {
            let columns = columns?;
            let record = idx + 1;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                let n_columns = columns.len();
                return Err(TokenFileError::Columns { file: file.to_owned(), n_columns });
            };
            if token.is_empty() {
                warnings.push(TokenFileWarning::EmptyToken { record });
                continue;
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let user = User {
                name: name.clone(),
                uid: uid.clone(),
                groups: split_groups(groups),
                ..User::default()
            };
            if table.insert(token, user).is_some() {
                warnings.push(TokenFileWarning::DuplicateToken { record });
            }
        }
        Ok(Self { users_by_token: table, token_file_warnings: warnings })
    }

    /// The questionable records of the file.
    pub fn token_file_warnings(&self) -> &[TokenFileWarning] {
        &self.token_file_warnings
    }

    /// The user that a token authenticates.
    pub fn user(&self, token: &str) -> Option<&Arc<User>> {
        self.users_by_token.user(token)
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("table", &self.users_by_token).finish_non_exhaustive()
    }
}

/// The groups of the fourth column. Empty names are dropped: a policy for the empty group would
/// match every record with an empty column.
fn split_groups(column: &str) -> Vec<String> {
    column.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "t1,u1,id1\nt3,u3,id3,\"g1,g2\"\nt4,u4,id4,\"g2\"\nt5,u5,id5,g5\n\
                        t6,u6,id6,g5,other\n";

    fn groups(file: &TokenFile, token: &str) -> Vec<String> {
        file.user(token).unwrap().groups.clone()
    }

    #[test]
    fn tokens_stand_for_users() {
        let file = TokenFile::parse("f", FILE).unwrap();
        let user = file.user("t1").unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("u1", "id1"));
        assert!(user.groups.is_empty());
        assert_eq!(groups(&file, "t3"), ["g1", "g2"]);
        assert_eq!(groups(&file, "t4"), ["g2"]);
        assert_eq!(groups(&file, "t5"), ["g5"]);
        assert_eq!(groups(&file, "t6"), ["g5"]);
        assert_eq!(file.user("t8"), None);
        assert!(file.token_file_warnings().is_empty());
    }

    #[test]
    fn a_record_of_two_columns_is_refused() {
        let error = TokenFile::parse("tokens.csv", "t,u,id\nt,u\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "token file 'tokens.csv' must have at least 3 columns (token, user name, user uid), \
             found 2"
        );
    }

    /// L21: an empty token in the file authenticates no user.
    #[test]
    fn odd_records_are_warned_about() {
        let file = TokenFile::parse("f", ",user5,uid5\nt,a,1\nt,b,2\n").unwrap();
        assert_eq!(file.user(""), None);
        assert_eq!(file.user("t").unwrap().name, "b");
        assert_eq!(
            file.token_file_warnings(),
            [
                TokenFileWarning::EmptyToken { record: 1 },
                TokenFileWarning::DuplicateToken { record: 3 },
            ]
        );
    }

    #[test]
    fn empty_groups_are_dropped() {
        let file = TokenFile::parse("f", "a,u,1,\"\"\nb,u,1,\",g,,h,\"\n").unwrap();
        assert!(groups(&file, "a").is_empty());
        assert_eq!(groups(&file, "b"), ["g", "h"]);
    }

    #[test]
    fn the_size_is_limited() {
        let at = " ".repeat(TOKEN_FILE_BYTES_MAX - "t,u,".len());
        assert!(TokenFile::parse("f", &format!("t,u,{at}")).is_ok());
        let past = TokenFile::parse("f", &format!("t,u,{at} ")).unwrap_err();
        assert_eq!(past, TokenFileError::TooLarge { file: "f".to_owned() });
    }

    #[test]
    fn nothing_that_is_shown_holds_a_token() {
        let file = TokenFile::parse("f", "swordfish,u,1\nswordfish,u,1\n").unwrap();
        let error = TokenFile::parse("f", "swordfish,\"u,1\n").unwrap_err();
        let columns = TokenFile::parse("f", "swordfish,u\n").unwrap_err();
        let shown =
            format!("{file:?} {:?} {error:?} {error} {columns:?}", file.token_file_warnings());
        assert!(!shown.contains("swordfish"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}|[a,\"\n\r]{0,60}") {
            let _ = TokenFile::parse("f", &text);
        }
    }
}
