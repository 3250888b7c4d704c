package counters

import (
	"fmt"
	"reflect"
)

var counterType = reflect.TypeFor[uint64]()

// Add adds the counters of src to those of dst.
func Add[T any](dst, src *T) { addValue(reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()) }

func addValue(dst, src reflect.Value) {
	switch {
	case dst.Type() == counterType:
		dst.SetUint(dst.Uint() + src.Uint())
	case dst.Kind() == reflect.Struct:
		for i := range dst.NumField() {
			addValue(dst.Field(i), src.Field(i))
		}
	case dst.Kind() == reflect.Array:
		for i := range dst.Len() {
			addValue(dst.Index(i), src.Index(i))
		}
	}
}

// Each calls f for every counter of a struct, in the order of its fields. The name is that of the
// field, after those of the structs around it unless it is embedded. An element of an array has its
// index, as in Faults[3].
func Each[T any](stats T, f func(name string, value uint64)) {
	eachValue("", reflect.ValueOf(stats), f)
}

func eachValue(name string, v reflect.Value, f func(string, uint64)) {
	switch {
	case v.Type() == counterType:
		f(name, v.Uint())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			inner := name
			if field := v.Type().Field(i); !field.Anonymous {
				if inner != "" {
					inner += "."
				}
				inner += field.Name
			}
			eachValue(inner, v.Field(i), f)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			eachValue(fmt.Sprintf("%s[%d]", name, i), v.Index(i), f)
		}
	}
}
