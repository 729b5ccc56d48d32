// Command celbench measures match conditions in kube-apiserver's own code: the
// peer side of the CEL benchmark.
//
// It reads one JSON document from the file named on the command line, or from
// standard input:
//
//	{"request": <SubjectAccessReviewSpec v1>,
//	 "cases": [{"name": "a", "expressions": ["..."]}]}
//
// and prints one JSON line per case. It runs on one processor, so that garbage
// collection is paid for within the times instead of beside them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// input is the document that celbench reads.
type input struct {
	Request authorizationv1.SubjectAccessReviewSpec `json:"request"`
	Cases   []benchCase                             `json:"cases"`
}

// benchCase is a named list of match conditions of one webhook.
type benchCase struct {
	Name        string   `json:"name"`
	Expressions []string `json:"expressions"`
}

func main() {
	metrics := flag.Bool("metrics", false, "record the matcher's Prometheus metrics, as kube-apiserver does")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: celbench [-metrics] [FILE]")
		flag.PrintDefaults()
	}
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if err := run(flag.Args(), *metrics, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "celbench:", err)
		os.Exit(1)
	}
}

func run(args []string, metrics bool, out io.Writer) error {
	document, err := read(args)
	if err != nil {
		return err
	}
	compiler := authorizationcel.NewDefaultCompiler()
	encoder := json.NewEncoder(out)
	for _, c := range document.Cases {
		measured, err := measureCase(compiler, c, document.Request, metrics)
		if err != nil {
			return fmt.Errorf("case %q: %w", c.Name, err)
		}
		if err := encoder.Encode(measured); err != nil {
			return err
		}
	}
	return nil
}

func read(args []string) (*input, error) {
	var source io.Reader = os.Stdin
	switch len(args) {
	case 0:
	case 1:
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	default:
		return nil, fmt.Errorf("expected one file, got %d", len(args))
	}
	decoder := json.NewDecoder(source)
	decoder.DisallowUnknownFields()
	document := &input{}
	if err := decoder.Decode(document); err != nil {
		return nil, fmt.Errorf("reading the cases: %w", err)
	}
	return document, nil
}
