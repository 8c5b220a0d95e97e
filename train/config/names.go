package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fspda/model"
	"fspda/train/setting"
)

// modelsWith lists the networks that list a key among those that only some networks read.
func modelsWith(key string) (names []string) {
	for _, k := range model.Networks() {
		if slices.Contains(k.Keys, key) {
			names = append(names, k.Name)
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
