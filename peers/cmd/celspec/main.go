// Command celspec turns the conformance tests of the CEL project into lines
// that the Rust crate `cel` can read.
//
// The tests are text protocol buffers inside the published module
// cel.dev/expr, at the version that go.mod pins. For each test one JSON object
// is written to standard output: the expression, its variables, what the CEL
// project expects, and what Kubernetes' own CEL environment answers. The last
// tells a difference that Kubernetes has with the CEL project from a mistake
// of ours.
//
//	celspec > ../crates/cel/testdata/cel-spec.jsonl
//
// Tests about the project's test messages need protocol buffer descriptors
// that neither Kubernetes nor we have. They are left out, and counted.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	testpb "cel.dev/expr/conformance/test"
)

func main() {
	directory := flag.String("testdata", "", "directory of the .textproto files, instead of the one in the module cel.dev/expr")
	flag.Parse()
	if err := run(*directory, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "celspec:", err)
		os.Exit(1)
	}
}

// omission counts the tests of a file that are not among the lines.
type omission struct {
	File    string `json:"file"`
	Omitted int    `json:"omitted"`
}

func run(directory string, out io.Writer) error {
	files, err := readFiles(directory)
	if err != nil {
		return err
	}
	peer, err := newKubernetes()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for _, file := range files {
		if err := writeFile(encoder, peer, file); err != nil {
			return fmt.Errorf("%s: %w", file.GetName(), err)
		}
	}
	return buffered.Flush()
}

func writeFile(encoder *json.Encoder, peer *kubernetes, file *testpb.SimpleTestFile) error {
	omitted := 0
	for _, section := range file.GetSection() {
		for _, test := range section.GetTest() {
			if needsTestMessages(test) {
				omitted++
				continue
			}
			line, err := peer.line(test)
			if err != nil {
				return fmt.Errorf("%s/%s: %w", section.GetName(), test.GetName(), err)
			}
			line.File, line.Section, line.Name = file.GetName(), section.GetName(), test.GetName()
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
	}
	if omitted == 0 {
		return nil
	}
	return encoder.Encode(omission{File: file.GetName(), Omitted: omitted})
}
