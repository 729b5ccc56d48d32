package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"portcullis.dev/peers/internal/conditions"
)

// A case takes about two seconds: two subjects, each sampled so often and for
// so long. The samples of the two alternate, so that a noisy neighbour hits
// both alike.
const (
	samplesPerSubject = 31
	sampleDuration    = 25 * time.Millisecond
	compilations      = 5
)

// measurement is one line of output.
type measurement struct {
	Name            string `json:"name"`
	MatcherNsMin    int64  `json:"matcher_ns_min"`
	MatcherNsMedian int64  `json:"matcher_ns_median"`
	ProgramNsMin    int64  `json:"program_ns_min"`
	ProgramNsMedian int64  `json:"program_ns_median"`
	MatcherAllocs   uint64 `json:"matcher_allocs"`
	ProgramAllocs   uint64 `json:"program_allocs"`
	CompileNs       int64  `json:"compile_ns"`
}

// measureCase compiles the conditions of a case and measures the matcher as
// kube-apiserver calls it for each request, and apart from it the programs
// alone, with variables that were prepared before.
func measureCase(compiler authorizationcel.Compiler, c benchCase, spec authorizationv1.SubjectAccessReviewSpec, metrics bool) (*measurement, error) {
	matcher, compileNs, err := compile(compiler, c.Expressions)
	if err != nil {
		return nil, err
	}
	if metrics {
		matcher.Metrics = authorizationcel.NewMatcherMetrics()
		matcher.AuthorizerType, matcher.AuthorizerName = "Webhook", "peer"
	}
	activation, err := conditions.Activation(spec, matcher.UsesFieldSelector, matcher.UsesLabelSelector)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	runMatcher := func() { _, _ = matcher.Eval(ctx, review) }
	runProgram := func() { evaluate(ctx, matcher, activation) }

	runtime.GC()
	matcherRuns, programRuns := calibrate(runMatcher), calibrate(runProgram)
	var matcherNs, programNs []int64
	for range samplesPerSubject {
		matcherNs = append(matcherNs, sample(runMatcher, matcherRuns))
		programNs = append(programNs, sample(runProgram, programRuns))
	}
	slices.Sort(matcherNs)
	slices.Sort(programNs)
	return &measurement{
		Name:            c.Name,
		MatcherNsMin:    matcherNs[0],
		MatcherNsMedian: matcherNs[samplesPerSubject/2],
		ProgramNsMin:    programNs[0],
		ProgramNsMedian: programNs[samplesPerSubject/2],
		MatcherAllocs:   allocations(runMatcher, matcherRuns),
		ProgramAllocs:   allocations(runProgram, programRuns),
		CompileNs:       compileNs,
	}, nil
}

// compile returns the matcher and the median time that it took to compile.
func compile(compiler authorizationcel.Compiler, expressions []string) (*authorizationcel.CELMatcher, int64, error) {
	var matcher *authorizationcel.CELMatcher
	var times []int64
	for range compilations {
		start := time.Now()
		compiled, errs := conditions.Compile(compiler, expressions)
		times = append(times, time.Since(start).Nanoseconds())
		if len(errs) > 0 {
			return nil, 0, errs.ToAggregate()
		}
		matcher = compiled
	}
	if matcher == nil {
		return nil, 0, errors.New("there is no condition to measure")
	}
	slices.Sort(times)
	return matcher, times[compilations/2], nil
}

// evaluate does what the matcher does with its programs: a failed one is
// passed over, a false one ends the walk.
func evaluate(ctx context.Context, matcher *authorizationcel.CELMatcher, activation any) {
	for i := range matcher.CompilationResults {
		value, _, err := matcher.CompilationResults[i].Program.ContextEval(ctx, activation)
		if err == nil && value == types.False {
			return
		}
	}
}

// calibrate returns how many runs fill one sample.
func calibrate(run func()) int {
	for runs := 1; ; runs *= 2 {
		start := time.Now()
		for range runs {
			run()
		}
		if elapsed := time.Since(start); elapsed >= sampleDuration/4 {
			return max(1, int(float64(runs)*float64(sampleDuration)/float64(elapsed)))
		}
	}
}

// sample returns the nanoseconds of one run, averaged over many.
func sample(run func(), runs int) int64 {
	start := time.Now()
	for range runs {
		run()
	}
	return time.Since(start).Nanoseconds() / int64(runs)
}

// allocations returns the heap allocations of one run, averaged over many and
// rounded down, for the runtime allocates a little on its own.
func allocations(run func(), runs int) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / uint64(runs)
}
