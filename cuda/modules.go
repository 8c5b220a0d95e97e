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
func (o *owner) load(cubins map[string]nvrtc.Binary) error {
	at := map[string]driver.Module{}
	for unit, b := range cubins {
		if len(b.Cubin) == 0 {
			return fmt.Errorf("cuda: the code of %s is empty", unit)
		}
		var m driver.Module
		r := o.api.ModuleLoadData(&m, unsafe.Pointer(&b.Cubin[0]), 0, nil, nil)
		runtime.KeepAlive(b.Cubin)
		if err := o.api.Check(r, "cuModuleLoadDataEx", "loading the kernels of %s", unit); err != nil {
			return err
		}
		o.modules = append(o.modules, m)
		at[unit] = m
	}
	for _, k := range kernels.All() {
		var f driver.Function
		name := append([]byte(k.Name), 0)
		if err := o.api.Check(o.api.ModuleGetFunction(&f, at[k.Unit], &name[0]), "cuModuleGetFunction",
			"looking for kernel %s of %s", k.Name, k.Unit); err != nil {
			return err
		}
		o.functions[k] = f
	}
	return nil
}

func (o *owner) function(k *kernels.Kernel) (driver.Function, error) {
	if f, ok := o.functions[k]; ok {
		return f, nil
	}
	return 0, fmt.Errorf("cuda: kernel %s of %s is not loaded", k.Name, k.Unit)
}
