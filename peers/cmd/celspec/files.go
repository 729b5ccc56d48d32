package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	testpb "cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"

	// The tests mention these messages; without them the files do not parse.
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
)

// testMessages matches what the CEL project's test messages bring along: their
// package, the messages and the enumerations.
var testMessages = regexp.MustCompile(`cel\.expr\.conformance\.proto[23]|TestAllTypes|GlobalEnum`)

// needsTestMessages tells whether a test refers to messages of the test
// protocol buffers anywhere: in its expression, variables, container or result.
func needsTestMessages(test *testpb.SimpleTest) bool {
	return testMessages.MatchString(prototext.Format(test))
}

// readFiles reads all test files of a directory, in the order of their names.
func readFiles(directory string) ([]*testpb.SimpleTestFile, error) {
	if directory == "" {
		module, err := moduleDirectory("cel.dev/expr")
		if err != nil {
			return nil, err
		}
		directory = filepath.Join(module, "tests", "simple", "testdata")
	}
	paths, err := filepath.Glob(filepath.Join(directory, "*.textproto"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .textproto file in %s", directory)
	}
	var files []*testpb.SimpleTestFile
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := &testpb.SimpleTestFile{}
		if err := prototext.Unmarshal(text, file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, file)
	}
	return files, nil
}

// moduleDirectory asks the Go tool where it keeps a module of go.mod.
func moduleDirectory(module string) (string, error) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return "", fmt.Errorf("go list: %s", strings.TrimSpace(string(failed.Stderr)))
		}
		return "", err
	}
	return strings.TrimSpace(string(output)), nil
}
