package external

import (
	"sync"
	"unsafe"

	"fspda/internal/sharedmem"
)

// shared is the memory that all clients of this process map.
var shared = sync.OnceValues(sharedmem.Open)

// leastShared is the length from which on a vector gets memory that clients map. Shorter ones are
// copied for each call, in less time than the call takes.
const leastShared = 1 << 12

// Memory returns n zeros that clients can map, as the memory of a vector of the host.
func Memory(n int) []float32 {
	if n >= leastShared {
		if f, err := shared(); err == nil {
			if v, err := f.Floats(n); err == nil {
				return v
			}
		}
	}
	return make([]float32, n) // it is copied: slower, with the same numbers
}

// stage is shared memory for the data of one request at a time.
type stage struct {
	file   *sharedmem.File
	memory []float32
	used   int
}

// reset makes room for n numbers of four bytes.
func (s *stage) reset(n int) (err error) {
	s.used = 0
	if n > len(s.memory) {
		s.memory, err = s.file.Floats(n)
	}
	return err
}

// take returns the next numbers, and where they are. reset has made room for them.
func (s *stage) take(kind string, shape []int) ([]float32, *array) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := s.memory[s.used : s.used+n]
	base, _ := s.file.Find(s.memory)
	at := base.Offset + 4*int64(s.used)
	s.used += n
	return v, &array{At: at, Type: kind, Shape: shape}
}

func (s *stage) floats(shape ...int) ([]float32, *array) { return s.take("float32", shape) }

func (s *stage) ints(shape ...int) ([]int32, *array) {
	v, at := s.take("int32", shape)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), at
}

// place returns where the shared memory has a vector; nil: it has not.
func (s *stage) place(v []float32) *array {
	if at, ok := s.file.Find(v); ok {
		return &array{At: at.Offset, Type: "float32", Shape: []int{len(v)}}
	}
	return nil
}
