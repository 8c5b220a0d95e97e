package kernels

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"fspda/cuda/nvrtc"
)

//go:embed src
var sources embed.FS

// units returns the source files that are compiled to cubins.
func units() []string {
	var all []string
	for _, k := range All() {
		if !slices.Contains(all, k.Unit) {
			all = append(all, k.Unit)
		}
	}
	return all
}

// options of every compilation: no implicit fusing of products and sums; IEEE division, square
// roots and denormals.
var options = []string{"--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
	"--ptxas-options=-v"}

// Sources returns the inputs of the cubins for an architecture, such as "sm_90", one per unit.
func Sources(arch string) []nvrtc.Source {
	headers := map[string]string{}
	for name, text := range Files() {
		if strings.HasSuffix(name, ".cuh") {
			headers[name] = text
		}
	}
	var all []nvrtc.Source
	for _, u := range units() {
		all = append(all, nvrtc.Source{Name: u, Text: Files()[u], Headers: headers, Arch: arch, Options: options})
	}
	return all
}

// Files returns the text of every source file by name, including generated ones.
func Files() map[string]string {
	all := map[string]string{}
	entries, err := sources.ReadDir("src")
	for _, e := range entries {
		var text []byte
		if text, err = sources.ReadFile(path.Join("src", e.Name())); err != nil {
			break
		}
		all[e.Name()] = string(text)
	}
	all["commands.cuh"] = commandsHeader()
	if err != nil {
		panic("kernels: reading the embedded sources: " + err.Error())
	}
	return all
}

// Digest returns a short hash of some units and of all headers: results of measuring their kernels
// hold for these sources only.
func Digest(units ...string) string {
	files, hash := Files(), sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".cuh") || slices.Contains(units, name) {
			fmt.Fprintf(hash, "%s %d\n%s", name, len(files[name]), files[name])
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:4])
}

// Compile compiles all units for an architecture in parallel, or takes them from a cache, which may
// be nil.
func Compile(by nvrtc.Compiler, cache *nvrtc.Cache, arch string) (map[string]nvrtc.Binary, error) {
	all := Sources(arch)
	made, errs := make([]nvrtc.Binary, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	for i, s := range all {
		wait.Go(func() {
			if cache != nil {
				made[i], errs[i] = cache.Compile(by, s)
			} else {
				made[i], errs[i] = by.Compile(s)
			}
		})
	}
	wait.Wait()
	units := map[string]nvrtc.Binary{}
	for i, s := range all {
		if errs[i] != nil {
			return nil, fmt.Errorf("kernels: %w", errs[i])
		}
		units[s.Name] = made[i]
	}
	return units, nil
}
