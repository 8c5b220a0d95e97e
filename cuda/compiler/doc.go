// Package compiler turns the code of a network into the tasks that a GPU runs.
//
// [Compile] takes the calls of a device.Code and a [Precision] and returns a [Plan]: the calls to
// run, the conversions between them, and the address of every operand. It computes nothing and
// needs no GPU; package cuda makes kernel launches of the tasks.
//
// In fp32 and tf32 the calls stay as they are, at the addresses that the code gives
// (plan_float32.go). In fp16 and bf16 the code is planned anew (plan.go): activations, their
// gradients and the copies of weights that products read take 16 bits; vectors, losses, statistics
// and gradients of parameters take 32 (format.go). The values of the code (trace.go) get new
// addresses in an arena about half as large (allocate.go). In fp16 the gradient of the loss is
// multiplied by a loss scale, and the gradients of parameters are divided by it (scaled.go).
//
// In every precision three transformations move less memory or launch fewer kernels, and keep every
// bit of the results: fused ReLU masks, sums and residual additions of batch normalisations
// (fusions.go), ReLU masks of dense layers (relumask.go), and one kernel for the many small calls
// that serve one parameter each (multitensor.go).
//
// Where to look next: plan.go for tasks and operands, then the files above; lower.go of package
// cuda for the launches.
package compiler
