//go:build !noasm && !fspda_noasm

package isa

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The processor and Linux say the same of the first-level cache, and of the vendor.
func TestCache(t *testing.T) {
	vendor, bytes := Cache()
	t.Logf("%s, %d bytes", vendor, bytes)
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil && !strings.Contains(string(info), vendor) {
		t.Errorf("the vendor is %q, which /proc/cpuinfo does not name", vendor)
	}
	for _, index := range []string{"index0", "index1"} {
		folder := "/sys/devices/system/cpu/cpu0/cache/" + index + "/"
		kind, _ := os.ReadFile(folder + "type")
		size, err := os.ReadFile(folder + "size")
		if err != nil || strings.TrimSpace(string(kind)) != "Data" {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(size)), "K"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes != kib<<10 && bytes != 0 {
			t.Errorf("the first-level cache has %d bytes, want %d KiB", bytes, kib)
		}
	}
}
