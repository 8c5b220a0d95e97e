package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// A normalisation and its gradient have two kernels each: the first computes sums over a matrix, the
// second maps it. A convolution of 1×1 that makes the matrix can compute the sums while it writes it,
// and one that reads the result can apply the map while it reads: see kernels.Pointwise. The compiler
// links the tasks for which that is possible, Task.Reads and Task.Feeds. Each operand is where it
// would be without links, and lives long enough for either, so that the caller may choose for each
// convolution.

// Links is the links of a task; nil: none.
type Links struct {
	// of a convolution: the normalisation, or gradient of one, whose second kernel it may compute
	// while it reads, and the one whose first kernel it may compute while it writes
	Reads, Feeds *Task
	Vectors      []Operand // of a normalisation that a convolution may compute: five of its vectors
	// of the gradient of filters: that of the input, which one kernel may compute too, in so many
	// blocks
	GradX  *Task
	Blocks int
}

// involved returns the tasks that a task may compute, itself included.
func (t *Task) involved() []*Task {
	all := []*Task{t}
	for _, other := range []*Task{t.Reads, t.Feeds} {
		if other != nil {
			all = append(all, other)
		}
	}
	if t.GradX != nil {
		all = append(all, t.GradX.involved()...)
	}
	return all
}

// Touched returns the operands of a task and of those that it may compute: numbers, and bit masks,
// whose length is in bytes.
func (t *Task) Touched() (numbers, masks []Operand) {
	for _, x := range t.involved() {
		for _, o := range x.operandPtrs() {
			switch {
			case o.value < 0 && o.Len == 0:
			case x.Saved != nil && x.Saved.ByMask && *o == x.Saved.Operands[0]:
				masks = append(masks, *o)
			default:
				numbers = append(numbers, *o)
			}
		}
	}
	return numbers, masks
}

// Made returns what a task with links stores, and those that it may compute, however they are
// computed.
func (t *Task) Made() (numbers, masks []Operand) {
	x := t
	if t.GradX != nil {
		x, numbers = t.GradX, slices.Clone(t.Out)
	}
	if x.Feeds == nil || x.Feeds.Call.Kernel != device.BatchNormAddReLUGrad { // which gets the sum instead
		numbers = append(numbers, x.Out[0])
	}
	if n := x.Feeds; n != nil {
		numbers = slices.Concat(numbers, n.Out[1:], n.Vectors)
	}
	if n := x.Reads; n != nil && t.GradX == nil {
		numbers = append(numbers, n.Out[0])
		if n.Saved != nil && n.Saved.ByMask && normForwards[n.Call.Kernel] {
			masks = n.Saved.Operands
		}
	}
	return numbers, masks
}

// linker links the tasks of a plan.
type linker struct {
	*planner
	makers  map[int]int   // the task that writes a value
	readers map[int][]int // the tasks that read a value, in order
}

// linkPointwise links all convolutions with their neighbours. It moves some tasks, which keeps the
// result of each.
func (p *planner) linkPointwise() {
	l := &linker{planner: p}
	l.index()
	for i := range p.tasks {
		if isPointwise(&p.tasks[i], device.Conv) {
			l.makeFirstReader(i)
		}
	}
	for i := len(p.tasks) - 1; i >= 0; i-- { // what moves passes tasks that had their turn
		if isPointwise(&p.tasks[i], device.ConvGradX) {
			l.makeLastSummand(i)
		}
	}
	for i := range p.tasks {
		if isPointwise(&p.tasks[i], device.Conv) {
			l.linkForward(i)
		} else if isPointwise(&p.tasks[i], device.ConvGradX) {
			l.linkGradX(i)
		}
	}
	for i := range p.tasks {
		for _, norm := range []*Task{p.tasks[i].Reads, p.tasks[i].Feeds} {
			if norm == nil || norm.Vectors != nil {
				continue
			}
			for range 5 {
				norm.Vectors = append(norm.Vectors, p.operand(p.newValue(norm.Call.Dims[1], float32Format)))
			}
		}
	}
}

