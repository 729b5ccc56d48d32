// Records which certificates Go's crypto/x509 trusts, for the tests of the crates x509-verify and
// authn: kube-apiserver verifies clients and servers with Certificate.Verify.
//
// Usage:
//
//	go run . ../../crates/x509-verify/testdata/go.jsonl
//	go run . -random 10000 FILE
//
// The second form records sets of certificates that were put together at random, for a longer
// comparison: PORTCULLIS_X509_RECORD=FILE cargo test -p x509-verify.
//
// Keys are made anew for each recording; the verdicts are the same every time. go test verifies
// the recorded file again.
package main

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"
)

// The moment at which everything is verified, so that the record never expires.
var now = time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC)

// Line is one case of the record.
type Line struct {
	Name string `json:"name"`
	// client or server
	Usage string `json:"usage"`
	Now   string `json:"now"`
	// Certificates in PEM form, one after the other.
	Roots     string `json:"roots"`
	Presented string `json:"presented"`
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`
}

func main() {
	nRandom := flag.Int("random", 0, "record so many random sets in place of the cases")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: x509 [-random N] FILE")
	}
	all := cases
	if *nRandom > 0 {
		all = func() []one { return random(*nRandom) }
	}
	file, err := os.Create(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(file)
	encoder := json.NewEncoder(out)
	for _, one := range all() {
		line := Line{
			Name:      one.name,
			Usage:     one.usage,
			Now:       now.Format(time.RFC3339),
			Roots:     toPEM(one.roots),
			Presented: toPEM(one.presented),
		}
		if err := verify(line); err != nil {
			line.Error = err.Error()
		}
		line.OK = line.Error == ""
		if *nRandom == 0 && line.OK != one.want {
			log.Fatalf("%s: want %v, got %q", one.name, one.want, line.Error)
		}
		if err := encoder.Encode(line); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// verify does what kube-apiserver does with the certificates of a client: the first is verified,
// the others are intermediates.
func verify(line Line) error {
	roots, err := fromPEM(line.Roots)
	if err != nil {
		return err
	}
	presented, err := fromPEM(line.Presented)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, line.Now)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		CurrentTime:   at,
	}
	switch line.Usage {
	case "client":
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case "server":
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	default:
		return fmt.Errorf("unknown usage %q", line.Usage)
	}
	for _, root := range roots {
		options.Roots.AddCert(root)
	}
	for _, other := range presented[1:] {
		options.Intermediates.AddCert(other)
	}
	_, err = presented[0].Verify(options)
	return err
}

func toPEM(certificates [][]byte) string {
	var text strings.Builder
	for _, der := range certificates {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			log.Fatal(err)
		}
	}
	return text.String()
}

func fromPEM(text string) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certificates, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
}
