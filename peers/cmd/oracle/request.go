package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var requestInfoFactory = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// requestAnswer has the form of `expect` in the request-attributes vectors.
type requestAnswer struct {
	HTTPError        string       `json:"httpError,omitempty"`
	RequestInfoError string       `json:"requestInfoError,omitempty"`
	RequestInfo      *requestInfo `json:"requestInfo,omitempty"`
	Attributes       *attributes  `json:"attributes,omitempty"`
}

type requestInfo struct {
	IsResourceRequest bool     `json:"isResourceRequest"`
	Path              string   `json:"path"`
	Verb              string   `json:"verb"`
	APIPrefix         string   `json:"apiPrefix"`
	APIGroup          string   `json:"apiGroup"`
	APIVersion        string   `json:"apiVersion"`
	Namespace         string   `json:"namespace"`
	Resource          string   `json:"resource"`
	Subresource       string   `json:"subresource"`
	Name              string   `json:"name"`
	Parts             []string `json:"parts,omitempty"`
	FieldSelector     string   `json:"fieldSelector,omitempty"`
	LabelSelector     string   `json:"labelSelector,omitempty"`
}

type attributes struct {
	Verb               string             `json:"verb"`
	ReadOnly           bool               `json:"readOnly"`
	Namespace          string             `json:"namespace"`
	APIGroup           string             `json:"apiGroup"`
	APIVersion         string             `json:"apiVersion"`
	Resource           string             `json:"resource"`
	Subresource        string             `json:"subresource"`
	Name               string             `json:"name"`
	ResourceRequest    bool               `json:"resourceRequest"`
	Path               string             `json:"path"`
	FieldSelector      []fieldRequirement `json:"fieldSelector,omitempty"`
	FieldSelectorError string             `json:"fieldSelectorError,omitempty"`
	LabelSelector      []labelRequirement `json:"labelSelector,omitempty"`
	LabelSelectorError string             `json:"labelSelectorError,omitempty"`
}

type fieldRequirement struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
}

type labelRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// requestAttributes reads an HTTP request line as the server does and tells
// what an authorizer would be asked about it.
func requestAttributes(line []byte) (any, error) {
	var input struct {
		Method string `json:"method"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(line, &input); err != nil {
		return nil, err
	}
	head := input.Method + " " + input.Target + " HTTP/1.1"
	if strings.ContainsAny(head, "\r\n") {
		return nil, errors.New("a request line has no line break")
	}
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\nHost: peer.test\r\n\r\n")))
	if err != nil {
		return requestAnswer{HTTPError: err.Error()}, nil
	}
	info, err := requestInfoFactory.NewRequestInfo(req)
	result := requestAnswer{RequestInfo: describeInfo(info)}
	if err != nil {
		result.RequestInfoError = err.Error()
		return result, nil
	}
	attribs, err := filters.GetAuthorizerAttributes(request.WithRequestInfo(req.Context(), info))
	if err != nil {
		return nil, err
	}
	result.Attributes = describeAttributes(attribs)
	return result, nil
}

func describeInfo(info *request.RequestInfo) *requestInfo {
	return &requestInfo{
		IsResourceRequest: info.IsResourceRequest,
		Path:              info.Path,
		Verb:              info.Verb,
		APIPrefix:         info.APIPrefix,
		APIGroup:          info.APIGroup,
		APIVersion:        info.APIVersion,
		Namespace:         info.Namespace,
		Resource:          info.Resource,
		Subresource:       info.Subresource,
		Name:              info.Name,
		Parts:             info.Parts,
		FieldSelector:     info.FieldSelector,
		LabelSelector:     info.LabelSelector,
	}
}

func describeAttributes(attribs authorizer.Attributes) *attributes {
	result := &attributes{
		Verb:            attribs.GetVerb(),
		ReadOnly:        attribs.IsReadOnly(),
		Namespace:       attribs.GetNamespace(),
		APIGroup:        attribs.GetAPIGroup(),
		APIVersion:      attribs.GetAPIVersion(),
		Resource:        attribs.GetResource(),
		Subresource:     attribs.GetSubresource(),
		Name:            attribs.GetName(),
		ResourceRequest: attribs.IsResourceRequest(),
		Path:            attribs.GetPath(),
	}
	fieldSelector, err := attribs.GetFieldSelector()
	if err != nil {
		result.FieldSelectorError = err.Error()
	}
	for _, requirement := range fieldSelector {
		result.FieldSelector = append(result.FieldSelector, fieldRequirement{
			Field:    requirement.Field,
			Operator: string(requirement.Operator),
			Value:    requirement.Value,
		})
	}
	labelSelector, err := attribs.GetLabelSelector()
	if err != nil {
		result.LabelSelectorError = err.Error()
	}
	for _, requirement := range labelSelector {
		result.LabelSelector = append(result.LabelSelector, labelRequirement{
			Key:      requirement.Key(),
			Operator: string(requirement.Operator()),
			Values:   requirement.Values().List(),
		})
	}
	return result
}
