package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldError is a validation error in the form of the conformance vectors.
type fieldError struct {
	Type     string `json:"type"`
	Field    string `json:"field"`
	BadValue any    `json:"badValue,omitempty"`
	Detail   string `json:"detail"`
	Message  string `json:"message"`
}

func fieldErrors(list field.ErrorList) []fieldError {
	var result []fieldError
	for _, err := range list {
		badValue := err.BadValue
		if badValue == "" || err.Type == field.ErrorTypeInternal {
			badValue = nil // Nothing was given, or it is the error itself.
		}
		result = append(result, fieldError{
			Type:     strings.TrimPrefix(string(err.Type), "FieldValue"),
			Field:    err.Field,
			BadValue: badValue,
			Detail:   err.Detail,
			Message:  err.Error(),
		})
	}
	return result
}
