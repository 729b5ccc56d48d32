package main

import (
	"fmt"
	"sort"

	exprpb "cel.dev/expr"
	testpb "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// line is one test. What the test does not say is left out.
type line struct {
	File         string     `json:"file"`
	Section      string     `json:"section"`
	Name         string     `json:"name"`
	Expr         string     `json:"expr"`
	Container    string     `json:"container,omitempty"`
	DisableCheck bool       `json:"disable_check,omitempty"`
	CheckOnly    bool       `json:"check_only,omitempty"`
	Variables    []variable `json:"variables,omitempty"`
	// Functions are the names of functions that the test declares.
	Functions  []string `json:"functions,omitempty"`
	Expect     expect   `json:"expect"`
	Kubernetes answer   `json:"kubernetes"`
}

// variable has a value always. A test may leave out the type when it disables
// checking; the type is dyn then, which is how unchecked expressions see it.
type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value tagged `json:"value"`

	declared *cel.Type
	bound    ref.Val
}

// expect is what the CEL project demands: a value or an error, and perhaps a
// type. The texts of errors are hints: an implementation words its own.
type expect struct {
	Value tagged   `json:"value,omitempty"`
	Error []string `json:"error,omitempty"`
	Type  string   `json:"type,omitempty"`
}

// line describes a test and adds what Kubernetes says about it.
func (k *kubernetes) line(test *testpb.SimpleTest) (*line, error) {
	if test.GetDisableMacros() || test.GetLocale() != "" {
		return nil, fmt.Errorf("macros cannot be disabled, and there is one locale")
	}
	variables, err := k.variables(test)
	if err != nil {
		return nil, err
	}
	expect, err := k.expect(test)
	if err != nil {
		return nil, err
	}
	answer, err := k.answer(test.GetExpr(), variables, test.GetCheckOnly())
	if err != nil {
		return nil, err
	}
	result := &line{
		Expr:         test.GetExpr(),
		Container:    test.GetContainer(),
		DisableCheck: test.GetDisableCheck(),
		CheckOnly:    test.GetCheckOnly(),
		Variables:    variables,
		Expect:       *expect,
		Kubernetes:   *answer,
	}
	for _, declaration := range test.GetTypeEnv() {
		if declaration.GetFunction() != nil {
			result.Functions = append(result.Functions, declaration.GetName())
		}
	}
	return result, nil
}

// variables joins the declarations and the bindings of a test by name.
func (k *kubernetes) variables(test *testpb.SimpleTest) ([]variable, error) {
	byName := map[string]*variable{}
	for _, declaration := range test.GetTypeEnv() {
		if declaration.GetIdent() == nil {
			continue
		}
		declared, err := types.ProtoAsType(declaration.GetIdent().GetType())
		if err != nil {
			return nil, err
		}
		byName[declaration.GetName()] = &variable{declared: declared}
	}
	for name, binding := range test.GetBindings() {
		bound, err := cel.ProtoAsValue(k.env.CELTypeAdapter(), binding.GetValue())
		if err != nil {
			return nil, err
		}
		if byName[name] == nil {
			byName[name] = &variable{declared: cel.DynType}
		}
		if byName[name].Value, err = encodeValue(bound); err != nil {
			return nil, err
		}
		byName[name].bound = bound
	}
	var result []variable
	for name, v := range byName {
		if v.bound == nil {
			return nil, fmt.Errorf("variable %s has no value", name)
		}
		v.Name, v.Type = name, cel.FormatCELType(v.declared)
		result = append(result, *v)
	}
	sort.Slice(result, func(i, j int) bool { return result[i].Name < result[j].Name })
	return result, nil
}

// expect reads the matcher of a test. A test without one expects true.
func (k *kubernetes) expect(test *testpb.SimpleTest) (*expect, error) {
	result := &expect{}
	var value *exprpb.Value
	switch matcher := test.GetResultMatcher().(type) {
	case nil:
		value = &exprpb.Value{Kind: &exprpb.Value_BoolValue{BoolValue: true}}
	case *testpb.SimpleTest_Value:
		value = matcher.Value
	case *testpb.SimpleTest_TypedResult:
		value = matcher.TypedResult.GetResult()
		deduced, err := types.ProtoAsType(matcher.TypedResult.GetDeducedType())
		if err != nil {
			return nil, err
		}
		result.Type = cel.FormatCELType(deduced)
	case *testpb.SimpleTest_EvalError:
		result.Error = messages(matcher.EvalError)
	case *testpb.SimpleTest_AnyEvalErrors:
		for _, set := range matcher.AnyEvalErrors.GetErrors() {
			result.Error = append(result.Error, messages(set)...)
		}
	default:
		return nil, fmt.Errorf("unknown kind of expectation %T", matcher)
	}
	if value != nil {
		expected, err := cel.ProtoAsValue(k.env.CELTypeAdapter(), value)
		if err != nil {
			return nil, err
		}
		if result.Value, err = encodeValue(expected); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// messages returns the texts of an error set, at least one.
func messages(set *exprpb.ErrorSet) []string {
	var result []string
	for _, status := range set.GetErrors() {
		result = append(result, status.GetMessage())
	}
	if result == nil {
		return []string{""}
	}
	return result
}
