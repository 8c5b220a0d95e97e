package nvrtc_test

import (
	"fmt"
	"os"

	"fspda/cuda/dynlib"
	"fspda/cuda/nvrtc"
)

// compiler stands for a Library, where there is none.
type compiler struct{}

func (compiler) Compile(s nvrtc.Source) (nvrtc.Binary, error) {
	fmt.Println("compile", s.Name, "for", s.Arch)
	return nvrtc.Binary{Cubin: []byte("machine code")}, nil
}

// A source is compiled once; later programs read its cubin from the folder.
func ExampleCache() {
	dir, err := os.MkdirTemp("", "cubins")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	source := nvrtc.Source{Name: "axpy.cu", Text: `extern "C" __global__ void axpy() {}`, Arch: "sm_90"}
	for range 2 {
		cache := nvrtc.Cache{Dir: dir, Version: "13.0"}
		b, err := cache.Compile(compiler{}, source)
		fmt.Printf("%s, %v\n", b.Cubin, err)
	}
	// Output:
	// compile axpy.cu for sm_90
	// machine code, <nil>
	// machine code, <nil>
}

// It is not run here, since it needs NVIDIA's library.
func ExampleLibrary_Compile() {
	found, err := dynlib.System().Open(dynlib.NVRTC(13))
	if err != nil {
		fmt.Println(err)
		return
	}
	lib, err := nvrtc.Open(found)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := lib.Compile(nvrtc.Source{Name: "axpy.cu", Text: `extern "C" __global__ void axpy() {}`, Arch: "sm_90"})
	fmt.Println(len(b.Cubin), err)
}
