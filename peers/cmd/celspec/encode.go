package main

import (
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// tagged is a value that says what it is: an object of one member, whose name
// is the kind. Numbers are texts, since JSON readers round large ones.
type tagged map[string]any

// encodeValue writes a value of the kinds that the tests have.
func encodeValue(value ref.Val) (tagged, error) {
	switch v := value.(type) {
	case types.Null:
		return tagged{"null": true}, nil
	case types.Bool:
		return tagged{"bool": bool(v)}, nil
	case types.Int:
		return tagged{"int": strconv.FormatInt(int64(v), 10)}, nil
	case types.Uint:
		return tagged{"uint": strconv.FormatUint(uint64(v), 10)}, nil
	case types.Double:
		return tagged{"double": strconv.FormatFloat(float64(v), 'g', -1, 64)}, nil
	case types.String:
		return tagged{"string": string(v)}, nil
	case types.Bytes:
		return tagged{"bytes": hex.EncodeToString(v)}, nil
	case types.Duration:
		return tagged{"duration": strconv.FormatInt(v.Nanoseconds(), 10)}, nil
	case *types.Type:
		return tagged{"type": v.TypeName()}, nil
	case traits.Mapper:
		return encodeMap(v)
	case traits.Lister:
		return encodeList(v)
	default:
		return nil, fmt.Errorf("value of type %s, which no test had so far", value.Type().TypeName())
	}
}

func encodeList(list traits.Lister) (tagged, error) {
	elements := []tagged{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element, err := encodeValue(it.Next())
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return tagged{"list": elements}, nil
}

// encodeMap sorts the entries, so that the same map has the same text.
func encodeMap(mapper traits.Mapper) (tagged, error) {
	entries := [][2]tagged{}
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		encodedKey, err := encodeValue(key)
		if err != nil {
			return nil, err
		}
		encodedValue, err := encodeValue(mapper.Get(key))
		if err != nil {
			return nil, err
		}
		entries = append(entries, [2]tagged{encodedKey, encodedValue})
	}
	sort.Slice(entries, func(i, j int) bool { return fmt.Sprint(entries[i][0]) < fmt.Sprint(entries[j][0]) })
	return tagged{"map": entries}, nil
}
