package cuda

import (
	"errors"
	"math"
	"runtime"

	"fspda/cuda/compiler"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

func attentionOf(c *device.Call) *kernels.Attention {
	d := c.Dims
	return &kernels.Attention{Windows: d[0], T: d[1], Heads: d[2], Width: d[3]}
}

// attentionIn is attentionOf with the number type of a plan, on tensor cores where there are
// kernels.
func (d *Device) attentionIn(t *compiler.Task) kernels.Attention {
	a := *attentionOf(t.Call)
	a.Element = t.Element()
	a.TensorCores = d.properties.CC >= 80 && a.FitsTensorCores()
	return a
}

func attention(l *lowerer, t *compiler.Task) (step, error) {
	shape := l.attentionIn(t)
	by, err := l.libraryAttention(t, cudnn.Forward)
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		x := env.bind(t)
		if by != nil {
			return by.Run(cudnn.AttentionOperands{QKV: driver.Pointer(x.in[0]), Y: driver.Pointer(x.out[0]),
				LSE: driver.Pointer(x.out[1]), Workspace: driver.Pointer(x.scratch)})
		}
		a := shape
		a.QKV, a.Y, a.LSE = x.in[0], x.out[0], x.out[1]
		return env.ex.Launch(a.Forward())
	}, nil
}

func attentionGrad(l *lowerer, t *compiler.Task) (step, error) {
	shape := l.attentionIn(t)
	by, err := l.libraryAttention(t, cudnn.GradX)
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		x := env.bind(t)
		if by != nil {
			return by.Run(cudnn.AttentionOperands{QKV: driver.Pointer(x.in[0]), Y: driver.Pointer(x.in[1]),
				LSE: driver.Pointer(x.in[2]), DY: driver.Pointer(x.in[3]), DQKV: driver.Pointer(x.out[0]),
				Workspace: driver.Pointer(x.scratch)})
		}
		a := shape
		a.Scratch, a.QKV, a.Y, a.LSE, a.DY, a.DQKV = x.scratch, x.in[0], x.in[1], x.in[2], x.in[3], x.out[0]
		return env.ex.Launch(a.Grad()...)
	}, nil
}

// attentionWorkspace returns the most workspace of cuDNN for a task, in bytes: of the gradient it is
// twice that of a gradient of the queries in float32 with a sum for each row. It is 0 where cuDNN is
// not considered.
func (d *Device) attentionWorkspace(t *compiler.Task) int {
	if t.Work != compiler.Compute || d.handles.dnn == nil || d.deterministic {
		return 0
	}
	switch t.Call.Kernel {
	case device.Attention, device.AttentionGrad:
	default:
		return 0
	}
	a := d.attentionIn(t)
	switch {
	case !a.TensorCores:
		return 0
	case t.Call.Kernel == device.Attention:
		return 1 << 20
	}
	return 2*4*a.Windows*a.T*a.Heads*(a.Width+1) + 1<<20
}

// libraryAttention returns attention, or its gradient, by cuDNN where that is the fastest, and else
// nil.
func (l *lowerer) libraryAttention(t *compiler.Task, direction cudnn.Direction) (*cudnn.Attention, error) {
	most := l.attentionWorkspace(t)
	if most == 0 {
		return nil, nil
	}
	ex := l.exec
	own := l.attentionIn(t)
	trial := attentionTrial{trialNumbers{ex: ex, element: own.Element}, own, direction}
	how := cudnn.Selection{MaxWorkspace: most, Cache: l.handles.choices, Alloc: ex.Borrow, Measure: l.measureConv}
	var by, kept *cudnn.Attention
	err := ex.Do(func() (err error) {
		by, err = l.handles.dnn.NewAttention(cudnn.AttentionShape{Windows: own.Windows, T: own.T, Heads: own.Heads,
			Width: own.Width}, direction, dnnTypes[own.Element], how,
			cudnn.AttentionTrial{Own: trial.run, Agrees: trial.agrees})
		if by != nil {
			kept = new(*by)
			ex.Track(kept)
		}
		return err
	})
	if by != nil {
		runtime.AddCleanup(by, ex.DiscardCloser, executor.Closer(kept))
	}
	return by, err
}

// attentionTrial computes attention, or its gradient, by kernels, to compare cuDNN with them.
type attentionTrial struct {
	trialNumbers
	shape     kernels.Attention
	direction cudnn.Direction
}

func (t attentionTrial) at(o cudnn.AttentionOperands) kernels.Attention {
	a := t.shape
	at := func(p driver.Pointer) kernels.Address { return kernels.Address(p) }
	a.QKV, a.Y, a.LSE, a.DY, a.DQKV, a.Scratch = at(o.QKV), at(o.Y), at(o.LSE), at(o.DY), at(o.DQKV), at(o.Workspace)
	return a
}

func (t attentionTrial) run(o cudnn.AttentionOperands) error {
	a := t.at(o)
	if t.direction == cudnn.Forward {
		return t.ex.Launch(a.Forward())
	}
	return t.ex.Launch(a.Grad()...)
}

