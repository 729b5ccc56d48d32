package main

import (
	"github.com/google/cel-go/cel"

	"portcullis.dev/peers/internal/conditions"
)

// evaluations is how often an expression is evaluated to see whether its cost
// is always the same. Go visits the entries of a map in random order.
const evaluations = 256

// kubernetes is the environment in which kube-apiserver compiles match
// conditions.
type kubernetes struct {
	env *cel.Env
}

func newKubernetes() (*kubernetes, error) {
	env, err := conditions.Environment()
	if err != nil {
		return nil, err
	}
	return &kubernetes{env: env}, nil
}

// answer is what Kubernetes makes of a test. Error is the text of the step
// that failed, which Stage names: `compile` (parser, checker and validators),
// `program` (constant folding) or `eval`.
type answer struct {
	Stage string  `json:"stage,omitempty"`
	Error string  `json:"error,omitempty"`
	Type  string  `json:"type,omitempty"`
	Value tagged  `json:"value,omitempty"`
	Cost  *uint64 `json:"cost,omitempty"`
}

// answer compiles and evaluates an expression with these variables. Neither
// the container nor the functions of a test are there, and checking is not
// disabled, for none of that is so in Kubernetes.
func (k *kubernetes) answer(expression string, variables []variable, checkOnly bool) (*answer, error) {
	var options []cel.EnvOption
	activation := map[string]any{}
	for _, v := range variables {
		options = append(options, cel.Variable(v.Name, v.declared))
		activation[v.Name] = v.bound
	}
	env, err := k.env.Extend(options...)
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(expression)
	if issues.Err() != nil {
		return &answer{Stage: "compile", Error: issues.String()}, nil
	}
	result := &answer{Type: cel.FormatCELType(checked.OutputType())}
	if checkOnly {
		return result, nil
	}
	program, err := env.Program(checked)
	if err != nil {
		result.Stage, result.Error = "program", err.Error()
		return result, nil
	}
	if err := evaluate(program, activation, result); err != nil {
		return nil, err
	}
	return result, nil
}

// evaluate adds to an answer what an evaluation gives. A cost that is not
// always the same is left out.
func evaluate(program cel.Program, activation map[string]any, result *answer) error {
	value, details, err := program.Eval(activation)
	if err != nil {
		result.Stage, result.Error = "eval", err.Error()
		return nil
	}
	if result.Value, err = encodeValue(value); err != nil {
		return err
	}
	result.Cost = details.ActualCost()
	for range evaluations - 1 {
		_, again, _ := program.Eval(activation)
		if *again.ActualCost() != *result.Cost {
			result.Cost = nil
			break
		}
	}
	return nil
}