// isPointwise reports whether a task is a convolution, or the gradient of its input, whichever k
// is, that kernels.Pointwise computes.
func isPointwise(t *Task, k device.Kernel) bool {
	if t.Work != Compute || t.Call.Kernel != k {
		return false
	}
	d, p := t.Call.Dims, t.Product()
	return d[5] == 1 && d[6] == 1 && (d[7] == 1 || k == device.Conv) && d[8] == 0 && t.Padded == 0 &&
		p.Fits() && t.Out[0].value >= 0 && t.In[0].value >= 0 && t.In[1].value >= 0
}

// Product returns a convolution of 1×1, or the gradient of its input, as a product without
// addresses.
func (t *Task) Product() kernels.Pointwise {
	d := t.Call.Dims
	s := d[7]
	p := kernels.Pointwise{Element: t.Out[0].Element, M: d[0] * ((d[1]-1)/s + 1) * ((d[2]-1)/s + 1), N: d[4], K: d[3],
		Height: d[1], Width: d[2], Stride: s}
	if t.Call.Kernel == device.ConvGradX {
		p.N, p.K = p.K, p.N
	}
	return p
}

func fitsBoth(p kernels.Pointwise, blocks int) bool {
	p.Blocks = blocks
	return p.FitsBoth()
}

func (l *linker) index() {
	l.makers, l.readers = map[int]int{}, map[int][]int{}
	for i := range l.tasks {
		for _, o := range l.tasks[i].outputs() {
			l.makers[o.value] = i
		}
		for _, v := range l.tasks[i].reads() {
			l.readers[v] = append(l.readers[v], i)
		}
	}
}

// inputs returns the operands that a task reads.
func (t *Task) inputs() []Operand {
	all := append(slices.Clone(t.In), ptrsTo(t.Addend, t.PairMean)...)
	if t.Saved != nil && forwardKernels[t.Call.Kernel] != nil {
		all = append(all, t.Saved.Operands...)
	}
	if t.PairSaved != nil {
		all = append(all, t.PairSaved.Operands...)
	}
	return all
}

// outputs returns the operands that a task writes.
func (t *Task) outputs() []Operand {
	if t.Saved != nil && forwardKernels[t.Call.Kernel] == nil {
		return append(slices.Clone(t.Out), t.Saved.Operands...)
	}
	return t.Out
}

// reads returns the values that a task reads.
func (t *Task) reads() (all []int) {
	for _, o := range t.inputs() {
		if o.value >= 0 {
			all = append(all, o.value)
		}
	}
	return all
}

func ptrsTo(all ...*Operand) (there []Operand) {
	for _, o := range all {
		if o != nil {
			there = append(there, *o)
		}
	}
	return there
}

// makeFirstReader moves a convolution in front of other readers of its input, so that it may make
// that input. It reads nothing else but a copy of parameters, which is made first.
func (l *linker) makeFirstReader(i int) {
	x, w := l.tasks[i].In[0].value, l.tasks[i].In[1].value
	first := l.readers[x][0]
	if first >= i || l.tasks[i].Call.Dims[7] != 1 || l.makers[w] >= first || !normForwards[l.kernelOf(x)] {
		return
	}
	t := l.tasks[i]
	copy(l.tasks[first+1:i+1], l.tasks[first:i])
	l.tasks[first] = t
	l.index()
}

// kernelOf returns the kernel that makes a value, or "".
func (l *linker) kernelOf(v int) device.Kernel {
	if i, ok := l.makers[v]; ok && v >= 0 && l.tasks[i].Work == Compute {
		return l.tasks[i].Call.Kernel
	}
	return ""
}

