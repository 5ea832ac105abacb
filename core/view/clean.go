package view

import (
	"encoding/json"
	"reflect"
	"time"
)

// clean makes every text in what v points to safe to be shown (Shown), so that none is forgotten: whatever an agent, a file or
// a name holds.
func clean(v any) { cleanValue(reflect.ValueOf(v)) }

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			if s := v.String(); s != "" {
				if c := Shown(s); c != s {
					v.SetString(c)
				}
			}
		}
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cleanValue(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type() == rawType || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String || v.IsNil() {
			return
		}
		old := reflect.MakeMap(v.Type())
		for it := v.MapRange(); it.Next(); {
			old.SetMapIndex(it.Key(), it.Value())
		}
		v.Clear()
		for it := old.MapRange(); it.Next(); {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(it.Value())
			cleanValue(value)
			v.SetMapIndex(reflect.ValueOf(Shown(it.Key().String())).Convert(v.Type().Key()), value)
		}
	}
}
