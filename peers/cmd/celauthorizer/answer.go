package main

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// budget is what the match conditions of one webhook may cost together.
const budget = 2_500_000

// answer is what Kubernetes makes of an expression. An error without a type
// was found by the compiler.
type answer struct {
	Type  string     `json:"type,omitempty"`
	Value tagged     `json:"value,omitempty"`
	Error string     `json:"error,omitempty"`
	Cost  uint64     `json:"cost,omitempty"`
	Asked []question `json:"asked,omitempty"`
}

// expression is one of any type. Match conditions have to be bools.
type expression string

func (e expression) GetExpression() string      { return string(e) }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// peer is the compiler of match conditions, for stored or for new ones.
type peer struct {
	compiler admissioncel.Compiler
	mode     environment.Type
}

func newPeers() (stored, fresh peer) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiler := admissioncel.NewCompiler(base)
	return peer{compiler, environment.StoredExpressions}, peer{compiler, environment.NewExpressions}
}

func (p peer) result(source string) admissioncel.CompilationResult {
	declarations := admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}
	return p.compiler.CompileCELExpression(expression(source), declarations, p.mode)
}

func (p peer) compile(source string) *apiservercel.Error {
	return p.result(source).Error
}

func (p peer) answer(source string) (answer, error) {
	result := p.result(source)
	if result.Error != nil {
		return answer{Error: result.Error.Detail}, nil
	}
	found := answer{Type: result.OutputType.String()}
	watched := &watcher{Program: result.Program}
	result.Program = watched
	clerk := &clerk{}
	err := evaluate(result, clerk)
	found.Asked, found.Cost = clerk.asked, watched.cost
	if err != nil {
		found.Error = err.Error()
		return found, nil
	}
	found.Value, err = encodeValue(watched.value)
	return found, err
}

// evaluate runs a program as the match condition of a webhook.
func evaluate(result admissioncel.CompilationResult, clerk *clerk) error {
	conditions := admissioncel.NewCondition([]admissioncel.CompilationResult{result})
	versioned := &admission.VersionedAttributes{
		Attributes:      request,
		VersionedKind:   request.GetKind(),
		VersionedObject: admission.NewLazyObject(request.GetObject()),
	}
	resource, kind := metav1.GroupVersionResource(request.GetResource()), metav1.GroupVersionKind(request.GetKind())
	evaluations, _, err := conditions.ForInput(
		context.Background(), versioned, admissioncel.CreateAdmissionRequest(request, resource, kind),
		admissioncel.OptionalVariableBindings{Authorizer: clerk}, nil, budget,
	)
	if err != nil {
		return err
	}
	return evaluations[0].Error
}

// watcher stands in for a compiled program and notes what it gave and cost.
type watcher struct {
	celgo.Program
	value ref.Val
	cost  uint64
}

// ContextEval implements celgo.Program for the only method that is called.
func (w *watcher) ContextEval(ctx context.Context, activation any) (ref.Val, *celgo.EvalDetails, error) {
	value, details, err := w.Program.ContextEval(ctx, activation)
	w.value = value
	if cost := details.ActualCost(); cost != nil {
		w.cost = *cost
	}
	return value, details, err
}
