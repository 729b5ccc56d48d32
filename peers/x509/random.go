package main

import (
	"crypto"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"time"
)

// random makes sets of certificates of a few names and keys that sign one another in all ways, most
// of them wrong in some respect. What Go says of them is the only expectation.
func random(n int) []one {
	var all []one
	keys := make([]crypto.Signer, 12)
	for idx := range keys {
		keys[idx] = ecKey()
	}
	domains := []string{"example.com", "a.example.com", ".example.com", "b.a.example.com", "example.org", ""}
	pick := func(from []string) string { return from[rand.IntN(len(from))] }
	chance := func(percent int) bool { return rand.IntN(100) < percent }
	usages := [][]x509.ExtKeyUsage{
		nil, nil, nil,
		{x509.ExtKeyUsageClientAuth}, {x509.ExtKeyUsageServerAuth}, {x509.ExtKeyUsageAny},
		{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, {x509.ExtKeyUsageCodeSigning},
	}
	odd := func(made *x509.Certificate) {
		if chance(15) {
			made.ExtKeyUsage = usages[rand.IntN(len(usages))]
		}
		if chance(4) {
			made.NotAfter = now.Add(-time.Hour)
		}
		if chance(4) {
			made.NotBefore = now.Add(time.Hour)
		}
		if chance(4) {
			unknown(chance(70))(made)
		}
		if chance(20) {
			made.DNSNames = []string{"x." + pick(domains[:2]), pick([]string{"*.example.com", "example.org", "example.com"})}
		}
		if chance(8) {
			made.IPAddresses = []net.IP{{10, byte(rand.IntN(3)), 0, 1}}
		}
		if chance(8) {
			made.EmailAddresses = []string{pick([]string{"a@example.com", "b@Example.com", "a@a.example.com"})}
		}
	}
	authority := func(name string) *x509.Certificate {
		made := ca(name, odd)
		switch {
		case chance(6):
			notCA(made)
		case chance(6):
			noBasicConstraints(made)
		case chance(20):
			pathLen(rand.IntN(3))(made)
		}
		if chance(10) {
			made.KeyUsage = []x509.KeyUsage{0, x509.KeyUsageDigitalSignature, x509.KeyUsageCRLSign}[rand.IntN(3)]
		}
		if chance(10) {
			made.PermittedDNSDomains = []string{pick(domains)}
		}
		if chance(6) {
			made.ExcludedDNSDomains = []string{pick(domains)}
		}
		if chance(5) {
			made.PermittedIPRanges = []*net.IPNet{{IP: net.IP{10, byte(rand.IntN(2)), 0, 0}, Mask: net.IPMask{255, 255, 0, 0}}}
		}
		if chance(5) {
			made.PermittedEmailAddresses = []string{pick([]string{"a@example.com", "example.com", ".example.com"})}
		}
		made.PermittedDNSDomainsCritical = chance(50)
		return made
	}
	names := []string{"a", "b", "c", "d"}
	for range n {
		var made []*entity
		for range 1 + rand.IntN(6) {
			template, key := authority(pick(names)), keys[rand.IntN(len(keys))]
			if len(made) == 0 || chance(20) {
				made = append(made, rootWith(template, key))
			} else {
				made = append(made, made[max(0, len(made)-1-rand.IntN(2))].issueFor(template, key))
			}
		}
		client := made[len(made)-1-rand.IntN(min(2, len(made)))].issueFor(leaf(odd), keys[rand.IntN(len(keys))])
		roots, presented := [][]byte{made[0].der}, [][]byte{client.der}
		for _, e := range made {
			if chance(10) {
				roots = append(roots, e.der)
			}
			if chance(85) {
				presented = append(presented, e.der)
			}
		}
		if chance(3) {
			roots = append(roots, client.der)
		}
		rest := presented[1:]
		rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		usage := "client"
		if chance(30) {
			usage = "server"
		}
		all = append(all, one{"random", usage, roots, presented, false})
	}
	return all
}
