package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// question is a line of the file of questions.
type question struct {
	User      string   `json:"user"`
	UID       string   `json:"uid"`
	Groups    []string `json:"groups"`
	Verb      string   `json:"verb"`
	Namespace string   `json:"namespace"`
	APIGroup  string   `json:"apiGroup"`
	Version   string   `json:"apiVersion"`
	Resource  string   `json:"resource"`
	Name      string   `json:"name"`
	// Want is the decision: allow, deny or no-opinion.
	Want string `json:"want"`
}

// asked is a question as an authorizer gets it.
type asked struct {
	attributes authorizer.AttributesRecord
	want       authorizer.Decision
}

// answer is the line of output.
type answer struct {
	Decisions     int   `json:"decisions"`
	Disagreements int   `json:"disagreements"`
	P50Ns         int64 `json:"p50_ns"`
	P99Ns         int64 `json:"p99_ns"`
	// TotalNs is from the first question to the last answer.
	TotalNs int64 `json:"total_ns"`
	// Allocations are those of one decision, on average.
	Allocations uint64 `json:"allocations"`
}

// passes is how often remembered answers are asked for; the least time of each
// counts.
const passes = 3

func readQuestions(path string) ([]asked, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	wants := map[string]authorizer.Decision{
		"allow":      authorizer.DecisionAllow,
		"deny":       authorizer.DecisionDeny,
		"no-opinion": authorizer.DecisionNoOpinion,
	}
	var questions []asked
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var own question
		if err := json.Unmarshal(lines.Bytes(), &own); err != nil {
			return nil, fmt.Errorf("reading the questions: %w", err)
		}
		want, ok := wants[own.Want]
		if !ok {
			return nil, fmt.Errorf("there is no decision %q", own.Want)
		}
		questions = append(questions, asked{
			attributes: authorizer.AttributesRecord{
				User:            &user.DefaultInfo{Name: own.User, UID: own.UID, Groups: own.Groups},
				Verb:            own.Verb,
				Namespace:       own.Namespace,
				APIGroup:        own.APIGroup,
				APIVersion:      own.Version,
				Resource:        own.Resource,
				Name:            own.Name,
				ResourceRequest: true,
			},
			want: want,
		})
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s has no questions", path)
	}
	return questions, lines.Err()
}

func contest(p plan, hook authorizer.Authorizer, questions []asked) (*answer, error) {
	warmUp := questions[:min(p.WarmUp, len(questions))]
	rest := questions[len(warmUp):]
	switch p.Kind {
	case "cached":
		fill := callAll(hook, questions, max(1, p.Askers))
		result := askCached(hook, questions)
		result.Disagreements += fill.Disagreements
		return result, nil
	case "calls", "dead":
		warm := callAll(hook, warmUp, max(1, p.Askers))
		result := callAll(hook, rest, max(1, p.Askers))
		result.Disagreements += warm.Disagreements
		return result, nil
	case "storm":
		return storm(hook, &questions[0], max(1, p.Askers)), nil
	default:
		return nil, fmt.Errorf("there is no contest %q", p.Kind)
	}
}

// askCached times each decision by itself. What the clock costs is subtracted.
func askCached(hook authorizer.Authorizer, questions []asked) *answer {
	ctx := context.Background()
	runtime.GC()
	clock := clockCost()
	result := &answer{Decisions: len(questions)}
	least := make([]time.Duration, len(questions))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for pass := range passes {
		for i := range questions {
			own := &questions[i]
			touch(&own.attributes)
			begin := time.Now()
			decision, _, err := hook.Authorize(ctx, &own.attributes)
			took := max(0, time.Since(begin)-clock)
			if pass == 0 || took < least[i] {
				least[i] = took
			}
			if decision != own.want || err != nil {
				result.Disagreements++
			}
		}
	}
	result.TotalNs = time.Since(start).Nanoseconds()
	runtime.ReadMemStats(&after)
	result.Allocations = (after.Mallocs - before.Mallocs) / uint64(passes*len(questions))
	result.percentiles(least)
	return result
}

// callAll asks each question once. Of a service that does not exist an error is
// what is expected, so only decisions are compared.
func callAll(hook authorizer.Authorizer, questions []asked, askers int) *answer {
	ctx := context.Background()
	times := make([]time.Duration, len(questions))
	var next, disagreements atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for range askers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				begin := time.Now()
				decision, _, _ := hook.Authorize(ctx, &questions[i].attributes)
				times[i] = time.Since(begin)
				if decision != questions[i].want {
					disagreements.Add(1)
				}
			}
		})
	}
	group.Wait()
	result := &answer{
		Decisions:     len(questions),
		Disagreements: int(disagreements.Load()),
		TotalNs:       time.Since(start).Nanoseconds(),
	}
	result.percentiles(times)
	return result
}

// storm asks one question many times at once.
func storm(hook authorizer.Authorizer, own *asked, askers int) *answer {
	same := make([]asked, askers)
	for i := range same {
		same[i] = *own
	}
	return callAll(hook, same, askers)
}

func (a *answer) percentiles(times []time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	if len(sorted) > 0 {
		a.P50Ns = sorted[(len(sorted)-1)*50/100].Nanoseconds()
		a.P99Ns = sorted[(len(sorted)-1)*99/100].Nanoseconds()
	}
}

// clockCost is what it costs to look at the clock twice: the median of many.
func clockCost() time.Duration {
	costs := make([]time.Duration, 10_001)
	for i := range costs {
		before := time.Now()
		costs[i] = time.Since(before)
	}
	slices.Sort(costs)
	return costs[len(costs)/2]
}

// sink keeps the compiler from leaving out what touch reads.
var sink int

// touch reads a question, as a server has just read its request.
func touch(a *authorizer.AttributesRecord) {
	sum := 0
	read := func(text string) {
		for i := range len(text) {
			sum += int(text[i])
		}
	}
	read(a.User.GetName())
	for _, group := range a.User.GetGroups() {
		read(group)
	}
	read(a.Verb)
	read(a.Namespace)
	read(a.APIGroup)
	read(a.Resource)
	read(a.Name)
	sink += sum
}
