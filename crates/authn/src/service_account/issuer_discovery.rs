//! The documents by which other programs verify tokens of this server, in the form of OpenID Connect discovery.

use serde_json::json;

use super::verify_token::ServiceAccountOptions;
use crate::token_keys::{KeyError, VerifyingKey};

/// The path of the document that names the issuer and the place of its keys.
pub const OPENID_CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// The path of the public keys.
pub const JWKS_PATH: &str = "/openid/v1/jwks";

/// The two documents of issuer discovery. They describe the first issuer, which signs new tokens.
#[derive(Debug, Clone)]
pub struct IssuerDiscovery {
    openid_configuration: String,
    json_web_key_set: String,
}

/// Why there are no documents of issuer discovery. Tokens work without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IssuerDiscoveryError {
    /// No issuer is configured.
    #[error("no issuer of service account tokens is configured")]
    NoIssuer,
    /// The issuer or the place of its keys is no `https` URL.
    #[error("the issuer and the place of its keys must be https URLs")]
    NotHttps,
    /// Verifiers append a path to the issuer, so it can have nothing behind its own path.
    #[error("the issuer may not include a query or a fragment")]
    QueryOrFragment,
    /// No key is configured.
    #[error("no key that verifies service account tokens is configured")]
    NoKey,
    /// A key has no form as a JSON Web Key.
    #[error("a key cannot be published: {0}")]
    Key(#[from] KeyError),
}

impl IssuerDiscovery {
    /// Builds the documents. `server_address` is the host and port under which verifiers reach this server; the options may
    /// name another place of the keys.
    ///
    /// # Errors
    /// [`IssuerDiscoveryError`] if the issuer cannot be discovered, or there is no key.
    pub fn new(
        options: &ServiceAccountOptions,
        server_address: &str,
    ) -> Result<Self, IssuerDiscoveryError> {
        let issuer = options.issuers.first().filter(|own| !own.is_empty());
        let issuer = issuer.ok_or(IssuerDiscoveryError::NoIssuer)?;
        let keys_url = match &options.jwks_uri {
            Some(url) => url.clone(),
            None => format!("https://{server_address}{JWKS_PATH}"),
        };
        if !issuer.starts_with("https://") || !keys_url.starts_with("https://") {
            return Err(IssuerDiscoveryError::NotHttps);
        }
        if issuer.contains(['?', '#']) {
            return Err(IssuerDiscoveryError::QueryOrFragment);
        }
        let mut keys: Vec<&VerifyingKey> = Vec::new();
        for key in &options.keys {
            if !keys.iter().any(|known| known.id() == key.id()) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            return Err(IssuerDiscoveryError::NoKey);
        }
        let mut algorithms: Vec<&str> =
            keys.iter().map(|key| key.signature_algorithm().name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        });
        let keys: Result<Vec<_>, KeyError> = keys.into_iter().map(VerifyingKey::to_jwk).collect();
        let json_web_key_set = json!({"keys": keys?});
        Ok(Self {
            openid_configuration: configuration.to_string(),
            json_web_key_set: json_web_key_set.to_string(),
        })
    }

    /// The document that names the issuer and the place of its keys, in JSON.
    pub fn openid_configuration(&self) -> &str {
        &self.openid_configuration
    }

    /// The public keys as a JSON Web Key Set.
    pub fn json_web_key_set(&self) -> &str {
        &self.json_web_key_set
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::signature;
    use serde_json::Value;

    use super::*;
    use crate::jwt::sign_token;
    use crate::token_keys::SigningKey;

    fn discover(issuer: &str, jwks_uri: Option<&str>, keys: &[&SigningKey]) -> (Value, Value) {
        let options = ServiceAccountOptions {
            issuers: vec![issuer.to_owned(), "https://former".to_owned()],
            keys: keys.iter().map(|key| key.verifying_key().clone()).collect(),
            jwks_uri: jwks_uri.map(str::to_owned),
        };
        let found = IssuerDiscovery::new(&options, "10.0.0.1:6443").unwrap();
        let parse = |text: &str| serde_json::from_str(text).unwrap();
        (parse(found.openid_configuration()), parse(found.json_web_key_set()))
    }

    #[test]
    fn a_verifier_finds_the_keys_and_verifies_tokens_with_them() {
        let ec = SigningKey::from_pem(&SigningKey::generate_private_key_pem().unwrap()).unwrap();
        let rsa = SigningKey::from_pem(include_str!("../../testdata/keys/rsa.pkcs8.pem")).unwrap();
        let (configuration, json_web_key_set) = discover("https://me", None, &[&ec, &rsa, &ec]);
        assert_eq!(
            configuration,
            json!({"issuer": "https://me", "jwks_uri": "https://10.0.0.1:6443/openid/v1/jwks",
                "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256", "RS256"]})
        );
        let keys = json_web_key_set["keys"].as_array().unwrap();
        assert_eq!(keys.len(), 2);
        for (key, signer) in keys.iter().zip([&ec, &rsa]) {
            let token = sign_token(signer, &api_object::Tree::new()).unwrap();
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
            let member = |name: &str| decode(key[name].as_str().unwrap());
            let header = signed.split_once('.').unwrap().0;
            let header: Value = serde_json::from_slice(&decode(header)).unwrap();
            assert_eq!((&key["kid"], &key["alg"]), (&header["kid"], &header["alg"]));
            assert_eq!(key["use"], "sig");
            let signature = decode(signature);
            let verified = match key["kty"].as_str().unwrap() {
                "EC" => {
                    assert_eq!(key["crv"], "P-256");
                    let point = [vec![4], member("x"), member("y")].concat();
                    let algorithm = &signature::ECDSA_P256_SHA256_FIXED;
                    signature::UnparsedPublicKey::new(algorithm, point)
                        .verify(signed.as_bytes(), &signature)
                }
                _ => {
                    assert_eq!(key["e"], "AQAB");
                    signature::RsaPublicKeyComponents { n: member("n"), e: member("e") }.verify(
                        &signature::RSA_PKCS1_2048_8192_SHA256,
                        signed.as_bytes(),
                        &signature,
                    )
                }
            };
            assert!(verified.is_ok(), "{key}");
        }
    }

    #[test]
    fn the_place_of_the_keys_can_be_given() {
        let key = SigningKey::from_pem(&SigningKey::generate_private_key_pem().unwrap()).unwrap();
        let (configuration, _) = discover("https://me", Some("https://keys/x"), &[&key]);
        assert_eq!(configuration["jwks_uri"], "https://keys/x");
    }

    #[test]
    fn some_issuers_can_not_be_discovered() {
        let key = SigningKey::from_pem(&SigningKey::generate_private_key_pem().unwrap()).unwrap();
        let keys = vec![key.verifying_key().clone()];
        for (issuer, keys, want) in [
            ("", &keys, IssuerDiscoveryError::NoIssuer),
            ("kubernetes/serviceaccount", &keys, IssuerDiscoveryError::NotHttps),
            ("http://me", &keys, IssuerDiscoveryError::NotHttps),
            ("https://me?a=b", &keys, IssuerDiscoveryError::QueryOrFragment),
            ("https://me#a", &keys, IssuerDiscoveryError::QueryOrFragment),
            ("https://me", &Vec::new(), IssuerDiscoveryError::NoKey),
        ] {
            let options = ServiceAccountOptions {
                issuers: vec![issuer.to_owned()],
                keys: keys.clone(),
                jwks_uri: None,
            };
            assert_eq!(IssuerDiscovery::new(&options, "a:1").unwrap_err(), want, "{issuer}");
        }
    }
}
