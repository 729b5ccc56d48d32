// Command oracle answers what kube-apiserver would say.
//
// It reads one JSON object per line from standard input and writes one JSON
// object per line to standard output, in the same order and without delay, so
// that it can be kept running beside a test or a fuzzer. See the README for
// the operations. A line that cannot be served is answered too: with
// {"badRequest": "..."} if it is not understood, with {"panic": "..."} if
// upstream code panicked on it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// An operation turns the line of a request into its answer. An error means
// that the line was not understood.
type operation func(line []byte) (any, error)

func main() {
	// What upstream code logs about odd requests is in the answers already.
	klog.SetLogger(logr.Discard())
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	cel, err := newCELOracle()
	if err != nil {
		return err
	}
	operations := map[string]operation{
		"cel":     cel.conditions,
		"celraw":  cel.expression,
		"config":  cel.configuration,
		"request": requestAttributes,
	}

	lines := bufio.NewReader(in)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := write(out, answer(operations, line)); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// answer serves one line and never panics.
func answer(operations map[string]operation, line []byte) (result any) {
	defer func() {
		if reason := recover(); reason != nil {
			result = map[string]string{"panic": fmt.Sprint(reason)}
		}
	}()
	var request struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return badRequest(err)
	}
	operation, known := operations[request.Op]
	if !known {
		return badRequest(fmt.Errorf("unknown op %q", request.Op))
	}
	result, err := operation(line)
	if err != nil {
		return badRequest(err)
	}
	return result
}

func badRequest(err error) any {
	return map[string]string{"badRequest": err.Error()}
}

// write sends one answer as one line. HTML characters stay as they are, since
// expressions are full of them.
func write(out io.Writer, result any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}
