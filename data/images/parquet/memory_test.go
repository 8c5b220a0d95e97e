package parquet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"fspda/data/images"
)

// TestMain lets the test binary read every row of a file in a process of its own.
func TestMain(m *testing.M) {
	path := os.Getenv("FSPDA_TEST_READ")
	if path == "" {
		os.Exit(m.Run())
	}
	if err := readShuffled(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status, _ := os.ReadFile("/proc/self/status") // an empty text fails the test
	fmt.Println(string(status))
}

func readShuffled(path string) error {
	s, err := images.Open(path, images.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("forecast", s.Memory>>20)
	var b []byte
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(s.Train.Len()) {
		if b, err = s.Train.(images.Encoded).Encoded(b, i); err != nil {
			return err
		}
	}
	return nil
}

// example is a row of a written file.
type example struct {
	Image []byte `parquet:"image"`
	Label int32  `parquet:"label"`
}

// write writes rows of random bytes into one row group.
func write(t *testing.T, rows, size int, o ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.NewChaCha8([32]byte{1})
	w := parquet.NewGenericWriter[example](f, o...)
	for i := range rows {
		e := example{Image: make([]byte, size), Label: int32(i % 2)}
		_, _ = draw.Read(e.Image) // never fails
		if _, err := w.Write([]example{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A page of 109 MB, as PyArrow writes by default, is read in any order within 500 MB and within the
// forecast, of which 60 MiB are the program.
func TestMemoryOfOnePage(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" || runtime.GOOS != "linux" {
		t.Skip("writes 109 MB and reads /proc: FSPDA_LONG=1 does, on Linux")
	}
	path := write(t, 1000, 109_000, parquet.PageBufferSize(1<<30), parquet.Compression(&parquet.Snappy))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FSPDA_TEST_READ="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	number := func(pattern string) int {
		n, err := strconv.Atoi(regexp.MustCompile(pattern).FindStringSubmatch(string(out) + pattern)[1])
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		return n
	}
	forecast, most := number(`forecast (\d+)`), number(`VmHWM:\s+(\d+)`)>>10
	t.Logf("at most %d MiB, forecast %d MiB", most, forecast)
	if most > 500_000_000>>20 || most > forecast+60 {
		t.Errorf("%d MiB, want at most 476 and the forecast of %d", most, forecast)
	}
}

// A page beyond the limit is refused when the set is opened, with the way out.
func TestLargePage(t *testing.T) {
	path := write(t, 20, 1000)
	defer func(before int64) { maxPage = before }(maxPage)
	maxPage = 19_000
	_, err := images.Open(path, images.Options{})
	if err == nil || !strings.Contains(err.Error(), "a page of ") ||
		!strings.Contains(err.Error(), "row_group_size=100") {
		t.Errorf("error %v, want one of a large page", err)
	}
}

// Pages are read in any order and dropped when the cache is full.
func TestCache(t *testing.T) {
	f, err := openFile(write(t, 300, 1000, parquet.PageBufferSize(8000), parquet.MaxRowsPerRowGroup(100)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]byte
	for g := range 3 {
		if err := f.scan(g, 0, func(_ int, v value) error { all = append(all, v.b); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	c := cache{limit: 50_000}
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(all)) {
		v, err := f.at(&c, i/100, 0, i%100)
		if err != nil || string(v.b) != string(all[i]) {
			t.Fatalf("row %d: other bytes than in order: %v", i, err)
		}
		size := int64(0)
		for _, r := range c.readers {
			size += r.size
		}
		if size > c.limit {
			t.Fatalf("%d bytes in the cache", size)
		}
	}
	if len(c.readers) == 0 || len(all) != 300 {
		t.Errorf("%d readers, %d rows", len(c.readers), len(all))
	}
}
