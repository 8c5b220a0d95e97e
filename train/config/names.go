package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// ModelName is a value of the key model, with the keys that only some networks use and this one
// does, such as hidden: Check refuses them for networks that do not list them.
type ModelName struct {
	Name string
	Keys []string
}

// models lists the networks, whose packages are not imported here; nil: every name is accepted.
var models atomic.Pointer[func() []ModelName]

// SetModels sets the function that lists the values of the key model. The program calls it once, so
// that Check knows every name before data is read. Networks that are registered later are included.
func SetModels(list func() []ModelName) { models.Store(&list) }

func modelNames() []ModelName {
	if list := models.Load(); list != nil {
		return (*list)()
	}
	return nil
}

// checkModel accepts the listed names.
func checkModel(key string, value any) error {
	known := modelNames()
	if known == nil {
		return nil
	}
	var all []string
	for _, m := range known {
		all = append(all, m.Name)
	}
	return oneOf(all...)(key, value)
}

// checkModelKeys refuses keys that the network has no use for. A key with its default value is
// accepted, because it may not have been given at all.
func (c Config) checkModelKeys() error {
	known := modelNames()
	at := slices.IndexFunc(known, func(m ModelName) bool { return m.Name == c.Model })
	if at < 0 {
		return nil
	}
	base := Default()
	fields, defaults := c.Fields(), base.Fields()
	for i, f := range fields {
		var with []string
		for _, m := range known {
			if slices.Contains(m.Keys, f.Key) {
				with = append(with, m.Name)
			}
		}
		if len(with) == 0 || slices.Contains(with, c.Model) || reflect.DeepEqual(f.Value, defaults[i].Value) {
			continue
		}
		return Invalid(f.Key, reflect.ValueOf(f.Value).Elem().Interface(),
			"only %s has this setting: leave it out, or use %[1]s in place of %s", strings.Join(with, ", "), c.Model)
	}
	return nil
}

// checkDevice accepts auto, cpu, cuda, and cuda with numbers of GPUs. The devices need not exist.
func checkDevice(key string, value any) error {
	got := *value.(*string)
	kind, numbers, numbered := strings.Cut(got, ":")
	ok := numbered && kind == "cuda" || !numbered && slices.Contains([]string{"auto", "cpu", "cuda"}, kind)
	if numbered {
		seen := map[uint64]bool{}
		for n := range strings.SplitSeq(numbers, ",") {
			i, err := strconv.ParseUint(n, 10, 16)
			ok = ok && err == nil && !seen[i]
			seen[i] = true
		}
	}
	if !ok {
		return Invalid(key, fmt.Sprintf("%q", got),
			"expected auto, cpu, cuda, cuda:N with N from 0 on, or several as in cuda:0,1")
	}
	return nil
}