// agrees compares the results of by with those of the kernels, for the first and the last window.
// Other windows have zeros.
func (t attentionTrial) agrees(by func(cudnn.AttentionOperands) error) (bool, error) {
	a := t.shape
	rows, c, size := a.Windows*a.T, a.Heads*a.Width, a.Element.Size()
	all := []int{3 * rows * c * size, rows * c * size, 4 * rows * a.Heads, rows * c * size, 3 * rows * c * size,
		max(a.ScratchBytes(), 2*4*rows*(c+a.Heads)+1<<20)}
	at, end, err := t.ex.Borrow(append(all, 4*3*a.T*c)...)
	if err != nil {
		return false, err
	}
	defer end()
	for i, n := range all[:5] {
		err = errors.Join(err, t.ex.SetBytes(at[i], 0, n))
	}
	err = errors.Join(err, t.ex.SetBytes(at[5], 0xff, all[5])) // a workspace may hold anything
	staging, bufferErr := t.ex.AllocBuffer(executor.ChunkBytes)
	if err := errors.Join(err, bufferErr); err != nil {
		return false, err
	}
	defer t.ex.PutBuffer(staging)
	t.staging, t.float32s = staging, at[6]
	o := cudnn.AttentionOperands{QKV: at[0], Y: at[1], LSE: at[2], DY: at[3], DQKV: at[4], Workspace: at[5]}
	if err := t.fill(o); err != nil {
		return false, err
	}
	want, err := t.results(o, t.run)
	if err != nil {
		return false, err
	}
	got, err := t.results(o, by)
	if err != nil {
		return false, err
	}
	limit := map[kernels.Element]float64{kernels.F16: 0x1p-9, kernels.BF16: 0x1p-6}[a.Element]
	for i, v := range want {
		if !(farApart(got[i], v) <= limit) {
			return false, nil
		}
	}
	return true, nil
}

// windows calls do with the offsets of the first and of the last window, in rows.
func (t attentionTrial) windows(do func(row int) error) error {
	return errors.Join(do(0), do((t.shape.Windows-1)*t.shape.T))
}

// fill writes the inputs: of the gradient also y and lse, by the kernels.
func (t attentionTrial) fill(o cudnn.AttentionOperands) error {
	a, c := t.shape, t.shape.Heads*t.shape.Width
	err := t.windows(func(row int) error {
		at := func(p driver.Pointer, n int) driver.Pointer { return p + driver.Pointer(row*n*a.Element.Size()) }
		return errors.Join(t.copyIn(at(o.QKV, 3*c), trialValues(3*a.T*c, row)), t.copyIn(at(o.DY, c),
			trialValues(a.T*c, row+1)))
	})
	if err == nil && t.direction != cudnn.Forward {
		forward := t.at(o)
		err = t.ex.Launch(forward.Forward())
	}
	return err
}

// trialValues returns numbers from -2 to 2 in no visible order.
func trialValues(n, seed int) []float32 {
	v := make([]float32, n)
	for i := range v {
		h := (uint32(i) + 77777*uint32(seed)) * 2654435761
		h = (h ^ h>>15) * 2246822519
		v[i] = float32(int32(h^h>>13)) * 0x1p-30
	}
	return v
}

// results runs the computation on results that are zero, and returns them for both windows.
func (t attentionTrial) results(o cudnn.AttentionOperands, by func(cudnn.AttentionOperands) error) (all [][]float32,
	err error) {
	a, c, size := t.shape, t.shape.Heads*t.shape.Width, t.shape.Element.Size()
	rows := a.Windows * a.T
	forward := t.direction == cudnn.Forward
	if forward {
		err = errors.Join(t.ex.SetBytes(o.Y, 0, rows*c*size), t.ex.SetBytes(o.LSE, 0, 4*rows*a.Heads))
	} else {
		err = t.ex.SetBytes(o.DQKV, 0, 3*rows*c*size)
	}
	if err != nil {
		return nil, err
	}
	if err := by(o); err != nil {
		return nil, err
	}
	err = t.windows(func(row int) error {
		from, n := o.DQKV, 3*c
		if forward {
			from, n = o.Y, c
		}
		v, err := t.copyOut(from+driver.Pointer(row*n*size), a.T*n)
		all = append(all, v)
		return err
	})
	if forward && err == nil {
		lse := make([]float32, rows*a.Heads)
		err = t.ex.CopyOut(region(o.LSE, lse), t.staging)
		all = append(all, lse)
	}
	return all, err
}

// farApart returns the distance of two vectors, relative to the length of the second.
func farApart(got, want []float32) float64 {
	far, long := 0.0, 0.0
	for i, v := range want {
		d := float64(got[i]) - float64(v)
		far, long = far+d*d, long+float64(v)*float64(v)
	}
	return math.Sqrt(far / long)
}
