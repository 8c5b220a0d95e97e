package cuda

import (
	"errors"
	"fmt"
	"strings"

	"fspda/cuda/compiler"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// Report is a machine's GPUs, driver and libraries.
type Report struct {
	Driver    string          `json:"driver,omitempty"`  // version of CUDA that it speaks
	Path      string          `json:"path,omitempty"`    // the path of its library
	Problem   string          `json:"problem,omitempty"` // why no GPU is used at all
	GPUs      []GPU           `json:"gpus"`
	Libraries []LibraryReport `json:"libraries,omitempty"` // found although no GPU can use them
}

// GPU is one GPU of a machine.
type GPU struct {
	Index      int               `json:"index"`
	Name       string            `json:"name"`
	Memory     uint64            `json:"memory_bytes"`
	Capability string            `json:"compute_capability"`
	CUDA       int               `json:"cuda,omitempty"` // major version of the libraries that fit
	Libraries  []LibraryReport   `json:"libraries"`
	Usable     bool              `json:"usable"`
	Problem    string            `json:"problem,omitempty"`
	Lacks      map[string]string `json:"lacks,omitempty"` // precisions, with the reason
}

// LibraryReport is the path of a library, or how to install it.
type LibraryReport struct {
	Name    string           `json:"name"`
	Path    string           `json:"path,omitempty"`
	Place   string           `json:"place,omitempty"`
	Missing string           `json:"missing,omitempty"` // how to install it
	Tried   []dynlib.Attempt `json:"tried,omitempty"`
}

// Find reports on this machine.
func Find() Report { return findOn(dynlib.System(), openDriver) }

// openDriver returns the functions of the driver, its path and its version.
func openDriver(f *dynlib.Finder) (*driver.API, string, int, error) {
	l, err := driver.Open(f)
	if l == nil {
		return nil, "", 0, err
	}
	return l.ForThread(), l.Path, l.Version, err
}

func findOn(f *dynlib.Finder, open func(*dynlib.Finder) (*driver.API, string, int, error)) Report {
	r := Report{GPUs: []GPU{}}
	api, path, version, err := open(f)
	n := 0
	if path != "" {
		r.Path, r.Driver = path, driver.VersionText(version)
	}
	if err == nil {
		n, err = api.Count()
	}
	if err == nil && n == 0 {
		err = driver.ErrNoDevice
	}
	if err != nil {
		r.Problem = err.Error()
		r.Libraries = orphanLibraries(f)
		return r
	}
	for i := range n {
		r.GPUs = append(r.GPUs, inspect(f, api, version, i))
	}
	return r
}

// orphanLibraries returns the libraries of some version of CUDA on a machine without a usable GPU.
func orphanLibraries(f *dynlib.Finder) []LibraryReport {
	var best toolkit
	for i, major := range []int{13, 12} {
		if t := findToolkit(f, major, 90); i == 0 || t.missing() < best.missing() {
			best = t
		}
	}
	var there []LibraryReport
	for _, l := range best.all() {
		if l.err == nil {
			there = append(there, l.report())
		}
	}
	return there
}

func inspect(f *dynlib.Finder, api *driver.API, version, i int) GPU {
	g := GPU{Index: i}
	var d driver.Device
	err := api.Check(api.DeviceGet(&d, int32(i)), "cuDeviceGet", "opening GPU %d", i)
	if err == nil {
		var p driver.Properties
		p, err = api.Describe(d)
		g.Name, g.Memory, g.Capability = p.Name, uint64(p.Memory), fmt.Sprintf("%d.%d", p.CC/10, p.CC%10)
		if err == nil {
			g.Lacks = lackedBy(p)
			var t toolkit
			t, err = bestToolkit(f, version, p.CC)
			g.CUDA = t.major
			for _, l := range t.all() {
				if l.library != nil {
					g.Libraries = append(g.Libraries, l.report())
				}
			}
		}
	}
	if g.Usable = err == nil; err != nil {
		g.Problem = err.Error()
	}
	return g
}

// lackedBy returns the precisions that a GPU does not support, with the reason.
func lackedBy(g driver.Properties) map[string]string {
	all := map[string]string{}
	for _, p := range compiler.Precisions() {
		if err := checkPrecision(p, g); err != nil {
			all[string(p)] = err.Error()
		}
	}
	return all
}

func (l found) report() LibraryReport {
	r := LibraryReport{Name: l.library.Name}
	var missing *dynlib.Error
	switch {
	case l.err == nil:
		r.Path, r.Place = l.handle.Path, l.handle.Origin
	case errors.As(l.err, &missing):
		r.Missing, r.Tried = missing.Hint, missing.Attempts
	default:
		r.Missing = l.err.Error()
	}
	return r
}

// Engine returns the choice of `--device auto`, "cuda:0" or "cpu", and the reason.
func (r Report) Engine() (name, why string) {
	for _, g := range r.GPUs {
		if g.Usable {
			return fmt.Sprintf("cuda:%d", g.Index), g.Name
		}
	}
	if len(r.GPUs) > 0 {
		return "cpu", r.GPUs[0].Problem
	}
	return "cpu", r.Problem
}

func (r Report) String() string {
	var s strings.Builder
	if r.Driver != "" {
		fmt.Fprintf(&s, "driver    CUDA %s (%s)\n", r.Driver, r.Path)
	}
	for _, g := range r.GPUs {
		fmt.Fprintf(&s, "cuda:%d    %s, %.3g GB, compute capability %s\n", g.Index, g.Name, float64(g.Memory)/1e9,
			g.Capability)
		writeLibraries(&s, g.Libraries)
	}
	if len(r.Libraries) > 0 {
		fmt.Fprintf(&s, "libraries that are here, for no GPU\n")
		writeLibraries(&s, r.Libraries)
	}
	name, why := r.Engine()
	fmt.Fprintf(&s, "engine    %s (%s)\n", name, strings.TrimPrefix(why, "cuda: "))
	return s.String()
}

func writeLibraries(s *strings.Builder, all []LibraryReport) {
	for _, l := range all {
		if l.Path != "" {
			fmt.Fprintf(s, "          %-9s %s, %s\n", l.Name, l.Path, l.Place)
			continue
		}
		fmt.Fprintf(s, "          %-9s missing: %s\n", l.Name, l.Missing)
		for _, a := range l.Tried {
			if strings.Contains(a.Path, "/") { // a name that the loader does not know says nothing
				fmt.Fprintf(s, "          %-9s not %s: %s\n", "", a.Path, a.Why)
			}
		}
	}
}
