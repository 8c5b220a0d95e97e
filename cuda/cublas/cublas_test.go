package cublas

import (
	"fmt"
	"testing"

	"fspda/cuda/dynlib"
)

// The library of each CUDA version exports every function of API.
func TestBind(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			h, err := dynlib.System().Open(dynlib.CUBLAS(major))
			if err != nil {
				t.Skipf("%v (set %s to a folder with it)", err, dynlib.PathVariable)
			}
			a, err := Bind(h)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Check(1, "a call"); got == nil ||
				got.Error() != "cublas: a call: the library was not initialized (1)" {
				t.Errorf("error %v", got)
			}
		})
	}
}
