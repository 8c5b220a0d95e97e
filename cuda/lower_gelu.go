package cuda

import (
	"errors"
	"math"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// geluShape is a product with GELU, or with its gradient.
type geluShape struct {
	m, n, k  int
	epilogue cublas.Epilogue
}

// geluProduct is a product followed by GELU by cuBLASLt, or nil where kernels compute it.
func (l *lowerer) geluProduct(t *compiler.Task, form kernels.GELUForm) *cublas.Matmul {
	n := t.Call.Dims
	f := productSpec{m: n[0], n: n[1], k: n[2], a: productInput{in: 0}, b: productInput{1, true},
		epilogue: cublas.EpilogueGELU, aux: &t.Out[0], out: 1}
	if len(t.In) > 2 {
		f.epilogue, f.bias = cublas.EpilogueGELUBias, &t.In[2]
	}
	return l.gelu(t, f, form)
}

// geluGradX is a gradient of a product's input, times the slope of GELU, by cuBLASLt, or nil where
// kernels compute it.
func (l *lowerer) geluGradX(t *compiler.Task, form kernels.GELUForm) *cublas.Matmul {
	n := t.Call.Dims
	return l.gelu(t, productSpec{m: n[0], n: n[2], k: n[1], a: productInput{in: 0}, b: productInput{in: 1},
		epilogue: cublas.EpilogueGELUGrad, aux: &t.In[2]}, form)
}

// gelu returns a product with GELU, if it passes a trial. cuBLASLt has the tanh form only. In
// float32 its error may be far above a rounding.
func (l *lowerer) gelu(t *compiler.Task, f productSpec, form kernels.GELUForm) *cublas.Matmul {
	if form != kernels.GELUTanh || t.Element() == kernels.F32 {
		return nil
	}
	product := l.matmul(t, f)
	if product == nil {
		return nil
	}
	shape := geluShape{f.m, f.n, f.k, f.epilogue}
	right, tried := l.gelus[shape]
	if !tried {
		var err error
		right, err = executor.Ask(l.exec, func() (bool, error) { return tryGELU(l.exec, product, t.Element(), f) })
		right = right && err == nil // also false without memory to try it
		l.gelus[shape] = right
	}
	if !right {
		return nil
	}
	return product
}

// ltGELU is the step of geluProduct.
func ltGELU(product *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		o := cublas.Operands{Aux: driver.Pointer(x.out[0])}
		if len(x.in) > 2 {
			o.Bias = driver.Pointer(x.in[2])
		}
		return product.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[1]), o)
	}
}

// ltGELUGrad is the step of geluGradX.
func ltGELUGrad(product *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		return product.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			cublas.Operands{Aux: driver.Pointer(x.in[2])})
	}
}

// geluPoints is how many columns of a trial are not zero.
const geluPoints = 64

// geluPoint returns number j at which a trial evaluates GELU: NaN, then numbers from -7.75 to 7.75
// in an order that also covers the range with few of them.
func geluPoint(j int) float64 {
	if j == 0 {
		return math.NaN()
	}
	return float64(j*37%63-31) / 4
}

// geluTrial is a product with GELU whose operands lie on the device. All differ from zero only where
// they determine the first columns of the first row.
type geluTrial struct {
	trialNumbers
	spec               productSpec
	columns            int // of the first row
	a, b, c, aux, bias driver.Pointer
}

// tryGELU reports whether cuBLASLt has the numbers of GELU up to some roundings, keeps NaN, and
// writes what GELU is applied to. NVIDIA documents little of it.
func tryGELU(ex *executor.Executor, product *cublas.Matmul, e kernels.Element, f productSpec) (bool, error) {
	n, size := min(f.n, geluPoints), e.Size()
	sizes := []int{size * f.m * f.k, size * f.k * f.n, size * f.m * f.n, size * f.m * f.n, size * f.n}
	at, end, err := ex.Borrow(append(sizes, 4*max(n*f.k, f.n))...)
	if err != nil {
		return false, err
	}
	defer end()
	for i, bytes := range sizes {
		err = errors.Join(err, ex.SetBytes(at[i], 0, bytes))
	}
	staging, bufferErr := ex.AllocBuffer(executor.ChunkBytes)
	if err = errors.Join(err, bufferErr); err != nil {
		return false, err
	}
	defer ex.PutBuffer(staging)
	numbers := trialNumbers{ex: ex, element: e, float32s: at[5], staging: staging}
	t := geluTrial{numbers, f, n, at[0], at[1], at[2], at[3], at[4]}
	if err := t.fill(); err != nil {
		return false, err
	}
	if err := product.Run(t.a, t.b, t.c, cublas.Operands{Bias: t.bias, Aux: t.aux}); err != nil {
		return false, err
	}
	return t.isRight()
}

func (t *geluTrial) backward() bool { return t.spec.epilogue == cublas.EpilogueGELUGrad }

// fill writes the operands: GELU is applied to the points, half of which is a bias if there is one,
// or its slope at the points is multiplied by one.
func (t *geluTrial) fill() error {
	points, half, ones := make([]float32, t.columns), make([]float32, t.columns), make([]float32, t.columns)
	for j := range points {
		points[j], half[j], ones[j] = float32(geluPoint(j)), float32(geluPoint(j)/2), 1
	}
	err := t.copyIn(t.a, ones[:1])
	if t.backward() {
		return errors.Join(err, t.copyIn(t.b, ones), t.copyIn(t.aux, points))
	}
	factors := points
	if t.spec.bias != nil {
		factors = half
		err = errors.Join(err, t.copyIn(t.bias, half))
	}
	b := make([]float32, t.columns*t.spec.k) // the factor is stored by columns
	for j, v := range factors {
		b[j*t.spec.k] = v
	}
	return errors.Join(err, t.copyIn(t.b, b))
}

// isRight compares the results with GELU, or with its slope.
func (t *geluTrial) isRight() (bool, error) {
	got, errOut := t.copyOut(t.c, t.columns)
	kept, errAux := t.copyOut(t.aux, t.columns)
	if err := errors.Join(errOut, errAux); err != nil {
		return false, err
	}
	unit := map[kernels.Element]float64{kernels.F16: 0x1p-11, kernels.BF16: 0x1p-8}[t.element]
	right := math.IsNaN(float64(got[0])) && math.IsNaN(float64(kept[0]))
	for j := 1; j < t.columns; j++ {
		v := geluPoint(j)
		s := 1 / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		want, limit := v*s, unit*math.Abs(v)
		if t.backward() {
			want, limit = s+v*s*(1-s)*2*math.Sqrt(2/math.Pi)*(1+3*0.044715*v*v), 4*unit
		}
		right = right && float64(kept[j]) == v && math.Abs(float64(got[j])-want) <= 2*unit*math.Abs(want)+limit
	}
	return right, nil
}
