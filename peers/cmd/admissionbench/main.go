// Command admissionbench finds the webhooks of a request with kube-apiserver's
// own rule matcher: the peer side of the matching table of `cargo xtask bench
// admission`.
//
// It takes how often to ask and how many webhooks there are, once or more, and
// prints the nanoseconds of one request for each number, a line each. Only
// rules are looked at; selectors and conditions are empty on both sides.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

const (
	matching = 3
	repeats  = 9
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "admissionbench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: admissionbench ROUNDS HOOKS...")
	}
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for _, arg := range args[1:] {
		count, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		nanos, err := measure(rounds, count)
		if err != nil {
			return err
		}
		fmt.Println(nanos)
	}
	return nil
}

// hooks are about a resource of their own each, but for the few that match.
func hooks(count int) []admissionregistration.RuleWithOperations {
	all := make([]admissionregistration.RuleWithOperations, 0, count)
	scope := admissionregistration.AllScopes
	for n := range count {
		resource := fmt.Sprintf("resources%d", n)
		if n < matching {
			resource = "deployments"
		}
		all = append(all, admissionregistration.RuleWithOperations{
			Operations: []admissionregistration.OperationType{
				admissionregistration.Create, admissionregistration.Update,
			},
			Rule: admissionregistration.Rule{
				APIGroups:   []string{"apps"},
				APIVersions: []string{"v1"},
				Resources:   []string{resource, resource + "/scale"},
				Scope:       &scope,
			},
		})
	}
	return all
}

func attributes(group, version string) admission.Attributes {
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: "Deployment"}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: "deployments"}
	return admission.NewAttributesRecord(
		nil, nil, kind, "team-a", "web", resource, "", admission.Create, nil, false, nil)
}

func measure(rounds, count int) (int64, error) {
	all := hooks(count)
	// The request itself first, then its equivalents, as kube-apiserver does.
	names := []admission.Attributes{
		attributes("apps", "v1"), attributes("apps", "v1beta1"), attributes("extensions", "v1beta1"),
	}
	ask := func() int {
		found := 0
		for _, rule := range all {
			for _, name := range names {
				matcher := rules.Matcher{Rule: rule, Attr: name}
				if matcher.Matches() {
					found++
					break
				}
			}
		}
		return found
	}
	if found := ask(); found != matching {
		return 0, fmt.Errorf("%d hooks match", found)
	}
	times := make([]int64, repeats)
	for n := range times {
		start := time.Now()
		for range rounds {
			ask()
		}
		times[n] = time.Since(start).Nanoseconds() / int64(rounds)
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	return times[repeats/2], nil
}
