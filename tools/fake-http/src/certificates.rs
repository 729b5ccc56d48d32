//! Certificates for tests, good and bad. Their times are fixed, so that no clock matters.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

/// An authority of certificates.
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

/// What a certificate says.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The common name of its subject.
    pub common_name: String,
    /// The organization of its subject, which Kubernetes reads as a group.
    pub organization: Option<String>,
    /// The names and addresses that it is for. With none it has no such extension.
    pub names: Vec<String>,
    /// When it is valid.
    pub validity: Validity,
    /// What it is for.
    pub purpose: Purpose,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// All through the century.
    Now,
    /// It has expired in 2021.
    Past,
    /// It begins in 2110.
    Future,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The certificate authenticates a server.
    Server,
    /// The certificate authenticates a client.
    Client,
}

impl Leaf {
    /// A certificate of a server with these names and addresses.
    pub fn server(names: &[&str]) -> Self {
        Self {
            common_name: names.first().copied().unwrap_or("nameless").to_owned(),
            organization: None,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            validity: Validity::Now,
            purpose: Purpose::Server,
        }
    }

    /// A certificate of a server at the loopback addresses.
    pub fn loopback() -> Self {
        Self::server(&["localhost", "127.0.0.1", "::1"])
    }

    /// A certificate of a client.
    pub fn client(common_name: &str) -> Self {
        let purpose = Purpose::Client;
        Self { common_name: common_name.to_owned(), purpose, ..Self::server(&[]) }
    }

    /// The same with an organization.
    pub fn organization(self, organization: &str) -> Self {
        Self { organization: Some(organization.to_owned()), ..self }
    }

    /// The same with the first name only as the common name.
    pub fn without_names(self) -> Self {
        Self { names: Vec::new(), ..self }
    }

    /// The same, but over.
    pub fn expired(self) -> Self {
        Self { validity: Validity::Past, ..self }
    }

    /// The same, but not yet.
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
    /// A new authority.
    ///
    /// # Errors
    /// If the system has no random numbers.
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

    /// Somebody who signs certificates with the key of one that is no authority.
    ///
    /// # Errors
    /// If a name is neither an address nor ASCII.
    pub fn pretended(leaf: &Leaf) -> io::Result<Self> {
        let make = || CertifiedIssuer::self_signed(leaf.params()?, KeyPair::generate()?);
        Ok(Self { issuer: make().map_err(io::Error::other)? })
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A new certificate with a new key.
    ///
    /// # Errors
    /// If a name is neither an address nor ASCII.
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
    /// Writes `NAME.crt` and `NAME.key` into a directory and tells their paths.
    ///
    /// # Errors
    /// If they can not be written.
    pub fn write(&self, directory: &Path, name: &str) -> io::Result<(PathBuf, PathBuf)> {
        let certificate = directory.join(format!("{name}.crt"));
        let key = directory.join(format!("{name}.key"));
        std::fs::write(&certificate, &self.certificate_pem)?;
        std::fs::write(&key, &self.key_pem)?;
        Ok((certificate, key))
    }
}

/// A certificate that nobody vouches for but itself. It claims to be an authority, as those that
/// `openssl req -x509` makes do.
///
/// # Errors
/// As [`Authority::issue`].
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

/// A certificate whose signature uses SHA-1, and the authority that made it.
#[derive(Debug, Clone)]
pub struct Sha1Signed {
    /// The certificate authority in PEM encoding.
    pub authority_pem: String,
    /// The certificate: for `localhost`, `hook.example.test` and the loopback addresses.
    pub issued: Issued,
}

/// A certificate whose signature uses SHA-1. No library of ours makes such a signature any more, so
/// it is a file; its key is known to everybody.
pub fn sha1_signed() -> Sha1Signed {
    Sha1Signed {
        authority_pem: include_str!("sha1/authority.pem").to_owned(),
        issued: Issued {
            certificate_pem: include_str!("sha1/certificate.pem").to_owned(),
            key_pem: include_str!("sha1/key.pem").to_owned(),
        },
    }
}
