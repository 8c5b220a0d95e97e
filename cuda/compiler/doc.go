// Package compiler turns the code of a network into the tasks that a GPU runs.
//
// [Compile] takes the calls of a device.Code and a [Precision] and returns a [Plan]: the calls to
// run, the conversions between them, and the address of every operand. It computes nothing and
// needs no GPU; package cuda makes kernel launches of the tasks.
//
// One planner (plan.go) serves all precisions. The values of the code (trace.go) get a format
// (format.go), and after all fusions an address in the arena (allocate.go). In fp32 and tf32 all
// values are float32. In fp16 and bf16 activations, their gradients and the copies of weights that
// products read take 16 bits, so that the arena is about half as large; vectors, losses, statistics
// and gradients of parameters take 32. In fp16 the gradient of the loss is multiplied by a loss
// scale, and the gradients of parameters are divided by it (scaled.go). Float32 code whose values
// cannot be traced, for it reads a part of a value, runs as it is.
//
// In every precision three transformations move less memory or launch fewer kernels, and keep every
// bit of the results: fused ReLU masks, sums and residual additions of batch normalisations
// (fusions.go), ReLU masks of dense layers (relumask.go), and one kernel for the many small calls
// that serve one parameter each (multitensor.go). In 16 bits the rows of the
// logits of a large vocabulary are padded (vocabulary.go).
//
// Where to look next: plan.go for tasks and operands, then the files above; lower.go of package
// cuda for the launches.
package compiler
