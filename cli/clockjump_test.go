//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jumpClock shifts the wall clock of one process by some seconds; its monotonic clock does not
// change, as if an administrator had set the time. The process reads its clocks through a function
// in its vDSO page. jumpClock overwrites that function, in this process only, by one that calls the
// kernel and adds the seconds.
func jumpClock(pid int, seconds int32) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("no machine code for %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	mem, err := os.OpenFile(filepath.Join("/proc", strconv.Itoa(pid), "mem"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // nobody runs through what is being written
		return err
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	at, err := clockFunction(pid, mem)
	if err != nil {
		return err
	}
	code := []byte{
		0xB8, 228, 0, 0, 0, // mov  eax, number of clock_gettime
		0x0F, 0x05, // syscall
		0x85, 0xFF, // test edi, edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jne  the return
		0x48, 0x81, 0x06, // add  qword [rsi], seconds
	}
	code = append(binary.LittleEndian.AppendUint32(code, uint32(seconds)), 0xC3)
	_, err = mem.WriteAt(code, at)
	return err
}

// clockFunction returns the address of the function that reads the clocks of a process.
func clockFunction(pid int, mem io.ReaderAt) (int64, error) {
	maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, err
		}
		image := make([]byte, to-from)
		if _, err := mem.ReadAt(image, from); err != nil {
			return 0, err
		}
		file, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := file.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" {
				return from + int64(s.Value), nil
			}
		}
	}
	return 0, fmt.Errorf("process %d has no function of the kernel that reads clocks: %w", pid, errors.ErrUnsupported)
}

// The clock jumps in the chosen process, back and forth, and the monotonic clock does not.
func TestJumpClock(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=clock")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	sc := bufio.NewScanner(out)
	for _, jump := range []int32{0, 86400, -7200, 0} {
		if err := jumpClock(cmd.Process.Pid, jump); err != nil {
			t.Skipf("skipped: the clock of another process cannot be set here: %v", err)
		}
		fmt.Fprintln(in)
		if !sc.Scan() {
			t.Fatal("the process is gone")
		}
		var wall, since int64
		if _, err := fmt.Sscan(sc.Text(), &wall, &since); err != nil {
			t.Fatal(err)
		}
		if off := wall - time.Now().Unix() - int64(jump); off < -5 || off > 5 || since > 20 {
			t.Errorf("jump of %d s: the clock is wrong by %d s more, and %d s are over since the start", jump, off,
				since)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