// makeLastSummand moves the gradient of an input behind the other summand of a sum of two gradients,
// and behind it the other readers of what it reads.
func (l *linker) makeLastSummand(i int) {
	t := &l.tasks[i]
	readers := l.readers[t.Out[0].value]
	if len(readers) != 1 || l.tasks[readers[0]].Addend == nil {
		return
	}
	sum := &l.tasks[readers[0]]
	other := sum.In[2]
	if other.value == t.Out[0].value {
		other = *sum.Addend
	}
	if made, ok := l.makers[other.value]; !ok || made < i {
		return
	}
	var stay, move []Task
	var made []Operand
	for _, between := range l.tasks[i:readers[0]] {
		overwrites := func(moved Task) bool { return slices.ContainsFunc(between.outputs(), moved.touches) }
		switch {
		case len(move) == 0 || slices.Contains(between.reads(), t.In[0].value):
			move, made = append(move, between), append(made, between.outputs()...)
		case slices.ContainsFunc(made, between.touches) || slices.ContainsFunc(move, overwrites):
			return
		default:
			stay = append(stay, between)
		}
	}
	copy(l.tasks[i:], append(stay, move...))
	l.index()
}

// normForwards and normGradients list the normalisations whose kernels convolutions may compute.
var (
	normForwards = map[device.Kernel]bool{device.BatchNorm: true, device.BatchNormReLU: true,
		device.BatchNormAddReLU: true}
	normGradients = map[device.Kernel]bool{device.BatchNormGrad: true, device.BatchNormReLUGrad: true,
		device.BatchNormAddReLUGrad: true}
)

// linkForward links a convolution with the normalisation of its output, and with the one that makes
// its input.
func (l *linker) linkForward(i int) {
	t := &l.tasks[i]
	for _, j := range l.readers[t.Out[0].value] {
		if n := &l.tasks[j]; normForwards[l.compute(n)] && n.In[0].value == t.Out[0].value &&
			l.canMove(n, n.In[1:3], i, j) {
			t.Feeds = n
			break
		}
	}
	x := t.In[0].value
	if t.Feeds == nil || t.Call.Dims[7] != 1 || !normForwards[l.kernelOf(x)] ||
		l.kernelOf(x) == device.BatchNorm || l.readers[x][0] != i {
		return
	}
	if n := &l.tasks[l.makers[x]]; !n.Deferred && n.Out[0].value == x && l.readLater(n.outputs()[3:], i) &&
		l.onlyArena(n.In[0], append([]Operand{n.Out[1]}, n.In[3:]...)...) {
		t.Reads = n
	}
}

// linkGradX links the gradient of a convolution's input with the gradient of a normalisation that it
// reads, and with the one that reads it.
func (l *linker) linkGradX(i int) {
	t := &l.tasks[i]
	dy, dx := t.In[0].value, t.Out[0].value
	if !normGradients[l.kernelOf(dy)] || l.readers[dy][0] != i {
		return
	}
	n := &l.tasks[l.makers[dy]]
	if n.Out[0].value != dy || !l.hasMap(n) || !l.onlyArena(n.In[0], n.gradient()...) {
		return
	}
	t.Reads = n
	l.linkGradW(i)
	for _, j := range l.readers[dx] {
		if l.mayFeed(i, j) {
			t.Feeds = &l.tasks[j]
			return
		}
	}
}

// linkGradW links the gradient of filters behind task i, the gradient of the same convolution's
// input, if nothing else reads the gradient that both read.
func (l *linker) linkGradW(i int) {
	dy, j := l.tasks[i].In[0].value, i+1
	if l.bothBlocks == 0 || !slices.Equal(l.readers[dy], []int{i, j}) {
		return
	}
	t, w := &l.tasks[i], &l.tasks[j]
	if l.compute(w) == device.ConvGradW && w.In[1].value == dy && w.In[0].value >= 0 && w.Out[0].value >= 0 &&
		w.Out[0].Element == l.element && slices.Equal(w.Call.Dims, t.Call.Dims) &&
		fitsBoth(t.Product(), l.bothBlocks) {
		w.GradX, w.Blocks = t, l.bothBlocks
	}
}

