package sharedmem_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"fspda/internal/sharedmem"
)

// Numbers that another process may read.
func Example() {
	f, err := sharedmem.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := f.Floats(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	v[1] = 2
	at, ok := f.Find(v)
	fmt.Println(v, at.Bytes, ok)
	// Output: [0 2 0] 12 true
}

// What one side writes the other reads, at the offset that Find returns.
func TestFileHasNumbers(t *testing.T) {
	f, err := sharedmem.Open()
	if err != nil {
		t.Skip(err)
	}
	file, err := os.OpenFile(fmt.Sprintf("/dev/fd/%d", f.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	for _, n := range []int{1, 1000, 1024, 5000, 1 << 20} {
		v, err := f.Floats(n)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			t.Fatalf("%d numbers are not all zero", n)
		}
		for i := range v {
			v[i] = float32(i + n)
		}
		at, ok := f.Find(v)
		if !ok {
			t.Fatalf("%d numbers are not in the file", n)
		}
		got := make([]float32, n)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&got[0])), 4*n)
		if _, err := file.ReadAt(bytes, at.Offset); err != nil || !slices.Equal(got, v) {
			t.Fatalf("%d numbers: the file has others, error %v", n, err)
		}
		got[0] = -1
		if _, err := file.WriteAt(bytes, at.Offset); err != nil || v[0] != -1 {
			t.Fatalf("the first of %d numbers is %v after a write to the file, error %v", n, v[0], err)
		}
		runtime.KeepAlive(v)
	}
	if _, ok := f.Find(make([]float32, 5)); ok {
		t.Error("ordinary numbers are in the file")
	}
}

// A part of freed numbers keeps them; without one their pages are used again, and hold zeros.
func TestFreedNumbersAreUsedAgain(t *testing.T) {
	f, err := sharedmem.Open()
	if err != nil {
		t.Skip(err)
	}
	const n = 1 << 16
	offsets := map[int64]bool{}
	v, err := f.Floats(n)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := f.Find(v)
	kept := at.Offset
	part := v[n-1:]
	part[0] = 7
	v = nil
	for range 50 {
		v, err := f.Floats(n)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := f.Find(v)
		if at.Offset == kept {
			t.Fatal("numbers in use were given out again")
		}
		if slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			t.Fatal("numbers used again are not zero")
		}
		for i := range v {
			v[i] = 1
		}
		offsets[at.Offset] = true
		runtime.GC()
		time.Sleep(time.Millisecond) // finalizers run in a goroutine of their own
	}
	if part[0] != 7 {
		t.Errorf("the number kept is %v, want 7", part[0])
	}
	if len(offsets) > 25 {
		t.Errorf("50 allocations took %d places, want freed ones used again", len(offsets))
	}
}
