package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// The verdicts of this version of Go are those of the record.
func TestRecord(t *testing.T) {
	file, err := os.Open("../../crates/x509-verify/testdata/go.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if err := verify(line); (err == nil) != line.OK {
			t.Errorf("%s: want %v, got %v", line.Name, line.OK, err)
		}
		n++
	}
	if n < 48 {
		t.Errorf("only %d cases", n)
	}
}
