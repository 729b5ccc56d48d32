package main

import (
	"context"
	"encoding/json"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"portcullis.dev/peers/internal/conditions"
)

// celOracle holds what is expensive to build and the same for all requests.
type celOracle struct {
	compiler authorizationcel.Compiler
	env      *celgo.Env
}

func newCELOracle() (*celOracle, error) {
	env, err := conditions.Environment()
	if err != nil {
		return nil, err
	}
	return &celOracle{compiler: authorizationcel.NewDefaultCompiler(), env: env}, nil
}

// conditionsAnswer has the form of the match-conditions vectors.
type conditionsAnswer struct {
	Compile string       `json:"compile"`
	Errors  []fieldError `json:"errors,omitempty"`
	Cases   []caseAnswer `json:"cases,omitempty"`
}

type caseAnswer struct {
	Result string  `json:"result"`
	Error  string  `json:"error,omitempty"`
	Cost   *uint64 `json:"cost,omitempty"`
}

// conditions compiles a list of match conditions and asks it about requests.
func (o *celOracle) conditions(line []byte) (any, error) {
	var request struct {
		Expressions []string                                  `json:"expressions"`
		Requests    []authorizationv1.SubjectAccessReviewSpec `json:"requests"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	matcher, errs := conditions.Compile(o.compiler, request.Expressions)
	if len(errs) > 0 {
		return conditionsAnswer{Compile: "error", Errors: fieldErrors(errs)}, nil
	}
	result := conditionsAnswer{Compile: "ok"}
	for _, spec := range request.Requests {
		result.Cases = append(result.Cases, matchCase(matcher, spec))
	}
	return result, nil
}

// matchCase asks a matcher about one request. The cost is told for a single
// condition that did not fail, as in the vectors.
func matchCase(matcher *authorizationcel.CELMatcher, spec authorizationv1.SubjectAccessReviewSpec) caseAnswer {
	if matcher == nil {
		return caseAnswer{Result: "match"} // A webhook without conditions is asked always.
	}
	watched, recorders := conditions.Record(matcher)
	matches, err := watched.Eval(context.Background(), &authorizationv1.SubjectAccessReview{Spec: spec})
	if err != nil {
		return caseAnswer{Result: "error", Error: err.Error()}
	}
	result := caseAnswer{Result: "noMatch"}
	if matches {
		result.Result = "match"
	}
	if len(recorders) == 1 {
		result.Cost = recorders[0].Cost
	}
	return result
}

// expressionAnswer tells all that is known about one expression. Error is the
// text of the first step that failed: Stage says which, if any.
type expressionAnswer struct {
	Compile string         `json:"compile"`
	Stage   string         `json:"stage,omitempty"`
	Error   string         `json:"error,omitempty"`
	Type    string         `json:"type,omitempty"`
	Value   *renderedValue `json:"value,omitempty"`
	Cost    *uint64        `json:"cost,omitempty"`
	AST     string         `json:"ast,omitempty"`
}

// expression compiles and evaluates an expression of any type in the
// environment of match conditions.
func (o *celOracle) expression(line []byte) (any, error) {
	var request struct {
		Expression string                                   `json:"expression"`
		Request    *authorizationv1.SubjectAccessReviewSpec `json:"request"`
		AST        bool                                     `json:"ast"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	spec := sampleRequest
	if request.Request != nil {
		spec = *request.Request
	}

	checked, issues := o.env.Compile(request.Expression)
	if issues != nil {
		return expressionAnswer{Compile: "error", Stage: "compile", Error: issues.String()}, nil
	}
	result := expressionAnswer{Compile: "ok", Type: checked.OutputType().String()}
	if request.AST {
		result.AST = checker.Print(checked.NativeRep().Expr(), checked.NativeRep())
	}
	program, err := o.env.Program(checked)
	if err != nil {
		result.Compile, result.Stage, result.Error = "error", "program", err.Error()
		return result, nil
	}
	fieldSelector, labelSelector := conditions.MentionsSelectors(checked)
	activation, err := conditions.Activation(spec, fieldSelector, labelSelector)
	if err != nil {
		return nil, err
	}
	value, details, err := program.ContextEval(context.Background(), activation)
	result.Cost = details.ActualCost()
	if err != nil {
		result.Stage, result.Error = "eval", err.Error()
		return result, nil
	}
	result.Value = render(value)
	return result, nil
}

// sampleRequest is what expressions are evaluated against unless the caller
// brings a request.
var sampleRequest = authorizationv1.SubjectAccessReviewSpec{
	User:   "alice",
	UID:    "1234",
	Groups: []string{"dev", "system:authenticated"},
	Extra:  map[string]authorizationv1.ExtraValue{"scopes": {"red", "blue"}},
	ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: "team-a",
		Verb:      "get",
		Group:     "apps",
		Version:   "v1",
		Resource:  "deployments",
		Name:      "web",
	},
}