// mayFeed reports whether the gradient of an input, task i, may compute the sums of the gradient of
// the normalisation that reads it, task j. If j adds a residual, it gets the gradient in another
// form, and nothing else may read it. If j adds two gradients, task i must make the second of them.
func (l *linker) mayFeed(i, j int) bool {
	n, dx := &l.tasks[j], l.tasks[i].Out[0].value
	if !normGradients[l.compute(n)] || n.Call.Kernel == device.BatchNormGrad || n.Saved == nil ||
		!l.onlyArena(n.In[0], append(ptrsTo(n.Addend), n.In[4:]...)...) {
		return false
	}
	if n.Call.Kernel == device.BatchNormAddReLUGrad && (len(l.readers[dx]) != 1 || n.Out[1].value < 0) {
		return false
	}
	if n.Addend != nil && n.Addend.value == dx { // the sum is the same
		n.In[2], *n.Addend = *n.Addend, n.In[2]
	}
	others := slices.DeleteFunc(n.inputs(), func(o Operand) bool { return o.value == dx })
	return n.In[2].value == dx && len(others) == len(n.inputs())-1 && l.canMove(n, others, i, j)
}

// compute returns the kernel of a task, or "" if it is no call.
func (l *linker) compute(t *Task) device.Kernel {
	if t.Work != Compute {
		return ""
	}
	return t.Call.Kernel
}

// gradient returns what the second kernel of a normalisation's gradient reads, without x and y.
func (t *Task) gradient() []Operand {
	switch t.Call.Kernel {
	case device.BatchNormGrad:
		return []Operand{t.In[1], t.In[3], t.In[4]}
	case device.BatchNormAddReLUGrad: // dz
		return []Operand{t.Out[1], t.In[4], t.In[5]}
	}
	return []Operand{t.In[2], t.In[4], t.In[5]}
}

// hasMap reports whether the second kernel of a normalisation's gradient needs no ReLU mask, or
// recomputes it.
func (l *linker) hasMap(n *Task) bool {
	return n.Call.Kernel != device.BatchNormReLUGrad || n.Saved != nil && !n.Saved.ByMask
}

// onlyArena reports whether operands are values, whose memory nothing else writes.
func (l *linker) onlyArena(first Operand, others ...Operand) bool {
	return first.value >= 0 && !slices.ContainsFunc(others, func(o Operand) bool { return o.value < 0 })
}

// canMove reports whether the first kernel of a normalisation, task j, can run with task i, of
// whose output it makes sums: the other operands that it reads have their numbers by then, and
// nothing between touches what it writes outside of the arena.
func (l *linker) canMove(n *Task, reads []Operand, i, j int) bool {
	if j <= i {
		return false
	}
	for _, o := range reads {
		if made, ok := l.makers[o.value]; o.value >= 0 && ok && made >= i {
			return false
		}
	}
	for k := i; k < j; k++ {
		t := &l.tasks[k]
		if slices.ContainsFunc(n.Out, func(o Operand) bool { return o.value < 0 && t.touches(o) }) ||
			slices.ContainsFunc(t.Out, func(o Operand) bool { return o.value < 0 && n.touches(o) }) {
			return false
		}
	}
	return true
}

// readLater reports whether no task before i reads any of these operands.
func (l *linker) readLater(all []Operand, i int) bool {
	return !slices.ContainsFunc(all, func(o Operand) bool {
		return o.value >= 0 && len(l.readers[o.value]) > 0 && l.readers[o.value][0] < i
	})
}

// touches reports whether a task reads or writes an operand.
func (t *Task) touches(o Operand) bool {
	if o.value >= 0 {
		return slices.Contains(t.reads(), o.value)
	}
	return slices.ContainsFunc(slices.Concat(t.In, t.Out), func(other Operand) bool {
		return other.value < 0 && other.Space == o.Space && other.Offset < o.Offset+o.Bytes() &&
			o.Offset < other.Offset+other.Bytes()
	})
}
