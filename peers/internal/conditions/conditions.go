// Package conditions drives the match conditions of an authorization webhook
// through the code that kube-apiserver runs, and looks at what passes by.
//
// The upstream matcher hides two things that a peer wants to see: what one
// evaluation cost, and the activation built from a request. Nothing of it is
// repeated here, for a repetition could be wrong. Instead a Recorder takes the
// place of a compiled program inside the upstream matcher and notes both.
package conditions

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// Compile validates and compiles the match conditions of one webhook. The
// matcher is nil when there is no condition to evaluate.
func Compile(compiler authorizationcel.Compiler, expressions []string) (*authorizationcel.CELMatcher, field.ErrorList) {
	list := make([]apiserver.WebhookMatchCondition, 0, len(expressions))
	for _, expression := range expressions {
		list = append(list, apiserver.WebhookMatchCondition{Expression: expression})
	}
	return validation.ValidateAndCompileMatchConditions(compiler, list)
}

// Recorder stands in for a compiled program and notes its last evaluation.
type Recorder struct {
	// Program evaluates. Without one the recorder only notes the activation
	// and answers true.
	celgo.Program
	// Activation is what the matcher passed as variables.
	Activation any
	// Cost is what the evaluation was charged, nil if that is not known.
	Cost *uint64
}

// ContextEval implements celgo.Program for the only method the matcher calls.
func (r *Recorder) ContextEval(ctx context.Context, activation any) (ref.Val, *celgo.EvalDetails, error) {
	r.Activation, r.Cost = activation, nil
	if r.Program == nil {
		return types.True, nil, nil
	}
	value, details, err := r.Program.ContextEval(ctx, activation)
	r.Cost = details.ActualCost()
	return value, details, err
}

// Record returns a copy of the matcher in which each program is watched by a
// recorder; the recorders are in the order of the conditions.
func Record(matcher *authorizationcel.CELMatcher) (*authorizationcel.CELMatcher, []*Recorder) {
	watched := *matcher
	watched.CompilationResults = nil
	var recorders []*Recorder
	for _, result := range matcher.CompilationResults {
		recorder := &Recorder{Program: result.Program}
		result.Program = recorder
		recorders = append(recorders, recorder)
		watched.CompilationResults = append(watched.CompilationResults, result)
	}
	return &watched, recorders
}

// Activation returns the variables that the matcher builds from a request.
// Whether the selectors are among them depends on what the conditions mention,
// which is why they are asked for one by one.
func Activation(spec authorizationv1.SubjectAccessReviewSpec, fieldSelector, labelSelector bool) (any, error) {
	recorder := &Recorder{}
	matcher := &authorizationcel.CELMatcher{
		CompilationResults: []authorizationcel.CompilationResult{{Program: recorder}},
		UsesFieldSelector:  fieldSelector,
		UsesLabelSelector:  labelSelector,
	}
	_, err := matcher.Eval(context.Background(), &authorizationv1.SubjectAccessReview{Spec: spec})
	return recorder.Activation, err
}
