package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
)

// conformanceDir is the directory that configurations mention. It is moved
// below a temporary directory for the time of one request.
const conformanceDir = "/conformance"

var (
	authorizerTypes = sets.New("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
	repeatableTypes = sets.New("Webhook")
	configScheme    = newConfigScheme()
)

func newConfigScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// configurationAnswer has the form of `expect` in the config-load vectors.
type configurationAnswer struct {
	Result     string          `json:"result"`
	Effective  json.RawMessage `json:"effective,omitempty"`
	Error      string          `json:"error,omitempty"`
	Errors     []fieldError    `json:"errors,omitempty"`
	NameErrors []string        `json:"nameErrors,omitempty"`
}

// configuration loads an AuthorizationConfiguration and validates it beside
// the files that the caller says exist.
func (o *celOracle) configuration(line []byte) (any, error) {
	var request struct {
		Text  string            `json:"text"`
		Files map[string]string `json:"files"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "oracle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	if err := createFiles(root, request.Files); err != nil {
		return nil, err
	}
	result, err := o.loadConfiguration(root, request.Text)
	if err != nil {
		return nil, err
	}
	return withoutRoot(root, result)
}

// loadConfiguration goes the way of --authorization-config: decode strictly
// with defaults, validate, and at last compare the names of the built-in
// authorizers with their types.
func (o *celOracle) loadConfiguration(root, text string) (*configurationAnswer, error) {
	config, err := load.LoadFromData([]byte(text))
	if err != nil {
		return &configurationAnswer{Result: "decodeError", Error: decodeErrorText(err)}, nil
	}
	moveBelow(root, config)
	errs := validation.ValidateAuthorizationConfiguration(o.compiler, nil, config, authorizerTypes, repeatableTypes)
	if len(errs) > 0 {
		return &configurationAnswer{Result: "invalid", Error: errs.ToAggregate().Error(), Errors: fieldErrors(errs)}, nil
	}
	if errs := nameErrors(config); len(errs) > 0 {
		result := &configurationAnswer{Result: "nameError", Error: utilerrors.NewAggregate(errs).Error()}
		for _, err := range errs {
			result.NameErrors = append(result.NameErrors, err.Error())
		}
		return result, nil
	}
	external := &apiserverv1.AuthorizationConfiguration{}
	if err := configScheme.Convert(config, external, nil); err != nil {
		return nil, err
	}
	effective, err := json.Marshal(external)
	if err != nil {
		return nil, err
	}
	return &configurationAnswer{Result: "valid", Effective: effective}, nil
}

// decodeErrorText words a decode error as kube-apiserver does. The error names
// the scheme after the source file that made it, a path that is cut wrongly
// when the file comes from a module cache; so the name is put right.
func decodeErrorText(err error) string {
	text := "failed to load AuthorizationConfiguration from file: " + err.Error()
	const scheme = ` in scheme "`
	if at := strings.LastIndex(text, scheme); at >= 0 && runtime.IsNotRegisteredError(err) {
		text = text[:at] + scheme + `k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32"`
	}
	return text
}

// nameErrors repeats the one check that kube-apiserver makes outside of the
// published modules: a built-in authorizer carries its own name.
func nameErrors(config *apiserver.AuthorizationConfiguration) []error {
	var errs []error
	for _, authorizer := range config.Authorizers {
		want := strings.ToLower(string(authorizer.Type))
		if authorizer.Type != apiserver.TypeWebhook && authorizer.Name != want {
			errs = append(errs, fmt.Errorf("expected name %s for authorizer %s instead of %s", want, authorizer.Type, authorizer.Name))
		}
	}
	return errs
}

// createFiles makes the listed files below root. A symlink points at a
// regular file of its own.
func createFiles(root string, files map[string]string) error {
	for path, kind := range files {
		if path != filepath.Clean(path) || !strings.HasPrefix(path, conformanceDir+"/") {
			return fmt.Errorf("file %q is not a clean path below %s", path, conformanceDir)
		}
		real := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(real), 0o755); err != nil {
			return err
		}
		var err error
		switch kind {
		case "regular":
			err = os.WriteFile(real, nil, 0o644)
		case "directory":
			err = os.MkdirAll(real, 0o755)
		case "symlink":
			target := real + ".target"
			if err = os.WriteFile(target, nil, 0o644); err == nil {
				err = os.Symlink(target, real)
			}
		default:
			err = fmt.Errorf("file %q is of unknown kind %q", path, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveBelow lets the configuration mention its files where they really are.
func moveBelow(root string, config *apiserver.AuthorizationConfiguration) {
	for _, authorizer := range config.Authorizers {
		if authorizer.Webhook == nil || authorizer.Webhook.ConnectionInfo.KubeConfigFile == nil {
			continue
		}
		path := authorizer.Webhook.ConnectionInfo.KubeConfigFile
		if *path == conformanceDir || strings.HasPrefix(*path, conformanceDir+"/") {
			*path = root + *path
		}
	}
}

// withoutRoot undoes moveBelow in whatever the answer says. The root is a path
// that no input contains and that JSON writes as it is.
func withoutRoot(root string, result *configurationAnswer) (any, error) {
	var text bytes.Buffer
	if err := write(&text, result); err != nil {
		return nil, err
	}
	return json.RawMessage(bytes.ReplaceAll(text.Bytes(), []byte(root), nil)), nil
}
