// Command webhookbench asks questions through kube-apiserver's own webhook
// authorizer: the peer side of `cargo xtask bench webhook`, which writes the
// files that it reads and runs the service that it calls.
//
// It takes the path of a plan:
//
//	{"kind": "calls", "kubeconfig": "hook.yaml", "condition": "request.user != 'x'",
//	 "questions": "questions.jsonl", "warmUp": 100, "askers": 1, "processors": 0}
//
// and prints one JSON line. The kinds:
//
//   - cached: all questions are asked once, and then again and timed, so that
//     each answer is remembered.
//   - calls: each question is asked once and timed, by so many askers at a time.
//   - storm: the first question is asked by so many askers at the same time.
//   - dead: as calls, of a service that does not exist.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// plan is the document that the program reads.
type plan struct {
	Kind       string `json:"kind"`
	Kubeconfig string `json:"kubeconfig"`
	Condition  string `json:"condition"`
	Questions  string `json:"questions"`
	// WarmUp is how many questions are asked before the clock counts.
	WarmUp int `json:"warmUp"`
	// Askers is how many ask at a time.
	Askers int `json:"askers"`
	// Processors is for how many there is work; as many as there are if it is 0.
	Processors int `json:"processors"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: webhookbench PLAN")
		os.Exit(2)
	}
	// Every call that fails is logged, which would be measured too.
	klog.SetLogger(logr.Discard())
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "webhookbench:", err)
		os.Exit(1)
	}
}

func run(path string, out io.Writer) error {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document plan
	if err := json.Unmarshal(bytes, &document); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if document.Processors > 0 {
		runtime.GOMAXPROCS(document.Processors)
	}
	questions, err := readQuestions(document.Questions)
	if err != nil {
		return err
	}
	hook, err := load(document.Kubeconfig, document.Condition)
	if err != nil {
		return err
	}
	answer, err := contest(document, hook, questions)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}
