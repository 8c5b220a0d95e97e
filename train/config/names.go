package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"fspda/train/setting"
)

// ModelName is a value of the key model, with the keys that only some networks use and this one
// does, such as hidden: set explicitly, they are refused for networks that do not list them.
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

// modelList lists the names of networks; nil: every name is accepted.
func modelList() (names []string) {
	for _, m := range modelNames() {
		names = append(names, m.Name)
	}
	return names
}

// modelsWith lists the networks that list a key.
func modelsWith(key string) (names []string) {
	for _, m := range modelNames() {
		if slices.Contains(m.Keys, key) {
			names = append(names, m.Name)
		}
	}
	return names
}

// checkDevice accepts auto, cpu, cuda, and cuda with numbers of GPUs. The devices need not exist.
func checkDevice(key string, value any) error {
	got := value.(string)
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
	if kind == "gpu" {
		return Invalid(key, fmt.Sprintf("%q", got), "did you mean cuda%s? a GPU is called cuda here", got[len(kind):])
	}
	if !ok {
		return Invalid(key, fmt.Sprintf("%q", got),
			"%sexpected auto, cpu, cuda, cuda:N with N from 0 on, or several as in cuda:0,1",
			setting.Suggestion(kind, []string{"auto", "cpu", "cuda"}))
	}
	return nil
}
