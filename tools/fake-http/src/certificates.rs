//! Valid and invalid certificates for tests. Their times are fixed, so that the clock does not matter.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

/// A certificate authority (CA).
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate in PEM encoding.
    pub certificate_pem: String,
    /// The private key in PEM encoding.
    pub key_pem: String,
}

/// The content of a certificate.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The common name of the subject.
    pub common_name: String,
    /// The organization of the subject, which Kubernetes reads as a group.
    pub organization: Option<String>,
    /// The subject alternative names; without any, the certificate has no such extension.
    pub names: Vec<String>,
    /// The period in which the certificate is valid.
    pub validity: Validity,
    /// The extended key usage of the certificate.
    pub purpose: Purpose,
}

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// The certificate is valid for the whole century.
    Now,
    /// The certificate expired in 2021.
    Past,
    /// The certificate becomes valid in 2110.
    Future,
}

/// The extended key usage of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The certificate authenticates a server.
    Server,
    /// The certificate authenticates a client.
    Client,
}

impl Leaf {
    /// A server certificate with these names and addresses.
    pub fn server(names: &[&str]) -> Self {
        Self {
            common_name: names.first().copied().unwrap_or("nameless").to_owned(),
            organization: None,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            validity: Validity::Now,
            purpose: Purpose::Server,
        }
    }

    /// A server certificate for the loopback addresses.
    pub fn loopback() -> Self {
        Self::server(&["localhost", "127.0.0.1", "::1"])
    }

    /// A client certificate with this common name.
    pub fn client(common_name: &str) -> Self {
        let purpose = Purpose::Client;
        Self { common_name: common_name.to_owned(), purpose, ..Self::server(&[]) }
    }

    /// Adds an organization to the subject.
    pub fn organization(self, organization: &str) -> Self {
        Self { organization: Some(organization.to_owned()), ..self }
    }

    /// Removes the subject alternative names, so that only the common name is left.
    pub fn without_names(self) -> Self {
        Self { names: Vec::new(), ..self }
    }

    /// Makes the certificate an expired one.
    pub fn expired(self) -> Self {
        Self { validity: Validity::Past, ..self }
    }

    /// Makes the certificate one that is not valid yet.
    pub fn not_yet_valid(self) -> Self {
        Self { validity: Validity::Future, ..self }
    }

    fn params(&self) -> Result<CertificateParams, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, &*self.common_name);
        if let Some(organization) = &self.organization {
            params.distinguished_name.push(DnType::OrganizationName, &**organization);
        }
        for name in &self.names {
            params.subject_alt_names.push(match name.parse() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        let (first, last) = match self.validity {
            Validity::Now => (2020, 2120),
            Validity::Past => (2020, 2021),
            Validity::Future => (2110, 2120),
        };
        params.not_before = date_time_ymd(first, 1, 1);
        params.not_after = date_time_ymd(last, 1, 1);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match self.purpose {
            Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Purpose::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

impl Authority {
    /// Creates a CA.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(name: &str) -> io::Result<Self> {
        let make = || {
            let mut params = Leaf::client(name).params()?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            params.extended_key_usages.clear();
            params.use_authority_key_identifier_extension = false;
            CertifiedIssuer::self_signed(params, KeyPair::generate()?)
        };
        Ok(Self { issuer: make().map_err(io::Error::other)? })
    }

    /// A signer that uses the key of a certificate that is not a CA certificate.
    ///
    /// # Errors
    /// A name is neither an address nor ASCII.
    pub fn pretended(leaf: &Leaf) -> io::Result<Self> {
        let make = || CertifiedIssuer::self_signed(leaf.params()?, KeyPair::generate()?);
        Ok(Self { issuer: make().map_err(io::Error::other)? })
    }

    /// The certificate of the CA in PEM encoding.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate with a new key.
    ///
    /// # Errors
    /// A name is neither an address nor ASCII.
    pub fn issue(&self, leaf: &Leaf) -> io::Result<Issued> {
        let make = || {
            let key = KeyPair::generate()?;
            let certificate = leaf.params()?.signed_by(&key, &self.issuer)?;
            Ok::<_, Error>(Issued {
                certificate_pem: certificate.pem(),
                key_pem: key.serialize_pem(),
            })
        };
        make().map_err(io::Error::other)
    }
}

impl Issued {
    /// Writes `NAME.crt` and `NAME.key` into a directory and returns their paths.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> io::Result<(PathBuf, PathBuf)> {
        let certificate = directory.join(format!("{name}.crt"));
        let key = directory.join(format!("{name}.key"));
        std::fs::write(&certificate, &self.certificate_pem)?;
        std::fs::write(&key, &self.key_pem)?;
        Ok((certificate, key))
    }
}

/// A self-signed certificate. It claims to be a CA, like those of `openssl req -x509`.
///
/// # Errors
/// As for [`Authority::issue`].
pub fn self_signed(leaf: &Leaf) -> io::Result<Issued> {
    let make = || {
        let key = KeyPair::generate()?;
        let mut params = leaf.params()?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.use_authority_key_identifier_extension = false;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok::<_, Error>(Issued { certificate_pem, key_pem: key.serialize_pem() })
    };
    make().map_err(io::Error::other)
}

/// A certificate with a SHA-1 signature, and the CA that signed it.
#[derive(Debug, Clone)]
pub struct Sha1Signed {
    /// The certificate authority in PEM encoding.
    pub authority_pem: String,
    /// The certificate, for `localhost`, `hook.example.test` and the loopback addresses.
    pub issued: Issued,
}

/// Returns a certificate with a SHA-1 signature. Our libraries no longer make such signatures, so it is a
/// file, and its key is public.
pub fn sha1_signed() -> Sha1Signed {
    Sha1Signed {
        authority_pem: include_str!("sha1/authority.pem").to_owned(),
        issued: Issued {
            certificate_pem: include_str!("sha1/certificate.pem").to_owned(),
            key_pem: include_str!("sha1/key.pem").to_owned(),
        },
    }
}
