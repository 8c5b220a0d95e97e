package cublas_test

import (
	"errors"
	"fmt"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// It is not run here, since it needs a GPU: the product of a 2×3 and a 3×4 matrix of float32 in its
// memory, on a stream of the thread's context.
func ExampleHandle_Gemm() {
	multiply := func(stream driver.Stream, a, b, c driver.Pointer) error {
		lib, err := dynlib.System().Open(dynlib.CUBLAS(13))
		if err != nil {
			return err
		}
		api, err := cublas.Bind(lib)
		if err != nil {
			return err
		}
		h, err := api.New(stream)
		if err != nil {
			return err
		}
		err = h.Gemm(cublas.Product{M: 2, N: 4, K: 3, A: a, B: b, C: c, Type: cublas.Float32, TypeC: cublas.Float32,
			Compute: cublas.ComputeFloat32})
		return errors.Join(err, h.Close())
	}
	fmt.Println(multiply(0, 0, 0, 0))
}

// The ReLU of a product stores a bit for each number, in rows of whole 16-byte units.
func ExampleMaskBytes() {
	fmt.Println(cublas.MaskBytes(4, 256))
	// Output: 128
}
