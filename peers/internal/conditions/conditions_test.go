package conditions

import (
	"context"
	"reflect"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

var selecting = authorizationv1.SubjectAccessReviewSpec{
	User: "alice",
	ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb:          "list",
		FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "a=b"},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: "c=d"},
	},
}

// TestEnvironmentIsTheCompilers compares the environment that was caught with
// the compiler it was caught from: same selectors mentioned, same value, same
// cost.
func TestEnvironmentIsTheCompilers(t *testing.T) {
	env, err := Environment()
	if err != nil {
		t.Fatal(err)
	}
	compiler := authorizationcel.NewDefaultCompiler()
	for _, expression := range []string{
		"request.user == 'alice'",
		"request.resourceAttributes.fieldSelector.rawSelector == 'a=b'",
		"has(request.resourceAttributes.labelSelector)",
		"request.resourceAttributes.?labelSelector.hasValue()",
		"has(dyn(request)['resourceAttributes'].labelSelector)",
		"'fieldSelector' in dyn(request.resourceAttributes)",
		"quantity('1Gi').isGreaterThan(quantity('1M')) && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
		"[3, 1, 2].sortBy(x, x)[0] == 1 && request.groups.size() == 0",
	} {
		matcher, errs := Compile(compiler, []string{expression})
		if len(errs) > 0 {
			t.Errorf("%s: %v", expression, errs)
			continue
		}
		watched, recorders := Record(matcher)
		matches, err := watched.Eval(context.Background(), &authorizationv1.SubjectAccessReview{Spec: selecting})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}

		checked, issues := env.Compile(expression)
		if issues != nil {
			t.Errorf("%s: %v", expression, issues)
			continue
		}
		fieldSelector, labelSelector := MentionsSelectors(checked)
		if fieldSelector != matcher.UsesFieldSelector || labelSelector != matcher.UsesLabelSelector {
			t.Errorf("%s: mentions selectors %v %v, the compiler says %v %v", expression,
				fieldSelector, labelSelector, matcher.UsesFieldSelector, matcher.UsesLabelSelector)
		}
		program, err := env.Program(checked)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		activation, err := Activation(selecting, fieldSelector, labelSelector)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(activation, recorders[0].Activation) {
			t.Errorf("%s: activation %v, the matcher built %v", expression, activation, recorders[0].Activation)
		}
		value, details, err := program.ContextEval(context.Background(), activation)
		if err != nil || value.Value() != matches || *details.ActualCost() != *recorders[0].Cost {
			t.Errorf("%s: %v at cost %d (%v), the matcher says %v at cost %d", expression,
				value, *details.ActualCost(), err, matches, *recorders[0].Cost)
		}
	}
}
