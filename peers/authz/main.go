// Command authz asks Kubernetes' own authorizers the questions of the
// authorization benchmark: the peer side of `cargo xtask bench authz`, which
// writes the files that it reads.
//
// It takes the path of a plan:
//
//	{"contests": [{"name": "rbac-100-1", "authorizer": "rbac",
//	               "policies": ["rbac-100"], "questions": "questions-rbac-100-1"}]}
//
// in which folders are beside the plan, and prints one JSON line per contest.
// It runs on one processor, so that garbage collection is paid for within the
// times instead of beside them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// plan is the document that the program reads.
type plan struct {
	Contests []contest `json:"contests"`
}

// contest asks one authorizer many questions.
type contest struct {
	Name string `json:"name"`
	// Authorizer is abac, node, rbac or chain.
	Authorizer string `json:"authorizer"`
	// Policies are the folders that the authorizer is made from.
	Policies []string `json:"policies"`
	// Questions is the folder of the questions and of those who ask.
	Questions string `json:"questions"`
}

func main() {
	limit := flag.Duration("limit", 3*time.Second, "how long a contest takes at most, loading not counted")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: authz [-limit DURATION] PLAN")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	// ABAC warns of lines without a version, which the data has on purpose.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(flag.Arg(0), *limit, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "authz:", err)
		os.Exit(1)
	}
}

func run(path string, limit time.Duration, out io.Writer) error {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document plan
	if err := json.Unmarshal(bytes, &document); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	root := filepath.Dir(path)
	loaded := map[string]authorizer.Authorizer{}
	encoder := json.NewEncoder(out)
	for _, c := range document.Contests {
		// Contests that follow each other often share a policy. What is not
		// needed is dropped, so that it does not burden the garbage collector.
		for folder := range loaded {
			if !slices.Contains(c.Policies, folder) {
				delete(loaded, folder)
			}
		}
		subject, err := load(root, c, loaded)
		if err != nil {
			return fmt.Errorf("contest %q: %w", c.Name, err)
		}
		questions, err := readQuestions(filepath.Join(root, c.Questions))
		if err != nil {
			return fmt.Errorf("contest %q: %w", c.Name, err)
		}
		answer := ask(subject, questions, limit)
		answer.Name = c.Name
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}
