package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// fusedTrial is memory of their own in which a fused kernel and the kernels that it would replace
// compute the same from noise.
type fusedTrial struct {
	ex    *executor.Executor
	env   *launchEnv
	task  *compiler.Task
	noise [2]driver.Pointer // noiseNumbers of 16 bits, and of float32 between 0.5 and 1.5
	kept  driver.Pointer    // what the separate kernels have made
	wide  [2]driver.Pointer // chunkNumbers of float32
	sums  driver.Pointer    // two float64 numbers, then scratch
}

const (
	noiseNumbers = 1<<18 + 3 // prime, so that rows of equal noise are far apart
	chunkNumbers = 1 << 20   // that are compared at once; more than noiseNumbers
)

// piece is an operand: numbers, or the bytes of a mask.
type piece struct {
	compiler.Operand
	bytes int
	mask  bool
}

func pieces(numbers, masks []compiler.Operand) (all []piece) {
	for _, o := range numbers {
		all = append(all, piece{o, o.Bytes(), false})
	}
	for _, o := range masks {
		all = append(all, piece{o, o.Len, true})
	}
	return all
}

// newFusedTrial takes the memory, on the executor.
func (l *lowerer) newFusedTrial(t *compiler.Task) (f *fusedTrial, end func(), err error) {
	kept := 0
	for _, o := range pieces(t.Made()) {
		kept += compiler.Align(o.bytes)
	}
	at, end, err := l.exec.Borrow(l.layout.total(), 4*l.dim, 4*l.dim, l.arrived, kept, 2*noiseNumbers, 4*noiseNumbers,
		4*chunkNumbers, 4*chunkNumbers, 16+8*kernels.DotParts(chunkNumbers))
	if driver.IsOutOfMemory(err) {
		err = fmt.Errorf("%w: %w", cudnn.ErrNotMeasured, err)
	}
	if err != nil {
		return nil, nil, err
	}
	env := &launchEnv{ex: l.exec, blas: l.handles.blas, math: l.compute()}
	env.spaces = [spaces]kernels.Address(slices.Repeat([]kernels.Address{kernels.Address(at[1])}, spaces))
	env.spaces[device.Arena], env.spaces[device.Grads] = kernels.Address(at[0]), kernels.Address(at[2])
	env.scratch = kernels.Address(at[0] + driver.Pointer(l.layout.arena))
	env.scalars.arrived = kernels.Address(at[3])
	f = &fusedTrial{ex: l.exec, env: env, task: t, kept: at[4], noise: [2]driver.Pointer(at[5:]),
		wide: [2]driver.Pointer(at[7:]), sums: at[9]}
	if err = l.exec.SetBytes(at[3], 0, l.arrived); err == nil {
		err = f.makeNoise(l.precision.Element())
	}
	if err != nil {
		end()
	}
	return f, end, err
}

// makeNoise makes numbers between -1 and 1 of 16 bits, and positive ones of float32.
func (f *fusedTrial) makeNoise(e kernels.Element) error {
	v, state := make([]float32, noiseNumbers), uint32(1)
	for i := range v {
		state = 1664525*state + 1013904223 // of Numerical Recipes
		v[i] = float32(state>>8)*0x1p-23 - 1
	}
	through, err := f.ex.AllocBuffer(4 * noiseNumbers)
	if err != nil {
		return err
	}
	defer f.ex.PutBuffer(through)
	if err := f.ex.CopyIn(region(f.wide[0], v), through); err != nil {
		return err
	}
	for i := range v {
		v[i] = 1 + v[i]/2
	}
	return errors.Join(f.ex.CopyIn(region(f.noise[1], v), through), f.ex.Launch(kernels.Narrow(e,
		kernels.Address(f.noise[0]), kernels.Address(f.wide[0]), noiseNumbers)))
}

