package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneCase runs the benchmark as it is, on its shortest input. What it
// measures varies, what it counts does not.
func TestOneCase(t *testing.T) {
	var out bytes.Buffer
	file := document(t, `{"request":{"user":"alice"},"cases":[{"name":"user","expressions":["request.user == 'alice'"]}]}`)
	if err := run([]string{file}, false, &out); err != nil {
		t.Fatal(err)
	}
	var got measurement
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "user" || got.CompileNs <= 0 {
		t.Errorf("got %+v", got)
	}
	if got.ProgramNsMin <= 0 || got.ProgramNsMin > got.ProgramNsMedian || got.MatcherNsMin > got.MatcherNsMedian {
		t.Errorf("minima and medians do not fit: %+v", got)
	}
	if got.ProgramAllocs == 0 || got.ProgramAllocs >= got.MatcherAllocs {
		t.Errorf("the matcher allocates on top of the program: %+v", got)
	}
}

func TestBadCaseIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"cases":[{"name":"odd","expressions":["1"]}]}`: `case "odd": matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int`,
		`{"cases":[{"name":"none"}]}`:                    `case "none": there is no condition to measure`,
		`{"case":[]}`:                                    `reading the cases: json: unknown field "case"`,
	} {
		err := run([]string{document(t, text)}, false, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %s, got %v", text, want, err)
		}
	}
}

func document(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
