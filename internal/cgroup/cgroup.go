// Package cgroup reads the limits of the control group of this process, which containers and batch
// systems set: memory, and time on processors. A limit of any group above counts too. Versions 1
// and 2 are read, and both beside each other. Where there are none, it knows of no limit.
package cgroup

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Memory is the memory that a control group may still take.
type Memory struct {
	Limit uint64
	Free  uint64 // The rest of the limit, with the pages of files that are given up when needed.
}

// OwnMemory returns the memory of the group of this process whose rest is the smallest; false: none
// has a limit.
func OwnMemory() (Memory, bool) { return readMemory(os.DirFS("/")) }

// Processors returns the number of processors that this process can keep busy: as many as it may
// run on, or the limit of its group in processors, rounded up.
var Processors = sync.OnceValue(func() int {
	return processors(os.DirFS("/"), runtime.NumCPU())
})

// OutOfMemory returns how often a process of the group was killed for lack of memory.
func OutOfMemory() uint64 { return readKills(os.DirFS("/")) }

// group is a control group and those above it, the lowest first, as folders of their files.
type group struct {
	folders []string
	second  bool // The files have the names of version 2.
}

// own finds the group of this process for a controller of version 1, or of version 2 if version 1
// does not have the controller.
func own(root fs.FS, controller string) group {
	paths := map[string]string{} // groups by controller; version 2 names none
	for line := range lines(root, "proc/self/cgroup") {
		if f := strings.SplitN(line, ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}
	var found group
	for line := range lines(root, "proc/self/mountinfo") {
		mount, kind, ok := strings.Cut(line, " - ")
		at, of := strings.Fields(mount), strings.Fields(kind)
		if !ok || len(at) < 5 || len(of) < 3 {
			continue
		}
		top, folder := unescape(at[3]), unescape(at[4])
		switch first, hasFirst := paths[controller]; {
		case of[0] == "cgroup" && hasFirst && has(of[2], controller):
			return group{folders: levels(first, top, folder)}
		case of[0] == "cgroup2" && found.folders == nil:
			if second, ok := paths[""]; ok {
				found = group{levels(second, top, folder), true}
			}
		}
	}
	return found
}

// has reports whether a comma separated list has a word.
func has(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// unescape replaces the octal numbers that stand for blanks and backslashes in mountinfo.
func unescape(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// levels lists the folders of a group and of those above it, within a mount that shows the group top
// and what is below it. A container may see a path that is not below top: it is then the top.
func levels(group, top, mount string) (folders []string) {
	rest, below := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(path.Clean(top), "/"))
	if !below || rest != "" && rest[0] != '/' || strings.HasPrefix(rest, "/..") {
		rest = ""
	}
	for ; ; rest = path.Dir(rest) {
		folders = append(folders, strings.TrimPrefix(path.Join(mount, rest), "/"))
		if rest == "" || rest == "/" || rest == "." {
			return folders
		}
	}
}

// readMemory returns the memory of the group with the least left.
func readMemory(root fs.FS) (least Memory, limited bool) {
	limitFile, usedFile, active, inactive := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
		"total_inactive_file"
	g := own(root, "memory")
	if g.second {
		limitFile, usedFile, active, inactive = "memory.max", "memory.current", "active_file", "inactive_file"
	}
	for _, folder := range g.folders {
		limit, ok := number(root, path.Join(folder, limitFile))
		if !ok || limit > math.MaxInt64-1<<20 { // version 1 has no word for no limit
			continue
		}
		used, _ := number(root, path.Join(folder, usedFile))
		stat := path.Join(folder, "memory.stat")
		used -= min(used, entry(root, stat, active)+entry(root, stat, inactive))
		if m := (Memory{limit, limit - min(limit, used)}); !limited || m.Free < least.Free {
			least, limited = m, true
		}
	}
	return least, limited
}

// processors returns how many of the processors that a process may run on its group may use.
func processors(root fs.FS, available int) int {
	g := own(root, "cpu")
	for _, folder := range g.folders {
		var quota, period string
		if g.second {
			quota, period, _ = strings.Cut(text(root, path.Join(folder, "cpu.max")), " ")
		} else {
			quota, period = text(root, path.Join(folder, "cpu.cfs_quota_us")), text(root, path.Join(folder,
				"cpu.cfs_period_us"))
		}
		q, err := strconv.ParseFloat(quota, 64) // "max" and -1 are no limit
		p, bad := strconv.ParseFloat(period, 64)
		if err == nil && bad == nil && q > 0 && p > 0 {
			available = min(available, int(math.Ceil(min(q/p, float64(available)))))
		}
	}
	return max(1, available)
}

func readKills(root fs.FS) uint64 {
	g, file := own(root, "memory"), "memory.oom_control"
	if g.second {
		file = "memory.events"
	}
	if len(g.folders) == 0 {
		return 0
	}
	return entry(root, path.Join(g.folders[0], file), "oom_kill")
}

// entry returns the number behind a name in a file of lines; 0: it is not there.
func entry(root fs.FS, file, name string) uint64 {
	for line := range lines(root, file) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n
		}
	}
	return 0
}

func number(root fs.FS, file string) (uint64, bool) {
	n, err := strconv.ParseUint(text(root, file), 10, 64)
	return n, err == nil
}

// text returns the content of a small file, empty if it cannot be read.
func text(root fs.FS, file string) string {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func lines(root fs.FS, file string) func(func(string) bool) {
	return strings.SplitSeq(text(root, file), "\n")
}
