package driver_test

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
)

// It is not run here, since it needs a GPU.
func Example() {
	lib, err := driver.Open(dynlib.System())
	if err != nil {
		fmt.Println(err)
		return
	}
	api := lib.ForThread()
	var n int32
	if err := api.Check(api.DeviceGetCount(&n), "cuDeviceGetCount", "counting GPUs"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n, "GPUs with CUDA", driver.VersionText(lib.Version))
}

func ExampleProperties_Arch() {
	fmt.Println(driver.Properties{Name: "NVIDIA H100", CC: 90}.Arch(), driver.VersionText(12090))
	// Output: sm_90 12.9
}
