package main

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// tagged is a value that says what it is: an object of one member, whose name
// is the kind.
type tagged map[string]any

// encodeValue writes a value of the kinds that expressions here have. Of those
// that have to do with authorization only the type can be told.
func encodeValue(value ref.Val) (tagged, error) {
	switch v := value.(type) {
	case types.Bool:
		return tagged{"bool": bool(v)}, nil
	case types.Int:
		return tagged{"int": strconv.FormatInt(int64(v), 10)}, nil
	case types.String:
		return tagged{"string": string(v)}, nil
	case *types.Type:
		return tagged{"type": v.TypeName()}, nil
	case *types.Optional:
		if !v.HasValue() {
			return tagged{"optional": []tagged{}}, nil
		}
		inner, err := encodeValue(v.GetValue())
		return tagged{"optional": []tagged{inner}}, err
	case traits.Mapper:
		return encodeMap(v)
	case traits.Lister:
		elements := []tagged{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			element, err := encodeValue(it.Next())
			if err != nil {
				return nil, err
			}
			elements = append(elements, element)
		}
		return tagged{"list": elements}, nil
	}
	name := value.Type().TypeName()
	switch name {
	case "kubernetes.authorization.Authorizer", "kubernetes.authorization.PathCheck",
		"kubernetes.authorization.GroupCheck", "kubernetes.authorization.ResourceCheck",
		"kubernetes.authorization.Decision":
		return tagged{"object": name}, nil
	}
	return nil, fmt.Errorf("value of type %s, which no expression had so far", name)
}

// encodeMap takes maps of at most one entry, whose order is known.
func encodeMap(m traits.Mapper) (tagged, error) {
	if m.Size() != types.IntZero && m.Size() != types.IntOne {
		return nil, fmt.Errorf("a map of %v entries", m.Size())
	}
	entries := [][]tagged{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		encodedKey, err := encodeValue(key)
		if err != nil {
			return nil, err
		}
		encoded, err := encodeValue(m.Get(key))
		if err != nil {
			return nil, err
		}
		entries = append(entries, []tagged{encodedKey, encoded})
	}
	return tagged{"map": entries}, nil
}
