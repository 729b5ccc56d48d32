// Command celauthorizer records what Kubernetes answers to expressions that ask
// the authorizer, so that the Rust crate `cel` can compare.
//
// It reads lines with an expression each, and perhaps an answer that it does
// not look at, and writes them with the answer of the environment in which
// kube-apiserver evaluates the match conditions of admission webhooks:
//
//	celauthorizer ../crates/cel/testdata/authorizer.jsonl > new.jsonl
//
// The request is made up, see request.go. So is the authorizer: the verb says
// how it decides.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: celauthorizer FILE")
		os.Exit(2)
	}
	lines, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = run(lines, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "celauthorizer:", err)
		os.Exit(1)
	}
}

// line is an expression and what Kubernetes makes of it.
type line struct {
	Expr string `json:"expr"`
	answer
	// New is the error that the expression meets where it is not stored yet,
	// unless it is the same as where it is.
	New string `json:"new,omitempty"`
}

func run(lines []byte, out io.Writer) error {
	stored, fresh := newPeers()
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for number, text := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
		var read struct {
			Expr string `json:"expr"`
		}
		if err := json.Unmarshal(text, &read); err != nil {
			return fmt.Errorf("line %d: %w", number+1, err)
		}
		found := line{Expr: read.Expr}
		var err error
		if found.answer, err = stored.answer(read.Expr); err != nil {
			return fmt.Errorf("line %d: %s: %w", number+1, read.Expr, err)
		}
		if refusal := fresh.compile(read.Expr); refusal != nil && refusal.Detail != found.Error {
			found.New = refusal.Detail
		}
		if err := encoder.Encode(found); err != nil {
			return err
		}
	}
	return buffered.Flush()
}
