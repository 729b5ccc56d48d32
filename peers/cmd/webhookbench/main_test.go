package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// service allows what gets and counts how often it is asked.
func service(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	calls := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		allowed := strings.Contains(string(body), `"verb":"get"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":%t}}`, allowed)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// measure runs a contest of four questions, two of which the service allows.
func measure(t *testing.T, kind, url, unexpected string) answer {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := write("hook.yaml", fmt.Sprintf(`
clusters: [{name: a, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`, url))
	var lines strings.Builder
	for i := range 4 {
		verb, want := "get", "allow"
		if i%2 == 1 {
			verb, want = "list", "no-opinion"
		}
		if unexpected != "" {
			want = unexpected
		}
		fmt.Fprintf(&lines, `{"user":"ana","verb":%q,"resource":"pods","name":"p%d","want":%q}`+"\n", verb, i, want)
	}
	document, err := json.Marshal(plan{
		Kind:       kind,
		Kubeconfig: kubeconfig,
		Condition:  "request.user == 'ana'",
		Questions:  write("questions.jsonl", lines.String()),
		WarmUp:     1,
		Askers:     2,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(write("plan.json", string(document)), &out); err != nil {
		t.Fatal(err)
	}
	var result answer
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestContests(t *testing.T) {
	for _, test := range []struct {
		kind             string
		decisions, calls int64
	}{
		{"cached", 4, 4},
		{"calls", 3, 4},
		{"storm", 2, 2},
	} {
		t.Run(test.kind, func(t *testing.T) {
			url, calls := service(t)
			result := measure(t, test.kind, url, "")
			if int64(result.Decisions) != test.decisions || result.Disagreements != 0 {
				t.Errorf("got %+v", result)
			}
			// In a storm of two the second may come late enough to find an answer.
			if got := calls.Load(); got != test.calls && !(test.kind == "storm" && got == 1) {
				t.Errorf("got %d calls, want %d", got, test.calls)
			}
			if result.P50Ns <= 0 || result.P99Ns < result.P50Ns || result.TotalNs <= 0 {
				t.Errorf("got %+v", result)
			}
		})
	}
}

func TestDeadService(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	result := measure(t, "dead", server.URL, "no-opinion")
	if result.Decisions != 3 || result.Disagreements != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestWrongAnswersAreCounted(t *testing.T) {
	url, _ := service(t)
	if result := measure(t, "calls", url, "deny"); result.Disagreements != 4 {
		t.Errorf("got %+v", result)
	}
}

func TestUnknownContest(t *testing.T) {
	if _, err := contest(plan{Kind: "x"}, nil, make([]asked, 1)); err == nil {
		t.Error("there is such a contest")
	}
}
