package conditions

import (
	"errors"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/apimachinery/pkg/util/version"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Environment returns the CEL environment in which kube-apiserver compiles
// match conditions.
//
// The compiler keeps its environment to itself and accepts only expressions
// that yield a bool. Yet it hands the environment to every AST validator of
// its base, so a validator that rejects nothing catches it in passing.
func Environment() (*celgo.Env, error) {
	catcher := &environmentCatcher{}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	base, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []celgo.EnvOption{celgo.ASTValidators(catcher)},
	})
	if err != nil {
		return nil, err
	}
	probe := &authorizationcel.SubjectAccessReviewMatchCondition{Expression: "request.user == ''"}
	if _, err := authorizationcel.NewCompiler(base).CompileCELExpression(probe); err != nil {
		return nil, err
	}
	if catcher.env == nil {
		return nil, errors.New("the compiler ran no AST validator")
	}
	return catcher.env, nil
}

type environmentCatcher struct {
	env *celgo.Env
}

func (*environmentCatcher) Name() string { return "portcullis.peers.environment" }

func (c *environmentCatcher) Validate(env *celgo.Env, _ celgo.ValidatorConfig, _ *ast.AST, _ *celgo.Issues) {
	c.env = env
}

// MentionsSelectors tells whether an expression selects a field of the name
// fieldSelector or labelSelector, plainly or optionally. The matcher puts a
// selector into the activation only if some condition mentions it.
func MentionsSelectors(checked *celgo.Ast) (fieldSelector, labelSelector bool) {
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch selectedField(e) {
		case "fieldSelector":
			fieldSelector = true
		case "labelSelector":
			labelSelector = true
		}
	}))
	return fieldSelector, labelSelector
}

func selectedField(e ast.Expr) string {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName()
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() != operators.OptSelect || len(args) != 2 || args[1].Kind() != ast.LiteralKind {
			return ""
		}
		name, _ := args[1].AsLiteral().Value().(string)
		return name
	default:
		return ""
	}
}
