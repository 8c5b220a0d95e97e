package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// names holds the names of networks, whose packages are not imported here. The program registers
// them, so that Check knows every name before data is read.
var names struct {
	sync.RWMutex
	models []modelName
}

// modelName is a name of the key model, and the keys that only some networks have and this one has.
type modelName struct {
	name string
	keys []string
}

// RegisterModel adds a name that the key model can have. The keys are those that only some networks
// have a use for, such as hidden: Check refuses them for networks that do not register them. As
// long as no network is registered, Check accepts every name.
func RegisterModel(name string, keys ...string) {
	names.Lock()
	defer names.Unlock()
	if slices.ContainsFunc(names.models, func(m modelName) bool { return m.name == name }) {
		panic(fmt.Sprintf("config: RegisterModel of %q: the name is taken", name))
	}
	names.models = append(names.models, modelName{name, keys})
}

// checkModel accepts the registered names.
func checkModel(key string, value any) error {
	names.RLock()
	defer names.RUnlock()
	if len(names.models) == 0 {
		return nil
	}
	var all []string
	for _, m := range names.models {
		all = append(all, m.name)
	}
	return oneOf(all...)(key, value)
}

// checkModelKeys refuses keys that the network has no use for. A key with its default value is
// accepted, because it may not have been given at all.
func (c Config) checkModelKeys() error {
	names.RLock()
	defer names.RUnlock()
	at := slices.IndexFunc(names.models, func(m modelName) bool { return m.name == c.Model })
	if at < 0 {
		return nil
	}
	base := Default()
	fields, defaults := c.Fields(), base.Fields()
	for i, f := range fields {
		var with []string
		for _, m := range names.models {
			if slices.Contains(m.keys, f.Key) {
				with = append(with, m.name)
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
