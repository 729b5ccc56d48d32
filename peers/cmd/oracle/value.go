package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// renderedValue is a CEL value for people and for comparison as text.
type renderedValue struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func render(value ref.Val) *renderedValue {
	return &renderedValue{Kind: value.Type().TypeName(), Text: renderText(value)}
}

// renderText writes a value much as CEL source would: strings are quoted,
// unsigned numbers have their suffix, and doubles that are whole have a point.
// Map entries are sorted, since maps have no order of their own.
func renderText(value ref.Val) string {
	switch v := value.(type) {
	case types.Bool, types.Int:
		return fmt.Sprint(v.Value())
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10) + "u"
	case types.Double:
		return renderDouble(float64(v))
	case types.String:
		return strconv.Quote(string(v))
	case types.Bytes:
		return "b" + strconv.Quote(string(v))
	case types.Null:
		return "null"
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		return v.Duration.String()
	case *types.Type:
		return v.TypeName()
	case *types.Optional:
		if !v.HasValue() {
			return "optional.none()"
		}
		return "optional.of(" + renderText(v.GetValue()) + ")"
	case traits.Mapper:
		return renderMap(v)
	case traits.Lister:
		return renderList(v)
	default:
		return renderOpaque(v)
	}
}

// renderOpaque writes a value of the Kubernetes libraries: a URL, a quantity
// and so on. They know their own text, except for formats, which would show
// the address of a function.
func renderOpaque(value ref.Val) string {
	if format, ok := value.Value().(apiservercel.Format); ok {
		return format.Name
	}
	return fmt.Sprint(value.Value())
}

func renderDouble(number float64) string {
	text := strconv.FormatFloat(number, 'g', -1, 64)
	if strings.ContainsAny(text, ".eIN") {
		return text
	}
	return text + ".0"
}

func renderList(list traits.Lister) string {
	var parts []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		parts = append(parts, renderText(it.Next()))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func renderMap(entries traits.Mapper) string {
	var parts []string
	for it := entries.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		parts = append(parts, renderText(key)+": "+renderText(entries.Get(key)))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}
