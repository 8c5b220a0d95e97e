package external

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryOf returns the bytes of memory that processes have for themselves: not the ones shared with
// other processes, such as vectors and files. A process is one of a group, or has the number itself.
func memoryOf(of func(pid, group int) bool) (bytes uint64) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range all {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, group := numbers(stat)
		if of(pid, group) {
			bytes += anonymous(filepath.Join(filepath.Dir(path), "status"))
		}
	}
	return bytes
}

// numbers returns the number of a process and of its group from its file stat.
func numbers(stat []byte) (pid, group int) {
	at := bytes.LastIndexByte(stat, ')') // the name before may have spaces
	if at < 0 {
		return 0, 0
	}
	var state string
	var parent int
	_, _ = fmt.Sscan(string(stat[at+1:]), &state, &parent, &group) // A damaged line leaves group 0.
	pid, _ = strconv.Atoi(strings.Fields(string(stat))[0])
	return pid, group
}

// anonymous returns the line RssAnon of a file status, in bytes.
func anonymous(path string) uint64 {
	status, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, _ := strconv.ParseUint(strings.Fields(rest + " 0")[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
