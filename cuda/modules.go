package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
)

// load takes the kernels to the GPU.
func (ex *executor) loadModules(cubins map[string]nvrtc.Binary) error {
	at := map[string]driver.Module{}
	for unit, b := range cubins {
		if len(b.Cubin) == 0 {
			return fmt.Errorf("cuda: the code of %s is empty", unit)
		}
		var m driver.Module
		r := ex.api.ModuleLoadData(&m, unsafe.Pointer(&b.Cubin[0]), 0, nil, nil)
		runtime.KeepAlive(b.Cubin)
		if err := ex.api.Check(r, "cuModuleLoadDataEx", "loading the kernels of %s", unit); err != nil {
			return err
		}
		ex.modules = append(ex.modules, m)
		at[unit] = m
	}
	for _, k := range kernels.All() {
		var f driver.Function
		name := append([]byte(k.Name), 0)
		if err := ex.api.Check(ex.api.ModuleGetFunction(&f, at[k.Unit], &name[0]), "cuModuleGetFunction",
			"looking for kernel %s of %s", k.Name, k.Unit); err != nil {
			return err
		}
		ex.functions[k] = f
	}
	return nil
}

func (ex *executor) function(k *kernels.Kernel) (driver.Function, error) {
	if f, ok := ex.functions[k]; ok {
		return f, nil
	}
	return 0, fmt.Errorf("cuda: kernel %s of %s is not loaded", k.Name, k.Unit)
}
