package cgroup

import (
	"testing"
	"testing/fstest"
)

// tree is files of a system by path, as they were recorded.
type tree map[string]string

func (t tree) files() fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range t {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const (
	second = "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	first  = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	none1 = "9223372036854771712\n"
	gb    = 1 << 30
)

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		tree
		memory     Memory
		processors int // of 16
		kills      uint64
	}{
		"no control groups": {tree{}, Memory{}, 16, 0},
		"version 2, no limit": {tree{
			"proc/self/mountinfo": second, "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n",
			"sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/memory.max":     "max\n",
			"sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/memory.current": "104857600\n",
			"sys/fs/cgroup/user.slice/cpu.max":                                        "max 100000\n",
		}, Memory{}, 16, 0},
		"version 2, a container with a namespace": {tree{
			"proc/self/mountinfo": second, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "2147483648\n", "sys/fs/cgroup/memory.current": "1073741824\n",
			"sys/fs/cgroup/memory.stat":   "anon 500\nfile 9\ninactive_file 268435456\nactive_file 268435456\n",
			"sys/fs/cgroup/cpu.max":       "150000 100000\n",
			"sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
		}, Memory{2 * gb, gb + gb/2}, 2, 2},
		"version 2, nested: the least of all levels": {tree{
			"proc/self/mountinfo": second, "proc/self/cgroup": "0::/kubepods/pod1/main\n",
			"sys/fs/cgroup/kubepods/memory.max":               "8589934592\n",
			"sys/fs/cgroup/kubepods/memory.current":           "7516192768\n",
			"sys/fs/cgroup/kubepods/pod1/memory.max":          "4294967296\n",
			"sys/fs/cgroup/kubepods/pod1/memory.current":      "1073741824\n",
			"sys/fs/cgroup/kubepods/pod1/main/memory.max":     "max\n",
			"sys/fs/cgroup/kubepods/pod1/main/memory.current": "1000\n",
			"sys/fs/cgroup/kubepods/cpu.max":                  "350000 100000\n",
			"sys/fs/cgroup/kubepods/pod1/cpu.max":             "max 100000\n",
			"sys/fs/cgroup/kubepods/pod1/main/cpu.max":        "1000000 100000\n",
			"sys/fs/cgroup/kubepods/pod1/main/memory.events":  "oom_kill 1\n",
		}, Memory{8 * gb, gb}, 4, 1},
		"version 1": {tree{
			"proc/self/mountinfo": first, "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes":  "1073741824\n",
			"sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes":  "536870912\n",
			"sys/fs/cgroup/memory/docker/abc/memory.stat":            "inactive_file 7\ntotal_inactive_file 1024\n",
			"sys/fs/cgroup/memory/docker/memory.limit_in_bytes":      none1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":             none1,
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us":  "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":             "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":            "100000\n",
			"sys/fs/cgroup/memory/docker/abc/memory.oom_control":     "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
		}, Memory{gb, gb/2 + 1024}, 1, 4},
		"version 1, a container without a namespace: its group is the top of the mount": {tree{
			"proc/self/mountinfo": "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
				"32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro,relatime - cgroup cgroup rw,cpu,cpuacct\n",
			"proc/self/cgroup":                           "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc/sub\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "2147483648\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "200001\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
			"sys/fs/cgroup/cpu/sub/cpu.cfs_quota_us":     "-1\n",
			"sys/fs/cgroup/cpu/sub/cpu.cfs_period_us":    "100000\n",
		}, Memory{gb, 0}, 3, 0},
		"a path above the top of the mount": {tree{
			"proc/self/mountinfo": second, "proc/self/cgroup": "0::/../../other\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, Memory{gb, gb}, 16, 0},
		"a group whose name begins as the top of the mount does": {tree{
			"proc/self/mountinfo":        "29 23 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":           "0::/ab\n",
			"sys/fs/cgroup/memory.max":   "1073741824\n",
			"sys/fs/cgroup/b/memory.max": "1\n",
		}, Memory{gb, gb}, 16, 0},
		"both versions: memory is of version 1, processors of version 2": {tree{
			"proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup": "4:memory:/a\n1:name=systemd:/x\n0::/b\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/unified/b/memory.max":           "1\n",
			"sys/fs/cgroup/unified/b/cpu.max":              "700000 100000\n",
		}, Memory{gb, gb}, 7, 0},
		"a mount with a blank": {tree{
			"proc/self/mountinfo":          `29 23 0:26 / /mnt/my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"proc/self/cgroup":             "0::/x:y\n",
			"mnt/my groups/x:y/memory.max": "1073741824\n",
			"mnt/my groups/x:y/cpu.max":    "800000\n",
		}, Memory{gb, gb}, 16, 0},
		"more processors than there are": {tree{
			"proc/self/mountinfo": second, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9e99 100000\n",
		}, Memory{}, 16, 0},
		"damaged": {tree{
			"proc/self/mountinfo":      "- cgroup2\n29 23 - cgroup2 cgroup2 rw\n" + second,
			"proc/self/cgroup":         "0\n::\n0::/\n",
			"sys/fs/cgroup/memory.max": "a lot\n", "sys/fs/cgroup/cpu.max": "0 0\n",
			"sys/fs/cgroup/memory.events": "oom_kill\n",
		}, Memory{}, 16, 0},
	} {
		files := c.files()
		m, ok := readMemory(files)
		if m != c.memory || ok != (c.memory.Limit > 0) {
			t.Errorf("%s: memory %+v, %v, want %+v", name, m, ok, c.memory)
		}
		if n := processors(files, 16); n != c.processors {
			t.Errorf("%s: %d processors, want %d", name, n, c.processors)
		}
		if n := readKills(files); n != c.kills {
			t.Errorf("%s: %d kills, want %d", name, n, c.kills)
		}
	}
}

// This process has at least one processor.
func TestOwn(t *testing.T) {
	if n := Processors(); n < 1 {
		t.Errorf("%d processors", n)
	}
	if m, ok := OwnMemory(); ok && m.Free > m.Limit {
		t.Errorf("%+v", m)
	}
}
