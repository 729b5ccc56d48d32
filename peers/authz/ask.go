package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// shownMax is how many disagreements are shown of a contest.
const shownMax = 5

// asker is a line of askers.jsonl.
type asker struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

// question is a line of questions.jsonl.
type question struct {
	Asker       int    `json:"asker"`
	Verb        string `json:"verb"`
	Namespace   string `json:"namespace"`
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Name        string `json:"name"`
	Path        string `json:"path"`
	// Allow is what Portcullis decides.
	Allow bool `json:"allow"`
}

// asked is a question as an authorizer gets it.
type asked struct {
	attributes authorizer.AttributesRecord
	allow      bool
}

// answer is one line of output.
type answer struct {
	Name          string   `json:"name"`
	Decisions     int      `json:"decisions"`
	Disagreements int      `json:"disagreements"`
	P50Ns         int64    `json:"p50_ns"`
	P99Ns         int64    `json:"p99_ns"`
	Shown         []string `json:"shown,omitempty"`
}

func readQuestions(folder string) ([]asked, error) {
	var askers []*user.DefaultInfo
	err := readLines(filepath.Join(folder, "askers.jsonl"), func(own *asker) error {
		askers = append(askers, &user.DefaultInfo{Name: own.Name, Groups: own.Groups})
		return nil
	})
	if err != nil {
		return nil, err
	}
	var questions []asked
	err = readLines(filepath.Join(folder, "questions.jsonl"), func(own *question) error {
		if own.Asker < 0 || own.Asker >= len(askers) {
			return fmt.Errorf("there is no asker %d", own.Asker)
		}
		questions = append(questions, asked{
			attributes: authorizer.AttributesRecord{
				User:            askers[own.Asker],
				Verb:            own.Verb,
				Namespace:       own.Namespace,
				APIGroup:        own.APIGroup,
				APIVersion:      "*",
				Resource:        own.Resource,
				Subresource:     own.Subresource,
				Name:            own.Name,
				ResourceRequest: own.Path == "",
				Path:            own.Path,
			},
			allow: own.Allow,
		})
		return nil
	})
	return questions, err
}

// ask times each decision, until all questions are asked or the time is up.
// The question is read just before, as a server has just read its request.
func ask(subject authorizer.Authorizer, questions []asked, limit time.Duration) answer {
	ctx := context.Background()
	runtime.GC()
	clock := clockCost()
	var result answer
	var times []time.Duration
	start := time.Now()
	for i := range questions {
		if time.Since(start) > limit {
			break
		}
		own := &questions[i]
		touch(&own.attributes)
		before := time.Now()
		decision, _, err := subject.Authorize(ctx, &own.attributes)
		times = append(times, max(0, time.Since(before)-clock))
		if (decision == authorizer.DecisionAllow) != own.allow || err != nil {
			result.Disagreements++
			if len(result.Shown) < shownMax {
				result.Shown = append(result.Shown, show(own, decision, err))
			}
		}
	}
	slices.Sort(times)
	result.Decisions = len(times)
	result.P50Ns = percentile(times, 50).Nanoseconds()
	result.P99Ns = percentile(times, 99).Nanoseconds()
	return result
}

func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100]
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
	for _, text := range []string{a.Verb, a.Namespace, a.APIGroup, a.Resource, a.Subresource, a.Name, a.Path} {
		read(text)
	}
	sink += sum
}

func show(own *asked, decision authorizer.Decision, err error) string {
	a := own.attributes
	return fmt.Sprintf("decision %d (error %v), ours allows: %t: user %q groups %q verb %q namespace %q group %q resource %q subresource %q name %q path %q",
		decision, err, own.allow, a.User.GetName(), a.User.GetGroups(), a.Verb, a.Namespace, a.APIGroup, a.Resource, a.Subresource, a.Name, a.Path)
}
