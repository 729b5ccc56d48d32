package main

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"net"
	"net/url"
	"slices"
)

// one is a case, with the verdict that is expected of Go.
type one struct {
	name      string
	usage     string
	roots     [][]byte
	presented [][]byte
	want      bool
}

func der(entities ...*entity) [][]byte {
	var all [][]byte
	for _, e := range entities {
		all = append(all, e.der)
	}
	return all
}

func cases() []one {
	var all []one
	add := func(name string, want bool, roots, presented [][]byte) {
		all = append(all, one{name, "client", roots, presented, want})
	}
	server := func(name string, want bool, roots, presented [][]byte) {
		all = append(all, one{name, "server", roots, presented, want})
	}
	serverAuth, clientAuth := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	// A root with these changes, an intermediate with those, and a leaf.
	chain := func(top, middle, bottom []change) (r, m, l *entity) {
		r = root(ca("root", top...))
		m = r.issue(ca("middle", middle...))
		return r, m, m.issue(leaf(bottom...))
	}
	with := func(changes ...change) []change { return changes }
	// A leaf right below a root.
	direct := func(top, bottom []change) (r, l *entity) {
		r = root(ca("root", top...))
		return r, r.issue(leaf(bottom...))
	}

	// Who is an authority.
	r, l := direct(nil, nil)
	add("a client of an authority", true, der(r), der(l))
	add("no authority is trusted but another one", false, der(root(ca("other"))), der(l))
	add("another authority of the same name", false, der(root(ca("root"))), der(l))
	add("two authorities of the same name", true, der(root(ca("root")), r), der(l))
	r, l = direct(with(notCA), nil)
	add("a trusted CA:FALSE certificate signs a client", false, der(r), der(l))
	add("a trusted CA:FALSE certificate as itself, but for signing only", true, der(r), der(r))
	r, l = direct(with(noBasicConstraints), nil)
	add("a trusted certificate without basic constraints signs a client", false, der(r), der(l))
	stranger := root(leaf())
	add("a trusted self-signed client as itself", true, der(stranger), der(stranger))
	add("a self-signed client that is not trusted", false, der(r), der(stranger))
	evil := stranger.issue(leaf())
	add("a trusted client certificate signs another", false, der(stranger), der(evil))
	add("a trusted client certificate signs another and is presented", false, der(stranger), der(evil, stranger))
	r, l = direct(nil, nil)
	add("a trusted client of an authority that is not", true, der(l), der(l))
	add("an authority as client of itself", true, der(r), der(r))
	evil = l.issue(leaf())
	add("a client certificate signs another below a trusted authority", false, der(r), der(evil, l))
	old := oldVersion("root", nil, ecKey())
	add("a trusted certificate of version 1 signs a client", true, der(old), der(old.issue(leaf())))
	r, _ = direct(nil, nil)
	oldMiddle := oldVersion("middle", r, ecKey())
	add("an intermediate of version 1", false, der(r), der(oldMiddle.issue(leaf()), oldMiddle))
	add("a client of version 1", true, der(r), der(oldVersion("client", r, ecKey())))

	// Intermediates.
	r, m, l := chain(nil, nil, nil)
	add("an intermediate", true, der(r), der(l, m))
	add("an intermediate that is not presented", false, der(r), der(l))
	add("a trusted intermediate without its root", true, der(m), der(l))
	add("the root is presented too", true, der(r), der(l, m, r))
	add("an intermediate alone is a client as well", true, der(r), der(m))
	r, m, l = chain(nil, with(notCA), nil)
	add("a CA:FALSE intermediate", false, der(r), der(l, m))
	r, m, l = chain(nil, with(noBasicConstraints), nil)
	add("an intermediate without basic constraints", false, der(r), der(l, m))

	// Path lengths.
	r, m, l = chain(with(pathLen(0)), nil, nil)
	add("path length 0 and an intermediate", false, der(r), der(l, m))
	add("path length 0 and no intermediate", true, der(r), der(r.issue(leaf())))
	r, m, l = chain(with(pathLen(1)), nil, nil)
	add("path length 1 and an intermediate", true, der(r), der(l, m))
	lower := m.issue(ca("lower"))
	add("path length 1 and two intermediates", false, der(r), der(lower.issue(leaf()), lower, m))
	selfIssued := r.issue(ca("root"))
	middle := selfIssued.issue(ca("middle"))
	add("path length 1 and a self-issued certificate among two", false, der(r),
		der(middle.issue(leaf()), middle, selfIssued))
	r, m, _ = chain(nil, with(pathLen(0)), nil)
	lower = m.issue(ca("lower"))
	add("path length 0 of an intermediate is exceeded", false, der(r), der(lower.issue(leaf()), lower, m))
	add("a trusted intermediate with path length 0 is exceeded", false, der(m), der(lower.issue(leaf()), lower))

	// Key usage.
	r, l = direct(with(keyUsage(x509.KeyUsageCRLSign)), nil)
	add("an authority without keyCertSign", false, der(r), der(l))
	r, l = direct(with(keyUsage(0)), nil)
	add("an authority without key usage", true, der(r), der(l))
	r, m, l = chain(nil, with(keyUsage(x509.KeyUsageDigitalSignature)), nil)
	add("an intermediate without keyCertSign", false, der(r), der(l, m))
	r, l = direct(nil, with(keyUsage(x509.KeyUsageKeyEncipherment)))
	add("a client without digitalSignature", true, der(r), der(l))

	// Extended key usage.
	r, l = direct(nil, with(extKeyUsage()))
	add("a client without extended key usage", true, der(r), der(l))
	r, l = direct(nil, with(extKeyUsage(serverAuth)))
	add("a server as client", false, der(r), der(l))
	add("a trusted server as client", false, der(l), der(l))
	server("a server", true, der(r), der(l))
	server("a trusted server as itself", true, der(l), der(l))
	server("a trusted server signs another", false, der(l), der(l.issue(leaf(extKeyUsage(serverAuth)))))
	r, l = direct(nil, with(extKeyUsage(serverAuth, clientAuth)))
	add("a server that is also a client", true, der(r), der(l))
	r, l = direct(nil, nil)
	server("a client as server", false, der(r), der(l))
	r, l = direct(nil, with(extKeyUsage(x509.ExtKeyUsageAny)))
	add("a client for any usage", true, der(r), der(l))
	r, l = direct(nil, with(otherUsage))
	add("a client for an unknown usage", false, der(r), der(l))
	r, l = direct(with(extKeyUsage(serverAuth)), nil)
	add("an authority for servers only", false, der(r), der(l))
	r, l = direct(with(extKeyUsage(clientAuth)), nil)
	add("an authority for clients", true, der(r), der(l))
	r, l = direct(with(extKeyUsage(x509.ExtKeyUsageAny)), nil)
	add("an authority for any usage", true, der(r), der(l))
	r, m, l = chain(nil, with(extKeyUsage(serverAuth)), nil)
	add("an intermediate for servers only", false, der(r), der(l, m))
	r, m, l = chain(nil, with(otherUsage), with(extKeyUsage()))
	add("an intermediate for an unknown usage", false, der(r), der(l, m))
	r, l = direct(nil, with(extKeyUsage(), extension(asn1.ObjectIdentifier{2, 5, 29, 37}, false, []byte{0x30, 0})))
	add("a client with an empty extended key usage", true, der(r), der(l))

	// Time.
	for _, change := range []struct {
		name string
		how  change
	}{{"expired", expired}, {"not yet valid", early}} {
		r, m, l = chain(nil, nil, with(change.how))
		add("a client that is "+change.name, false, der(r), der(l, m))
		add("a trusted client that is "+change.name, false, der(l), der(l))
		r, m, l = chain(nil, with(change.how), nil)
		add("an intermediate that is "+change.name, false, der(r), der(l, m))
		r, m, l = chain(with(change.how), nil, nil)
		add("a root that is "+change.name, false, der(r), der(l, m))
	}

	// Critical extensions.
	r, l = direct(nil, with(unknown(true)))
	add("a client with an unknown critical extension", false, der(r), der(l))
	add("a trusted client with an unknown critical extension", false, der(l), der(l))
	r, l = direct(nil, with(unknown(false)))
	add("a client with an unknown extension", true, der(r), der(l))
	r, m, l = chain(nil, with(unknown(true)), nil)
	add("an intermediate with an unknown critical extension", false, der(r), der(l, m))
	r, m, l = chain(with(unknown(true)), nil, nil)
	add("a root with an unknown critical extension", false, der(r), der(l, m))

	// Name constraints.
	permits := func(names ...string) change {
		return func(made *x509.Certificate) {
			made.PermittedDNSDomainsCritical = true
			made.PermittedDNSDomains = names
		}
	}
	excludes := func(names ...string) change {
		return func(made *x509.Certificate) {
			made.PermittedDNSDomainsCritical = true
			made.ExcludedDNSDomains = names
		}
	}
	for _, constraint := range []struct {
		name   string
		top    change
		bottom change
		want   bool
	}{
		{"a name that is permitted", permits("example.com"), dnsNames("a.Example.com"), true},
		{"a name that is not permitted", permits("example.com"), dnsNames("a.example.com", "testexample.com"), false},
		{"no name under a constraint", permits("example.com"), dnsNames(), true},
		{"a subdomain where only those are permitted", permits(".example.com"), dnsNames("a.example.com"), true},
		{"the domain where only subdomains are permitted", permits(".example.com"), dnsNames("example.com"), false},
		{"a name that is excluded", excludes("example.com"), dnsNames("a.example.com"), false},
		{"a name that is not excluded", excludes("example.com"), dnsNames("a.example.org"), true},
		{"a wildcard that covers an excluded name", excludes("a.example.com"), dnsNames("*.example.com"), false},
		{"an address that is not permitted", func(made *x509.Certificate) {
			made.PermittedIPRanges = []*net.IPNet{{IP: net.IP{10, 0, 0, 0}, Mask: net.IPMask{255, 0, 0, 0}}}
		}, func(made *x509.Certificate) { made.IPAddresses = []net.IP{{11, 0, 0, 1}} }, false},
		{"an address that is permitted", func(made *x509.Certificate) {
			made.PermittedIPRanges = []*net.IPNet{{IP: net.IP{10, 0, 0, 0}, Mask: net.IPMask{255, 0, 0, 0}}}
		}, func(made *x509.Certificate) { made.IPAddresses = []net.IP{{10, 0, 0, 1}} }, true},
		{"a mailbox that is not permitted", func(made *x509.Certificate) {
			made.PermittedEmailAddresses = []string{"a@example.com", "example.org"}
		}, func(made *x509.Certificate) { made.EmailAddresses = []string{"b@example.com"} }, false},
		{"a mailbox that is permitted", func(made *x509.Certificate) {
			made.PermittedEmailAddresses = []string{"a@example.com", "example.org"}
		}, func(made *x509.Certificate) { made.EmailAddresses = []string{"a@Example.com", "b@example.org"} }, true},
		{"a URI that is excluded", func(made *x509.Certificate) {
			made.ExcludedURIDomains = []string{"example.com"}
		}, func(made *x509.Certificate) {
			made.URIs = []*url.URL{must(url.Parse("spiffe://example.com/ns/a"))}
		}, false},
		{"a URI without a host under a constraint", permits("example.com"), func(made *x509.Certificate) {
			made.URIs = []*url.URL{must(url.Parse("urn:a:b"))}
		}, false},
	} {
		r, l = direct(with(constraint.top), with(constraint.bottom))
		add(constraint.name, constraint.want, der(r), der(l))
	}
	r, m, l = chain(nil, with(permits("example.com")), with(dnsNames("example.org")))
	add("a name that an intermediate does not permit", false, der(r), der(l, m))
	r, m, l = chain(with(permits("example.com")), with(dnsNames("example.org")), with(dnsNames("example.com")))
	add("a name of an intermediate that the root does not permit", false, der(r), der(l, m))
	directory := must(asn1.Marshal(struct {
		Permitted []asn1.RawValue `asn1:"tag:0"`
	}{[]asn1.RawValue{{FullBytes: []byte{0x30, 0x04, 0xa4, 0x02, 0x30, 0x00}}}}))
	for _, critical := range []bool{true, false} {
		r, l = direct(with(extension(asn1.ObjectIdentifier{2, 5, 29, 30}, critical, directory)), nil)
		add(fmt.Sprintf("a constraint on directory names, critical: %v", critical), !critical, der(r), der(l))
	}

	// Keys and signatures.
	for _, kind := range []struct {
		name string
		key  func() (e *entity)
		want bool
	}{
		{"RSA", func() *entity { return rootWith(ca("root"), rsaKey()) }, true},
		{"Ed25519", func() *entity { return rootWith(ca("root"), ed25519Key()) }, true},
	} {
		r = kind.key()
		add("an authority with a key of "+kind.name, kind.want, der(r), der(r.issueFor(leaf(), rsaKey())))
	}
	r = rootWith(ca("root"), rsaKey())
	add("a signature by RSA-PSS", true, der(r), der(r.issue(leaf(algorithm(x509.SHA256WithRSAPSS)))))
	add("a signature with SHA-512", true, der(r), der(r.issue(leaf(algorithm(x509.SHA512WithRSA)))))
	add("a signature with SHA-1", false, der(r), der(r.issue(leaf(algorithm(x509.SHA1WithRSA)))))
	r = rootWith(ca("root", algorithm(x509.SHA1WithRSA)), rsaKey())
	add("a root that signed itself with SHA-1", true, der(r), der(r.issue(leaf())))
	r = root(ca("root"))
	add("a signature by ECDSA with SHA-1", false, der(r), der(r.issue(leaf(algorithm(x509.ECDSAWithSHA1)))))
	l = r.issue(leaf())
	broken := slices.Clone(l.der)
	broken[len(broken)-1] ^= 1
	add("a signature that was changed", false, der(r), [][]byte{broken})

	// Odd sets.
	r, m, l = chain(nil, nil, nil)
	lower = m.issue(ca("lower"))
	bottom := lower.issue(leaf())
	other := root(ca("other"))
	otherLeaf := other.issue(leaf())
	add("intermediates out of order", true, der(r), der(bottom, m, lower))
	add("certificates of others are presented too", true, der(r), der(bottom, other, otherLeaf, m, l, lower, other))
	add("certificates twice", true, der(r, r), der(bottom, m, m, lower, lower))
	add("an authority that is presented and not trusted", false, der(r), der(otherLeaf, other))
	crossed := other.issueFor(ca("root"), r.key)
	add("a root that another root cross-signed", true, der(other), der(bottom, lower, m, crossed))
	add("both roots are trusted", true, der(other, r), der(bottom, lower, m, crossed))
	expiredCross := other.issueFor(ca("root", expired), r.key)
	add("an expired cross-signature beside the root", true, der(other, r), der(bottom, lower, m, expiredCross))
	add("an expired cross-signature without the root", false, der(other), der(bottom, lower, m, expiredCross))
	twin := r.issueFor(ca("middle", extKeyUsage(serverAuth)), m.key)
	add("two certificates of one intermediate, the first not for clients", true, der(r), der(l, twin, m))
	a, b := root(ca("a")), root(ca("b"))
	aByB, bByA := b.issueFor(ca("a"), a.key), a.issueFor(ca("b"), b.key)
	add("two authorities that signed each other", false, der(r), der(a.issue(leaf()), aByB, bByA))
	add("two authorities that signed each other, and one is trusted", true, der(b), der(a.issue(leaf()), bByA, aByB))
	for _, n := range []int{6, 14} {
		top := root(ca("same", keyID(1)))
		links := []*entity{top}
		for range n {
			links = append(links, links[len(links)-1].issue(ca("same", keyID(1))))
		}
		presented := append(der(links[n].issue(leaf())), der(links[1:]...)...)
		add(fmt.Sprintf("%d intermediates of one name", n), n == 6, der(top), presented)
	}
	return all
}