// fill fills all operands with noise, each with another part of it.
func (f *fusedTrial) fill() error {
	for i, o := range pieces(f.task.Touched()) {
		from, size := f.noise[0], 2*noiseNumbers
		if o.Element == kernels.F32 && !o.mask {
			from, size = f.noise[1], 4*noiseNumbers
		}
		skip := i * 64 * 97 % (size / 2)
		to, have := driver.Pointer(f.env.address(o.Operand)), min(o.bytes, size-skip)
		err := f.ex.CopyWithin(to, from+driver.Pointer(skip), have)
		for ; err == nil && have < o.bytes; have *= 2 {
			err = f.ex.CopyWithin(to+driver.Pointer(have), to, min(have, o.bytes-have))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check runs both ways on the same noise. It returns the largest difference of an operand that they
// make, relative to its norm, and an error if that is too large. Masks must be equal.
func (f *fusedTrial) check(one, many step) (far float64, err error) {
	bound := fusedBound(f.task.In[0].Element)
	if far, err = f.compare(one, many); err == nil && !(far <= bound) {
		err = fmt.Errorf("the results differ from those of separate kernels by %.2g of their norm, at most %.2g is "+
			"allowed", far, bound)
	}
	return far, err
}

func (f *fusedTrial) compare(one, many step) (far float64, err error) {
	if err := errors.Join(f.fill(), many(f.env)); err != nil {
		return 0, err
	}
	kept := f.kept
	for _, o := range pieces(f.task.Made()) {
		if err := f.ex.CopyWithin(kept, driver.Pointer(f.env.address(o.Operand)), o.bytes); err != nil {
			return 0, err
		}
		kept += driver.Pointer(compiler.Align(o.bytes))
	}
	if err := errors.Join(f.fill(), one(f.env)); err != nil {
		return 0, err
	}
	kept = f.kept
	for _, o := range pieces(f.task.Made()) {
		distance := f.distance
		if o.mask {
			distance = f.maskDistance
		}
		d, err := distance(o, driver.Pointer(f.env.address(o.Operand)), kept)
		if err != nil {
			return 0, err
		}
		if far = max(far, d); d != d {
			far = math.Inf(1)
		}
		kept += driver.Pointer(compiler.Align(o.bytes))
	}
	return far, nil
}

// distance returns |one-many| / |many| of numbers at two addresses.
func (f *fusedTrial) distance(o piece, one, many driver.Pointer) (float64, error) {
	square := 0.0
	total := 0.0
	for at := 0; at < o.Len; at += chunkNumbers {
		n := min(chunkNumbers, o.Len-at)
		for i, from := range []driver.Pointer{one, many} {
			from += driver.Pointer(at * o.Element.Size())
			err := error(nil)
			if o.Element == kernels.F32 {
				err = f.ex.CopyWithin(f.wide[i], from, 4*n)
			} else {
				err = f.ex.Launch(kernels.Widen(o.Element, kernels.Address(f.wide[i]), kernels.Address(from), n))
			}
			if err != nil {
				return 0, err
			}
		}
		a, b, sums := kernels.Address(f.wide[0]), kernels.Address(f.wide[1]), kernels.Address(f.sums)
		far := kernels.Dot(sums, 0, a, a, sums+16, n, 1)
		all := kernels.Dot(sums+8, 0, b, b, sums+16, n, 1)
		minus := kernels.Combine(a, n, kernels.Term{A: 1, V: a}, kernels.Term{A: -1, V: b})
		err := f.ex.Launch(minus, far[0], far[1], all[0], all[1])
		if err != nil {
			return 0, err
		}
		made, err := f.ex.ReadBack(f.sums, 16)
		if err != nil {
			return 0, err
		}
		square += math.Float64frombits(binary.LittleEndian.Uint64(made))
		total += math.Float64frombits(binary.LittleEndian.Uint64(made[8:]))
	}
	if square == 0 && total == 0 {
		return 0, nil
	}
	return math.Sqrt(square / total), nil
}

// maskDistance is 0 if two masks are equal, else infinite.
func (f *fusedTrial) maskDistance(o piece, one, many driver.Pointer) (float64, error) {
	for at := 0; at < o.bytes; at += executor.ChunkBytes {
		n := min(executor.ChunkBytes, o.bytes-at)
		a, errA := f.ex.ReadBack(one+driver.Pointer(at), n)
		b, errB := f.ex.ReadBack(many+driver.Pointer(at), n)
		if err := errors.Join(errA, errB); err != nil {
			return 0, err
		}
		if !bytes.Equal(a, b) {
			return math.Inf(1), nil
		}
	}
	return 0, nil
}

// fusedBound is by how much results of a fused kernel may differ from those of separate ones,
// relative to their norm: sums in another order are rounded differently, now and then, to 16 bits.
func fusedBound(e kernels.Element) float64 {
	if e == kernels.BF16 {
		return 0x1p-7
	}
	return 0x1p-10
}

// timeFused compares two ways to compute the same, of which the first is a fused kernel, on the
// executor. The first is chosen only if it makes the same numbers. If its first run does not
// return, later programs find this as the choice. Without memory the error is ErrNotMeasured, and
// the choice is not stored.
func (l *lowerer) timeFused(t *compiler.Task, key string, one, many step) (best cudnn.Choice, err error) {
	f, end, err := l.newFusedTrial(t)
	if err != nil {
		return best, err
	}
	defer end()
	err = l.handles.choices.Attempt(key, func() error { _, err := f.check(one, many); return err })
	if driver.Lost(err) {
		return best, err
	}
	if err != nil {
		return cudnn.Choice{Why: err.Error()}, nil
	}
	const runs, turns, rounds = 4, 2, 2
	ms := [2]float64{math.Inf(1), math.Inf(1)}
	for range rounds { // in turns, as the clock of a GPU rises
		for i, s := range []step{one, many} {
			took, err := l.exec.TimeWork(runs, turns, func() error { return s(f.env) })
			if errors.Is(err, executor.ErrNotCapturable) {
				return cudnn.Choice{Why: err.Error()}, nil
			}
			if err != nil {
				return best, err
			}
			ms[i] = min(ms[i], took)
		}
	}
	return cudnn.Choice{Fused: ms[0] < ms[1], Time: float32(min(ms[0], ms[1]) / runs),
		Beside: float32(max(ms[0], ms[1]) / runs)}, nil
}

// compareFused passes the difference between two ways to visit, on the executor.
func (l *lowerer) compareFused(t *compiler.Task, key string, one, many step) error {
	f, end, err := l.newFusedTrial(t)
	if err != nil {
		return err
	}
	defer end()
	far, err := f.check(one, many)
	l.visit(key, far, err)
	if driver.Lost(err) {
		return err
	}
	return nil
}

// TryFused runs every kernel that may compute several calls of code in the device's precision, and
// the kernels that it would replace, on the same noise. It passes each kind of kernel to visit,
// with the largest difference of results, relative to their norm, and an error if that is too large
// or the kernel does not run. fits is false if there is not enough memory. It is for tests; visit
// must not use the device.
func (d *Device) TryFused(code *device.Code, visit func(what string, far float64, err error)) (fits bool, err error) {
	if !d.hasPointwise() {
		return true, nil
	}
	plan, err := d.compileWith(code, true)
	if err != nil {
		return false, err
	}
	l := newLowerer(d, code, plan)
	l.visit = visit
	seen := map[string]bool{}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		if t.GradX == nil && t.Reads == nil && t.Feeds == nil || t.GradX != nil && l.linked[t.GradX] == nil {
			continue
		}
		if t.GradX == nil {
			if key := fuseKey(t); seen[key] {
				continue
			} else {
				seen[key] = true
			}
		}
		if _, err := convolution(l, t); errors.Is(err, cudnn.ErrNotMeasured) {
			return false, nil
		} else if err != nil {
			return true, fmt.Errorf("cuda: trying the fused kernels of %s: %s: %w", code.Name, t.Title(), err)
		}
	}
	return true, nil
}
