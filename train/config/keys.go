package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"fspda/train/algo"
	"fspda/train/setting"
)

// init sets these variables, since conditions of keys ask about other keys.
var (
	own     []setting.Key        // The keys of this package in the order of files.
	places  = map[string]int{}   // Their places in own.
	fields  = map[string][]int{} // The places of their values in a Config.
	settled = map[string][]int{} // The places of their values in a Resolved, but for keys of files and devices.
	base    Config               // The defaults.
)

// registeredKeys lists the keys of other packages. Their values are Config.values.
var registeredKeys []setting.Key

func init() {
	own = slices.Concat(dataKeys, decodingKeys, networkKeys, lengthKeys, dualKeys, averagingKeys, compressionKeys,
		asyncKeys, stepKeys, scheduleKeys, exchangeKeys, batchKeys, deviceKeys, computeKeys, evaluationKeys,
		outputKeys, executionKeys, membershipKeys)
	for of, places := range map[reflect.Type]map[string][]int{reflect.TypeFor[Config](): fields,
		reflect.TypeFor[Resolved](): settled} {
		for _, f := range reflect.VisibleFields(of) {
			if key, ok := f.Tag.Lookup("key"); ok {
				places[key] = f.Index
			}
		}
	}
	for i, k := range own {
		if k.Help == "" {
			k = declaredByMethod(k)
			own[i] = k
		}
		places[k.Name] = i
		if fields[k.Name] == nil {
			panic(fmt.Sprintf("config: no field of Config has the tag key:%q", k.Name))
		}
		v := reflect.ValueOf(&base).Elem().FieldByIndex(fields[k.Name])
		v.Set(reflect.ValueOf(k.Initial()).Convert(v.Type()))
	}
	builtin = prepareAll(algo.Methods())
	methods = slices.Clone(builtin)
}

// declaredByMethod returns the declaration of a key, which is in the file of a method that reads
// it, with the conditions of k.
func declaredByMethod(k setting.Key) setting.Key {
	for _, m := range algo.Methods() {
		for _, d := range m.Keys {
			if d.Name == k.Name && d.Help != "" {
				d.Needs = slices.Concat(d.Needs, k.Needs)
				return d
			}
		}
	}
	panic(fmt.Sprintf("config: no method declares the key %q", k.Name))
}

// RegisterKey adds a key of another package to every configuration: to flags, files, help and
// reference. Call it before the first run, for instance in an init function. [Config.Value] and
// [Setup.Value] return its value. A key that only some methods read is among their Keys. It panics
// if the name is taken or the declaration has a fault.
func RegisterKey(k setting.Key) {
	err := setting.Fault([]setting.Key{k})
	switch _, taken := Lookup(k.Name); {
	case taken:
		err = errors.New("the name is taken")
	case !slices.Contains(Groups(), k.Topic):
		err = fmt.Errorf("topic %q is none of %q", k.Topic, Groups())
	}
	if err != nil {
		panic(fmt.Sprintf("config: RegisterKey of %q: %v", k.Name, err))
	}
	registry.Lock()
	defer registry.Unlock()
	registeredKeys = append(registeredKeys, k)
}

// declared lists all keys in the order of files. Callers do not change the list.
func declared() []setting.Key {
	registry.RLock()
	defer registry.RUnlock()
	return append(own[:len(own):len(own)], registeredKeys...)
}

// Lookup returns the declaration of a key, and whether it exists.
func Lookup(key string) (setting.Key, bool) {
	if at, ok := places[key]; ok {
		return own[at], true
	}
	registry.RLock()
	defer registry.RUnlock()
	for _, k := range registeredKeys {
		if k.Name == key {
			return k, true
		}
	}
	return setting.Key{}, false
}

// Keys lists the keys of a configuration file.
func Keys() (names []string) {
	for _, k := range declared() {
		names = append(names, k.Name)
	}
	return names
}

// Default returns the configuration of the default job: FSPDA-SA trains an MLP on drawn digits,
// over ten agents that hold different classes.
func Default() Config {
	c := base
	c.Hidden = slices.Clone(c.Hidden)
	return c
}

// Value returns the value of a key. It panics if there is no such key.
func (c Config) Value(key string) any {
	if at := fields[key]; at != nil {
		return reflect.ValueOf(c).FieldByIndex(at).Interface()
	}
	if v, ok := c.values[key]; ok {
		return v
	}
	k, ok := Lookup(key)
	if !ok {
		panic(fmt.Sprintf("config: there is no key %q", key))
	}
	return k.Initial()
}

// Value returns the value of a key, as [Config.Resolve] has resolved it. It panics if there is no
// such key.
func (s *Setup) Value(key string) any { return s.Config.Stored().Value(key) }
