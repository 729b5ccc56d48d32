package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"log"
	"math/big"
	"time"
)

var (
	notBefore = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2046, 1, 1, 0, 0, 0, 0, time.UTC)
	serial    int64
)

// entity is somebody with a certificate and its key.
type entity struct {
	der    []byte
	parsed *x509.Certificate
	key    crypto.Signer
}

// change is how a template differs from the usual one.
type change func(*x509.Certificate)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func ecKey() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func template(name string) *x509.Certificate {
	serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    notBefore,
		NotAfter:     notAfter,
	}
}

// ca is the template of an authority.
func ca(name string, changes ...change) *x509.Certificate {
	made := template(name)
	made.IsCA = true
	made.BasicConstraintsValid = true
	made.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	return apply(made, changes)
}

// leaf is the template of a client.
func leaf(changes ...change) *x509.Certificate {
	made := template("client")
	made.KeyUsage = x509.KeyUsageDigitalSignature
	made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	made.BasicConstraintsValid = true
	return apply(made, changes)
}

func apply(made *x509.Certificate, changes []change) *x509.Certificate {
	for _, change := range changes {
		change(made)
	}
	return made
}

// root signs itself.
func root(made *x509.Certificate) *entity { return rootWith(made, ecKey()) }

func rootWith(made *x509.Certificate, key crypto.Signer) *entity {
	return sign(made, made, key, key)
}

// issue has somebody sign for a new key.
func (e *entity) issue(made *x509.Certificate) *entity { return e.issueFor(made, ecKey()) }

func (e *entity) issueFor(made *x509.Certificate, key crypto.Signer) *entity {
	return sign(made, e.parsed, key, e.key)
}

func sign(made, parent *x509.Certificate, key, parentKey crypto.Signer) *entity {
	der := must(x509.CreateCertificate(rand.Reader, made, parent, key.Public(), parentKey))
	return &entity{der: der, parsed: must(x509.ParseCertificate(der)), key: key}
}

// oldVersion signs a certificate of version 1, which has no extensions.
func oldVersion(name string, issuer *entity, key crypto.Signer) *entity {
	type validity struct{ NotBefore, NotAfter time.Time }
	type tbs struct {
		SerialNumber       *big.Int
		SignatureAlgorithm pkix.AlgorithmIdentifier
		Issuer             asn1.RawValue
		Validity           validity
		Subject            asn1.RawValue
		PublicKey          asn1.RawValue
	}
	type certificate struct {
		TBS                asn1.RawValue
		SignatureAlgorithm pkix.AlgorithmIdentifier
		SignatureValue     asn1.BitString
	}
	serial++
	subject := must(asn1.Marshal(pkix.Name{CommonName: name}.ToRDNSequence()))
	issuerName, signer := subject, key
	if issuer != nil {
		issuerName, signer = issuer.parsed.RawSubject, issuer.key
	}
	// ecdsa-with-SHA256
	algorithm := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}}
	signed := must(asn1.Marshal(tbs{
		SerialNumber:       big.NewInt(serial),
		SignatureAlgorithm: algorithm,
		Issuer:             asn1.RawValue{FullBytes: issuerName},
		Validity:           validity{notBefore, notAfter},
		Subject:            asn1.RawValue{FullBytes: subject},
		PublicKey:          asn1.RawValue{FullBytes: must(x509.MarshalPKIXPublicKey(key.Public()))},
	}))
	digest := crypto.SHA256.New()
	digest.Write(signed)
	signature := must(signer.Sign(rand.Reader, digest.Sum(nil), crypto.SHA256))
	der := must(asn1.Marshal(certificate{
		TBS:                asn1.RawValue{FullBytes: signed},
		SignatureAlgorithm: algorithm,
		SignatureValue:     asn1.BitString{Bytes: signature, BitLength: len(signature) * 8},
	}))
	return &entity{der: der, parsed: must(x509.ParseCertificate(der)), key: key}
}

func rsaKey() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) }

func ed25519Key() crypto.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func notCA(made *x509.Certificate) { made.IsCA = false }

func noBasicConstraints(made *x509.Certificate) {
	made.IsCA = false
	made.BasicConstraintsValid = false
}

func pathLen(max int) change {
	return func(made *x509.Certificate) {
		made.MaxPathLen = max
		made.MaxPathLenZero = max == 0
	}
}

func keyUsage(usage x509.KeyUsage) change {
	return func(made *x509.Certificate) { made.KeyUsage = usage }
}

func extKeyUsage(usages ...x509.ExtKeyUsage) change {
	return func(made *x509.Certificate) { made.ExtKeyUsage = usages }
}

func otherUsage(made *x509.Certificate) {
	made.ExtKeyUsage = nil
	made.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3, 4}}
}

func expired(made *x509.Certificate) { made.NotAfter = now.Add(-time.Hour) }

func early(made *x509.Certificate) { made.NotBefore = now.Add(time.Hour) }

func extension(oid asn1.ObjectIdentifier, critical bool, value []byte) change {
	return func(made *x509.Certificate) {
		made.ExtraExtensions = append(made.ExtraExtensions,
			pkix.Extension{Id: oid, Critical: critical, Value: value})
	}
}

func unknown(critical bool) change {
	return extension(asn1.ObjectIdentifier{1, 2, 3, 4, 5}, critical, []byte{5, 0})
}

func algorithm(algorithm x509.SignatureAlgorithm) change {
	return func(made *x509.Certificate) { made.SignatureAlgorithm = algorithm }
}

func dnsNames(names ...string) change {
	return func(made *x509.Certificate) { made.DNSNames = names }
}

func keyID(id ...byte) change {
	return func(made *x509.Certificate) { made.SubjectKeyId = id }
}
