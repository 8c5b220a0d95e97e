package arm64

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
)

var words = regexp.MustCompile(`^WORD \$0x([0-9a-f]{8}) // (.*)$`)

// disassembled returns the instruction of a line, as a disassembler that shares nothing with this
// package prints it, and as the comment of the line has it.
func disassembled(t *testing.T, line string) (got, comment string) {
	t.Helper()
	m := words.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("not a word with a comment: %s", line)
	}
	bits, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	in, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, uint32(bits)))
	if err != nil {
		return err.Error(), m[2]
	}
	return arm64asm.GNUSyntax(in), m[2]
}

// Every instruction is what its comment says, with each register and each immediate operand.
func TestOps(t *testing.T) {
	for name, o := range ops {
		immediates := []int{0}
		if o.immediate != nil {
			immediates = nil
			for i := -2048; i < 1<<16; i++ {
				if _, ok := o.immediate(i); ok {
					immediates = append(immediates, i)
				}
			}
		}
		if len(immediates) == 0 {
			t.Errorf("%s: no immediate operand has an encoding", name)
		}
		for k, i := range immediates {
			at := fields{'d': k % 32, 'n': (k*7 + 3) % 31, 'm': (k*11 + 5) % 31, 'i': i}
			if o.advances && at['n'] == at['d'] {
				at['n']++
			}
			if name == "mov.16b" {
				at['m'] = at['n']
			}
			if strings.Contains(o.text, "m.h[") {
				at['m'] %= 16
			}
			if strings.Contains(o.text, "%f") { // a list that ends at v0 is written otherwise
				at['d'] %= 30
			}
			if got, want := disassembled(t, word(name, at)); got != want {
				t.Errorf("%s: the word is %q, the comment %q", name, got, want)
				break
			}
		}
		for r := range 31 {
			at := fields{'d': r, 'n': (r + 1) % 31, 'm': (r + 2) % 31, 'i': immediates[len(immediates)/2]}
			if strings.Contains(o.text, "m.h[") {
				at['m'] %= 16
			}
			if strings.Contains(o.text, "%f") { // a list that ends at v0 is written otherwise
				at['d'] %= 30
			}
			if got, want := disassembled(t, word(name, at)); got != want {
				t.Errorf("%s: the word is %q, the comment %q", name, got, want)
				break
			}
		}
	}
}

// So is every word in the assembly of the repository, hand-written files included.
func TestWords(t *testing.T) {
	root, files := filepath.Join("..", "..", ".."), 0
	for _, folder := range []string{"cpu", "data", "dist"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_arm64.s") {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				if !strings.HasPrefix(line, "WORD ") {
					continue
				}
				if got, want := disassembled(t, line); got != want {
					t.Errorf("%s: the word is %q, the comment %q", path, got, want)
					return nil
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 3 {
		t.Errorf("%d files, want those of three packages", files)
	}
}

// What has no encoding is not written.
func TestNoEncoding(t *testing.T) {
	for name, bad := range map[string][]int{"ldr.q": {-16, 8, 1 << 16}, "ldp.q": {8, 1024, -1040},
		"ldur.q": {256, -257}, "dup.s": {4, -1}, "shl.4s": {32}, "ushr.4s": {0, 33}, "fmla.s": {4}} {
		for _, i := range bad {
			if encodes(name, i) {
				t.Errorf("%s has an encoding of %d", name, i)
			}
		}
	}
	if names := slices.Collect(func(yield func(string) bool) {
		for name, o := range ops {
			if o.store && o.keeps && !yield(name) {
				return
			}
		}
	}); len(names) > 0 {
		t.Errorf("stores that set a register: %q", names)
	}
}
