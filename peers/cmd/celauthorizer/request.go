package main

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// request is what all expressions are about: ana creates a scale of the
// deployment web in the namespace shop.
var request = admission.NewAttributesRecord(
	&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
	}},
	nil,
	schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
	"shop", "web",
	schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
	"scale", admission.Create, &metav1.CreateOptions{}, false,
	&user.DefaultInfo{Name: "ana"},
)

// question is what the authorizer was asked. The user is left out if it is the
// one of the request.
type question struct {
	User        string `json:"user,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Path        string `json:"path,omitempty"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// clerk is an authorizer: verbs that end with `deny` are denied, on those that
// end with `none` it has no opinion, and all others are allowed. With verbs
// that begin with `err` something goes wrong beside that.
type clerk struct {
	asked []question
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (c *clerk) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name := a.GetUser().GetName()
	if name == request.GetUserInfo().GetName() {
		name = ""
	}
	verb := a.GetVerb()
	c.asked = append(c.asked, question{
		User: name, Verb: verb, Path: a.GetPath(),
		Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	})
	var err error
	if strings.HasPrefix(verb, "err") {
		err = errors.New("broken: " + verb)
	}
	switch {
	case strings.HasSuffix(verb, "deny"):
		return authorizer.DecisionDeny, "denied it", err
	case strings.HasSuffix(verb, "none"):
		return authorizer.DecisionNoOpinion, "", err
	}
	return authorizer.DecisionAllow, "allowed " + verb, err
}
